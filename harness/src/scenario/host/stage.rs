//! What a story is told on: a root, precious directories, and who is running.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

use super::command::Running;
use super::container::Entered;
use super::crowd::Gathered;
use super::disks::Mounted;
use super::truth::inode;
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::actor::wire::Subject;
use crate::guard::ChildGuard;
use crate::scenario::story::{self, Action, Base, Copy, Place, Story, bracketed};
use crate::scenario::telling::{Doing, Heard};
use crate::scratch::scratch_root;
use crate::tree::Tree;
use crate::wait::Watch;

/// Nobody in particular, on any system: neither root nor the user who stands for all unknown ones.
pub(super) const PLAIN_UID: u32 = 1000;

/// The precious directory that every story has.
pub(super) const OUTSIDE: &str = "outside";

/// Everything that is there while a story is told.
pub(super) struct Stage<'s> {
    pub(super) story: &'s Story,
    pub(super) subject: Subject,
    pub(super) round: u64,
    pub(super) lab: PathBuf,
    /// Where claims lie.
    pub(super) root: PathBuf,
    /// Where lock files, stores and test directories lie.
    pub(super) shared: PathBuf,
    /// For the pipes of commands.
    pub(super) control: PathBuf,
    pub(super) precious: BTreeMap<String, (PathBuf, Tree)>,
    pub(super) servers: BTreeMap<String, Serving>,
    /// Servers that have ended; their guards end what they left behind, at the end of the story.
    pub(super) dead: Vec<Serving>,
    pub(super) sweepers: BTreeMap<String, Process>,
    pub(super) commands: BTreeMap<String, Running>,
    /// Copies of servers that were forked and live on with the claim.
    pub(super) copies: BTreeMap<String, Vec<Watch>>,
    pub(super) strangers: BTreeMap<String, ChildGuard>,
    /// The pids of servers and commands, and their starts, also when they have ended.
    pub(super) numbers: BTreeMap<String, (i32, u64)>,
    pub(super) claims: BTreeMap<String, Claim>,
    /// Dead claims that the next plain sweep has to remove.
    pub(super) canaries: Vec<Canary>,
    /// What the sweeps said.
    pub(super) heard: Heard,
    /// What is mounted, and where.
    pub(super) mounts: Vec<PathBuf>,
    /// Processes in whose view alone something is mounted.
    pub(super) elsewhere: Vec<ChildGuard>,
    /// The disks that are mounted, each after what it lies on.
    pub(super) disks: Vec<Mounted>,
    /// Directories that somebody has locked who has to do with no claim.
    pub(super) locks: Vec<(PathBuf, File)>,
    pub(super) crowds: BTreeMap<String, Gathered>,
    /// Commands that live and have lost their claim, as it was foreseen.
    pub(super) escaped: BTreeSet<String>,
    /// Names in a root that the story has put there.
    pub(super) planted: Vec<PathBuf>,
    /// The inodes of what lies there, since a sweep that meets it may give it back its name.
    pub(super) planted_inodes: Vec<u64>,
    /// Where things are that something else was put in the place of.
    pub(super) attic: PathBuf,
    /// Precious directories that were moved, and where they are now.
    pub(super) moved: BTreeMap<String, Place>,
    pub(super) containers: BTreeMap<String, Entered>,
    /// What somebody has opened, who is no user of any claim.
    pub(super) held: Vec<File>,
    /// Whether an operation ended before the call at which something was to happen.
    pub(super) over: bool,
    /// The servers whose claims can be disturbed, although no step says so.
    pub(super) tapped: BTreeSet<String>,
}

/// A server that runs.
pub(super) struct Serving {
    pub(super) process: Process,
    /// Whether it still means to use its claim.
    pub(super) uses: bool,
    /// What it was doing when it stopped.
    pub(super) stopped: Option<Doing>,
    /// The owner, where it is not the process that was started.
    pub(super) owner: Option<Watch>,
}

impl Serving {
    /// The pid of the owner.
    pub(super) fn pid(&self) -> i32 {
        self.owner.as_ref().map_or(self.process.pid(), Watch::pid)
    }
}

/// A claim as it was seen.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The prefix of its names.
    pub(super) prefix: String,
    /// What all its names have in common.
    pub(super) random: String,
    /// The inode of its directory, once it was published.
    pub(super) inode: Option<u64>,
    /// Whether the story itself has taken something of it away.
    pub(super) touched: bool,
    /// Where it lies.
    pub(super) home: Home,
}

/// A dead claim that a sweep has to remove.
pub(super) struct Canary {
    pub(super) claim: Claim,
    /// Whose it is.
    pub(super) plain_user: bool,
}

impl Canary {
    /// Whether sweeps of this user have to remove it, for claims of this prefix there.
    pub(super) fn is_for(&self, prefix: &str, home: &Home, plain_user: bool) -> bool {
        self.plain_user == plain_user && self.claim.prefix == prefix && self.claim.home == *home
    }
}

/// Where claims lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In the root that every story has.
    Root,
    /// In the root of a disk.
    Disk(String),
    /// In the claim of a server.
    Within(String),
}

impl<'s> Stage<'s> {
    /// Sets everything up.
    pub(super) fn set(
        story: &'s Story,
        lab: &Path,
        subject: Subject,
        round: u64,
    ) -> Outcome<Stage<'s>> {
        let base = scratch_root();
        let make = |name: &str, mode: u32| -> std::io::Result<PathBuf> {
            let path = base.join(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
            Ok(path)
        };
        // As the temporary directory is, in which claims lie in life.
        let root = make("root", 0o1777)?;
        let shared = make("shared", 0o1777)?;
        let control = make("control", 0o777)?;
        let attic = make("attic", 0o700)?;
        // The build may lie where a plain user may not look.
        let reachable = base.join("mortmain-lab");
        let lab = if story.actors.values().any(is_plain) {
            fs::copy(lab, &reachable)?;
            fs::set_permissions(&reachable, Permissions::from_mode(0o755))?;
            reachable
        } else {
            lab.to_owned()
        };
        let mut precious = BTreeMap::new();
        let named = story.actors.iter().filter_map(|(name, actor)| match actor {
            story::Actor::Precious(precious) => Some((name.as_str(), precious.plain_user)),
            _ => None,
        });
        for (name, plain_user) in named.chain([(OUTSIDE, false)]) {
            let dir = make(&format!("precious-{name}"), 0o755)?;
            fs::create_dir_all(dir.join("deep/er"))?;
            fs::write(dir.join("file"), format!("{name}: nobody may touch this\n"))?;
            fs::write(dir.join("deep/er/file"), "nor this\n")?;
            if plain_user {
                super::adverse::give(&dir, PLAIN_UID)?;
            }
            let seen = Tree::read(&dir)?;
            precious.insert(name.to_owned(), (dir, seen));
        }
        Ok(Stage {
            story,
            subject,
            round,
            lab,
            root,
            shared,
            control,
            precious,
            servers: BTreeMap::new(),
            dead: Vec::new(),
            sweepers: BTreeMap::new(),
            commands: BTreeMap::new(),
            copies: BTreeMap::new(),
            strangers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            claims: BTreeMap::new(),
            canaries: Vec::new(),
            heard: Heard::default(),
            mounts: Vec::new(),
            elsewhere: Vec::new(),
            disks: Vec::new(),
            locks: Vec::new(),
            crowds: BTreeMap::new(),
            escaped: BTreeSet::new(),
            planted: Vec::new(),
            planted_inodes: Vec::new(),
            attic,
            moved: BTreeMap::new(),
            containers: BTreeMap::new(),
            held: Vec::new(),
            over: false,
            tapped: BTreeSet::new(),
        })
    }

    /// Starts an actor, as a plain user if that is meant.
    pub(super) fn start_actor(&self, plain_user: bool) -> Process {
        Process::start_by(self.actor_command(plain_user))
    }

    /// What becomes an actor.
    pub(super) fn actor_command(&self, plain_user: bool) -> process::Command {
        let mut command = process::Command::new(&self.lab);
        command.arg("actor");
        self.drop_rights(&mut command, plain_user);
        command
    }

    /// Makes a plain user of who is to be one.
    pub(super) fn drop_rights(&self, command: &mut process::Command, plain_user: bool) {
        if plain_user && rustix::process::geteuid().is_root() {
            // Without root's groups, which go with the uid.
            command.gid(PLAIN_UID).uid(PLAIN_UID);
        }
    }

    /// A server that runs.
    pub(super) fn serving(&mut self, name: &str) -> Outcome<&mut Serving> {
        let running = self.servers.get_mut(name);
        running.ok_or_else(|| Failure::new("not-running", format!("server `{name}` does not run")))
    }

    /// A command that was started.
    pub(super) fn running(&mut self, name: &str) -> Outcome<&mut Running> {
        let running = self.commands.get_mut(name);
        running
            .ok_or_else(|| Failure::new("not-running", format!("command `{name}` was not started")))
    }

    /// The claim of a server.
    pub(super) fn claim(&self, server: &str) -> Outcome<&Claim> {
        let claim = self.claims.get(server);
        claim.ok_or_else(|| Failure::new("no-claim", format!("`{server}` has made no claim")))
    }

    /// The path of a claim, by whatever name it has now.
    pub(super) fn path_of(&self, claim: &Claim) -> Option<PathBuf> {
        let root = self.root_of(&claim.home)?;
        let names = names_in(&root).into_iter().filter(|name| name.contains(&claim.random));
        let mut paths = names.map(|name| root.join(name));
        paths.find(|path| !self.is_planted(path))
    }

    /// Whether something in a root is there because the story has put it there.
    pub(super) fn is_planted(&self, path: &Path) -> bool {
        // Under the name that the claim had, or its own; not as somebody's tombstone.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let known = |inode| !hidden && self.planted_inodes.contains(&inode);
        self.planted.iter().any(|planted| planted == path) || inode(path).is_ok_and(known)
    }

    /// What lies in the root, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        names_in(&self.root)
    }

    /// Where an actor makes claims, or sweeps.
    pub(super) fn home_of(&self, actor: &str) -> Home {
        let (on, within) = match self.story.actors.get(actor) {
            Some(story::Actor::Server(server)) => (&server.on, &server.within),
            Some(story::Actor::Sweeper(sweeper)) => (&sweeper.on, &None),
            Some(story::Actor::Crowd(crowd)) => (&crowd.on, &None),
            _ => (&None, &None),
        };
        match (on, within) {
            (Some(disk), _) => Home::Disk(disk.clone()),
            (_, Some(server)) => Home::Within(server.clone()),
            (None, None) => Home::Root,
        }
    }

    /// The directory in which claims lie, if there is one now.
    pub(super) fn root_of(&self, home: &Home) -> Option<PathBuf> {
        match home {
            Home::Root => Some(self.root.clone()),
            Home::Disk(disk) => self.mounted(disk).map(|mounted| mounted.root.clone()),
            Home::Within(server) => {
                let outer = self.path_of(self.claims.get(server)?)?;
                Some(outer.join("files")).filter(|files| files.is_dir())
            }
        }
    }

    /// The same for an actor who is about to go there; a disk is mounted for it.
    pub(super) fn root_for(&mut self, actor: &str) -> Outcome<PathBuf> {
        match self.home_of(actor) {
            Home::Disk(disk) => self.disk(&disk),
            home => self.root_of(&home).ok_or_else(|| {
                Failure::new("no-claim", format!("the claim is gone that `{actor}` is within"))
            }),
        }
    }

    /// The path of a place of the story.
    pub(super) fn resolve(&self, place: &Place) -> Outcome<PathBuf> {
        let base = match &place.base {
            Base::Root => self.root.clone(),
            Base::Shared => self.shared.clone(),
            Base::Claim(server) => {
                let claim = self.claim(server)?;
                self.path_of(claim).ok_or_else(|| {
                    Failure::new("no-claim", format!("nothing is left of the claim of `{server}`"))
                })?
            }
            Base::Precious(name) => self.precious_path(name)?,
        };
        let mut rest = place.rest.clone();
        for server in bracketed(&place.rest) {
            let claim = self.claim(server)?;
            let name = format!("{}-{}", claim.prefix, claim.random);
            rest = rest.replace(&format!("<{server}>"), &name);
        }
        // A join with an empty path would add a slash, and a slash follows links.
        // OK because whoever read the story has seen to it.
        let rest =
            OsString::from_vec(Place { rest, ..place.clone() }.rest_bytes().unwrap_or_default());
        Ok(if rest.is_empty() { base } else { base.join(rest) })
    }

    /// Whether the calls of a server's claim are to be disturbed at any time.
    pub(super) fn is_disturbed(&self, server: &str) -> bool {
        self.tapped.contains(server)
            || self.story.steps.iter().any(|step| match &step.action {
                Action::Start { server: own, disturbed, .. }
                | Action::Close { server: own, disturbed, .. } => {
                    own == server && disturbed.is_some()
                }
                Action::Spawn { commands, disturbed, held } => {
                    let own =
                        commands.iter().any(|command| self.story.command(command).by == server);
                    own && (disturbed.is_some() || held.is_some())
                }
                _ => false,
            })
    }

    /// What the forked copies of a server mean for its claim.
    pub(super) fn copy_uses(copy: Copy) -> bool {
        copy == Copy::Stays
    }
}

fn is_plain(actor: &story::Actor) -> bool {
    match actor {
        story::Actor::Server(server) => server.plain_user,
        story::Actor::Sweeper(sweeper) => sweeper.plain_user,
        story::Actor::Command(_)
        | story::Actor::Precious(_)
        | story::Actor::Disk(_)
        | story::Actor::Crowd(_)
        | story::Actor::Stranger
        | story::Actor::Container(_) => false,
    }
}

/// The names in a directory, sorted.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let names = crate::ground::names_in(dir).into_iter();
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}
