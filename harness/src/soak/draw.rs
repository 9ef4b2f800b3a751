//! What happens next in a story that is drawn: something that can happen now.
//!
//! Invariant: it is drawn from lots and from who is there, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cast::{Cast, Command, Server, TREASURE};
use crate::lots::Lots;
use crate::scenario::host::present::{self, MOUNT_POINT, Present, State};

/// More steps than a child makes between its fork and its exec.
const STEPS_OF_A_CHILD: usize = 5;
/// Where claims lie, as a story calls it.
const ROOT: &str = "root";
/// A FIFO that somebody has opened.
const WITH_WRITER: &str = "fifo-with-writer";
/// What is put in the way.
const PLANTED: [&str; 10] = [
    "fifo",
    WITH_WRITER,
    "directory",
    "full-directory",
    "file",
    "garbage",
    "socket",
    "dangling-link",
    "link-to-precious",
    "link-to-zero",
];

/// What somebody is at who is stopped or killed at a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Operation {
    Create,
    Spawn,
    Close,
    Sweep,
}

impl Operation {
    /// The library's word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Spawn => "spawn",
            Operation::Close => "close",
            Operation::Sweep => "sweep",
        }
    }

    /// More calls than it makes, but for sweeps of much.
    fn calls_max(self) -> usize {
        match self {
            Operation::Create => 20,
            Operation::Spawn => 40,
            Operation::Close => 300,
            Operation::Sweep => 500,
        }
    }
}

/// A step of a story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Drawn {
    /// What it counts as.
    pub(super) word: &'static str,
    /// What happens, as it stands in the file.
    plain: String,
    /// What happens at a call, and of what, if it is made.
    pub(super) disturbed: Option<(Operation, String)>,
}

impl Drawn {
    fn new(word: &'static str, line: String) -> Drawn {
        Drawn { word, plain: line + "\n", disturbed: None }
    }

    fn line(mut self, line: &str) -> Drawn {
        self.plain += line;
        self.plain.push('\n');
        self
    }

    /// The step as it stands in a file; with what happens at a call, or without.
    pub(super) fn text(&self, with_the_call: bool) -> String {
        let disturbed = self.disturbed.iter().filter(|_| with_the_call);
        let disturbed: String = disturbed.map(|(_, line)| format!("{line}\n")).collect();
        format!("[[step]]\n{}{disturbed}\n", self.plain)
    }
}

/// What can happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Can {
    Start,
    Spawn,
    KillServer,
    KillTree,
    KillCopies,
    KillCommand,
    KillSweeper,
    Exit,
    Stop,
    Continue,
    Close,
    GiveUp,
    Fork,
    LoseLease,
    Sweep,
    Plant,
    Mount,
    Unmount,
}

impl Can {
    /// How often it happens beside the others, if it can.
    fn weight(self) -> usize {
        match self {
            Can::Spawn => 20,
            Can::Sweep => 14,
            Can::Start | Can::Continue => 10,
            Can::KillServer | Can::KillCommand => 6,
            Can::Close | Can::GiveUp => 4,
            Can::Stop | Can::Exit | Can::Fork | Can::Plant | Can::Mount | Can::Unmount => 3,
            Can::KillTree | Can::KillCopies | Can::KillSweeper | Can::LoseLease => 1,
        }
    }
}

/// Draws the steps of a story.
#[derive(Debug)]
pub(super) struct Drawing<'c> {
    cast: &'c Cast,
    lots: Lots,
    /// Who was started, servers and commands.
    started: BTreeSet<String>,
    /// Who got a SIGSTOP, and nothing since.
    signalled: BTreeSet<String>,
    /// Servers that have lost their leases.
    lost: BTreeSet<String>,
    /// Servers of which there may be copies. When one is killed at a call, nobody hears that: the copies
    /// have its output open.
    forked: BTreeSet<String>,
    /// Those in whose claims something is mounted.
    mounted: BTreeSet<String>,
    /// How many things were planted.
    planted: usize,
}

impl<'c> Drawing<'c> {
    pub(super) fn new(cast: &'c Cast, lots: Lots) -> Drawing<'c> {
        Drawing {
            cast,
            lots,
            started: BTreeSet::new(),
            signalled: BTreeSet::new(),
            lost: BTreeSet::new(),
            forked: BTreeSet::new(),
            mounted: BTreeSet::new(),
            planted: 0,
        }
    }

    /// The next step; `None` when nobody is left to whom anything can happen.
    pub(super) fn next(&mut self, present: &Present) -> Option<Drawn> {
        let all = self.possible(present);
        if all.keys().all(|can| matches!(can, Can::Sweep | Can::Plant)) {
            return None;
        }
        let mut at = self.lots.below(all.keys().map(|can| can.weight()).sum());
        for (can, who) in all {
            if at < can.weight() {
                let who = who[self.lots.below(who.len())];
                return Some(self.step(can, who, present));
            }
            at -= can.weight();
        }
        unreachable!("a number below the sum of the weights falls into one of them")
    }

    /// All that can happen, and to whom.
    fn possible(&self, present: &Present) -> BTreeMap<Can, Vec<&'c str>> {
        let mut all: BTreeMap<Can, Vec<&str>> = BTreeMap::new();
        let mut can = |cans: Vec<Can>, who: &'c str| {
            for can in cans {
                all.entry(can).or_default().push(who);
            }
        };
        for server in &self.cast.servers {
            can(self.server_can(server, present), &server.name);
        }
        for command in &self.cast.commands {
            can(self.command_can(command, present), &command.name);
        }
        for sweeper in self.cast.sweepers.iter().map(|sweeper| sweeper.name.as_str()) {
            if present.sweepers.contains(sweeper) {
                can(vec![Can::Continue, Can::KillSweeper], sweeper);
            }
        }
        for (sweeper, _) in self.sweepers(present) {
            can(vec![Can::Sweep], sweeper);
        }
        can(vec![Can::Plant], ROOT);
        for server in &self.cast.servers {
            // What root puts into the claim of a plain user stays there.
            if !server.plain_user && present.claims.contains(&server.name) {
                can(vec![Can::Plant], &server.name);
            }
        }
        all
    }

    /// Who can sweep, and whether each has to remove what nobody uses.
    fn sweepers(&self, present: &Present) -> Vec<(&'c str, bool)> {
        // A nested one would sweep in the claim around it.
        let servers = self.cast.servers.iter().filter(|server| server.within.is_none());
        let servers = servers.filter(|server| self.listens(&server.name, present));
        let servers = servers.map(|server| (server.name.as_str(), true));
        let sweepers = self.cast.sweepers.iter();
        let sweepers = sweepers.filter(|sweeper| !present.sweepers.contains(&sweeper.name));
        servers.chain(sweepers.map(|one| (one.name.as_str(), one.is_plain()))).collect()
    }

    /// Whether a server does what it is told.
    fn listens(&self, server: &str, present: &Present) -> bool {
        let state = present.servers.get(server).map(|server| server.state);
        state == Some(State::Listens) && !self.signalled.contains(server)
    }

    /// Whether it does, and has a claim.
    fn holds(&self, server: &str, present: &Present) -> bool {
        let uses = present.servers.get(server).is_some_and(|server| server.uses);
        uses && self.listens(server, present) && !self.lost.contains(server)
    }

    /// The commands of a server that live.
    fn commands_of<'s>(
        &'s self,
        server: &'s str,
        present: &'s Present,
    ) -> impl Iterator<Item = &'c Command> + 's {
        let own = self.cast.commands.iter().filter(move |command| command.by == server);
        own.filter(|command| present.commands.contains_key(&command.name))
    }

    /// Whether another claim was made in that of a server.
    fn is_around_another(&self, server: &str) -> bool {
        let mut servers = self.cast.servers.iter();
        servers.any(|inner| {
            inner.within.as_deref() == Some(server) && self.started.contains(&inner.name)
        })
    }

    fn server_can(&self, server: &Server, present: &Present) -> Vec<Can> {
        let name = &server.name;
        let mut cans = Vec::new();
        if !self.started.contains(name) {
            let outer = server.within.as_ref();
            let there = outer.is_none_or(|outer| self.holds(outer, present));
            return if there { vec![Can::Start] } else { Vec::new() };
        }
        if present.copied.contains(name) {
            cans.push(Can::KillCopies);
        }
        // Who has stopped in its close would be refused when it goes on.
        let stopped = |server: &present::Server| server.state == State::Stopped;
        let at_work = present.servers.get(name).is_some_and(stopped);
        if self.cast.mounts && !server.plain_user && !at_work && present.claims.contains(name) {
            let mounted = self.mounted.contains(name);
            cans.push(if mounted { Can::Unmount } else { Can::Mount });
        }
        let Some(now) = present.servers.get(name) else { return cans };
        match now.state {
            State::Zombie => return cans,
            State::Stopped => cans.push(Can::Continue),
            State::Waits => {}
            State::Listens if self.signalled.contains(name) => cans.push(Can::Continue),
            State::Listens => cans.extend([Can::Stop, Can::Exit]),
        }
        cans.extend([Can::KillServer, Can::KillTree]);
        if self.holds(name, present) {
            cans.extend([Can::GiveUp, Can::Fork, Can::LoseLease]);
            // Who closes what others have, too, is told so, or not: that depends on whom.
            if !present.copied.contains(name) && !self.is_around_another(name) {
                cans.push(Can::Close);
            }
        }
        cans
    }

    fn command_can(&self, command: &Command, present: &Present) -> Vec<Can> {
        let name = &command.name;
        if !self.started.contains(name) {
            let can = self.holds(&command.by, present);
            return if can { vec![Can::Spawn] } else { Vec::new() };
        }
        match present.commands.get(name) {
            None => Vec::new(),
            Some(true) => vec![Can::Continue, Can::KillCommand],
            Some(false) if self.signalled.contains(name) => vec![Can::Continue, Can::KillCommand],
            Some(false) => vec![Can::KillCommand, Can::Exit, Can::Stop],
        }
    }

    fn step(&mut self, can: Can, who: &'c str, present: &Present) -> Drawn {
        let own = who.to_owned();
        match can {
            Can::Start => self.start(who),
            Can::Spawn => self.spawn(who),
            Can::KillServer => {
                let drawn = self.kill("kill a server", who);
                if self.lots.one_in(6) { drawn.line("unreaped = true") } else { drawn }
            }
            Can::KillCommand => self.kill("kill a command", who),
            Can::KillSweeper => self.kill("kill a sweeper", who),
            Can::KillTree => {
                self.signalled.remove(who);
                Drawn::new("kill a tree", format!("kill-tree = {who:?}"))
            }
            Can::KillCopies => Drawn::new("kill copies", format!("kill-copies = {who:?}")),
            Can::Exit => Drawn::new("exit", format!("exit = {who:?}")),
            Can::Stop => {
                self.signalled.insert(own);
                Drawn::new("stop", format!("stop = {who:?}"))
            }
            Can::Continue => {
                self.signalled.remove(who);
                Drawn::new("continue", format!("continue = {who:?}"))
            }
            Can::Close => self.close(who, present),
            Can::GiveUp => {
                let word = if self.lots.one_in(2) { "release" } else { "drop" };
                Drawn::new(word, format!("{word} = {who:?}"))
            }
            Can::Fork => {
                self.forked.insert(own);
                let copy = ["exits", "stays", "drops"][self.lots.below(3)];
                Drawn::new("fork", format!("fork = {who:?}")).line(&format!("copy = {copy:?}"))
            }
            Can::LoseLease => {
                self.lost.insert(own);
                Drawn::new("lose a lease", format!("lose-lease = {who:?}"))
            }
            Can::Sweep => self.sweep(who, present),
            Can::Plant => self.plant(who),
            Can::Mount => self.mount(who, present),
            Can::Unmount => {
                self.mounted.remove(who);
                Drawn::new("unmount", format!("unmount = \"{who}/{MOUNT_POINT}\""))
            }
        }
    }

    fn start(&mut self, who: &str) -> Drawn {
        self.started.insert(who.into());
        let nested = self.server(who).within.is_some();
        let word = if !nested && self.lots.one_in(3) { "restart" } else { "start" };
        let drawn = Drawn::new("start a server", format!("{word} = {who:?}"));
        // One that has stopped may find the claim around it gone when it goes on.
        self.perhaps_disturbed(drawn, Operation::Create, who, !nested)
    }

    fn spawn(&mut self, who: &str) -> Drawn {
        self.started.insert(who.into());
        let command = self.cast.commands.iter().find(|command| command.name == who);
        let by = command.map_or("", |command| command.by.as_str());
        let drawn = Drawn::new("start a command", format!("spawn = {who:?}"));
        if self.server(by).tapped && self.lots.one_in(3) {
            let line = format!("hold-before = {}", 1 + self.lots.below(STEPS_OF_A_CHILD));
            return Drawn { disturbed: Some((Operation::Spawn, line)), ..drawn };
        }
        self.perhaps_disturbed(drawn, Operation::Spawn, by, true)
    }

    fn kill(&mut self, word: &'static str, who: &str) -> Drawn {
        self.signalled.remove(who);
        Drawn::new(word, format!("kill = {who:?}"))
    }

    fn close(&mut self, who: &str, present: &Present) -> Drawn {
        let drawn = Drawn::new("close", format!("close = {who:?}"));
        let in_use = self.commands_of(who, present).next().is_some();
        if in_use || self.mounted.contains(who) {
            return drawn.line("fails = \"InUse\"");
        }
        self.perhaps_disturbed(drawn, Operation::Close, who, true)
    }

    /// With something that happens at a call, in half of all cases in which that can be.
    fn perhaps_disturbed(
        &mut self,
        drawn: Drawn,
        of: Operation,
        server: &str,
        may_stop: bool,
    ) -> Drawn {
        let can = self.server(server).tapped && !self.forked.contains(server);
        if !can || self.lots.one_in(2) {
            return drawn;
        }
        let how = if may_stop && self.lots.one_in(2) { "stop-before" } else { "kill-before" };
        let line = format!("{how} = {}", self.call(of));
        Drawn { disturbed: Some((of, line)), ..drawn }
    }

    /// The number of a call: small ones as often as large ones.
    fn call(&mut self, of: Operation) -> usize {
        let most = of.calls_max();
        let below = 1 << (1 + self.lots.below(most.ilog2() as usize));
        1 + self.lots.below(below.min(most))
    }

    fn sweep(&mut self, who: &str, present: &Present) -> Drawn {
        let (mut by, mut others): (Vec<_>, Vec<_>) =
            self.sweepers(present).into_iter().partition(|(name, _)| *name == who);
        while by.len() < 3 && !others.is_empty() && self.lots.one_in(3) {
            by.push(others.swap_remove(self.lots.below(others.len())));
        }
        let names: Vec<&str> = by.iter().map(|(name, _)| *name).collect();
        let mut drawn = Drawn::new("sweep", format!("sweep = {names:?}"));
        let a_server = self.cast.servers.iter().any(|server| names.contains(&server.name.as_str()));
        let forked = self.forked.iter().any(|server| names.contains(&server.as_str()));
        if !forked && self.lots.one_in(2) {
            // A server would be needed again.
            let stops = by.len() == 1 && !a_server && self.lots.one_in(2);
            let how = if stops { "stop-before" } else { "kill-before" };
            let line = format!("{how} = {}", self.call(Operation::Sweep));
            drawn.disturbed = Some((Operation::Sweep, line));
        }
        if drawn.disturbed.is_some() || by.len() > 1 || !by.iter().all(|(_, plain)| *plain) {
            drawn = drawn.line("no-canary = \"it is not the only one, or not a whole one\"");
        }
        let works = self.works(&names, present);
        if works.is_empty() { drawn } else { drawn.line(&format!("expect = [{works}]")) }
    }

    /// What is asked of some of those who live, when somebody has swept.
    fn works(&mut self, but: &[&str], present: &Present) -> String {
        let commands = present.commands.iter().filter(|(_, held)| !**held).map(|(name, _)| name);
        let servers = present.servers.keys().filter(|name| self.holds(name, present));
        let all = commands.chain(servers).filter(|name| !self.signalled.contains(*name));
        let all: Vec<&String> = all.filter(|name| !but.contains(&name.as_str())).collect();
        let mut works = String::new();
        for name in all {
            if self.lots.one_in(2) {
                let comma = if works.is_empty() { "" } else { ", " };
                // OK because a string takes whatever is written to it.
                let _ = write!(works, "{comma}{{ works = {name:?} }}");
            }
        }
        works
    }

    fn plant(&mut self, who: &str) -> Drawn {
        self.planted += 1;
        let nth = self.planted % 10;
        let mut what = PLANTED[self.lots.below(PLANTED.len())];
        if what == WITH_WRITER && self.cast.modest {
            what = "fifo";
        }
        // Whoever has it open would use the claim.
        let place = if who == ROOT || what == WITH_WRITER {
            let random = format!("abcdefghij{nth}2");
            match self.lots.below(4) {
                0 => format!("{ROOT}/planted-{nth}"),
                1 => format!("{ROOT}/story-{random}"),
                2 => format!("{ROOT}/.story-{random}.new"),
                _ => format!("{ROOT}/.story-{random}.dead-abcdefghij22"),
            }
        } else {
            format!("{who}/files/planted-{nth}")
        };
        Drawn::new("plant", format!("plant = {what:?}")).line(&format!("at = {place:?}"))
    }

    fn mount(&mut self, who: &str, present: &Present) -> Drawn {
        let at = format!("at = \"{who}/{MOUNT_POINT}\"");
        if !present.mount_points.contains(who) {
            return Drawn::new("plant", "plant = \"directory\"".into()).line(&at);
        }
        self.mounted.insert(who.into());
        Drawn::new("mount", format!("mount = \"{TREASURE}/deep\"")).line(&at)
    }

    fn server(&self, name: &str) -> &'c Server {
        let server = self.cast.servers.iter().find(|server| server.name == name);
        // OK because names are taken from the cast.
        server.expect("a server of this name is in the cast")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::read;

    /// What a step does to who is there, as if it went well and took no other turn.
    fn happens(present: &mut Present, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (verb, who) = (words[1], words[3].trim_matches('"').to_owned());
        match verb {
            "start" | "restart" => {
                let server = present::Server { state: State::Listens, uses: true };
                present.servers.insert(who.clone(), server);
                present.claims.insert(who);
            }
            "plant" if text.contains(MOUNT_POINT) => {
                let (claim, _) = words[6].trim_matches('"').split_once('/').expect("it is a place");
                present.mount_points.insert(claim.into());
            }
            "spawn" => drop(present.commands.insert(who, text.contains("hold-before"))),
            "kill" | "exit" | "kill-tree" => {
                present.servers.remove(&who);
                present.commands.remove(&who);
                present.sweepers.remove(&who);
            }
            "close" | "release" | "drop" if !text.contains("fails") => {
                if let Some(server) = present.servers.get_mut(&who) {
                    server.uses = false;
                }
                present.claims.remove(&who);
            }
            "continue" if present.commands.contains_key(&who) => {
                present.commands.insert(who, false);
            }
            _ => {}
        }
    }

    fn drawn(seed: u64, nth: u64) -> String {
        let mut lots = Lots::of(seed, nth);
        let cast = Cast::draw(&mut lots, true);
        let mut text = cast.head("Drawn by a test.");
        let mut drawing = Drawing::new(&cast, lots);
        let mut present = Present::default();
        for _ in 0..60 {
            let Some(step) = drawing.next(&present) else { break };
            let step = step.text(true);
            happens(&mut present, &step);
            text += &step;
        }
        text
    }

    #[test]
    fn whatever_is_drawn_is_a_story() {
        for nth in 0..300 {
            let text = drawn(7, nth);
            let path = Path::new("drawn.toml");
            if let Err(wrong) = read("drawn", path, &text) {
                let shown = wrong.iter().map(|one| one.render("drawn.toml", &text, false));
                panic!("{}", shown.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    #[test]
    fn a_seed_draws_the_same_again_and_its_neighbours_draw_others() {
        assert_eq!(drawn(7, 3), drawn(7, 3));
        let all: BTreeSet<String> =
            (0..20).flat_map(|nth| [drawn(1, nth), drawn(2, nth)]).collect();
        assert_eq!(all.len(), 40);
    }

    #[test]
    fn all_that_can_happen_is_drawn() {
        let all: String = (0..300).map(|nth| drawn(7, nth)).collect();
        for verb in [
            "start",
            "restart",
            "spawn",
            "kill",
            "kill-tree",
            "exit",
            "stop",
            "continue",
            "close",
            "release",
            "drop",
            "fork",
            "lose-lease",
            "sweep",
            "plant",
            "mount",
            "unmount",
            "stop-before",
            "kill-before",
            "hold-before",
            "unreaped",
            "fails",
            "expect",
            "no-canary",
        ] {
            assert!(all.contains(&format!("\n{verb} = ")), "`{verb}` was never drawn");
        }
    }
}
