//! How long ago something was, for people: `5d`, `2m30s`.
//!
//! Owns the wording of durations and the reading of timestamps. Never asks a clock: the caller says what time it is.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY_HOURS: i64 = 24;
const YEAR_DAYS: i64 = 365;

/// A duration in two or three figures, whatever its length.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    // Clocks of two machines differ a little: up to two seconds in the future count as now.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    if seconds < 0 {
        return "0s".to_owned();
    }
    if seconds < 2 * MINUTE {
        return format!("{seconds}s");
    }
    let (minutes, hours) = (seconds / MINUTE, seconds / HOUR);
    if minutes < 10 {
        return two(minutes, "m", seconds % MINUTE, "s");
    }
    if minutes < 180 {
        return format!("{minutes}m");
    }
    if hours < 8 {
        return two(hours, "h", minutes % 60, "m");
    }
    if hours < 2 * DAY_HOURS {
        return format!("{hours}h");
    }
    let days = hours / DAY_HOURS;
    if days < 8 {
        return two(days, "d", hours % DAY_HOURS, "h");
    }
    if days < 2 * YEAR_DAYS {
        return format!("{days}d");
    }
    let years = days / YEAR_DAYS;
    if years < 8 {
        return two(years, "y", days % YEAR_DAYS, "d");
    }
    format!("{years}y")
}

/// Two units, the second only when it counts.
fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

/// How long ago a moment was.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    human_duration(now.duration_since(then))
}

/// How long ago the moment was that a field of an object gives: `<unknown>` for none, `<invalid>` for what is not a
/// moment.
pub fn age_of_text(now: Timestamp, text: &str) -> String {
    match text {
        "" | "null" => "<unknown>".to_owned(),
        text => match parse(text) {
            Some(then) if is_zero(then) => "<unknown>".to_owned(),
            Some(then) => age(now, then),
            None => "<invalid>".to_owned(),
        },
    }
}

/// The first moment of year one, which stands for no moment in Go.
fn is_zero(then: Timestamp) -> bool {
    const YEAR_ONE_SECONDS: i64 = -62_135_596_800;
    then.as_second() == YEAR_ONE_SECONDS && then.subsec_nanosecond() == 0
}

/// Reads RFC 3339 as strictly as Go does: a `T` between date and time, and an offset in hours and minutes or `Z`.
pub fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|b| b.iter().all(u8::is_ascii_digit));
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let date_and_time = digits(0..4)
        && is(4, b'-')
        && digits(5..7)
        && is(7, b'-')
        && digits(8..10)
        && is(10, b'T')
        && digits(11..13)
        && is(13, b':')
        && digits(14..16)
        && is(16, b':')
        && digits(17..19);
    // A leap second is no moment in Go.
    if !date_and_time || &bytes[17..19] == b"60" {
        return None;
    }
    let mut at = 19;
    if is(at, b'.') || is(at, b',') {
        let fraction = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    let is_offset = |offset: &[u8]| matches!(offset, [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_digit()));
    if bytes.get(at..) != Some(b"Z") && !bytes.get(at..).is_some_and(is_offset) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_two_or_three_figures() {
        for (seconds, want) in [
            (-5, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (70, "70s"),
            (119, "119s"),
            (120, "2m"),
            (190, "3m10s"),
            (10 * 60, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 660, "3h11m"),
            (8 * 3600, "8h"),
            (47 * 3600, "47h"),
            (48 * 3600, "2d"),
            (49 * 3600, "2d1h"),
            (8 * 86400, "8d"),
            (729 * 86400, "729d"),
            (730 * 86400, "2y"),
            (731 * 86400, "2y1d"),
            (8 * 365 * 86400, "8y"),
            (20 * 365 * 86400 + 86400, "20y"),
        ] {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), want, "{seconds}");
        }
        assert_eq!(human_duration(SignedDuration::from_millis(-1500)), "0s");
    }

    #[test]
    fn timestamps_are_read_as_strictly_as_go_reads_them() {
        let now = parse("2026-11-16T12:00:00Z").unwrap();
        for (text, want) in [
            ("2026-11-16T11:59:00Z", "60s"),
            ("2026-11-16T12:59:00.5+01:00", "59s"),
            ("", "<unknown>"),
            ("null", "<unknown>"),
            ("0001-01-01T00:00:00Z", "<unknown>"),
            ("2026-11-16", "<invalid>"),
            ("2026-11-16 11:59:00Z", "<invalid>"),
            ("2026-11-16T11:59:60Z", "<invalid>"),
            ("2026-11-16T11:59:00", "<invalid>"),
            ("2026-11-16T11:59:00+01", "<invalid>"),
            ("2026-11-16t11:59:00z", "<invalid>"),
            ("2026-02-30T11:59:00Z", "<invalid>"),
            ("yesterday", "<invalid>"),
        ] {
            assert_eq!(age_of_text(now, text), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_age(text in "[0-9TZ:.+-]{0,40}") {
            let _ = age_of_text(Timestamp::UNIX_EPOCH, &text);
        }

        #[test]
        fn any_duration_has_words(seconds in any::<i64>(), nanoseconds in 0..999_999_999_i32) {
            prop_assert!(human_duration(SignedDuration::new(seconds, nanoseconds)).len() < 24);
        }
    }
}
