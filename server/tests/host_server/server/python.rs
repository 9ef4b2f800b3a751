//! The same server under the official client in Python, which is not of our making.
//!
//! It is asked for by `MORTMAIN_PYTHON`, the interpreter that has the package `mcp`; by default, and
//! in CI, `python3`. Where there is none the test is skipped and says so.

use std::env;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use mortmain_harness::cell::Entry;
use mortmain_harness::ground::names_in;
use mortmain_harness::scenario::Need;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Deadline;
use serde_json::{Value, json};

use crate::support::{SERVER, lab, ran_within};

const SCRIPT: &str = include_str!("official.py");

/// Of an interpreter that loads a large package, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(100);

/// Of the whole test, which loads it twice: who waits in vain in it can say for what.
const WHOLE: Duration = Duration::from_secs(220);

/// The interpreter, if it has the client; says what is missing, where the runner captures it.
fn interpreter() -> Option<OsString> {
    let asked = env::var_os("MORTMAIN_PYTHON");
    let python = asked.clone().unwrap_or_else(|| "python3".into());
    let mut missing = match asked {
        Some(_) => None,
        None => Need::Program("python3".into()).missing(),
    };
    if missing.is_none() {
        let mut import = Command::new(&python);
        import.args(["-c", "import mcp"]);
        let has = ran_within(Deadline::after(PATIENCE), import).0 == Some(0);
        missing = (!has).then(|| format!("{} has no package `mcp`", python.display()));
    }
    if let Some(why) = &missing {
        eprintln!("skipped: {why}, so nothing is known here of the official client");
    }
    missing.is_none().then_some(python)
}

#[test]
fn the_official_client_is_served() {
    Entry::new(lab()).deadline(WHOLE).run(|| {
        let Some(python) = interpreter() else { return };
        let root = scratch_root();
        let mut script = Command::new(python);
        script.args(["-c", SCRIPT, SERVER]).arg(&root).env("PYTHONDONTWRITEBYTECODE", "1");
        let (code, said) = ran_within(Deadline::after(PATIENCE), script);
        assert_eq!(code, Some(0), "{said:#?}");
        let said: Vec<Value> =
            said.iter().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        let answer = |what: &str| {
            let found = said.iter().find(|line| line["what"] == what);
            found.map(|line| &line["answer"]).unwrap_or_else(|| panic!("no {what} in {said:#?}"))
        };
        let structured = |what: &str| &answer(what)["structuredContent"];

        assert_eq!(answer("initialize")["serverInfo"]["name"], "mortmain-server");
        let tools = answer("tools")["tools"].as_array().expect("it is a list");
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["shell", "list_claims", "notes"]);
        let session = structured("mortmain-session")["stdout"].as_str().expect("it is text");
        assert!(session.starts_with(root.to_str().expect("it is ASCII")), "{session}");
        assert_eq!(structured("exit 3")["status"], 3);
        assert_eq!(structured("notes")["notes"], json!(["from a command", "from the client"]));
        assert_eq!(structured("claims")["claims"][0]["verdict"], "keep");
        assert_eq!(answer("slow")["isError"], true);
        assert_eq!(structured("slow")["timed_out"], true);
        if let Some(again) = said.iter().find(|line| line["what"] == "again") {
            assert_eq!(again["answer"]["structuredContent"]["stdout"], "again\n");
        }
        assert!(names_in(&root).is_empty());
    });
}
