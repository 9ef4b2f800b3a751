//! A test that sees the mutants of another process, which has no environment.

use std::process::Command;

#[test]
fn empty_names_are_left_out() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operators"));
    let output = command.args(["a", "", "b"]).env_clear().output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a\nb\n");
}
