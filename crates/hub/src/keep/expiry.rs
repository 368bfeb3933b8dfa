//! Events that are old enough to go.
//!
//! Owns how long an event lives after it was written last. Sweeping is the caller's.

use jiff::{SignedDuration, Timestamp};

/// How long an event is kept after its last write, in seconds: what an API server does unless told otherwise.
pub(crate) const EVENT_LIFE_SECONDS: i64 = 60 * 60;

/// When an event written at this time goes.
pub(crate) fn expires(written: Timestamp) -> Timestamp {
    written.checked_add(SignedDuration::from_secs(EVENT_LIFE_SECONDS)).unwrap_or(Timestamp::MAX)
}

/// Whether an event written at this time goes now.
pub(crate) fn decide(written: Timestamp, now: Timestamp) -> bool {
    expires(written) <= now
}

/// When an event was written last, as far as it says so itself: for events found in the store at start.
pub(crate) fn written(event: &serde_json::Value) -> Option<Timestamp> {
    let places = [
        &["series", "lastObservedTime"][..],
        &["lastTimestamp"][..],
        &["eventTime"][..],
        &["metadata", "creationTimestamp"][..],
    ];
    let times =
        places.iter().filter_map(|place| crate::resource::meta::at(event, place)?.as_str()?.parse().ok());
    times.max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_lives_for_an_hour_after_its_last_write() {
        let written = "2026-11-15T22:00:00Z".parse().unwrap();
        assert!(!decide(written, "2026-11-15T22:59:59Z".parse().unwrap()));
        assert!(decide(written, "2026-11-15T23:00:00Z".parse().unwrap()));
    }

    #[test]
    fn the_latest_time_an_event_names_is_when_it_was_written() {
        let event = json!({
            "metadata": {"creationTimestamp": "2026-11-15T22:00:00Z"},
            "lastTimestamp": "2026-11-15T22:30:00Z",
            "eventTime": "2026-11-15T22:00:00.123456Z",
        });
        assert_eq!(written(&event), Some("2026-11-15T22:30:00Z".parse().unwrap()));
        assert_eq!(written(&json!({})), None);
    }
}
