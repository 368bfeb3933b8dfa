//! Reading of times that the schema allows and the time type cannot hold.
//!
//! Owns the lenient deserialisers of the optional time fields. `9999-12-31T23:59:59Z` is a valid date-time and a
//! popular spelling of "never", but lies past the last instant `jiff` can represent; one such object must
//! not make a whole list unreadable, so it is read as that last instant.

use berth_schema::format::DateTime;
use jiff::Timestamp;
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
    use super::*;

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
