//! `mortmain run` that is killed: its command lives on in a directory that nobody takes, and after
//! the command's end the next run takes it.

use std::fs;
use std::path::Path;

use mortmain_harness::ground::names_in;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::chance::Numbers;
use crate::support::{TOOL, hold, in_cell, kill, others_end, ran, run_in, said, soon};

#[test]
fn the_command_of_a_killed_run_keeps_its_directory_and_after_its_end_the_next_run_takes_it() {
    in_cell(|| {
        let root = scratch_root();
        let script = "cd $TMPDIR; echo alive > canary; mkfifo never; echo $$; echo $TMPDIR; \
                      read x <never";
        let mut first = ChildGuard::spawn(run_in(&root, &[], script)).unwrap();
        let command = hold(&said(&mut first, "the command's pid"));
        let directory = said(&mut first, "its directory");
        first.kill_hard().unwrap();

        for _ in 0..2 {
            let next = ran(run_in(&root, &["--verbose"], "true"));
            let [told] = &next.lines[..] else { panic!("{next:#?}") };
            assert!(told.contains(": kept: the lock of command 0 is held"), "{told}");
            let canary = fs::read_to_string(Path::new(&directory).join("canary"));
            assert_eq!(canary.unwrap(), "alive\n");
        }

        kill(&command);
        let last = ran(run_in(&root, &["--verbose"], "true"));
        let [told] = &last.lines[..] else { panic!("{last:#?}") };
        assert!(told.contains("`mortmain` has ended; its command has ended"), "{told}");
        assert!(names_in(&root).is_empty());
    });
}

/// Steps of the suite; each says a line.
const STEPS: u64 = 12;

#[test]
fn a_suite_that_is_killed_anywhere_leaves_nothing_after_the_next_run() {
    in_cell(|| {
        let mut numbers = Numbers::announced();
        let (root, outside) = (scratch_root(), scratch_root());
        fs::write(outside.join("precious"), "text").unwrap();
        // What tests leave: files, directories nobody may enter, links outwards, runs inside.
        let suite = format!(
            "echo $$; cd $TMPDIR; for step in $(seq {STEPS}); do \
             mkdir dir-$step; echo $step > dir-$step/file; ln -s {} dir-$step/link; \
             chmod 000 dir-$step; \
             if [ $((step % 4)) = 0 ]; then {TOOL} run -- sh -c 'echo > $TMPDIR/inner'; fi; \
             echo step $step; done",
            outside.display()
        );
        for round in 0..12 {
            // Past the steps lies the end; at 0, nobody knows how far it has come.
            let after = numbers.below(STEPS + 3);
            let with_command = numbers.below(2) == 0;
            println!("round {round}: after {after} lines, with its command: {with_command}");
            let mut run = ChildGuard::spawn(run_in(&root, &[], &suite)).unwrap();
            let lines: Vec<String> =
                (0..after.min(STEPS + 1)).map(|_| said(&mut run, "a line of the suite")).collect();
            let command = lines.first().and_then(|pid| {
                mortmain_harness::wait::Watch::open(pid.parse().expect("it is a pid")).unwrap()
            });
            run.kill_hard().unwrap();
            if let Some(command) = command.filter(|_| with_command) {
                kill(&command);
            }
            others_end(soon());

            let next = ran(run_in(&root, &["--verbose"], "true"));
            assert!(names_in(&root).is_empty(), "{next:#?}");
            assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "text");
        }
    });
}
