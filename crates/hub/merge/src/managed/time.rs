//! Times of entries: whole seconds in UTC, as text.

use std::borrow::Cow;

use jiff::Timestamp;

/// `2026-01-02T03:04:05Z`: in this form the order of texts is the order of times.
const CANONICAL_BYTES: usize = 20;

/// A time in its canonical form; `None` where the text is no time.
pub(super) fn canonical(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let plain = bytes.len() == CANONICAL_BYTES
        && bytes.iter().zip(b"dddd-dd-ddTdd:dd:ddZ").all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            form => byte == form,
        });
    let time: Timestamp = if plain { return Some(Cow::Borrowed(text)) } else { text.parse().ok()? };
    Some(Cow::Owned(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_offsets_and_fractions_become_whole_seconds_in_utc() {
        assert_eq!(canonical("2026-01-02T03:04:05Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(canonical("2026-01-02T03:04:05.75+02:00").as_deref(), Some("2026-01-02T01:04:05Z"));
        assert_eq!(canonical("yesterday"), None);
    }
}
