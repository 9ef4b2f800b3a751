//! Reads what is told of owners and commands: where they run, how they start, what they take away.

use super::{Acted, Reader};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::{At, Fields};
use crate::scenario::needs::Need;
use crate::scenario::story::{Action, Container, Deed, Place, Planted, Proc, Surroundings};

/// What the shell of a command can put somewhere.
const PLANTED_BY_COMMANDS: [Planted; 4] =
    [Planted::Fifo, Planted::Directory, Planted::File, Planted::DanglingLink];

impl Reader<'_> {
    /// What somebody sees of the machine that others do not see so.
    pub(super) fn surroundings(&self, fields: &Fields<'_>) -> Option<Surroundings> {
        let container = self.optional(fields, "in", "container");
        let boottime_offset = fields.integer("boottime-offset").map(|at| at.value);
        let made_for_it = boottime_offset.is_some() || fields.has("first-in");
        let wrong = |title: &str, key: &str| {
            fields.report(Diagnostic::new("wrong-together", title, fields.key_span(key)));
        };
        if made_for_it && fields.has("plain-user") {
            wrong("a plain user cannot make namespaces", "plain-user");
        }
        if fields.has("in") && fields.has("first-in") {
            wrong("who is the first in a container is in it", "in");
        }
        Some(Surroundings { container: container?, boottime_offset })
    }

    /// A container.
    pub(super) fn container(&self, fields: &Fields<'_>) -> Container {
        const SHOWN: [(&str, Proc); 3] =
            [("own", Proc::Own), ("outer", Proc::Outer), ("hides-processes", Proc::HidesProcesses)];
        Container { proc: fields.word("proc", &SHOWN).map_or(Proc::Own, |at| at.value) }
    }

    pub(super) fn times(&self, repeats: bool) -> u64 {
        let Some(at) = self.fields.integer("times") else { return 1 };
        let title = match u64::try_from(at.value) {
            Ok(0) | Err(_) => "`times` is at least 1",
            Ok(_) if repeats => "a scenario has rounds or is told several `times`, not both",
            Ok(times) => return times,
        };
        self.fields.report(Diagnostic::new("wrong-number", title, at.span));
        1
    }

    pub(super) fn is_stranger(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|named| named.kind == "stranger")
    }

    pub(super) fn start_stranger(&self, fields: &Fields<'_>, stranger: String) -> Option<Acted> {
        let pid_of = match fields.string("with-pid-of") {
            Some(at) => Some(self.known(at, &["server", "command"])?),
            None => None,
        };
        // Who may choose the next pid.
        let needs = pid_of.iter().map(|_| Need::Root).collect();
        let action = Action::StartStranger { stranger, pid_of };
        Some(Acted { action, needs, host_only: None })
    }

    pub(super) fn spawn(&self, fields: &Fields<'_>) -> Option<Acted> {
        let commands = self.actors(fields, "spawn", &["command"])?;
        let disturbed = self.disturbed(fields);
        let held = fields.count("hold-before");
        if let (Some(_), Some(held)) = (&disturbed, &held) {
            let title = "a step holds the child or disturbs its server, not both";
            fields.report(Diagnostic::new("two-ends", title, held.span.clone()));
        }
        if (disturbed.is_some() || held.is_some()) && commands.len() > 1 {
            let title = "one command at a time can be held or disturbed while it starts";
            let found = Diagnostic::new("several", title, fields.entry_span("spawn"));
            fields.report(found.help(Some("make it several steps".into())));
        }
        Some(Action::Spawn { commands, disturbed, held: held.map(|at| at.value) }.into())
    }

    /// Something is taken away, by a command if it says so.
    pub(super) fn take_away(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        does: Deed,
        otherwise: fn(Place) -> Action,
    ) -> Option<Acted> {
        let at = self.place(fields, key)?;
        match fields.string("by") {
            Some(by) => {
                let command = self.known(by, &["command"])?;
                Some(Action::ByCommand { command, does, at }.into())
            }
            None => Some(otherwise(at).into()),
        }
    }

    pub(super) fn tmpfiles(&self, fields: &Fields<'_>) -> Option<Acted> {
        let age = fields.required("tmpfiles")?;
        if age.value.is_empty() || !age.value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let title = format!("`{}` is no age", age.value);
            let found = Diagnostic::new("age", title, age.span.clone());
            fields.report(found.note("an age is a number and a unit, as in `1s` or `10d`"));
        }
        let needs = vec![Need::Program("systemd-tmpfiles".into())];
        let host_only = Some("a real program of the machine runs");
        Some(Acted { action: Action::Tmpfiles(age.value), needs, host_only })
    }

    /// A command puts something somewhere.
    pub(super) fn planted_by_command(
        &self,
        fields: &Fields<'_>,
        by: At<String>,
        what: At<Planted>,
        at: Place,
    ) -> Option<Acted> {
        if !PLANTED_BY_COMMANDS.contains(&what.value) {
            let title = "a command cannot make this";
            let found = Diagnostic::new("unknown-word", title, what.span);
            let note = "it can be `fifo`, `directory`, `file`, `dangling-link`";
            fields.report(found.note(note));
        }
        let command = self.known(by, &["command"])?;
        Some(Action::ByCommand { command, does: Deed::Plant(what.value), at }.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::scenario::read;

    const HEAD: &str = "about = \"x\"\nrules = [\"l2\"]\n";

    /// The codes of what is wrong with a file of these lines.
    #[track_caller]
    fn check(text: &str, wrong: &[&str]) {
        let read = read("x", Path::new("x.toml"), &format!("{HEAD}{text}"));
        let found = read.err().unwrap_or_default();
        let codes: Vec<&str> = found.iter().map(|one| one.code.as_str()).collect();
        assert_eq!(codes, wrong, "{found:#?}");
    }

    const START: &str = "[[step]]\nstart = \"a\"\n";
    const SPAWN: &str = "[server.a]\n[command.b]\n[command.c]\n[[step]]\nstart = \"a\"\n[[step]]\n";

    #[test]
    fn a_namespace_is_a_need_that_is_declared() {
        let first = "[container.c]\n[server.a]\nfirst-in = \"c\"\n";
        check(&format!("{first}{START}"), &["undeclared-need"]);
        check(
            &format!("needs = [\"root\"]\n[server.a]\nboottime-offset = 1\n{START}"),
            &["undeclared-need"],
        );
        check(
            &format!("needs = [\"time-namespace\"]\n[server.a]\nboottime-offset = 1\n{START}"),
            &[],
        );
        check(
            &format!("needs = [\"container\"]\n{first}plain-user = true\n{START}"),
            &["wrong-together"],
        );
    }

    #[test]
    fn a_program_of_the_machine_is_declared_and_told_on_the_host_only() {
        let step = format!("[server.a]\n{START}[[step]]\ntmpfiles = \"1s\"\n");
        check(&step, &["undeclared-need", "undeclared-host-only"]);
        let head = "needs = [\"program:systemd-tmpfiles\"]\nhost-only = \"a real program\"\n";
        check(&format!("{head}{step}"), &[]);
        check(&format!("{head}{}", step.replace("1s", "1 s")), &["age"]);
    }

    #[test]
    fn a_child_is_held_alone_and_not_disturbed_as_well() {
        check(&format!("{SPAWN}spawn = \"b\"\nhold-before = 1\n"), &[]);
        check(&format!("{SPAWN}spawn = [\"b\", \"c\"]\nhold-before = 1\n"), &["several"]);
        let both = "spawn = \"b\"\nhold-before = 1\nkill-before = 1\n";
        check(&format!("{SPAWN}{both}"), &["two-ends"]);
        check(&format!("{SPAWN}spawn = \"b\"\nhold-before = \"n\"\n"), &["rounds"]);
    }

    #[test]
    fn a_command_does_what_a_shell_can_do() {
        let plant = |what: &str| {
            format!(
                "{SPAWN}spawn = \"b\"\n[[step]]\nplant = \"{what}\"\nat = \"a/x\"\nby = \"b\"\n"
            )
        };
        check(&plant("fifo"), &[]);
        check(&plant("socket"), &["unknown-word"]);
        check(&format!("{SPAWN}empty = \"a/files\"\nby = \"a\"\n"), &["wrong-kind"]);
    }

    #[test]
    fn a_stranger_starts_with_the_number_of_who_had_one() {
        let start = "[server.a]\n[stranger.s]\n[[step]]\nstart = \"s\"\nwith-pid-of = ";
        check(&format!("{start}\"a\"\n"), &["undeclared-need"]);
        check(&format!("needs = [\"root\"]\n{start}\"a\"\n"), &[]);
        check(&format!("needs = [\"root\"]\n{start}\"s\"\n"), &["wrong-kind"]);
    }

    #[test]
    fn steps_are_told_several_times_or_in_rounds() {
        check(&format!("times = 0\n[server.a]\n{START}"), &["wrong-number"]);
        check(&format!("times = 3\n[server.a]\n{START}"), &[]);
        check(
            &format!("times = 3\nrounds-max = 3\n[server.a]\n{START}kill-before = \"n\"\n"),
            &["wrong-number"],
        );
    }
}
