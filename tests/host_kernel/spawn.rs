//! Spawning: what the child does before it runs its program, and what becomes
//! of it when it cannot.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use mortmain::sys::{
    Answer, ChildIdentity, ChildKernel, Ending, Errno, Handle, Host, HostChild, HostProgram,
    IdName, Kernel, KernelExt,
};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{close, dup, dup2_stderr};

use crate::support::{Registry, ending_of, in_cell, is_root, lines_of, name, script, sleeper};
use crate::user_hook;

/// Leaves a file behind, so that it can be told whether it ran.
fn telltale(registry: &Registry) -> HostProgram {
    let mut program = script(": > ran");
    program.current_dir(&registry.commands.path);
    program
}

fn ran(registry: &Registry) -> bool {
    registry.commands.path("ran").exists()
}

#[test]
fn a_command_leads_a_group_of_its_own() {
    in_cell(|| {
        let pid = Registry::new().start(0, &mut sleeper()).expect("it starts");
        assert_eq!(Host.process(pid).map(|process| process.group), Ok(pid));
        assert_ne!(nix::unistd::getpgrp().as_raw(), pid.0);
    });
}

#[test]
fn a_command_has_its_identity_before_it_runs() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = script("readlink 7.id");
        program.current_dir(&registry.commands.path);
        let seen = lines_of(&registry, 7, program);
        let text = String::from_utf8(registry.id(7).expect("it is there")).expect("it is base64");
        assert_eq!(seen, [text.as_str()]);
        assert_eq!(text.len(), 58);
    });
}

#[test]
fn a_lock_is_held_while_the_command_or_what_it_left_runs() {
    in_cell(|| {
        let registry = Registry::new();
        let (gate, ours) = std::io::pipe().expect("a pipe can be had");
        // What it leaves behind is outside its group and has lost its parent.
        let mut program = script("exec 3<&0; setsid sh -c 'read line <&3' & exit 0");
        program.stdin(gate);
        let pid = registry.start(0, &mut program).expect("it starts");
        drop(program);
        assert!(!registry.is_free(0));
        assert_eq!(ending_of(pid), Ending::Exited(0));
        assert!(!registry.is_free(0), "the one in the background holds it");
        let left = mortmain_harness::processes::processes().expect("/proc is there");
        let left = left.iter().find(|process| process.pid > pid.0 && process.lives());
        let left = left.expect("the one in the background lives").pid;
        let watch = mortmain_harness::wait::Watch::open(left).expect("it can be watched");
        drop(ours);
        let watch = watch.expect("it lives");
        watch.gone(crate::support::deadline()).expect("it ends with its input");
        assert!(registry.is_free(0));
    });
}

#[test]
fn a_lock_is_high_but_below_the_limit() {
    in_cell(|| {
        let registry = Registry::new();
        let kept = |n| -> String {
            let lines = lines_of(&registry, n, script("ls -l /proc/$$/fd"));
            let entry = registry.commands.path(&n.to_string());
            let target = format!(" -> {}", entry.display());
            let line = lines.iter().find_map(|line| line.strip_suffix(&target));
            let number = line.unwrap_or_else(|| panic!("{target} is not in {lines:?}"));
            number.rsplit(' ').next().unwrap_or_default().to_owned()
        };
        assert_eq!(kept(0), "255");
        setrlimit(Resource::RLIMIT_NOFILE, 64, 64).expect("a limit can be lowered");
        assert_eq!(kept(1), "63");
        // The child has what its owner has open at the time of the fork.
        let _taken = nix::fcntl::fcntl(std::io::stdin(), nix::fcntl::FcntlArg::F_DUPFD(62))
            .expect("the number is free");
        let _taken = nix::fcntl::fcntl(std::io::stdin(), nix::fcntl::FcntlArg::F_DUPFD(63))
            .expect("the number is free");
        assert_eq!(kept(2), "61");
    });
}

#[test]
fn a_lock_takes_no_standard_stream_where_every_other_number_is_in_use() {
    in_cell(|| {
        let lock = std::fs::File::open("/").expect("it is there");
        let handle = Handle(lock.as_raw_fd());
        setrlimit(Resource::RLIMIT_NOFILE, 64, 64).expect("a limit can be lowered");
        let error = dup(std::io::stderr()).expect("it is open");
        let full: Vec<_> = std::iter::from_fn(|| lock.try_clone().ok()).collect();
        close(std::io::stderr().as_raw_fd()).expect("it is open");
        let kept = HostChild.keep_over_exec(handle);
        dup2_stderr(error).expect("its number is free");
        assert_eq!(kept, Err(Errno::EMFILE), "{} numbers are in use", full.len());
    });
}

#[test]
fn an_identity_has_a_bound_and_may_come_to_it() {
    in_cell(|| {
        let registry = Registry::new();
        let commands = registry.commands.dir.raw();
        let text = [b'x'; 256];
        let write =
            |n, length: usize| HostChild.symlink(commands, &IdName::new(n), &text[..length]);
        assert_eq!(write(0, 255), Ok(()));
        assert_eq!(registry.id(0).map(|text| text.len()), Ok(255));
        assert_eq!(write(1, 256), Err(Errno::ENAMETOOLONG));
    });
}

#[test]
fn a_program_is_printed_as_its_command_line() {
    let printed = format!("{:?}", HostProgram::new("true"));
    assert!(printed.ends_with("\"true\""), "{printed}");
}

#[test]
fn one_program_can_be_started_again() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = sleeper();
        let [first, second] = [0, 1].map(|n| registry.start(n, &mut program).expect("it starts"));
        assert_ne!(first, second);
        assert_ne!(registry.id(0).expect("it is there"), registry.id(1).expect("it is there"));
        assert_eq!(Host.kill_group(first), Ok(()));
        assert_eq!(ending_of(first), Ending::Killed(9));
        assert_eq!([0, 1].map(|n| registry.is_free(n)), [true, false], "each has its own lock");
    });
}

#[test]
fn a_lock_is_not_kept_by_what_other_threads_start() {
    in_cell(|| {
        const EACH: u32 = 10;
        let registry = Registry::new();
        let start = |from: u32| {
            let numbers = from..from + EACH;
            let pids = numbers.map(|n| registry.start(n, &mut sleeper()).expect("it starts"));
            pids.collect::<Vec<_>>()
        };
        let [first, second] = std::thread::scope(|scope| {
            let other = scope.spawn(|| start(EACH));
            [start(0), other.join().expect("it does not panic")]
        });
        for &pid in &first {
            assert_eq!(Host.kill_group(pid), Ok(()));
            assert_eq!(ending_of(pid), Ending::Killed(9));
        }
        let free: Vec<u32> = (0..2 * EACH).filter(|&n| registry.is_free(n)).collect();
        assert_eq!(free, (0..EACH).collect::<Vec<_>>());
        assert!(second.iter().all(|&pid| Host.process_exists(pid).is_ok()), "these live");
    });
}

#[test]
fn a_program_that_is_not_there_is_told_and_leaves_no_process() {
    in_cell(|| {
        let registry = Registry::new();
        let before = Host.pids();
        let mut program = HostProgram::new("/no/such/program");
        assert_eq!(registry.start(0, &mut program), Err(Errno::ENOENT));
        assert_eq!(Host.pids(), before, "not even a zombie");
        assert!(registry.is_free(0));
        assert!(registry.id(0).is_ok(), "the child had done its part");
        let mut program = HostProgram::new("/dev/null");
        assert_eq!(registry.start(1, &mut program), Err(Errno::EACCES));
        let mut program = sleeper();
        program.arg("a\0b");
        assert_eq!(registry.start(2, &mut program), Err(Errno::EINVAL));
    });
}

#[test]
fn a_name_that_is_taken_stops_the_child() {
    in_cell(|| {
        let registry = Registry::new();
        registry.commands.dir.symlink(&name("0.id"), b"forged").expect("the place is ours");
        assert_eq!(registry.start(0, &mut telltale(&registry)), Err(Errno::EEXIST));
        assert!(!ran(&registry));
    });
}

#[test]
fn another_user_or_group_is_refused() {
    in_cell(|| {
        if !is_root("another user cannot be taken") {
            return;
        }
        let registry = Registry::new();
        for (n, change) in
            [(0, CommandExt::uid as fn(&mut Command, u32) -> &mut Command), (1, CommandExt::gid)]
        {
            let mut program = telltale(&registry);
            change(&mut program, 4242);
            assert_eq!(registry.start(n, &mut program), Err(Errno::EOPNOTSUPP), "{n}");
            assert_eq!(registry.id(n), Err(Errno::ENOENT), "{n}");
        }
        assert!(!ran(&registry));
    });
}

#[test]
fn the_child_does_its_part_before_a_hook_of_the_users() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = telltale(&registry);
        user_hook::refuse(&mut program, Errno::ETIMEDOUT.0);
        assert_eq!(registry.start(0, &mut program), Err(Errno::ETIMEDOUT));
        assert!(registry.id(0).is_ok(), "the identity was there before the hook");
        assert!(registry.is_free(0));
        assert!(!ran(&registry));
    });
}

// PIPE(start-past-an-owner): that it is refused is what is tested.
#[test]
#[expect(clippy::disallowed_methods, reason = "that it is refused is what is tested")]
fn a_program_that_is_started_past_its_owner_does_not_run() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = telltale(&registry);
        let refused = Some(Errno::EINVAL.0);
        assert_eq!(program.spawn().map(drop).map_err(|e| e.raw_os_error()), Err(refused));
        assert_eq!(program.exec().raw_os_error(), refused);
        assert!(!ran(&registry));
        let pid = registry.start(0, &mut program).expect("it can be started by its owner");
        assert_eq!(ending_of(pid), Ending::Exited(0));
        assert!(ran(&registry));
        assert_eq!(program.spawn().map(drop).map_err(|e| e.raw_os_error()), Err(refused));
    });
}

#[test]
fn a_program_that_was_replaced_does_not_run() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = telltale(&registry);
        let mut other = Command::new("/bin/sh");
        other.args(["-c", ": > ran"]).current_dir(&registry.commands.path);
        *program = other;
        assert_eq!(registry.start(0, &mut program), Err(Errno::EINVAL));
        assert!(!ran(&registry));
    });
}

/// A step of the child's part.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    Group,
    Identity,
    Symlink,
    Keep,
}

/// The real kernel, but that one step of the child's part fails.
struct FailsAt(Step);

impl FailsAt {
    fn unless<T>(&self, step: Step, call: impl FnOnce() -> Answer<T>) -> Answer<T> {
        if self.0 == step { Err(Errno::ESTALE) } else { call() }
    }
}

impl ChildKernel for FailsAt {
    fn new_group(&self) -> Answer<()> {
        self.unless(Step::Group, || HostChild.new_group())
    }

    fn identity(&self) -> Answer<ChildIdentity> {
        self.unless(Step::Identity, || HostChild.identity())
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Answer<()> {
        self.unless(Step::Symlink, || HostChild.symlink(dir, name, text))
    }

    fn keep_over_exec(&self, fd: Handle) -> Answer<()> {
        self.unless(Step::Keep, || HostChild.keep_over_exec(fd))
    }
}

#[test]
fn a_step_that_fails_stops_the_child_with_its_number() {
    in_cell(|| {
        let registry = Registry::new();
        let before = Host.pids();
        let steps = [Step::Group, Step::Identity, Step::Symlink, Step::Keep];
        for (n, step) in (0..).zip(steps) {
            let mut program = HostProgram::with_child("/bin/sh", FailsAt(step));
            program.args(["-c", ": > ran"]).current_dir(&registry.commands.path);
            assert_eq!(registry.start(n, &mut program), Err(Errno::ESTALE), "{step:?}");
            assert!(registry.is_free(n), "{step:?}");
            assert_eq!(registry.id(n).is_ok(), step == Step::Keep, "{step:?}");
        }
        assert!(!ran(&registry));
        assert_eq!(Host.pids(), before, "no child is left");
    });
}

#[test]
fn a_plan_with_a_descriptor_that_is_closed_stops_the_child() {
    in_cell(|| {
        let registry = Registry::new();
        let entry = registry.entry(0);
        let plan = entry.plan.clone();
        drop(entry.lock);
        let mut program = telltale(&registry);
        assert_eq!(Host.spawn(&mut program, &plan), Err(Errno::EBADF));
        assert!(!ran(&registry));
    });
}
