//! Starting commands: what a command is given, what is refused, and that there is no moment at which
//! a command may run and cannot be seen (p1 to p4).

use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command as StdCommand, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mortmain::sys::{
    Answer, ChildIdentity, ChildKernel, Errno, Handle, Host, HostChild, HostProgram, IdName, Name,
    Wait,
};
use mortmain::{ErrorKind, Evidence, Proof};
use mortmain_harness::answers::commands_now;
use mortmain_harness::forge::Record;
use mortmain_harness::ground::{is_root, names_in};
use mortmain_harness::processes::process;
use mortmain_harness::reader::Reader;
use mortmain_harness::scripts::RUNS_ON;

use crate::support::{Script, closes, dir, ground, in_cell, kind_of, refused, soon};

#[test]
fn a_command_leads_a_group_of_its_own_and_has_said_who_it_is() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        let pid = i32::try_from(script.child.id()).unwrap();
        let info = process(pid).unwrap().expect("it runs");
        assert_eq!(info.pgid, pid);
        let commands = dir(&claim).join("commands");
        assert_eq!(names_in(&commands), ["0", "0.id"]);
        let id = Record::read(&commands.join("0.id")).unwrap();
        assert_eq!((id.version, id.process.pid), (1, pid));
        assert_eq!(id.process.start_ticks, info.start_ticks);
        let owner = Record::read(&dir(&claim).join("owner")).unwrap();
        assert_eq!(owner.process.pid, i32::try_from(std::process::id()).unwrap());
        assert_eq!(owner.process.boot, id.process.boot);
        assert_eq!(owner.claim.expect("it is an owner's").random, claim.random().to_string());
        script.child.end().unwrap();
    });
}

#[test]
fn the_output_of_a_command_is_collected_with_its_end() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let script = "cat; echo out; echo error >&2; exit 3";
        // PIPE(output-of-a-claim): it is what the test is about. The command ends with the cell.
        let collect = mortmain::Command::output;
        let mut command = claim.command("sh");
        command.args(["-c", script]);
        let output = collect(&mut command).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"error\n"[..]));

        // What was set before stays: here it comes from a file, and goes to a pipe of the test's.
        let input = claim.path().join("input");
        fs::write(&input, "in\n").unwrap();
        let (ours, theirs) = std::io::pipe().unwrap();
        let mut command = claim.command("sh");
        command.args(["-c", script]).stdin(File::open(input).unwrap()).stdout(theirs);
        let output = collect(&mut command).unwrap();
        assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b"error\n"[..]));
        drop(command);
        let mut ours = Reader::new(ours, "the command").unwrap();
        assert_eq!(ours.expect_eof(soon(), "the end of its output").unwrap(), ["in", "out"]);
        closes(claim);
    });
}

// PIPE(input-of-a-claim): that it comes to the command is what is tested. That ends with the cell.
#[test]
fn a_command_is_given_what_is_written_to_its_input_until_it_is_waited_for() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let told = claim.path().join("told");
        let mut command = claim.command("cat");
        command.stdin(Stdio::piped()).stdout(File::create(&told).unwrap());
        let mut child = command.spawn().unwrap();
        child.stdin.as_mut().expect("it was asked for").write_all(b"text").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(fs::read_to_string(told).unwrap(), "text");
        closes(claim);
    });
}

#[test]
fn the_end_of_a_command_is_seen_without_waiting_for_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        assert_eq!(script.child.try_wait().unwrap(), None, "it runs on");
        assert_eq!(script.child.wait_timeout(Duration::from_millis(1)).unwrap(), None);
        script.child.end().unwrap();

        let mut child = claim.command("false").spawn().unwrap();
        let ended = child.wait_timeout(soon().remaining()).unwrap().expect("it ends soon");
        assert_eq!(ended.code(), Some(1));
        assert_eq!(child.try_wait().unwrap(), Some(ended), "it has ended for good");
        closes(claim);
    });
}

#[test]
fn the_next_command_has_the_next_number_and_one_builder_starts_many() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut command = claim.command("sleep");
        command.arg("600");
        let mut children = [command.spawn().unwrap(), command.spawn().unwrap()];
        let commands = dir(&claim).join("commands");
        assert_eq!(names_in(&commands), ["0", "0.id", "1", "1.id"]);
        assert_ne!(children[0].id(), children[1].id());
        children[0].end().unwrap();
        assert_eq!(names_in(&commands), ["1", "1.id"]);
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        children[1].end().unwrap();
        closes(claim);
    });
}

#[test]
fn a_command_carries_the_claim_whatever_its_environment() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let random = claim.random().to_string();
        assert_eq!(Script::start(&claim, "echo $MORTMAIN_CLAIM").all(), [random.as_str()]);

        let (ours, theirs) = std::io::pipe().unwrap();
        let mut command = claim.command("/bin/sh");
        command.args(["-c", "echo $MORTMAIN_CLAIM"]).stdout(theirs);
        command.env("MORTMAIN_CLAIM", "something else").env_clear();
        assert!(command.status().unwrap().success());
        let mut lines = Reader::new(ours, "the command").unwrap();
        assert_eq!(lines.next_line(soon(), "what it carries").unwrap(), random);
    });
}

#[test]
fn a_command_of_a_nested_claim_carries_the_outer_one_too() {
    in_cell(|| {
        let ground = ground();
        let outer = "aaaaaaaaaaa2";
        let mut command = ground.actor_command();
        command.env("MORTMAIN_CLAIM", format!("{outer}:no claim"));
        let actor = mortmain_harness::actor::Actor::start_by(command);
        let mut owned = ground.owned_by(actor);
        let _command = owned.actor.spawn("echo $MORTMAIN_CLAIM");
        let name = owned.claim.file_name().and_then(|name| name.to_str()).expect("it is text");
        let inner = name.strip_prefix("t-").expect("it has the prefix");
        assert_eq!(owned.actor.said("what it carries"), format!("{outer}:{inner}"));
    });
}

#[test]
fn a_command_of_another_user_or_group_is_refused() {
    in_cell(|| {
        if !is_root("nobody else can be become") {
            return;
        }
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut others = [claim.command("true"), claim.command("true")];
        others[0].uid(65_534);
        others[1].gid(65_534);
        for command in &mut others {
            assert_eq!(kind_of(command.spawn()), ErrorKind::OtherUser);
        }
        assert_eq!(names_in(&dir(&claim).join("commands")), [""; 0]);
        closes(claim);
    });
}

#[test]
fn a_program_that_is_not_there_leaves_no_trace() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let error = claim.command("/no/such/program").spawn().expect_err("it is not there");
        assert_eq!((error.kind(), error.errno()), (ErrorKind::NotStarted, Some(Errno::ENOENT)));
        assert_eq!(names_in(&dir(&claim).join("commands")), [""; 0]);
        closes(claim);
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it is what the test is about")]
fn a_command_that_is_started_past_its_claim_does_not_run() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut command = claim.command("touch");
        command.arg(claim.path().join("ran"));
        let past: &mut StdCommand = &mut command;
        // PIPE(start-past-a-claim): that it is refused is what is tested.
        let error = past.status().expect_err("it is refused");
        assert_eq!(error.raw_os_error(), Some(Errno::EINVAL.0));
        assert_eq!(names_in(claim.path()), [""; 0]);

        let mut command = claim.command("true");
        *command = StdCommand::new("touch");
        command.arg(claim.path().join("ran"));
        assert_eq!(kind_of(command.spawn()), ErrorKind::NotStarted);
        assert_eq!(names_in(claim.path()), [""; 0]);
        closes(claim);
    });
}

/// Holds a child up before one of its steps between fork and exec, until it is let through.
struct Gate {
    at: u32,
    steps: AtomicU32,
    here: PipeWriter,
    through: PipeReader,
}

impl Gate {
    /// Everything here is a system call on the stack's memory.
    fn step<T>(&self, step: impl FnOnce() -> Answer<T>) -> Answer<T> {
        if self.steps.fetch_add(1, Ordering::Relaxed) + 1 == self.at {
            let said = nix::unistd::write(&self.here, b"\n");
            let heard = nix::unistd::read(&self.through, &mut [0]);
            if said.is_err() || heard.is_err() {
                return Err(Errno::EIO);
            }
        }
        step()
    }
}

impl ChildKernel for Gate {
    fn new_group(&self) -> Answer<()> {
        self.step(|| HostChild.new_group())
    }

    fn identity(&self) -> Answer<ChildIdentity> {
        self.step(|| HostChild.identity())
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Answer<()> {
        self.step(|| HostChild.symlink(dir, name, text))
    }

    fn keep_over_exec(&self, fd: Handle) -> Answer<()> {
        self.step(|| HostChild.keep_over_exec(fd))
    }
}

/// A child for whose identity there is no room.
struct Full(Errno);

impl ChildKernel for Full {
    fn new_group(&self) -> Answer<()> {
        HostChild.new_group()
    }

    fn identity(&self) -> Answer<ChildIdentity> {
        HostChild.identity()
    }

    fn symlink(&self, _: Handle, _: &IdName, _: &[u8]) -> Answer<()> {
        Err(self.0)
    }

    fn keep_over_exec(&self, fd: Handle) -> Answer<()> {
        HostChild.keep_over_exec(fd)
    }
}

#[test]
fn a_command_for_which_there_is_no_room_is_not_started_and_says_why() {
    in_cell(|| {
        let ground = ground();
        let mut claim = ground.over(&Host).create().unwrap();
        for (errno, kind) in [
            (Errno::ENOSPC, ErrorKind::NoSpace),
            (Errno::EDQUOT, ErrorKind::NoSpace),
            (Errno::EIO, ErrorKind::NotStarted),
        ] {
            let mut program = HostProgram::with_child("true", Full(errno));
            assert_eq!(kind_of(claim.spawn(&mut program)), kind);
        }
        assert_eq!(claim.close().expect("nothing was started"), mortmain::Closed::Removed);
    });
}

#[test]
fn a_child_is_seen_at_every_step_between_fork_and_exec() {
    in_cell(|| {
        let ground = ground();
        for at in 1..=4 {
            let mut claim = ground.over(&Host).create().unwrap();
            let (here, theirs) = std::io::pipe().unwrap();
            let (through, go) = std::io::pipe().unwrap();
            let gate = Gate { at, steps: AtomicU32::new(0), here: theirs, through };
            let mut program = HostProgram::with_child("true", gate);
            let mut here = Reader::new(here, "the child").unwrap();
            let name = Name::new(format!("t-{}", claim.random()).as_bytes()).unwrap();

            let (seen, spawned) = std::thread::scope(|scope| {
                let spawned = scope.spawn(|| claim.spawn(&mut program));
                here.next_line(soon(), &format!("the child at step {at}")).unwrap();
                let seen = commands_now(&ground.over(&Host), &name);
                nix::unistd::write(&go, b"\n").unwrap();
                (seen, spawned.join().expect("a spawn does not panic"))
            });
            assert_eq!(seen.proof, Proof::Alive, "at step {at}: {}", seen.evidence);
            let held = matches!(seen.evidence, Evidence::CommandHoldsLock { entry: 0, .. });
            assert!(held, "at step {at}: {}", seen.evidence);

            let started = spawned.unwrap();
            claim.wait(&started, Wait::AtMost(20_000)).unwrap().expect("it ends at once");
            assert_eq!(claim.close().expect("nothing uses it"), mortmain::Closed::Removed);
        }
    });
}
