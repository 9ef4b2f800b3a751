//! The lab's machinery: how subjects are run, watched, killed and judged.
//!
//! The host side runs real programs on the real kernel and never leaves anything behind:
//!
//! * [`cell`] gives a program a private world (processes, mounts, scratch space) that dies with whoever asked for it;
//! * [`guard`] starts a child and ends it, with everything below it, whatever happens;
//! * [`reader`] reads what a child says, under a deadline that tells what it waited for;
//! * [`wait`] waits for the end of processes and the coming of files, by events, never by sleeping;
//! * [`processes`] tells who lives, and [`descriptors`] what this process has open;
//! * [`scratch`] hands out directories that vanish with the cell.
//!
//! What is done to the implementation there:
//!
//! * [`faults`] kills a process, or lets a call fail, at an exact position;
//! * [`series`] does both at every position of every operation, and looks at the truth after each;
//! * [`tree`] is the judge's own look at a directory;
//! * [`actor`] is a program that owns claims, to be killed;
//! * [`part`] has small programs for the library's other systems, to be started and killed;
//! * [`ground`] is a root with claims of such programs in it;
//! * [`answers`] answers some of the three questions in the place of the real prober;
//! * [`scripts`] are commands to run in them;
//! * [`intercept`] lets an adversary act between two calls of a process;
//! * [`scenario`] tells stories that anyone can write, [`soak`] some that are drawn;
//! * [`forge`] reads records, changes them and puts them back.
//!
//! The world, where the same code runs on a simulated kernel:
//!
//! * [`world`] is the simulated machine, as plain data;
//! * [`simulated`] runs programs in it, one call at a time;
//! * [`explore`] goes through every order of their steps and kills;
//! * [`conformance`] holds it against the real kernel;
//! * [`refine`] holds what runs in it against the model;
//! * [`judge`] says what must be true, [`timeline`] shows what happened, and [`diagram`] draws it.
//!
//! Invariant: `unsafe` code lives in the private module `raw` and nowhere else.

pub mod actor;
pub mod answers;
pub mod cell;
pub mod conformance;
pub mod descriptors;
pub mod diagram;
pub mod explore;
mod fate;
pub mod faults;
pub mod forge;
pub mod ground;
pub mod guard;
mod handles;
pub mod intercept;
pub mod judge;
mod lots;
mod mounts;
pub mod part;
pub mod processes;
mod raw;
pub mod reader;
pub mod refine;
pub mod scenario;
pub mod scratch;
pub mod scripts;
pub mod series;
pub mod simulated;
pub mod soak;
pub mod timeline;
pub mod tree;
pub mod wait;
pub mod world;

pub use self::raw::arena::ArenaAllocator;

#[cfg(doctest)]
#[doc = include_str!("../../docs/subjects.md")]
struct Subjects;
