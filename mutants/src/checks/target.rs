//! The syntax that a check heads: the smallest piece that begins at the next token.
//!
//! It deliberately knows no types, no `cfg` and nothing of what stands inside a macro
//! call.

use std::fmt;
use std::ops::Range;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What a check heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: TargetKind,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Statement,
    Arm,
    Item,
    Field,
    Call,
    Operand,
    Element,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetKind::Statement => "statement",
            TargetKind::Arm => "match arm",
            TargetKind::Item => "item",
            TargetKind::Field => "field",
            TargetKind::Call => "call",
            TargetKind::Operand => "operand",
            TargetKind::Element => "element",
        })
    }
}

/// What a comment that ends at `after` heads, and the code from there to the end of the
/// innermost item that it stands in or heads. `end` is where the file ends.
pub(super) fn place(
    file: &syn::File,
    tokens: &[Token],
    base: usize,
    after: usize,
    end: usize,
) -> (Option<Target>, Range<usize>) {
    let mut finder = Finder {
        tokens,
        base,
        after,
        next: tokens.iter().position(|token| token.range.start >= after),
        targets: Vec::new(),
        items: Vec::new(),
    };
    finder.visit_file(file);

    let mut target = finder.targets.into_iter().min_by_key(|target| target.range.len());
    if let Some(target) = &mut target
        && matches!(target.kind, TargetKind::Field | TargetKind::Element)
        && let Some(comma) = tokens.iter().find(|token| token.range.start >= target.range.end)
        && comma.symbol == Some(',')
    {
        target.range.end = comma.range.end;
    }
    // An item that the check heads is meant, though the comment itself stands in the item
    // around it.
    let item = finder.items.iter().min_by_key(|(item, headed)| (!headed, item.len()));
    let item_end = item.map_or(end, |(item, _)| item.end);
    let start = finder.next.map_or(end, |next| tokens[next].range.start);
    (target, start.min(item_end)..item_end)
}

/// Collects what begins at one token, and the items around it.
struct Finder<'a> {
    tokens: &'a [Token],
    base: usize,
    /// The end of the comment.
    after: usize,
    /// The first token after it.
    next: Option<usize>,
    targets: Vec<Target>,
    /// Each with whether the check heads it.
    items: Vec<(Range<usize>, bool)>,
}

impl Finder<'_> {
    /// Whether what begins at `start` begins right after the comment, but for
    /// attributes, between which the comment may stand.
    fn headed(&self, start: usize) -> bool {
        let Some(next) = self.next else { return false };
        if start >= self.after {
            return start == self.tokens[next].range.start;
        }
        let first = self.tokens.partition_point(|token| token.range.start < start);
        let mut index = first;
        while index < next {
            let after = skip_attribute(self.tokens, index);
            if after == index {
                return false;
            }
            index = after;
        }
        index == next
    }

    fn offer(&mut self, kind: TargetKind, range: Range<usize>) {
        if self.headed(range.start) {
            self.targets.push(Target { kind, range });
        }
    }

    fn offer_node(&mut self, kind: TargetKind, node: &impl Spanned) {
        let range = range_of(node.span(), self.base);
        self.offer(kind, range);
    }

    fn item(&mut self, node: &impl Spanned) {
        let range = range_of(node.span(), self.base);
        let headed = self.headed(range.start);
        if headed || range.contains(&self.after) {
            self.items.push((range, headed));
        }
        self.offer_node(TargetKind::Item, node);
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_stmt(&mut self, node: &'ast syn::Stmt) {
        // An item in a block is both, and is told as an item.
        if !matches!(node, syn::Stmt::Item(_)) {
            self.offer_node(TargetKind::Statement, node);
        }
        visit::visit_stmt(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        self.offer_node(TargetKind::Arm, node);
        visit::visit_arm(self, node);
    }

    fn visit_item(&mut self, node: &'ast syn::Item) {
        self.item(node);
        visit::visit_item(self, node);
    }

    fn visit_impl_item(&mut self, node: &'ast syn::ImplItem) {
        self.item(node);
        visit::visit_impl_item(self, node);
    }

    fn visit_trait_item(&mut self, node: &'ast syn::TraitItem) {
        self.item(node);
        visit::visit_trait_item(self, node);
    }

    fn visit_field_value(&mut self, node: &'ast syn::FieldValue) {
        self.offer_node(TargetKind::Field, node);
        visit::visit_field_value(self, node);
    }

    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        let start = range_of(node.dot_token.span(), self.base).start;
        let end = range_of(node.paren_token.span.close(), self.base).end;
        self.offer(TargetKind::Call, start..end);
        visit::visit_expr_method_call(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let start = range_of(node.op.span(), self.base).start;
        let end = range_of(node.right.span(), self.base).end;
        self.offer(TargetKind::Operand, start..end);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_array(&mut self, node: &'ast syn::ExprArray) {
        for element in &node.elems {
            self.offer_node(TargetKind::Element, element);
        }
        visit::visit_expr_array(self, node);
    }
}

pub(super) struct Token {
    pub(super) range: Range<usize>,
    /// What a punctuation mark or a delimiter looks like.
    symbol: Option<char>,
}

/// The tokens of a stream in their order, delimiters among them.
pub(super) fn flatten(stream: TokenStream, base: usize, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ('(', ')'),
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket => ('[', ']'),
                    // Not written in any source.
                    Delimiter::None => {
                        flatten(group.stream(), base, tokens);
                        continue;
                    }
                };
                let delimiters = group.delim_span();
                tokens.push(Token::new(delimiters.open(), base, Some(open)));
                flatten(group.stream(), base, tokens);
                tokens.push(Token::new(delimiters.close(), base, Some(close)));
            }
            TokenTree::Punct(punct) => {
                tokens.push(Token::new(punct.span(), base, Some(punct.as_char())));
            }
            other => tokens.push(Token::new(other.span(), base, None)),
        }
    }
}

impl Token {
    fn new(span: Span, base: usize, symbol: Option<char>) -> Token {
        Token { range: range_of(span, base), symbol }
    }
}

/// The index after the attribute that begins at `index` (a doc comment is one, too), or
/// `index` if none does.
fn skip_attribute(tokens: &[Token], index: usize) -> usize {
    let symbol = |index: usize| tokens.get(index).and_then(|token| token.symbol);
    if symbol(index) != Some('#') || symbol(index + 1) != Some('[') {
        return index;
    }
    let mut depth = 0;
    for (offset, token) in tokens[index..].iter().enumerate() {
        match token.symbol {
            Some('[') => depth += 1,
            Some(']') if depth == 1 => return index + offset + 1,
            Some(']') => depth -= 1,
            _ => {}
        }
    }
    index
}

fn range_of(span: Span, base: usize) -> Range<usize> {
    let range = span.byte_range();
    range.start + base..range.end + base
}
