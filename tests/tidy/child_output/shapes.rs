//! What expressions and patterns look like that may have a child's pipe in them.
//!
//! It knows no values: whether a field is a pipe is not told by its looks.

use syn::{BinOp, Expr, ExprField, Ident, Member, Pat, Path, UnOp};

pub(crate) const PIPES: [&str; 3] = ["stdin", "stdout", "stderr"];
pub(crate) const PIPE_TYPES: [&str; 3] = ["ChildStdin", "ChildStdout", "ChildStderr"];

/// Methods of an `Option` that text and bytes do not have, or that nobody needs there.
const OF_OPTIONS: [&str; 35] = [
    "and",
    "and_then",
    "as_deref",
    "as_deref_mut",
    "as_mut",
    "as_pin_mut",
    "as_pin_ref",
    "as_ref",
    "expect",
    "filter",
    "flatten",
    "get_or_insert",
    "get_or_insert_default",
    "get_or_insert_with",
    "inspect",
    "into",
    "into_iter",
    "is_none_or",
    "is_some_and",
    "iter_mut",
    "map",
    "map_or",
    "map_or_default",
    "map_or_else",
    "ok_or",
    "ok_or_else",
    "or",
    "or_else",
    "take",
    "take_if",
    "unwrap",
    "unwrap_or",
    "unwrap_or_else",
    "xor",
    "zip",
];

/// Whether an `Option` can be opened by it, and bytes are not read by it.
pub(crate) fn opens(method: &str, arguments: usize) -> bool {
    // Text and lists have these two as well, with one argument more.
    OF_OPTIONS.contains(&method) || ["insert", "replace"].contains(&method) && arguments == 1
}

/// The field, if the expression is one that may be a pipe.
pub(crate) fn pipe(expr: &Expr) -> Option<(&ExprField, &Ident)> {
    match expr {
        Expr::Paren(inner) => pipe(&inner.expr),
        Expr::Field(field) => match &field.member {
            Member::Named(name) if PIPES.iter().any(|pipe| name == pipe) => Some((field, name)),
            _ => None,
        },
        _ => None,
    }
}

/// The same, also if it is lent: a method sees no difference.
pub(crate) fn lent_pipe(expr: &Expr) -> Option<(&ExprField, &Ident)> {
    match expr {
        Expr::Paren(inner) => lent_pipe(&inner.expr),
        Expr::Reference(inner) => lent_pipe(&inner.expr),
        Expr::Unary(inner) if matches!(inner.op, UnOp::Deref(_)) => lent_pipe(&inner.expr),
        _ => pipe(expr),
    }
}

/// Whether a pattern looks into an `Option` and names what is in it.
pub(crate) fn looks_into(pat: &Pat) -> bool {
    match pat {
        Pat::TupleStruct(inner) => inner.path.segments.last().is_some_and(|it| it.ident == "Some"),
        Pat::Or(or) => or.cases.iter().any(looks_into),
        Pat::Paren(inner) => looks_into(&inner.pat),
        Pat::Reference(inner) => looks_into(&inner.pat),
        Pat::Guard(inner) => looks_into(&inner.pat),
        Pat::Ident(name) => name.subpat.as_ref().is_some_and(|(_, inner)| looks_into(inner)),
        _ => false,
    }
}

/// Whether a pattern gives the whole a name.
pub(crate) fn names_whole(pat: &Pat) -> bool {
    match pat {
        Pat::Ident(name) => name.ident != "None",
        Pat::Type(typed) => names_whole(&typed.pat),
        Pat::Paren(inner) => names_whole(&inner.pat),
        Pat::Guard(inner) => names_whole(&inner.pat),
        _ => false,
    }
}

pub(crate) fn text(path: &Path) -> String {
    let segments = path.segments.iter().map(|segment| segment.ident.to_string());
    segments.collect::<Vec<_>>().join("::")
}

/// Whether it takes its sides by value: no comparison.
pub(crate) fn is_arithmetic(op: &BinOp) -> bool {
    matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
}
