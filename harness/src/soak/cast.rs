//! Who is there in a story that is drawn.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::lots::Lots;

/// The precious directory that is mounted into claims.
pub(super) const TREASURE: &str = "treasure";

/// Everybody.
#[derive(Clone, Debug)]
pub(super) struct Cast {
    pub(super) servers: Vec<Server>,
    pub(super) commands: Vec<Command>,
    pub(super) sweepers: Vec<Sweeper>,
    /// Whether something may be mounted.
    pub(super) mounts: bool,
    /// Whether nothing is to happen that the simulated kernel has not.
    pub(super) modest: bool,
}

/// A server, which is started once at most.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) plain_user: bool,
    /// The server in whose claim its own lies.
    pub(super) within: Option<String>,
    /// Whether it can be stopped and killed at a call.
    pub(super) tapped: bool,
}

/// A command, which is started once at most.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) by: String,
    own_session: bool,
    in_background: bool,
    elsewhere: bool,
    without_cookie: bool,
    lock: &'static str,
}

/// A program that only sweeps.
#[derive(Clone, Debug)]
pub(super) struct Sweeper {
    pub(super) name: String,
    plain_user: bool,
    dry_run: bool,
    cannot_tell: Option<&'static str>,
}

impl Cast {
    /// Draws one. Who is root can have plain users beside him, and mounts; a third of all have only what
    /// the simulated kernel has as well.
    pub(super) fn draw(lots: &mut Lots, root: bool) -> Cast {
        let modest = lots.one_in(3);
        let plain = |lots: &mut Lots, times| root && !modest && lots.one_in(times);
        let mut servers: Vec<Server> = Vec::new();
        for nth in 1..=4 + lots.below(9) {
            let plain_user = plain(lots, 5);
            let outer: Vec<&Server> =
                servers.iter().filter(|outer| outer.plain_user == plain_user).collect();
            let within = if lots.one_in(5) { lots.one_of(&outer) } else { None };
            let within = within.map(|outer| outer.name.clone());
            let tapped = !lots.one_in(3);
            servers.push(Server { name: format!("s{nth}"), plain_user, within, tapped });
        }
        let mut commands = Vec::new();
        for server in &servers {
            for _ in 0..lots.below(4) {
                let name = format!("c{}", commands.len() + 1);
                commands.push(Command::draw(lots, name, server.name.clone()));
            }
        }
        let sweeper = |nth| Sweeper {
            name: format!("w{nth}"),
            plain_user: nth > 1 && plain(lots, 4),
            dry_run: nth > 1 && lots.one_in(8),
            cannot_tell: if nth > 1 && lots.one_in(6) {
                lots.one_of(&["lease", "owner", "commands", "life"]).copied()
            } else {
                None
            },
        };
        let sweepers = (1..=3).map(sweeper).collect();
        let mounts = plain(lots, 3);
        Cast { servers, commands, sweepers, mounts, modest }
    }

    /// The servers that can be stopped and killed at a call.
    pub(super) fn tapped(&self) -> BTreeSet<String> {
        let tapped = self.servers.iter().filter(|server| server.tapped);
        tapped.map(|server| server.name.clone()).collect()
    }

    /// The head of the story.
    pub(super) fn head(&self, about: &str) -> String {
        let mut needs = Vec::new();
        if self.mounts {
            needs.push("mount");
        }
        let locks: BTreeSet<&str> = self.commands.iter().map(|command| command.lock).collect();
        for (lock, need) in [("closed", "program:bash"), ("unlocked", "program:flock")] {
            if locks.contains(lock) {
                needs.push(need);
            }
        }
        if self.commands.iter().any(|command| command.own_session) {
            needs.push("program:setsid");
        }
        let mut head = format!("about = {about:?}\nrules = []\nneeds = {needs:?}\n\n");
        if self.mounts {
            head += &format!("[precious.{TREASURE}]\n\n");
        }
        for server in &self.servers {
            server.write(&mut head);
        }
        for command in &self.commands {
            command.write(&mut head);
        }
        for sweeper in &self.sweepers {
            sweeper.write(&mut head);
        }
        head
    }
}

impl Server {
    fn write(&self, head: &mut String) {
        let within = self.within.as_ref().map(|outer| format!("within = {outer:?}"));
        let plain_user = self.plain_user.then(|| "plain-user = true".into());
        table(head, "server", &self.name, [within, plain_user]);
    }
}

impl Command {
    /// Draws one that something can see, whatever becomes of its server: where it has not the lock of its
    /// entry any more, it works in its claim or has the cookie.
    fn draw(lots: &mut Lots, name: String, by: String) -> Command {
        let lock = if lots.one_in(2) { lots.below(3) } else { 0 };
        let lock = ["kept", "closed", "unlocked"][lock];
        let (own_session, in_background) = (lots.one_in(3), lots.one_in(3));
        let (elsewhere, without_cookie) = (lots.one_in(3), lots.one_in(3));
        let seen = !elsewhere || !without_cookie || lock == "kept";
        let elsewhere = elsewhere && seen;
        Command { name, by, own_session, in_background, elsewhere, without_cookie, lock }
    }

    fn write(&self, head: &mut String) {
        let flag = |is: bool, key: &str| is.then(|| format!("{key} = true"));
        let lock = (self.lock != "kept").then(|| format!("lock = {:?}", self.lock));
        let lines = [
            Some(format!("by = {:?}", self.by)),
            flag(self.own_session, "own-session"),
            flag(self.in_background, "in-background"),
            flag(self.elsewhere, "elsewhere"),
            flag(self.without_cookie, "without-cookie"),
            lock,
        ];
        table(head, "command", &self.name, lines);
    }
}

impl Sweeper {
    /// Whether it has to remove what nobody uses.
    pub(super) fn is_plain(&self) -> bool {
        !self.dry_run && self.cannot_tell.is_none()
    }

    fn write(&self, head: &mut String) {
        let flag = |is: bool, key: &str| is.then(|| format!("{key} = true"));
        let cannot_tell = self.cannot_tell.map(|asked| format!("cannot-tell = [{asked:?}]"));
        let lines =
            [flag(self.plain_user, "plain-user"), flag(self.dry_run, "dry-run"), cannot_tell];
        table(head, "sweeper", &self.name, lines);
    }
}

/// Writes a table of the file.
fn table(
    head: &mut String,
    kind: &str,
    name: &str,
    lines: impl IntoIterator<Item = Option<String>>,
) {
    // OK because a string takes whatever is written to it.
    let _ = writeln!(head, "[{kind}.{name}]");
    for line in lines.into_iter().flatten() {
        let _ = writeln!(head, "{line}");
    }
    head.push('\n');
}
