//! The protocol as a pure model: what may happen in which order, what is true after each step,
//! and what must never be.
//!
//! It is written from `docs/protocol.md` and knows nothing of the implementation, nor the
//! implementation of it. So it can be wrong where the page is wrong and right where the code is
//! not. It has no clock, no input or output and no order of chance in it.
//!
//! * [`proof`] has the three questions, their answers, and the table of 27;
//! * [`state`] is what is true at one moment; a step from it is a system call, a look that is made
//!   of many, or something that befalls somebody;
//! * [`truth`] has the properties, judged from who lives, never from what a probe said;
//! * [`rules`] are what a run can be without, to see what it is for;
//! * [`setting`] bounds what runs and what goes wrong;
//! * [`catalogue`] has bounds in which each rule is seen, and [`page()`] what they show;
//! * [`explore`] goes through every order, breadth first.

mod act;
mod bits;
pub mod catalogue;
pub mod explore;
mod model;
mod page;
pub mod proof;
pub mod rules;
mod run;
pub mod setting;
pub mod state;
mod steps;
#[cfg(test)]
mod tests;
pub mod truth;

pub use self::act::{Act, Actor, Step};
pub use self::bits::Few;
pub use self::model::{Memo, Model, Searched, Verdict};
pub use self::page::{NoPage, page};
pub use self::run::Run;
pub use self::steps::Move;
