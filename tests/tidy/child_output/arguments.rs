//! What is between the brackets of a macro: expressions, statements, or what only the macro
//! understands.
//!
//! Rust does not say which. So each form is tried, and where none fits the tokens themselves are
//! looked through for the same ways around, with less understanding: no type is known there.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Block, Expr, Macro, Pat, Stmt, Token};

use super::cases::{check, check_items};
use super::shapes::{PIPE_TYPES, PIPES, opens};
use super::ways::{COLLECT, START, instead_of};

/// What a macro was given.
pub(crate) enum Arguments {
    /// Expressions that it only lends.
    Lent(Vec<Expr>),
    /// Expressions of which it does what it likes.
    Values(Vec<Expr>),
    /// A value, the pattern that it is matched against, and what is asked beside it.
    Matched(Box<(Expr, Pat, Option<Expr>)>),
    Statements(Vec<Stmt>),
    /// What is no Rust of itself.
    Unread(TokenStream),
}

/// Macros that print, format and compare, and so take a reference of each argument.
const LENDING: [&str; 13] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "eprint",
    "eprintln",
    "format",
    "format_args",
    "panic",
    "print",
    "println",
    "unreachable",
    "write",
    "writeln",
];

fn lends(name: &str) -> bool {
    let plain = name.strip_prefix("debug_").or(name.strip_prefix("prop_")).unwrap_or(name);
    LENDING.contains(&plain)
}

pub(crate) fn of(called: &Macro) -> Arguments {
    let name = called.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    let tokens = || called.tokens.clone();
    if ["matches", "assert_matches"].contains(&name.as_str())
        && let Ok(all) = matched.parse2(tokens())
    {
        return Arguments::Matched(Box::new(all));
    }
    if let Ok(args) = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens()) {
        let args = args.into_iter().collect();
        return if lends(&name) { Arguments::Lent(args) } else { Arguments::Values(args) };
    }
    match Block::parse_within.parse2(tokens()) {
        Ok(statements) => Arguments::Statements(statements),
        Err(_) => Arguments::Unread(tokens()),
    }
}

fn matched(input: ParseStream<'_>) -> syn::Result<(Expr, Pat, Option<Expr>)> {
    let expr = input.parse()?;
    input.parse::<Token![,]>()?;
    let pat = Pat::parse_multi_with_leading_vert(input)?;
    let guard = input.parse::<Option<Token![if]>>()?.map(|_| input.parse()).transpose()?;
    Ok((expr, pat, guard))
}

/// Tells of each way around that can be seen in tokens.
pub(crate) fn walk(tokens: TokenStream, tell: &mut impl FnMut(Span, String, &'static str)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => walk(group.stream(), tell),
            TokenTree::Ident(ident) => {
                if let Some((what, instead)) = way(&tokens[..at], ident, &tokens[at + 1..]) {
                    tell(ident.span(), what, instead);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn way(
    before: &[TokenTree],
    ident: &proc_macro2::Ident,
    after: &[TokenTree],
) -> Option<(String, &'static str)> {
    let name = ident.to_string();
    let after_dot = before.last().is_some_and(|token| is_punct(token, '.'));
    let after_path = before.last().is_some_and(|token| is_punct(token, ':'));
    let is_called = after.first().is_some_and(is_empty_call);
    match name.as_str() {
        _ if PIPE_TYPES.contains(&name.as_str()) => Some((format!("`{name}`"), instead_of(&name))),
        "Child" => {
            let module = before.len().checked_sub(3).map(|at| &before[at]);
            let std = after_path && module.is_some_and(|module| is_ident(module, "process"));
            let apart = after.first().and_then(pipe_in_braces);
            let what = apart.map(|pipe| format!("`Child {{ {pipe} }}`"));
            Some((
                what.or(std.then(|| "`Child`".to_owned()))?,
                instead_of(apart.unwrap_or("Child")),
            ))
        }
        "piped" if after_path => Some(("`piped`".to_owned(), instead_of("stdout"))),
        "spawn" if after_dot && is_called => {
            let of_claim = before.iter().any(|token| is_ident(token, "command"));
            (!of_claim).then(|| ("`spawn`".to_owned(), START))
        }
        "output" | "wait_with_output" if after_dot && is_called => {
            Some((format!("`{name}`"), COLLECT))
        }
        _ if after_dot && PIPES.contains(&name.as_str()) => {
            let what = match after {
                [dot, TokenTree::Ident(method), TokenTree::Group(args), ..]
                    if is_punct(dot, '.') && opens(&method.to_string(), arguments(args)) =>
                {
                    format!("`.{name}.{method}()`")
                }
                [next, ..] if is_punct(next, ';') => format!("`.{name}` is moved out"),
                // A name or a field is what it is; a call and brackets are something else.
                [TokenTree::Group(_), ..] => return None,
                _ if is_lent_mutably(before) => format!("`.{name}` is lent"),
                _ => return None,
            };
            Some((what, instead_of(&name)))
        }
        _ => None,
    }
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == punct)
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(it) if it == name)
}

fn is_empty_call(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group)
        if group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty())
}

fn arguments(group: &proc_macro2::Group) -> usize {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let parts = tokens.split(|token| is_punct(token, ','));
    parts.filter(|part| !part.is_empty()).count()
}

/// The pipe that is named in braces.
fn pipe_in_braces(token: &TokenTree) -> Option<&'static str> {
    let TokenTree::Group(group) = token else { return None };
    let named = |pipe: &&str| group.stream().into_iter().any(|token| is_ident(&token, pipe));
    PIPES.into_iter().find(|pipe| group.delimiter() == Delimiter::Brace && named(pipe))
}

/// Whether the place that these tokens lead to has `&mut` before it.
fn is_lent_mutably(before: &[TokenTree]) -> bool {
    let place = before.iter().rev().take_while(|token| match token {
        TokenTree::Ident(ident) => ident != "mut",
        TokenTree::Punct(punct) => ".?".contains(punct.as_char()),
        TokenTree::Group(_) => true,
        TokenTree::Literal(_) => true,
    });
    let start = before.len() - place.count();
    matches!(&before[..start], [.., and, mutable] if is_punct(and, '&') && is_ident(mutable, "mut"))
}

#[test]
fn the_arguments_of_a_macro() {
    check("assert!(child.^stdout.take().is_some());", &["`.stdout.take()`"]);
    check("format!(\"{:?}\", child.^stdout.as_mut());", &["`.stdout.as_mut()`"]);
    check("println!(\"{a:?}\", a = mem::take(&mut child.^stdout));", &["`mem::take` of `.stdout`"]);
    check("vec![child.^stdout];", &["`.stdout` is moved out"]);
    check("dbg!(child.^stdout);", &["`.stdout` is moved out"]);
    check("assert_eq!(Command::new(\"x\").^spawn().unwrap().id(), 1);", &["`spawn`"]);
    check("assert!(matches!(child.^stdout, Some(_)));", &["`Some` of `.stdout`"]);
    check("matches!(a, b if c.^stdout.take().is_some());", &["`.stdout.take()`"]);
    check("tokio::join!(async { child.^stdout.take() });", &["`.stdout.take()`"]);
    check("with! { let a = child.^stdout.take(); read(a) }", &["`.stdout.take()`"]);
    check_items(
        "thread_local! { static A: Cell<Option<^ChildStdout>> = a(); }\n",
        &["`ChildStdout`"],
    );
}

#[test]
fn a_macro_that_only_lends_may_be_given_text() {
    for name in LENDING {
        check(&format!("{name}!(\"{{}}\", finished.stdout);"), &[]);
    }
    check("debug_assert_eq!(output.stdout, b\"\"); prop_assert_eq!(output.stdout, b\"\");", &[]);
}

#[test]
fn what_only_a_macro_understands_is_looked_through() {
    check("m! { => child.^stdout.take() }", &["`.stdout.take()`"]);
    check("m! { => child.^stdout.replace(a) }", &["`.stdout.replace()`"]);
    check("m! { => take(&mut child.^stdout) }", &["`.stdout` is lent"]);
    check("m! { => { let a = child.^stdout; } }", &["`.stdout` is moved out"]);
    check("m! { => ^Child { stdout, .. } }", &["`Child { stdout }`"]);
    check("m! { => ^ChildStdout }", &["`ChildStdout`"]);
    check("m! { => std::process::^Child }", &["`Child`"]);
    check("m! { => c.^spawn() }", &["`spawn`"]);
    check("m! { => c.^output() }", &["`output`"]);
    check("m! { => Stdio::^piped() }", &["`piped`"]);
    check_items(
        "macro_rules! a { ($child:expr) => { $child.^stdout.take() }; }\n",
        &["`.stdout.take()`"],
    );
    check("m! { => claim.command(a).spawn() a.spawn(b) c.stdout(d) e.stdout.replace(f, g) }", &[]);
    check("m! { => a::Child output spawn() &a.stdout \"b.stdout.take()\" }", &[]);
    check(
        "m! { => output() a.output(b) stdout.take() &mut c.stdout(d) e.spawn{} &, f.stdout }",
        &[],
    );
}
