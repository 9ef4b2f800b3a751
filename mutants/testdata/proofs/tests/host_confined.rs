//! Tests that look at the confinement from the inside. They count as tests of the
//! host by the name of this file, and pass only when they are confined.

use std::fs;
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;

/// With the check gone this really tries to remove the file.
#[test]
fn nothing_is_removed_outside() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let precious = Path::new(env!("CARGO_MANIFEST_DIR")).join("precious.txt");
    let error = proofs::clear(root, &precious).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn shared_directories_are_empty_and_can_be_written() {
    // This workspace shows through, wherever it is.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for directory in ["/tmp", "/dev/shm", env!("CARGO_TARGET_TMPDIR")] {
        let entries = fs::read_dir(directory).unwrap();
        let strangers: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| !here.starts_with(path))
            .collect();
        assert!(strangers.is_empty(), "{directory}: {strangers:?}");
        let file = Path::new(directory).join("file");
        fs::write(&file, "text").unwrap();
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn everything_else_is_read_only() {
    let executable = std::env::current_exe().unwrap();
    for directory in [
        Path::new(env!("CARGO_MANIFEST_DIR")),
        executable.parent().unwrap(),
        Path::new("/"),
        Path::new("/proc/sys"),
    ] {
        let error = fs::write(directory.join("file"), "text").unwrap_err();
        let refused = [
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::NotFound,
        ];
        assert!(refused.contains(&error.kind()), "{}: {error}", directory.display());
    }
    let error = fs::write("/proc/sys/kernel/core_pattern", "x").unwrap_err();
    assert_ne!(error.kind(), io::ErrorKind::NotFound, "{error}");
}

/// The program that runs these tests is outside.
#[test]
fn no_process_outside_is_seen() {
    assert_eq!(parent_id(), 1);
    for entry in fs::read_dir("/proc").unwrap() {
        let words = fs::read(entry.unwrap().path().join("cmdline")).unwrap_or_default();
        let mut words = words.split(|&byte| byte == 0);
        assert!(words.all(|word| word != b"prove"));
    }
}

#[test]
fn memory_is_limited() {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().rev().take(3).collect();
    assert_eq!(numbers, ["bytes", "8589934592", "8589934592"]);
}

/// It is in a session of its own, holds none of the test's output, and would run for
/// a day.
#[test]
fn a_process_may_be_left_behind() {
    let script = "exec setsid sleep 86399 </dev/null >/dev/null 2>&1 &";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
}

/// As tests on real processes do, with namespaces and mounts of their own.
#[test]
fn namespaces_nest() {
    let script = "mount -t tmpfs none /tmp && echo text >/tmp/file && test $$ -lt 10 \
                  && umount /tmp && test ! -e /tmp/file && test ! -e /proc/99999";
    let mut command = Command::new("unshare");
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script]);
    assert!(command.status().unwrap().success());
}
