//! Which code the check reads: every test source of every member, code of the other sources that
//! is built for tests only, and all of the harness and of the lab's command but the guard itself.
//!
//! A module that only tests have may lie in a file of its own, or in a directory, and a test may
//! have a module from elsewhere; both are followed, as the compiler would. What `include!` brings
//! in is not seen.

use std::collections::BTreeSet;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, Lit, Meta};

use super::cases::found;
use super::check;
use crate::processes::{GUARD, below_tests};
use crate::tree::{File, Outcome, Tree};

/// A file that was read.
pub(crate) struct Held<'t> {
    pub(crate) file: &'t File,
    pub(crate) syntax: syn::File,
    /// Whether all of it is held to the rule, or the code that is built for tests.
    pub(crate) all: bool,
}

/// The files that are held to the rule, in the order of their paths.
pub(crate) fn held<'t>(tree: &'t Tree, outcome: &mut Outcome) -> Vec<Held<'t>> {
    let mut held = Vec::new();
    let mut elsewhere = Elsewhere::default();
    for file in tree.with_extension("rs").filter(|file| !file.path.starts_with(GUARD)) {
        let is_test = below_tests(file).is_some();
        let all = is_test || ["harness/src/", "src/"].iter().any(|it| file.path.starts_with(it));
        // Whether it is for tests is told by an attribute, or where its module is declared.
        match read(&file.text) {
            Ok(syntax) => {
                elsewhere.look(file, &syntax, is_test);
                held.push(Held { file, syntax, all });
            }
            Err(error) => {
                let line = error.span().start().line;
                outcome.find(&file.path, line, format_args!("cannot be read: {error}"));
            }
        }
    }
    for held in &mut held {
        held.all |= elsewhere.has(&held.file.path);
    }
    held
}

/// Reads a source. A name is the same with `r#` and without, and is read without.
fn read(text: &str) -> syn::Result<syn::File> {
    if text.contains("r#") { syn::parse2(plain(text.parse()?)) } else { syn::parse_file(text) }
}

fn plain(tokens: TokenStream) -> TokenStream {
    let each = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), plain(group.stream()));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        // Some words are names only with it.
        TokenTree::Ident(ident) => match syn::parse_str::<Ident>(&ident.unraw().to_string()) {
            Ok(mut name) => {
                name.set_span(ident.span());
                TokenTree::Ident(name)
            }
            Err(_) => TokenTree::Ident(ident),
        },
        other => other,
    });
    each.collect()
}

/// Modules that are in no file of a test, but belong to one.
#[derive(Default)]
struct Elsewhere {
    files: BTreeSet<String>,
    directories: Vec<String>,
    /// The file that is looked at: its directory, and that in which its modules are.
    beside: String,
    below: String,
    /// The modules around the place, and whether the place is a test's.
    inside: Vec<String>,
    in_tests: bool,
}

impl Elsewhere {
    fn look(&mut self, file: &File, syntax: &syn::File, is_test: bool) {
        let (beside, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        self.beside = beside.to_owned();
        self.below = match name {
            "lib.rs" | "main.rs" | "mod.rs" => beside.to_owned(),
            _ => file.path.trim_end_matches(".rs").to_owned(),
        };
        self.in_tests = is_test || is_of_tests(&syntax.attrs);
        self.visit_file(syntax);
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains(path) || self.directories.iter().any(|it| path.starts_with(it))
    }
}

impl<'ast> Visit<'ast> for Elsewhere {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let before = self.in_tests;
        self.in_tests |= is_of_tests(&module.attrs);
        if module.content.is_some() {
            self.inside.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.inside.pop();
        } else if self.in_tests {
            let path = match path_of(&module.attrs) {
                Some(path) if self.inside.is_empty() => joined(&self.beside, &path),
                path => {
                    let name = path.unwrap_or_else(|| module.ident.to_string());
                    joined(&self.below, &format!("{}/{name}", self.inside.join("/")))
                }
            };
            let stem = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
            self.files.insert(format!("{stem}.rs"));
            self.directories.push(format!("{stem}/"));
        }
        self.in_tests = before;
    }
}

/// A path from a directory, without `..` and empty parts.
fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What `#[path = "…"]` says.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(said) if said.path.is_ident("path") => match &said.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(path) => Some(path.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// Whether what has these attributes is built for tests only.
pub(crate) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && asks_for_tests(list.tokens.clone()),
        Meta::NameValue(_) => false,
    })
}

/// `test`, also among others, but not under a `not`.
fn asks_for_tests(tokens: TokenStream) -> bool {
    let mut negated = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => {
            negated = ident == "not";
            ident == "test"
        }
        TokenTree::Group(group) => !negated && asks_for_tests(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[test]
fn every_test_source_of_every_member_is_held_to_it() {
    let code = "fn a() { child.stdout.take(); }\n";
    for path in [
        "tests/host_a.rs",
        "tests/host_a/b.rs",
        "tests/host_a/b/mod.rs",
        "tests/host_a/main.rs",
        "cli/tests/support/mod.rs",
        "bench/loom/tests/a.rs",
        "harness/src/a.rs",
        "harness/src/actor/mod.rs",
        "src/bench/a.rs",
    ] {
        assert_eq!(found(path, code), ["1:16: `.stdout.take()`"], "{path}");
    }
    for path in ["harness/src/guard/mod.rs", "cli/src/a.rs", "mortmain/examples/a.rs"] {
        assert_eq!(found(path, code), [""; 0], "{path}");
    }
}

#[test]
fn a_module_for_tests_is_held_to_it() {
    let way = "fn a() { child.stdout.take(); }";
    let path = "mutants/src/a.rs";
    for attribute in ["#[cfg(test)]", "#[cfg(all(test, unix))]"] {
        let code = format!("{way}\n{attribute}\nmod tests {{\n{way}\n}}\n");
        assert_eq!(found(path, &code), ["4:16: `.stdout.take()`"], "{attribute}");
    }
    let code = format!("#[test]\n{way}\n#[cfg(test)]\nimpl A {{ {way} }}\n{way}\n");
    assert_eq!(found(path, &code), ["2:16: `.stdout.take()`", "4:25: `.stdout.take()`"]);
    let code = format!("impl A {{ #[cfg(test)] {way}\n{way} }}\n");
    assert_eq!(found(path, &code), ["1:38: `.stdout.take()`"]);
    assert_eq!(found(path, &format!("#![cfg(test)]\n{way}\n")), ["2:16: `.stdout.take()`"]);
    assert_eq!(found(path, &format!("#[cfg(not(test))]\nmod a {{ {way} }}\n")), [""; 0]);
}

#[test]
fn any_item_may_be_for_tests() {
    for item in [
        "const A: Option<ChildStdout> = None;",
        "enum A { B(ChildStdout) }",
        "m! { => ChildStdout }",
        "static A: Option<ChildStdout> = None;",
        "struct A(ChildStdout);",
        "trait A { fn a(b: ChildStdout); }",
        "type A = ChildStdout;",
        "use std::process::ChildStdout;",
    ] {
        assert_eq!(found("cli/src/a.rs", item), [""; 0], "{item}");
        assert_eq!(found("cli/src/a.rs", &format!("#[cfg(test)]\n{item}")).len(), 1, "{item}");
    }
}

#[test]
fn a_module_in_a_file_or_a_directory_of_its_own_is_held_to_it() {
    let way = "fn a() { child.stdout.take(); }\n";
    let declared = "#[cfg(test)]\nmod tests;\nmod other;\nmod x { #[cfg(test)] mod y; }\n";
    check(&Tree::planted(&[
        ("model/src/a.rs", declared),
        ("model/src/a/tests.rs", way),
        ("model/src/a/tests/deep.rs", way),
        ("model/src/a/other.rs", way),
        ("model/src/a/x/y/mod.rs", way),
        (
            "model/src/lib.rs",
            "#[cfg(test)]\n#[path = \"for_tests.rs\"]\nmod tests;\n#[cfg(test)]\nmod more;\n",
        ),
        ("model/src/more.rs", way),
        ("model/src/for_tests.rs", way),
        ("model/src/tests.rs", way),
        ("tests/host_a.rs", "#[path = \"../shared/help.rs\"]\nmod help;\n"),
        ("shared/help.rs", way),
    ]))
    .assert_found(
        &[
            "model/src/a/tests.rs",
            "model/src/a/tests/deep.rs",
            "model/src/a/x/y/mod.rs",
            "model/src/more.rs",
            "model/src/for_tests.rs",
            "shared/help.rs",
        ]
        .map(|path| {
            format!(
                "{path}:1:16: `.stdout.take()`: read what a child says by `ChildGuard::lines`, \
                 under a deadline"
            )
        })
        .each_ref()
        .map(String::as_str),
    );
}

#[test]
fn a_file_that_is_no_rust_is_found() {
    let found = found("tests/host_a.rs", "fn a( {}\n");
    assert!(found[0].starts_with("1: cannot be read: "), "{found:?}");
}
