//! Who the asking process is.

use std::fs;
use std::process::Command;

use mortmain::sys::{
    ChildKernel, Ending, Errno, Host, HostChild, HostProgram, Kernel, KernelExt, Pid, ProcView,
};
use mortmain_harness::guard::ChildGuard;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::support::{Registry, deadline, ending_of, in_cell, is_root, lines_of, script};

fn own_pid() -> Pid {
    Pid(i32::try_from(std::process::id()).expect("pids are positive"))
}

/// The number in the text of a namespace's link, such as `pid:[4026531836]`.
fn namespace(kind: &str) -> u32 {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).expect("the kernel has it");
    let text = link.to_str().expect("it is plain text");
    let number = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix(":["));
    number.and_then(|rest| rest.strip_suffix(']')?.parse().ok()).expect("it holds a number")
}

#[test]
fn a_process_knows_itself() {
    in_cell(|| {
        let me = Host.identity().expect("/proc is there");
        assert_eq!(me.process.pid, own_pid());
        let shown = Host.process(own_pid()).expect("/proc shows us");
        assert_eq!(me.process.start_ticks, shown.start_ticks);
        assert_eq!(me.program, shown.program);
        assert_eq!(Host.pidfs(own_pid()), Ok(me.process.pidfs));
        assert_eq!((me.home.pid_ns, me.home.time_ns), (namespace("pid"), namespace("time")));
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("it is there");
        let boot = boot.trim().replace('-', "");
        assert_eq!(
            u128::from_be_bytes(me.home.boot),
            u128::from_str_radix(&boot, 16).expect("hex")
        );
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        assert_eq!((me.uid, me.gid), (uid, gid));
        assert_eq!(me.overflow_uid, None, "every number is mapped in the initial namespace");
        assert_eq!(me.proc, ProcView::Whole);
        let whoami = Host.whoami().expect("/proc is there");
        assert_eq!((whoami.pid, whoami.pid_ns), (me.process.pid, me.home.pid_ns));
    });
}

#[test]
fn a_child_knows_itself_as_its_owner_would() {
    in_cell(|| {
        let (me, as_child) = (Host.identity(), HostChild.identity());
        let (me, as_child) = (me.expect("/proc is there"), as_child.expect("/proc is there"));
        assert_eq!(as_child.process, me.process);
        assert_eq!((as_child.pid_ns, as_child.time_ns), (me.home.pid_ns, me.home.time_ns));
        assert_eq!((as_child.uid, as_child.gid), (me.uid, me.gid));
    });
}

#[test]
fn what_a_process_inherited_is_its_cookie() {
    const TEST: &str = "identity::what_a_process_inherited_is_its_cookie";
    const INNER: &str = "MORTMAIN_TEST_INNER";
    in_cell(|| {
        let cookie = Host.identity().expect("/proc is there").cookie;
        if std::env::var_os(INNER).is_some() {
            assert_eq!(cookie, b"aaaaaaaaaaaa:\xff".to_vec());
            return;
        }
        assert_eq!(cookie, b"".to_vec(), "the tests run under no claim");
        let mut inner = HostProgram::new(std::env::current_exe().expect("it is known"));
        inner.args([TEST, "--exact", "--nocapture"]).env(INNER, "1");
        let registry = Registry::new();
        let mut entry = registry.entry(0);
        entry.plan.cookie = (*b"aaaaaaaaaaaa:\xff").into();
        let pid = Host.spawn(&mut inner, &entry.plan).expect("it starts");
        assert_eq!(ending_of(pid), Ending::Exited(0));
    });
}

#[test]
fn a_proc_that_hides_processes_is_partial() {
    in_cell(|| {
        if !is_root("another /proc cannot be mounted") {
            return;
        }
        mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), Some("hidepid=2"))
            .expect("root may mount in its cell");
        let me = Host.identity().expect("/proc shows us still");
        assert_eq!(me.proc, ProcView::Partial);
    });
}

#[test]
fn a_proc_of_another_pid_namespace_is_foreign() {
    const TEST: &str = "identity::a_proc_of_another_pid_namespace_is_foreign";
    const INNER: &str = "MORTMAIN_TEST_OUTER_PID_NS";
    in_cell(|| {
        if let Ok(outer) = std::env::var(INNER) {
            let me = Host.identity().expect("/proc shows us, by another number");
            assert_eq!((me.process.pid, me.proc), (Pid(1), ProcView::Foreign));
            assert_ne!(me.home.pid_ns.to_string(), outer);
            assert!(me.process.start_ticks > 0, "they are ours, by whatever number");
            return;
        }
        if !is_root("a pid namespace cannot be made") {
            return;
        }
        let outer = Host.whoami().expect("/proc is there").pid_ns;
        unshare(CloneFlags::CLONE_NEWPID).expect("root may");
        let mut inner = Command::new(std::env::current_exe().expect("it is known"));
        inner.args([TEST, "--exact", "--nocapture"]).env(INNER, outer.to_string());
        let mut inner = ChildGuard::spawn(inner).expect("it starts");
        let said = inner.lines().expect_eof(deadline(), "the end of the inner test");
        let status = inner.wait(deadline()).expect("it ends");
        assert!(status.success(), "{status}, after it said {said:?}");
    });
}

#[test]
fn without_proc_there_is_no_identity() {
    in_cell(|| {
        if !is_root("/proc cannot be hidden") {
            return;
        }
        mount(Some("none"), "/proc", Some("tmpfs"), MsFlags::empty(), None::<&str>)
            .expect("root may mount in its cell");
        assert_eq!(Host.identity().err(), Some(Errno::ENOENT));
        assert_eq!(Host.whoami().err(), Some(Errno::ENOENT));
    });
}

#[test]
fn a_command_is_told_its_cookie_whatever_else_it_is_told() {
    in_cell(|| {
        let registry = Registry::new();
        let mut program = script("echo \"${MORTMAIN_CLAIM-none} $OTHER\"");
        program.env_clear().env("MORTMAIN_CLAIM", "forged").env("OTHER", "kept");
        assert_eq!(lines_of(&registry, 0, program), ["aaaaaaaaaaaa kept"]);
        let mut program = script("echo \"${MORTMAIN_CLAIM-none}\"");
        program.env_remove("MORTMAIN_CLAIM");
        assert_eq!(lines_of(&registry, 1, program), ["aaaaaaaaaaaa"]);
    });
}
