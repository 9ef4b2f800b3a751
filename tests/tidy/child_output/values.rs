//! What the text of a file tells of a value: whether its fields are a child's pipes, and whether
//! what it starts is guarded.
//!
//! A name is known from the `let`, the parameter or the pattern that binds it: by its type where
//! one is written, and else by how its value is made. Imports, other names by `as` and by `type`
//! count as what they stand for.
//!
//! It deliberately does not guess: what a function of another file returns and what the fields of
//! a structure are stays unknown.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, FnArg, Ident, Pat, Path, ReturnType, Signature, Type, UseTree};

use super::cases::{check, check_items};

/// What is known of a value, or of what can be had out of it by `unwrap`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Value {
    /// A child of the standard library or of a claim. Its fields are pipes.
    Child,
    /// A command that starts a child which nobody guards.
    Command,
    /// A command of a claim, which knows what it starts.
    OfClaim,
    /// Something else.
    Other,
    #[default]
    Unknown,
}

/// A name that a `use` brings in.
#[derive(Debug)]
pub(crate) struct Import<'f> {
    /// From the crate to the thing, by its own name; a `*` at the end is left out.
    pub(crate) path: Vec<&'f Ident>,
    /// What it is called here; nothing for a `*`.
    pub(crate) name: Option<&'f Ident>,
}

/// The names of a tree of imports.
pub(crate) fn imports<'f>(tree: &'f UseTree, above: &[&'f Ident]) -> Vec<Import<'f>> {
    // `self` is the module that the braces belong to.
    let path = |last: &'f Ident| {
        let last = (last != "self").then_some(last);
        above.iter().copied().chain(last).collect::<Vec<_>>()
    };
    match tree {
        UseTree::Path(inner) => imports(&inner.tree, &path(&inner.ident)),
        UseTree::Group(group) => group.items.iter().flat_map(|tree| imports(tree, above)).collect(),
        UseTree::Name(name) => {
            let path = path(&name.ident);
            vec![Import { name: path.last().copied(), path }]
        }
        UseTree::Rename(rename) => {
            vec![Import { path: path(&rename.ident), name: Some(&rename.rename) }]
        }
        UseTree::Glob(_) => vec![Import { path: above.to_vec(), name: None }],
    }
}

/// What types, modules and functions are called in a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    children: BTreeSet<String>,
    commands: BTreeSet<String>,
    of_claims: BTreeSet<String>,
    /// Of the module `std::process` and its like.
    modules: BTreeSet<String>,
    /// What functions of the file return.
    returned: BTreeMap<String, Value>,
}

impl Names {
    pub(crate) fn of(file: &syn::File) -> Names {
        let mut names = Names::default();
        names.children.insert("Child".to_owned());
        // A program of the seam is such a command, too, as far as its methods go.
        names.commands.extend(["Command", "HostProgram"].map(str::to_owned));
        names.modules.insert("process".to_owned());
        names.visit_file(file);
        // Once more, for what is used further up than it is declared.
        names.returned.clear();
        names.visit_file(file);
        names
    }

    /// Whether this is a child's type of the standard library, in full.
    pub(crate) fn is_std_child<'p>(
        &self,
        path: impl DoubleEndedIterator<Item = &'p Ident>,
    ) -> bool {
        let mut path = path.rev();
        let last = path.next().is_some_and(|last| last == "Child");
        last && path.next().is_some_and(|module| self.modules.contains(&module.to_string()))
    }

    /// Whether the path ends in the module of the standard library that has the types.
    pub(crate) fn is_process_module(&self, path: &[&Ident]) -> bool {
        path.last().is_some_and(|last| self.modules.contains(&last.to_string()))
    }

    pub(crate) fn of_path(&self, path: &Path) -> Value {
        let Some(last) = path.segments.last().map(|segment| segment.ident.to_string()) else {
            return Value::Unknown;
        };
        let of_library = path.segments.len() > 1 && path.segments[0].ident == "mortmain";
        if last == "Self" {
            Value::Unknown
        } else if self.children.contains(&last) {
            Value::Child
        } else if self.of_claims.contains(&last) && path.segments.len() == 1
            || of_library && last == "Command"
        {
            Value::OfClaim
        } else if self.commands.contains(&last) {
            Value::Command
        } else {
            Value::Other
        }
    }

    /// What a value of the type is, or has in it.
    pub(crate) fn of_type(&self, ty: &Type) -> Value {
        struct Paths<'n>(&'n Names, BTreeSet<u8>);
        impl<'ast> Visit<'ast> for Paths<'_> {
            fn visit_path(&mut self, path: &'ast Path) {
                self.1.insert(match self.0.of_path(path) {
                    Value::Child => 0,
                    Value::Command => 1,
                    Value::OfClaim => 2,
                    Value::Unknown => 3,
                    Value::Other => 4,
                });
                visit::visit_path(self, path);
            }
            fn visit_type_infer(&mut self, _: &'ast syn::TypeInfer) {
                self.1.insert(3);
            }
        }
        let mut paths = Paths(self, BTreeSet::new());
        paths.visit_type(ty);
        match paths.1.first() {
            Some(0) => Value::Child,
            Some(1) => Value::Command,
            Some(2) => Value::OfClaim,
            Some(3) => Value::Unknown,
            _ => Value::Other,
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for Import { path, name } in imports(&item.tree, &[]) {
            let (Some(last), Some(name)) = (path.last(), name) else { continue };
            let name = name.to_string();
            if self.children.contains(&last.to_string()) {
                self.children.insert(name);
            } else if *last == "Command" && path[0] == "mortmain" {
                self.of_claims.insert(name);
            } else if self.commands.contains(&last.to_string()) {
                self.commands.insert(name);
            } else if self.modules.contains(&last.to_string()) {
                self.modules.insert(name);
            }
        }
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        let name = item.ident.to_string();
        match self.of_type(&item.ty) {
            Value::Child => self.children.insert(name),
            Value::Command => self.commands.insert(name),
            Value::OfClaim => self.of_claims.insert(name),
            Value::Other | Value::Unknown => false,
        };
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        if let ReturnType::Type(_, ty) = &signature.output {
            let value = self.of_type(ty);
            // Two of one name say nothing of either.
            let name = signature.ident.to_string();
            let same = *self.returned.entry(name.clone()).or_insert(value) == value;
            self.returned.insert(name, if same { value } else { Value::Unknown });
        }
    }
}

/// What is known of the names at a place of the file, from the outermost block to the innermost.
#[derive(Debug)]
pub(crate) struct Scopes {
    pub(crate) names: Names,
    blocks: Vec<BTreeMap<String, Value>>,
}

impl Scopes {
    pub(crate) fn new(names: Names) -> Scopes {
        Scopes { names, blocks: Vec::new() }
    }

    pub(crate) fn open(&mut self) {
        self.blocks.push(BTreeMap::new());
    }

    pub(crate) fn close(&mut self) {
        self.blocks.pop();
    }

    pub(crate) fn parameters(&mut self, signature: &Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(input) = input {
                self.bind(&input.pat, self.names.of_type(&input.ty));
            }
        }
    }

    /// Notes what `self` is in the methods of a type.
    pub(crate) fn methods_of(&mut self, ty: &Type) {
        if self.names.of_type(ty) == Value::Child
            && let Some(block) = self.blocks.last_mut()
        {
            block.insert("self".to_owned(), Value::Child);
        }
    }

    /// Notes what the names of the pattern stand for from here on.
    pub(crate) fn bind(&mut self, pat: &Pat, value: Value) {
        match pat {
            Pat::Ident(name) => {
                if let Some(block) = self.blocks.last_mut() {
                    block.insert(name.ident.to_string(), value);
                }
                if let Some((_, inner)) = &name.subpat {
                    self.bind(inner, Value::Unknown);
                }
            }
            Pat::Type(typed) => match self.names.of_type(&typed.ty) {
                Value::Unknown => self.bind(&typed.pat, value),
                written => self.bind(&typed.pat, written),
            },
            Pat::Paren(inner) => self.bind(&inner.pat, value),
            Pat::Reference(inner) => self.bind(&inner.pat, value),
            Pat::Guard(inner) => self.bind(&inner.pat, value),
            Pat::Or(or) => or.cases.iter().for_each(|pat| self.bind(pat, value)),
            Pat::Slice(slice) => slice.elems.iter().for_each(|pat| self.bind(pat, value)),
            Pat::TupleStruct(inner) => {
                let out_of = |segment: &syn::PathSegment| {
                    ["Ok", "Some"].iter().any(|name| segment.ident == name)
                };
                let known = inner.path.segments.last().is_some_and(out_of);
                let value = if known { value } else { Value::Unknown };
                inner.elems.iter().for_each(|pat| self.bind(pat, value));
            }
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|p| self.bind(p, Value::Unknown)),
            Pat::Struct(fields) => {
                fields.fields.iter().for_each(|field| self.bind(&field.pat, Value::Unknown));
            }
            _ => {}
        }
    }

    pub(crate) fn of_expr(&self, expr: &Expr) -> Value {
        match expr {
            Expr::Paren(inner) => self.of_expr(&inner.expr),
            Expr::Try(inner) => self.of_expr(&inner.expr),
            Expr::Reference(inner) => self.of_expr(&inner.expr),
            Expr::Unary(inner) => self.of_expr(&inner.expr),
            Expr::Index(inner) => self.of_expr(&inner.expr),
            Expr::Array(array) => array.elems.first().map_or(Value::Unknown, |e| self.of_expr(e)),
            Expr::Struct(made) => self.names.of_path(&made.path),
            Expr::Path(path) => self.of_name(&path.path),
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => self.of_call(&path.path),
                _ => Value::Unknown,
            },
            Expr::MethodCall(call) => self.of_method(call),
            _ => Value::Unknown,
        }
    }

    fn of_name(&self, path: &Path) -> Value {
        let known = path.get_ident().and_then(|name| {
            let name = name.to_string();
            self.blocks.iter().rev().find_map(|block| block.get(&name))
        });
        // A type of our own has no pipe, unless a field's type says so, which is looked at.
        let own = if path.is_ident("self") { Value::Other } else { Value::Unknown };
        known.copied().unwrap_or(own)
    }

    fn of_call(&self, path: &Path) -> Value {
        let [above @ .., function] = &*path.segments.iter().collect::<Vec<_>>() else {
            return Value::Unknown;
        };
        let Some(of) = above.last() else {
            return self
                .names
                .returned
                .get(&function.ident.to_string())
                .copied()
                .unwrap_or_default();
        };
        let command = self.names.commands.contains(&of.ident.to_string());
        match function.ident.to_string().as_str() {
            "new" if command => Value::Command,
            "spawn" if command => Value::Child,
            "output" if command => Value::Other,
            // What a type makes of itself.
            "new" => Value::Other,
            _ => Value::Unknown,
        }
    }

    fn of_method(&self, call: &syn::ExprMethodCall) -> Value {
        match call.method.to_string().as_str() {
            "spawn" if call.args.is_empty() => Value::Child,
            "output" | "wait_with_output" if call.args.is_empty() => Value::Other,
            // Of a claim, and of nothing else.
            "command" => Value::OfClaim,
            "arg" | "args" | "env" | "envs" | "env_clear" | "env_remove" | "current_dir"
            | "stdin" | "stdout" | "stderr" | "process_group" | "uid" | "gid" | "arg0"
            | "unwrap" | "expect" | "unwrap_or_else" | "as_mut" | "as_ref" | "iter"
            | "iter_mut" | "into_iter" => self.of_expr(&call.receiver),
            _ => Value::Unknown,
        }
    }
}

/// Takes statements after which `c` is a claim's command, and such after which it may be any.
#[track_caller]
fn check_names(of_claim: &[&str], unknown: &[&str]) {
    let claims = |statement: &str| statement.replace('_', "claim.command(\"x\")");
    of_claim.iter().for_each(|it| check(&format!("{}\nc.spawn();", claims(it)), &[]));
    for it in unknown {
        check(&format!("let c = {};\n{it}\nc.^spawn();", claims("_")), &["`spawn`"]);
    }
}

#[test]
fn a_name_is_known_by_how_its_value_is_made() {
    check_names(
        &[
            "let c = _;",
            "let c = (_);",
            "let c = _?;",
            "let c = *_;",
            "let c = &mut _;",
            "let c = [_][0];",
            "let c = _.arg(\"a\").env(\"b\", \"d\").unwrap();",
            "let a = _; let c = a;",
        ],
        &["let c = f(&c);", "let c = c.other();", "let c = { c };", "let c;"],
    );
}

#[test]
fn a_name_is_known_through_its_pattern() {
    check_names(
        &[
            "let (c) = _;",
            "let &c = _;",
            "let Ok(c) = _ else { return };",
            "let (Some(c) | Ok(c)) = _;",
            "let [c, d] = [_, b]; d.spawn();",
            "let mut c = _;",
        ],
        &["let (c, d) = c;", "let A { c } = c;", "let A(c) = c;", "let a @ A(c) = c;"],
    );
    check("match claim.command(\"x\") { c if a => c.spawn(), c => c.spawn() };", &[]);
    check("let c: &mut Cmd<_> = claim.command(\"x\"); c.spawn();", &[]);
}

#[test]
fn a_name_is_known_by_its_type() {
    check_items("fn a(c: &mut mortmain::Command) { c.^output(); }\n", &["`output`"]);
    let code = "use mortmain::Command as C;\nfn a(c: Option<C>) { c.unwrap().^output(); }\n";
    check_items(code, &["`output`"]);
    let code = "type C = mortmain::Command;\nfn a(c: &C) { c.^output(); }\n";
    check_items(code, &["`output`"]);
    let code = "type C = std::process::Command;\nfn a(c: &C) { c.^status(); }\n";
    check_items(code, &["`status`"]);
    // What is left open may be anything.
    check("let o: Option<_> = a; let x = o.^stdout;", &["`.stdout` is moved out"]);
    check_items("impl A { fn a(o: Self) { b(o.^stdout); } }\n", &["`.stdout` is moved out"]);
}

#[test]
fn what_a_command_gives_is_known_by_the_method() {
    check("let c = Command::^spawn(&mut x); c.^stdout.iter();", &["`spawn`", "`.stdout.iter()`"]);
    check("let o = Command::^output(&mut c).unwrap(); b(o.stdout);", &["`output`"]);
    check("let o = c.^output()?; b(o.stdout);", &["`output`"]);
    check("let o = c.^wait_with_output()?; b(o.stdout);", &["`wait_with_output`"]);
}
