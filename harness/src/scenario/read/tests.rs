//! Tests of the reader: what it understands, what it refuses, and what it says then.

use super::*;

const DOCUMENTATION: &str = include_str!("../../../../docs/scenarios.md");

/// What is wrong with a file, a line each: where, what, and what was meant.
#[track_caller]
fn wrong(text: &str) -> Vec<String> {
    let found = match read("a/story", Path::new("story.toml"), text) {
        Ok(story) => panic!("it is understood: {story:?}"),
        Err(found) => found,
    };
    let told = found.iter().map(|one| {
        let help = one.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("{}: {}{help}", one.line(text), one.title)
    });
    told.collect()
}

/// A whole scenario around some steps.
fn around(steps: &str) -> String {
    format!("about = \"a\"\nrules = [\"l1\"]\n[server.first]\n[command.tool]\n{steps}")
}

/// The codes of what is wrong with a file of these lines, after a head.
fn codes(text: &str) -> Vec<String> {
    let text = format!("about = \"x\"\nrules = [\"l1\"]\n{text}");
    let found = read("x", Path::new("x.toml"), &text).err().unwrap_or_default();
    found.into_iter().map(|one| one.code).collect()
}

#[track_caller]
fn check(text: &str, wrong: &[&str]) {
    assert_eq!(codes(text), wrong);
}

const START: &str = "[[step]]\nstart = \"a\"\n";
const SPAWN: &str = "[server.a]\n[command.b]\n[command.c]\n[[step]]\nstart = \"a\"\n[[step]]\n";

#[test]
fn the_example_of_the_documentation_is_understood() {
    let example = DOCUMENTATION.split("```toml\n").nth(1).expect("it has an example");
    let example = example.split("```").next().expect("it has an end");
    let story = read("a/story", Path::new("story.toml"), example).expect("it is understood");
    assert_eq!(story.steps.len(), 5);
    assert!(story.tells_of_the_living());
}

#[test]
fn every_word_is_documented() {
    let quoted = |word: &&str| {
        let ends = ["`", " =", ","];
        ends.iter().any(|end| DOCUMENTATION.contains(&format!("`{word}{end}")))
    };
    let missing: Vec<&str> = vocabulary().into_iter().filter(|word| !quoted(word)).collect();
    assert_eq!(missing, [""; 0], "docs/scenarios.md does not explain these");
}

#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = "about = \"a\"\nrules = [\"l1\", \"zz\"]\nneeds = [\"rood\"]\n\
        [server.first]\nplain-usr = true\n[command.tool]\nlock = \"closd\"\n\
        [[step]]\nstart = \"frist\"\n[[step]]\nspwan = \"tool\"\n\
        [[step]]\nkill = \"first\"\nsweep = \"first\"\n";
    let expected = [
        "2: `zz` is no rule",
        "3: nothing is called `rood` that a machine can have (did you mean `root`?)",
        "5: a server has no `plain-usr` (did you mean `plain-user`?)",
        "7: `lock` cannot be `closd` (did you mean `closed`?)",
        "9: there is no server `frist` (did you mean `first`?)",
        "10: this step does not say what happens (did you mean `spawn`?)",
        "14: a step is one thing, not `kill` and `sweep` (make it two steps)",
    ];
    assert_eq!(wrong(text), expected);
}

#[test]
fn a_name_is_of_the_kind_that_is_meant() {
    let steps = "[[step]]\nclose = \"tool\"\nexpect = [{ untouched = \"first\" }]\n";
    let expected = ["6: `tool` is a command", "7: `first` is a server"];
    assert_eq!(wrong(&around(steps)), expected);
    let twice = "[sweeper.tool]\n[[step]]\nstart = \"first\"\n";
    assert_eq!(wrong(&around(twice))[0], "5: two are called `tool`");
}

#[test]
fn a_need_of_a_step_is_declared() {
    let steps = "[precious.photos]\n[[step]]\nmount = \"photos\"\nat = \"first/files\"\n";
    let expected =
        "6: this step needs `mount` (add it to the head of the file: needs = [\"mount\"])";
    assert_eq!(wrong(&around(steps)), [expected]);
}

#[test]
fn a_place_does_not_lead_out() {
    for place in ["first/../x", "root//etc", "first/./x"] {
        let steps = format!("[[step]]\nremove = \"{place}\"\n");
        let expected = "6: a place is named from above, without `.` and `..`";
        assert_eq!(wrong(&around(&steps)), [expected], "{place}");
    }
}

#[test]
fn a_place_that_is_nearly_one_is_told() {
    let steps = "[[step]]\nremove = \"shard/x\"\n";
    let expected = "6: no place begins with `shard` (did you mean `shared`?)";
    assert_eq!(wrong(&around(steps)), [expected]);
}

#[test]
fn rounds_and_their_number_go_together() {
    let steps = "[[step]]\nstart = \"first\"\nkill-before = \"n\"\n";
    let title = "a step depends on the round, and there are no rounds";
    assert!(wrong(&around(steps))[0].contains(title));
    let text = format!("rounds-max = 9\n{}", around("[[step]]\nstart = \"first\"\n"));
    let expected = "`rounds-max` is given, and no step depends on the round";
    assert!(wrong(&text)[0].contains(expected));
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    assert!(wrong("about = \n")[0].starts_with("1: "));
    assert!(!wrong("[server.first\n[[step]]").is_empty());
}

#[test]
fn a_disk_demands_what_it_needs_and_the_real_kernel() {
    let steps = "[disk.d]\nkind = \"ext4\"\n[server.a]\non = \"d\"\n[[step]]\nstart = \"a\"\n";
    let expected = ["undeclared-need", "undeclared-need", "undeclared-host-only"];
    assert_eq!(codes(steps), expected);
    let head = "needs = [\"loop\", \"program:mkfs.ext4\"]\nhost-only = \"a disk\"\n";
    assert_eq!(codes(&format!("{head}{steps}")), [""; 0]);
}

#[test]
fn no_disk_lies_on_itself() {
    let head = "needs = [\"mount\"]\nhost-only = \"disks\"\n";
    let steps = "[server.s]\non = \"a\"\n[[step]]\nstart = \"s\"\n";
    let disk = |name: &str, lower: &str| {
        format!("[disk.{name}]\nkind = \"overlay\"\nlower = \"{lower}\"\n")
    };
    let round = disk("a", "b") + &disk("b", "a");
    assert_eq!(codes(&format!("{head}{round}{steps}")), ["disk", "disk"]);
    let chain = disk("a", "b") + "[disk.b]\nkind = \"overlay\"\n";
    assert_eq!(codes(&format!("{head}{chain}{steps}")), [""; 0]);
}

#[test]
fn rounds_are_so_many_or_to_the_end() {
    let steps = "[server.a]\n[[step]]\nstart = \"a\"\n";
    assert_eq!(codes(&format!("rounds = 3\n{steps}")), [""; 0]);
    assert_eq!(codes(&format!("rounds-max = 3\n{steps}")), ["rounds"]);
    let by_round = format!("{steps}kill-before = \"n\"\n");
    assert_eq!(codes(&by_round), ["rounds"]);
    assert_eq!(codes(&format!("rounds = 3\n{by_round}")), [""; 0]);
    assert_eq!(codes(&format!("rounds = 3\nrounds-max = 3\n{by_round}")), ["rounds"]);
}

#[test]
fn a_place_can_hold_any_byte_but_those_that_text_can_hold_are_written_so() {
    let plant = |at: &str| {
        format!("[server.a]\n[[step]]\nstart = \"a\"\n[[step]]\nplant = \"file\"\nat = \"{at}\"\n")
    };
    assert_eq!(codes(&plant("a/files/%ff%80")), [""; 0]);
    assert_eq!(codes(&plant("a/files/%2f")), ["place"]);
    assert_eq!(codes(&plant("a/files/100%")), ["place"]);
}

#[test]
fn a_mode_is_no_decimal_number() {
    let chmod = "[server.a]\n[[step]]\nstart = \"a\"\n[[step]]\nchmod = \"a/files\"\n";
    assert_eq!(codes(&format!("{chmod}to = 0o755\n")), [""; 0]);
    assert_eq!(codes(&format!("{chmod}to = 7550\n")), ["wrong-number"]);
    assert_eq!(codes(chmod), ["missing-key"]);
}

#[test]
fn a_namespace_is_a_need_that_is_declared() {
    let first = "[container.c]\n[server.a]\nfirst-in = \"c\"\n";
    check(&format!("{first}{START}"), &["undeclared-need"]);
    check(
        &format!("needs = [\"root\"]\n[server.a]\nboottime-offset = 1\n{START}"),
        &["undeclared-need"],
    );
    check(&format!("needs = [\"time-namespace\"]\n[server.a]\nboottime-offset = 1\n{START}"), &[]);
    check(
        &format!("needs = [\"container\"]\n{first}plain-user = true\n{START}"),
        &["wrong-together"],
    );
}

#[test]
fn a_program_of_the_machine_is_declared_and_told_on_the_host_only() {
    let step = format!("[server.a]\n{START}[[step]]\ntmpfiles = \"1s\"\n");
    check(&step, &["undeclared-need", "undeclared-host-only"]);
    let head = "needs = [\"program:systemd-tmpfiles\"]\nhost-only = \"a real program\"\n";
    check(&format!("{head}{step}"), &[]);
    check(&format!("{head}{}", step.replace("1s", "1 s")), &["age"]);
}

#[test]
fn a_child_is_held_alone_and_not_disturbed_as_well() {
    check(&format!("{SPAWN}spawn = \"b\"\nhold-before = 1\n"), &[]);
    check(&format!("{SPAWN}spawn = [\"b\", \"c\"]\nhold-before = 1\n"), &["several"]);
    let both = "spawn = \"b\"\nhold-before = 1\nkill-before = 1\n";
    check(&format!("{SPAWN}{both}"), &["two-ends"]);
    check(&format!("{SPAWN}spawn = \"b\"\nhold-before = \"n\"\n"), &["rounds"]);
}

#[test]
fn a_command_does_what_a_shell_can_do() {
    let plant = |what: &str| {
        format!("{SPAWN}spawn = \"b\"\n[[step]]\nplant = \"{what}\"\nat = \"a/x\"\nby = \"b\"\n")
    };
    check(&plant("fifo"), &[]);
    check(&plant("socket"), &["unknown-word"]);
    check(&format!("{SPAWN}empty = \"a/files\"\nby = \"a\"\n"), &["wrong-kind"]);
}

#[test]
fn a_stranger_starts_with_the_number_of_who_had_one() {
    let start = "[server.a]\n[stranger.s]\n[[step]]\nstart = \"s\"\nwith-pid-of = ";
    check(&format!("{start}\"a\"\n"), &["undeclared-need"]);
    check(&format!("needs = [\"root\"]\n{start}\"a\"\n"), &[]);
    check(&format!("needs = [\"root\"]\n{start}\"s\"\n"), &["wrong-kind"]);
}

#[test]
fn steps_are_told_several_times_or_in_rounds() {
    check(&format!("times = 0\n[server.a]\n{START}"), &["wrong-number"]);
    check(&format!("times = 3\n[server.a]\n{START}"), &[]);
    check(
        &format!("times = 3\nrounds-max = 3\n[server.a]\n{START}kill-before = \"n\"\n"),
        &["wrong-number"],
    );
}

#[test]
fn a_lock_is_taken_by_a_server_and_a_directory_locked_by_anybody() {
    let step = |rest: &str| format!("[server.a]\n[command.b]\n[[step]]\n{rest}\n");
    check(&step("lock = \"a/files\""), &[]);
    check(&step("lock = \"shared/x\"\nby = \"a\"\nwaits = true"), &[]);
    check(&step("lock = \"a/files\"\nby = \"a\""), &["place"]);
    check(&step("lock = \"shared/x/y\"\nby = \"a\""), &["place"]);
    check(&step("lock = \"shared/x\"\nby = \"b\""), &["wrong-kind"]);
    check(&step("lock = \"a/files\"\nwaits = true"), &["unknown-key"]);
    let waits = "lock = \"shared/x\"\nby = \"a\"\nwaits = true\n";
    check(&step(&format!("{waits}fails = \"TimedOut\"")), &["wrong-together"]);
    check(&step(&format!("{waits}stop-before = 1")), &["wrong-together"]);
    let expect = |what: &str| step(&format!("start = \"a\"\nexpect = [{{ {what} }}]"));
    check(&expect("lock = \"shared/x\", is = \"held\", by = \"a\""), &[]);
    check(&expect("lock = \"shared/x\", is = \"held\""), &["missing-key"]);
    check(&expect("lock = \"shared/x\", is = \"free\", by = \"a\""), &["unknown-key"]);
    check(&expect("lock = \"shared/x\""), &["missing-key"]);
    check(&expect("lock = \"shared/x\", is = \"helt\", by = \"a\""), &["unknown-word"]);
    check(&expect("content = \"shared/x\""), &["missing-key"]);
    check(&expect("content = \"shared/x\", is = [\"a\", \"b\"]"), &[]);
    check(&expect("names = 0, in = \"shared\""), &[]);
}

#[test]
fn several_write_at_once_and_wait_for_nothing_else() {
    let write =
        |rest: &str| format!("[server.a]\n[server.b]\n[[step]]\nwrite = \"shared/x\"\n{rest}\n");
    check(&write("by = [\"a\", \"b\"]\ntext = \"t\""), &[]);
    check(&write("by = \"a\"\ntext = \"t\"\nkill-before = \"sync\""), &[]);
    check(&write("by = [\"a\", \"b\"]\ntext = \"t\"\nfails = \"NoSpace\""), &["several"]);
    check(&write("text = \"t\""), &["missing-key"]);
    check(&write("by = \"a\""), &["missing-key"]);
}

#[test]
fn what_is_passed_is_told_on_the_host_only_and_all_of_it_is_understood() {
    let server = |rest: &str| format!("[server.a]\n{rest}\n[[step]]\ntake-sockets = \"a\"\n");
    check(&server("passed = [\"listening\"]"), &["undeclared-host-only"]);
    let here = |rest: &str| format!("host-only = \"it is real\"\n{}", server(rest));
    check(&here("passed = [\"listening\"]\npassed-to = \"another\""), &[]);
    check(&here("passed = [\"listenin\"]\npassed-to = \"other\""), &["unknown-word"; 2]);
    check(&here("passed-names = [\"web\"]"), &["passed"]);
    check(&here(&format!("passed = [{}]", "\"closed\", ".repeat(17))), &["passed"]);
}

#[test]
fn nothing_is_called_as_the_directory_that_programs_share() {
    check(&format!("[server.shared]\n[server.a]\n{START}"), &["name"]);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]\\{\\}=\", \n.0-9-]{0,200}") {
        let _read = read("a/story", Path::new("story.toml"), &text);
    }
}
