//! What is wrong with a window.

use std::fmt;

use berth_api::window::{DURATION_SECONDS_MAX, DURATION_SECONDS_MIN};

use super::schedule::SCHEDULE_BYTES_MAX;

/// Why something is not a window. Each says in which field of the window it is: [`WindowError::field`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// The schedule has more characters than one is read with.
    ScheduleTooLong,
    /// The schedule does not have five fields.
    FieldCount {
        /// How many it has.
        found: usize,
    },
    /// One of the schedule's fields cannot be read.
    Schedule {
        /// Which.
        field: Field,
        /// Where in the schedule the words begin that are wrong: a column, counted from one.
        column: usize,
        /// What is wrong with them.
        problem: ScheduleProblem,
    },
    /// No year has a day that the schedule names, as the 30th of February.
    NeverOpens,
    /// The window is too short or too long.
    Duration {
        /// How long it was said to be.
        seconds: i64,
    },
    /// The database of time zones knows none of that name.
    TimeZone {
        /// The name.
        name: String,
    },
}

impl WindowError {
    /// The field of a window, as it is written in an object, that has to be mended.
    pub fn field(&self) -> &'static str {
        match self {
            Self::ScheduleTooLong | Self::FieldCount { .. } | Self::Schedule { .. } | Self::NeverOpens => {
                "schedule"
            }
            Self::Duration { .. } => "durationSeconds",
            Self::TimeZone { .. } => "timeZone",
        }
    }
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScheduleTooLong => write!(f, "must have no more than {SCHEDULE_BYTES_MAX} bytes"),
            Self::FieldCount { found } => write!(
                f,
                "must have five fields (minute, hour, day of the month, month, day of the week), not {found}"
            ),
            Self::Schedule { field, column, problem } => write!(f, "{field}, column {column}: {problem}"),
            Self::NeverOpens => {
                f.write_str("no month that it names has a day that it names: it would never open")
            }
            Self::Duration { seconds } => {
                write!(f, "must be between {DURATION_SECONDS_MIN} and {DURATION_SECONDS_MAX}, not {seconds}")
            }
            Self::TimeZone { name } => write!(f, "there is no time zone {name:?}, such as \"Europe/Berlin\""),
        }
    }
}

impl std::error::Error for WindowError {}

/// One of the five fields of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `jan` to `dec`.
    Month,
    /// 0 to 7, where both ends are Sunday, or `sun` to `sat`.
    DayOfWeek,
}

impl Field {
    /// All of them, in the order in which a schedule has them.
    pub(super) const ALL: [Self; 5] =
        [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The smallest and the largest number that may be written.
    pub(super) fn bounds(self) -> (u8, u8) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of the month",
            Self::Month => "month",
            Self::DayOfWeek => "day of the week",
        })
    }
}

/// What is wrong in one field of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleProblem {
    /// Something is missing: before or after a comma, a dash or a slash.
    Missing,
    /// It is neither a number nor a name that the field has.
    Unreadable {
        /// What it is.
        text: String,
    },
    /// The number is not one of the field's.
    OutOfBounds {
        /// The number.
        number: u32,
        /// The smallest.
        least: u8,
        /// The largest.
        most: u8,
    },
    /// A range ends before it begins.
    Backwards {
        /// The range.
        text: String,
    },
    /// The step is zero, or so long that it leaves only the beginning.
    Step {
        /// The step.
        step: u32,
        /// The longest that has a meaning.
        most: u8,
    },
}

impl fmt::Display for ScheduleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a number, a name or * is missing"),
            Self::Unreadable { text } => write!(f, "{text:?} is neither a number nor a name of this field"),
            Self::OutOfBounds { number, least, most } => {
                write!(f, "{number} is not between {least} and {most}")
            }
            Self::Backwards { text } => {
                write!(f, "{text:?} ends before it begins; write two ranges with a comma between them")
            }
            Self::Step { step, most } => write!(f, "a step must be between 1 and {most}, not {step}"),
        }
    }
}
