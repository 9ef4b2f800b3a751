//! Scenarios: stories that anyone can write, told with real processes.
//!
//! A scenario is a TOML file. [`read()`] makes a [`Story`] of it, or tells everything that is wrong
//! with it; [`catalogue`] finds the files; [`host`] tells a story on the real kernel, and [`runner`] lets it do so in
//! a cell.

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

pub use self::diagnostic::Diagnostic;
pub use self::needs::Need;
pub use self::read::{read, vocabulary};
pub use self::story::Story;
