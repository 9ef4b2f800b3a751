//! Sockets that are passed to a program, started as a service manager starts it (a1–a6).

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::Reader;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::{Deadline, file_appears};
use nix::fcntl::{FcntlArg, fcntl};

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Where sockets wait to be passed: numbers that a plain shell can name.
const WAITING: RawFd = 8;

#[track_caller]
fn in_cell(body: impl FnOnce(&Path)) {
    cell::enter(LAB, || body(&scratch_root()));
}

fn soon() -> Deadline {
    Deadline::secs(20)
}

/// Makes an open descriptor inheritable, as 8 or 9.
#[track_caller]
fn inheritable(of: &impl std::os::fd::AsFd) -> RawFd {
    let number = fcntl(of, FcntlArg::F_DUPFD(WAITING)).expect("there are numbers left");
    assert!(number <= 9, "{number} is a number that a plain shell cannot name");
    number
}

/// Starts the program by a shell that sets the variables and becomes it, and returns what it says.
#[track_caller]
fn started(root: &Path, setting: &str) -> Vec<String> {
    started_as("adopt", root, setting)
}

/// The same of another part.
#[track_caller]
fn started_as(part: &str, root: &Path, setting: &str) -> Vec<String> {
    let mut command = Command::new("sh");
    let script = format!("{setting}; exec \"$@\"");
    command.args(["-c", &script, "sh", LAB, "part", part]).arg(root);
    for variable in ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
        command.env_remove(variable);
    }
    let mut child = ChildGuard::spawn(command).expect("there is a shell");
    let said = child.lines().expect_eof(soon(), "the end of the program").unwrap();
    assert!(child.wait(soon()).unwrap().success(), "{said:?}");
    said
}

const NOWHERE_NEAR: &str = "0 of them among those that are passed";

#[test]
fn sockets_that_were_passed_to_this_very_process_are_taken() {
    in_cell(|root| {
        let [one, two] = ["one", "two"].map(|name| UnixListener::bind(root.join(name)).unwrap());
        let [one, two] = [inheritable(&one), inheritable(&two)];
        let setting = format!(
            "export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=web:admin; \
             exec 3<&{one} 4<&{two} {one}<&- {two}<&-"
        );
        let said = started(root, &setting);
        assert!(said[0].ends_with(NOWHERE_NEAR), "{said:?}");
        let expected =
            ["took web admin", "3: close-on-exec", "4: close-on-exec", "handed on: nothing"];
        assert_eq!(said[1..5], expected);
        assert!(said[5].contains("its sockets were taken before"), "{said:?}");
    });
}

/// Another reader of the same variables is asked as well. It believes more; what is taken here is
/// what it takes, under the same numbers and names, and what it refuses is refused.
#[test]
fn what_is_taken_is_what_another_reader_takes() {
    in_cell(|root| {
        let [one, two] = ["one", "two"].map(|name| UnixListener::bind(root.join(name)).unwrap());
        let [one, two] = [inheritable(&one), inheritable(&two)];
        let mut taken = Vec::new();
        for pid in ["", "LISTEN_PID=$$", "LISTEN_PID=1", "LISTEN_PID=me"] {
            for count in ["", "LISTEN_FDS=0", "LISTEN_FDS=1", "LISTEN_FDS=2", "LISTEN_FDS=two"] {
                for names in ["", "LISTEN_FDNAMES=", "LISTEN_FDNAMES=a:b", "LISTEN_FDNAMES=:b"] {
                    let passed = format!("exec 3<&{one} 4<&{two} {one}<&- {two}<&-");
                    let setting = format!("export X= {pid} {count} {names}; {passed}");
                    let [ours, theirs] =
                        ["adopt", "sd-notify"].map(|part| started_as(part, root, &setting));
                    let told = format!("{pid} {count} {names}: {ours:?}, and {theirs:?}");
                    // Ours says first what the library has open, and at last what commands get.
                    if ours[1].starts_with("took ") {
                        assert_eq!(ours[1..=theirs.len()], theirs, "{told}");
                        taken.push(format!("{count} {names}"));
                    } else {
                        assert!(ours[1].starts_with("error NotActivated"), "{told}");
                        assert!(theirs == ["took "] || theirs[0].starts_with("error "), "{told}");
                    }
                }
            }
        }
        let expected = [
            "LISTEN_FDS=1 ",
            "LISTEN_FDS=1 LISTEN_FDNAMES=",
            "LISTEN_FDS=2 ",
            "LISTEN_FDS=2 LISTEN_FDNAMES=a:b",
            "LISTEN_FDS=2 LISTEN_FDNAMES=:b",
        ];
        assert_eq!(taken, expected);
    });
}

/// A name that is left empty stands for its socket all the same.
#[test]
fn a_socket_without_a_name_takes_none_from_the_next() {
    in_cell(|root| {
        let [one, two] = ["one", "two"].map(|name| UnixListener::bind(root.join(name)).unwrap());
        let [one, two] = [inheritable(&one), inheritable(&two)];
        let setting = format!(
            "export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=:admin; \
             exec 3<&{one} 4<&{two} {one}<&- {two}<&-"
        );
        assert_eq!(started(root, &setting)[1], "took  admin");
    });
}

#[test]
fn a_number_of_which_nothing_is_open_is_refused_and_is_not_used_by_the_library() {
    in_cell(|root| {
        let one = inheritable(&UnixListener::bind(root.join("one")).unwrap());
        let setting =
            format!("export LISTEN_PID=$$ LISTEN_FDS=3; exec 3<&{one} {one}<&- 4<&- 5<&-");
        let said = started(root, &setting);
        assert!(said[0].ends_with(NOWHERE_NEAR), "{said:?}");
        check_refusal(&said[1], "LISTEN_FDS: it is 3, but descriptor 4 is not open");
    });
}

#[track_caller]
fn check_refusal(said: &str, expected: &str) {
    let expected = format!(
        "error NotActivated: cannot take the sockets of {expected}; let the launcher exec this \
         program, or set LISTEN_PID and LISTEN_FDS in the child just before its exec; a launcher \
         that passes no sockets sets neither, and the program has to open its own"
    );
    assert_eq!(said, expected);
}

#[test]
fn what_does_not_fit_is_refused_and_says_what_to_do() {
    in_cell(|root| {
        let one = inheritable(&UnixListener::bind(root.join("one")).unwrap());
        let (file, deaf) = (root.join("file"), UnixStream::pair().unwrap().0);
        fs::write(&file, "").unwrap();
        let deaf = inheritable(&deaf);
        let socket = format!("exec 3<&{one}");
        for (setting, expected) in [
            (socket.clone(), "LISTEN_PID: it is not set"),
            (format!("{socket}; export LISTEN_PID= LISTEN_FDS=1"), "LISTEN_PID: `` is no number"),
            (
                format!("{socket}; export LISTEN_PID=0x7 LISTEN_FDS=1"),
                "LISTEN_PID: `0x7` is no number",
            ),
            (format!("{socket}; export LISTEN_PID=$$"), "LISTEN_FDS: it is not set"),
            (
                format!("{socket}; export LISTEN_PID=$$ LISTEN_FDS=two"),
                "LISTEN_FDS: `two` is no number",
            ),
            (
                format!("{socket}; export LISTEN_PID=$$ LISTEN_FDS=-1"),
                "LISTEN_FDS: `-1` is no number",
            ),
            (
                format!("{socket}; export LISTEN_PID=$$ LISTEN_FDS=0"),
                "LISTEN_FDS: it is 0: no socket was passed",
            ),
            (
                format!("{socket}; export LISTEN_PID=$$ LISTEN_FDS=129"),
                "LISTEN_FDS: it is 129, and 128 would be many",
            ),
            // So many may be passed; here they were not.
            (
                format!("{socket}; exec 4>&-; export LISTEN_PID=$$ LISTEN_FDS=128"),
                "LISTEN_FDS: it is 128, but descriptor 4 is not open",
            ),
            (
                format!("{socket}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web:admin"),
                "LISTEN_FDNAMES: it has 2 names, and LISTEN_FDS is 1",
            ),
            (
                format!(
                    "{socket}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=$(printf 'w\\377')"
                ),
                "LISTEN_FDNAMES: `w\\xff` is no text",
            ),
            (
                format!("exec 3<{}; export LISTEN_PID=$$ LISTEN_FDS=1", file.display()),
                "LISTEN_FDS: it is 1, but descriptor 3 is no socket",
            ),
            (
                format!("exec 3<&{deaf}; export LISTEN_PID=$$ LISTEN_FDS=1"),
                "LISTEN_FDS: it is 1, but descriptor 3 is a socket that does not listen",
            ),
        ] {
            let said = started(root, &setting);
            check_refusal(&said[1], expected);
        }
    });
}

/// A process that a service has started, which inherits all of it.
#[test]
fn what_was_passed_to_another_process_is_left_alone() {
    in_cell(|root| {
        let one = inheritable(&UnixListener::bind(root.join("one")).unwrap());
        let setting = format!("export LISTEN_PID=1 LISTEN_FDS=1; echo $$; exec 3<&{one}");
        let said = started(root, &setting);
        let expected = format!("LISTEN_PID: it is 1, and this is process {}", said[0]);
        check_refusal(&said[2], &expected);
    });
}

/// Connects to a socket that has its name, and is listened to a moment later.
#[track_caller]
fn connected(path: &Path) -> UnixStream {
    let deadline = soon();
    loop {
        match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                assert!(!deadline.passed(), "nobody listens at {}", path.display());
                std::thread::yield_now();
            }
            connected => return connected.unwrap(),
        }
    }
}

#[test]
fn a_real_service_manager_is_understood() {
    in_cell(|root| {
        let activate = PathBuf::from("/usr/bin/systemd-socket-activate");
        if !activate.exists() {
            eprintln!("skipped: there is no {}", activate.display());
            return;
        }
        let path = root.join("socket");
        let mut command = Command::new(activate);
        command.arg("--listen").arg(&path).args([LAB, "part", "serve"]);
        let mut activated = ChildGuard::spawn(command).expect("it is there");
        file_appears(root, "socket".as_ref(), soon()).unwrap();
        let mut client = Reader::new(connected(&path), "the service").unwrap();
        let said = client.expect_eof(soon(), "who serves").unwrap();
        // It becomes the service itself.
        assert_eq!(said, [format!("served by {}", activated.pid())]);
        assert!(activated.wait(soon()).unwrap().success());
    });
}
