//! The subcommand `cell`, by which the lab's own binary becomes a supervisor.
//!
//! It is hidden: programs write its arguments, people do not. So they are parsed here by hand, and
//! there is one reader of them beside the one writer ([`super::Entry`]).

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use super::{Reaping, Spec, UidMap, supervise, try_cell};

const USAGE: &str = "\
usage: mortmain-lab cell [--runner PID] --test PID [--uid-map as-needed|current]
                         [--reaping always|never] [--] PROGRAM [ARGUMENT…]
       mortmain-lab cell --probe";

/// Runs the subcommand with the arguments that follow its name.
///
/// Its exit code is the program's, or 128 + n for one that signal n killed. Failures of the cell
/// have the codes of [`super::CellError::code`] and a line on standard error: 77 when no cell can
/// be made here, 127 or 126 when the program is not there or does not start. 2 is wrong usage.
/// `--probe` makes a cell without a program and ends with 0, or with 77 and the reason on standard
/// output.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let code = match parse(args) {
        Err(wrong) => {
            complain(&format!("{wrong}\n{USAGE}"));
            2
        }
        Ok(Asked::Probe) => match try_cell() {
            Ok(()) => 0,
            Err(e) => {
                // A closed standard output is the asker's choice; the code still tells.
                let _written = writeln!(io::stdout(), "{e}");
                e.code()
            }
        },
        Ok(Asked::Run(spec)) => match supervise(&spec) {
            Ok(ended) => ended.code(),
            Err(e) => {
                complain(&e.to_string());
                e.code()
            }
        },
    };
    ExitCode::from(code)
}

fn complain(text: &str) {
    // There is nowhere to tell that standard error is closed.
    let _written = writeln!(io::stderr(), "mortmain-lab cell: {text}");
}

#[derive(Debug)]
enum Asked {
    Probe,
    Run(Spec),
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Asked, String> {
    let mut args = args.into_iter().peekable();
    let (mut runner, mut test) = (None, None);
    let (mut uid_map, mut reaping) = (UidMap::default(), Reaping::default());
    while let Some(option) = args.next_if(|arg| arg.as_encoded_bytes().starts_with(b"--")) {
        let name = option.to_str().ok_or_else(|| format!("unknown option {}", option.display()))?;
        let mut value = || {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            value.into_string().map_err(|v| format!("{name} cannot be {}", v.display()))
        };
        match name {
            "--" => break,
            "--probe" => {
                return match args.next() {
                    None => Ok(Asked::Probe),
                    Some(more) => Err(format!("--probe stands alone, without {}", more.display())),
                };
            }
            "--runner" => runner = Some(pid(name, &value()?)?),
            "--test" => test = Some(pid(name, &value()?)?),
            "--uid-map" => {
                uid_map = match value()?.as_str() {
                    "as-needed" => UidMap::AsNeeded,
                    "current" => UidMap::Current,
                    other => return Err(format!("{name} cannot be {other}")),
                }
            }
            "--reaping" => {
                let word = value()?;
                reaping =
                    Reaping::from_word(&word).ok_or_else(|| format!("{name} cannot be {word}"))?;
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    let test = test.ok_or("--test is missing")?;
    let program = args.next().ok_or("the program is missing")?;
    Ok(Asked::Run(Spec { runner, test, uid_map, reaping, program, args: args.collect() }))
}

fn pid(option: &str, value: &str) -> Result<i32, String> {
    match value.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(format!("{option} cannot be {value}: it is no pid")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Asked, String> {
        parse(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn all_options_are_understood_and_the_program_keeps_its_own() {
        let asked = parsed(
            "--runner 7 --test 8 --uid-map current --reaping never prog --test 9 -- --probe",
        );
        let Ok(Asked::Run(spec)) = asked else { panic!("{asked:?}") };
        assert_eq!(
            (spec.runner, spec.test, spec.uid_map, spec.reaping),
            (Some(7), 8, UidMap::Current, Reaping::Never)
        );
        assert_eq!(spec.program, "prog");
        assert_eq!(spec.args, ["--test", "9", "--", "--probe"]);
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let asked = parsed("--test 8 -- --prog");
        let Ok(Asked::Run(spec)) = asked else { panic!("{asked:?}") };
        assert_eq!(
            (spec.runner, spec.uid_map, spec.reaping),
            (None, UidMap::AsNeeded, Reaping::Always)
        );
        assert_eq!(spec.program, "--prog");
    }

    #[test]
    fn wrong_usage_is_told_pointedly() {
        let wrong = [
            ("", "--test is missing"),
            ("prog", "--test is missing"),
            ("--test 8", "the program is missing"),
            ("--test", "--test needs a value"),
            ("--test 0 prog", "--test cannot be 0: it is no pid"),
            ("--runner -1 --test 8 prog", "--runner cannot be -1: it is no pid"),
            ("--test x prog", "--test cannot be x: it is no pid"),
            ("--test 8 --uid-map root prog", "--uid-map cannot be root"),
            ("--test 8 --reaping late prog", "--reaping cannot be late"),
            ("--tset 8 prog", "unknown option --tset"),
            ("--probe prog", "--probe stands alone, without prog"),
        ];
        for (words, why) in wrong {
            assert_eq!(parsed(words).err().as_deref(), Some(why), "{words}");
        }
    }
}
