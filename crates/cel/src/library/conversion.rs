//! Conversions between types: `int`, `uint`, `double`, `string`, `bytes`, `bool`, `type`, `dyn`.

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::library::{strings, time};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("dyn", "to_dyn", "(A) -> dyn", identity),
    ("type", "type", "(A) -> type(A)", type_of),
    ("bool", "bool_to_bool", "(bool) -> bool", identity),
    ("bool", "string_to_bool", "(string) -> bool", to_bool),
    ("bytes", "bytes_to_bytes", "(bytes) -> bytes", identity),
    ("bytes", "string_to_bytes", "(string) -> bytes", to_bytes),
    ("double", "double_to_double", "(double) -> double", identity),
    ("double", "int64_to_double", "(int) -> double", to_double),
    ("double", "string_to_double", "(string) -> double", to_double),
    ("double", "uint64_to_double", "(uint) -> double", to_double),
    ("int", "int64_to_int64", "(int) -> int", identity),
    ("int", "double_to_int64", "(double) -> int", to_int),
    ("int", "duration_to_int64", "(duration) -> int", to_int),
    ("int", "string_to_int64", "(string) -> int", to_int),
    ("int", "timestamp_to_int64", "(timestamp) -> int", to_int),
    ("int", "uint64_to_int64", "(uint) -> int", to_int),
    ("uint", "uint64_to_uint64", "(uint) -> uint", identity),
    ("uint", "double_to_uint64", "(double) -> uint", to_uint),
    ("uint", "int64_to_uint64", "(int) -> uint", to_uint),
    ("uint", "string_to_uint64", "(string) -> uint", to_uint),
    ("string", "string_to_string", "(string) -> string", identity),
    ("string", "bool_to_string", "(bool) -> string", to_string),
    ("string", "bytes_to_string", "(bytes) -> string", to_string),
    ("string", "double_to_string", "(double) -> string", to_string),
    ("string", "duration_to_string", "(duration) -> string", to_string),
    ("string", "int64_to_string", "(int) -> string", to_string),
    ("string", "timestamp_to_string", "(timestamp) -> string", to_string),
    ("string", "uint64_to_string", "(uint) -> string", to_string),
    ("string", "ip_to_string", "(net.IP) -> string", to_string),
    ("string", "cidr_to_string", "(net.CIDR) -> string", to_string),
];

fn identity(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    args.first().cloned().ok_or(EvalError::NoSuchOverload)
}

fn type_of(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    args.first().map(|value| Value::Type(value.type_of())).ok_or(EvalError::NoSuchOverload)
}

fn to_bool(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text)] => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error("string", "bool")),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_bytes(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::String(text)] => {
            context.budget.work(text.len() as u64)?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(crate) fn conversion_error(from: &str, to: &str) -> EvalError {
    EvalError::invalid(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_double(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(int)] => Ok(Value::Double(*int as f64)),
        [Value::Uint(uint)] => Ok(Value::Double(*uint as f64)),
        [Value::String(text)] => {
            parse_double(text).map(Value::Double).ok_or_else(|| conversion_error("string", "double"))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Decimal numbers, and the names of the values that are not finite.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let finite = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let named = matches!(unsigned.to_ascii_lowercase().as_str(), "inf" | "infinity" | "nan");
    if !finite && !named {
        return None;
    }
    let double: f64 = text.parse().ok()?;
    (double.is_finite() || named).then_some(double)
}

fn to_int(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let overflow = EvalError::Overflow { what: "integer" };
    match args {
        [Value::Uint(uint)] => i64::try_from(*uint).map(Value::Int).map_err(|_| overflow),
        [Value::Double(double)] => {
            // Both bounds are excluded: the first double beyond the range is 2^63 itself, and the
            // reference implementation refuses -2^63 as well.
            let bound = 2f64.powi(63);
            if *double > -bound && *double < bound { Ok(Value::Int(*double as i64)) } else { Err(overflow) }
        }
        // The standard reader takes an optional sign and decimal digits, and nothing else.
        [Value::String(text)] => text.parse().map(Value::Int).map_err(|_| conversion_error("string", "int")),
        [Value::Timestamp(timestamp)] => Ok(Value::Int(time::whole_seconds(*timestamp))),
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_nanos() as i64)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_uint(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let overflow = EvalError::Overflow { what: "unsigned integer" };
    match args {
        [Value::Int(int)] => u64::try_from(*int).map(Value::Uint).map_err(|_| overflow),
        [Value::Double(double)] => {
            if *double >= 0.0 && *double < 2f64.powi(64) {
                Ok(Value::Uint(*double as u64))
            } else {
                Err(overflow)
            }
        }
        [Value::String(text)] => match text.parse() {
            Ok(uint) if !text.starts_with('+') => Ok(Value::Uint(uint)),
            _ => Err(conversion_error("string", "uint")),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_string(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Bytes(bytes)] => {
            context.budget.work(bytes.len() as u64)?;
            std::str::from_utf8(bytes)
                .map(Value::string)
                .map_err(|_| EvalError::invalid("invalid UTF-8 in bytes, cannot convert to string"))
        }
        [
            value @ (Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Ip(_)
            | Value::Cidr(_)),
        ] => Ok(Value::string(strings::plain_text(value))),
        _ => Err(EvalError::NoSuchOverload),
    }
}
