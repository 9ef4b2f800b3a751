//! What a run is doing, on standard error.
//!
//! On a terminal a line at the bottom says what is going on; elsewhere only what is
//! finished is told, a line each, unless every step is asked for. A closed standard
//! error stops nothing.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    verbose: bool,
}

impl Progress {
    /// For a run of `length` checks or mutants.
    pub(crate) fn new(length: usize, verbose: bool) -> Progress {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(length as u64);
            let style = ProgressStyle::with_template("{spinner} {pos}/{len} {elapsed} {msg}");
            // OK to go without a style of our own: the default one shows the same.
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, verbose }
    }

    /// What is going on now.
    pub(crate) fn doing(&self, what: impl Display) {
        if self.verbose {
            self.line(&what);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_string());
        }
    }

    /// What is finished, under a word that says how.
    pub(crate) fn done(&self, word: &str, what: impl Display) {
        self.line(format_args!("{word:>12} {what}"));
    }

    /// One more is finished.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn line(&self, line: impl Display) {
        let print = || {
            let _ = writeln!(anstream::stderr(), "{line}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
