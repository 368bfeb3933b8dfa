//! Logic, comparison, membership and size.

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

/// The operators that evaluation itself implements appear here for their signatures; their functions
/// are never reached.
pub(crate) const ROWS: &[Row] = &[
    ("_?_:_", "conditional", "(bool, A, A) -> A", by_evaluator),
    ("_&&_", "logical_and", "(bool, bool) -> bool", by_evaluator),
    ("_||_", "logical_or", "(bool, bool) -> bool", by_evaluator),
    ("@not_strictly_false", "not_strictly_false", "(bool) -> bool", by_evaluator),
    ("_[_]", "index_list", "(list(A), int) -> A", by_evaluator),
    ("_[_]", "index_map", "(map(A, B), A) -> B", by_evaluator),
    ("_[_]", "optional_list_index_int", "(optional(list(A)), int) -> optional(A)", by_evaluator),
    ("_[_]", "optional_map_index_value", "(optional(map(A, B)), A) -> optional(B)", by_evaluator),
    ("_[?_]", "list_optindex_optional_int", "(list(A), int) -> optional(A)", by_evaluator),
    ("_[?_]", "optional_list_optindex_optional_int", "(optional(list(A)), int) -> optional(A)", by_evaluator),
    ("_[?_]", "map_optindex_optional_value", "(map(A, B), A) -> optional(B)", by_evaluator),
    (
        "_[?_]",
        "optional_map_optindex_optional_value",
        "(optional(map(A, B)), A) -> optional(B)",
        by_evaluator,
    ),
    ("!_", "logical_not", "(bool) -> bool", not),
    ("_==_", "equals", "(A, A) -> bool", equals),
    ("_!=_", "not_equals", "(A, A) -> bool", not_equals),
    ("@in", "in_list", "(A, list(A)) -> bool", contains),
    ("@in", "in_map", "(A, map(A, B)) -> bool", contains),
    ("size", "size_bytes", "(bytes) -> int", size),
    ("size", "bytes_size", "bytes.() -> int", size),
    ("size", "size_list", "(list(A)) -> int", size),
    ("size", "list_size", "list(A).() -> int", size),
    ("size", "size_map", "(map(A, B)) -> int", size),
    ("size", "map_size", "map(A, B).() -> int", size),
    ("size", "size_string", "(string) -> int", size),
    ("size", "string_size", "string.() -> int", size),
    ("_<_", "less_bool", "(bool, bool) -> bool", less),
    ("_<_", "less_int64", "(int, int) -> bool", less),
    ("_<_", "less_int64_double", "(int, double) -> bool", less),
    ("_<_", "less_int64_uint64", "(int, uint) -> bool", less),
    ("_<_", "less_uint64", "(uint, uint) -> bool", less),
    ("_<_", "less_uint64_double", "(uint, double) -> bool", less),
    ("_<_", "less_uint64_int64", "(uint, int) -> bool", less),
    ("_<_", "less_double", "(double, double) -> bool", less),
    ("_<_", "less_double_int64", "(double, int) -> bool", less),
    ("_<_", "less_double_uint64", "(double, uint) -> bool", less),
    ("_<_", "less_string", "(string, string) -> bool", less),
    ("_<_", "less_bytes", "(bytes, bytes) -> bool", less),
    ("_<_", "less_timestamp", "(timestamp, timestamp) -> bool", less),
    ("_<_", "less_duration", "(duration, duration) -> bool", less),
    ("_<=_", "less_equals_bool", "(bool, bool) -> bool", less_equals),
    ("_<=_", "less_equals_int64", "(int, int) -> bool", less_equals),
    ("_<=_", "less_equals_int64_double", "(int, double) -> bool", less_equals),
    ("_<=_", "less_equals_int64_uint64", "(int, uint) -> bool", less_equals),
    ("_<=_", "less_equals_uint64", "(uint, uint) -> bool", less_equals),
    ("_<=_", "less_equals_uint64_double", "(uint, double) -> bool", less_equals),
    ("_<=_", "less_equals_uint64_int64", "(uint, int) -> bool", less_equals),
    ("_<=_", "less_equals_double", "(double, double) -> bool", less_equals),
    ("_<=_", "less_equals_double_int64", "(double, int) -> bool", less_equals),
    ("_<=_", "less_equals_double_uint64", "(double, uint) -> bool", less_equals),
    ("_<=_", "less_equals_string", "(string, string) -> bool", less_equals),
    ("_<=_", "less_equals_bytes", "(bytes, bytes) -> bool", less_equals),
    ("_<=_", "less_equals_timestamp", "(timestamp, timestamp) -> bool", less_equals),
    ("_<=_", "less_equals_duration", "(duration, duration) -> bool", less_equals),
    ("_>_", "greater_bool", "(bool, bool) -> bool", greater),
    ("_>_", "greater_int64", "(int, int) -> bool", greater),
    ("_>_", "greater_int64_double", "(int, double) -> bool", greater),
    ("_>_", "greater_int64_uint64", "(int, uint) -> bool", greater),
    ("_>_", "greater_uint64", "(uint, uint) -> bool", greater),
    ("_>_", "greater_uint64_double", "(uint, double) -> bool", greater),
    ("_>_", "greater_uint64_int64", "(uint, int) -> bool", greater),
    ("_>_", "greater_double", "(double, double) -> bool", greater),
    ("_>_", "greater_double_int64", "(double, int) -> bool", greater),
    ("_>_", "greater_double_uint64", "(double, uint) -> bool", greater),
    ("_>_", "greater_string", "(string, string) -> bool", greater),
    ("_>_", "greater_bytes", "(bytes, bytes) -> bool", greater),
    ("_>_", "greater_timestamp", "(timestamp, timestamp) -> bool", greater),
    ("_>_", "greater_duration", "(duration, duration) -> bool", greater),
    ("_>=_", "greater_equals_bool", "(bool, bool) -> bool", greater_equals),
    ("_>=_", "greater_equals_int64", "(int, int) -> bool", greater_equals),
    ("_>=_", "greater_equals_int64_double", "(int, double) -> bool", greater_equals),
    ("_>=_", "greater_equals_int64_uint64", "(int, uint) -> bool", greater_equals),
    ("_>=_", "greater_equals_uint64", "(uint, uint) -> bool", greater_equals),
    ("_>=_", "greater_equals_uint64_double", "(uint, double) -> bool", greater_equals),
    ("_>=_", "greater_equals_uint64_int64", "(uint, int) -> bool", greater_equals),
    ("_>=_", "greater_equals_double", "(double, double) -> bool", greater_equals),
    ("_>=_", "greater_equals_double_int64", "(double, int) -> bool", greater_equals),
    ("_>=_", "greater_equals_double_uint64", "(double, uint) -> bool", greater_equals),
    ("_>=_", "greater_equals_string", "(string, string) -> bool", greater_equals),
    ("_>=_", "greater_equals_bytes", "(bytes, bytes) -> bool", greater_equals),
    ("_>=_", "greater_equals_timestamp", "(timestamp, timestamp) -> bool", greater_equals),
    ("_>=_", "greater_equals_duration", "(duration, duration) -> bool", greater_equals),
];

fn by_evaluator(_: &mut Context<'_>, _: &[Value]) -> Outcome {
    Err(EvalError::NoSuchOverload)
}

fn not(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Bool(flag)] => Ok(Value::Bool(!flag)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn equals(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [left, right] = args else { return Err(EvalError::NoSuchOverload) };
    left.equals(right, context.budget).map(Value::Bool)
}

fn not_equals(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [left, right] = args else { return Err(EvalError::NoSuchOverload) };
    left.equals(right, context.budget).map(|equal| Value::Bool(!equal))
}

fn contains(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [needle, Value::List(elements)] => {
            context.budget.work(elements.len() as u64)?;
            for element in elements.iter() {
                if needle.equals(element, context.budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [key, Value::Map(map)] => Ok(Value::Bool(map.get_value(key).is_some())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn size(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text)] => {
            // Counting characters reads the whole text, for one unit of cost.
            context.budget.work(text.len() as u64 / 16)?;
            Ok(Value::Int(text.chars().count() as i64))
        }
        [value @ (Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(value.cost_size() as i64))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Compares, and asks `wanted` about the order found.
fn compare(args: &[Value], wanted: fn(Ordering) -> bool) -> Outcome {
    let [left, right] = args else { return Err(EvalError::NoSuchOverload) };
    match left.order(right)? {
        Some(order) => Ok(Value::Bool(wanted(order))),
        None => Err(EvalError::invalid("NaN values cannot be ordered")),
    }
}

fn less(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    compare(args, Ordering::is_lt)
}

fn less_equals(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    compare(args, Ordering::is_le)
}

fn greater(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    compare(args, Ordering::is_gt)
}

fn greater_equals(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    compare(args, Ordering::is_ge)
}
