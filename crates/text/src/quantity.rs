//! How an amount of a resource is written: `4`, `500m`, `1.5Gi`, `2e3`.
//!
//! Owns the grammar, the suffixes and Kubernetes' words about a text that does not follow it. Never computes an amount:
//! what reads amounts exactly, rounds them or approximates them differs in range and says so itself.

use std::{error::Error, fmt};

/// The binary suffixes and the powers of two they stand for, in order.
pub const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// The decimal suffixes and the powers of ten they stand for, in order.
pub const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// Not a number with a suffix.
    Format,
    /// The suffix is none of those known.
    Suffix,
    /// The number is beyond what the reader can hold.
    Number,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Suffix => "unable to parse quantity's suffix",
            Self::Number => "unable to parse numeric part of quantity",
        })
    }
}

impl Error for QuantityError {}

/// The number of a quantity, before its suffix. As in Kubernetes, there may be no digit at all: that is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    /// Whether a minus is in front.
    pub negative: bool,
    /// The digits before the point, as written.
    pub whole: &'a str,
    /// The digits after the point.
    pub fraction: &'a str,
}

impl<'a> Number<'a> {
    /// Takes the number off the front of a text; the rest is the suffix.
    pub fn split(text: &'a str) -> (Self, &'a str) {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        (Self { negative: text.starts_with('-'), whole, fraction }, suffix)
    }

    /// The digits before the point without leading zeros. Zero counts as one digit, which matters for what fits an
    /// exact range.
    pub fn significant(&self) -> &'a str {
        match self.whole.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        }
    }
}

/// A suffix, read: the base it is a power of, and which power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// A letter, or none, for a power of ten.
    Decimal(i32),
    /// A power of ten written as an exponent.
    Exponent(i32),
    /// A power of two.
    Binary(u32),
}

impl Suffix {
    /// Reads what follows the number.
    pub fn read(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Decimal(*power));
        }
        if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Binary(*power));
        }
        let rest = text.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
        let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        let exponent = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
        let exponent: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
        // The original keeps the low 32 bits of the exponent; so do we, or the amounts would differ.
        Ok(Self::Exponent(exponent as i32))
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quantity_is_a_number_and_a_suffix() {
        for (text, negative, whole, fraction, suffix) in [
            ("4", false, "4", "", Suffix::Decimal(0)),
            ("-500m", true, "500", "", Suffix::Decimal(-3)),
            ("+.5Gi", false, "", "5", Suffix::Binary(30)),
            ("5.", false, "5", "", Suffix::Decimal(0)),
            ("1E", false, "1", "", Suffix::Decimal(18)),
            ("1E3", false, "1", "", Suffix::Exponent(3)),
            ("1e-9", false, "1", "", Suffix::Exponent(-9)),
            ("1e4294967299", false, "1", "", Suffix::Exponent(3)),
            ("m", false, "", "", Suffix::Decimal(-3)),
        ] {
            let (number, rest) = Number::split(text);
            assert_eq!(number, Number { negative, whole, fraction }, "{text}");
            assert_eq!(Suffix::read(rest), Ok(suffix), "{text}");
        }
        assert_eq!(Number::split("007.50").0.significant(), "7");
        assert_eq!(Number::split("00.50").0.significant(), "0");
    }

    #[test]
    fn what_follows_the_number_is_judged_by_its_shape_first() {
        for (suffix, error) in [
            (" Gi", QuantityError::Format),
            ("KiB", QuantityError::Format),
            (".5", QuantityError::Format),
            ("e1.5", QuantityError::Format),
            ("mm", QuantityError::Suffix),
            ("e", QuantityError::Suffix),
            ("ee3", QuantityError::Suffix),
            ("3", QuantityError::Suffix),
            ("e99999999999999999999", QuantityError::Suffix),
        ] {
            assert_eq!(Suffix::read(suffix), Err(error), "{suffix}");
        }
    }

    proptest! {
        #[test]
        fn splitting_loses_nothing_but_signs_and_points(text in "[+-]?[0-9]{0,5}(\\.[0-9]{0,5})?\\PC{0,5}") {
            let (number, suffix) = Number::split(&text);
            let _ = Suffix::read(suffix);
            prop_assert!(text.ends_with(suffix));
            let point = usize::from(text[..text.len() - suffix.len()].contains('.'));
            let sign = usize::from(text.starts_with(['+', '-']));
            prop_assert_eq!(sign + number.whole.len() + point + number.fraction.len() + suffix.len(), text.len());
        }
    }
}
