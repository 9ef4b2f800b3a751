//! Somebody else, who changes what names stand for while others use them; and what is not his to give.
//!
//! He is nobody's process: another program of the same user, which may do what it likes wherever claims
//! are made. He puts a FIFO, a link or a full directory where a name is, or where one is about to be, takes
//! away what is there, or mounts something on it. What stood there lies in `/elsewhere` afterwards. His links
//! lead to `/precious`, which is what he mounts, and of which nothing may ever change (S2).
//!
//! Whom he cannot be blamed on: he takes nothing that is in use, nor what somebody who lives has made,
//! since no rule could make up for that.

use mortmain::sys::{Handle, Name, PathBytes, Pid};

use super::World;
use super::files::{Inode, Node, Special};
use super::ids::{InodeId, Made, MountId};
use super::mounts::{Mount, Place};
use super::process::INIT;

/// Who made what the adversary put somewhere. No process has the number.
const ADVERSARY: Pid = Pid(0);

const PRECIOUS: InodeId = InodeId(Made { by: INIT, nth: 2 });
const KEPT: InodeId = InodeId(Made { by: INIT, nth: 3 });
const ELSEWHERE: InodeId = InodeId(Made { by: INIT, nth: 4 });
const PRECIOUS_PATH: &[u8] = b"/precious";
const KEPT_NAME: &str = "kept";

/// What the adversary does to a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trick {
    /// It stands for a FIFO from now on.
    Fifo,
    /// It stands for a link to what is precious.
    Link,
    /// It stands for a directory with something in it.
    Full,
    /// It stands for nothing.
    Away,
    /// What is precious is mounted on the directory that it stands for.
    Mount,
}

impl Trick {
    /// All of them, with a word for each.
    pub const WORDS: [(&'static str, Trick); 5] = [
        ("fifo", Trick::Fifo),
        ("link", Trick::Link),
        ("full", Trick::Full),
        ("away", Trick::Away),
        ("mount", Trick::Mount),
    ];

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        Trick::WORDS.iter().find(|(_, known)| *known == self).map_or("?", |(word, _)| word)
    }
}

/// A name in a directory that somebody has open, as the adversary sees it.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'n> {
    /// Whose directory it is.
    pub pid: Pid,
    /// The directory, as that process has it open.
    pub dir: Handle,
    /// The name.
    pub name: &'n Name,
}

/// A spot with what is there.
struct Found {
    dir: InodeId,
    /// From a directory in the root to this one, both included; nothing if it is the root itself.
    way: Vec<InodeId>,
    there: Option<InodeId>,
}

impl World {
    /// Lets there be an adversary, and what must be safe from everybody.
    pub fn invite_adversary(&mut self) {
        let names = [(PRECIOUS, Name::fixed("precious")), (ELSEWHERE, Name::fixed("elsewhere"))];
        for (inode, name) in names {
            self.make_in(inode, self.top, &name, Node::Dir(Vec::new()));
        }
        let kept = Node::File((*b"precious").into());
        self.make_in(KEPT, PRECIOUS, &Name::fixed(KEPT_NAME), kept);
        self.tricks = Some(0);
    }

    /// Whether the adversary may do this there, and it makes a difference.
    #[must_use]
    pub fn can_trick(&self, spot: Spot<'_>, trick: Trick) -> bool {
        self.tricks.is_some()
            && self.find_spot(spot).is_some_and(|found| match found.there {
                None => trick != Trick::Away,
                Some(there) => {
                    self.not_mounted_on(there).is_ok()
                        && !self.is_needed(found.dir, spot.name, there)
                        && (trick != Trick::Mount || self.is_dir(there))
                }
            })
    }

    /// Plays a trick, which must be possible; says what it was.
    pub fn trick(&mut self, spot: Spot<'_>, trick: Trick) -> String {
        let Found { dir, way, there } = self.find_spot(spot).expect("it was asked before");
        let nth = self.tricks.expect("there is an adversary");
        self.tricks = Some(nth + 1);
        let path = self.path_of_spot(spot);
        if !self.is_for_users(&way) || there.is_some() {
            self.excuse(&way);
        }
        let made = |more| InodeId(Made { by: ADVERSARY, nth: 2 * nth + more });
        if let Some(there) = there.filter(|_| trick != Trick::Mount) {
            self.take_elsewhere(dir, spot.name, there, nth);
        }
        let (node, what) = match trick {
            Trick::Fifo => (Node::Special(Special::Fifo), "a FIFO"),
            Trick::Link => (Node::Link(PRECIOUS_PATH.into()), "a link to /precious"),
            Trick::Full => (Node::Dir(Vec::new()), "a full directory"),
            Trick::Away => return format!("takes {path} away"),
            Trick::Mount => {
                if there.is_none() {
                    self.make_in(made(0), dir, spot.name, Node::Dir(Vec::new()));
                }
                self.mount_precious(nth, there.unwrap_or(made(0)), &way);
                return format!("mounts /precious on {path}");
            }
        };
        self.make_in(made(0), dir, spot.name, node);
        if trick == Trick::Full {
            let file = Node::File(Box::default());
            self.make_in(made(1), made(0), &Name::fixed(KEPT_NAME), file);
        }
        let at = if there.is_some() { "in the place of" } else { "at" };
        format!("puts {what} {at} {path}")
    }

    /// Nothing that a mount is on can be removed.
    fn mount_precious(&mut self, nth: u32, inode: InodeId, way: &[InodeId]) {
        self.excuse(&[way, &[inode]].concat());
        let id = MountId(Made { by: ADVERSARY, nth });
        self.mounts.insert(id, Mount { on: Place { mount: None, inode }, root: PRECIOUS });
    }

    fn path_of_spot(&self, Spot { pid, dir, name }: Spot<'_>) -> PathBytes {
        let below = self.file_of(pid, dir).map(|file| self.path_of(file)).unwrap_or_default();
        let root = World::root_path();
        let dir = below.0.strip_prefix(b"/").filter(|path| !path.is_empty());
        dir.map_or(root.clone(), |path| root.join(path)).join(name.bytes())
    }

    /// `None` where it is no directory among the claims, or none any more.
    fn find_spot(&self, Spot { pid, dir, name }: Spot<'_>) -> Option<Found> {
        let Place { mount: None, inode: dir } =
            self.open_file(self.file_of(pid, dir).ok()?).place()
        else {
            return None;
        };
        self.inode(dir).entries().ok()?;
        let mut way = Vec::new();
        if dir != self.root && !self.find_way(self.root, dir, &mut way) {
            return None;
        }
        Some(Found { dir, way, there: self.inode(dir).entry(name) })
    }

    /// The directories on the way from one to another one, the last included.
    fn find_way(&self, from: InodeId, to: InodeId, way: &mut Vec<InodeId>) -> bool {
        let Ok(entries) = self.inode(from).entries() else { return false };
        entries.iter().any(|(_, inode)| {
            way.push(*inode);
            let found = *inode == to || self.find_way(*inode, to, way);
            if !found {
                way.pop();
            }
            found
        })
    }

    /// Whether something is in use, or its maker lives.
    fn is_needed(&self, dir: InodeId, name: &Name, there: InodeId) -> bool {
        self.lives(there.0.by) || self.is_relied_on(dir, name)
    }

    fn is_for_users(&self, way: &[InodeId]) -> bool {
        way.iter().any(|inode| self.inode(*inode).is_given())
    }

    /// No sweep need finish a claim whose parts the adversary has changed.
    fn excuse(&mut self, way: &[InodeId]) {
        if let Some(claim) = way.first() {
            self.inodes.update(*claim, Inode::excuse);
        }
    }

    fn take_elsewhere(&mut self, dir: InodeId, name: &Name, there: InodeId, nth: u32) {
        let away = Name::new(nth.to_string().as_bytes()).expect("a number is a name");
        self.change(dir, |dir| dir.take(name));
        self.change(ELSEWHERE, |dir| dir.put(&away, there));
    }

    /// What of the precious is not as it was, if anything.
    #[must_use]
    pub fn outside_harm(&self) -> Option<PathBytes> {
        self.tricks?;
        let kept = PathBytes::from(PRECIOUS_PATH).join(KEPT_NAME.as_bytes());
        let whole = |id: InodeId, mode, node: &dyn Fn(&Node) -> bool| {
            self.inodes.get(id).is_some_and(|inode| inode.mode() == mode && node(&inode.node))
        };
        let only_kept = |node: &Node| {
            matches!(node, Node::Dir(names)
                if names.len() == 1 && names[0] == (Name::fixed(KEPT_NAME), KEPT))
        };
        if !whole(KEPT, 0o600, &|node| matches!(node, Node::File(bytes) if **bytes == *b"precious"))
        {
            return Some(kept);
        }
        let named = self.inode(self.top).entry(&Name::fixed("precious")) == Some(PRECIOUS);
        let is_whole = named && whole(PRECIOUS, 0o700, &only_kept);
        (!is_whole).then(|| PathBytes::from(PRECIOUS_PATH))
    }

    /// What a last sweep has left of what it should have removed, as paths of everything in it, in order:
    /// neither what the adversary has made, nor a claim whose parts he has changed.
    #[must_use]
    pub fn left(&self) -> Vec<PathBytes> {
        let mut found = Vec::new();
        for (name, inode) in self.in_root() {
            if inode.0.by != ADVERSARY && !self.inode(inode).is_excused() {
                let path = PathBytes::from(name.bytes());
                found.push(path.clone());
                self.list(inode, &path, &mut found);
            }
        }
        found
    }
}
