//! The tool as its users meet it: real commands, real signals, a real terminal, and real deaths.

mod adopt;
mod chance;
mod list;
mod run;
mod seat;
mod signals;
mod suites;
mod support;
mod survival;
mod terminal;
