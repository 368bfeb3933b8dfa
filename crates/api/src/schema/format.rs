//! Named string formats.
//!
//! Owns the formats our schemas use: `date-time` and `byte`. Other names are no rule at all, as in Kubernetes.
//! `date-time` is what Kubernetes' check and its clients' reader both accept: a text that passes the first and
//! fails the second makes an object that nobody can read.

/// Whether a text keeps a named format; unknown names hold for every text.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "byte" => is_base64(text),
        _ => true,
    }
}

/// What a format asks for, to end a message with.
pub(crate) fn rule(format: &str) -> &'static str {
    match format {
        "date-time" | "datetime" => "must be a time such as 2024-05-01T12:00:00Z (RFC 3339)",
        "byte" => "must be base64 text",
        _ => "must keep the format",
    }
}

/// Whether a text is an RFC 3339 time: `YYYY-MM-DDThh:mm:ss[.digits](Z|±hh:mm)`.
pub(crate) fn is_date_time(text: &str) -> bool {
    DateTime::of(text).is_some()
}

/// An RFC 3339 time, taken apart without being converted.
pub(crate) struct DateTime<'a> {
    /// `YYYY-MM-DD`.
    pub(crate) date: &'a str,
    /// `hh:mm:ss`.
    pub(crate) time: &'a str,
    /// The digits behind the point, possibly none.
    pub(crate) fraction: &'a str,
    /// `Z` or `±hh:mm`.
    pub(crate) offset: &'a str,
}

impl<'a> DateTime<'a> {
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (date, rest) = text.split_once(['T', 't'])?;
        let (time, rest) = rest.split_at_checked(8)?;
        let (fraction, offset) = match rest.strip_prefix('.') {
            Some(rest) => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                if digits == 0 {
                    return None;
                }
                rest.split_at(digits)
            }
            None => ("", rest),
        };
        let sound = is_date(date) && is_clock(time) && is_offset(offset);
        sound.then_some(Self { date, time, fraction, offset })
    }
}

fn is_date(date: &str) -> bool {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    jiff::civil::Date::new(year, month as i8, day as i8).is_ok()
}

fn is_clock(time: &str) -> bool {
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    number(hour, 2).is_some_and(|hour| hour <= 23)
        && number(minute, 2).is_some_and(|minute| minute <= 59)
        && number(second, 2).is_some_and(|second| second <= 59)
}

fn is_offset(offset: &str) -> bool {
    if offset.eq_ignore_ascii_case("z") {
        return true;
    }
    let Some((hour, minute)) = offset.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    number(hour, 2).is_some_and(|hour| hour <= 23) && number(minute, 2).is_some_and(|minute| minute <= 59)
}

fn number(text: &str, digits: usize) -> Option<i16> {
    let exact = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    exact.then(|| text.parse().ok()).flatten()
}

/// Whether a text is padded base64 of the standard alphabet.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    text.len().is_multiple_of(4)
        && padding <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        for good in [
            "2021-07-06T15:00:00+08:00",
            "2021-10-28T08:31:39Z",
            "2021-10-28t08:31:39.123456789012345z",
            "0001-01-01T00:00:00Z",
            "2024-02-29T23:59:59-23:59",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "",
            "T",
            "2021-10-28",
            "2021-10-28 08:31:39Z",
            "2021-13-28T08:31:39Z",
            "2023-02-29T00:00:00Z",
            "2021-10-28T24:00:00Z",
            "2021-10-28T08:31:60Z",
            "2021-10-28T08:31:39",
            "2021-10-28T08:31:39.Z",
            "2021-10-28T08:31:39+8:00",
            "2021-10-28T08:31:39+99:99",
            "2021-10-28T08:31:39Zz",
            "+021-10-28T08:31:39Z",
            "２０２１-10-28T08:31:39Z",
            "2021-10-28T08:31:3",
            "2021-10-28Tééééééééé",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn base64_is_told_from_other_texts() {
        for good in ["", "YQ==", "YWI=", "YWJj", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["Y", "YQ=", "Y===", "YQ==\n", "Y-_=", "é==="] {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
