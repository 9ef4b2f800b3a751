//! `mortmain run` on a terminal, under a shell with job control: who has the terminal, and what the
//! keys do.

use crate::seat::{BASH, Seat};
use crate::support::in_cell;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_Z: &str = "\u{1a}";

const DASH: [&str; 2] = ["dash", "-i"];

/// The line by which a shell says which job it continues. Bash repeats what was typed, dash what it
/// has understood.
fn is_job(line: &str) -> bool {
    line.starts_with("$RUN ") || line.starts_with("${RUN} ")
}

/// Says `ready` and reads lines until one is `one`. A signal that comes before it begins to read it sees
/// to when it has read something: who sends one types a line after it.
const READS_ONE: &str = "echo ready; until [ \"$x\" = one ]; do read x; done";

/// A command that says what it is told.
const REPEATS: &str = "sh -c 'echo ready; while read x; do echo got $x; done; echo end'";

#[test]
fn the_command_is_in_the_foreground_from_the_start() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        // Group of the process, and group of the terminal.
        let shows = "sh -c 'ps -o pgid=,tpgid= -p $$ | { read own fg; [ $own = $fg ] && echo same; }; exit 4'";
        seat.types(&format!("$RUN {shows}; echo code $?\n"));
        seat.sees("same");
        seat.sees("code 4");
        // The terminal is the shell's again, or it could not read this.
        seat.types("echo done\n");
        seat.sees("done");
    });
}

#[test]
fn the_command_reads_from_the_terminal() {
    in_cell(|| {
        for shell in [&BASH[..], &DASH] {
            let mut seat = Seat::at(shell);
            seat.types(&format!("$RUN {REPEATS}; echo code $?\n"));
            seat.sees("ready");
            seat.types("one\n");
            seat.sees("got one");
            seat.types(CTRL_D);
            seat.sees("end");
            seat.sees("code 0");
        }
    });
}

#[test]
fn ctrl_c_interrupts_the_command_and_the_shells_loop_around_it() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        seat.types(&format!("for i in 1 2; do $RUN {REPEATS}; echo next; done\n"));
        seat.sees("ready");
        seat.types(CTRL_C);
        seat.is_back_at_the_prompt();
        seat.types("echo code $?\n");
        seat.sees("code 130");
    });
}

#[test]
fn ctrl_c_interrupts_a_script_around_the_command_as_well() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        seat.types("bash -c \"$RUN sh -c 'echo ready; read x'; echo next\"\n");
        seat.sees("ready");
        seat.types(CTRL_C);
        seat.is_back_at_the_prompt();
        seat.types("echo code $?\n");
        seat.sees("code 130");
    });
}

#[test]
fn ctrl_c_ends_a_loop_also_where_the_command_has_not_got_the_terminal() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        let stays = "mkfifo $TMPDIR/never; exec 3<>$TMPDIR/never; echo ready >&2; read x <&3";
        let one = format!("$RUN sh -c '{stays}' >/dev/null");
        seat.types(&format!("for i in 1 2; do {one}; echo next; done\n"));
        seat.sees("ready");
        seat.types(CTRL_C);
        seat.is_back_at_the_prompt();
    });
}

#[test]
fn a_command_that_handles_ctrl_c_goes_on() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        let handles = format!("sh -c 'trap \"echo handled\" INT; {READS_ONE}; exit 3'");
        seat.types(&format!("$RUN {handles}; echo code $?\n"));
        seat.sees("ready");
        seat.types(CTRL_C);
        seat.types("\n");
        seat.sees("handled");
        seat.types("one\n");
        seat.sees("code 3");
    });
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    in_cell(|| {
        for shell in [&BASH[..], &DASH] {
            let mut seat = Seat::at(shell);
            seat.types(&format!("$RUN {REPEATS}\n"));
            seat.sees("ready");
            for round in ["one", "two"] {
                seat.types(CTRL_Z);
                seat.sees_where("that it is stopped", |line| line.contains("Stopped"));
                // The terminal is the shell's, which answers.
                seat.types("echo at the shell\n");
                seat.sees("at the shell");
                seat.types("fg\n");
                // It says which job that is.
                seat.sees_where("the job's line", is_job);
                seat.types(&format!("{round}\n"));
                seat.sees(&format!("got {round}"));
            }
            seat.types(CTRL_D);
            seat.sees("end");
        }
    });
}

#[test]
fn settings_of_the_terminal_go_and_come_with_the_command() {
    in_cell(|| {
        let mut seat = Seat::at(&DASH);
        // It turns the translation of line ends off, and never puts it back.
        let turns = "sh -c 'stty -onlcr; echo ready; kill -TSTP $$; stty -a | grep -o -- -onlcr; kill -KILL $$'";
        seat.types(&format!("$RUN {turns}\n"));
        seat.sees("ready");
        seat.sees_where("that it is stopped", |line| line.contains("Stopped"));
        seat.types("stty -a | grep -o -- '.onlcr'\n");
        let line = seat.sees_where("the shell's setting", |line| line.ends_with("onlcr"));
        assert_eq!(line.trim(), "onlcr", "the shell has its own");
        seat.types("fg\n");
        let line = seat.sees_where("the command's setting", |line| line.ends_with("onlcr"));
        assert_eq!(line.trim(), "-onlcr", "the command has its own");
        seat.types("stty -a | grep -o -- '.onlcr'\n");
        let line = seat.sees_where("the shell's setting", |line| line.ends_with("onlcr"));
        assert_eq!(line.trim(), "onlcr", "it is put back after a kill");
    });
}

#[test]
fn a_job_in_the_background_stops_when_it_wants_the_terminal_and_gets_it_by_fg() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        seat.types(&format!("$RUN {REPEATS} &\n"));
        seat.sees("ready");
        seat.types("until jobs | grep Stopped; do :; done\n");
        seat.sees_where("that it is stopped", |line| line.contains("Stopped"));
        seat.types("fg\n");
        seat.sees_where("the job's line", is_job);
        seat.types("one\n");
        seat.sees("got one");
        seat.types(CTRL_D);
        seat.sees("end");
    });
}

#[test]
fn in_a_pipeline_the_terminal_is_its_neighbours_too() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        // The neighbour, as a pager does, reads the terminal itself.
        seat.types(
            "$RUN sh -c 'echo piped' | { read x; echo $x; read y </dev/tty; echo typed $y; }\n",
        );
        seat.sees("piped");
        seat.types("key\n");
        seat.sees("typed key");
        // It asks for the terminal and gets it; then the keys are for it, too.
        seat.types(&format!("$RUN {REPEATS} | cat\n"));
        seat.sees("ready");
        seat.types("one\n");
        seat.sees("got one");
        seat.types(CTRL_Z);
        seat.sees_where("that it is stopped", |line| line.contains("Stopped"));
        seat.types("fg\n");
        seat.types("two\n");
        seat.sees("got two");
        seat.types(CTRL_D);
        seat.sees("end");
    });
}

#[test]
fn what_killed_runs_left_is_told_to_who_sits_there() {
    in_cell(|| {
        let mut seat = Seat::at(&BASH);
        seat.types("$RUN sh -c 'kill -KILL $PPID'\n");
        seat.sees_where("the shell's word", |line| line.starts_with("Killed"));
        seat.types("$RUN true\n");
        seat.sees("mortmain: removed 1 claim that killed runs had left");
    });
}

#[test]
fn without_a_shell_above_it_ctrl_z_is_ignored() {
    in_cell(|| {
        // The tool is in the session leader's group, whose parent is in another session.
        let stays = format!("trap \"echo continued\" CONT; {READS_ONE}; echo got $x");
        let script = format!("stty -echo; $RUN sh -c '{stays}'; echo over");
        let mut seat = Seat::bare(&["sh", "-c", &script]);
        seat.sees("ready");
        for _ in 0..2 {
            seat.types(CTRL_Z);
            seat.types("\n");
            seat.sees("continued");
        }
        seat.types("one\n");
        seat.sees("got one");
        seat.sees("over");
    });
}
