//! Scenarios: stories that anyone can write, told with real processes and in the world.
//!
//! A scenario is a TOML file. [`read()`] makes a [`Story`] of it, or tells everything that is wrong
//! with it; [`catalogue`] finds the files. There are two tellers: [`host`] tells a story on the real
//! kernel, and [`runner`] lets it do so in a cell; [`world`] tells it in the simulated one.

pub mod catalogue;
pub mod diagnostic;
mod each;
mod fields;
pub mod host;
mod needs;
mod read;
mod reasons;
pub mod runner;
pub mod story;
pub mod telling;
pub mod world;

pub use self::diagnostic::Diagnostic;
pub use self::needs::Need;
pub use self::read::{read, vocabulary};
pub use self::story::Story;
