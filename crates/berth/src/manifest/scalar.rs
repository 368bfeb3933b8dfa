//! What an unquoted scalar means, as `kubectl` reads it.
//!
//! Kubernetes tools read YAML 1.1 words (`yes`, `off`, `y`), octal and hexadecimal numbers and underscores in digits,
//! and leave timestamps as strings. A planner that read them differently would plan for another object than the one
//! that `kubectl apply` would send, so the same rules hold here. Never looks at quoting: that is the caller's.

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
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return Scalar::NotFinite,
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    };
    Scalar::Value(value)
}

fn number(text: &str) -> Option<Number> {
    match text.as_bytes().first()? {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            if text.contains('_') {
                let plain = text.replace('_', "");
                integer(&plain).or_else(|| float(&plain))
            } else {
                integer(text).or_else(|| float(text))
            }
        }
        _ => None,
    }
}

/// An integer in any of the bases the notation allows; a leading zero alone means octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (base, digits) = match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // `from_str_radix` would accept a second sign here.
    if !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude).map(Number::from)
    } else {
        Some(Number::from(magnitude))
    }
}

/// A decimal fraction or an exponent. A number with no fraction becomes an integer, as the JSON that reaches an API
/// server has no other form for it.
fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    if !(mantissa_fits && exponent_fits) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    whole(value).or_else(|| Number::from_f64(value))
}

/// The integer a float without a fraction stands for.
pub(super) fn whole(value: f64) -> Option<Number> {
    // Two to the sixty-third: the first float that no `i64` can hold.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (value.fract() == 0.0 && value.abs() < LIMIT).then(|| Number::from(value as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        match resolve(text) {
            Scalar::Value(value) => value,
            Scalar::NotFinite => json!("not finite"),
        }
    }

    #[test]
    fn words_of_yaml_1_1_are_booleans_as_kubectl_reads_them() {
        for word in ["y", "Y", "yes", "Yes", "on", "ON", "True"] {
            assert_eq!(read(word), json!(true), "{word}");
        }
        for word in ["n", "N", "no", "No", "OFF", "off", "false"] {
            assert_eq!(read(word), json!(false), "{word}");
        }
        assert_eq!(read("yES"), json!("yES"));
    }

    #[test]
    fn numbers_come_in_every_base_and_with_underscores() {
        for (text, want) in [
            ("0x1F", 31),
            ("012", 10),
            ("0o17", 15),
            ("0b11", 3),
            ("1_000", 1000),
            ("1.0", 1),
            ("1e3", 1000),
            ("+5", 5),
            ("1.", 1),
            ("-0", 0),
            ("08", 8),
            ("1__0", 10),
            ("-0x1F", -31),
            ("0X1f", 31),
            ("0", 0),
            ("00", 0),
            ("-7", -7),
        ] {
            assert_eq!(read(text), json!(want), "{text}");
        }
        assert_eq!(read("18446744073709551615"), json!(u64::MAX));
        assert_eq!(read("-9223372036854775808"), json!(i64::MIN));
        for (text, want) in [
            (".5", 0.5),
            ("0.1", 0.1),
            ("1e-7", 1e-7),
            ("-.5", -0.5),
            ("1e21", 1e21),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
        ] {
            assert_eq!(read(text), json!(want), "{text}");
        }
    }

    #[test]
    fn timestamps_and_near_numbers_stay_strings() {
        for text in [
            "2021-07-06T15:00:00+08:00",
            "2021-07-06",
            "1:30",
            "_1",
            ".e3",
            "0x",
            "1e400",
            "--1",
            "+-1",
            "0x-1",
            "-",
            "+",
            ".",
            "1e",
            "é",
        ] {
            assert_eq!(read(text), json!(text), "{text}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_told_apart() {
        assert_eq!(resolve(".inf"), Scalar::NotFinite);
        assert_eq!(resolve("-.INF"), Scalar::NotFinite);
        assert_eq!(resolve(".nan"), Scalar::NotFinite);
    }
}
