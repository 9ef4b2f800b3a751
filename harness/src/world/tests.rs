//! The machine behaves as Linux does, as far as it behaves at all.

use mortmain::sys::{
    Answer, Call, ChildPlan, Ending, Errno, Handle, Home, IdName, Kind, Name, PathBytes, Pid,
    Reply, Wait,
};
use mortmain_subjects::Beyond;

use super::ids::ProgramId;
use super::request::{ChildCall, Command, Request, Response};
use super::{Effect, Moves, Reaping, Rules, World};

mod adversary;
mod mounts;
mod specials;

const PROGRAM: ProgramId = ProgramId { index: 0, name: "program" };
const ONE: Pid = Pid(10);
const TWO: Pid = Pid(20);

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("one component")
}

fn world(reaping: Reaping) -> World {
    let mut world = World::new(Rules { reaping, ..Rules::default() });
    world.start(ONE, PROGRAM);
    world.start(TWO, PROGRAM);
    world
}

fn exec(world: &mut World, pid: Pid, request: Request) -> Response {
    match world.exec(pid, &request) {
        Effect::Answer(response) => response,
        other => panic!("{request} was not answered but {other:?}"),
    }
}

fn call(world: &mut World, pid: Pid, call: Call) -> Answer<Reply> {
    match exec(world, pid, Request::Call(call)) {
        Response::Reply(reply) => reply,
        other => panic!("a call was answered by {other:?}"),
    }
}

fn open(world: &mut World, pid: Pid, open: Call) -> Handle {
    match call(world, pid, open) {
        Ok(Reply::Handle(handle)) => handle,
        other => panic!("it was not opened but {other:?}"),
    }
}

fn root(world: &mut World, pid: Pid) -> Handle {
    open(world, pid, Call::OpenRoot { path: World::root_path() })
}

fn mkdir(world: &mut World, pid: Pid, dir: Handle, text: &str) -> Handle {
    assert_eq!(call(world, pid, Call::Mkdir { dir, name: name(text) }), Ok(Reply::Done));
    open(world, pid, Call::OpenDir { dir, name: name(text) })
}

fn create(world: &mut World, pid: Pid, dir: Handle, text: &str) -> Handle {
    open(world, pid, Call::CreateFile { dir, name: name(text) })
}

fn rename(world: &mut World, dir: Handle, from: &str, to: &str) -> Answer<Reply> {
    call(world, ONE, Call::Rename { dir, from: name(from), to: name(to) })
}

fn lock(world: &mut World, pid: Pid, fd: Handle) -> Answer<Reply> {
    call(world, pid, Call::Lock { fd })
}

fn fork(world: &mut World, pid: Pid) -> Pid {
    match world.exec(pid, &Request::Fork) {
        Effect::Forked { child } => child,
        other => panic!("no fork but {other:?}"),
    }
}

fn exit(world: &mut World, pid: Pid, status: i32) {
    assert_eq!(world.exec(pid, &Request::Exit { status }), Effect::Ended);
}

fn tree(world: &World) -> Vec<String> {
    world.tree().iter().map(PathBytes::to_string).collect()
}

#[test]
fn a_lock_is_the_descriptions_and_falls_with_its_last_descriptor() {
    let mut world = world(Reaping::AtOnce);
    let mine = root(&mut world, ONE);
    let theirs = root(&mut world, TWO);
    assert_eq!(lock(&mut world, ONE, mine), Ok(Reply::Done));
    assert_eq!(lock(&mut world, ONE, mine), Ok(Reply::Done), "again, by the same description");
    assert_eq!(lock(&mut world, TWO, theirs), Err(Errno::EAGAIN));

    let child = fork(&mut world, ONE);
    world.kill(ONE);
    assert_eq!(lock(&mut world, TWO, theirs), Err(Errno::EAGAIN), "the child has a copy");
    world.kill(child);
    assert_eq!(lock(&mut world, TWO, theirs), Ok(Reply::Done));
}

#[test]
fn any_sharer_gives_a_lock_back() {
    let mut world = world(Reaping::AtOnce);
    let mine = root(&mut world, ONE);
    let theirs = root(&mut world, TWO);
    lock(&mut world, ONE, mine).expect("it is free");
    let child = fork(&mut world, ONE);
    assert_eq!(call(&mut world, child, Call::Unlock { fd: mine }), Ok(Reply::Done));
    assert_eq!(lock(&mut world, TWO, theirs), Ok(Reply::Done));
    let mine_again = root(&mut world, ONE);
    assert_eq!(call(&mut world, ONE, Call::Unlock { fd: mine_again }), Ok(Reply::Done));
    assert_eq!(lock(&mut world, ONE, mine), Err(Errno::EAGAIN), "not another description's");
}

#[test]
fn exec_closes_what_is_not_kept() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let lease = mkdir(&mut world, ONE, dir, "lease");
    let entry = create(&mut world, ONE, dir, "entry");
    lock(&mut world, ONE, lease).expect("it is free");
    lock(&mut world, ONE, entry).expect("it is free");
    let child = fork(&mut world, ONE);
    let kept = Request::Child(ChildCall::KeepOverExec { fd: entry });
    assert_eq!(exec(&mut world, child, kept), Response::Done(Ok(())));
    world.kill(ONE);
    let image = Request::Exec { program: PROGRAM, cookie: Box::default() };
    assert_eq!(world.exec(child, &image), Effect::Image(PROGRAM));

    let theirs = root(&mut world, TWO);
    let lease = open(&mut world, TWO, Call::OpenDir { dir: theirs, name: name("lease") });
    let entry = open(&mut world, TWO, Call::OpenFile { dir: theirs, name: name("entry") });
    assert_eq!(lock(&mut world, TWO, lease), Ok(Reply::Done));
    assert_eq!(lock(&mut world, TWO, entry), Err(Errno::EAGAIN));
    exec(&mut world, child, Request::CloseAll);
    assert_eq!(lock(&mut world, TWO, entry), Ok(Reply::Done));
}

#[test]
fn descriptors_are_the_lowest_that_are_free_and_belong_to_one_process() {
    let mut world = world(Reaping::AtOnce);
    let first = root(&mut world, ONE);
    let second = root(&mut world, ONE);
    assert_eq!((first, second), (Handle(3), Handle(4)));
    call(&mut world, ONE, Call::Close { fd: first }).expect("it is open");
    assert_eq!(root(&mut world, ONE), Handle(3));
    assert_eq!(call(&mut world, TWO, Call::Close { fd: first }), Err(Errno::EBADF));
}

#[test]
fn rename_replaces_what_posix_lets_it_replace() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let full = mkdir(&mut world, ONE, dir, "full");
    create(&mut world, ONE, full, "inside");
    mkdir(&mut world, ONE, dir, "empty");
    create(&mut world, ONE, dir, "file");

    assert_eq!(rename(&mut world, dir, "empty", "full"), Err(Errno::ENOTEMPTY));
    assert_eq!(rename(&mut world, dir, "empty", "file"), Err(Errno::ENOTDIR));
    assert_eq!(rename(&mut world, dir, "file", "empty"), Err(Errno::EISDIR));
    assert_eq!(rename(&mut world, dir, "none", "file"), Err(Errno::ENOENT));
    assert_eq!(rename(&mut world, dir, "file", "file"), Ok(Reply::Done));
    assert_eq!(rename(&mut world, dir, "full", "empty"), Ok(Reply::Done));
    assert_eq!(tree(&world), ["empty", "empty/inside", "file"]);
}

#[test]
fn a_directory_that_is_removed_and_held_has_no_listing_and_takes_nothing() {
    let mut world = world(Reaping::AtOnce);
    let top = root(&mut world, ONE);
    let dir = mkdir(&mut world, ONE, top, "dir");
    let inside = create(&mut world, ONE, dir, "inside");
    let rmdir = Call::Rmdir { dir: top, name: name("dir") };
    assert_eq!(call(&mut world, ONE, rmdir.clone()), Err(Errno::ENOTEMPTY));
    let unlink = Call::Unlink { dir, name: name("inside") };
    assert_eq!(call(&mut world, ONE, unlink), Ok(Reply::Done));
    assert_eq!(call(&mut world, ONE, rmdir), Ok(Reply::Done));

    for restart in [true, false] {
        let listing = call(&mut world, ONE, Call::ReadDir { dir, restart });
        assert_eq!(listing, Err(Errno::ENOENT));
    }
    let again = Call::Mkdir { dir, name: name("inside") };
    assert_eq!(call(&mut world, ONE, again), Err(Errno::ENOENT));
    assert!(matches!(call(&mut world, ONE, Call::Stat { fd: inside }), Ok(Reply::Stat(_))));

    // With the last handles the inodes go, so that the state is as before.
    exec(&mut world, ONE, Request::CloseAll);
    world.kill(ONE);
    let fresh = {
        let mut fresh = World::new(Rules::default());
        fresh.start(TWO, PROGRAM);
        fresh
    };
    assert_eq!(world.fingerprint(), fresh.fingerprint());
}

#[test]
fn a_link_is_never_followed_but_on_the_way_to_a_root() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let link = Call::Symlink { dir, name: name("link"), text: b"/r".as_slice().into() };
    assert_eq!(call(&mut world, ONE, link), Ok(Reply::Done));
    let link = || name("link");
    assert_eq!(call(&mut world, ONE, Call::OpenDir { dir, name: link() }), Err(Errno::ENOTDIR));
    assert_eq!(call(&mut world, ONE, Call::Unseal { dir, name: link() }), Err(Errno::ENOTDIR));
    assert_eq!(call(&mut world, ONE, Call::OpenFile { dir, name: link() }), Err(Errno::ELOOP));
    let text = call(&mut world, ONE, Call::Readlink { dir, name: link() });
    assert_eq!(text, Ok(Reply::Bytes(b"/r".to_vec())));
    match call(&mut world, ONE, Call::StatAt { dir, name: link() }) {
        Ok(Reply::Stat(stat)) => assert_eq!(stat.kind, Kind::Link),
        other => panic!("{other:?}"),
    }
    for (text, to, answer) in [
        ("relative", "link", Ok(())),
        ("broken", "nowhere", Err(Errno::ENOENT)),
        ("itself", "itself", Err(Errno::ELOOP)),
    ] {
        let to = Call::Symlink { dir, name: name(text), text: to.as_bytes().into() };
        assert_eq!(call(&mut world, ONE, to), Ok(Reply::Done));
        let path = World::root_path().join(text.as_bytes());
        let opened = call(&mut world, ONE, Call::OpenRoot { path });
        assert_eq!(opened.map(|_| ()), answer, "{text}");
    }
}

#[test]
fn a_listing_goes_on_where_it_was() {
    let rules = Rules { entries_a_read: 2, ..Rules::default() };
    let mut world = World::new(rules);
    world.start(ONE, PROGRAM);
    let dir = root(&mut world, ONE);
    for text in ["d", "b", "a", "c", "e"] {
        create(&mut world, ONE, dir, text);
    }
    let mut next = |restart| match call(&mut world, ONE, Call::ReadDir { dir, restart }) {
        Ok(Reply::Entries(entries)) => {
            entries.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(next(true), ["a", "b"]);
    assert_eq!(next(false), ["c", "d"]);
    assert_eq!(next(false), ["e"]);
    assert_eq!(next(false), [""; 0]);
    assert_eq!(next(true), ["a", "b"]);
}

#[test]
fn a_child_is_a_zombie_until_its_parent_reaps_it() {
    let mut world = world(Reaping::AtOnce);
    let child = fork(&mut world, ONE);
    let wait = |reap| Call::Wait { pid: child, wait: Wait::Forever, reap };
    assert!(!world.enabled(ONE, &Request::Call(wait(true))));
    let ask = Call::Wait { pid: child, wait: Wait::AtMost(5), reap: true };
    assert_eq!(call(&mut world, ONE, ask), Ok(Reply::Ending(None)));

    exit(&mut world, child, 3);
    let existing = |pid| Call::ProcessExists { pid };
    assert_eq!(call(&mut world, TWO, existing(child)), Ok(Reply::Done));
    match call(&mut world, TWO, Call::Process { pid: child }) {
        Ok(Reply::Process(process)) => assert!(process.ended()),
        other => panic!("{other:?}"),
    }
    let ending = Ok(Reply::Ending(Some(Ending::Exited(3))));
    assert!(world.enabled(ONE, &Request::Call(wait(true))));
    assert_eq!(call(&mut world, ONE, wait(false)), ending);
    assert_eq!(call(&mut world, ONE, wait(true)), ending);
    assert_eq!(call(&mut world, ONE, wait(true)), Err(Errno::ECHILD));
    assert_eq!(call(&mut world, TWO, existing(child)), Err(Errno::ESRCH));
}

#[test]
fn orphans_are_inits_to_reap() {
    for (reaping, want) in [(Reaping::AtOnce, Err(Errno::ESRCH)), (Reaping::Never, Ok(Reply::Done))]
    {
        let mut world = world(reaping);
        let child = fork(&mut world, ONE);
        let grandchild = fork(&mut world, child);
        exit(&mut world, child, 0);
        world.kill(ONE);
        for pid in [ONE, child] {
            assert_eq!(call(&mut world, TWO, Call::ProcessExists { pid }), want, "{pid:?}");
        }
        assert!(world.lives(grandchild));
        exit(&mut world, grandchild, 0);
        assert_eq!(call(&mut world, TWO, Call::ProcessExists { pid: grandchild }), want);
    }
}

#[test]
fn a_group_exists_as_long_as_a_member_or_its_zombie() {
    let mut world = world(Reaping::AtOnce);
    let leader = fork(&mut world, ONE);
    exec(&mut world, leader, Request::Child(ChildCall::NewGroup));
    let member = fork(&mut world, leader);
    let exists = Call::GroupExists { group: leader };
    let mine = Call::KillGroup { group: leader };
    assert_eq!(call(&mut world, member, mine), Err(Errno::EINVAL), "the seam kills no own group");
    exit(&mut world, leader, 0);
    assert_eq!(call(&mut world, TWO, exists.clone()), Ok(Reply::Done));
    assert_eq!(call(&mut world, ONE, Call::KillGroup { group: leader }), Ok(Reply::Done));
    assert!(!world.lives(member));
    assert_eq!(call(&mut world, TWO, exists.clone()), Ok(Reply::Done), "the leader's zombie");
    let reap = Call::Wait { pid: leader, wait: Wait::Forever, reap: true };
    assert_eq!(call(&mut world, ONE, reap), Ok(Reply::Ending(Some(Ending::Exited(0)))));
    assert_eq!(call(&mut world, TWO, exists), Err(Errno::ESRCH));
}

#[test]
fn independent_steps_lead_to_the_same_world_in_either_order() {
    let steps = |first: Pid, second: Pid| {
        let mut world = world(Reaping::AtOnce);
        for pid in [first, second] {
            let dir = root(&mut world, pid);
            mkdir(&mut world, pid, dir, &format!("of-{}", pid.0));
            call(&mut world, pid, Call::Random).expect("it cannot fail");
            fork(&mut world, pid);
        }
        world.fingerprint()
    };
    assert_eq!(steps(ONE, TWO), steps(TWO, ONE));
}

/// A claim `/r/c` with its `files`, held by ONE.
fn held_claim(world: &mut World) -> Handle {
    let dir = root(world, ONE);
    let claim = mkdir(world, ONE, dir, "c");
    mkdir(world, ONE, claim, "files");
    let claim = World::root_path().join(b"c");
    let hold = Request::Hold { files: claim.join(b"files"), claim };
    assert!(matches!(exec(world, ONE, hold), Response::Held(_)));
    assert_eq!(world.harm(), None);
    dir
}

#[test]
fn a_claim_that_is_moved_while_in_use_is_harm() {
    let mut world = world(Reaping::AtOnce);
    let dir = held_claim(&mut world);
    rename(&mut world, dir, "c", "d").expect("it is there");
    let harm = world.harm().expect("the owner uses it");
    assert_eq!((harm.path.to_string(), harm.users), ("/r/c".into(), vec![ONE]));
    assert_eq!(harm.missing, PathBytes::default());
    // Nobody uses it any more.
    world.kill(ONE);
    assert_eq!(world.harm(), None);
    assert!(!world.in_use());
}

#[test]
fn a_move_is_forgiven_as_long_as_the_mover_lives_and_takes_nothing() {
    let rules = Rules { moves: Moves::ForgivenWhileTheMoverLives, ..Rules::default() };
    let moved = || {
        let mut world = World::new(rules);
        world.start(ONE, PROGRAM);
        world.start(TWO, PROGRAM);
        held_claim(&mut world);
        let dir = root(&mut world, TWO);
        let away = Call::Rename { dir, from: name("c"), to: name("d") };
        assert_eq!(call(&mut world, TWO, away), Ok(Reply::Done));
        assert_eq!(world.harm(), None);
        (world, dir)
    };
    // Nobody finds it meanwhile.
    let (mut world, dir) = moved();
    let touch = Request::Touch { name: name("work") };
    assert_eq!(exec(&mut world, ONE, touch), Response::Done(Err(Errno::ENOENT)));
    let back = Call::Rename { dir, from: name("d"), to: name("c") };
    assert_eq!(call(&mut world, TWO, back), Ok(Reply::Done));
    world.kill(TWO);
    assert_eq!(world.harm(), None);

    let (mut world, _) = moved();
    world.kill(TWO);
    assert!(world.harm().is_some_and(|harm| harm.missing == PathBytes::default()));

    let (mut world, dir) = moved();
    let claim = open(&mut world, TWO, Call::OpenDir { dir, name: name("d") });
    let rmdir = Call::Rmdir { dir: claim, name: name("files") };
    assert_eq!(call(&mut world, TWO, rmdir), Ok(Reply::Done));
    assert_eq!(world.harm().map(|harm| harm.missing.to_string()), Some("files".into()));
}

#[test]
fn a_directory_that_is_used_itself_has_no_part_that_is_the_users() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let used = mkdir(&mut world, ONE, dir, "c");
    create(&mut world, ONE, used, "marker");
    let path = World::root_path().join(b"c");
    let held = exec(&mut world, ONE, Request::Hold { claim: path.clone(), files: path });
    assert!(matches!(held, Response::Held(_)));
    let touch = Request::Touch { name: name("work") };
    assert_eq!(exec(&mut world, ONE, touch), Response::Done(Ok(())));
    let unlink = |text| Call::Unlink { dir: used, name: name(text) };
    assert_eq!(call(&mut world, ONE, unlink("marker")), Ok(Reply::Done));
    assert_eq!(world.harm(), None, "nobody relies on the marker");
    assert_eq!(call(&mut world, ONE, unlink("work")), Ok(Reply::Done));
    assert_eq!(world.harm().map(|harm| harm.missing.to_string()), Some("work".into()));
}

fn beyond(world: &mut World, call: Beyond) -> Answer<Reply> {
    match exec(world, ONE, Request::Beyond(call)) {
        Response::Reply(reply) => reply,
        other => panic!("a call was answered by {other:?}"),
    }
}

#[test]
fn a_directory_is_as_old_as_its_last_name_and_a_file_as_its_content() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let inner = mkdir(&mut world, ONE, dir, "c");
    let file = create(&mut world, ONE, dir, "marker");
    let age = |world: &mut World, text: &str| {
        let number = |reply| match reply {
            Ok(Reply::Number(number)) => number,
            other => panic!("no moment but {other:?}"),
        };
        let modified = Beyond::Modified { dir, name: name(text) };
        number(beyond(world, Beyond::Now)) - number(beyond(world, modified))
    };
    assert_eq!((age(&mut world, "c"), age(&mut world, "marker")), (0, 0));
    let before = world.fingerprint();
    world.pass(100);
    assert_ne!(before, world.fingerprint());
    assert_eq!((age(&mut world, "c"), age(&mut world, "marker")), (100, 100));
    create(&mut world, ONE, inner, "inside");
    let write = Call::Write { fd: file, offset: 0, bytes: b"x"[..].into() };
    assert_eq!(call(&mut world, ONE, write), Ok(Reply::Number(1)));
    world.pass(7);
    assert_eq!((age(&mut world, "c"), age(&mut world, "marker")), (7, 7));
    let unlink = Call::Unlink { dir: inner, name: name("inside") };
    assert_eq!(call(&mut world, ONE, unlink), Ok(Reply::Done));
    assert_eq!(age(&mut world, "c"), 0);
    let gone = Beyond::Modified { dir, name: name("nothing") };
    assert_eq!(beyond(&mut world, gone), Err(Errno::ENOENT));
}

#[test]
fn what_a_user_wrote_must_stay() {
    let mut world = world(Reaping::AtOnce);
    let dir = held_claim(&mut world);
    let touch = Request::Touch { name: name("work") };
    assert_eq!(exec(&mut world, ONE, touch.clone()), Response::Done(Ok(())));
    assert_eq!(exec(&mut world, ONE, touch.clone()), Response::Done(Err(Errno::EEXIST)));
    assert_eq!(exec(&mut world, TWO, touch), Response::Done(Err(Errno::ENOENT)), "no user");
    let claim = open(&mut world, ONE, Call::OpenDir { dir, name: name("c") });
    let files = open(&mut world, ONE, Call::OpenDir { dir: claim, name: name("files") });
    call(&mut world, ONE, Call::Unlink { dir: files, name: name("work") }).expect("it is there");
    let harm = world.harm().expect("the owner relies on it");
    assert_eq!(harm.missing.to_string(), "files/work");
}

#[test]
fn a_spawn_is_a_fork_and_a_report() {
    let spawn = || Request::Spawn {
        command: Command { program: PROGRAM, uses: Vec::new() },
        plan: Box::new(ChildPlan {
            commands: Handle(3),
            id_name: IdName::new(0),
            lock: Handle(4),
            home: Home { boot: [0; 16], pid_ns: 0, time_ns: 0 },
            uid: 0,
            gid: 0,
            cookie: Box::default(),
        }),
    };
    let born = |world: &mut World| match world.exec(ONE, &spawn()) {
        Effect::Born { child } => child,
        other => panic!("no child but {other:?}"),
    };
    // The child gets to its exec.
    let mut world = world(Reaping::AtOnce);
    let child = born(&mut world);
    assert!(!world.enabled(ONE, &spawn()));
    let image = Request::Exec { program: PROGRAM, cookie: Box::default() };
    assert_eq!(world.exec(child, &image), Effect::Image(PROGRAM));
    assert!(world.enabled(ONE, &spawn()));
    assert_eq!(exec(&mut world, ONE, spawn()), Response::Spawned(Ok(child)));

    // It does not: the owner is told why, and has nothing to reap.
    let child = born(&mut world);
    assert_eq!(world.exec(child, &Request::ChildFailed(Errno::ENOSPC)), Effect::Ended);
    let failed = Response::Spawned(Err(Errno::ENOSPC));
    assert_eq!(exec(&mut world, ONE, spawn()), failed);
    let exists = Call::ProcessExists { pid: child };
    assert_eq!(call(&mut world, ONE, exists), Err(Errno::ESRCH));

    // It is killed: for the owner this looks like an exec.
    let child = born(&mut world);
    world.kill(child);
    assert_eq!(exec(&mut world, ONE, spawn()), Response::Spawned(Ok(child)));
}

#[test]
fn a_file_keeps_what_was_written_and_a_read_ends_with_it() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let file = create(&mut world, ONE, dir, "f");
    let read = |world: &mut World, offset, len| match call(
        world,
        ONE,
        Call::Read { fd: file, offset, len },
    ) {
        Ok(Reply::Bytes(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&mut world, 0, 9), b"");
    for (offset, text) in [(0, &b"abc"[..]), (2, b"CD"), (6, b"x")] {
        let write = Call::Write { fd: file, offset, bytes: text.into() };
        assert_eq!(call(&mut world, ONE, write), Ok(Reply::Number(text.len() as u64)));
    }
    assert_eq!(read(&mut world, 0, 9), b"abCD\0\0x");
    assert_eq!(read(&mut world, 3, 2), b"D\0");
    assert_eq!(read(&mut world, 7, 2), b"");
    let directory = Call::Read { fd: dir, offset: 0, len: 1 };
    assert_eq!(call(&mut world, ONE, directory), Err(Errno::EISDIR));
    assert_eq!(call(&mut world, ONE, Call::Sync { fd: file }), Ok(Reply::Done));
    let opened = open(&mut world, ONE, Call::OpenFile { dir, name: name("f") });
    let write = Call::Write { fd: opened, offset: 0, bytes: b"y"[..].into() };
    assert_eq!(call(&mut world, ONE, write), Err(Errno::EBADF), "it was opened to be read");
}

#[test]
fn who_has_locked_a_file_is_told_and_nobody_when_it_is_free() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, ONE);
    let file = create(&mut world, ONE, dir, "f");
    let holder = |world: &mut World| call(world, ONE, Call::LockHolder { fd: file });
    assert_eq!(holder(&mut world), Ok(Reply::Pids(vec![])));
    let dir = root(&mut world, TWO);
    let theirs = open(&mut world, TWO, Call::OpenFile { dir, name: name("f") });
    assert_eq!(lock(&mut world, TWO, theirs), Ok(Reply::Done));
    assert_eq!(holder(&mut world), Ok(Reply::Pids(vec![TWO])));
    let child = fork(&mut world, TWO);
    assert_eq!(call(&mut world, child, Call::Unlock { fd: theirs }), Ok(Reply::Done));
    assert_eq!(lock(&mut world, child, theirs), Ok(Reply::Done));
    assert_eq!(holder(&mut world), Ok(Reply::Pids(vec![child])), "whoever took it");
    world.kill(child);
    let reap = Call::Wait { pid: child, wait: Wait::AtMost(0), reap: true };
    assert!(call(&mut world, TWO, reap).is_ok());
    assert_eq!(holder(&mut world), Ok(Reply::Pids(vec![child])), "also when it is gone");
    assert_eq!(lock(&mut world, ONE, file), Err(Errno::EAGAIN), "its parent holds it");
    world.kill(TWO);
    assert_eq!(holder(&mut world), Ok(Reply::Pids(vec![])));
}
