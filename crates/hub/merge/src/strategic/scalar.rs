//! Scalars as keys of a table. Whole numbers and doubles are different scalars here, even where they mean the same.

use serde_json::Value;

use crate::number::{Num, num};

/// What two scalars have in common when they are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(&'a str),
    /// A container: equal to nothing but its own text.
    Other(String),
}

impl<'a> Key<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => match num(number) {
                Num::Int(int) => Self::Int(int),
                Num::Float(double) => Self::Float((double + 0.0).to_bits()),
            },
            Value::String(text) => Self::Text(text),
            other => Self::Other(other.to_string()),
        }
    }
}
