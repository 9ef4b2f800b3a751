//! The walk over the syntax tree of a file, which collects what the operators would change.

use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Meta, Pat, Signature, Type, UnOp};

use super::{Change, Form, Found, Operator, OuterModule, Site, in_one_line, values};

pub(super) fn visit(file: &syn::File, source: &str, base: usize) -> Found {
    let mut finder =
        Finder { source, base, names: Vec::new(), modules: Vec::new(), found: Found::default() };
    finder.found.no_std = file.attrs.iter().any(says_no_std);
    if !excluded(&file.attrs) {
        finder.visit_file(file);
    }
    // The order of the file, in which an outer place comes before those within it.
    finder
        .found
        .sites
        .sort_by_key(|site| (site.form.range().start, usize::MAX - site.form.range().end));
    finder.found
}

struct Finder<'s> {
    source: &'s str,
    base: usize,
    /// Modules, types, traits and functions around the current place.
    names: Vec<String>,
    /// The modules among them.
    modules: Vec<String>,
    found: Found,
}

impl Finder<'_> {
    fn range(&self, node: &impl Spanned) -> Range<usize> {
        self.bytes(node.span())
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        range.start + self.base..range.end + self.base
    }

    fn text(&self, node: &impl Spanned) -> &str {
        &self.source[self.range(node)]
    }

    fn add(&mut self, form: Form, changes: Vec<Change>) {
        if !changes.is_empty() {
            let function = self.names.join("::");
            self.found.sites.push(Site { form, function, changes });
        }
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.names.push(name);
        visit(self);
        self.names.pop();
    }

    /// A function: its body as a whole, and what is in it.
    fn function(&mut self, signature: &Signature, attributes: &[Attribute], block: &Block) {
        let unsafe_ = matches!(signature.safety, syn::Safety::Unsafe(_));
        let constant = signature.constness.is_some();
        if excluded(attributes) || unsafe_ || constant || block.stmts.is_empty() {
            return;
        }
        self.within(signature.ident.to_string(), |finder| {
            let body = finder.range(block);
            finder.found.bodies.push(body.clone());
            finder.body(signature, block, body);
            finder.visit_block(block);
        });
    }

    fn body(&mut self, signature: &Signature, block: &Block, body: Range<usize>) {
        let inside = &self.source[body.start + 1..body.end - 1];
        if inside.trim_start().starts_with("#!") {
            // An inner attribute, before which nothing may stand.
            return;
        }
        let from = in_one_line(inside);
        let ty_text = |ty: &Type| self.text(ty).to_owned();
        let values = values::of_return(&signature.output, &ty_text);
        let at = block.stmts.first().map_or(body.start, |first| self.range(first).start);
        let changes = values.into_iter().filter(|value| *value != from).map(|value| Change {
            operator: Operator::Body,
            at,
            from: from.clone(),
            text: value.clone(),
            to: value,
        });
        let changes = changes.collect();
        self.add(Form::Body(body), changes);
    }

    fn opening(&mut self, block: &Block) {
        let brace = self.bytes(block.brace_token.span.open());
        self.found.loops.push(brace.end);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.sig, &node.attrs, &node.block);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if node.sig.ident != "new" {
            self.function(&node.sig, &node.attrs, &node.block);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default
            && node.sig.ident != "new"
        {
            self.function(&node.sig, &node.attrs, block);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let of_default =
            |path: &syn::Path| path.segments.last().is_some_and(|last| last.ident == "Default");
        if excluded(&node.attrs) || node.trait_.as_ref().is_some_and(|(path, _)| of_default(path)) {
            return;
        }
        let ty = in_one_line(self.text(&*node.self_ty));
        let name = match &node.trait_ {
            Some((path, _)) => format!("<{} for {ty}>", in_one_line(self.text(path))),
            None => ty,
        };
        self.within(name, |finder| visit::visit_item_impl(finder, node));
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        if !excluded(&node.attrs) {
            self.within(node.ident.to_string(), |finder| visit::visit_item_trait(finder, node));
        }
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if excluded(&node.attrs) {
            return;
        }
        let name = node.ident.to_string().trim_start_matches("r#").to_owned();
        if node.content.is_none() {
            let path = node.attrs.iter().find_map(path_attribute);
            self.found.modules.push(OuterModule { inside: self.modules.clone(), name, path });
            return;
        }
        self.modules.push(name.clone());
        self.within(name, |finder| visit::visit_item_mod(finder, node));
        self.modules.pop();
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        // A condition that binds names must stay one of `if` or `while`, in no parentheses.
        if !binds(&node.left) && !binds(&node.right) && node.attrs.is_empty() {
            let operator = self.range(&node.op);
            let (whole, left, right) =
                (self.range(node), self.text(&*node.left), self.text(&*node.right));
            let from = in_one_line(&self.source[whole.clone()]);
            let changes = others(&node.op).iter().map(|other| {
                let [before, after] = [whole.start..operator.start, operator.end..whole.end];
                let shown = format!("{}{other}{}", &self.source[before], &self.source[after]);
                // What is assigned to is no value, and needs no parentheses.
                let text = if other.ends_with('=') && !COMPARISONS.contains(other) {
                    format!("{left} {other} ({right})")
                } else {
                    format!("(({left}) {other} ({right}))")
                };
                Change {
                    operator: Operator::Binary,
                    at: operator.start,
                    from: from.clone(),
                    to: in_one_line(&shown),
                    text,
                }
            });
            let changes = changes.collect();
            self.add(Form::Expression(whole), changes);
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        if matches!(node.op, UnOp::Not(_) | UnOp::Neg(_)) && node.attrs.is_empty() {
            let whole = self.range(node);
            let inner = self.text(&*node.expr);
            let change = Change {
                operator: Operator::Unary,
                at: whole.start,
                from: in_one_line(self.text(node)),
                to: in_one_line(inner),
                text: format!("({inner})"),
            };
            self.add(Form::Expression(whole), vec![change]);
        }
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let rest = node.arms.iter().any(|arm| matches!(arm.pat, Pat::Wild(_)));
        for arm in &node.arms {
            match &arm.pat {
                Pat::Wild(_) => {}
                Pat::Guard(guarded) if binds(&guarded.guard) => {}
                Pat::Guard(guarded) => {
                    let range = self.range(&*guarded.guard);
                    let at = range.start;
                    let pattern = in_one_line(self.text(&*guarded.pat));
                    let guard = in_one_line(self.text(&*guarded.guard));
                    let changes = ["true", "false"].map(|value| Change {
                        operator: Operator::Guard,
                        at,
                        from: format!("{pattern} if {guard}"),
                        to: format!("{pattern} if {value}"),
                        text: String::new(),
                    });
                    self.add(Form::Guard(range), changes.into());
                }
                pattern if rest => {
                    let range = self.range(pattern);
                    let change = Change {
                        operator: Operator::Arm,
                        at: range.start,
                        from: in_one_line(self.text(arm)).trim_end_matches(',').to_owned(),
                        to: "(left out)".to_owned(),
                        text: String::new(),
                    };
                    self.add(Form::Arm { pattern_end: range.end }, vec![change]);
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Pat::Guard(guarded) = &node.pat {
            self.visit_expr(&guarded.guard);
        }
        self.visit_expr(&node.body);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        if let Some(base) = &node.rest
            && node.attrs.is_empty()
        {
            let whole = self.range(node);
            let base = in_one_line(self.text(&**base));
            let changes: Vec<Change> = node
                .fields
                .pairs()
                .map(|pair| {
                    let field = self.range(*pair.value());
                    // With its comma.
                    let end = pair.punct().map_or(field.end, |comma| self.range(*comma).end);
                    let [before, after] = [whole.start..field.start, end..whole.end];
                    Change {
                        operator: Operator::Field,
                        at: field.start,
                        from: in_one_line(&self.source[field]),
                        to: format!("..{base}"),
                        text: format!("({}{})", &self.source[before], &self.source[after]),
                    }
                })
                .collect();
            self.add(Form::Expression(whole), changes);
        }
        visit::visit_expr_struct(self, node);
    }

    fn visit_expr_for_loop(&mut self, node: &'ast syn::ExprForLoop) {
        self.opening(&node.body);
        visit::visit_expr_for_loop(self, node);
    }

    fn visit_expr_loop(&mut self, node: &'ast syn::ExprLoop) {
        self.opening(&node.body);
        visit::visit_expr_loop(self, node);
    }

    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.opening(&node.body);
        visit::visit_expr_while(self, node);
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    // What the compiler computes, and what is no code.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_unsafe(&mut self, _: &'ast syn::ExprUnsafe) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
}

/// The comparisons that end like an assignment.
const COMPARISONS: [&str; 4] = ["==", "!=", "<=", ">="];

/// What could stand there instead of an operator.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) | BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) | BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        _ => &[],
    }
}

/// Whether a condition is, or joins, a `let`.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(both) => binds(&both.left) || binds(&both.right),
        _ => false,
    }
}

/// Whether attributes say that something is a test, or only there for tests, or to be skipped.
fn excluded(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        match &attribute.meta {
            Meta::List(list) if path.is_ident("cfg") => {
                let words = list.tokens.to_string();
                let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.clone().any(|word| word == "test") && !words.any(|word| word == "not")
            }
            _ => {
                let mut names = path.segments.iter().map(|segment| segment.ident.to_string());
                match (names.next().as_deref(), names.next().as_deref()) {
                    (Some("mutants"), Some("skip")) => true,
                    _ => path.segments.last().is_some_and(|last| last.ident == "test"),
                }
            }
        }
    })
}

fn says_no_std(attribute: &Attribute) -> bool {
    attribute.path().is_ident("no_std")
        || matches!(&attribute.meta, Meta::List(list)
            if attribute.path().is_ident("cfg_attr") && list.tokens.to_string().contains("no_std"))
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    let syn::Lit::Str(text) = &literal.lit else { return None };
    attribute.path().is_ident("path").then(|| text.value())
}
