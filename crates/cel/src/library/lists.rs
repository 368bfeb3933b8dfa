//! Kubernetes' functions on lists: order, sums, extremes and positions.

use std::cmp::Ordering;

use jiff::SignedDuration;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::library::arithmetic;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("isSorted", "list_int_is_sorted_bool", "list(int).() -> bool", is_sorted),
    ("isSorted", "list_uint_is_sorted_bool", "list(uint).() -> bool", is_sorted),
    ("isSorted", "list_double_is_sorted_bool", "list(double).() -> bool", is_sorted),
    ("isSorted", "list_bool_is_sorted_bool", "list(bool).() -> bool", is_sorted),
    ("isSorted", "list_duration_is_sorted_bool", "list(duration).() -> bool", is_sorted),
    ("isSorted", "list_timestamp_is_sorted_bool", "list(timestamp).() -> bool", is_sorted),
    ("isSorted", "list_string_is_sorted_bool", "list(string).() -> bool", is_sorted),
    ("isSorted", "list_bytes_is_sorted_bool", "list(bytes).() -> bool", is_sorted),
    ("sum", "list_int_sum_int", "list(int).() -> int", sum_int),
    ("sum", "list_uint_sum_uint", "list(uint).() -> uint", sum_uint),
    ("sum", "list_double_sum_double", "list(double).() -> double", sum_double),
    ("sum", "list_duration_sum_duration", "list(duration).() -> duration", sum_duration),
    ("max", "list_int_max_int", "list(int).() -> int", max),
    ("max", "list_uint_max_uint", "list(uint).() -> uint", max),
    ("max", "list_double_max_double", "list(double).() -> double", max),
    ("max", "list_bool_max_bool", "list(bool).() -> bool", max),
    ("max", "list_duration_max_duration", "list(duration).() -> duration", max),
    ("max", "list_timestamp_max_timestamp", "list(timestamp).() -> timestamp", max),
    ("max", "list_string_max_string", "list(string).() -> string", max),
    ("max", "list_bytes_max_bytes", "list(bytes).() -> bytes", max),
    ("min", "list_int_min_int", "list(int).() -> int", min),
    ("min", "list_uint_min_uint", "list(uint).() -> uint", min),
    ("min", "list_double_min_double", "list(double).() -> double", min),
    ("min", "list_bool_min_bool", "list(bool).() -> bool", min),
    ("min", "list_duration_min_duration", "list(duration).() -> duration", min),
    ("min", "list_timestamp_min_timestamp", "list(timestamp).() -> timestamp", min),
    ("min", "list_string_min_string", "list(string).() -> string", min),
    ("min", "list_bytes_min_bytes", "list(bytes).() -> bytes", min),
    ("indexOf", "list_a_index_of_int", "list(A).(A) -> int", index_of),
    ("lastIndexOf", "list_a_last_index_of_int", "list(A).(A) -> int", last_index_of),
];

fn elements<'v>(context: &mut Context<'_>, args: &'v [Value]) -> Result<&'v [Value], EvalError> {
    match args {
        [Value::List(elements), ..] => {
            context.budget.work(elements.len() as u64)?;
            Ok(elements)
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn is_sorted(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    for pair in elements(context, args)?.windows(2) {
        if pair[0].order(&pair[1])? == Some(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(context: &mut Context<'_>, args: &[Value], zero: Value) -> Outcome {
    let mut total = zero;
    for (index, element) in elements(context, args)?.iter().enumerate() {
        // A list whose type is unknown may hold something else than its first overload adds up.
        total = if index == 0 && std::mem::discriminant(&total) != std::mem::discriminant(element) {
            arithmetic::add(context, &[element.clone(), zero_like(element)?])?
        } else {
            arithmetic::add(context, &[total, element.clone()])?
        };
    }
    Ok(total)
}

fn zero_like(element: &Value) -> Outcome {
    Ok(match element {
        Value::Int(_) => Value::Int(0),
        Value::Uint(_) => Value::Uint(0),
        Value::Double(_) => Value::Double(0.0),
        Value::Duration(_) => Value::Duration(SignedDuration::ZERO),
        _ => return Err(EvalError::NoSuchOverload),
    })
}

fn sum_int(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    sum(context, args, Value::Int(0))
}

fn sum_uint(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    sum(context, args, Value::Uint(0))
}

fn sum_double(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    sum(context, args, Value::Double(0.0))
}

fn sum_duration(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    sum(context, args, Value::Duration(SignedDuration::ZERO))
}

fn extreme(context: &mut Context<'_>, args: &[Value], name: &str, better: Ordering) -> Outcome {
    let mut best: Option<&Value> = None;
    for element in elements(context, args)? {
        match best {
            None => {
                element.order(element)?;
                best = Some(element);
            }
            Some(known) => {
                if element.order(known)? == Some(better) {
                    best = Some(element);
                }
            }
        }
    }
    best.cloned().ok_or_else(|| EvalError::invalid(format!("{name} called on empty list")))
}

fn max(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    extreme(context, args, "max", Ordering::Greater)
}

fn min(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    extreme(context, args, "min", Ordering::Less)
}

fn index_of(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [_, wanted] = args else { return Err(EvalError::NoSuchOverload) };
    for (index, element) in elements(context, args)?.iter().enumerate() {
        if element.equals(wanted, context.budget)? {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn last_index_of(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [_, wanted] = args else { return Err(EvalError::NoSuchOverload) };
    for (index, element) in elements(context, args)?.iter().enumerate().rev() {
        if element.equals(wanted, context.budget)? {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}
