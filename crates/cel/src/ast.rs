//! The syntax tree.
//!
//! Owns the shape of an expression after macros are expanded. Every node knows its height and the size
//! of its subtree, so the limits on both are checked while the tree grows and no later pass can
//! overflow the stack. Never checks types.

use crate::value::Value;

/// The height of a syntax tree that later passes are prepared to recurse through. Sized so that the
/// deepest expression evaluates within 512 KiB of stack in a debug build.
pub const AST_DEPTH_MAX: u16 = 160;

/// The nodes of one expression. Macros copy their operands, so the source length alone does not bound
/// the tree.
pub const AST_NODES_MAX: u32 = 20_000;

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    /// Byte offset of the token the node is reported at.
    pub(crate) offset: usize,
    /// The longest path to a leaf, in nodes.
    pub(crate) depth: u16,
    /// The nodes of the subtree.
    pub(crate) nodes: u32,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Value),
    Ident(String),
    Select { operand: Box<Expr>, field: String, test_only: bool },
    Call { function: String, target: Option<Box<Expr>>, args: Vec<Expr> },
    List { elements: Vec<Element> },
    Map { entries: Vec<Entry> },
    Comprehension(Box<Comprehension>),
}

/// An element of a list literal; `[?x]` makes it optional.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) optional: bool,
    pub(crate) value: Expr,
}

/// An entry of a map literal; `{?k: v}` makes it optional.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) optional: bool,
    pub(crate) key: Expr,
    pub(crate) value: Expr,
}

/// A fold over a list or the keys of a map: what the macros become.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl ExprKind {
    fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select { operand, .. } => vec![operand],
            Self::Call { target, args, .. } => target.iter().map(AsRef::as_ref).chain(args).collect(),
            Self::List { elements } => elements.iter().map(|element| &element.value).collect(),
            Self::Map { entries } => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
            Self::Comprehension(fold) => {
                vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
            }
        }
    }
}

impl Expr {
    /// Makes a node, or tells which limit it would break.
    pub(crate) fn new(kind: ExprKind, offset: usize) -> Result<Self, String> {
        let (mut depth, mut nodes) = (0u16, 1u32);
        for child in kind.children() {
            depth = depth.max(child.depth);
            nodes = nodes.saturating_add(child.nodes);
        }
        if depth >= AST_DEPTH_MAX {
            return Err(format!("expression nests deeper than {AST_DEPTH_MAX} levels: split it up"));
        }
        if nodes > AST_NODES_MAX {
            return Err(format!(
                "expression has more than {AST_NODES_MAX} nodes once macros are expanded: split it up"
            ));
        }
        Ok(Self { kind, offset, depth: depth + 1, nodes })
    }

    /// The dotted name that a chain of plain selections spells, as in `a.b.c`.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        let mut fields: Vec<&str> = Vec::new();
        let mut expr = self;
        loop {
            match &expr.kind {
                ExprKind::Ident(name) => {
                    let mut qualified = name.clone();
                    for field in fields.iter().rev() {
                        qualified.push('.');
                        qualified.push_str(field);
                    }
                    return Some(qualified);
                }
                ExprKind::Select { operand, field, test_only: false } => {
                    fields.push(field);
                    expr = operand;
                }
                _ => return None,
            }
        }
    }
}
