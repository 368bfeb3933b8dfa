//! Reading fields and elements.
//!
//! Owns what `a.b`, `a[b]`, their optional forms and `has()` find, and what they cost. What belongs to the
//! bindings is borrowed on the way down, so a long path clones only its end.

use std::borrow::Cow;
use std::sync::Arc;

use super::Context;
use crate::error::EvalError;
use crate::function::Outcome;
use crate::library::strings;
use crate::program::Node;
use crate::value::Value;

/// A value that is read: out of the bindings, or made on the way.
type Place<'a> = Result<Cow<'a, Value>, EvalError>;

impl<'a> Context<'a> {
    /// Evaluates a node, borrowing from the bindings where it can.
    pub(super) fn place(&mut self, node: &Node) -> Place<'a> {
        match node {
            Node::Variable { name, cost } => self.variable(name, *cost).map(Cow::Borrowed),
            Node::Select { operand, field, cost } => self.select(operand, field, *cost),
            Node::Index { operand, index, optional, cost } => self.index(operand, index, *optional, *cost),
            other => self.eval(other).map(Cow::Owned),
        }
    }

    fn select(&mut self, operand: &Node, field: &Arc<str>, cost: u64) -> Place<'a> {
        let value = self.place(operand)?;
        if matches!(*value, Value::Optional(_)) {
            return self.optional_field(&value, field, cost).map(Cow::Owned);
        }
        self.budget.charge(cost)?;
        let found = match &value {
            Cow::Borrowed(value) => field_of(value, field)?.map(Cow::Borrowed),
            Cow::Owned(value) => field_of(value, field)?.cloned().map(Cow::Owned),
        };
        found.ok_or_else(|| EvalError::NoSuchKey { key: Arc::clone(field) })
    }

    pub(super) fn optional_select(&mut self, operand: &Node, field: &Arc<str>, cost: u64) -> Outcome {
        let value = self.place(operand)?;
        self.optional_field(&value, field, cost)
    }

    fn optional_field(&mut self, value: &Value, field: &str, cost: u64) -> Outcome {
        let found = match value {
            Value::Optional(None) => None,
            Value::Optional(Some(inner)) => field_of(inner, field)?,
            other => field_of(other, field)?,
        };
        self.optional(found, cost)
    }

    /// What an optional access found. An access that finds nothing is not charged.
    fn optional(&mut self, found: Option<&Value>, cost: u64) -> Outcome {
        self.budget.charge(if found.is_some() { cost } else { cost.saturating_sub(1) })?;
        Ok(Value::Optional(found.map(|found| Arc::new(found.clone()))))
    }

    pub(super) fn has(&mut self, operand: &Node, field: &Arc<str>, cost: u64) -> Outcome {
        let value = self.place(operand)?;
        let inner = match &*value {
            Value::Optional(None) => {
                self.budget.charge(cost.saturating_sub(1))?;
                return Ok(Value::Bool(false));
            }
            Value::Optional(Some(inner)) => inner.as_ref(),
            other => other,
        };
        self.budget.charge(cost)?;
        Ok(Value::Bool(field_of(inner, field)?.is_some()))
    }

    fn index(&mut self, operand: &Node, index: &Node, optional: bool, cost: u64) -> Place<'a> {
        let value = self.place(operand)?;
        let index = self.place(index)?;
        let target = match &*value {
            Value::Optional(Some(inner)) => Some(inner.as_ref()),
            Value::Optional(None) => None,
            _ if optional => Some(&*value),
            _ => {
                self.budget.charge(cost)?;
                return match value {
                    Cow::Borrowed(value) => element_of(value, &index).map(Cow::Borrowed),
                    Cow::Owned(value) => element_of(&value, &index).cloned().map(Cow::Owned),
                };
            }
        };
        let found = match target.map(|target| element_of(target, &index)).transpose() {
            Err(EvalError::NoSuchKey { .. } | EvalError::IndexOutOfBounds { .. }) => None,
            found => found?,
        };
        self.optional(found, cost).map(Cow::Owned)
    }
}

/// The field of a value, if it has it. Most values have none; asking a list is a mistake.
fn field_of<'v>(value: &'v Value, field: &str) -> Result<Option<&'v Value>, EvalError> {
    match value {
        Value::Map(map) => Ok(map.get_str(field)),
        Value::List(_) => Err(EvalError::invalid("unsupported index type 'string' in list")),
        _ => Ok(None),
    }
}

fn element_of<'v>(target: &'v Value, index: &Value) -> Result<&'v Value, EvalError> {
    match target {
        Value::List(elements) => {
            let position = list_position(index)?;
            usize::try_from(position)
                .ok()
                .and_then(|position| elements.get(position))
                .ok_or(EvalError::IndexOutOfBounds { index: position })
        }
        Value::Map(map) if let Some(found) = map.get_value(index) => Ok(found),
        _ => match index {
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => {
                Err(EvalError::NoSuchKey { key: Arc::from(strings::plain_text(index)) })
            }
            other => {
                Err(EvalError::invalid(format!("unsupported key type: {}", other.type_of().runtime_name())))
            }
        },
    }
}

/// The position that a value names in a list: any number without a fraction.
fn list_position(index: &Value) -> Result<i64, EvalError> {
    match index {
        Value::Int(int) => Ok(*int),
        Value::Uint(uint) => {
            i64::try_from(*uint).map_err(|_| EvalError::IndexOutOfBounds { index: i64::MAX })
        }
        Value::Double(double) if double.fract() == 0.0 => Ok(*double as i64),
        Value::Double(double) => Err(EvalError::invalid(format!("unsupported index value {double} in list"))),
        other => Err(EvalError::invalid(format!(
            "unsupported index type '{}' in list",
            other.type_of().runtime_name()
        ))),
    }
}
