//! From the minutes of a calendar to moments, and where clocks are changed on the way.
//!
//! A time zone is a row of spans, each with one distance from UTC. Inside a span the calendar and the moments run side
//! by side, so a search in one is a search in the other, and only what lies at the seams needs a rule.

use berth_api::window::TIME_ZONE_CHARS_MAX;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::error::WindowError;
use super::schedule::Schedule;

/// How many spans are searched for an opening: twenty years in which clocks change twice a year, or Morocco's four
/// times for ten. A leap day comes at least every eight years.
const SPANS_MAX: usize = 41;
const TICK: SignedDuration = SignedDuration::from_nanos(1);

/// The zone of that name in the database that is built in.
pub(super) fn named(name: &str) -> Result<TimeZone, WindowError> {
    match TimeZoneDatabase::bundled().get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        _ => Err(WindowError::TimeZone { name: name.chars().take(TIME_ZONE_CHARS_MAX as usize).collect() }),
    }
}

/// The first opening after `after`.
pub(super) fn next(schedule: &Schedule, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let from = after.checked_add(TICK).ok()?;
    let mut span = Span::around(zone, from);
    for _ in 0..SPANS_MAX {
        if let Some(opening) = span.first_opening(schedule, from) {
            return Some(opening);
        }
        span = Span::around(zone, span.end?);
    }
    None
}

/// The latest opening until `until`, unless it was before `earliest`.
pub(super) fn latest(
    schedule: &Schedule,
    zone: &TimeZone,
    until: Timestamp,
    earliest: Timestamp,
) -> Option<Timestamp> {
    let mut span = Span::around(zone, until);
    for _ in 0..SPANS_MAX {
        if let Some(opening) = span.last_opening(schedule, until) {
            return Some(opening).filter(|opening| *opening >= earliest);
        }
        let before = span.start?.at.checked_sub(TICK).ok()?;
        if before < earliest {
            return None;
        }
        span = Span::around(zone, before);
    }
    None
}

/// A time in which a zone keeps its distance from UTC.
struct Span {
    /// How it began, unless it has always been.
    start: Option<Seam>,
    /// When the next one begins, if there is one.
    end: Option<Timestamp>,
    offset: Offset,
}

/// A moment at which clocks are changed.
struct Seam {
    at: Timestamp,
    /// The distance from UTC until then.
    before: Offset,
}

impl Span {
    /// The span that `at` lies in.
    fn around(zone: &TimeZone, at: Timestamp) -> Self {
        let after = at.checked_add(TICK).unwrap_or(Timestamp::MAX);
        let start = zone.preceding(after).next().and_then(|transition| {
            let at = transition.timestamp();
            Some(Seam { at, before: zone.to_offset(at.checked_sub(TICK).ok()?) })
        });
        let end = zone.following(at).next().map(|transition| transition.timestamp());
        Self { start, end, offset: zone.to_offset(at) }
    }

    /// What a clock would show at its beginning that nobody had changed.
    fn unchanged_start(&self) -> Option<DateTime> {
        self.start.as_ref().map(|seam| seam.before.to_datetime(seam.at))
    }

    /// The first opening in this span at `from` or after it.
    fn first_opening(&self, schedule: &Schedule, from: Timestamp) -> Option<Timestamp> {
        let from = self.start.as_ref().map_or(from, |seam| seam.at.max(from));
        let mut shown = self.offset.to_datetime(from);
        if !schedule.any_hour() {
            // What clocks showed before they were put back has been.
            shown = self.unchanged_start().map_or(shown, |start| start.max(shown));
        }
        let regular = schedule.at_or_after(shown).and_then(|minute| self.offset.to_timestamp(minute).ok());
        let left_out = self.left_out(schedule).and_then(|(seam, resumed)| {
            let minute = schedule.at_or_after(seam.before.to_datetime(from))?;
            (minute < resumed).then(|| seam.before.to_timestamp(minute).ok())?
        });
        let inside = |opening: &Timestamp| self.end.is_none_or(|end| *opening < end);
        [regular, left_out].into_iter().flatten().filter(inside).min()
    }

    /// The last opening in this span at `until` or before it.
    fn last_opening(&self, schedule: &Schedule, until: Timestamp) -> Option<Timestamp> {
        // What its clock would have shown after its end has never been.
        let last = self.end.and_then(|end| end.checked_sub(TICK).ok());
        let until = last.map_or(until, |last| last.min(until));
        let begun = self.unchanged_start().filter(|_| !schedule.any_hour());
        let regular = schedule
            .at_or_before(self.offset.to_datetime(until))
            .filter(|minute| begun.is_none_or(|begun| *minute >= begun))
            .and_then(|minute| self.offset.to_timestamp(minute).ok());
        let left_out = self.left_out(schedule).and_then(|(seam, resumed)| {
            let shown = seam.before.to_datetime(until).min(resumed.checked_sub(TICK).ok()?);
            let minute = schedule.at_or_before(shown)?;
            seam.before.to_timestamp(minute).ok()
        });
        let inside = |opening: &Timestamp| self.start.as_ref().is_none_or(|seam| *opening >= seam.at);
        [regular, left_out].into_iter().flatten().filter(inside).max()
    }

    /// Where this span begins with times that are left out and that `schedule` makes up for: the seam, and what clocks
    /// showed right after it.
    fn left_out(&self, schedule: &Schedule) -> Option<(&Seam, DateTime)> {
        let seam = self.start.as_ref().filter(|seam| seam.before < self.offset && !schedule.any_hour())?;
        Some((seam, self.offset.to_datetime(seam.at)))
    }
}
