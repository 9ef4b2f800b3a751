//! Builds the tests of the copy with cargo, and tells what was built or why not.
//!
//! Invariant: lints never decide. A removal leaves unused names behind, and a
//! workspace may turn warnings into errors; this program therefore stands between
//! cargo and the compiler of the members ([`as_compiler_wrapper`]) and caps their
//! lints. The flags of the environment would do it for the dependencies, too, and
//! would hide those of the workspace's own configuration.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::confine::{self, Confinement};
use crate::interrupt::Interrupt;
use crate::process::{self, End};
use crate::tree::Scratch;
use crate::workspace::{self, Workspace};

/// Set by this program for the cargo that it starts.
const WRAPPER_VARIABLE: &str = "MORTMAIN_MUTANTS_CAP_LINTS";

/// The compiler runs none of the changed code, so that it ends by itself. The limit
/// is for a machine in trouble.
const LIMIT: Duration = Duration::from_secs(3600);

/// Acts as the compiler wrapper, if cargo started this program as one.
pub(crate) fn as_compiler_wrapper() -> Option<ExitCode> {
    env::var_os(WRAPPER_VARIABLE)?;
    let mut arguments = env::args_os().skip(1);
    // The keeper of the build has the variable, too, on its way to cargo.
    let compiler = arguments.next().filter(|first| first != confine::SUBCOMMAND)?;
    let error = Command::new(&compiler).args(arguments).arg("--cap-lints=warn").exec();
    let path = Path::new(&compiler).display();
    let _ = writeln!(io::stderr(), "error: cannot start {path}: {error}");
    Some(ExitCode::FAILURE)
}

/// A test binary is told by package, kind of target and name, which stay the same
/// from build to build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BinaryId {
    pub(crate) package: String,
    /// `lib`, `bin`, `test`, …
    pub(crate) target: String,
    pub(crate) name: String,
}

/// A test binary that was built.
#[derive(Clone, Debug)]
pub(crate) struct TestBinary {
    pub(crate) executable: PathBuf,
    /// The directory of its package, in the copy.
    pub(crate) directory: PathBuf,
    /// The programs of its package, by name.
    pub(crate) programs: BTreeMap<String, PathBuf>,
}

pub(crate) type TestBinaries = BTreeMap<BinaryId, TestBinary>;

#[derive(Debug)]
pub(crate) enum Build {
    Done(TestBinaries),
    Failed {
        reason: String,
        log: String,
        /// The files and lines that the errors are about.
        places: Vec<(PathBuf, usize)>,
    },
    Interrupted,
}

#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) workspace: &'a Workspace,
    pub(crate) jobs: u16,
    pub(crate) interrupt: &'a Interrupt,
}

impl Builder<'_> {
    /// Builds all test binaries of the copy as it is now.
    pub(crate) fn build(&self) -> anyhow::Result<Build> {
        self.scratch.build_begins()?;
        let ended = process::run(self.command()?, LIMIT, self.interrupt, &mut |_| {
            ControlFlow::Continue(())
        })?;
        if matches!(ended.how, End::Exited(_)) {
            self.scratch.build_ends()?;
        }
        let messages = Messages::read(&ended.stdout)?;
        match ended.how {
            End::Exited(0) => Ok(Build::Done(self.binaries(messages.artifacts)?)),
            End::Interrupted => Ok(Build::Interrupted),
            End::TimedOut => bail!("a build took more than {LIMIT:?}"),
            End::Exited(_) | End::Stopped => {
                let reason = messages.first_error.unwrap_or_else(|| {
                    let last = ended.stderr.lines().rfind(|line| line.starts_with("error"));
                    last.unwrap_or("cargo failed without a message").to_owned()
                });
                // What cargo adds to the compiler's own words is progress.
                let log =
                    if messages.rendered.is_empty() { ended.stderr } else { messages.rendered };
                Ok(Build::Failed { reason, log, places: messages.places })
            }
        }
    }

    fn command(&self) -> anyhow::Result<Command> {
        let mut command = Confinement::for_build(workspace::cargo());
        let jobs = self.jobs.to_string();
        command.args(["test", "--workspace", "--no-run", "--message-format=json", "--jobs", &jobs]);
        if self.workspace.has_own_package() {
            command.args(["--exclude", workspace::own_package()]);
        }
        command.current_dir(self.scratch.tree());
        clean_environment(&mut command);
        let wrapper = env::current_exe().context("cannot tell the path of this program")?;
        command
            .env("CARGO_TARGET_DIR", self.scratch.target())
            .env("CARGO_TERM_COLOR", "never")
            .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
            .env(WRAPPER_VARIABLE, "1");
        Ok(command)
    }

    fn binaries(&self, artifacts: Vec<Artifact>) -> anyhow::Result<TestBinaries> {
        let tree = fs::canonicalize(self.scratch.tree())?;
        let mut programs: BTreeMap<PathBuf, BTreeMap<String, PathBuf>> = BTreeMap::new();
        for artifact in &artifacts {
            if let Some(executable) = &artifact.executable
                && !artifact.profile.test
                && artifact.target.is("bin")
            {
                let programs = programs.entry(artifact.directory()).or_default();
                programs.insert(artifact.target.name.clone(), executable.clone());
            }
        }
        let mut binaries = TestBinaries::new();
        for artifact in artifacts {
            let Some(executable) = artifact.executable.clone().filter(|_| artifact.profile.test)
            else {
                continue;
            };
            let directory = artifact.directory();
            let relative = directory.strip_prefix(&tree).unwrap_or(&directory);
            let member = self.workspace.members.iter().find(|m| m.directory == relative);
            let member = member.with_context(|| {
                format!("cargo built tests of {}, which is no member", directory.display())
            })?;
            let id = BinaryId {
                package: member.name.clone(),
                target: artifact.target.kind.first().cloned().unwrap_or_default(),
                name: artifact.target.name.clone(),
            };
            let binary = TestBinary {
                executable,
                programs: programs.get(&directory).cloned().unwrap_or_default(),
                directory,
            };
            binaries.insert(id, binary);
        }
        Ok(binaries)
    }
}

/// Takes out of a command's environment what would change a result: what the cargo that
/// started this program says about this program, options of test tools, and what an
/// outer claim or service manager left.
pub(crate) fn clean_environment(command: &mut Command) {
    const PREFIXES: [&str; 12] = [
        "CARGO_BIN_",
        "CARGO_CRATE_",
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_TARGET_TMPDIR",
        "INSTA_",
        "LISTEN_",
        "MORTMAIN_",
        "NEXTEST",
        "PROPTEST_",
        "RUST_TEST_",
        "RUST_LOG",
    ];
    const NAMES: [&str; 5] =
        ["CARGO_PRIMARY_PACKAGE", "NOTIFY_SOCKET", "OUT_DIR", "RUST_BACKTRACE", "RUST_MIN_STACK"];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let unwanted = PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        if unwanted || NAMES.contains(&&*text) {
            command.env_remove(&name);
        }
    }
}

/// What cargo says on its standard output, one JSON object a line.
#[derive(Default)]
struct Messages {
    artifacts: Vec<Artifact>,
    first_error: Option<String>,
    places: Vec<(PathBuf, usize)>,
    rendered: String,
}

#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Artifact(Artifact),
    #[serde(rename = "compiler-message")]
    Diagnostic { message: Diagnostic },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: ArtifactTarget,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    level: String,
    code: Option<Code>,
    spans: Vec<DiagnosticSpan>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: String,
    line_start: usize,
    is_primary: bool,
}

impl Artifact {
    fn directory(&self) -> PathBuf {
        // OK because a manifest is in a directory.
        self.manifest_path.parent().unwrap_or(Path::new("")).to_owned()
    }
}

impl ArtifactTarget {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

impl Messages {
    fn read(stdout: &str) -> anyhow::Result<Messages> {
        let mut messages = Messages::default();
        for line in stdout.lines().filter(|line| line.starts_with('{')) {
            match serde_json::from_str(line).context("cannot read a message of cargo")? {
                Message::Artifact(artifact) => messages.artifacts.push(artifact),
                Message::Diagnostic { message } if message.level.starts_with("error") => {
                    messages.rendered += message.rendered.as_deref().unwrap_or_default();
                    messages.first_error.get_or_insert(message.short());
                    let primary = message.spans.iter().filter(|span| span.is_primary);
                    messages.places.extend(
                        primary.map(|span| (PathBuf::from(&span.file_name), span.line_start)),
                    );
                }
                Message::Diagnostic { .. } | Message::Other => {}
            }
        }
        Ok(messages)
    }
}

impl Diagnostic {
    /// One line: `error[E0425]: cannot find value `x` (src/lib.rs:3)`.
    fn short(&self) -> String {
        let code = self.code.as_ref().map_or(String::new(), |code| format!("[{}]", code.code));
        let message = self.message.lines().next().unwrap_or_default();
        let place = self.spans.iter().find(|span| span.is_primary);
        let place = place
            .map_or(String::new(), |span| format!(" ({}:{})", span.file_name, span.line_start));
        format!("error{code}: {message}{place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_in_one_line() {
        let stdout = r#"{"reason":"compiler-message","message":{"message":"unused","level":"warning","code":null,"spans":[],"rendered":"w"}}
{"reason":"compiler-message","message":{"message":"mismatched types\nmore","level":"error","code":{"code":"E0308"},"spans":[{"file_name":"b.rs","line_start":1,"is_primary":false},{"file_name":"a.rs","line_start":7,"is_primary":true}],"rendered":"long\n"}}
{"reason":"compiler-message","message":{"message":"aborting","level":"error","code":null,"spans":[],"rendered":"end\n"}}
{"reason":"build-finished","success":false}"#;
        let messages = Messages::read(stdout).unwrap();
        let told = messages.first_error.unwrap();
        assert_eq!(told, "error[E0308]: mismatched types (a.rs:7)");
        assert_eq!(messages.rendered, "long\nend\n");
        assert_eq!(messages.places, [(PathBuf::from("a.rs"), 7)]);
    }
}
