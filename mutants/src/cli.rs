//! The command line: options, their defaults, and the exit codes that its help tells.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use glob::Pattern;

use crate::partition::Partition;
use crate::suite::{Kind, Suite};

const EXIT_CODES: &str = "\
Exit codes:
   0  every check that was asked for is proved, and every rule of a story shown
   1  a check is not proved, or a rule of a story not shown
   2  wrong usage
   3  not decided: a time-out or an interruption
   4  no check, no story, or no test, matched
   5  the unchanged workspace does not pass its tests
   7  comments and catalogue do not fit together
  70  internal error
  77  the platform cannot confine the tests, so none was run";

const MUTATE_EXIT_CODES: &str = "\
Exit codes:
   0  a test notices every mutant, or it is declared as equivalent
   1  a mutant that no test notices
   2  wrong usage
   3  not decided: an interruption, or tests too slow for their limits
   4  no mutant, or no test, matched
   5  the unchanged workspace does not pass its tests
   7  a declared equivalent is none, or the declarations fit no mutants
  70  internal error
  77  the platform cannot confine the tests, so none was run";

/// Takes safety checks out of a copy of a workspace and looks for tests that notice
#[derive(Debug, Parser)]
#[command(name = "mortmain-mutants", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Put all removals into one build, switch on each in turn, and run the test that noticed the
    /// last time; look for another where it does not. Let each story fail for the rules that it
    /// protects
    #[command(after_help = EXIT_CODES)]
    Prove(ProveOptions),
    /// Change a package as a careless hand would, one place at a time, and look for tests that notice
    ///
    /// Tests are those of libraries, programs and test targets. Examples in the documentation are not run.
    #[command(after_help = MUTATE_EXIT_CODES, args_conflicts_with_subcommands = true)]
    Mutate(Box<MutateOptions>),
    /// Run a program confined (used by this program on itself)
    #[command(hide = true, name = crate::confine::SUBCOMMAND)]
    Confined(ConfinedOrder),
    /// Check from the inside that a confinement holds (used by this program on itself)
    #[command(hide = true)]
    Probe(ProbeOrder),
}

#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// Only this check; may be given more than once
    #[arg(long = "check", value_name = "ID", help_heading = "Selection")]
    pub(crate) checks: Vec<String>,

    /// Only the checks of this rule, such as l3; may be given more than once
    #[arg(long = "rule", value_name = "RULE", help_heading = "Selection")]
    pub(crate) rules: Vec<String>,

    /// Print the checks and how each would be removed, and run nothing
    #[arg(long, help_heading = "Selection")]
    pub(crate) list: bool,

    /// Stop at the first check that is not proved, or rule of a story that is not shown; without it
    /// all are tried
    #[arg(long, help_heading = "Execution")]
    pub(crate) fail_fast: bool,

    #[command(flatten)]
    pub(crate) shared: Shared,
}

/// What every command can be told.
#[derive(Args, Clone, Debug)]
pub(crate) struct Shared {
    /// Manifest of the workspace [default: the one around the current directory]
    #[arg(long, value_name = "PATH", help_heading = "Selection")]
    pub(crate) manifest_path: Option<PathBuf>,

    /// Only tests of this kind; may be given more than once
    #[arg(long = "kind", value_name = "KIND", help_heading = "Selection")]
    pub(crate) kinds: Vec<Kind>,

    /// Only tests of this test binary; may be given more than once
    #[arg(long = "binary", value_name = "NAME", help_heading = "Selection")]
    pub(crate) binaries: Vec<String>,

    /// Build and run the tests of this package only; may be given more than once
    #[arg(long = "test-package", value_name = "NAME", help_heading = "Selection")]
    pub(crate) test_packages: Vec<String>,

    /// Longest time for one run of tests; quick ones get less, about ten times what they took
    /// unchanged, and slow ones of a search twice that
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = parse_duration, help_heading = "Execution")]
    pub(crate) timeout: Duration,

    /// Compiler processes at once, checks or mutants that are tried at once, and test threads of a suite
    #[arg(short, long, value_name = "N", default_value_t = default_jobs(), value_parser = clap::value_parser!(u16).range(1..), help_heading = "Execution")]
    pub(crate) jobs: u16,

    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    pub(crate) die_with_parent: bool,

    /// Print one JSON object per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Say each step as it begins, also without a terminal
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,
}

impl Shared {
    /// Whether a suite is among those that are asked for.
    pub(crate) fn selects(&self, suite: &Suite) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&suite.kind))
            && (self.binaries.is_empty() || self.binaries.contains(&suite.binary.name))
    }
}

/// What of `mutate` is about the mutants of operators, and has no meaning for named checks.
const OF_OPERATORS: [&str; 8] =
    ["packages", "files", "functions", "mutants", "missed", "partition", "quick", "matrix"];

#[derive(Args, Debug)]
pub(crate) struct MutateOptions {
    #[command(subcommand)]
    pub(crate) command: Option<MutateCommand>,

    /// Prove this named check, as `prove` does; may be given more than once
    #[arg(long = "check", value_name = "ID", conflicts_with_all = OF_OPERATORS, help_heading = "Selection")]
    pub(crate) checks: Vec<String>,

    /// Prove the named checks of this rule, such as l3; may be given more than once
    #[arg(long = "rule", value_name = "RULE", conflicts_with_all = OF_OPERATORS, help_heading = "Selection")]
    pub(crate) rules: Vec<String>,

    /// Mutate this package; may be given more than once [default: as cargo's; with --missed,
    /// those of the last run]
    #[arg(short, long = "package", value_name = "NAME", help_heading = "Selection")]
    pub(crate) packages: Vec<String>,

    /// Only mutants of files whose path from the workspace matches; may be given more than once
    #[arg(long = "file", value_name = "GLOB", help_heading = "Selection")]
    pub(crate) files: Vec<Pattern>,

    /// Only mutants of functions whose path has this in it; may be given more than once
    #[arg(long = "function", value_name = "TEXT", help_heading = "Selection")]
    pub(crate) functions: Vec<String>,

    /// Only this mutant; may be given more than once
    #[arg(long = "mutant", value_name = "ID", help_heading = "Selection")]
    pub(crate) mutants: Vec<String>,

    /// Only those that no test has noticed the last time that they were tried
    #[arg(long, help_heading = "Selection")]
    pub(crate) missed: bool,

    /// Only every N-th, from the K-th on: slice:K/N
    #[arg(long, value_name = "slice:K/N", help_heading = "Selection")]
    pub(crate) partition: Option<Partition>,

    /// Print the mutants and run nothing
    #[arg(long, help_heading = "Selection")]
    pub(crate) list: bool,

    /// Leave out tests that usually take longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Execution")]
    pub(crate) quick: Option<Duration>,

    /// Run every test that comes by a mutant, also when one has noticed it
    #[arg(long, help_heading = "Execution")]
    pub(crate) matrix: bool,

    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MutateCommand {
    /// Print a mutant, what became of it, and the tests that come by it
    Show(ShowOptions),
    /// Compare the last run with one of cargo-mutants on the same package
    Compare(CompareOptions),
}

#[derive(Args, Debug)]
pub(crate) struct CompareOptions {
    /// The directory mutants.out that it has made
    pub(crate) directory: PathBuf,

    /// Only mutants of files whose path from the workspace matches, if it was asked for no others
    #[arg(long = "file", value_name = "GLOB")]
    pub(crate) files: Vec<Pattern>,

    /// Manifest of the workspace [default: the one around the current directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowOptions {
    /// As `mutate` and `mutate --list` print it
    pub(crate) id: String,

    /// Manifest of the workspace [default: the one around the current directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProveOptions {
    /// Only this story (the path in scenarios/ without .toml), and no check; may be given more than
    /// once [default: all stories, unless checks or tests are selected]
    #[arg(long = "story", value_name = "NAME", help_heading = "Selection")]
    pub(crate) stories: Vec<String>,

    /// Note what notices in mutants/killed-by.toml and mutants/stories.toml
    #[arg(long, help_heading = "Output")]
    pub(crate) bless: bool,

    #[command(flatten)]
    pub(crate) common: CheckOptions,
}

impl ProveOptions {
    /// Whether stories are told: those that are named, or all of them beside all checks.
    pub(crate) fn tells_stories(&self) -> bool {
        let CheckOptions { checks, rules, shared: Shared { kinds, binaries, .. }, .. } =
            &self.common;
        let all = checks.is_empty() && rules.is_empty() && kinds.is_empty() && binaries.is_empty();
        all || !self.stories.is_empty()
    }
}

/// A program and the confinement it is to run in.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfinedOrder {
    /// Make everything read-only
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Stays visible where a directory above it is covered
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Vec<PathBuf>,

    /// Gets an empty directory in memory over it
    #[arg(long, value_name = "DIR")]
    pub(crate) cover: Vec<PathBuf>,

    /// Is ended when it has more processes than this at once
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) processes_max: usize,

    /// Gets this file, with the line that is given, in a directory that has nothing else
    #[arg(long, value_name = "FILE", requires = "line")]
    pub(crate) file: Option<PathBuf>,

    /// What is in the file
    #[arg(long, value_name = "TEXT", requires = "file")]
    pub(crate) line: Option<String>,

    #[arg(last = true, required = true)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ProbeOrder {
    /// A directory in which nothing can be created
    #[arg(long, value_name = "DIR")]
    pub(crate) read_only: Vec<PathBuf>,

    /// A directory in which a file can be created
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() {
        return Err("must be longer than nothing".to_owned());
    }
    Ok(duration)
}

fn default_jobs() -> u16 {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    u16::try_from(cores).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_is_about_operators_is_refused_for_a_named_check() {
        for option in [
            "--package=a",
            "--file=a",
            "--function=a",
            "--mutant=a",
            "--missed",
            "--partition=slice:1/2",
            "--quick=1s",
            "--matrix",
        ] {
            for check in ["--check=a1-x", "--rule=a1"] {
                let line = ["mortmain-mutants", "mutate", check, option];
                let error = Arguments::try_parse_from(line).unwrap_err();
                assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{option}");
            }
        }
        for option in ["--kind=unit", "--test-package=a"] {
            let line = ["mortmain-mutants", "mutate", "--check=a1-x", option, "--list"];
            assert!(Arguments::try_parse_from(line).is_ok(), "{option}");
        }
    }

    #[test]
    fn a_timeout_of_nothing_is_refused() {
        let line = ["mortmain-mutants", "prove", "--timeout", "0s"];
        let error = Arguments::try_parse_from(line).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation);
    }
}
