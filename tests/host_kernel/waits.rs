//! Waiting for the ends of children.

use std::time::{Duration, Instant};

use mortmain::sys::{Ending, Errno, Host, HostProgram, KernelExt, Pid, Wait};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use crate::support::{PATIENCE_MILLIS, Registry, ending_of, in_cell, script, sleeper};

fn started(program: &mut HostProgram) -> Pid {
    Registry::new().start(0, program).expect("it starts")
}

fn nix_pid(pid: Pid) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(pid.0)
}

#[test]
fn every_end_is_told_as_it_was() {
    in_cell(|| {
        // 34 is SIGRTMIN, for which some libraries have no name.
        for (text, ending) in [
            ("exit 0", Ending::Exited(0)),
            ("exit 3", Ending::Exited(3)),
            ("exit 255", Ending::Exited(255)),
            ("kill -TERM $$", Ending::Killed(15)),
            ("kill -KILL $$", Ending::Killed(9)),
            ("kill -34 $$", Ending::Killed(34)),
        ] {
            let pid = started(&mut script(text));
            let looked = Host.await_end(pid, Wait::AtMost(PATIENCE_MILLIS));
            assert_eq!(looked, Ok(Some(ending)), "{text}");
            assert_eq!(Host.reap(pid, Wait::AtMost(0)), Ok(Some(ending)), "{text}: it stayed");
            assert_eq!(Host.reap(pid, Wait::AtMost(0)), Err(Errno::ECHILD), "{text}: once");

            let pid = started(&mut script(text));
            assert_eq!(Host.reap(pid, Wait::Forever), Ok(Some(ending)), "{text}");
        }
    });
}

#[test]
fn a_wait_ends_with_its_time() {
    in_cell(|| {
        let pid = started(&mut sleeper());
        for reap in [false, true] {
            for millis in [0, 1, 30] {
                let began = Instant::now();
                let wait = Wait::AtMost(millis);
                let ended = if reap { Host.reap(pid, wait) } else { Host.await_end(pid, wait) };
                assert_eq!(ended, Ok(None), "{millis} ms, reap {reap}");
                let limit = Duration::from_millis(millis.into());
                assert!(began.elapsed() >= limit, "{:?} of {limit:?}", began.elapsed());
            }
        }
        assert_eq!(Host.process_exists(pid), Ok(()), "it runs on");
    });
}

#[test]
fn a_wait_ends_with_the_child() {
    in_cell(|| {
        let pid = started(&mut sleeper());
        let (ended, waited) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let began = Instant::now();
                (Host.reap(pid, Wait::AtMost(u32::MAX)), began.elapsed())
            });
            assert_eq!(Host.kill_group(pid), Ok(()));
            waiting.join().expect("it does not panic")
        });
        assert_eq!(ended, Ok(Some(Ending::Killed(9))));
        assert!(waited < Duration::from_millis(PATIENCE_MILLIS.into()), "{waited:?}");
    });
}

#[test]
fn a_stop_is_no_end() {
    in_cell(|| {
        let pid = started(&mut sleeper());
        kill(nix_pid(pid), Signal::SIGSTOP).expect("it is our child");
        let stopped = waitpid(nix_pid(pid), Some(WaitPidFlag::WUNTRACED));
        assert_eq!(stopped, Ok(WaitStatus::Stopped(nix_pid(pid), Signal::SIGSTOP)));
        assert_eq!(Host.await_end(pid, Wait::AtMost(10)), Ok(None));
        assert_eq!(Host.reap(pid, Wait::AtMost(10)), Ok(None));
        assert_eq!(Host.kill_group(pid), Ok(()), "and it can be ended");
        assert_eq!(ending_of(pid), Ending::Killed(9));
    });
}

#[test]
fn only_a_child_of_ours_is_waited_for() {
    in_cell(|| {
        let parent = Pid(nix::unistd::getppid().as_raw());
        // The parent of the test may be the cell's first process, which is never asked at all.
        let refused = if parent.0 == 1 { Errno::EINVAL } else { Errno::ECHILD };
        for wait in [Wait::AtMost(0), Wait::AtMost(10), Wait::Forever] {
            assert_eq!(Host.reap(parent, wait), Err(refused), "{wait:?}");
            assert_eq!(Host.await_end(Pid(4_000_000), wait), Err(Errno::ECHILD), "{wait:?}");
        }
    });
}
