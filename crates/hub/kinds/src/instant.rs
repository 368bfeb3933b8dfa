//! Times as the kinds have them: to the second, or to the microsecond.
//!
//! Owns reading RFC 3339 with Go's complaints and writing it in UTC. Never asks what time it is.

use jiff::{Timestamp, civil::DateTime};

/// The layout of `Time`, as complaints name it.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// The layout of `MicroTime`.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Reads a time and writes it in UTC, to the second.
pub(crate) fn canonical_seconds(text: &str) -> Result<String, String> {
    parse(text, false)
        .map(|(seconds, _)| seconds_text(seconds))
        .and_then(|text| text.ok_or_else(out_of_range))
}

/// Reads a time with six digits of a second and writes it in UTC.
pub(crate) fn canonical_micros(text: &str) -> Result<String, String> {
    let (seconds, nanos) = parse(text, true)?;
    micros_text(seconds, nanos).ok_or_else(out_of_range)
}

/// A count of seconds since 1970 as RFC 3339, absent when the year has more than four digits.
pub(crate) fn seconds_text(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// As [`seconds_text`], with microseconds.
pub(crate) fn micros_text(seconds: i64, nanos: i32) -> Option<String> {
    let time = Timestamp::new(seconds, nanos.clamp(0, 999_999_999)).ok()?;
    let micros = time.subsec_nanosecond().unsigned_abs() / 1000;
    Some(format!("{}.{micros:06}Z", time.strftime("%Y-%m-%dT%H:%M:%S")))
}

/// The seconds since 1970 of a time as the hub writes it, for ages.
pub(crate) fn read_seconds(text: &str) -> Option<i64> {
    parse(text, false).ok().map(|(seconds, _)| seconds)
}

fn out_of_range() -> String {
    "year outside of range [0,9999]".to_owned()
}

/// Walks the layout piece by piece, as Go does, so that the complaint names the piece that does not fit.
fn parse(text: &str, micros: bool) -> Result<(i64, i32), String> {
    let layout = if micros { MICROS } else { SECONDS };
    let mut rest = text;
    let mut numbers = [0_i32; 6];
    let pieces =
        [("2006", 4, "-"), ("01", 2, "-"), ("02", 2, "T"), ("15", 2, ":"), ("04", 2, ":"), ("05", 2, "")];
    let cannot = |rest: &str, piece: &str| {
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {piece:?}")
    };
    let beyond = |what: &str| format!("parsing time {text:?}: {what} out of range");
    for (at, (piece, width, after)) in pieces.into_iter().enumerate() {
        let digits = rest.get(..width).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let digits = digits.ok_or_else(|| cannot(rest, piece))?;
        numbers[at] = digits.parse().map_err(|_| cannot(rest, piece))?;
        rest = &rest[width..];
        let fits = match at {
            1 => (1..=12).contains(&numbers[1]),
            3 => numbers[3] < 24,
            4 => numbers[4] < 60,
            5 => numbers[5] < 60,
            _ => true,
        };
        if !fits {
            return Err(beyond(["year", "month", "day", "hour", "minute", "second"][at]));
        }
        rest = rest.strip_prefix(after).ok_or_else(|| cannot(rest, after))?;
    }
    let fraction = rest
        .strip_prefix('.')
        .map(|rest| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len());
    let mut nanos = 0;
    match fraction {
        Some(digits) if digits > 0 && (!micros || digits == 6) => {
            let first = &rest[1..=digits.min(9)];
            nanos = first.parse::<i32>().unwrap_or(0) * 10_i32.pow(9 - first.len() as u32);
            rest = &rest[1 + digits..];
        }
        _ if micros => return Err(cannot(rest, ".000000")),
        _ => {}
    }
    let offset = read_offset(rest).ok_or_else(|| cannot(rest, "Z07:00"))?;
    let [year, month, day, hour, minute, second] = numbers;
    let civil = DateTime::new(year as i16, month as i8, day as i8, hour as i8, minute as i8, second as i8, 0)
        .map_err(|_| beyond("day"))?;
    let utc = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| beyond("year"))?;
    Ok((utc.timestamp().as_second() - offset, nanos))
}

/// `Z` or `+07:00`, in seconds, with nothing after it.
fn read_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let two = |part: &str| (part.len() == 2).then(|| part.parse::<u8>().ok()).flatten().map(i64::from);
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_in_utc_to_the_second() {
        assert_eq!(canonical_seconds("2026-01-02T03:04:05.678+02:00").unwrap(), "2026-01-02T01:04:05Z");
        assert_eq!(canonical_seconds("1969-12-31T23:59:59Z").unwrap(), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn a_micro_time_wants_six_digits() {
        assert_eq!(canonical_micros("2026-01-02T03:04:05.678000Z").unwrap(), "2026-01-02T03:04:05.678000Z");
        assert_eq!(
            canonical_micros("2026-01-02T03:04:05Z").unwrap_err(),
            r#"parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }

    #[test]
    fn complaints_name_the_piece_that_does_not_fit() {
        assert_eq!(
            canonical_seconds("soon").unwrap_err(),
            r#"parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006""#
        );
        assert_eq!(
            canonical_seconds("2026-13-01T00:00:00Z").unwrap_err(),
            r#"parsing time "2026-13-01T00:00:00Z": month out of range"#
        );
        assert_eq!(
            canonical_seconds("2026-02-30T00:00:00Z").unwrap_err(),
            r#"parsing time "2026-02-30T00:00:00Z": day out of range"#
        );
    }

    proptest! {
        #[test]
        fn every_second_survives_writing_and_reading(seconds in -62_135_596_800_i64..253_402_300_799) {
            let text = seconds_text(seconds).unwrap();
            prop_assert_eq!(read_seconds(&text), Some(seconds));
            prop_assert_eq!(canonical_seconds(&text).unwrap(), text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9TZ:.+\\-é]{0,40}") {
            let _ = (canonical_seconds(&text), canonical_micros(&text));
        }
    }
}
