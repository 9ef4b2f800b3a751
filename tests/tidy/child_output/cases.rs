//! Small sources with each way around, and such as only look like one.

use super::check as check_tree;
use super::ways::START;
use crate::tree::Tree;

/// What is found in a file of a test, as `line:column: what`.
pub(crate) fn found(path: &str, code: &str) -> Vec<String> {
    let outcome = check_tree(&Tree::planted(&[(path, code)]));
    let told = outcome.findings.iter().map(|finding| {
        let finding = finding.strip_prefix(path).unwrap_or(finding).trim_start_matches(':');
        let (place, what) = finding.split_once(": ").unwrap_or_default();
        // What to do instead has a test of its own.
        let what = what.split_once(": ").filter(|_| what.starts_with('`')).map_or(what, |it| it.0);
        format!("{place}: {what}")
    });
    told.collect()
}

/// Takes items, and what is found in them where there is a `^` before it.
#[track_caller]
pub(crate) fn check_items(marked: &str, expected: &[&str]) {
    let mut places = Vec::new();
    let mut code = String::new();
    for part in marked.split('^') {
        code.push_str(part);
        let line = code.matches('\n').count() + 1;
        let column = code.rsplit('\n').next().unwrap_or_default().len() + 1;
        places.push(format!("{line}:{column}"));
    }
    places.pop();
    assert_eq!(places.len(), expected.len(), "a `^` for each: {marked}");
    let expected: Vec<String> =
        places.iter().zip(expected).map(|(place, what)| format!("{place}: {what}")).collect();
    assert_eq!(found("tests/host_a.rs", &code), expected, "{marked}");
}

/// Takes statements.
#[track_caller]
pub(crate) fn check(marked: &str, expected: &[&str]) {
    check_items(&format!("fn test() {{\n{marked}\n}}\n"), expected);
}

#[test]
fn a_finding_says_where_what_and_what_to_use_instead() {
    let code = "fn a() {\n    let out = child.stdout.take();\n    child.stdin.take();\n    \
                Command::new(\"x\").spawn();\n    command.output();\n}\n";
    let outcome = check_tree(&Tree::planted(&[("tests/host_a.rs", code)]));
    outcome.assert_found(&[
        "tests/host_a.rs:2:21: `.stdout.take()`: read what a child says by `ChildGuard::lines`, \
         under a deadline",
        "tests/host_a.rs:3:11: `.stdin.take()`: write to a child by `ChildGuard::send_line`, \
         under a deadline",
        &format!("tests/host_a.rs:4:23: `spawn`: {START}"),
        "tests/host_a.rs:5:13: `output`: it reads without a deadline; use `ChildGuard::lines`, or \
         a `Reader` of a pipe of your own",
    ]);
}

#[test]
fn take_as_a_method() {
    check("let out = child.^stdout.take().unwrap();", &["`.stdout.take()`"]);
    check("self.running[0].child.^stderr.take();", &["`.stderr.take()`"]);
    check("start()?.^stdin.take_if(|_| true);", &["`.stdin.take_if()`"]);
    check("(&mut (child.^stdout)).take();", &["`.stdout.take()`"]);
    check("(*&mut child.^stdout).take();", &["`.stdout.take()`"]);
    check("child.^stdout.map(read);", &["`.stdout.map()`"]);
    check("child.^stdout.unwrap();", &["`.stdout.unwrap()`"]);
}

#[test]
fn take_as_a_function_of_option() {
    check("Option::take(&mut child.^stdout);", &["`Option::take` of `.stdout`"]);
    check("take((&mut child.^stdout));", &["`.stdout` is lent"]);
}

#[test]
fn take_replace_and_swap_of_mem() {
    check("mem::take(&mut child.^stdout);", &["`mem::take` of `.stdout`"]);
    check("std::mem::take(&mut child.^stderr);", &["`std::mem::take` of `.stderr`"]);
    check("mem::replace(&mut child.^stdout, None);", &["`mem::replace` of `.stdout`"]);
    check("mem::swap(&mut mine, &mut child.^stdout);", &["`mem::swap` of `.stdout`"]);
    check("mem::swap(&mut child.^stdout, &mut mine);", &["`mem::swap` of `.stdout`"]);
}

#[test]
fn replace_and_insert_of_an_option_but_not_of_text() {
    check("child.^stdout.replace(other);", &["`.stdout.replace()`"]);
    check("child.^stdout.insert(other);", &["`.stdout.insert()`"]);
    check("finished.stdout.replace(\"a\", \"b\"); report.stdout.insert(0, 'a');", &[]);
}

#[test]
fn as_mut_and_as_ref() {
    check("child.^stdout.as_mut().unwrap().read(&mut b);", &["`.stdout.as_mut()`"]);
    check("child.^stdout.as_ref().unwrap();", &["`.stdout.as_ref()`"]);
    check("(&child.^stdout).as_ref();", &["`.stdout.as_ref()`"]);
    check(
        "child.^stdout.as_deref_mut(); child.^stdout.iter_mut();",
        &["`.stdout.as_deref_mut()`", "`.stdout.iter_mut()`"],
    );
}

#[test]
fn assignment() {
    check("let out = child.^stdout;", &["`.stdout` is moved out"]);
    check("let out: Pipe = (child.^stdout);", &["`.stdout` is moved out"]);
    check("let ref mut out = child.^stdout;", &["`.stdout` is moved out"]);
    check("out = child.^stdout;", &["`.stdout` is moved out"]);
    check("self.out = child.^stdout", &["`.stdout` is moved out"]);
    check("Pipes { out: child.^stdout }", &["`.stdout` is moved out"]);
    check("read(child.^stdout, 1);", &["`.stdout` is moved out"]);
    check("return (child.^stdout, 1);", &["`.stdout` is moved out"]);
    check("|child| child.^stdout", &["`.stdout` is moved out"]);
    check("for out in child.^stdout {}", &["`.stdout` is moved out"]);
    check("match child.^stdout { out => read(out) }", &["`.stdout` is moved out"]);
    check("match child.^stdout { (out) => read(out) }", &["`.stdout` is moved out"]);
    check("match child.^stdout { out if a => read(out) }", &["`.stdout` is moved out"]);
    // To put something in its place is not to have it.
    check("child.stdout = None;", &[]);
}

#[test]
fn a_loan_for_change() {
    check("read(&mut child.^stdout);", &["`read` of `.stdout`"]);
    check("let out = &mut child.^stdout;", &["`.stdout` is lent"]);
    check("let out = &raw mut child.^stdout;", &["`.stdout` is lent"]);
    check("other.swap(&mut child.^stdout);", &["`.stdout` is lent"]);
}

#[test]
fn a_look_into_an_option() {
    check("if let Some(out) = child.^stdout {}", &["`Some` of `.stdout`"]);
    check("if let Some(out) = &child.^stdout {}", &["`Some` of `.stdout`"]);
    check("let Some(out) = &mut child.^stdout else { return };", &["`Some` of `.stdout`"]);
    check("while let (Some(out)) = child.^stdout {}", &["`Some` of `.stdout`"]);
    check("match child.^stdout { None => 0, Some(ref out) => 1 };", &["`Some` of `.stdout`"]);
    check("matches!(&child.^stdout, Some(out) if out.x())", &["`Some` of `.stdout`"]);
    for pat in ["None | Some(_)", "&Some(_)", "all @ Some(_)"] {
        check(&format!("if let {pat} = &child.^stdout {{}}"), &["`Some` of `.stdout`"]);
    }
    check("match &child.^stdout { Some(out) if a => 1, _ => 2 };", &["`Some` of `.stdout`"]);
    check("match output.stdout { b\"x\" => 0, _ => 1 };", &[]);
    check("match child.stdout { None => 0, _ => 1 };", &[]);
}

#[test]
fn destructuring() {
    check("let Child { ^stdout, .. } = child;", &["`Child { stdout }`"]);
    check(
        "let std::process::^Child { ^stderr: out, .. } = child;",
        &["`Child`", "`std::process::Child { stderr }`"],
    );
    check(
        "match child { mortmain::Child { ^stdout: Some(out), .. } => {} }",
        &["`mortmain::Child { stdout }`"],
    );
    check("if let Ok(Child { mut ^stdout, .. }) = start() {}", &["`Child { stdout }`"]);
    check("|Child { ^stdout, .. }| 1", &["`Child { stdout }`"]);
    check("Child { ^stdout: out, .. } = child;", &["`Child { stdout }`"]);
    check_items("fn a(Child { ^stdout, .. }: Child) {}\n", &["`Child { stdout }`"]);
    check_items(
        "use mortmain::Child as Kid;\nfn a(Kid { ^stdout, .. }: Kid) {}\n",
        &["`Kid { stdout }`"],
    );
    check("let Output { stdout, stderr, .. } = output; let Report { stdout } = report;", &[]);
    check(
        "let Child { ^stdin: _x, .. } = child; let Child { id, .. } = child;",
        &["`Child { stdin }`"],
    );
    check("for Child { ^stdout, .. } in all {}", &["`Child { stdout }`"]);
    check("matches!(child, Child { ^stdout: Some(_), .. })", &["`Child { stdout }`"]);
}

#[test]
fn the_name_of_a_type() {
    check_items("use std::process::{^Child, ^ChildStdout};\n", &["`Child`", "`ChildStdout`"]);
    check_items("use std::process::^ChildStderr as Err;\n", &["`ChildStderr as Err`"]);
    check_items("use std::process::^Child as Kid;\n", &["`Child as Kid`"]);
    check_items("use std::^process::*;\n", &["`process::*`"]);
    check_items("struct A { out: Option<^ChildStdout> }\n", &["`ChildStdout`"]);
    check_items("fn a(child: &mut std::process::^Child) {}\n", &["`Child`"]);
    check_items("fn a() -> process::^Child { b() }\n", &["`Child`"]);
    check_items("type Kid = std::process::^Child;\n", &["`Child`"]);
    check_items("use std::process as p;\nstruct A(p::^Child);\n", &["`Child`"]);
    check_items("use std::process::{self as p};\nstruct A(p::^Child);\n", &["`Child`"]);
    check("^ChildStdout::from(fd);", &["`ChildStdout`"]);
    // A claim's child is started by the claim. The other names are of the model and of the world.
    check_items(
        "use mortmain::Child;\nuse crate::state::Child as C;\nstruct A(Child, a::Child);\n",
        &[],
    );
    check_items("use std::process::{self, Command, Stdio};\nuse std::fs::*;\n", &[]);
}

#[test]
fn an_unguarded_start() {
    check("Command::new(\"x\").^spawn()", &["`spawn`"]);
    check("Command::new(\"x\")\n    .arg(\"y\")\n    .^spawn()?", &["`spawn`"]);
    check(
        "let mut c = Command::new(\"x\");\nc.arg(\"y\").stdout(theirs);\nc.^spawn();",
        &["`spawn`"],
    );
    check("c.^spawn();", &["`spawn`"]);
    check("Command::^spawn(&mut c);", &["`spawn`"]);
    check("let start = std::process::Command::^spawn;", &["`spawn`"]);
    check("<Command>::^spawn(&mut c);", &["`spawn`"]);
    check("HostProgram::new(\"x\").^spawn();", &["`spawn`"]);
    check("Command::new(\"x\").^status();", &["`status`"]);
    check_items(
        "use std::process::Command as C;\nfn a(c: &mut C) { c.^status(); }\n",
        &["`status`"],
    );
    check("c.stdout(Stdio::^piped());", &["`Stdio::piped`"]);
    check("use std::process::Stdio as S; c.stdout(S::^piped());", &["`S::piped`"]);
}

#[test]
fn a_start_by_others() {
    check("ChildGuard::spawn(c); ChildGuard::spawn_with_stdin(Command::new(\"x\"));", &[]);
    check("thread::spawn(|| 1); scope.spawn(|| 1); tokio::spawn(work);", &[]);
    check("thread::Builder::new().name(n).spawn(work);", &[]);
    check("claim.spawn(&mut program); Host.spawn(&mut program, &plan);", &[]);
    check("claim.command(\"x\").arg(\"y\").spawn(); claim.command(\"x\").status();", &[]);
    check("let mut c = claim.command(\"x\");\nc.arg(\"y\");\nc.spawn();", &[]);
    check("let mut all = [claim.command(\"x\"), b];\nfor c in &mut all { c.spawn(); }", &[]);
    check_items("fn a(c: &mut mortmain::Command) { c.spawn(); }\n", &[]);
    check_items("use mortmain::Command as C;\nfn a(c: &mut C) { c.spawn(); }\n", &[]);
    check("error.status(); guard.status(); response.status(1);", &[]);
    check_items(
        "impl A { fn spawn(&self) {} fn a(&self) { self.spawn(); self.output(); } }\n",
        &[],
    );
}

#[test]
fn what_is_known_of_a_name_ends_with_its_block() {
    check(
        "let c = claim.command(\"x\");\n{ let c = Command::new(\"x\"); c.^spawn(); }\nc.spawn();",
        &["`spawn`"],
    );
    check("let c = claim.command(\"x\");\n|c| c.^spawn();", &["`spawn`"]);
    check("let c = claim.command(\"x\");\nfor c in all { c.^spawn(); }", &["`spawn`"]);
    check("let c = claim.command(\"x\");\nmatch all { c => c.^spawn() };", &["`spawn`"]);
    check("let c = claim.command(\"x\");\nif let Some(c) = all { c.^spawn(); }", &["`spawn`"]);
    for block in ["if let Some(c) = all {}", "while let Some(c) = all {}", "{ let c = b; }"] {
        check(&format!("let c = claim.command(\"x\");\n{block}\nc.spawn();"), &[]);
    }
}

#[test]
fn a_collection_without_a_deadline() {
    check("Command::new(\"x\").^output()?;", &["`output`"]);
    check("c.^output().unwrap();", &["`output`"]);
    check("claim.command(\"x\").^output();", &["`output`"]);
    check("let collect = mortmain::Command::^output;", &["`output`"]);
    check("child.^wait_with_output();", &["`wait_with_output`"]);
    check("Child::^wait_with_output(child);", &["`wait_with_output`"]);
    check("let c: Child = start();\nc.^wait_with_output();", &["`wait_with_output`"]);
    check("fn output() {} output(); run.output(1); run.output; run.outputs();", &[]);
}

#[test]
fn bytes_and_text_that_are_looked_at() {
    check("String::from_utf8_lossy(&output.stdout);", &[]);
    check("assert!(output.stdout.is_empty(), \"{:?}\", output.stderr);", &[]);
    check("assert_eq!(finished.stdout, \"a\"); assert_eq!((&*output.stdout, 1), (b\"\", 1));", &[]);
    check("finished.stdout.lines().map(|line| line); finished.stderr.contains(\"a\");", &[]);
    check("finished.stdout == other.stdout || b\"0\\n\" != output.stdout;", &[]);
    check("output.stdout[0]; &output.stdout[1..]; *output.stdout; finished.stdout.len", &[]);
    check("for line in finished.stdout.split('\\n') {} output.stdout.iter().rev();", &[]);
    check("finished.stdout.push('a'); finished.stdout += \"a\"; finished.stdout = text;", &[]);
    check("println!(\"{a} {}\", finished.stdout, a = finished.stderr);", &[]);
    check("let text = &finished.stdout; (finished.stdout) == other; &(finished.stdout);", &[]);
    check("child.stdout.is_some();", &[]);
    check("command.stdout(theirs).stdin(Stdio::null()).stderr(other);", &[]);
    check("io::stdout(); let stdout = io::stdout().lock(); let mut out = output.stdout();", &[]);
}

#[test]
fn bytes_and_fields_that_are_known_by_their_type() {
    check("let o: Output = a(); let x = String::from_utf8(o.stdout); o.stderr.into_iter();", &[]);
    check("let o = Report { stdout: a }; let x = o.stdout; mem::take(&mut o.stderr);", &[]);
    check("let o = Report::new(); let x = o.stdout;", &[]);
    check("let x = self.stdout; mem::swap(&mut self.stderr, &mut x); self.stdin.take();", &[]);
    check_items("fn a(o: Output, r: &mut Report) { b(o.stdout); r.stdout.as_mut(); }\n", &[]);
    check_items("fn a() -> Report { b() }\nfn c() { let r = a(); b(r.stdout); }\n", &[]);
    check_items(
        "fn a() { let r = b(); c(r.stdout); }\nfn b() -> io::Result<Report> { d() }\n",
        &[],
    );
    check_items("impl A { fn a(o: Output) { b(o.stdout); } }\n", &[]);
    // Two of a name may be either.
    check_items(
        "fn a() -> R { b() }\nimpl C { fn a() -> Child { b() } }\nfn d() { let r = a(); b(r.^stdout); }\n",
        &["`.stdout` is moved out"],
    );
}

#[test]
fn of_what_is_known_to_be_a_child_nothing_may_be_lent() {
    check(
        "let child = claim.command(\"x\").spawn().unwrap(); read(&child.^stdout);",
        &["`read` of `.stdout`"],
    );
    check("let c: Child = a(); c.^stdout.iter(); c.stdout.is_none();", &["`.stdout.iter()`"]);
    check_items("fn a(c: &Option<Child>) { let x = &c.^stdout; }\n", &["`.stdout` is lent"]);
    check_items(
        "use mortmain::Child as Kid;\nfn a(c: Kid) { c.^stdout.iter(); }\n",
        &["`.stdout.iter()`"],
    );
    check_items(
        "type Kid = mortmain::Child;\nfn a(c: Kid) { c.^stdout.iter(); }\n",
        &["`.stdout.iter()`"],
    );
    check(
        "if let Ok(c) = claim.command(\"x\").spawn() { c.^stdout.iter(); }",
        &["`.stdout.iter()`"],
    );
    check(
        "match claim.command(\"x\").spawn() { Ok(c) => c.^stdout.iter() };",
        &["`.stdout.iter()`"],
    );
}

#[test]
fn a_name_may_be_used_before_it_is_declared() {
    let code =
        "fn a() -> Kid { b() }\nfn c() { a().^stdout.iter(); }\ntype Kid = mortmain::Child;\n";
    check_items(code, &["`.stdout.iter()`"]);
}

#[test]
fn of_the_methods_of_a_child() {
    let code = "impl A for mortmain::Child { fn a(self) { self.^stdout.iter(); } }\n";
    check_items(code, &["`.stdout.iter()`"]);
}

#[test]
fn a_way_within_another_or_within_a_look() {
    let inner = "run(a.^stdin.take())";
    let both = |what| ["`.stdin.take()`", what];
    check(&format!("{inner}.^stdout.take();"), &both("`.stdout.take()`"));
    check(&format!("let out = {inner}.^stdout;"), &both("`.stdout` is moved out"));
    check(&format!("let out = &mut {inner}.^stdout;"), &both("`.stdout` is lent"));
    check(&format!("read(&mut {inner}.^stdout);"), &both("`read` of `.stdout`"));
    check(&format!("if let Some(_) = &{inner}.^stdout {{}}"), &both("`Some` of `.stdout`"));
    for look in ["&_.stdout", "_.stdout == 1", "_.stdout.len()", "_.stdout[0]", "_.stdout = 1"] {
        check(&look.replace('_', inner), &["`.stdin.take()`"]);
    }
    for around in [
        "_;",
        "f(_);",
        "x.f(_);",
        "_.f();",
        "x[_];",
        "*_;",
        "_.x;",
        "x = _;",
        "1 == _;",
        "x + _;",
        "&_;",
        "f(&_);",
        "(_)(1);",
        "let Some(x) = _ else { return };",
        "let Some(x) = y else { _ };",
        "if let Some(x) = _ {}",
        "match _ { x => 1 }",
        "match x { y => _ }",
        "match x { y if _ => 1 }",
        "match _.stdout { b\"\" => 1 }",
        "for x in _ {}",
        "for x in y { _ }",
        "|x| _;",
        "if x { _ }",
        "while _ {}",
        "assert!(x, \"{a}\", a = _);",
        "matches!(_, x);",
    ] {
        check(&around.replace('_', inner), &["`.stdin.take()`"]);
    }
}

#[test]
fn comments_white_space_and_line_breaks() {
    check("child\n    .^stdout /* a */\n    // b\n    . take ( );", &["`.stdout.take()`"]);
    check("mem :: take ( & mut\nchild\n.\n^stdout );", &["`mem::take` of `.stdout`"]);
    check("child . ^r#stdout . take();", &["`.stdout.take()`"]);
    check(
        "child.r#type.^stdout.r#take(); m! { => a.^r#spawn() }",
        &["`.stdout.take()`", "`spawn`"],
    );
    check("let Child\n{\n^stdout\n, .. } = child;", &["`Child { stdout }`"]);
    check(
        "// child.stdout.take()\n/* mem::take(&mut child.stdout) */ \"child.stdout.take()\";",
        &[],
    );
}
