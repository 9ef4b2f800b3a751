//! The scripts of `ci/`: how each begins, that it builds what the lock file says,
//! and that somebody can find it.

use crate::tree::{File, Outcome, Tree};

/// Commands of cargo that take `--locked`.
const BUILDING: [&str; 7] = ["clippy", "check", "build", "doc", "test", "run", "nextest run"];

fn is_script(file: &File) -> bool {
    file.path.starts_with("ci/") || file.path.starts_with(".ci/")
}

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let texts: String = tree
        .files
        .iter()
        .filter(|file| file.has_extension("md") || is_script(file))
        .map(|file| file.text.as_str())
        .collect();
    for file in tree.files.iter().filter(|file| is_script(file)) {
        outcome.looked_at += 1;
        let sourced = file.has_extension("sh");
        if !sourced {
            beginning(file, &mut outcome);
        }
        if file.executable == sourced {
            let what = if sourced { "is sourced, not run" } else { "cannot be executed" };
            outcome.find(&file.path, 1, what);
        }
        if !is_mentioned(&texts, file) {
            outcome.find(&file.path, 1, "no text and no script names it");
        }
        for (number, command) in commands(&file.text) {
            let builds = BUILDING.iter().any(|verb| is_cargo(&command, verb));
            let asks = command.contains("--version");
            if builds && !asks && !command.contains("--locked") {
                outcome.find(&file.path, number, "builds without --locked");
            }
        }
    }
    outcome
}

fn beginning(file: &File, outcome: &mut Outcome) {
    let mut lines = file.text.lines();
    if lines.next() != Some("#!/usr/bin/env bash") {
        outcome.find(&file.path, 1, "does not begin with `#!/usr/bin/env bash`");
    }
    if !lines.next().is_some_and(|line| line.starts_with("# ")) {
        outcome.find(&file.path, 2, "does not say what it is for");
    }
    let first = lines.find(|line| !line.starts_with('#'));
    if first != Some("set -euo pipefail") {
        outcome.find(&file.path, 3, "the first command is not `set -euo pipefail`");
    }
}

/// The entry of CI is named by CI. The rest must be named in a document or in
/// another script; a script's own text counts only if it is its usage line, so
/// the name must occur outside of it as well.
fn is_mentioned(texts: &str, file: &File) -> bool {
    let own = file.text.matches(&file.path).count();
    let by_name = format!("/{}\"", file.name());
    file.path.starts_with(".ci/")
        || texts.matches(&file.path).count() > own
        || texts.contains(&by_name)
}

/// Whether the command runs `cargo <verb>`, also as the argument of another.
pub(crate) fn is_cargo(command: &str, verb: &str) -> bool {
    command.split("cargo ").skip(1).any(|rest| {
        rest.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

/// The commands of a shell script, continued lines joined, with the numbers of
/// their first lines. Comments, and texts that are printed, are left out.
pub(crate) fn commands(script: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        if open.is_none()
            && (line.is_empty() || line.starts_with('#') || line.starts_with("printf"))
        {
            continue;
        }
        let (number, mut command) = open.take().unwrap_or((index + 1, String::new()));
        let part = line.strip_suffix('\\');
        command.push_str(part.unwrap_or(line).trim_end());
        if part.is_some() {
            command.push(' ');
            open = Some((number, command));
        } else {
            commands.push((number, command));
        }
    }
    commands.extend(open);
    commands
}

#[test]
fn the_scripts_are_in_order() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_careless_script_is_found() {
    let good = "#!/usr/bin/env bash\n# Does it.\nset -euo pipefail\ncargo doc \\\n  --locked\n";
    check(&Tree::planted(&[
        ("ci/good", good),
        ("ci/bad", "#!/bin/sh\nset -e\n# cargo doc\nprintf 'cargo doc\\n'\nstep x cargo doc\n"),
        ("ci/common.sh", "cargo test --locked\n"),
        ("ci/lone", &good.replace("--locked", "")),
        ("README.md", "`ci/good` and ci/bad; ci/common.sh\n"),
    ]))
    .assert_found(&[
        "ci/bad:1: does not begin with `#!/usr/bin/env bash`",
        "ci/bad:2: does not say what it is for",
        "ci/bad:3: the first command is not `set -euo pipefail`",
        "ci/bad:5: builds without --locked",
        "ci/lone:1: no text and no script names it",
        "ci/lone:4: builds without --locked",
    ]);
}
