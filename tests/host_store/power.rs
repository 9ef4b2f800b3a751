//! When the power goes (t1, t2): a disk in a file, copied after each call and mounted anew.
//!
//! The disk is ext4 without its habit of syncing what replaces a file by a rename, as other file
//! systems have none, and it writes nothing back by itself in the meantime.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use mortmain::sys::{Call, Host, Reply};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};

use crate::support::{in_cell, put, soon};

const OLD: &[u8] = b"what stood there before the power went";
const NEW: &[u8] = b"what was written when the power went";

#[track_caller]
fn run(program: &str, args: &[&str], path: &[&Path]) {
    let mut command = Command::new(program);
    command.args(args).args(path);
    let mut running = ChildGuard::spawn(command).expect("it is installed");
    assert!(running.wait(soon()).unwrap().success(), "{program} {args:?}");
}

/// Why there can be no such disk here.
fn missing() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root");
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there are no loop devices");
    }
    let made = ["/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"];
    (!made.iter().any(|path| Path::new(path).exists())).then_some("there is no mkfs.ext4")
}

/// A disk in a file.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    fn mount(image: PathBuf, at: PathBuf) -> Disk {
        fs::create_dir_all(&at).unwrap();
        let options = "loop,noauto_da_alloc,commit=600";
        run("mount", &["-t", "ext4", "-o", options], &[&image, &at]);
        Disk { image, at }
    }

    fn unmount(&self) {
        run("umount", &[], &[&self.at]);
    }

    fn data(&self) -> PathBuf {
        self.at.join("data")
    }
}

/// A call that is said to be done and is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    SyncOfContent,
    SyncOfDirectory,
}

/// The content of the file after a power cut at each moment of a write, the last one when the write
/// is said to be done; `None` where there is no file.
fn cuts(below: &Path, without: Without) -> Vec<Option<Vec<u8>>> {
    let image = below.join(format!("{without:?}"));
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    run("mkfs.ext4", &["-q", "-F"], &[&image]);
    let disk = Disk::mount(image, below.join("at"));
    put(&Host, &disk.data(), OLD).unwrap();
    disk.unmount();
    let disk = Disk::mount(disk.image, disk.at);

    let copies = Rc::new(RefCell::new(Vec::new()));
    let (taken, image, below) = (Rc::clone(&copies), disk.image.clone(), below.to_owned());
    let mut syncs = 0;
    let adversary = move |call: &Call, moment: Moment| {
        if let (Call::Sync { .. }, Moment::Before) = (call, moment) {
            syncs += 1;
            let skipped = match syncs {
                1 => Without::SyncOfContent,
                _ => Without::SyncOfDirectory,
            };
            if skipped == without {
                return Some(Ok(Reply::Done));
            }
        }
        let changes = matches!(
            call,
            Call::CreateFile { .. }
                | Call::Write { .. }
                | Call::Sync { .. }
                | Call::Rename { .. }
                | Call::Unlink { .. }
        );
        if moment == Moment::After && changes {
            let mut taken = taken.borrow_mut();
            let copy = below.join(format!("cut-{}", taken.len()));
            fs::copy(&image, &copy).unwrap();
            taken.push(copy);
        }
        None
    };
    let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
    put(&kernel, &disk.data(), NEW).unwrap();
    let last = disk.image.with_extension("cut");
    fs::copy(&disk.image, &last).unwrap();
    copies.borrow_mut().push(last);
    disk.unmount();
    let copies = copies.take();
    let contents = copies.into_iter().map(|copy| {
        let cut = Disk::mount(copy, disk.at.clone());
        let content = fs::read(cut.data()).ok();
        cut.unmount();
        fs::remove_file(cut.image).unwrap();
        content
    });
    contents.collect()
}

#[track_caller]
fn with_disks(body: impl FnOnce(&Path)) {
    in_cell(|path| match missing() {
        Some(why) => eprintln!("skipped: {why}"),
        None => body(path.parent().expect("it lies in a directory")),
    });
}

#[test]
fn after_a_power_cut_the_old_content_or_the_new_one_stands_and_the_new_one_when_it_was_said_so() {
    with_disks(|below| {
        let contents = cuts(below, Without::Nothing);
        assert!(contents.len() > 4, "{}", contents.len());
        for (at, content) in contents.iter().enumerate() {
            let content = content.as_deref();
            assert!(content == Some(OLD) || content == Some(NEW), "cut {at}: {content:?}");
        }
        let said = contents.last().and_then(Option::as_deref);
        assert_eq!(said, Some(NEW), "it was said to be done");
    });
}

/// That the disk forgets what it may forget; the test above would prove nothing otherwise.
#[test]
fn without_either_sync_a_power_cut_loses_something() {
    with_disks(|below| {
        let contents = cuts(below, Without::SyncOfContent);
        let half = |content: &Option<Vec<u8>>| {
            content.as_deref() != Some(OLD) && content.as_deref() != Some(NEW)
        };
        assert!(contents.iter().any(half), "the content was there without a sync: {contents:?}");
        let contents = cuts(below, Without::SyncOfDirectory);
        let said = contents.last().and_then(Option::as_deref);
        assert_eq!(said, Some(OLD), "the name was there without a sync");
    });
}
