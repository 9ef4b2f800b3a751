//! What a sweep would do with every claim of the root: the answer of `list_claims`.
//!
//! It decides nothing: verdicts and sentences are the library's.

use mortmain::{Namespace, Outcome, Report};
use rmcp::schemars::JsonSchema;
use serde::Serialize;

/// All claims of the server's prefix in its root, its own among them.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Listed {
    /// The directory that they lie in.
    root: String,
    claims: Vec<Line>,
    /// How many belong to other users, and are not looked at.
    foreign: u64,
    /// Why the root could not be looked at, or not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

#[derive(Serialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
struct Line {
    name: String,
    verdict: Verdict,
    /// The verdict with its reason.
    sentence: String,
}

/// What would become of a claim.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// Nobody uses it: the next sweep removes it.
    Remove,
    /// It is in use, or it cannot be told that it is not.
    Keep,
    /// Nobody uses it, and something in it forbids its removal.
    Blocked,
}

/// Looks at every claim, and removes nothing.
pub(crate) fn list(namespace: &Namespace) -> Listed {
    let mut report = namespace.dry_run();
    report.entries.sort_by(|a, b| a.name.cmp(&b.name));
    let lines = report.entries.iter().map(|entry| Line {
        name: entry.name.to_string(),
        verdict: match entry.outcome {
            Outcome::WouldRemove(_) => Verdict::Remove,
            Outcome::Blocked(_) | Outcome::Partial(_) => Verdict::Blocked,
            // What is not known here, it may be in use.
            _ => Verdict::Keep,
        },
        sentence: entry.outcome.to_string(),
    });
    Listed {
        root: report.root.to_string(),
        claims: lines.collect(),
        foreign: report.foreign,
        trouble: trouble(&report),
    }
}

fn trouble(report: &Report) -> Option<String> {
    report.trouble.as_ref().map(|met| format!("{} failed: {}", met.what, met.errno))
}
