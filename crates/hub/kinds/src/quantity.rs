//! Resource quantities: `250m`, `1.5Gi`, `2e3`.
//!
//! Owns reading a quantity and writing it the way Kubernetes does after reading it, which is not always what was written:
//! `1000m` comes back as `1`, `1.500` as it was. Exact: an amount is a whole number times a power of ten.

use std::cmp::Ordering;

pub use berth_text::quantity::QuantityError;
use berth_text::quantity::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, Number, Suffix};

/// The longest quantity read, in bytes: more digits than any real amount, few enough for 128-bit arithmetic to judge.
const TEXT_BYTES_MAX: usize = 64;
/// The power of ten of the smallest amount; what is smaller is rounded up to it.
const NANO: i32 = -9;
/// The power of ten of thousandths.
const MILLI: i32 = -3;
/// Decimal digits that are sure to fit 64 bits.
const DIGITS_SURE: i64 = 18;
/// The largest exponent read. Past it, amounts would only be rounded away or overflow; the bound keeps the arithmetic
/// short.
const EXPONENT_MAX: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// An amount of a resource: `digits` times ten to the power of `scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    digits: i128,
    scale: i32,
    format: Format,
    /// What was written, where Kubernetes keeps it.
    kept: Option<Box<str>>,
}

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(QuantityError::Format);
        }
        let (number, suffix) = Number::split(text);
        let (format, exponent) = match Suffix::read(suffix)? {
            Suffix::Decimal(exponent) => (Format::Decimal, exponent),
            Suffix::Exponent(exponent) if exponent.unsigned_abs() > EXPONENT_MAX => {
                return Err(QuantityError::Suffix);
            }
            Suffix::Exponent(exponent) => (Format::Exponent, exponent),
            Suffix::Binary(exponent) => (Format::Binary, exponent as i32),
        };
        let (whole, fraction) = (number.significant(), number.fraction);
        let shifted = format!("{whole}{fraction}");
        let sign = if number.negative { -1 } else { 1 };
        let digits: i128 = shifted.parse().map_err(|_| QuantityError::Number)?;
        let lengths = (whole.len() + fraction.len()) as i64;
        let quantity = match format {
            Format::Binary => {
                let grown = digits.checked_mul(1_i128 << exponent).ok_or(QuantityError::Number)?;
                let precise = 15 - whole.len() as i64 - (f64::from(exponent) * 0.3) as i64 - 1;
                if precise >= 0 && fraction.is_empty() && i64::try_from(grown).is_ok() {
                    let kept = (exponent % 10 == 0 && digits & 7 != 0).then(|| text.into());
                    return Ok(Quantity { digits: sign * grown, scale: 0, format, kept });
                }
                let scale = -(fraction.len() as i32);
                let mut quantity = Quantity { digits: grown, scale, format, kept: None }.rounded();
                if quantity.compare_int(i64::MAX) == Ordering::Greater {
                    quantity = Quantity { digits: i128::from(i64::MAX), scale: 0, format, kept: None };
                }
                if quantity.compare_int(1) == Ordering::Less && quantity.digits > 0 {
                    quantity.format = Format::Decimal;
                }
                quantity
            }
            Format::Decimal | Format::Exponent => {
                let scale = exponent.checked_sub(fraction.len() as i32).ok_or(QuantityError::Number)?;
                if lengths <= DIGITS_SURE && scale >= NANO {
                    let kept = scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0');
                    return Ok(Quantity {
                        digits: sign * digits,
                        scale,
                        format,
                        kept: kept.then(|| text.into()),
                    });
                }
                Quantity { digits, scale, format, kept: None }.rounded()
            }
        };
        Ok(Quantity { digits: sign * quantity.digits, ..quantity })
    }

    /// A text in the form Kubernetes gives it back.
    pub fn canonical(text: &str) -> Result<String, QuantityError> {
        Ok(Quantity::parse(text)?.text())
    }

    /// The quantity as Kubernetes writes it.
    pub fn text(&self) -> String {
        if let Some(kept) = &self.kept {
            return kept.to_string();
        }
        if self.digits == 0 {
            return "0".to_owned();
        }
        let whole = self.whole();
        if self.format == Format::Binary
            && let Some(mut amount) = whole.filter(|whole| whole.abs() >= 1024)
        {
            let mut exponent = 0;
            while amount % 1024 == 0 && exponent < BINARY_SUFFIXES.len() {
                amount /= 1024;
                exponent += 1;
            }
            return format!("{amount}{}", if exponent == 0 { "" } else { BINARY_SUFFIXES[exponent - 1].0 });
        }
        let (mut amount, mut exponent) = (self.digits, self.scale);
        while amount % 10 == 0 {
            amount /= 10;
            exponent += 1;
        }
        while exponent % 3 != 0 {
            // Three more digits at most than were read: 128 bits hold them.
            amount = amount.saturating_mul(10);
            exponent -= 1;
        }
        match self.format {
            Format::Exponent if exponent == 0 => amount.to_string(),
            Format::Exponent => format!("{amount}e{exponent}"),
            Format::Decimal | Format::Binary => {
                let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent);
                suffix
                    .map_or_else(|| format!("{amount}e{exponent}"), |(suffix, _)| format!("{amount}{suffix}"))
            }
        }
    }

    /// The amount in nano units, capped where 128 bits end.
    pub(crate) fn nanos(&self) -> i128 {
        if self.scale < NANO {
            return self.digits;
        }
        self.at(NANO).unwrap_or(if self.digits < 0 { i128::MIN } else { i128::MAX })
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.digits < 0
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// Whether it is a whole number of thousandths, as amounts of extended resources count.
    pub fn is_whole(&self) -> bool {
        self.whole().is_some()
    }

    /// The order of two amounts.
    pub fn compare(&self, other: &Quantity) -> Ordering {
        let scale = self.scale.min(other.scale);
        match (self.at(scale), other.at(scale)) {
            (Some(left), Some(right)) => left.cmp(&right),
            // One of them is beyond 128 bits at the other's scale: it is the greater in size.
            _ => self.magnitude().total_cmp(&other.magnitude()),
        }
    }

    fn compare_int(&self, other: i64) -> Ordering {
        self.compare(&Quantity { digits: other.into(), scale: 0, format: Format::Decimal, kept: None })
    }

    /// The amount as a whole number, when it is one.
    fn whole(&self) -> Option<i128> {
        if self.scale >= 0 {
            return self.at(0);
        }
        let divisor = 10_i128.checked_pow(self.scale.unsigned_abs())?;
        (self.digits % divisor == 0).then(|| self.digits / divisor)
    }

    fn at(&self, scale: i32) -> Option<i128> {
        self.digits.checked_mul(10_i128.checked_pow(u32::try_from(self.scale - scale).ok()?)?)
    }

    fn magnitude(&self) -> f64 {
        self.digits as f64 * 10_f64.powi(self.scale)
    }

    /// Rounded away from zero to thousandths, as resource lists are kept.
    #[must_use]
    pub fn rounded_up_to_milli(self) -> Quantity {
        if self.scale >= MILLI { self } else { Quantity { kept: None, ..self.rounded_to(MILLI) } }
    }

    /// Rounded up to nano units.
    fn rounded(self) -> Quantity {
        self.rounded_to(NANO)
    }

    fn rounded_to(mut self, scale: i32) -> Quantity {
        while self.scale < scale {
            self.digits = self.digits / 10 + self.digits.signum() * i128::from(self.digits % 10 != 0);
            self.scale += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_come_back_as_kubernetes_writes_them() {
        for (written, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("1024Mi", "1Gi"),
            ("1500Mi", "1500Mi"),
            ("8Gi", "8Gi"),
            ("1.5Gi", "1536Mi"),
            ("100", "100"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("10e3", "10e3"),
            ("1000e3", "1e6"),
            ("0", "0"),
            ("0m", "0"),
            ("512Ki", "512Ki"),
            ("0.1Ki", "102400m"),
            ("-1000m", "-1"),
            ("1E", "1E"),
            ("5n", "5n"),
            ("0.1n", "1n"),
            ("+2", "+2"),
        ] {
            assert_eq!(Quantity::canonical(written).unwrap(), expected, "{written}");
        }
    }

    #[test]
    fn texts_that_are_not_quantities_are_refused_with_a_reason() {
        assert_eq!(Quantity::parse(""), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("one"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1 Gi"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1Kib"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1mm"), Err(QuantityError::Suffix));
    }

    proptest! {
        #[test]
        fn writing_is_reading_s_fixed_point(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,6})?(m|k|Ki|Gi|M|e2|E|n)?") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let again = Quantity::parse(&quantity.text()).unwrap();
                prop_assert_eq!(again.compare(&quantity), Ordering::Equal, "{} {}", text, quantity.text());
                prop_assert_eq!(again.text(), quantity.text());
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = Quantity::canonical(&text);
        }
    }
}
