//! Values as the API server's libraries see them: whole numbers are 64-bit, everything else is a double, and the two
//! are equal when they mean the same number.
//!
//! Owns equality and the total order of values. Never writes one.

use std::cmp::Ordering;

use serde_json::{Number, Value};

#[derive(Clone, Copy)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

pub(crate) fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(f64::MAX)),
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (num(left), num(right)) {
        (Num::Int(left), Num::Int(right)) => left.cmp(&right),
        (Num::Int(left), Num::Float(right)) => (left as f64).total_cmp(&right),
        (Num::Float(left), Num::Int(right)) => left.total_cmp(&(right as f64)),
        // Zero has one value, whatever its sign.
        (Num::Float(left), Num::Float(right)) => (left + 0.0).total_cmp(&(right + 0.0)),
    }
}

/// Whether two values are the same; `1` and `1.0` are.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((name, left), (other, right))| name == other && same(left, right))
        }
        (left, right) => left == right,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// The order in which values stand in a field set.
pub(crate) fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            for (left, right) in left.iter().zip(right) {
                let found = order(left, right);
                if found.is_ne() {
                    return found;
                }
            }
            left.len().cmp(&right.len())
        }
        (Value::Object(left), Value::Object(right)) => {
            for ((name, left), (other, right)) in left.iter().zip(right) {
                let found = name.cmp(other).then_with(|| order(left, right));
                if found.is_ne() {
                    return found;
                }
            }
            left.len().cmp(&right.len())
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_float_equals_the_integer() {
        assert!(same(&json!(1), &json!(1.0)));
        assert!(!same(&json!(1), &json!("1")));
        assert!(same(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert_eq!(order(&json!(2), &json!(10)), Ordering::Less);
    }

    #[test]
    fn numbers_come_before_strings_and_null_last() {
        let mut values = [json!(null), json!({}), json!([]), json!(true), json!("a"), json!(3)];
        values.sort_by(order);
        assert_eq!(values, [json!(3), json!("a"), json!(true), json!([]), json!({}), json!(null)]);
    }
}
