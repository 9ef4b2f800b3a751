//! `mortmain-lab mutate`: hands over to the program that mutates.
//!
//! That is a package of its own, with a parser of Rust in it, which nobody should have to build for the
//! rest of the lab. Cargo builds it, and then becomes it: signals, output and exit code are its own.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What it is told; --help for its own options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    options: Vec<OsString>,
}

/// Becomes the program; comes back only when it cannot be started.
pub(crate) fn run(options: &Options) -> io::Error {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--locked", "--release", "--package", "mortmain-mutants", "--", "mutate"]);
    let error = command.args(&options.options).exec();
    io::Error::new(error.kind(), format!("cannot start cargo, which builds the runner: {error}"))
}
