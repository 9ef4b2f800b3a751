//! The tool as its users meet it: real commands, real signals, a real terminal, and real deaths.

mod adopt;
mod list;
mod run;
mod seat;
mod signals;
mod support;
mod survival;
mod terminal;
