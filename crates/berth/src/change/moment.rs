//! A moment as a user writes it: a timestamp, or a span from another moment.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

/// The longest span, in seconds: a hundred years. Longer ones are slips of the keyboard.
const SPAN_SECONDS_MAX: i64 = 100 * 366 * 24 * 3600;

/// A moment, fixed or relative to one that is only known later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// `2026-07-01T12:00:00Z`
    Fixed(Timestamp),
    /// `+90s`, `+1h30m`
    After(SignedDuration),
}

/// Why a text is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// Neither form fits.
    #[error(
        "not a moment: allowed are RFC 3339 such as 2026-07-01T12:00:00Z, and spans such as +90s, +5m, +1h30m, +2d (time only goes forward)"
    )]
    Form,
    /// The moment lies outside what can be computed with.
    #[error("too far away: a span is at most a hundred years")]
    Range,
}

impl Moment {
    /// The timestamp meant, counting spans from `start`.
    pub fn resolve(self, start: Timestamp) -> Result<Timestamp, MomentError> {
        match self {
            Self::Fixed(at) => Ok(at),
            Self::After(span) => start.checked_add(span).map_err(|_| MomentError::Range),
        }
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        match text.strip_prefix('+') {
            Some(span) => span_seconds(span).map(|seconds| Self::After(SignedDuration::from_secs(seconds))),
            None => text.parse().map(Self::Fixed).map_err(|_| MomentError::Form),
        }
    }
}

/// The seconds of `1h30m` and its like: digits and a unit, one or more times.
fn span_seconds(text: &str) -> Result<i64, MomentError> {
    let mut rest = text;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let mut units = after.chars();
        let unit = match units.next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 24 * 3600,
            _ => return Err(MomentError::Form),
        };
        if number.is_empty() {
            return Err(MomentError::Form);
        }
        let number: i64 = number.parse().map_err(|_| MomentError::Range)?;
        total = number.checked_mul(unit).and_then(|n| n.checked_add(total)).ok_or(MomentError::Range)?;
        rest = units.as_str();
    }
    match total {
        _ if text.is_empty() => Err(MomentError::Form),
        total if total > SPAN_SECONDS_MAX => Err(MomentError::Range),
        total => Ok(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn from_noon(text: &str) -> Result<String, MomentError> {
        let noon: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        text.parse::<Moment>()?.resolve(noon).map(|at| at.to_string())
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(from_noon("2021-07-06T15:00:00+08:00").unwrap(), "2021-07-06T07:00:00Z");
        assert_eq!(from_noon("+90s").unwrap(), "2026-07-01T12:01:30Z");
        assert_eq!(from_noon("+1h30m").unwrap(), "2026-07-01T13:30:00Z");
        assert_eq!(from_noon("+2d").unwrap(), "2026-07-03T12:00:00Z");
    }

    #[test]
    fn anything_else_is_refused_with_the_allowed_forms() {
        for text in
            ["", "+", "+5", "+m", "5m", "tomorrow", "+-5m", "2026-07-01", "2026-07-01T12:00:00", "+5é"]
        {
            assert_eq!(from_noon(text), Err(MomentError::Form), "{text}");
        }
        for text in ["+99999999999999999999s", "+9223372036854775807d", "+101000d"] {
            assert_eq!(from_noon(text), Err(MomentError::Range), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[+0-9smhdé:TZ-]{0,30}") {
            let _ = from_noon(&text);
        }
    }
}
