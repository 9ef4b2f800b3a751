//! What must be true at the end of a story, wherever it was told.

use std::collections::BTreeSet;

use super::{Failure, Heard, Outcome};
use crate::scenario::Story;
use crate::scenario::story::Actor;

/// Fails if a command did not escape that is said to: then something sees it by now.
pub(in crate::scenario) fn check_escapes(
    story: &Story,
    heard: &Heard,
    escaped: &BTreeSet<String>,
) -> Outcome<()> {
    let missed = story.actors.iter().find(|(name, actor)| match actor {
        Actor::Command(command) => command.escapes.is_some() && !escaped.contains(*name),
        _ => false,
    });
    match missed {
        None => Ok(()),
        Some((name, _)) => {
            let title = format!("command `{name}` was to escape, and kept its claim");
            Err(heard.with(Failure::new("escape", title)))
        }
    }
}

/// What a declaration of something that is left is compared with.
pub(in crate::scenario) struct Judged<'s> {
    /// What all names of the claim have in common.
    pub(in crate::scenario) random: &'s str,
    /// The codes of the reasons that the last sweeps gave about it.
    pub(in crate::scenario) reasons: Vec<&'s str>,
}

/// Fails if any of these names is left but what the story declares. `judged` tells of the claim of a
/// server.
pub(in crate::scenario) fn check_left<'s>(
    story: &Story,
    heard: &Heard,
    mut left: BTreeSet<String>,
    judged: impl Fn(&str) -> Outcome<Judged<'s>>,
) -> Outcome<()> {
    for declared in &story.left_over {
        let Judged { random, reasons } = judged(&declared.server)?;
        let about = |failure: Failure| heard.with(failure.about(declared.span.clone()));
        let Some(name) = left.iter().find(|name| name.contains(random)).cloned() else {
            let title = format!("nothing is left of the claim of `{}`", declared.server);
            let failure = Failure::new("left-over", title).note("it was declared to stay");
            return Err(about(failure));
        };
        left.remove(&name);
        if !reasons.contains(&declared.because.as_str()) {
            let title = format!("it is left for another reason: {}", reasons.join(", "));
            return Err(about(Failure::new("left-over", title)));
        }
    }
    if left.is_empty() {
        return Ok(());
    }
    let title = "something is left after all users have ended and a clean sweep";
    let names: Vec<&str> = left.iter().map(String::as_str).collect();
    let failure = Failure::new("L1", title).note(format!("in the root: {}", names.join(", ")));
    Err(heard.with(failure))
}

/// Fails unless there are so many names.
pub(in crate::scenario) fn expect_names(names: &[String], count: u64) -> Outcome<()> {
    if names.len() as u64 == count {
        return Ok(());
    }
    let title = format!("{} names are there", names.len());
    Err(Failure::new("names", title).note(names.join(", ")))
}
