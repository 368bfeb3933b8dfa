//! Reading of times that the schema allows and the time type cannot hold.
//!
//! Owns the lenient deserialisers of the optional time fields. `9999-12-31T23:59:59Z` is a valid date-time and a
//! popular spelling of "never", but lies past the last instant `jiff` can represent; one such object must
//! not make a whole list unreadable, so it is read as that last instant.

use berth_schema::format::DateTime;
use jiff::tz::Offset;
use jiff::{Timestamp, civil};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, de::Error as _};

/// Reads an optional RFC 3339 time; null and absent are the same.
///
/// # Errors
/// If it is no such time.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    parse(&text).map(|time| Some(Time(time))).ok_or_else(|| {
        D::Error::custom(format_args!("`{text:.64}` is not an RFC 3339 time such as 2024-05-01T12:00:00Z"))
    })
}

/// Reads an optional time as [`optional`] does, and a text that is no time as none: for what is only told, so that a careless
/// word about an object does not hide the object.
///
/// # Errors
/// If it is no text.
pub fn told<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(parse).map(Time))
}

/// Parses an RFC 3339 time, reading what lies past the representable range as its last instant and ignoring
/// digits behind the nanoseconds.
pub fn parse(text: &str) -> Option<Timestamp> {
    usual(text).or_else(|| general(text))
}

/// A time as API servers write nearly all: of a second in UTC, `YYYY-MM-DDThh:mm:ssZ`. There are several in every object, and
/// this reads one without building anything.
fn usual(text: &str) -> Option<Timestamp> {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', n0, n1, b':', s0, s1, b'Z'] =
        text.as_bytes()
    else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| (byte - b'0').cast_signed());
    let two = |tens: u8, ones: u8| Some(digit(tens)? * 10 + digit(ones)?);
    let year = i16::from(two(y0, y1)?) * 100 + i16::from(two(y2, y3)?);
    let (hour, minute, second) = (two(h0, h1)?, two(n0, n1)?, two(s0, s1)?);
    let moment = civil::DateTime::new(year, two(m0, m1)?, two(d0, d1)?, hour, minute, second, 0).ok()?;
    Offset::UTC.to_timestamp(moment).ok()
}

/// Any time of RFC 3339.
fn general(text: &str) -> Option<Timestamp> {
    /// Digits behind the point down to nanoseconds.
    const FRACTION_DIGITS_MAX: usize = 9;
    let DateTime { date, time, fraction, offset } = DateTime::of(text)?;
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let point = if fraction.is_empty() { "" } else { "." };
    match format!("{date}T{time}{point}{fraction}{offset}").parse() {
        Ok(time) => Some(time),
        // What is well-formed and still not representable lies on the last two days of the calendar.
        Err(_) => date.starts_with("9999-").then_some(Timestamp::MAX),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_as_api_servers_write_it_is_the_time_that_it_is(
            text in "(0000|1969|1970|20[0-9]{2}|9999)-(0[0-9]|1[0-3])-([0-2][0-9]|3[0-2])T([01][0-9]|2[0-5]):[0-6][0-9]:[0-6][0-9]Z",
        ) {
            prop_assert_eq!(usual(&text).or_else(|| general(&text)), general(&text));
        }
    }

    #[test]
    fn a_time_of_a_second_in_utc_needs_no_second_look() {
        assert_eq!(usual("2026-01-02T03:04:05Z"), general("2026-01-02T03:04:05Z"));
        assert!(usual("2026-01-02T03:04:05Z").is_some());
        for other in
            ["2026-01-02T03:04:60Z", "2026-02-30T03:04:05Z", "2026-01-02T03:04:05z", "+026-01-02T03:04:05Z"]
        {
            assert_eq!(usual(other), None, "{other}");
        }
    }

    #[test]
    fn the_end_of_the_calendar_reads_as_the_last_representable_instant() {
        assert_eq!(parse("9999-12-31T23:59:59Z"), Some(Timestamp::MAX));
    }

    #[test]
    fn offsets_are_honoured_and_nonsense_is_refused() {
        assert_eq!(parse("2021-07-06T15:00:00+08:00"), parse("2021-07-06T07:00:00Z"));
        assert_eq!(parse("soon"), None);
        assert_eq!(parse("9999-12-31"), None);
        assert_eq!(parse("9999-13-31T00:00:00Z"), None);
    }
}
