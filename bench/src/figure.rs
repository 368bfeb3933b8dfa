//! Numbers as a person reads them in a table.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// A measured number, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Number(f64),
    Absent(&'static str),
}

impl Figure {
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Absent(_) => None,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&readable(*number)),
            Self::Absent(why) => f.write_str(why),
        }
    }
}

/// Three significant digits below a thousand, whole numbers in groups of three above.
pub(crate) fn readable(number: f64) -> String {
    let size = number.abs();
    if size >= 999.5 {
        return grouped(number.round() as i64);
    }
    let decimals = match size {
        _ if number.fract() == 0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

/// A whole number with a comma before every three digits.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The middle one of some measurements.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The smallest sample that so large a share is no larger than.
pub(crate) fn percentile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let place = (samples.len() as f64 * share).ceil() as usize;
    samples.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_shows_three_significant_digits_or_groups() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (999.9, "1,000"),
        ];
        for (number, text) in cases {
            assert_eq!(readable(number), text);
        }
        assert_eq!(readable(1_234_567.0), "1,234,567");
        assert_eq!(grouped(-1000), "-1,000");
    }

    #[test]
    fn the_median_ignores_one_outlier() {
        assert!((median(vec![3.0, 1000.0, 1.0]) - 3.0).abs() < f64::EPSILON);
    }
    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((percentile(&mut samples, 0.5) - 50.0).abs() < f64::EPSILON);
        assert!((percentile(&mut samples, 0.99) - 99.0).abs() < f64::EPSILON);
        assert!((percentile(&mut [7.0], 0.5) - 7.0).abs() < f64::EPSILON);
    }
}
