//! Mounts: who enters them, and what they keep from being removed.

use super::*;

/// A world in which `/r/a`, with `inside` in it, is mounted on `/r/b`; and its root, as ONE has it open.
fn mounted() -> (World, Handle) {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let a = mkdir(&mut world, ONE, dir, "a");
    mkdir(&mut world, ONE, a, "inside");
    let b = mkdir(&mut world, ONE, dir, "b");
    create(&mut world, ONE, b, "below");
    assert_eq!(mount(&mut world, dir, "a", "b"), Response::Done(Ok(())));
    (world, dir)
}

fn mount(world: &mut World, dir: Handle, from: &str, on: &str) -> Response {
    exec(world, ONE, Request::Mount { dir, from: name(from), on: name(on) })
}

fn names(world: &mut World, dir: Handle) -> Vec<String> {
    match call(world, ONE, Call::ReadDir { dir, restart: true }) {
        Ok(Reply::Entries(entries)) => entries.iter().map(|e| e.name.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_seam_enters_no_mount() {
    let (mut world, dir) = mounted();
    let b = || name("b");
    for asked in [
        Call::OpenDir { dir, name: b() },
        Call::OpenFile { dir, name: b() },
        Call::CreateFile { dir, name: b() },
        Call::StatAt { dir, name: b() },
        Call::Readlink { dir, name: b() },
        Call::Unseal { dir, name: b() },
    ] {
        assert_eq!(call(&mut world, ONE, asked.clone()), Err(Errno::EXDEV), "{asked}");
    }
    assert_eq!(names(&mut world, dir), ["a", "b"]);
    let made = call(&mut world, ONE, Call::Mkdir { dir, name: b() });
    assert_eq!(made, Err(Errno::EEXIST));
}

#[test]
fn the_way_to_a_root_and_an_open_without_care_enter_it() {
    let (mut world, dir) = mounted();
    let path = World::root_path().join(b"b");
    let below = open(&mut world, ONE, Call::OpenRoot { path });
    assert_eq!(names(&mut world, below), ["inside"]);
    let plain = Request::Beyond(Beyond::OpenPlain { dir, name: name("b") });
    let Response::Reply(Ok(Reply::Handle(below))) = exec(&mut world, ONE, plain) else {
        panic!("it can be opened");
    };
    assert_eq!(names(&mut world, below), ["inside"]);
    // What is done there is done to what is mounted.
    let inside = Call::Rmdir { dir: below, name: name("inside") };
    assert_eq!(call(&mut world, ONE, inside), Ok(Reply::Done));
    assert_eq!(tree(&world), ["a", "b", "b/below"]);
    // Whoever had it open sees what lies below the mount.
    let (mut world, dir) = mounted();
    let a = open(&mut world, ONE, Call::OpenDir { dir, name: name("a") });
    assert_eq!(mount(&mut world, dir, "b", "a"), Response::Done(Ok(())));
    assert_eq!(names(&mut world, a), ["inside"]);
}

#[test]
fn what_a_mount_is_on_is_neither_removed_nor_renamed() {
    let (mut world, dir) = mounted();
    mkdir(&mut world, ONE, dir, "c");
    let rmdir = |text| Call::Rmdir { dir, name: name(text) };
    assert_eq!(call(&mut world, ONE, rmdir("b")), Err(Errno::EBUSY));
    assert_eq!(rename(&mut world, dir, "b", "new"), Err(Errno::EBUSY));
    assert_eq!(rename(&mut world, dir, "c", "b"), Err(Errno::EBUSY));
    create(&mut world, ONE, dir, "file");
    assert_eq!(mount(&mut world, dir, "file", "file"), Response::Done(Ok(())));
    assert_eq!(mount(&mut world, dir, "file", "c"), Response::Done(Err(Errno::ENOTDIR)));
    let unlink = Call::Unlink { dir, name: name("file") };
    assert_eq!(call(&mut world, ONE, unlink), Err(Errno::EBUSY));
    assert!(world.describe().contains(&"/r/b, below a mount".into()), "{:?}", world.describe());
}

#[test]
fn what_is_mounted_lives_on_when_its_name_goes() {
    let (mut world, dir) = mounted();
    mkdir(&mut world, ONE, dir, "c");
    assert_eq!(mount(&mut world, dir, "c", "c"), Response::Done(Ok(())));
    let mut other = world.clone();
    let a = open(&mut other, ONE, Call::OpenDir { dir, name: name("a") });
    call(&mut other, ONE, Call::Rmdir { dir: a, name: name("inside") }).expect("it is empty");
    call(&mut other, ONE, Call::Close { fd: a }).expect("it is open");
    call(&mut other, ONE, Call::Rmdir { dir, name: name("a") }).expect("it is empty");
    let path = World::root_path().join(b"b");
    assert!(matches!(call(&mut other, ONE, Call::OpenRoot { path }), Ok(Reply::Handle(_))));
    let onto = mount(&mut other, dir, "c", "b");
    assert_eq!(onto, Response::Done(Err(Errno::ENOENT)), "it is removed");
    assert_ne!(world.fingerprint(), other.fingerprint());
}

fn unmount(world: &mut World, dir: Handle, on: &str) -> Response {
    exec(world, ONE, Request::Unmount { dir, on: name(on) })
}

#[test]
fn a_mount_ends_when_nobody_uses_it() {
    let (mut world, dir) = mounted();
    let refused = |errno| Response::Done(Err(errno));
    assert_eq!(unmount(&mut world, dir, "a"), refused(Errno::EINVAL), "nothing is mounted on it");
    assert_eq!(unmount(&mut world, dir, "none"), refused(Errno::ENOENT));
    let path = World::root_path().join(b"b");
    let below = open(&mut world, ONE, Call::OpenRoot { path: path.clone() });
    assert_eq!(unmount(&mut world, dir, "b"), refused(Errno::EBUSY), "it is open");
    // By a name in it another one is mounted on what is in it.
    assert_eq!(mount(&mut world, below, "inside", "inside"), Response::Done(Ok(())));
    assert_eq!(call(&mut world, ONE, Call::Close { fd: below }), Ok(Reply::Done));
    assert_eq!(unmount(&mut world, dir, "b"), refused(Errno::EBUSY), "another one is on it");
    let below = open(&mut world, ONE, Call::OpenRoot { path: path.clone() });
    assert_eq!(unmount(&mut world, below, "inside"), Response::Done(Ok(())));
    assert_eq!(call(&mut world, ONE, Call::Close { fd: below }), Ok(Reply::Done));
    let works = Request::WorkIn { path: path.clone() };
    assert_eq!(exec(&mut world, ONE, works), Response::Done(Ok(())));
    assert_eq!(unmount(&mut world, dir, "b"), refused(Errno::EBUSY), "somebody works in it");
    let elsewhere = Request::WorkIn { path: World::root_path() };
    assert_eq!(exec(&mut world, ONE, elsewhere), Response::Done(Ok(())));
    assert_eq!(unmount(&mut world, dir, "b"), Response::Done(Ok(())));
    let below = open(&mut world, ONE, Call::OpenRoot { path });
    assert_eq!(names(&mut world, below), ["below"]);
}
