//! The tool, `mortmain`: its arguments, and what it does for each.

mod adopt;
mod age;
mod exit;
mod job;
mod list;
mod output;
mod place;
mod process;
mod run;
mod size;
mod stray;
mod sweep;
mod table;
mod terminal;
mod verdict;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::{Exit, Failure};

/// Runs anything in a temporary directory that is reclaimed safely after a SIGKILL.
///
/// A directory that this tool makes is a claim: it is removed when its command is done, and where
/// the tool itself was killed, by the next run. But not before the last process of the command has
/// ended, and never by its age.
#[derive(Parser, Debug)]
#[command(name = "mortmain", version, arg_required_else_help = true)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", exit::TABLE))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  mortmain run -- cargo nextest run
  mortmain run -- pytest
  mortmain run -- npm test
  mortmain list
  mortmain sweep --dry-run
  mortmain adopt 'pytest-*'";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a command with its TMPDIR in a claim, sweeping beside it
    Run(run::Options),
    /// Tell every claim, its owner, and whether a sweep would remove it
    List(list::Options),
    /// Remove the claims that nobody uses any more
    Sweep(sweep::Options),
    /// Show directories that are no claims and who uses them, and remove those that are named
    Adopt(adopt::Options),
    /// Print a script that completes this tool's arguments in a shell
    #[command(after_help = "\
Examples:
  mortmain completions bash > ~/.local/share/bash-completion/completions/mortmain
  mortmain completions fish > ~/.config/fish/completions/mortmain.fish
  mortmain completions zsh > \"${fpath[1]}/_mortmain\"")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page, of the tool or of one of its commands
    #[command(after_help = "\
Examples:
  mortmain man | man -l -
  mortmain man run > mortmain-run.1")]
    Man {
        /// The command, such as `run`
        #[arg(value_parser = PAGES.map(|(command, _)| command))]
        command: Option<String>,
    },
}

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    // What the tool starts itself as; people do not.
    if args.next().is_some_and(|role| role == terminal::ROLE) {
        return terminal::exec_in_foreground(args).into();
    }
    match run(&Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if failure.exit != Exit::Done {
                output::error(&failure);
            }
            failure.exit.into()
        }
    }
}

fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => run::run(options),
        Command::List(options) => list::run(options),
        Command::Sweep(options) => sweep::run(options),
        Command::Adopt(options) => adopt::run(options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "mortmain", &mut script);
            printed(&script)
        }
        Command::Man { command } => printed(&page(command.as_deref())?),
    }
}

/// The commands that have a page of their own, and the name that `man` finds it by.
const PAGES: [(&str, &str); 4] = [
    ("run", "mortmain-run"),
    ("list", "mortmain-list"),
    ("sweep", "mortmain-sweep"),
    ("adopt", "mortmain-adopt"),
];

/// The manual page of the tool or of a command, in roff.
fn page(command: Option<&str>) -> io::Result<Vec<u8>> {
    let mut whole = Cli::command();
    whole.build();
    let named = PAGES.into_iter().find(|(name, _)| Some(*name) == command);
    let found = named.and_then(|(name, title)| Some((whole.find_subcommand(name)?, title)));
    let of = match found {
        Some((command, title)) => command.clone().name(title).display_name(title),
        None => whole,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(of).render(&mut page)?;
    Ok(page)
}

fn printed(bytes: &[u8]) -> Result<Exit, Failure> {
    io::stdout().lock().write_all(bytes)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_as_it_was() {
        let mut whole = Cli::command().term_width(100);
        whole.build();
        for name in ["run", "list", "sweep", "adopt", "completions", "man"] {
            let command = whole.find_subcommand_mut(name).expect("it is there");
            insta::assert_snapshot!(name, command.render_long_help().to_string());
        }
        insta::assert_snapshot!("mortmain", whole.render_long_help().to_string());
    }

    #[test]
    fn every_command_has_examples_and_exit_codes_in_its_help() {
        let mut whole = Cli::command();
        for name in ["run", "list", "sweep", "adopt"] {
            let command = whole.find_subcommand_mut(name).expect("it is there");
            let help = command.render_long_help().to_string();
            for part in ["Examples:", "Exit codes:"] {
                assert!(help.contains(part), "{name}:\n{help}");
            }
        }
    }

    #[test]
    fn every_page_is_roff_with_its_name() {
        for (command, title) in [(None, ".TH mortmain 1"), (Some("run"), ".TH mortmain-run 1")] {
            let page = page(command).expect("memory takes it");
            let page = String::from_utf8(page).expect("it is text");
            assert!(page.contains(title), "{page}");
            assert!(page.contains("Exit codes:"), "{page}");
        }
    }
}
