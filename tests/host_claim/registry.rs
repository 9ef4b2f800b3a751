//! How entries leave the registry: only when nothing of their command runs, in an order of which each
//! step can be judged, and without a blow to a stranger (p3, p5).

use std::cell::{Cell, RefCell};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::{Claim, Started};
use mortmain::sys::{Call, Errno, Host, HostProgram, Name, Pid, Reply, Wait};
use mortmain::{Closed, ErrorKind, Finding, Proof};
use mortmain_harness::answers::commands_now;
use mortmain_harness::ground::{is_root, names_in};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scripts::{LEAVES_DAEMON, LEAVES_MEMBER, RUNS_ON};

use crate::support::{Script, closes, dir, ground, hold, in_cell, kind_of, refused, soon};

#[test]
fn a_command_that_has_ended_leaves_no_entry() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        assert_eq!(Script::start(&claim, "echo done").all(), ["done"]);
        assert_eq!(names_in(&dir(&claim).join("commands")), [""; 0]);
        closes(claim);
    });
}

#[test]
fn a_command_that_nobody_waited_for_is_not_in_the_way_once_it_has_ended() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let script = Script::start(&claim, "exit 0");
        // A zombie from here on.
        hold(&script.child.id().to_string()).gone(soon()).unwrap();
        closes(claim);
    });
}

#[test]
fn an_entry_that_could_not_be_withdrawn_goes_with_the_next_one_and_no_unreaped_one_does() {
    in_cell(|| {
        let ground = ground();
        let held = Rc::new(Cell::new(false));
        let now = Rc::clone(&held);
        let locks = move |call: &Call| now.get() && matches!(call, Call::Lock { .. });
        let kernel = Intercept::refusing(Host, Errno::EAGAIN, locks);
        let mut claim = ground.over(&kernel).create().unwrap();
        let mut start = || claim.spawn(&mut HostProgram::new("true")).unwrap();
        let [first, second, third] = [start(), start(), start()];
        hold(&third.pid.0.to_string()).gone(soon()).unwrap();
        held.set(true);
        claim.wait(&first, Wait::Forever).unwrap();
        held.set(false);
        claim.wait(&second, Wait::Forever).unwrap();
        let commands = claim.path().join(b"commands").to_string();
        assert_eq!(names_in(commands.as_ref()), ["2", "2.id"]);
        claim.wait(&third, Wait::Forever).unwrap().expect("it was not reaped before");
        assert_eq!(claim.close().expect("nothing uses it"), Closed::Removed);
    });
}

#[test]
fn an_entry_stays_while_what_the_command_left_behind_runs() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let commands = dir(&claim).join("commands");
        let mut script = Script::start(&claim, LEAVES_DAEMON);
        let daemon = hold(&script.says("the daemon's pid"));
        script.child.wait().unwrap();
        assert_eq!(names_in(&commands), ["0", "0.id"], "a daemon holds the lock");
        daemon.kill().unwrap();
        daemon.gone(soon()).unwrap();
        closes(claim);
    });
}

#[test]
fn an_entry_stays_while_a_member_of_the_commands_group_runs_without_the_lock() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let commands = dir(&claim).join("commands");
        let mut script = Script::start(&claim, LEAVES_MEMBER);
        let member = hold(&script.says("the member's pid"));
        script.child.wait().unwrap();
        assert_eq!(names_in(&commands), ["0", "0.id"], "the group lives");
        let (claim, error) = refused(claim);
        let group = script.child.id();
        let text = format!("command {} `bash` runs in group {group}", member.pid());
        assert!(error.to_string().contains(&text), "{error}");
        member.kill().unwrap();
        member.gone(soon()).unwrap();
        closes(claim);
    });
}

#[test]
fn to_end_a_command_is_to_end_its_group() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, "sleep 600 & echo $!; wait");
        let member = hold(&script.says("the member's pid"));
        let status = script.child.end().unwrap().expect("it was not reaped before");
        assert_eq!(status.signal(), Some(9));
        member.gone(soon()).unwrap();
        assert_eq!(names_in(&dir(&claim).join("commands")), [""; 0]);
        assert_eq!(script.child.wait().unwrap().signal(), Some(9), "it is still known");
        closes(claim);
    });
}

/// A kernel that does not let time pass, and that tells nothing of any process while it is blind.
fn sometimes_blind(blind: &Rc<Cell<bool>>) -> Intercept<Host> {
    let blind = Rc::clone(blind);
    let skip = move |call: &Call, moment| match (call, moment) {
        (Call::Pause { .. }, Moment::Before) => Some(Ok(Reply::Done)),
        (Call::Process { .. } | Call::Pidfs { .. }, Moment::Before) if blind.get() => {
            Some(Err(Errno::EIO))
        }
        _ => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(skip)))
}

fn script(text: &str) -> HostProgram {
    let mut program = HostProgram::new("/bin/sh");
    program.args(["-c", text]);
    program
}

/// A group whose leader was reaped, by `reap`, is not killed by its number, which `stranger` has.
#[track_caller]
fn check_number_came_round(
    reap: fn(&mut Claim<Intercept<Host>>, &Started),
    stranger: fn(Pid) -> (ChildGuard, Option<i32>),
    sees: bool,
) {
    in_cell(|| {
        if !is_root("the next pid cannot be chosen") {
            return;
        }
        let ground = ground();
        let blind = Rc::default();
        let mut claim = ground.over(&sometimes_blind(&blind)).create().unwrap();
        let (ours, theirs) = std::io::pipe().unwrap();
        let mut lines = mortmain_harness::reader::Reader::new(ours, "the script").unwrap();
        let mut program = script(LEAVES_DAEMON);
        program.stdout(theirs).current_dir(claim.files().to_string());
        let started = claim.spawn(&mut program).unwrap();
        let daemon = hold(&lines.next_line(soon(), "the daemon's pid").unwrap());
        reap(&mut claim, &started);

        // A stranger gets the number of the shell, and leads a group of that number.
        let (mut stranger, pid) = stranger(started.pid);
        assert_eq!(pid, Some(started.pid.0));
        blind.set(!sees);
        assert_eq!(kind_of(claim.end(&started)), ErrorKind::InUse, "the daemon has the lock");
        blind.set(false);
        stranger.send_line("lives", soon()).unwrap();
        assert_eq!(stranger.lines().next_line(soon(), "its line").unwrap(), "lives");

        daemon.kill().unwrap();
        daemon.gone(soon()).unwrap();
        assert_eq!(claim.end(&started).unwrap(), None, "it was reaped before");
        assert_eq!(claim.close().expect("nothing uses it"), Closed::Removed);
    });
}

fn next_pid(pid: Pid) {
    std::fs::write("/proc/sys/kernel/ns_last_pid", (pid.0 - 1).to_string()).unwrap();
}

/// A child of this process with a number, which leads a group.
fn child(pid: Pid) -> (ChildGuard, Option<i32>) {
    next_pid(pid);
    let child = ChildGuard::spawn_with_stdin(Command::new("cat")).unwrap();
    let pid = child.pid();
    (child, Some(pid))
}

/// Somebody else's child with a number, which leads a group. It answers what it is sent.
fn grandchild(pid: Pid) -> (ChildGuard, Option<i32>) {
    // With job control the shell makes a group for its child.
    let mut shell = Command::new("bash");
    let script = "set -m; exec 3<&0; read -r; cat <&3 & echo $!; wait";
    shell.args(["-c", script]);
    let mut shell = ChildGuard::spawn_with_stdin(shell).unwrap();
    next_pid(pid);
    shell.send_line("now", soon()).unwrap();
    let said = shell.lines().next_line(soon(), "the pid of a child of the shell").unwrap();
    (shell, said.parse().ok())
}

fn reap_by_ourselves(_: &mut Claim<Intercept<Host>>, started: &Started) {
    let pid = nix::unistd::Pid::from_raw(started.pid.0);
    nix::sys::wait::waitpid(pid, None).expect("it is our child");
}

#[test]
fn a_group_whose_number_came_round_is_not_killed() {
    let reap = |claim: &mut Claim<Intercept<Host>>, started: &Started| {
        claim.wait(started, Wait::AtMost(20_000)).unwrap().expect("the shell ends");
    };
    check_number_came_round(reap, child, true);
}

#[test]
fn a_group_whose_leader_the_program_reaped_by_itself_is_not_killed() {
    // By the wait alone, as with a /proc that cannot be used.
    check_number_came_round(reap_by_ourselves, grandchild, false);
}

#[test]
fn a_group_of_another_child_with_the_number_of_one_that_was_reaped_is_not_killed() {
    check_number_came_round(reap_by_ourselves, child, true);
}

#[test]
fn at_every_step_of_a_withdrawal_the_entry_can_be_judged() {
    in_cell(|| {
        let ground = ground();
        let judged: Rc<RefCell<Vec<(Moment, Finding)>>> = Rc::default();
        let name: Rc<RefCell<Option<Name>>> = Rc::default();
        let (findings, claim_name) = (Rc::clone(&judged), Rc::clone(&name));
        let root = ground.over(&Host);
        let judge = move |call: &Call, moment| {
            // A sweep that comes before the call, or after it, as after a kill.
            if let (Call::Unlink { name, .. }, Some(claim)) = (call, &*claim_name.borrow())
                && name.bytes().starts_with(b"0")
            {
                findings.borrow_mut().push((moment, commands_now(&root, claim)));
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(judge)));
        let mut claim = ground.over(&kernel).create().unwrap();
        *name.borrow_mut() = Name::new(format!("t-{}", claim.random()).as_bytes());
        let started = claim.spawn(&mut script("exit 0")).unwrap();
        claim.wait(&started, Wait::AtMost(20_000)).unwrap().expect("it ends");
        let judged = judged.borrow();
        assert_eq!(judged.len(), 4, "before and after each of two: {judged:?}");
        assert!(judged.iter().all(|(_, finding)| finding.proof == Proof::Gone), "{judged:?}");
    });
}

#[test]
fn a_command_in_use_is_ended_by_its_owner_alone() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        assert_eq!(script.child.try_wait().unwrap(), None);
        let brief = std::time::Duration::from_millis(1);
        assert_eq!(script.child.wait_timeout(brief).unwrap(), None);
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert_eq!(script.child.try_wait().unwrap(), None, "a close ends nothing");
        script.child.end().unwrap();
        closes(claim);
    });
}

#[test]
fn commands_that_threads_start_at_once_have_entries_of_their_own() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let count = 8;
        std::thread::scope(|scope| {
            let starting: Vec<_> = (0..count)
                .map(|_| scope.spawn(|| claim.command("true").status().map(|it| it.success())))
                .collect();
            for started in starting {
                assert!(started.join().expect("it does not panic").unwrap());
            }
        });
        closes(claim);
    });
}

#[test]
fn a_strangers_process_does_not_keep_the_lock_of_an_entry() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        // Another thread starts processes of its own all the while, which live on.
        let strangers: Vec<ChildGuard> = std::thread::scope(|scope| {
            let start = || ChildGuard::spawn_with_stdin(Command::new("cat")).unwrap();
            let strangers = scope.spawn(move || (0..20).map(|_| start()).collect());
            for _ in 0..20 {
                assert!(claim.command("true").status().unwrap().success());
            }
            strangers.join().expect("it does not panic")
        });
        assert_eq!(strangers.len(), 20);
        closes(claim);
    });
}
