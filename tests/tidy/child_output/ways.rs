//! The ways around the guard in one file, found on its syntax tree.
//!
//! A field `stdout`, `stdin` or `stderr` is a pipe where the value is a child, and bytes or text
//! where it is an `Output` or a report of our own. Where the file does not tell which, it is judged
//! by what is done to it: what only a pipe is good for, to be taken, lent for change, moved,
//! destructured or asked as an `Option`, is a way around; to look at bytes, to lend them, to
//! compare them is none. Whoever moves bytes of a value of unknown type says the type where the
//! value is bound.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprField, ExprMethodCall, ImplItem, Item, Member, Pat, Path, Stmt};

use super::arguments::{self, Arguments};
use super::shapes::{
    PIPE_TYPES, PIPES, is_arithmetic, lent_pipe, looks_into, names_whole, opens, pipe, text,
};
use super::sources::{attributes, is_of_tests};
use super::values::{Import, Names, Scopes, Value, imports};

/// One way around, with its place.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

impl Way {
    pub(crate) fn new(at: Span, what: String) -> Way {
        let start = at.start();
        Way { line: start.line, column: start.column + 1, what }
    }
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ways: Vec<Way>,
    /// The first and the last line of each statement and item.
    pub(crate) statements: Vec<(usize, usize)>,
}

/// What to do instead with a pipe, by the field's or the type's name.
pub(crate) fn instead_of(pipe: &str) -> &'static str {
    match pipe {
        "stdin" | "ChildStdin" => "write to a child by `ChildGuard::send_line`, under a deadline",
        _ => "read what a child says by `ChildGuard::lines`, under a deadline",
    }
}

pub(crate) const START: &str = "start it by `ChildGuard`, which ends it and everything below it";
pub(crate) const COLLECT: &str = "it reads without a deadline; use `ChildGuard::lines`, or a \
                                  `Reader` of a pipe of your own";

/// Finds the ways around in a file: all, or those in code that is built for tests only.
pub(crate) fn find(file: &syn::File, all: bool) -> Found {
    let in_scope = all || is_of_tests(&file.attrs);
    let scopes = Scopes::new(Names::of(file));
    let mut finder = Finder { scopes, in_scope, found: Found::default() };
    finder.visit_file(file);
    finder.found.ways.sort_by_key(|way| (way.line, way.column));
    finder.found
}

struct Finder {
    scopes: Scopes,
    in_scope: bool,
    found: Found,
}

impl Finder {
    fn find(&mut self, at: Span, what: impl std::fmt::Display, instead: &str) {
        if self.in_scope {
            self.found.ways.push(Way::new(at, format!("{what}: {instead}")));
        }
    }

    /// What is found in an item or a statement may be excused above it.
    fn note(&mut self, statement: Span) {
        self.found.statements.push((statement.start().line, statement.end().line));
    }

    fn find_pipe(&mut self, name: &syn::Ident, what: impl std::fmt::Display) {
        self.find(name.span(), what, instead_of(&name.to_string()));
    }

    /// A place that is looked at where it is.
    fn looked_at(&mut self, expr: &Expr) {
        match pipe(expr) {
            Some((field, _)) => self.visit_expr(&field.base),
            None => self.visit_expr(expr),
        }
    }

    fn moved(&mut self, field: &ExprField, name: &syn::Ident) {
        if self.scopes.of_expr(&field.base) != Value::Other {
            self.find_pipe(name, format_args!("`.{name}` is moved out"));
        }
        self.visit_expr(&field.base);
    }

    fn lent(&mut self, field: &ExprField, name: &syn::Ident, mutably: bool, to: Option<&Path>) {
        let value = self.scopes.of_expr(&field.base);
        if value == Value::Child || mutably && value != Value::Other {
            match to {
                Some(path) => self.find_pipe(name, format_args!("`{}` of `.{name}`", text(path))),
                None => self.find_pipe(name, format_args!("`.{name}` is lent")),
            }
        }
        self.visit_expr(&field.base);
    }

    /// A value that is matched against patterns.
    fn matched(&mut self, pats: &[&Pat], expr: &Expr) {
        let Some((field, name)) = lent_pipe(expr) else {
            return self.visit_expr(expr);
        };
        let known = self.scopes.of_expr(&field.base) == Value::Other;
        if !known && pats.iter().any(|pat| looks_into(pat)) {
            self.find_pipe(name, format_args!("`Some` of `.{name}`"));
            self.visit_expr(&field.base);
        } else if pats.iter().any(|pat| names_whole(pat)) {
            self.visit_expr(expr);
        } else {
            self.visit_expr(&field.base);
        }
    }

    fn method(&mut self, call: &ExprMethodCall) {
        let method = call.method.to_string();
        if let Some((field, name)) = lent_pipe(&call.receiver) {
            let opened = match self.scopes.of_expr(&field.base) {
                Value::Other => false,
                Value::Child => !["is_some", "is_none"].contains(&method.as_str()),
                _ => opens(&method, call.args.len()),
            };
            if opened {
                self.find_pipe(name, format_args!("`.{name}.{method}()`"));
            }
            self.visit_expr(&field.base);
        } else {
            let value = self.scopes.of_expr(&call.receiver);
            if call.args.is_empty() {
                self.started(call.method.span(), &method, value);
            }
            self.visit_expr(&call.receiver);
        }
        call.args.iter().for_each(|arg| self.visit_expr(arg));
    }

    /// A method that starts or collects, called or named, of a value or a type.
    fn started(&mut self, at: Span, method: &str, of: Value) {
        let unguarded = match method {
            "spawn" => matches!(of, Value::Command | Value::Unknown),
            // Many things have a status.
            "status" => of == Value::Command,
            _ => false,
        };
        if unguarded {
            self.find(at, format_args!("`{method}`"), START);
        }
        if ["output", "wait_with_output"].contains(&method) && of != Value::Other {
            self.find(at, format_args!("`{method}`"), COLLECT);
        }
    }

    fn imported(&mut self, import: &Import<'_>) {
        let Some(last) = import.path.last() else { return };
        let names = &self.scopes.names;
        let whole = import.name.is_none() && names.is_process_module(&import.path);
        let child = import.name.is_some() && names.is_std_child(import.path.iter().copied());
        if whole || child || PIPE_TYPES.iter().any(|pipe| *last == pipe) {
            let what = match import.name {
                None => format!("`{last}::*`"),
                Some(name) if *name == **last => format!("`{last}`"),
                Some(name) => format!("`{last} as {name}`"),
            };
            self.find(last.span(), what, instead_of(&last.to_string()));
        }
    }

    /// A child that is taken apart, with the fields by their names.
    fn taken_apart<'f>(&mut self, path: &Path, fields: impl Iterator<Item = &'f Member>) {
        if self.scopes.names.of_path(path) != Value::Child {
            return;
        }
        for field in fields {
            if let Member::Named(name) = field
                && PIPES.iter().any(|pipe| name == pipe)
            {
                self.find_pipe(name, format_args!("`{} {{ {name} }}`", text(path)));
            }
        }
    }

    fn in_block(&mut self, inner: impl FnOnce(&mut Self)) {
        self.scopes.open();
        inner(self);
        self.scopes.close();
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        let before = self.in_scope;
        self.in_scope |= is_of_tests(attributes(item));
        self.note(item.span());
        visit::visit_item(self, item);
        self.in_scope = before;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let before = self.in_scope;
        self.in_scope |= matches!(item, ImplItem::Fn(method) if is_of_tests(&method.attrs));
        self.note(item.span());
        visit::visit_impl_item(self, item);
        self.in_scope = before;
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.note(statement.span());
        visit::visit_stmt(self, statement);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.in_block(|finder| {
            finder.scopes.parameters(&item.sig);
            visit::visit_item_fn(finder, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.in_block(|finder| {
            finder.scopes.methods_of(&item.self_ty);
            visit::visit_item_impl(finder, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.in_block(|finder| {
            finder.scopes.parameters(&item.sig);
            visit::visit_impl_item_fn(finder, item);
        });
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.in_block(|finder| visit::visit_block(finder, block));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.visit_pat(&local.pat);
        let mut value = Value::Unknown;
        if let Some(init) = &local.init {
            self.matched(&[&local.pat], &init.expr);
            value = self.scopes.of_expr(&init.expr);
            if let Some((_, diverge)) = &init.diverge {
                self.visit_expr(diverge);
            }
        }
        self.scopes.bind(&local.pat, value);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        imports(&item.tree, &[]).iter().for_each(|import| self.imported(import));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let idents = || path.segments.iter().map(|segment| &segment.ident);
        let named = idents().find(|ident| PIPE_TYPES.iter().any(|pipe| ident == pipe));
        let child = self.scopes.names.is_std_child(idents()).then(|| idents().next_back());
        if let Some(ident) = named.or(child.flatten()) {
            self.find(ident.span(), format_args!("`{ident}`"), instead_of(&ident.to_string()));
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        let mut above = expr.path.clone();
        if let Some(last) = above.segments.pop().map(|last| last.ident) {
            let of = match &expr.qself {
                Some(qself) => self.scopes.names.of_type(&qself.ty),
                None if above.segments.is_empty() => Value::Other,
                None => self.scopes.names.of_path(&above),
            };
            if last == "piped" && !above.segments.is_empty() {
                let what = format_args!("`{}`", text(&expr.path));
                self.find(last.span(), what, instead_of("stdout"));
            } else {
                self.started(last.span(), &last.to_string(), of);
            }
        }
        visit::visit_expr_path(self, expr);
    }

    fn visit_pat_struct(&mut self, pat: &'ast syn::PatStruct) {
        self.taken_apart(&pat.path, pat.fields.iter().map(|field| &field.member));
        visit::visit_pat_struct(self, pat);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        // Nobody can make a child by hand: this stands on the left of an assignment.
        self.taken_apart(&expr.path, expr.fields.iter().map(|field| &field.member));
        visit::visit_expr_struct(self, expr);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        if let Some((field, name)) = pipe(expr) {
            return self.moved(field, name);
        }
        match expr {
            Expr::Reference(lent) => match pipe(&lent.expr) {
                Some((field, name)) => self.lent(field, name, lent.mutability.is_some(), None),
                None => visit::visit_expr(self, expr),
            },
            Expr::RawAddr(lent) => match pipe(&lent.expr) {
                Some((field, name)) => self.lent(field, name, true, None),
                None => visit::visit_expr(self, expr),
            },
            Expr::MethodCall(call) => self.method(call),
            Expr::Call(call) => {
                self.visit_expr(&call.func);
                for arg in &call.args {
                    match (arg, &*call.func) {
                        (Expr::Reference(lent), Expr::Path(to)) => match pipe(&lent.expr) {
                            Some((field, name)) => {
                                self.lent(field, name, lent.mutability.is_some(), Some(&to.path));
                            }
                            None => self.visit_expr(arg),
                        },
                        _ => self.visit_expr(arg),
                    }
                }
            }
            Expr::Assign(assign) => {
                self.looked_at(&assign.left);
                self.visit_expr(&assign.right);
            }
            Expr::Binary(binary) if !is_arithmetic(&binary.op) => {
                self.looked_at(&binary.left);
                self.looked_at(&binary.right);
            }
            Expr::Index(index) => {
                self.looked_at(&index.expr);
                self.visit_expr(&index.index);
            }
            Expr::Unary(unary) => self.looked_at(&unary.expr),
            Expr::Field(field) => self.looked_at(&field.base),
            Expr::Let(matched) => {
                self.visit_pat(&matched.pat);
                self.matched(&[&matched.pat], &matched.expr);
                let value = self.scopes.of_expr(&matched.expr);
                self.scopes.bind(&matched.pat, value);
            }
            Expr::Match(matched) => {
                let pats: Vec<&Pat> = matched.arms.iter().map(|arm| &arm.pat).collect();
                self.matched(&pats, &matched.expr);
                let value = self.scopes.of_expr(&matched.expr);
                for arm in &matched.arms {
                    self.in_block(|finder| {
                        finder.scopes.bind(&arm.pat, value);
                        finder.visit_arm(arm);
                    });
                }
            }
            Expr::ForLoop(each) => {
                self.visit_expr(&each.expr);
                let value = self.scopes.of_expr(&each.expr);
                self.in_block(|finder| {
                    finder.visit_pat(&each.pat);
                    finder.scopes.bind(&each.pat, value);
                    finder.visit_block(&each.body);
                });
            }
            Expr::Closure(closure) => self.in_block(|finder| {
                closure.inputs.iter().for_each(|pat| finder.scopes.bind(pat, Value::Unknown));
                visit::visit_expr(finder, expr);
            }),
            Expr::If(_) | Expr::While(_) => self.in_block(|finder| visit::visit_expr(finder, expr)),
            _ => visit::visit_expr(self, expr),
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        match arguments::of(called) {
            Arguments::Lent(args) => args.iter().for_each(|arg| match arg {
                // A name of the format's own.
                Expr::Assign(named) => self.looked_at(&named.right),
                arg => self.looked_at(arg),
            }),
            Arguments::Matched(all) => {
                let (expr, pat, guard) = &*all;
                self.visit_pat(pat);
                self.matched(&[pat], expr);
                guard.iter().for_each(|guard| self.visit_expr(guard));
            }
            Arguments::Values(args) => args.iter().for_each(|arg| self.visit_expr(arg)),
            Arguments::Statements(statements) => self.in_block(|finder| {
                statements.iter().for_each(|statement| finder.visit_stmt(statement));
            }),
            Arguments::Unread(tokens) => {
                arguments::walk(tokens, &mut |at, what, instead| self.find(at, what, instead));
            }
        }
    }
}
