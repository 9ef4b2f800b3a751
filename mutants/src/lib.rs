//! Proves that the safety checks of a workspace are load-bearing: each is taken
//! out, in a copy, and a test must fail because of it.
//!
//! A check stands in the source under a comment `// CHECK(rule-slug): why` (module
//! `checks`). Its removal is the deletion of what the comment heads, or an edit that
//! `mutants/checks.toml` gives (`catalogue`). The command `prove` puts all removals into one build of
//! a copy of the workspace (`session`, `tree`, `builder`), each behind a switch (`schema`), and asks
//! first the test that noticed the last time (`killed_by`), in a build of such tests alone (`targets`),
//! then others (`run`). In the same build each story has to fail for every rule that it says it
//! protects (`stories`). Several are asked at once (`abreast`).
//!
//! The command `mutate` goes beyond the named checks: it changes whole packages by the usual operators
//! (`operators`, `mutant`), each change behind a switch of its own (`render`, `runtime`), without
//! those that the compiler refuses (`switched`). It records which test comes by which mutant
//! (`record`, `reach`), and shows each mutant to those tests only (`hunt`). Mutants that no test can
//! notice are declared (`equivalents`).
//!
//! Invariants:
//! * The source tree is only read, but for the two files that `prove --bless` writes in `mutants/`.
//!   Everything else is written below `mutants/` in the target directory.
//! * No test of a mutated build runs unconfined (`confine`): a program that deletes
//!   directories and has lost a safety check is dangerous. Where there is no
//!   confinement, nothing runs.
//! * Nothing outlives the command, however it ends.
//! * A check counts as proved, and a rule of a story as shown, only if a test fails twice with the
//!   removal and passed without it. A time-out and a build that fails prove nothing. A mutant of an
//!   operator is noticed as well by a test that does not end because of it.
//! * Nothing is added to the product's sources or manifests, and stable Rust is enough.
//!
//! What it deliberately does not do: it runs no examples of the documentation, it neither changes
//! nor tests itself, and it does not know which of its findings matter.

mod abreast;
mod builder;
mod catalogue;
mod checks;
mod cli;
mod compare;
mod confine;
mod document;
mod edit;
mod equivalents;
mod exit;
mod hash;
mod hunt;
mod interrupt;
mod killed_by;
mod modules;
mod mutant;
mod mutate;
mod operators;
mod partition;
mod process;
mod progress;
mod prove;
mod raw;
mod reach;
mod record;
mod render;
mod report;
mod run;
mod runtime;
mod schema;
mod session;
mod state;
mod stories;
mod suite;
mod survey;
mod switched;
mod targets;
mod tree;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if let Some(code) = builder::as_compiler_wrapper() {
        return code;
    }
    let arguments = cli::Arguments::parse();
    match arguments.command {
        cli::Command::Prove(options) => exit::report(prove::prove(&options)),
        cli::Command::Mutate(options) => exit::report(mutate::mutate(&options)),
        cli::Command::Confined(order) => confine::main(&order),
        cli::Command::Probe(order) => confine::probe_main(&order),
    }
}
