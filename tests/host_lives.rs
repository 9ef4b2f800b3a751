//! The model's verdicts beside the implementation's deeds, on the real kernel: shorter lives, drawn.

#[path = "lives/mod.rs"]
mod lives;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mortmain::sys::PathBytes;
use mortmain_harness::actor::Actor;
use mortmain_harness::actor::wire::{Disturbance, Order, SweepHow};
use mortmain_harness::cell;
use mortmain_harness::ground::PREFIX;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::{Deadline, Watch};

use self::lives::{Happens, Place, check};

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Waits until it is killed, by nothing that another one in the claim would have to make anew.
const WAITS: &str = "[ -p never ] || mkfifo never; echo waits; read x <never";

/// An owner that has begun.
struct Begun {
    actor: Actor,
    claim: PathBuf,
    commands: Vec<Watch>,
}

/// A root of its own, in a cell.
struct OnHost {
    root: PathBuf,
    begun: Vec<Begun>,
}

/// Has an actor killed before a call of an order, or when it has done it; answers whether it was in the
/// middle.
fn break_off(order: impl FnOnce(Disturbance) -> Order, after: u32) -> bool {
    let mut actor = Actor::start(LAB);
    actor.order(order(Disturbance::KillBefore(u64::from(after) + 1)));
    if actor.hears("the end of it, or of the actor").is_ok() {
        actor.kill();
        return false;
    }
    assert!(actor.is_killed().expect("it has ended"), "it ended otherwise than by the kill");
    true
}

fn bytes_of(path: &Path) -> PathBytes {
    PathBytes::from(path.as_os_str().as_bytes())
}

impl Place for OnHost {
    fn fresh() -> OnHost {
        OnHost { root: scratch_root(), begun: Vec::new() }
    }

    fn happen(&mut self, happens: &Happens) -> bool {
        let (prefix, root) = (PREFIX.to_owned(), self.root.clone());
        match *happens {
            Happens::Begins { commands, closes } => {
                let mut actor = Actor::start(LAB);
                let claim = actor.create(PREFIX, &root);
                let start = |_| {
                    let command = actor.spawn(WAITS);
                    assert_eq!(actor.said("that the command waits"), "waits");
                    command
                };
                let commands: Vec<Watch> = (0..commands).map(start).collect();
                if closes {
                    let (order, word) = match commands[..] {
                        [] => ("close", "removed"),
                        _ => ("release", "released"),
                    };
                    actor.must(order, word);
                }
                self.begun.push(Begun { actor, claim, commands });
            }
            Happens::OwnerIsKilled(at) => self.begun[at].actor.kill(),
            Happens::CommandIsKilled(at, nth) => {
                let command = &self.begun[at].commands[nth];
                command.kill().expect("it lives");
                command.gone(Deadline::secs(20)).expect("it was killed");
            }
            Happens::CreatorIsKilled(after) => {
                let disturbed = |disturbed| Order::Create {
                    prefix,
                    root,
                    tapped: true,
                    disturbed: Some(disturbed),
                };
                return break_off(disturbed, after);
            }
            Happens::Sweeps => {
                Actor::start(LAB).sweep(PREFIX, &root);
            }
            Happens::SweeperIsKilled(after) => {
                let how =
                    |disturbed| SweepHow { disturbed: Some(disturbed), ..SweepHow::default() };
                let order = |disturbed| Order::Sweep { prefix, root, how: how(disturbed) };
                return break_off(order, after);
            }
        }
        false
    }

    fn claims(&self) -> Vec<PathBytes> {
        self.begun.iter().map(|begun| bytes_of(&begun.claim)).collect()
    }

    fn look(&self) -> BTreeSet<PathBytes> {
        let there = fs::read_dir(&self.root).expect("it is a directory");
        there.map(|entry| bytes_of(&entry.expect("it can be listed").path())).collect()
    }
}

#[test]
fn the_root_is_as_the_model_has_it_after_everything_that_happens() {
    cell::enter(LAB, || check::<OnHost>(60, 5..30));
}
