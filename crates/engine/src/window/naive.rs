//! The twin of the search for openings: every minute is looked at, one by one.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::schedule::Schedule;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// All openings between two moments, both included: each minute of the calendar from two days before the first to two
/// days after the second (no clock is changed by more), at the moments that it happens.
pub(super) fn openings(
    schedule: &Schedule,
    zone: &TimeZone,
    from: Timestamp,
    until: Timestamp,
) -> Vec<Timestamp> {
    let two_days = SignedDuration::from_hours(48);
    let mut minute = zone.to_datetime(from - two_days).with().second(0).subsec_nanosecond(0).build().unwrap();
    let end = zone.to_datetime(until + two_days);
    let mut found = Vec::new();
    while minute <= end {
        if schedule.names(minute) {
            found.extend(moments(schedule, zone, minute));
        }
        minute = minute.checked_add(MINUTE).unwrap();
    }
    found.retain(|opening| (from..=until).contains(opening));
    found.sort_unstable();
    found.dedup();
    found
}

fn moments(schedule: &Schedule, zone: &TimeZone, minute: DateTime) -> Vec<Timestamp> {
    let offsets = match zone.to_ambiguous_timestamp(minute).offset() {
        AmbiguousOffset::Unambiguous { offset } => vec![offset],
        AmbiguousOffset::Gap { .. } if schedule.any_hour() => vec![],
        AmbiguousOffset::Fold { before, after } if schedule.any_hour() => vec![before, after],
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => vec![before],
    };
    offsets.into_iter().map(|offset| offset.to_timestamp(minute).unwrap()).collect()
}
