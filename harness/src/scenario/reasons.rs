//! The reasons by which a sweep keeps or removes, by their codes.
//!
//! A test compares them with those that the library pins.

/// The codes of evidence.
pub(super) const EVIDENCE: [&str; 40] = [
    "lease-free",
    "lease-held",
    "lease-unclear",
    "unlisted-file-system",
    "other-file-system",
    "owner-runs",
    "owner-ended",
    "owner-elsewhere",
    "no-owner",
    "released",
    "owner-missing",
    "owner-unreadable",
    "owner-damaged",
    "owner-of-another",
    "owner-unclear",
    "no-commands",
    "commands-ended",
    "command-holds-lock",
    "group-runs",
    "commands-missing",
    "commands-unreadable",
    "too-many-entries",
    "strange-entry",
    "entry-unclear",
    "identity-damaged",
    "command-elsewhere",
    "group-unclear",
    "used-as-working-directory",
    "used-as-root",
    "used-as-executable",
    "used-by-descriptor",
    "used-by-map",
    "used-by-mount-of-it",
    "used-by-mount-on-it",
    "used-by-cookie",
    "unused",
    "use-unclear",
    "on-word",
    "never-recorded",
    "injected",
];

/// The codes of what stands in the way of a removal.
pub(super) const HINDRANCES: [&str; 7] =
    ["mount", "locked", "in-use", "foreign", "call", "name-changed", "claim"];

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static str> + Clone {
    EVIDENCE.iter().chain(&HINDRANCES).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_library() {
        let pinned = include_str!(
            "../../../mortmain/src/snapshots/mortmain__evidence__tests__the_codes_stay.snap"
        );
        let (_, pinned) = pinned.trim_end().rsplit_once("---\n").expect("it has a head");
        let ours = [EVIDENCE.join("\n"), HINDRANCES.join("\n")].join("\n\n");
        assert_eq!(ours, pinned);
    }
}
