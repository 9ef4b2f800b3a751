//! Which claims a command is about: their root and their prefix.

use std::path::{Path, PathBuf};

use clap::Args;
use mortmain::{Namespace, Prefix};

use crate::exit::{Exit, Failure};

/// The prefix where none is given.
const PREFIX: &str = "mortmain";

/// A root and a prefix.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// What the claims are called by: the names are PREFIX-xxxxxxxxxxxx
    #[arg(long, value_name = "PREFIX", default_value = PREFIX, value_parser = prefix)]
    pub(crate) prefix: String,
    /// The directory that they lie in [default: $TMPDIR, or /tmp]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

fn prefix(text: &str) -> Result<String, String> {
    let rule =
        "use letters, digits, `_`, `-` and `.`, at most 64, beginning with a letter or digit";
    Prefix::new(text).map(|prefix| prefix.text().into()).ok_or_else(|| rule.into())
}

impl Place {
    /// Opens it, if the platform has what is needed.
    pub(crate) fn open(&self) -> Result<Namespace, Failure> {
        if !Path::new("/proc/self/stat").exists() {
            let why = "/proc is not mounted, and without it nobody can tell who lives; mount it";
            return Err(Failure { exit: Exit::Missing, why: why.into() });
        }
        Ok(match &self.root {
            Some(root) => Namespace::at(root, &self.prefix)?,
            None => Namespace::new(&self.prefix)?,
        })
    }
}
