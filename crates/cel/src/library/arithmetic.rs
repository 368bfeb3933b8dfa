//! `+ - * / %` and negation on numbers, times, texts, bytes and lists.
//!
//! Integers never wrap: a result that does not fit is an error.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::library::time;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("_+_", "add_bytes", "(bytes, bytes) -> bytes", add),
    ("_+_", "add_double", "(double, double) -> double", add),
    ("_+_", "add_duration_duration", "(duration, duration) -> duration", add),
    ("_+_", "add_duration_timestamp", "(duration, timestamp) -> timestamp", add),
    ("_+_", "add_timestamp_duration", "(timestamp, duration) -> timestamp", add),
    ("_+_", "add_int64", "(int, int) -> int", add),
    ("_+_", "add_list", "(list(A), list(A)) -> list(A)", add),
    ("_+_", "add_string", "(string, string) -> string", add),
    ("_+_", "add_uint64", "(uint, uint) -> uint", add),
    ("_-_", "subtract_double", "(double, double) -> double", subtract),
    ("_-_", "subtract_duration_duration", "(duration, duration) -> duration", subtract),
    ("_-_", "subtract_int64", "(int, int) -> int", subtract),
    ("_-_", "subtract_timestamp_duration", "(timestamp, duration) -> timestamp", subtract),
    ("_-_", "subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration", subtract),
    ("_-_", "subtract_uint64", "(uint, uint) -> uint", subtract),
    ("_*_", "multiply_double", "(double, double) -> double", multiply),
    ("_*_", "multiply_int64", "(int, int) -> int", multiply),
    ("_*_", "multiply_uint64", "(uint, uint) -> uint", multiply),
    ("_/_", "divide_double", "(double, double) -> double", divide),
    ("_/_", "divide_int64", "(int, int) -> int", divide),
    ("_/_", "divide_uint64", "(uint, uint) -> uint", divide),
    ("_%_", "modulo_int64", "(int, int) -> int", modulo),
    ("_%_", "modulo_uint64", "(uint, uint) -> uint", modulo),
    ("-_", "negate_double", "(double) -> double", negate),
    ("-_", "negate_int64", "(int) -> int", negate),
];

const INT_OVERFLOW: EvalError = EvalError::Overflow { what: "integer" };
const UINT_OVERFLOW: EvalError = EvalError::Overflow { what: "unsigned integer" };
const DURATION_OVERFLOW: EvalError = EvalError::Overflow { what: "integer" };
const TIMESTAMP_OVERFLOW: EvalError = EvalError::Overflow { what: "timestamp" };

fn int(result: Option<i64>) -> Outcome {
    result.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint(result: Option<u64>) -> Outcome {
    result.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration(result: Option<SignedDuration>) -> Outcome {
    result.filter(time::fits_duration).map(Value::Duration).ok_or(DURATION_OVERFLOW)
}

fn timestamp(result: Result<Timestamp, jiff::Error>) -> Outcome {
    result.ok().filter(time::fits_timestamp).map(Value::Timestamp).ok_or(TIMESTAMP_OVERFLOW)
}

pub(crate) fn add(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [left, right] = args else { return Err(EvalError::NoSuchOverload) };
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            context.budget.work((a.len() + b.len()) as u64)?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Value::string(text))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            context.budget.work((a.len() + b.len()) as u64)?;
            Ok(Value::Bytes([a.as_ref(), b.as_ref()].concat().into()))
        }
        (Value::List(a), Value::List(b)) => {
            if b.is_empty() {
                return Ok(left.clone());
            }
            if a.is_empty() {
                return Ok(right.clone());
            }
            context.budget.work(((a.len() + b.len()) * size_of::<Value>()) as u64)?;
            let mut elements = Vec::with_capacity(a.len() + b.len());
            elements.extend_from_slice(a);
            elements.extend_from_slice(b);
            Ok(Value::List(Arc::new(elements)))
        }
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Timestamp(a), Value::Duration(b)) | (Value::Duration(b), Value::Timestamp(a)) => {
            timestamp(a.checked_add(*b))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn subtract(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [left, right] = args else { return Err(EvalError::NoSuchOverload) };
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        (Value::Timestamp(a), Value::Duration(b)) => timestamp(a.checked_sub(*b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => duration(Some(a.duration_since(*b))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn multiply(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn divide(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(EvalError::DivisionByZero),
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a / b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn modulo(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(EvalError::ModulusByZero),
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a % b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn negate(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a)] => int(a.checked_neg()),
        [Value::Double(a)] => Ok(Value::Double(-a)),
        _ => Err(EvalError::NoSuchOverload),
    }
}
