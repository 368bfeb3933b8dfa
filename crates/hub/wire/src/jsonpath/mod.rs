//! JSONPath in Kubernetes' dialect: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! A path is compiled once and evaluated many times, with a budget of steps, on values that come from users. Owns the
//! grammar with its quirks, evaluation and printing. Templates with `range` are read but not evaluated: columns have no
//! use for loops. Never changes a value.

mod eval;
mod parse;
mod print;

use serde_json::Value;

pub use eval::{PathError, STEPS_MAX};
pub use parse::PATH_BYTES_MAX;
pub use print::{PRINTED_BYTES_MAX, print};

/// A compiled template.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    /// What stands between and within the braces, in order.
    blocks: Vec<Block>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    /// What stands outside braces.
    Text(Value),
    /// What stands within braces.
    Action(Vec<Node>),
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A quoted string, number or boolean.
    Literal(Value),
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Node>>),
    Filter {
        left: Vec<Node>,
        test: Test,
        right: Vec<Node>,
    },
    /// `range`, `end`, or a word that means nothing.
    Identifier(String),
}

/// `[start:end:step]`; one index is a slice whose end is derived from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    end_is_derived: bool,
    step: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Something like `=!`: an error when it is evaluated, as on a real server.
    Unknown(String),
}

impl JsonPath {
    /// Compiles a template such as `{.metadata.name}`.
    pub fn parse(template: &str) -> Result<Self, String> {
        parse::template(template)
    }

    /// Compiles a path as columns and selectable fields give it, without braces.
    pub fn parse_path(path: &str) -> Result<Self, String> {
        Self::parse(&format!("{{{path}}}"))
    }

    /// What the template finds: one list per part of the template.
    pub fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<Vec<&'a Value>>, PathError> {
        eval::find(&self.blocks, value)
    }

    /// The first thing that the first part of the template finds; nothing also when it cannot be evaluated.
    pub fn first<'a>(&'a self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).ok()?.first()?.first().copied()
    }
}
