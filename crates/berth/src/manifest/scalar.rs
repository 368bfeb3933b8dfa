//! What an unquoted scalar means, as a value.
//!
//! The grammar is [`berth_text::yaml`]'s, the one that `kubectl` and the hub read by: a planner that read a word
//! differently would plan for another object than the one that `kubectl apply` would send.

use berth_text::yaml;
use serde_json::{Number, Value};

/// The meaning of a plain scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    /// A value JSON can hold.
    Value(Value),
    /// `.nan` or `.inf`, for which JSON has no form.
    NotFinite,
}

/// Reads a plain (unquoted, untagged) scalar.
pub(super) fn resolve(text: &str) -> Scalar {
    Scalar::Value(match yaml::scalar(text) {
        yaml::Scalar::Null => Value::Null,
        yaml::Scalar::Bool(truth) => truth.into(),
        yaml::Scalar::Integer(number) => number.into(),
        yaml::Scalar::Unsigned(number) => number.into(),
        yaml::Scalar::Float(number) => number.into(),
        yaml::Scalar::NotFinite => return Scalar::NotFinite,
        yaml::Scalar::Text => text.into(),
    })
}

/// The integer a float without a fraction stands for.
pub(super) fn whole(value: f64) -> Option<Number> {
    yaml::whole(value).map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_meaning_has_its_value() {
        for (text, want) in [
            ("~", json!(null)),
            ("off", json!(false)),
            ("012", json!(10)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1e-7", json!(1e-7)),
            ("2021-07-06", json!("2021-07-06")),
        ] {
            assert_eq!(resolve(text), Scalar::Value(want), "{text}");
        }
        assert_eq!(resolve(".inf"), Scalar::NotFinite);
    }
}
