//! The adversary: what he may do, what it comes to, and what may be left because of him.

use super::*;
use crate::world::{Spot, Trick};

const WORK: &str = "work";

/// A world with an adversary and a claim `/r/c` with its `files`, held by ONE; its root and `files`, as
/// TWO has them open.
fn tricked() -> (World, Handle, Handle) {
    let mut world = world(Reaping::AtOnce);
    world.invite_adversary();
    held_claim(&mut world);
    let dir = root(&mut world, TWO);
    let claim = open(&mut world, TWO, Call::OpenDir { dir, name: name("c") });
    let files = open(&mut world, TWO, Call::OpenDir { dir: claim, name: name("files") });
    (world, dir, files)
}

fn can(world: &World, dir: Handle, text: &str) -> Vec<Trick> {
    let name = name(text);
    let spot = Spot { pid: TWO, dir, name: &name };
    let all = Trick::WORDS.map(|(_, trick)| trick);
    all.into_iter().filter(|trick| world.can_trick(spot, *trick)).collect()
}

fn trick(world: &mut World, dir: Handle, text: &str, trick: Trick) -> String {
    let name = name(text);
    let spot = Spot { pid: TWO, dir, name: &name };
    assert!(world.can_trick(spot, trick), "{trick:?}");
    world.trick(spot, trick)
}

fn left(world: &World) -> Vec<String> {
    world.left().iter().map(PathBytes::to_string).collect()
}

#[test]
fn he_takes_nothing_that_is_in_use_or_that_its_maker_lives_for() {
    let (mut world, dir, files) = tricked();
    assert_eq!(can(&world, dir, "c"), []);
    assert_eq!(can(&world, dir, "new"), [Trick::Fifo, Trick::Link, Trick::Full, Trick::Mount]);
    create(&mut world, TWO, files, "theirs");
    assert_eq!(can(&world, files, "theirs"), []);
    // Nobody uses the claim any more, but who has made what is in it lives.
    world.kill(ONE);
    assert_eq!(can(&world, files, "theirs"), []);
    assert_eq!(can(&world, dir, "c").len(), 5);
}

#[test]
fn without_an_invitation_there_is_none() {
    let mut world = world(Reaping::AtOnce);
    let dir = root(&mut world, TWO);
    assert_eq!(can(&world, dir, "new"), []);
    assert_eq!(world.outside_harm(), None);
}

#[test]
fn what_he_puts_stands_there_and_what_stood_there_is_elsewhere() {
    let (mut world, dir, files) = tricked();
    world.kill(ONE);
    let said = trick(&mut world, dir, "c", Trick::Link);
    assert_eq!(said, "puts a link to /precious in the place of /r/c");
    let text = call(&mut world, TWO, Call::Readlink { dir, name: name("c") });
    assert_eq!(text, Ok(Reply::Bytes(b"/precious".to_vec())));
    let there =
        call(&mut world, TWO, Call::OpenRoot { path: PathBytes::from(&b"/elsewhere/0"[..]) });
    assert!(matches!(there, Ok(Reply::Handle(_))), "{there:?}");
    assert_eq!(can(&world, files, "new"), [], "it is not among the claims any more");

    assert_eq!(trick(&mut world, dir, "f", Trick::Fifo), "puts a FIFO at /r/f");
    trick(&mut world, dir, "full", Trick::Full);
    assert_eq!(tree(&world), ["c", "f", "full", "full/kept"]);
    assert_eq!(trick(&mut world, dir, "full", Trick::Away), "takes /r/full away");
    assert_eq!(tree(&world), ["c", "f"]);
}

#[test]
fn a_last_sweep_need_not_finish_what_he_had_a_hand_in_unless_that_is_the_users() {
    let (mut world, dir, files) = tricked();
    trick(&mut world, dir, "c-2", Trick::Full);
    trick(&mut world, files, WORK, Trick::Fifo);
    assert_eq!(left(&world), ["c", "c/files", "c/files/work"]);
    let claim = open(&mut world, TWO, Call::OpenDir { dir, name: name("c") });
    trick(&mut world, claim, "owner", Trick::Link);
    assert_eq!(left(&world), [""; 0]);
    assert_eq!(tree(&world).len(), 6);
}

#[test]
fn he_mounts_what_is_precious_on_directories() {
    let (mut world, dir, files) = tricked();
    assert_eq!(trick(&mut world, dir, "new", Trick::Mount), "mounts /precious on /r/new");
    assert_eq!(can(&world, dir, "new"), [], "it cannot be moved");
    trick(&mut world, files, "sub", Trick::Mount);
    assert_eq!(left(&world), [""; 0], "no sweep can remove it");
    let opened = call(&mut world, TWO, Call::OpenDir { dir: files, name: name("sub") });
    assert_eq!(opened, Err(Errno::EXDEV));
    let plain = Request::Beyond(Beyond::OpenPlain { dir: files, name: name("sub") });
    let Response::Reply(Ok(Reply::Handle(dir))) = exec(&mut world, TWO, plain) else {
        panic!("it can be opened");
    };
    call(&mut world, TWO, Call::Unlink { dir, name: name("kept") }).expect("it is there");
    assert!(world.outside_harm().is_some());
}

#[test]
fn whatever_changes_the_precious_is_seen() {
    let precious = PathBytes::from(&b"/precious"[..]);
    let open_precious = |world: &mut World| {
        open(world, TWO, Call::OpenRoot { path: PathBytes::from(&b"/precious"[..]) })
    };
    let kept = || name("kept");
    let (whole, _, _) = tricked();
    assert_eq!(whole.outside_harm(), None);

    let mut world = whole.clone();
    let dir = open_precious(&mut world);
    call(&mut world, TWO, Call::Unlink { dir, name: kept() }).expect("it is there");
    assert_eq!(world.outside_harm(), Some(precious.join(b"kept")));

    let mut world = whole.clone();
    let dir = open_precious(&mut world);
    create(&mut world, TWO, dir, "more");
    assert_eq!(world.outside_harm(), Some(precious.clone()));

    let mut world = whole.clone();
    let dir = open_precious(&mut world);
    let away = Call::Rename { dir, from: kept(), to: name("other") };
    call(&mut world, TWO, away).expect("it is there");
    assert_eq!(world.outside_harm(), Some(precious.clone()));

    let mut world = whole;
    let fd = open_precious(&mut world);
    call(&mut world, TWO, Call::Chmod { fd, mode: 0o755 }).expect("it is open");
    assert_eq!(world.outside_harm(), Some(precious));
}
