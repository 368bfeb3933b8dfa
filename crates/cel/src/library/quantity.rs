//! Kubernetes resource quantities: `500m`, `1.5Gi`, `2e3`.
//!
//! Exact: an amount is a whole number of nano units. Also remembers the scale an amount was written
//! in, because Kubernetes says "integer" only of amounts that need no scaling down.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub use berth_text::quantity::QuantityError;
use berth_text::quantity::{Number, Suffix};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("quantity", "string_to_quantity", "(string) -> kubernetes.Quantity", quantity),
    ("isQuantity", "is_quantity_string", "(string) -> bool", is_quantity),
    ("sign", "quantity_sign", "(kubernetes.Quantity) -> int", sign),
    (
        "isGreaterThan",
        "quantity_is_greater_than",
        "kubernetes.Quantity.(kubernetes.Quantity) -> bool",
        is_greater,
    ),
    ("isLessThan", "quantity_is_less_than", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", is_less),
    ("compareTo", "quantity_compare_to", "kubernetes.Quantity.(kubernetes.Quantity) -> int", compare_to),
    ("asApproximateFloat", "quantity_get_float", "kubernetes.Quantity.() -> double", as_float),
    ("asInteger", "quantity_get_int", "kubernetes.Quantity.() -> int", as_integer),
    ("isInteger", "quantity_is_integer", "kubernetes.Quantity.() -> bool", is_integer),
    ("add", "quantity_add", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", add),
    ("add", "quantity_add_int", "kubernetes.Quantity.(int) -> kubernetes.Quantity", add),
    ("sub", "quantity_sub", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", sub),
    ("sub", "quantity_sub_int", "kubernetes.Quantity.(int) -> kubernetes.Quantity", sub),
];

/// Nano units in one.
const NANO: i128 = 1_000_000_000;
/// Digits that are sure to fit 64 bits.
const SMALL_DIGITS: i32 = 18;
/// The longest quantity accepted, in bytes.
const TEXT_BYTES_MAX: usize = 128;

/// An amount of a resource. Between about ±1.7e29, in steps of 1e-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    /// The power of ten of the last digit it was written with.
    scale: i32,
    /// Whether Kubernetes keeps it as a big decimal, which is never an "integer".
    big: bool,
}

impl Quantity {
    /// Reads a quantity. Digits below a nano unit are rounded away from zero. As in Kubernetes, a suffix
    /// without a number is zero.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(QuantityError::Format);
        }
        let (number, suffix) = Number::split(text);
        let suffix = Suffix::read(suffix)?;
        let (whole, fraction) = (number.significant(), number.fraction);
        let value: i128 = format!("{whole}{fraction}").parse().map_err(|_| QuantityError::Number)?;
        let significant = whole.len() + fraction.len();
        let (scale, small, factor) = match suffix {
            Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => {
                let scale = exponent.checked_sub(fraction.len() as i32).ok_or(QuantityError::Number)?;
                (scale, SMALL_DIGITS - significant as i32 >= 0 && scale >= -9, 1)
            }
            Suffix::Binary(exponent) => {
                let room = 15 - significant as i32 - (exponent * 3 / 10) as i32 - 1;
                let small = fraction.is_empty() && room >= 0;
                (-(fraction.len() as i32), small, 1i128 << exponent)
            }
        };
        let value = value.checked_mul(factor).ok_or(QuantityError::Number)?;
        let mut nanos = scale_up(value, scale.saturating_add(9)).ok_or(QuantityError::Number)?;
        if factor > 1 && !small {
            // Kubernetes caps what is written with a binary suffix.
            nanos = nanos.min(i128::from(i64::MAX) * NANO);
        }
        let nanos = if number.negative { -nanos } else { nanos };
        Ok(Self { nanos, scale, big: !small })
    }

    /// A whole number.
    pub fn from_int(int: i64) -> Self {
        Self { nanos: i128::from(int) * NANO, scale: 0, big: false }
    }

    /// Orders amounts, however they were written.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    fn integer(&self) -> Option<i64> {
        if self.big || self.scale < 0 {
            return None;
        }
        i64::try_from(self.nanos / NANO).ok()
    }

    fn approximate(&self) -> f64 {
        let scale = if self.big { -9 } else { self.scale };
        let base = scale_up(self.nanos, -9 - scale).unwrap_or(self.nanos) as f64;
        if scale == 0 { base } else { base * power_of_ten(scale) }
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let nanos = self.nanos.checked_add(other.nanos)?;
        let scale = match (self.nanos, other.nanos) {
            (_, 0) => self.scale,
            (0, _) => other.scale,
            _ => self.scale.min(other.scale),
        };
        // A sum that outgrows 64 bits at its scale becomes a big decimal, as do sums with one.
        let value = scale_up(nanos, -9 - scale);
        let big = self.big || other.big || value.is_none_or(|value| i64::try_from(value).is_err());
        Some(Self { nanos, scale, big })
    }

    fn negated(&self) -> Self {
        Self { nanos: -self.nanos, ..*self }
    }
}

/// The exact decimal amount, without suffix.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) =
            (self.nanos.unsigned_abs() / NANO as u128, self.nanos.unsigned_abs() % NANO as u128);
        let sign = if self.nanos < 0 { "-" } else { "" };
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let fraction = format!("{rest:09}");
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// `value · 10^exponent`, rounded away from zero where digits are lost.
fn scale_up(value: i128, exponent: i32) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let factor = 10i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return value.checked_mul(factor?);
    }
    // Fewer than one unit in the last place, whatever the digits.
    let Some(factor) = factor else { return Some(value.signum()) };
    let quotient = value / factor;
    Some(if value % factor == 0 { quotient } else { quotient + value.signum() })
}

/// The nearest double; computing it by repeated multiplication would drift.
fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::INFINITY)
}

fn quantity(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    Quantity::parse(text).map(wrap).map_err(|error| EvalError::invalid(error.to_string()))
}

fn wrap(quantity: Quantity) -> Value {
    Value::Quantity(Arc::new(quantity))
}

fn is_quantity(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Bool(Quantity::parse(text).is_ok()))
}

fn one(args: &[Value]) -> Result<&Quantity, EvalError> {
    match args {
        [Value::Quantity(quantity)] => Ok(quantity),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn order(args: &[Value]) -> Result<Ordering, EvalError> {
    match args {
        [Value::Quantity(a), Value::Quantity(b)] => Ok(a.compare(b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn sign(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    one(args).map(|quantity| Value::Int(quantity.nanos.signum() as i64))
}

fn is_greater(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Bool(order.is_gt()))
}

fn is_less(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Bool(order.is_lt()))
}

fn compare_to(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    order(args).map(|order| Value::Int(order as i64))
}

fn as_float(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    one(args).map(|quantity| Value::Double(quantity.approximate()))
}

fn as_integer(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let integer = one(args)?.integer();
    integer.map(Value::Int).ok_or_else(|| EvalError::invalid("cannot convert value to integer"))
}

fn is_integer(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    one(args).map(|quantity| Value::Bool(quantity.integer().is_some()))
}

/// The two amounts of an addition; the second may be a plain number.
fn operands(args: &[Value]) -> Result<(Quantity, Quantity), EvalError> {
    match args {
        [Value::Quantity(a), Value::Quantity(b)] => Ok((**a, **b)),
        [Value::Quantity(a), Value::Int(b)] => Ok((**a, Quantity::from_int(*b))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn add(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (a, b) = operands(args)?;
    a.plus(&b).map(wrap).ok_or(EvalError::Overflow { what: "quantity" })
}

fn sub(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (a, b) = operands(args)?;
    a.plus(&b.negated()).map(wrap).ok_or(EvalError::Overflow { what: "quantity" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_whatever_the_suffix() {
        for (text, exact) in [
            ("0", "0"),
            ("500m", "0.5"),
            ("1.5Gi", "1610612736"),
            ("2e3", "2000"),
            ("1E", "1000000000000000000"),
            ("-1Ki", "-1024"),
            ("0.0000000001", "0.000000001"),
            (".5", "0.5"),
            ("5.", "5"),
        ] {
            assert_eq!(
                Quantity::parse(text).map(|quantity| quantity.to_string()),
                Ok(exact.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in ["", "a", "1x", "1KiB", "1.2.3", "--1", "1e", "1 Gi", "1e99999999999", "1e2147483647"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }
}
