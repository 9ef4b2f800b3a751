//! `mortmain adopt`: directories that are no claims, who uses them, and the removal of those that
//! are named.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use anstyle::AnsiColor;
use clap::Args;
use glob::{MatchOptions, Pattern};
use mortmain::sys::Name;
use mortmain::{Error, ErrorKind, Namespace, Outcome, Stray, Strays};

use crate::exit::{Exit, Failure, TABLE};
use crate::output::{Output, error, note, styled, warn};
use crate::place::Place;
use crate::stray::{Look, Row, print_json, print_table, tell};
use crate::verdict::Word;

const EXAMPLES: &str = "\
Examples:
  mortmain adopt 'pytest-*' '.tmp*' --size      what there is of such names, and who uses it
  mortmain adopt 'build-*' --interactive        the same, and be asked for each that nobody uses
  mortmain adopt --remove build-1f3a build-77c2 remove these two, if nobody uses them now
  mortmain adopt 'npm-*' --root /var/tmp --json elsewhere, for a program to read

This is for what other programs left before there were claims, or beside them. Nobody recorded who
uses such a directory, so no sweep touches it, and nothing is removed here but what you name. What
is in use stays, also when it is named: a process that is seen in it, by its working or root
directory, its program, a descriptor, a map or a mount; a lock on it, or on a directory in it; a
mount or another user's directory in it. All of that is asked once more at the moment of removal,
and after the directory has lost its name. How old it is proves nothing, and is told for you alone.

A pattern is of one name: `*` is any text, `?` any character, `[a-z]` one of these, `[!a-z]` none of
these. A name that begins with a point is matched by a pattern that does. Claims, of whatever
program, are never matched: `list` and `sweep` are for those.

A process is recognised by the names in the paths of what it uses. A directory with a common name,
such as `lib`, is therefore kept by who uses another one of that name: rename it, and ask again.
A removal that is killed half-way is finished by `mortmain sweep` (with the same --prefix).

Verdicts:
  unused    no process is seen to use it
  keep      it is in use, or it cannot be told that it is not
  blocked   something on it or in it forbids its removal
  removed, partial
            what became of one that was named";

/// Which directories, and what to do about them.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{TABLE}"))]
pub(crate) struct Options {
    /// Show the directories with such a name; remove none
    #[arg(value_name = "PATTERN", value_parser = pattern, required_unless_present = "remove")]
    patterns: Vec<Pattern>,
    /// Remove the directories of exactly these names
    #[arg(long, value_name = "NAME", num_args = 1.., conflicts_with = "patterns")]
    remove: Vec<OsString>,
    /// Ask for each that no process is seen to use whether to remove it
    #[arg(short, long, conflicts_with_all = ["remove", "json"])]
    interactive: bool,
    /// Add up the room that each takes
    #[arg(long)]
    size: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    if text.contains('/') {
        return Err("a pattern is of one name; give the directory by --root".into());
    }
    let parsed = Pattern::new(text);
    // Of paths it would be a word; the only other thing that can be wrong is a set.
    if text == "**" || parsed.is_err() && text.contains("**") {
        return Err("`*` alone is any text, and `**` nothing more; write it once".into());
    }
    parsed.map_err(|wrong| {
        let at = wrong.pos + 1;
        format!("the `[` at character {at} has no `]`; write `[[]` for the character itself")
    })
}

/// As in a shell, a point in front is meant only where it is written.
const AS_A_SHELL: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Shows, asks or removes.
pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    options.output.begin();
    if options.interactive && !io::stdin().is_terminal() {
        let why = "there is no terminal to ask at; name what is to go by --remove".into();
        return Err(Failure { exit: Exit::Usage, why });
    }
    let namespace = options.place.open()?;
    if options.remove.is_empty() { options.show(&namespace) } else { options.remove(&namespace) }
}

impl Options {
    fn wanted(&self, name: &OsStr) -> bool {
        // What is no text can be shown, and told by `?` and `*`.
        let text = name.to_string_lossy();
        self.patterns.iter().any(|pattern| pattern.matches_with(&text, AS_A_SHELL))
    }

    fn show(&self, namespace: &Namespace) -> Result<Exit, Failure> {
        let strays = namespace.strays(|name| self.wanted(name))?;
        let looks = strays.entries.iter().map(|stray| self.look(namespace, &stray.name));
        self.print(&strays, looks.collect())?;
        let unused = strays.entries.iter().filter(|stray| is_unused(stray));
        if self.interactive {
            return ask(namespace, unused);
        }
        if !self.output.json() && unused.count() > 0 {
            note("nothing was removed; name what is to go by --remove NAME…, or use --interactive");
        }
        Ok(Exit::Done)
    }

    fn remove(&self, namespace: &Namespace) -> Result<Exit, Failure> {
        // What there is to say of the root, also where nothing comes of any name.
        let mut strays = namespace.strays(|_| false)?;
        let mut looks = Vec::new();
        let exit = each(&self.remove, &mut strays, |name| {
            // Of what is removed nobody can say it any more.
            let look = Name::new(name.as_bytes()).map(|name| self.look(namespace, &name));
            let one = namespace.adopt(name)?;
            looks.extend(look);
            Ok(one)
        });
        if self.output.json() || !strays.entries.is_empty() {
            self.print(&strays, looks)?;
        }
        Ok(exit)
    }

    fn look(&self, namespace: &Namespace, name: &Name) -> Look {
        Look::at(&namespace.root().join(OsStr::from_bytes(name.bytes())), self.size)
    }

    /// Prints what became of each, with what was seen of it.
    fn print(&self, strays: &Strays, looks: Vec<Look>) -> io::Result<()> {
        let rows = strays.entries.iter().zip(looks).map(|(stray, look)| Row { stray, look });
        let rows: Vec<Row<'_>> = rows.collect();
        let mut out = anstream::stdout().lock();
        if self.output.json() {
            return print_json(&mut out, strays, &rows, self.remove.is_empty());
        }
        if rows.is_empty() {
            let root = &strays.root;
            note(format_args!("there is no such directory in {root} that is no claim"));
        } else {
            print_table(&mut out, &rows, self.size)?;
        }
        tell(strays);
        Ok(())
    }
}

/// Removes one after the other, and puts what came of it to the rest. What goes wrong with one is
/// told and stops no other.
fn each(
    names: &[OsString],
    whole: &mut Strays,
    mut adopt: impl FnMut(&OsStr) -> Result<Strays, Error>,
) -> Exit {
    let mut exit = Exit::Done;
    for name in names {
        match adopt(name) {
            Ok(one) => {
                whole.unread = whole.unread.max(one.unread);
                whole.entries.extend(one.entries);
            }
            Err(wrong) => {
                let failure = Failure::from(wrong);
                error(&failure);
                // A name of nothing is the least of it.
                if matches!(exit, Exit::Done | Exit::Usage) {
                    exit = failure.exit;
                }
            }
        }
    }
    exit
}

fn is_unused(stray: &Stray) -> bool {
    matches!(stray.outcome, Outcome::WouldRemove(_))
}

/// Asks for each whether it is to go.
fn ask<'s>(
    namespace: &Namespace,
    unused: impl Iterator<Item = &'s Stray>,
) -> Result<Exit, Failure> {
    for stray in unused {
        match answer(stray)? {
            Answer::Keep => {}
            Answer::Remove => match namespace.adopt(OsStr::from_bytes(stray.name.bytes())) {
                Ok(done) => {
                    let mut out = anstream::stdout().lock();
                    for stray in &done.entries {
                        let style = Word::of(&stray.outcome).style();
                        writeln!(out, "{}", styled(style, &stray.to_string()))?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::NoSuchStray => warn(error),
                Err(error) => return Err(error.into()),
            },
            Answer::Enough => break,
        }
    }
    Ok(Exit::Done)
}

/// What somebody says of a directory.
enum Answer {
    Remove,
    Keep,
    Enough,
}

fn answer(stray: &Stray) -> io::Result<Answer> {
    let question = styled(AnsiColor::Yellow.on_default(), &format!("remove `{}`?", stray.name));
    write!(anstream::stderr(), "{question} [y/N/q] ")?;
    let mut line = String::new();
    let ended = io::stdin().read_line(&mut line)? == 0;
    if ended {
        // What is said next begins a line.
        writeln!(anstream::stderr())?;
    }
    Ok(match line.trim() {
        _ if ended => Answer::Enough,
        "y" | "Y" | "yes" => Answer::Remove,
        "q" | "Q" | "quit" => Answer::Enough,
        _ => Answer::Keep,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_one_name_and_says_what_is_wrong_with_it() {
        for (text, names, others) in [
            ("pytest-*", &["pytest-", "pytest-of-me"][..], &["xpytest-1", "Pytest-1"][..]),
            (".tmp??", &[".tmpab"], &[".tmp", "tmpab"]),
            ("*", &["a", "a\u{fffd}"], &[".hidden"]),
            ("[!a-c]x", &["dx"], &["ax"]),
        ] {
            let pattern = pattern(text).expect("it is one");
            let matches = |name: &&str| pattern.matches_with(name, AS_A_SHELL);
            assert!(names.iter().all(matches), "{text}");
            assert!(!others.iter().any(matches), "{text}");
        }
        for (text, why) in [
            ("a/b", "a pattern is of one name; give the directory by --root"),
            ("ab[c", "the `[` at character 3 has no `]`; write `[[]` for the character itself"),
            ("**", "`*` alone is any text, and `**` nothing more; write it once"),
            ("a***", "`*` alone is any text, and `**` nothing more; write it once"),
        ] {
            assert_eq!(pattern(text).expect_err("it is none"), why);
        }
        assert!(pattern("[**]x").expect("a set may name it twice").matches("*x"));
    }

    #[test]
    fn what_goes_wrong_with_one_name_is_not_the_end_of_the_others() {
        let nothing = Strays {
            root: b"/nowhere"[..].into(),
            entries: Vec::new(),
            claims: 0,
            foreign: 0,
            unread: 0,
            partial_view: false,
        };
        let done = |name: &OsStr| {
            let name = Name::new(name.as_bytes()).expect("it is a name");
            let outcome = Outcome::Partial(Vec::new());
            let entries = vec![Stray { name, outcome, users: Vec::new() }];
            Strays { entries, ..nothing.clone() }
        };
        let usage = Namespace::at("/dev/null", "p").expect_err("it is no directory");
        let failed = Namespace::at("n".repeat(256), "p").expect_err("no name is so long");
        for (names, told, code) in [
            (&["a", "fails", "b"][..], 2, Exit::Failed),
            (&["a", "nothing", "b"], 2, Exit::Usage),
            (&["fails", "nothing"], 0, Exit::Failed),
            (&["a"], 1, Exit::Done),
        ] {
            let names: Vec<OsString> = names.iter().map(OsString::from).collect();
            let mut whole = nothing.clone();
            let exit = each(&names, &mut whole, |name| match name.to_str() {
                Some("fails") => Err(failed.clone()),
                Some("nothing") => Err(usage.clone()),
                _ => Ok(done(name)),
            });
            assert_eq!((whole.entries.len(), exit), (told, code), "{names:?}");
        }
    }
}
