//! FIFOs, sockets and devices: what they are to those who look first, and to those who do not.

use super::*;
use crate::world::Special;

fn make(world: &mut World, dir: Handle, text: &str, special: Special) -> Response {
    exec(world, ONE, Request::MakeSpecial { dir, name: name(text), special })
}

fn plain(dir: Handle, text: &str) -> Request {
    Request::Beyond(Beyond::OpenPlain { dir, name: name(text) })
}

#[test]
fn whoever_looks_first_opens_no_fifo_socket_or_device() {
    for special in [Special::Fifo, Special::Socket, Special::Device] {
        let mut world = world(Reaping::AtOnce);
        let dir = root(&mut world, ONE);
        assert_eq!(make(&mut world, dir, "s", special), Response::Done(Ok(())));
        let again = make(&mut world, dir, "s", special);
        assert_eq!(again, Response::Done(Err(Errno::EEXIST)));
        let name = || name("s");
        for (asked, errno) in [
            (Call::OpenFile { dir, name: name() }, Errno::EINVAL),
            (Call::OpenDir { dir, name: name() }, Errno::ENOTDIR),
            (Call::OpenRoot { path: World::root_path().join(b"s") }, Errno::ENOTDIR),
            (Call::CreateFile { dir, name: name() }, Errno::EEXIST),
            (Call::Readlink { dir, name: name() }, Errno::EINVAL),
            (Call::Unseal { dir, name: name() }, Errno::ENOTDIR),
            (Call::Rmdir { dir, name: name() }, Errno::ENOTDIR),
        ] {
            assert_eq!(call(&mut world, ONE, asked.clone()), Err(errno), "{asked}");
        }
        match call(&mut world, ONE, Call::StatAt { dir, name: name() }) {
            Ok(Reply::Stat(stat)) => assert_eq!((stat.kind, stat.mode), (Kind::Other, 0o600)),
            other => panic!("{other:?}"),
        }
        match call(&mut world, ONE, Call::ReadDir { dir, restart: true }) {
            Ok(Reply::Entries(entries)) => assert_eq!(entries[0].kind, Kind::Other),
            other => panic!("{other:?}"),
        }
        assert_eq!(call(&mut world, ONE, Call::Unlink { dir, name: name() }), Ok(Reply::Done));
        assert_eq!(world.tree(), []);
    }
}

#[test]
fn whoever_opens_without_care_waits_at_a_fifo_and_follows_links() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    make(&mut world, dir, "fifo", Special::Fifo);
    make(&mut world, dir, "socket", Special::Socket);
    make(&mut world, dir, "device", Special::Device);
    mkdir(&mut world, ONE, dir, "d");
    create(&mut world, ONE, dir, "file");
    for (text, to) in [("to-fifo", "fifo"), ("to-d", "/r/d"), ("itself", "itself")] {
        let link = Call::Symlink { dir, name: name(text), text: to.as_bytes().into() };
        assert_eq!(call(&mut world, ONE, link), Ok(Reply::Done));
    }
    for text in ["fifo", "to-fifo"] {
        assert!(!world.enabled(ONE, &plain(dir, text)), "{text}");
    }
    for (text, errno) in [
        ("socket", Errno(6)),
        ("device", Errno::EACCES),
        ("itself", Errno::ELOOP),
        ("none", Errno::ENOENT),
    ] {
        assert!(world.enabled(ONE, &plain(dir, text)), "{text}");
        let answer = exec(&mut world, ONE, plain(dir, text));
        assert_eq!(answer, Response::Reply(Err(errno)), "{text}");
    }
    for text in ["to-d", "file"] {
        assert!(world.enabled(ONE, &plain(dir, text)), "{text}");
        let answer = exec(&mut world, ONE, plain(dir, text));
        assert!(matches!(answer, Response::Reply(Ok(Reply::Handle(_)))), "{text}: {answer:?}");
    }
    let opened = call(&mut world, ONE, Call::OpenDir { dir, name: name("to-d") });
    assert_eq!(opened, Err(Errno::ENOTDIR), "the seam follows none");
}

#[test]
fn a_rename_replaces_a_fifo_as_it_does_a_file() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    make(&mut world, dir, "fifo", Special::Fifo);
    mkdir(&mut world, ONE, dir, "d");
    create(&mut world, ONE, dir, "file");
    assert_eq!(rename(&mut world, dir, "d", "fifo"), Err(Errno::ENOTDIR));
    assert_eq!(rename(&mut world, dir, "fifo", "d"), Err(Errno::EISDIR));
    assert_eq!(rename(&mut world, dir, "fifo", "file"), Ok(Reply::Done));
    assert_eq!(tree(&world), ["d", "file"]);
    assert!(world.describe().contains(&"/r/file, a FIFO".into()), "{:?}", world.describe());
}
