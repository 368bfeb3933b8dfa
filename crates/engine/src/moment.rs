//! Points in time as the engine counts them.
//!
//! Owns the one representation of time inside the engine: whole microseconds since the Unix epoch, saturating at
//! both ends, so that no toleration, however long, overflows. It never reads a clock: every moment comes in as an
//! argument or out of an object.

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use serde::{Serialize, Serializer};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// The beginning of Unix time, in UTC.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A point in time, in microseconds since the Unix epoch.
///
/// The two extremes have a meaning of their own: [`Moment::PAST`] is before everything, [`Moment::NEVER`] is after
/// everything. Both are reached by saturation, never by wrapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Before every other moment: the end of something that never held.
    pub const PAST: Self = Self(i64::MIN);
    /// After every other moment: the end of something that holds for ever.
    pub const NEVER: Self = Self(i64::MAX);

    /// The moment of `timestamp`, cut to microseconds.
    pub fn from_timestamp(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }

    /// The moment `seconds` after the Unix epoch.
    pub const fn from_second(seconds: i64) -> Self {
        Self(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    /// The timestamp of this moment; `None` for the extremes and whatever else no calendar holds.
    pub fn timestamp(self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.0).ok()
    }

    /// `seconds` later (earlier when negative), saturating; the extremes stay what they are.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        if !self.is_finite() {
            return self;
        }
        match seconds.checked_mul(MICROS_PER_SECOND) {
            Some(micros) => Self(self.0.saturating_add(micros)),
            // More than all of time is for ever, however long ago it began.
            None if seconds > 0 => Self::NEVER,
            None => Self::PAST,
        }
    }

    /// `duration` later, saturating; the extremes stay what they are.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        if !self.is_finite() {
            return self;
        }
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// `duration` earlier, saturating; the extremes stay what they are.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        if !self.is_finite() {
            return self;
        }
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// How long it is until `later`; nothing if that has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_micros(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or_default())
    }

    /// The first moment after this one. Something that is valid *until and including* a moment ends here.
    #[must_use]
    pub const fn just_after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whole seconds from `earlier` to this moment, rounded down, saturating.
    pub const fn seconds_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(MICROS_PER_SECOND)
    }

    /// The whole second at this moment or after it: what an object can hold of a moment that must not be too early.
    #[must_use]
    pub const fn to_whole_second(self) -> Self {
        match self.0.rem_euclid(MICROS_PER_SECOND) {
            0 => self,
            _ if !self.is_finite() => self,
            beyond => Self(self.0.saturating_add(MICROS_PER_SECOND - beyond)),
        }
    }

    /// The whole second at this moment or before it: what an object holds of the moment at which something was seen.
    #[must_use]
    pub const fn cut_to_second(self) -> Self {
        if !self.is_finite() {
            return self;
        }
        Self(self.0.saturating_sub(self.0.rem_euclid(MICROS_PER_SECOND)))
    }

    /// Whether this is a real point in time rather than one of the two extremes.
    pub const fn is_finite(self) -> bool {
        self.0 != Self::PAST.0 && self.0 != Self::NEVER.0
    }
}

impl fmt::Display for Moment {
    /// RFC 3339 in UTC with whole seconds, as Kubernetes prints times.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By the calendar: a timestamp ends some hours before the year 9999 does, to leave room for every time zone.
        let since = SignedDuration::from_secs(self.0.div_euclid(MICROS_PER_SECOND));
        match EPOCH.checked_add(since) {
            Ok(time) if self.is_finite() => write!(f, "{time}Z"),
            _ if *self == Self::PAST => f.write_str("the beginning of time"),
            _ => f.write_str("never"),
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moment({self})")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A length of time as a person reads it: the two largest units, `4m30s`, `2h`, `3d4h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub i64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
        let mut left = self.0.max(0);
        let mut written = 0;
        for (size, unit) in UNITS {
            let count = left / size;
            left %= size;
            if count > 0 && written < 2 {
                write!(f, "{count}{unit}")?;
                written += 1;
            } else if written == 1 {
                // A gap between the units (`1d0h5m`) would read as more exact than it is.
                break;
            }
        }
        if written == 0 { f.write_str("0s") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_the_longest_toleration_saturates_instead_of_wrapping() {
        assert_eq!(Moment::from_second(1).plus_seconds(i64::MAX), Moment::NEVER);
        assert_eq!(Moment::from_second(-1).plus_seconds(i64::MIN), Moment::PAST);
        assert_eq!(Moment::NEVER.plus_seconds(i64::MAX), Moment::NEVER);
        assert_eq!(Moment::from_timestamp(Timestamp::MIN).plus_seconds(i64::MAX), Moment::NEVER);
    }

    #[test]
    fn a_whole_second_is_never_before_the_moment() {
        for (moment, second) in [("08:00:00", 0), ("08:00:00.000001", 1), ("07:59:59.5", 0)] {
            let moment = Moment::from_timestamp(format!("2026-11-16T{moment}Z").parse().unwrap());
            let whole = Moment::from_timestamp("2026-11-16T08:00:00Z".parse().unwrap()).plus_seconds(second);
            assert_eq!(moment.to_whole_second(), whole);
        }
        assert_eq!(
            Moment::from_second(-7).plus(Duration::from_millis(1)).to_whole_second(),
            Moment::from_second(-6)
        );
        assert_eq!(
            Moment::from_second(-7).plus(Duration::from_millis(1)).cut_to_second(),
            Moment::from_second(-7)
        );
        for extreme in [Moment::PAST, Moment::NEVER] {
            assert_eq!((extreme.to_whole_second(), extreme.cut_to_second()), (extreme, extreme));
        }
    }

    #[test]
    fn a_moment_prints_as_kubernetes_prints_times() {
        let moment = Moment::from_timestamp("2026-11-16T10:00:00.5+02:00".parse().unwrap());
        assert_eq!(moment.to_string(), "2026-11-16T08:00:00Z");
        assert_eq!(Moment::NEVER.to_string(), "never");
    }

    #[test]
    fn every_moment_of_the_calendar_prints_up_to_its_last_second() {
        for second in [Timestamp::MIN.as_second(), -1, 0, 1_800_000_000, Timestamp::MAX.as_second()] {
            let timestamp = Timestamp::from_second(second).unwrap();
            assert_eq!(Moment::from_second(second).to_string(), timestamp.to_string());
        }
        let last = Moment::from_second(253_402_300_799);
        assert_eq!(last.to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(last.plus_seconds(1).to_string(), "never");
    }

    #[test]
    fn a_span_shows_its_two_largest_units() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (270, "4m30s"), (7200, "2h"), (273_600, "3d4h"), (-5, "0s")]
        {
            assert_eq!(Span(seconds).to_string(), text);
        }
        assert_eq!(Span(86_400 + 300).to_string(), "1d");
    }
}
