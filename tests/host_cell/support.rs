//! What the tests of cells share: commands, inhabited cells, and holds on who is in them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::{ProcInfo, processes, with_descendants};
use mortmain_harness::wait::{Deadline, Watch};

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// A program that makes an orphan outside its session and waits for its input to end. It says
/// `ready` when the orphan has lost its parent, and the orphan says `orphan` in its own session.
pub(crate) const WITH_ORPHAN: &str =
    "setsid -f sh -c 'echo orphan; exec sleep 600'; echo ready; read line; exit 5";

/// Long enough for a loaded machine. Nothing waits that long but a test that fails.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(20)
}

/// Short enough to wait for in vain.
pub(crate) fn briefly() -> Deadline {
    Deadline::after(Duration::from_millis(100))
}

pub(crate) fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("pids are positive")
}

pub(crate) fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// `mortmain-lab cell OPTIONS -- sh -c SCRIPT`.
pub(crate) fn cell_command(lab: &Path, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(lab);
    command.arg("cell").args(options).args(["--", "sh", "-c", script]);
    command
}

/// The same on behalf of this process.
pub(crate) fn own_cell(script: &str) -> Command {
    cell_command(Path::new(LAB), &["--test", &own_pid().to_string()], script)
}

#[track_caller]
pub(crate) fn status_of(command: Command) -> ExitStatus {
    ChildGuard::spawn(command).unwrap().wait(soon()).unwrap()
}

/// The living below a process, itself not included.
pub(crate) fn living_below(root: i32) -> Vec<ProcInfo> {
    let all = processes().unwrap();
    let below = with_descendants(&all, BTreeSet::from([root]));
    all.into_iter()
        .filter(|info| below.contains(&info.pid) && info.pid != root && info.lives())
        .collect()
}

pub(crate) fn watch(pid: i32) -> Watch {
    Watch::open(pid).unwrap().expect("the process lives")
}

/// Asserts that all are gone now, without any waiting.
#[track_caller]
pub(crate) fn assert_all_gone(watches: &[Watch]) {
    for watch in watches {
        assert!(watch.is_gone().unwrap(), "process {} has outlived its cell", watch.pid());
    }
}

/// Waits until all are gone.
#[track_caller]
pub(crate) fn wait_for_all(watches: &[Watch]) {
    let deadline = soon();
    watches.iter().for_each(|watch| watch.gone(deadline).unwrap());
}

/// A cell in which [`WITH_ORPHAN`] runs, with a hold on each process in it.
pub(crate) struct Inhabited {
    /// The supervisor, or the one that was asked to start it.
    pub(crate) outside: ChildGuard,
    /// Init first.
    pub(crate) inside: Vec<Watch>,
}

impl Inhabited {
    /// Starts the command, which makes the cell sooner or later.
    #[track_caller]
    pub(crate) fn start(command: Command) -> Self {
        let mut outside = ChildGuard::spawn_with_stdin(command).unwrap();
        let mut signs = BTreeSet::from(["orphan", "ready"]);
        while !signs.is_empty() {
            let what = format!("{signs:?}");
            let sign = outside.lines().expect_line(soon(), &what, |line| signs.contains(line));
            signs.remove(sign.unwrap().as_str());
        }
        let below = living_below(outside.pid());
        let init = below.iter().find(|info| info.comm == "mortmain-init");
        let init = init.unwrap_or_else(|| panic!("there is no init among {below:?}")).pid;
        let orphan = below.iter().find(|info| info.ppid == init && info.session == info.pid);
        assert!(orphan.is_some(), "init has no child with a session of its own: {below:?}");
        // By pid, and so by age, as nobody here comes round with the pids.
        let inside = with_descendants(&below, BTreeSet::from([init]));
        assert!(inside.len() >= 3, "init, the program and the orphan are in {below:?}");
        Self { inside: inside.into_iter().map(watch).collect(), outside }
    }
}

/// A runner and its test, both idle until they are killed or this process is.
pub(crate) struct Guardians {
    pub(crate) runner: ChildGuard,
    pub(crate) test: Watch,
}

impl Guardians {
    pub(crate) fn start() -> Self {
        // A background process of a shell has no input but what is kept for it.
        // The runner stays when its test has ended, as it has other tests.
        let script = "exec 3<&0; cat <&3 >/dev/null & echo $!; wait; read line <&3";
        let mut runner = ChildGuard::spawn_with_stdin(sh(script)).unwrap();
        let test = runner.lines().next_line(soon(), "the pid of the test").unwrap();
        Self { runner, test: watch(test.parse().expect("it is a pid")) }
    }

    /// The options by which a cell is on behalf of these two.
    pub(crate) fn options(&self) -> [String; 4] {
        let pid = |pid: i32| pid.to_string();
        ["--runner".into(), pid(self.runner.pid()), "--test".into(), pid(self.test.pid())]
    }

    pub(crate) fn command(&self, lab: &Path, script: &str) -> Command {
        cell_command(lab, &self.options().each_ref().map(String::as_str), script)
    }
}
