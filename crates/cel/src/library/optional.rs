//! Optional values.

use std::sync::Arc;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("optional.of", "optional_of", "(A) -> optional(A)", of),
    ("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(A) -> optional(A)", of_non_zero),
    ("optional.none", "optional_none", "() -> optional(A)", none),
    ("optional.unwrap", "optional_unwrap", "(list(optional(A))) -> list(A)", unwrap),
    ("unwrapOpt", "optional_unwrapOpt", "list(optional(A)).() -> list(A)", unwrap),
    ("value", "optional_value", "optional(A).() -> A", value),
    ("hasValue", "optional_hasValue", "optional(A).() -> bool", has_value),
    ("or", "optional_or_optional", "optional(A).(optional(A)) -> optional(A)", or),
    ("orValue", "optional_orValue_value", "optional(A).(A) -> A", or_value),
    ("first", "list_first", "list(A).() -> optional(A)", first),
    ("last", "list_last", "list(A).() -> optional(A)", last),
];

fn of(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    args.first().cloned().map(Value::some).ok_or(EvalError::NoSuchOverload)
}

fn of_non_zero(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [value] = args else { return Err(EvalError::NoSuchOverload) };
    Ok(if is_zero(value) { Value::none() } else { Value::some(value.clone()) })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(flag) => !flag,
        Value::Int(int) => *int == 0,
        Value::Uint(uint) => *uint == 0,
        Value::Double(double) => *double == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(elements) => elements.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.is_zero(),
        Value::Optional(Some(inner)) => is_zero(inner),
        _ => false,
    }
}

fn none(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    if args.is_empty() { Ok(Value::none()) } else { Err(EvalError::NoSuchOverload) }
}

fn unwrap(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::List(elements)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work((elements.len() * size_of::<Value>()) as u64)?;
    let mut present = Vec::with_capacity(elements.len());
    for element in elements.iter() {
        match element {
            Value::Optional(inner) => present.extend(inner.as_deref().cloned()),
            _ => return Err(EvalError::NoSuchOverload),
        }
    }
    Ok(Value::List(Arc::new(present)))
}

fn value(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(Some(inner))] => Ok(Value::clone(inner)),
        [Value::Optional(None)] => Err(EvalError::invalid("optional.none() dereference")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn has_value(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn or(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [present @ Value::Optional(Some(_)), _] => Ok(present.clone()),
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn or_value(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(Some(inner)), _] => Ok(Value::clone(inner)),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn first(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::List(elements)] => Ok(Value::Optional(elements.first().cloned().map(Arc::new))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn last(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::List(elements)] => Ok(Value::Optional(elements.last().cloned().map(Arc::new))),
        _ => Err(EvalError::NoSuchOverload),
    }
}
