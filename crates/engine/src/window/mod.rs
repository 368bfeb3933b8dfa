//! When something may happen: windows of maintenance.
//!
//! Owns the meaning of a window (a schedule in five fields, how long it stays open, the time zone its clock is in) and
//! of several of them. It never reads a clock, and the time zones are those of the database that is built in, so the
//! same window opens at the same moment on every machine.
//!
//! ```text
//!   schedule: five fields -> minutes of the calendar
//!   zone:     minutes of the calendar -> moments, where clocks are put forward and back
//!   Window:   moments of opening + how long it stays open; Windows: open while any of them is
//! ```
//!
//! Where clocks are put forward or back, a schedule that names its hours opens exactly once for each time that it
//! names: a time that is left out is counted on from before the change (02:30 is then 03:30), and of a time that comes
//! twice the first counts. A schedule for any hour (`*` or `*/2` in the field of hours) goes by what the clock shows:
//! a time that is left out opens nothing, and one that comes twice opens twice.

mod error;
mod schedule;
mod zone;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use berth_api::window::{DURATION_SECONDS_MAX, DURATION_SECONDS_MIN};
use jiff::tz::TimeZone;

use crate::moment::Moment;

pub use error::{Field, ScheduleProblem, WindowError};
use schedule::Schedule;

/// How many windows in a row are followed to find where they end: two days of windows of a minute each.
const FOLLOWED_MAX: usize = 2_880;

/// Times that come again and again, each of a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    schedule: Schedule,
    duration_seconds: i64,
    zone: TimeZone,
}

impl Window {
    /// A window that opens by `schedule` (five fields, as of cron) for `duration_seconds`, by the clocks of `time_zone`
    /// (a name of the IANA database; UTC if there is none).
    pub fn parse(
        schedule: &str,
        duration_seconds: i64,
        time_zone: Option<&str>,
    ) -> Result<Self, WindowError> {
        let schedule = Schedule::parse(schedule)?;
        if !(DURATION_SECONDS_MIN..=DURATION_SECONDS_MAX).contains(&duration_seconds) {
            return Err(WindowError::Duration { seconds: duration_seconds });
        }
        let zone = time_zone.map_or(Ok(TimeZone::UTC), zone::named)?;
        Ok(Self { schedule, duration_seconds, zone })
    }

    /// Whether it is open.
    pub fn is_open(&self, now: Moment) -> bool {
        self.ends_after(now).is_some()
    }

    /// The first opening after `now`; `None` where the calendar ends before it.
    pub fn next_opening(&self, now: Moment) -> Option<Moment> {
        zone::next(&self.schedule, &self.zone, now.timestamp()?).map(Moment::from_timestamp)
    }

    /// Where the latest opening until `now` ends, if that lies ahead.
    fn ends_after(&self, now: Moment) -> Option<Moment> {
        let earliest = now.plus_seconds(-self.duration_seconds).timestamp()?;
        let opening = zone::latest(&self.schedule, &self.zone, now.timestamp()?, earliest)?;
        Some(Moment::from_timestamp(opening).plus_seconds(self.duration_seconds)).filter(|end| *end > now)
    }
}

/// Several windows: open while any of them is, and always if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows(Vec<Window>);

impl Windows {
    /// Whether there are none, and so nothing is ever closed.
    pub fn is_unbounded(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something may happen now.
    pub fn is_open(&self, now: Moment) -> bool {
        self.is_unbounded() || self.0.iter().any(|window| window.is_open(now))
    }

    /// The first moment after `now` at which one of them opens, whether or not another is open already; `None` if there
    /// are none, or the calendar ends before it.
    pub fn next_opening(&self, now: Moment) -> Option<Moment> {
        self.0.iter().filter_map(|window| window.next_opening(now)).min()
    }

    /// When something may next happen: now if they are open, or else the next opening.
    pub fn next_open(&self, now: Moment) -> Option<Moment> {
        if self.is_open(now) { Some(now) } else { self.next_opening(now) }
    }

    /// When they will be closed, if they are open: the first moment at which none of them is, [`Moment::NEVER`] if
    /// there are none.
    ///
    /// Windows that meet or overlap count as one. Where so many follow each other that the end cannot be seen from
    /// here, it is a moment up to which they are certainly open: whoever asks again then is told the next one.
    pub fn closes_at(&self, now: Moment) -> Option<Moment> {
        let mut end = self.open_until(now)?;
        for _ in 0..FOLLOWED_MAX {
            match self.open_until(end).filter(|_| end.is_finite()) {
                Some(later) => end = later,
                None => break,
            }
        }
        Some(end)
    }

    /// A moment up to which they are certainly open, if they are open: where the one that stays open longest ends, although
    /// another may be open by then. It costs less than [`Windows::closes_at`], for whoever asks again at that moment.
    pub fn open_until(&self, now: Moment) -> Option<Moment> {
        if self.is_unbounded() {
            return Some(Moment::NEVER);
        }
        self.0.iter().filter_map(|window| window.ends_after(now)).max()
    }
}

impl FromIterator<Window> for Windows {
    fn from_iter<I: IntoIterator<Item = Window>>(windows: I) -> Self {
        Self(windows.into_iter().collect())
    }
}
