//! Amounts of resources, as Kubernetes writes them: `4`, `500m`, `16Gi`, `1e3`.
//!
//! Owns reading such an amount as the same 64-bit float that Kubernetes' own approximate conversion gives, bit
//! for bit, because scores computed from it are compared with those of other programs. Never does arithmetic
//! on amounts and never rewrites them: an object keeps the text it came with.

use std::{borrow::Cow, fmt};

use berth_text::quantity::{Number as Digits, Suffix};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

/// What the schema lets through; slightly more than can be parsed, as in the reference.
pub const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Decimal digits that always fit a 64-bit integer.
const DIGITS_EXACT_MAX: usize = 18;
/// Amounts are kept in multiples of 10^-9 at the finest; what is finer is rounded away from zero.
const SCALE_MIN: i64 = -9;
/// Amounts with a binary suffix are capped here: the largest 64-bit integer, in units of 10^-9.
const BINARY_MAX_NANO: &str = "9223372036854775807000000000";

/// An amount of a resource, a JSON number or a text, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// Written as a number.
    Number(Number),
    /// Written as a text, with or without a suffix.
    Text(String),
}

/// By what it is, not by trying one form after the other: there are many in every cluster, and a try that fails costs as much
/// as all the rest of one.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;

        impl Visitor<'_> for Amount {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount: a number or a text such as 500m or 16Gi")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::Number(number.into()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity::Number(number.into()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
                let finite = Number::from_f64(number);
                finite.map(Quantity::Number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Quantity, E> {
                Ok(Quantity::Text(text))
            }
        }

        deserializer.deserialize_any(Amount)
    }
}

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Neither sign, digits, point nor suffix where one is expected.
    #[error("not an amount: write digits, optionally with a point and a suffix, such as 4, 500m or 16Gi")]
    Malformed,
    /// The digits are followed by something that is no known suffix.
    #[error(
        "unknown suffix: use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3"
    )]
    Suffix,
}

/// An amount taken apart: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

impl Quantity {
    /// Reads a text as an amount, refusing what Kubernetes refuses and any text without a digit (some of which
    /// Kubernetes' reader takes for zero, but its schemas never let through).
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        Parts::of(text)?;
        Ok(Self::Text(text.to_owned()))
    }

    /// The amount as it was written.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Number(number) => Cow::Owned(number.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }

    /// The amount as the float that Kubernetes' `AsApproximateFloat64` gives.
    ///
    /// Beyond the range of a float it is infinite, and zero times an exponent beyond that range is not a number,
    /// just as there: callers that compare must expect both.
    pub fn approximate_f64(&self) -> Result<f64, QuantityError> {
        Parts::of(&self.text()).map(|parts| parts.approximate_f64())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl From<i64> for Quantity {
    fn from(amount: i64) -> Self {
        Self::Number(amount.into())
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": QUANTITY_PATTERN,
        })
    }
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, QuantityError> {
        let (number, suffix) = Digits::split(text);
        if number.whole.is_empty() && number.fraction.is_empty() {
            return Err(QuantityError::Malformed);
        }
        let suffix = Suffix::read(suffix).map_err(|_| QuantityError::Suffix)?;
        let Digits { negative, fraction, .. } = number;
        Ok(Self { negative, whole: number.significant(), fraction, suffix })
    }

    fn approximate_f64(&self) -> f64 {
        let magnitude = self.exact().unwrap_or_else(|| self.rounded());
        // The original negates an integer, which has no negative zero.
        if self.negative && magnitude != 0.0 { -magnitude } else { magnitude }
    }

    /// The amount as a 64-bit integer times a power of ten, where that is possible.
    fn exact(&self) -> Option<f64> {
        match self.suffix {
            Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => {
                if self.whole.len() + self.fraction.len() > DIGITS_EXACT_MAX {
                    return None;
                }
                let scale = i64::from(exponent) - self.fraction.len() as i64;
                if scale < SCALE_MIN {
                    return None;
                }
                let value: i64 = format!("{}{}", self.whole, self.fraction).parse().ok()?;
                Some(scaled(value as f64, scale))
            }
            Suffix::Binary(exponent) => {
                // Three decimal digits for ten binary ones, less a reserve: the bound of the original.
                let digits = self.whole.len() as i64 + i64::from(exponent * 3 / 10) + 1;
                if !self.fraction.is_empty() || digits > 15 {
                    return None;
                }
                let value: i64 = self.whole.parse().ok()?;
                value.checked_mul(1 << exponent).map(|value| value as f64)
            }
        }
    }

    /// The amount in units of 10^-9, rounded away from zero, by arithmetic on its digits.
    fn rounded(&self) -> f64 {
        let mut digits = format!("{}{}", self.whole, self.fraction);
        let mut scale = self.fraction.len() as i64;
        match self.suffix {
            Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => scale -= i64::from(exponent),
            Suffix::Binary(exponent) => digits = times(&digits, 1 << exponent),
        }
        if digits.bytes().all(|digit| digit == b'0') {
            return scaled(0.0, -scale);
        }
        let nano = to_nano(digits, scale);
        let capped = matches!(self.suffix, Suffix::Binary(_)) && nano.exceeds(BINARY_MAX_NANO);
        if capped { i64::MAX as f64 } else { scaled(nano.as_f64(), SCALE_MIN) }
    }
}

/// Digits with zeros to append: an integer in units of 10^-9.
struct Nano {
    digits: String,
    zeros: i64,
}

impl Nano {
    fn as_f64(&self) -> f64 {
        // Reading decimal text rounds to the nearest float, ties to even, as converting the integer would.
        format!("{}e{}", self.digits, self.zeros).parse().unwrap_or(f64::INFINITY)
    }

    fn exceeds(&self, limit: &str) -> bool {
        let digits = self.digits.trim_start_matches('0');
        let length = digits.len() as i64 + self.zeros;
        match length.cmp(&(limit.len() as i64)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => {
                let padded = format!("{digits}{}", "0".repeat(self.zeros.max(0) as usize));
                padded.as_str() > limit
            }
        }
    }
}

/// `digits` * 10^-`scale` in units of 10^-9; a remainder counts as one more unit.
fn to_nano(digits: String, scale: i64) -> Nano {
    let surplus = scale + SCALE_MIN;
    if surplus <= 0 {
        return Nano { digits, zeros: -surplus };
    }
    let keep = digits.len().saturating_sub(usize::try_from(surplus).unwrap_or(usize::MAX));
    let (kept, dropped) = digits.split_at(keep);
    let round_up = dropped.bytes().any(|digit| digit != b'0');
    let kept = if kept.is_empty() { "0" } else { kept };
    Nano { digits: if round_up { plus_one(kept) } else { kept.to_owned() }, zeros: 0 }
}

/// The float times a power of ten, with the same intermediate roundings as the original's table of powers.
fn scaled(base: f64, exponent: i64) -> f64 {
    /// The original multiplies a coarse power (a multiple of this) with a fine one.
    const STEP: i64 = 32;
    let power = |exponent: i64| -> f64 { format!("1e{exponent}").parse().unwrap_or(f64::INFINITY) };
    let ten_to = match exponent {
        0 => return base,
        1..=308 => power(exponent / STEP * STEP) * power(exponent % STEP),
        309.. => f64::INFINITY,
        -323..=-1 => power(exponent / STEP * STEP) / power(-exponent % STEP),
        ..-323 => 0.0,
    };
    base * ten_to
}

/// Decimal digits times a factor.
fn times(digits: &str, factor: u64) -> String {
    let mut carry: u128 = 0;
    let mut product: Vec<u8> = Vec::with_capacity(digits.len() + 20);
    for digit in digits.bytes().rev() {
        carry += u128::from(digit - b'0') * u128::from(factor);
        product.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push(b'0' + (carry % 10) as u8);
        carry /= 10;
    }
    product.iter().rev().map(|&digit| char::from(digit)).collect()
}

/// Decimal digits plus one.
fn plus_one(digits: &str) -> String {
    let nines = digits.len() - digits.trim_end_matches('9').len();
    let (head, _) = digits.split_at(digits.len() - nines);
    let mut sum = match head.as_bytes().last() {
        Some(&last) => format!("{}{}", &head[..head.len() - 1], char::from(last + 1)),
        None => "1".to_owned(),
    };
    sum.extend(std::iter::repeat_n('0', nines));
    sum
}

#[cfg(test)]
mod tests;
