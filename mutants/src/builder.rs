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
use std::ops::{ControlFlow, Range};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::confine::{self, Confinement};
use crate::interrupt::Interrupt;
use crate::process::{self, End, Ended};
use crate::progress::Progress;
use crate::targets::Targets;
use crate::tree::Scratch;
use crate::workspace::{self, Workspace};

/// Set by this program for the cargo that it starts.
const WRAPPER_VARIABLE: &str = "MORTMAIN_MUTANTS_CAP_LINTS";

/// Its value where each switch that is compiled is to be warned of.
const POINTS: &str = "points";

/// The compiler runs none of the changed code, so that it ends by itself. The limit
/// is for a machine in trouble.
const LIMIT: Duration = Duration::from_secs(3600);

/// Acts as the compiler wrapper, if cargo started this program as one.
pub(crate) fn as_compiler_wrapper() -> Option<ExitCode> {
    let points = env::var_os(WRAPPER_VARIABLE)? == POINTS;
    let mut arguments = env::args_os().skip(1);
    // The keeper of the build has the variable, too, on its way to cargo.
    let compiler = arguments.next().filter(|first| first != confine::SUBCOMMAND)?;
    let mut command = Command::new(&compiler);
    command.args(arguments).arg("--cap-lints=warn");
    // Whatever the source says of the lint.
    command.arg(if points { "--force-warn=deprecated" } else { "-Adeprecated" });
    let error = command.exec();
    let path = Path::new(&compiler).display();
    let _ = writeln!(io::stderr(), "error: cannot start {path}: {error}");
    Some(ExitCode::FAILURE)
}

/// A test binary is told by package, kind of target and name, which stay the same
/// from build to build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
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
    Failed(Failure),
    Interrupted,
}

/// What the compiler says of a build that is not run.
#[derive(Debug)]
pub(crate) enum Check {
    /// With the places of the switches that are compiled.
    Done(Vec<Place>),
    Failed(Failure),
    Interrupted,
}

/// Why there is no build.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) log: String,
    pub(crate) errors: Vec<CompilerError>,
}

/// An error of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompilerError {
    /// In one line.
    pub(crate) message: String,
    /// What it is about first comes first.
    pub(crate) places: Vec<Place>,
}

/// What a message of the compiler is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) bytes: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct Builder<'a> {
    pub(crate) scratch: &'a Scratch,
    /// The copy that is built.
    pub(crate) tree: PathBuf,
    pub(crate) workspace: &'a Workspace,
    /// The packages whose tests are built; none for all.
    pub(crate) packages: &'a [String],
    pub(crate) jobs: u16,
    pub(crate) interrupt: &'a Interrupt,
}

impl Builder<'_> {
    /// Says which members are not built though all are to be.
    pub(crate) fn tell_left_out(&self, progress: &Progress) {
        if self.packages.is_empty() {
            for name in self.workspace.borrowers() {
                let why = format_args!("{name}, which takes in sources of another package");
                progress.done("left out", why);
            }
        }
    }

    /// Builds test binaries of the copy as it is now: these, or all.
    pub(crate) fn build(&self, only: Option<&Targets>) -> anyhow::Result<Build> {
        let mut command = self.command("cap")?;
        command.args(["test", "--no-run"]);
        match only {
            Some(targets) => {
                command.args(targets.arguments());
            }
            None => self.add_packages(&mut command),
        }
        Ok(match self.run(command)? {
            Some(Ok(messages)) => Build::Done(self.binaries(messages.artifacts)?),
            Some(Err(failure)) => Build::Failed(failure),
            None => Build::Interrupted,
        })
    }

    fn add_packages(&self, command: &mut Command) {
        if self.packages.is_empty() {
            command.arg("--workspace");
            if self.workspace.has_own_package() {
                command.args(["--exclude", workspace::own_package()]);
            }
            for borrower in self.workspace.borrowers() {
                command.args(["--exclude", borrower]);
            }
        }
        for package in self.packages {
            command.args(["--package", package]);
        }
    }

    /// Lets the compiler look at the libraries and programs of some packages.
    pub(crate) fn check(&self, packages: &[String]) -> anyhow::Result<Check> {
        let mut command = self.command(POINTS)?;
        command.arg("check");
        for package in packages {
            command.args(["--package", package]);
        }
        Ok(match self.run(command)? {
            Some(Ok(messages)) => Check::Done(messages.deprecated),
            Some(Err(failure)) => Check::Failed(failure),
            None => Check::Interrupted,
        })
    }

    /// Runs a cargo command. Nothing if it was interrupted.
    fn run(&self, mut command: Command) -> anyhow::Result<Option<Result<Messages, Failure>>> {
        let jobs = self.jobs.to_string();
        command.args(["--message-format=json", "--jobs", &jobs]);
        self.scratch.build_begins()?;
        let ended =
            process::run(command, LIMIT, self.interrupt, &mut |_| ControlFlow::Continue(()))?;
        if matches!(ended.how, End::Exited(_)) {
            self.scratch.build_ends()?;
        }
        outcome(ended)
    }

    fn command(&self, lints: &str) -> anyhow::Result<Command> {
        let mut command = Confinement::for_build(workspace::cargo());
        command.current_dir(&self.tree);
        clean_environment(&mut command);
        let wrapper = env::current_exe().context("cannot tell the path of this program")?;
        command
            .env("CARGO_TARGET_DIR", self.scratch.target())
            .env("CARGO_TERM_COLOR", "never")
            .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
            .env(WRAPPER_VARIABLE, lints);
        Ok(command)
    }

    fn binaries(&self, artifacts: Vec<Artifact>) -> anyhow::Result<TestBinaries> {
        let tree = fs::canonicalize(&self.tree)?;
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

/// What cargo said, or why there is no build. Nothing if it was interrupted.
fn outcome(ended: Ended) -> anyhow::Result<Option<Result<Messages, Failure>>> {
    // What it has said until then may end in the middle of a message.
    match ended.how {
        End::Exited(_) => {}
        End::Interrupted => return Ok(None),
        End::TimedOut | End::Stopped => bail!("a build took more than {LIMIT:?}"),
    }
    let messages = Messages::read(&ended.stdout)?;
    if ended.how == End::Exited(0) {
        return Ok(Some(Ok(messages)));
    }
    let first = messages.errors.first().map(|error| error.message.clone());
    let reason = first.unwrap_or_else(|| {
        let last = ended.stderr.lines().rfind(|line| line.starts_with("error"));
        last.unwrap_or("cargo failed without a message").to_owned()
    });
    // What cargo adds to the compiler's own words is progress.
    let log = if messages.rendered.is_empty() { ended.stderr } else { messages.rendered };
    Ok(Some(Err(Failure { reason, log, errors: messages.errors })))
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
    errors: Vec<CompilerError>,
    /// Where something is used that is deprecated.
    deprecated: Vec<Place>,
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
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    /// Where the macro is called that the code comes from.
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: DiagnosticSpan,
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
                    let error =
                        CompilerError { message: message.short(), places: message.places() };
                    messages.errors.push(error);
                }
                Message::Diagnostic { message } => {
                    if message.code.as_ref().is_some_and(|code| code.code == "deprecated") {
                        messages.deprecated.extend(message.places());
                    }
                }
                Message::Other => {}
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

    /// What it is about: what it points at first, then what it mentions.
    fn places(&self) -> Vec<Place> {
        let primary = self.spans.iter().filter(|span| span.is_primary);
        let others = self.spans.iter().filter(|span| !span.is_primary);
        primary.chain(others).flat_map(DiagnosticSpan::places).collect()
    }
}

impl DiagnosticSpan {
    /// Itself, and the calls of macros that it comes from.
    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        let mut span = Some(self);
        while let Some(DiagnosticSpan { file_name, line_start, byte_start, byte_end, .. }) = span {
            let bytes = *byte_start..*byte_end;
            places.push(Place { file: file_name.into(), line: *line_start, bytes });
            span = span.and_then(|span| span.expansion.as_ref()).map(|expansion| &expansion.span);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_cargo_may_stop_in_the_middle_of_a_message() {
        let ended = |how| Ended {
            how,
            stdout: "{\"reason\":\"compiler-art".to_owned(),
            stderr: String::new(),
            took: Duration::ZERO,
        };
        assert!(outcome(ended(End::Interrupted)).unwrap().is_none());
        let told = outcome(ended(End::TimedOut)).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("a build took more than"), "{told}");
        assert!(outcome(ended(End::Exited(0))).is_err());
    }

    #[test]
    fn the_first_error_is_told_in_one_line() {
        let stdout = r#"{"reason":"compiler-message","message":{"message":"unused","level":"warning","code":null,"spans":[],"rendered":"w"}}
{"reason":"compiler-message","message":{"message":"mismatched types\nmore","level":"error","code":{"code":"E0308"},"spans":[{"file_name":"b.rs","line_start":1,"byte_start":0,"byte_end":1,"is_primary":false},{"file_name":"a.rs","line_start":7,"byte_start":70,"byte_end":72,"is_primary":true}],"rendered":"long\n"}}
{"reason":"compiler-message","message":{"message":"aborting","level":"error","code":null,"spans":[],"rendered":"end\n"}}
{"reason":"build-finished","success":false}"#;
        let messages = Messages::read(stdout).unwrap();
        let error = &messages.errors[0];
        assert_eq!(error.message, "error[E0308]: mismatched types (a.rs:7)");
        assert_eq!(messages.rendered, "long\nend\n");
        let about: Vec<(&Path, usize, &Range<usize>)> =
            error.places.iter().map(|place| (&*place.file, place.line, &place.bytes)).collect();
        assert_eq!(about, [(Path::new("a.rs"), 7, &(70..72)), (Path::new("b.rs"), 1, &(0..1))]);
    }
}
