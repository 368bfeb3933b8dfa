//! What an unquoted scalar of YAML means to Kubernetes' tools and servers.
//!
//! They read the words of YAML 1.1 (`yes`, `off`, `y`), octal and hexadecimal numbers and underscores in digits, and leave
//! timestamps as strings. Whoever read them differently would see another object than the one that is kept.
//! Never looks at quotes or tags: those are the reader's.

/// The meaning of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Nothing.
    Null,
    /// A truth.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A whole number that only fits without a sign. JSON can hold it; an API server reads it as a float.
    Unsigned(u64),
    /// A number with a fraction, or one too large to be whole.
    Float(f64),
    /// `.nan` or `.inf`, for which JSON has no form.
    NotFinite,
    /// None of these: the text itself.
    Text,
}

/// Reads a plain (unquoted, untagged) scalar.
pub fn scalar(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => Scalar::NotFinite,
        _ => number(text).unwrap_or(Scalar::Text),
    }
}

/// The integer that a float without a fraction stands for: JSON has one form for both.
pub fn whole(value: f64) -> Option<i64> {
    // Two to the sixty-third: the first float that no `i64` can hold.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is within the range")]
    (value.fract() == 0.0 && value.abs() < LIMIT).then_some(value as i64)
}

fn number(text: &str) -> Option<Scalar> {
    match text.as_bytes().first()? {
        // Underscores are for digits, and this begins with none.
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' if text.contains('_') => {
            let plain = text.replace('_', "");
            integer(&plain).or_else(|| float(&plain))
        }
        b'0'..=b'9' | b'+' | b'-' => integer(text).or_else(|| float(text)),
        _ => None,
    }
}

/// An integer in any of the bases the notation allows; a leading zero alone means octal.
fn integer(text: &str) -> Option<Scalar> {
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
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Integer);
    }
    Some(i64::try_from(magnitude).map_or(Scalar::Unsigned(magnitude), Scalar::Integer))
}

/// A decimal fraction or an exponent.
fn float(text: &str) -> Option<Scalar> {
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
    whole(value).map(Scalar::Integer).or_else(|| value.is_finite().then_some(Scalar::Float(value)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_of_yaml_1_1_are_booleans() {
        for word in ["y", "Y", "yes", "Yes", "on", "ON", "True"] {
            assert_eq!(scalar(word), Scalar::Bool(true), "{word}");
        }
        for word in ["n", "N", "no", "No", "OFF", "off", "false"] {
            assert_eq!(scalar(word), Scalar::Bool(false), "{word}");
        }
        assert_eq!(scalar("yES"), Scalar::Text);
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
            ("-0.0", 0),
            ("08", 8),
            ("1__0", 10),
            ("-0x1F", -31),
            ("0X1f", 31),
            ("0", 0),
            ("00", 0),
            ("-7", -7),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(scalar(text), Scalar::Integer(want), "{text}");
        }
        assert_eq!(scalar("18446744073709551615"), Scalar::Unsigned(u64::MAX));
        assert_eq!(scalar("0xFFFFFFFFFFFFFFFF"), Scalar::Unsigned(u64::MAX));
        for (text, want) in [
            (".5", 0.5),
            ("0.1", 0.1),
            ("1e-7", 1e-7),
            ("-.5", -0.5),
            ("1e21", 1e21),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
        ] {
            assert_eq!(scalar(text), Scalar::Float(want), "{text}");
        }
    }

    #[test]
    fn timestamps_and_near_numbers_stay_text() {
        for text in [
            "2021-07-06T15:00:00+08:00",
            "2021-07-06",
            "1:30",
            "_1",
            ".5_0",
            ".e3",
            "0x",
            "0x1FFFFFFFFFFFFFFFF",
            "1e400",
            "--1",
            "+-1",
            "0x-1",
            "-",
            "+",
            ".",
            "1e",
            "1.2.3",
            "é",
        ] {
            assert_eq!(scalar(text), Scalar::Text, "{text}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_told_apart() {
        for text in [".inf", "-.INF", ".nan"] {
            assert_eq!(scalar(text), Scalar::NotFinite);
        }
    }

    proptest! {
        #[test]
        fn an_integer_is_itself_in_every_base(value: i64) {
            let (sign, size) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
            let spellings = [
                format!("{value}"),
                format!("{sign}0x{size:x}"),
                format!("{sign}0o{size:o}"),
                format!("{sign}0{size:o}"),
                format!("{sign}0b{size:b}"),
                format!("{value}_"),
            ];
            for text in spellings {
                prop_assert_eq!(scalar(&text), Scalar::Integer(value), "{}", text);
            }
        }

        #[test]
        fn a_finite_float_is_itself(value in proptest::num::f64::NORMAL) {
            let read = match scalar(&format!("{value:e}")) {
                Scalar::Float(read) => read,
                Scalar::Integer(read) => read as f64,
                other => return Err(TestCaseError::fail(format!("{value:e} is {other:?}"))),
            };
            prop_assert_eq!(read.to_bits(), value.to_bits());
        }

        #[test]
        fn only_what_begins_like_a_number_is_one(text in "[-+.0-9a-fA-FxobeE_:]{0,12}|\\PC{0,12}") {
            let begins = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
            let read = scalar(&text);
            prop_assert!(begins || !matches!(read, Scalar::Integer(_) | Scalar::Unsigned(_) | Scalar::Float(_)));
            if let Scalar::Float(value) = read {
                prop_assert!(value.is_finite() && whole(value).is_none());
            }
        }
    }
}
