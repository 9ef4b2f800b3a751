//! The command `mortmain-mutants`; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    mortmain_mutants::main()
}
