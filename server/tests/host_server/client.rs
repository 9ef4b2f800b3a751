//! A small client of the protocol: lines of JSON to a server, and lines from it.
//!
//! A server's standard error comes in the same pipe as its standard output. What begins with a brace
//! is of the protocol, the rest are notes; both are kept until somebody asks for them.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::Reader;
use mortmain_harness::wait::{Watch, file_appears};
use serde_json::{Value, json};

use crate::support::{group, hold, kill, server, soon, text};

/// Somebody who talks to a server.
pub(crate) struct Client {
    link: Link,
    last: u64,
    answers: BTreeMap<u64, Value>,
    notes: Vec<String>,
}

enum Link {
    Child(ChildGuard),
    Socket { reader: Reader, stream: UnixStream },
}

/// A `shell` call that goes on.
pub(crate) struct Call {
    pub(crate) id: u64,
    /// Its shell.
    pub(crate) shell: Watch,
}

impl Call {
    /// Kills its shell, and whatever that was just about to run.
    #[track_caller]
    pub(crate) fn dies(&self) {
        kill(&self.shell);
        for pid in group(self.shell.pid()) {
            if let Some(member) = Watch::open(pid).unwrap() {
                kill(&member);
            }
        }
    }
}

impl Client {
    /// A new server with a root and options, which is ready and has swept.
    #[track_caller]
    pub(crate) fn start(root: &Path, options: &[&str]) -> Client {
        let mut client = Client::of(server(root, options));
        client.introduces_itself();
        client.note("what came of the sweep", |note| note.contains(": swept "));
        client
    }

    /// A new server, to which nothing was said.
    #[track_caller]
    pub(crate) fn of(command: Command) -> Client {
        Client::over(Link::Child(ChildGuard::spawn_with_stdin(command).unwrap()))
    }

    /// A server that serves a socket.
    #[track_caller]
    pub(crate) fn connected(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).unwrap();
        let reader = Reader::new(stream.try_clone().unwrap(), "the socket").unwrap();
        let mut client = Client::over(Link::Socket { reader, stream });
        client.introduces_itself();
        client
    }

    fn over(link: Link) -> Client {
        Client { link, last: 0, answers: BTreeMap::new(), notes: Vec::new() }
    }

    #[track_caller]
    fn introduces_itself(&mut self) {
        let about = json!({ "name": "test", "version": "0" });
        let id = self.send(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about }),
        );
        let answer = self.answer(id);
        assert_eq!(answer["result"]["serverInfo"]["name"], "mortmain-server", "{answer}");
        self.says(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// The server's process, where it is a child.
    #[track_caller]
    pub(crate) fn child(&mut self) -> &mut ChildGuard {
        match &mut self.link {
            Link::Child(child) => child,
            Link::Socket { .. } => panic!("it serves a socket"),
        }
    }

    #[track_caller]
    pub(crate) fn says(&mut self, message: &Value) {
        match &mut self.link {
            Link::Child(child) => child.send_line(&message.to_string(), soon()).unwrap(),
            Link::Socket { stream, .. } => writeln!(stream, "{message}").unwrap(),
        }
    }

    /// Sends a request, and answers its number.
    #[track_caller]
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.says(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.next(&format!("the answer to request {id}"));
        }
    }

    /// Waits for a note of the server's.
    #[track_caller]
    pub(crate) fn note(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            if let Some(note) = self.notes.iter().find(|note| wanted(note)) {
                return note.clone();
            }
            self.next(what);
        }
    }

    #[track_caller]
    fn next(&mut self, what: &str) {
        let reader = match &mut self.link {
            Link::Child(child) => child.lines(),
            Link::Socket { reader, .. } => reader,
        };
        let line = reader.next_line(soon(), what).unwrap();
        self.take(line);
    }

    #[track_caller]
    fn take(&mut self, line: String) {
        if !line.starts_with('{') {
            self.notes.push(line);
            return;
        }
        let message: Value = serde_json::from_str(&line).expect("it is JSON");
        let id = message["id"].as_u64().expect("the server asks and announces nothing");
        self.answers.insert(id, message);
    }

    /// Calls a tool, and answers its result.
    #[track_caller]
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.send("tools/call", json!({ "name": name, "arguments": arguments }));
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Runs a command line to its end.
    #[track_caller]
    pub(crate) fn shell(&mut self, command: &str) -> Value {
        self.tool("shell", json!({ "command": command }))["structuredContent"].take()
    }

    /// The session directory of the server.
    #[track_caller]
    pub(crate) fn session(&mut self) -> PathBuf {
        let ran = self.shell("mortmain-session");
        ran["stdout"].as_str().expect("it is text").trim_end().into()
    }

    /// The claim of the server.
    #[track_caller]
    pub(crate) fn claim(&mut self) -> PathBuf {
        let session = self.session();
        session.parent().and_then(Path::parent).expect("it lies in the claim").into()
    }

    /// Begins to run a script, and waits until its shell is there.
    #[track_caller]
    pub(crate) fn begins(&mut self, script: &str) -> Call {
        let session = self.session();
        let command = format!("echo $$ >.pid; mv .pid pid; {script}");
        let arguments = json!({ "command": command });
        let id = self.send("tools/call", json!({ "name": "shell", "arguments": arguments }));
        let pid = file_appears(&session, "pid".as_ref(), soon()).unwrap();
        Call { id, shell: hold(&text(pid)) }
    }

    /// What a sweep would do with every claim, as one sentence each.
    #[track_caller]
    pub(crate) fn claims(&mut self) -> BTreeMap<String, (String, String)> {
        let listed = self.tool("list_claims", json!({}));
        let claims = listed["structuredContent"]["claims"].as_array().expect("it is a list");
        let word = |value: &Value| value.as_str().expect("it is text").to_owned();
        let each = claims.iter().map(|claim| {
            (word(&claim["name"]), (word(&claim["verdict"]), word(&claim["sentence"])))
        });
        each.collect()
    }

    /// Ends the server's input, and waits for its end.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        self.child().close_stdin();
        self.ended()
    }

    /// Waits for the server's end.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let child = self.child();
        let lines = child.lines().expect_eof(soon(), "the end of the server's output").unwrap();
        let status = child.wait(soon()).unwrap();
        lines.into_iter().for_each(|line| self.take(line));
        status
    }

    /// Hangs up, without a word.
    #[track_caller]
    pub(crate) fn goes(&mut self) {
        match &self.link {
            Link::Child(_) => panic!("it serves this client alone"),
            Link::Socket { stream, .. } => stream.shutdown(Shutdown::Both).unwrap(),
        }
    }

    /// Kills the server alone.
    #[track_caller]
    pub(crate) fn dies(&mut self) {
        self.child().kill_hard().unwrap();
    }
}
