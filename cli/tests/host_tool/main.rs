//! The tool as its users meet it: real commands, real signals, a real terminal, and real deaths.

mod list;
mod run;
mod signals;
mod support;
mod survival;
mod terminal;
