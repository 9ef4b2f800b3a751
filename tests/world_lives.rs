//! The model's verdicts beside the implementation's deeds, in the world: long lives of a root, drawn.

#[path = "lives/mod.rs"]
mod lives;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use mortmain::sys::{ChildPlan, PathBytes, Pid};
use mortmain::{Proof, Removes};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::answers::Answers;
use mortmain_harness::simulated::subject::{self, sweep_with};
use mortmain_harness::simulated::{Engine as _, Live, Origin, Programs, WorldKernel};
use mortmain_harness::world::ids::ProgramId;
use mortmain_harness::world::request::{Command, Request};
use mortmain_harness::world::{Effect, Rules, World};
use mortmain_subjects::{Design as _, Mortmain};

use self::lives::{COMMANDS_MAX, Happens, Place, check, lead};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

/// More steps than anything here takes.
const STEPS_MAX: u32 = 100_000;

/// What there is to run.
struct Cast {
    programs: Programs,
    /// By the number of their commands; who gives up at once after who does not.
    owners: [[ProgramId; COMMANDS_MAX + 1]; 2],
    sweep: ProgramId,
    /// One that does not ask for the commands.
    careless_sweep: ProgramId,
}

static CAST: LazyLock<Cast> = LazyLock::new(|| {
    let mut programs = Programs::default();
    let command = programs.add("command", |world| world.idle());
    let owners = [false, true].map(|closes| {
        std::array::from_fn(|commands| {
            programs.add("owner", move |world| owner(world, command, commands, closes))
        })
    });
    let sweep = programs.add("sweep", subject::sweep::<Mortmain, _>);
    let careless_sweep = programs.add("careless sweep", |world| {
        let answers = Answers { commands: Some(Proof::Gone), ..Answers::nobody_seen() };
        sweep_with(world, answers, Removes)
    });
    Cast { programs, owners, sweep, careless_sweep }
});

fn owner(world: &WorldKernel, program: ProgramId, commands: usize, closes: bool) -> i32 {
    let Ok(mut dir) = Mortmain::create(world, &World::root_path()) else { return 1 };
    let held = world.hold(&Mortmain::path(&dir), &Mortmain::files(&dir));
    for _ in 0..commands {
        let mut command = Command { program, uses: vec![held] };
        if Mortmain::spawn(&mut dir, &mut command).is_err() {
            return 2;
        }
    }
    if !closes {
        world.idle();
    }
    world.give_up(held);
    // It is removed, or given up for the sweeps; which of the two, the root shows.
    i32::from(Mortmain::close(dir).is_err())
}

/// An owner that has begun.
struct Begun {
    pid: Pid,
    claim: PathBytes,
    commands: Vec<Pid>,
}

/// A world of its own, in which sweeps are careful, or not.
struct InWorld<const CAREFUL: bool> {
    world: World,
    engine: Live<'static>,
    processes: BTreeMap<Pid, <Live<'static> as mortmain_harness::simulated::Engine>::Process>,
    begun: Vec<Begun>,
    /// How many were started.
    started: i32,
}

impl<const CAREFUL: bool> InWorld<CAREFUL> {
    fn start(&mut self, program: ProgramId) -> Pid {
        self.started += 1;
        // Children have the numbers between.
        let pid = Pid(self.started * 1000);
        self.world.start(pid, program);
        self.processes.insert(pid, self.engine.begin(Origin::Program(program)));
        pid
    }

    /// Whoever can make a step, the first first.
    fn next(&self) -> Option<Pid> {
        let able = self
            .processes
            .iter()
            .find(|(pid, process)| self.world.enabled(**pid, self.engine.request(process)));
        able.map(|(pid, _)| *pid)
    }

    /// Lets everybody go on until nobody can, and answers what they asked for.
    fn run(&mut self) -> Vec<(Pid, Request, Effect)> {
        let told = self.run_for(STEPS_MAX);
        assert_eq!(self.next(), None, "it goes on for ever");
        told
    }

    fn run_for(&mut self, steps: u32) -> Vec<(Pid, Request, Effect)> {
        let mut told = Vec::new();
        for _ in 0..steps {
            let Some(pid) = self.next() else { break };
            told.push(self.step(pid));
            let harm = self.world.harm();
            assert!(harm.is_none(), "after {:?}: {harm:?}", told.last());
        }
        told
    }

    fn step(&mut self, pid: Pid) -> (Pid, Request, Effect) {
        let process = self.processes.get_mut(&pid).expect("it can make a step");
        let request = Request::clone(self.engine.request(process));
        assert!(!matches!(request, Request::Panicked { .. }), "{request}");
        let effect = self.world.exec(pid, &request);
        match &effect {
            Effect::Answer(response) if self.world.lives(pid) => {
                self.engine.answer(process, response.clone()).expect("it is deterministic");
            }
            Effect::Answer(_) | Effect::Ended => {}
            Effect::Born { child } => {
                let Request::Spawn { command, plan } = &request else {
                    panic!("{request} has a child");
                };
                let (command, plan) = (command.clone(), ChildPlan::clone(plan));
                let origin = Origin::Child { command, plan };
                self.processes.insert(*child, self.engine.begin(origin));
            }
            Effect::Image(program) => *process = self.engine.begin(Origin::Program(*program)),
            Effect::Forked { .. } => panic!("nobody forks"),
        }
        let world = &self.world;
        self.processes.retain(|pid, _| world.lives(*pid));
        (pid, request, effect)
    }

    fn kill(&mut self, pid: Pid) {
        if self.world.lives(pid) {
            self.world.kill(pid);
            self.processes.remove(&pid);
            self.run();
        }
    }

    fn sweep(&mut self) -> Pid {
        self.start(if CAREFUL { CAST.sweep } else { CAST.careless_sweep })
    }
}

impl<const CAREFUL: bool> Place for InWorld<CAREFUL> {
    fn fresh() -> Self {
        InWorld {
            world: World::new(Rules::default()),
            engine: Live::new(&CAST.programs),
            processes: BTreeMap::new(),
            begun: Vec::new(),
            started: 0,
        }
    }

    fn happen(&mut self, happens: &Happens) -> bool {
        let mut broken_off = false;
        match *happens {
            Happens::Begins { commands, closes } => {
                let pid = self.start(CAST.owners[usize::from(closes)][commands]);
                let told = self.run();
                let claim = told.iter().find_map(|(_, request, _)| match request {
                    Request::Hold { claim, .. } => Some(claim.clone()),
                    _ => None,
                });
                let claim = claim.expect("it made a claim");
                let children = told.iter().filter_map(|(_, _, effect)| match effect {
                    Effect::Born { child } => Some(*child),
                    _ => None,
                });
                let children: Vec<Pid> = children.collect();
                assert_eq!(children.len(), commands);
                self.begun.push(Begun { pid, claim, commands: children });
            }
            Happens::OwnerIsKilled(at) => self.kill(self.begun[at].pid),
            Happens::CommandIsKilled(at, nth) => self.kill(self.begun[at].commands[nth]),
            Happens::CreatorIsKilled(after) => {
                let [[program, ..], _] = CAST.owners;
                let pid = self.start(program);
                self.run_for(after);
                broken_off = self.next().is_some();
                self.kill(pid);
            }
            Happens::Sweeps => {
                self.sweep();
                self.run();
            }
            Happens::SweeperIsKilled(after) => {
                let pid = self.sweep();
                self.run_for(after);
                broken_off = self.next().is_some();
                self.kill(pid);
            }
        }
        broken_off
    }

    fn claims(&self) -> Vec<PathBytes> {
        self.begun.iter().map(|begun| begun.claim.clone()).collect()
    }

    fn look(&self) -> BTreeSet<PathBytes> {
        let root = World::root_path();
        let tops = self.world.tree().into_iter().filter(|path| !path.0.contains(&b'/'));
        tops.map(|name| root.join(&name.0)).collect()
    }
}

#[test]
fn the_root_is_as_the_model_has_it_after_everything_that_happens() {
    check::<InWorld<true>>(400, 1..60);
}

/// What the test above is worth.
#[test]
fn a_sweep_that_does_not_ask_for_commands_is_found() {
    let (happens, why) = lead::<InWorld<false>>(400, 1..60).expect_err("it harms");
    assert!(
        matches!(
            happens[..],
            [Happens::Begins { commands: 1, closes: true }, Happens::Sweeps]
                | [
                    Happens::Begins { commands: 1, closes: false },
                    Happens::OwnerIsKilled(0),
                    Happens::Sweeps
                ]
        ),
        "{why}\n{happens:#?}"
    );
}
