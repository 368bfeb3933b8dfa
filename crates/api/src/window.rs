//! A time that comes again and again, as said; when it is open is the engine's to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most windows of one object: each is looked at whenever something of it is due.
pub const WINDOWS_MAX: u32 = 16;
/// The longest schedule, in characters: every minute of an hour in a list, and room for the other fields.
pub const SCHEDULE_CHARS_MAX: u32 = 512;
/// The shortest window, in seconds: schedules count in minutes.
pub const DURATION_SECONDS_MIN: i64 = 60;
/// The longest window, in seconds: 31 days. What is open for longer is not a window.
pub const DURATION_SECONDS_MAX: i64 = 31 * 86_400;
/// The longest name of a time zone, in characters: twice the longest there is.
pub const TIME_ZONE_CHARS_MAX: u32 = 64;

/// A time that comes again and again, in which something may happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceWindow {
    /// When it opens, in the five fields of cron: minute, hour, day of the month, month, day of the week.
    #[schemars(length(min = 1, max = SCHEDULE_CHARS_MAX))]
    pub schedule: String,
    /// How long it stays open, in seconds.
    #[schemars(range(min = DURATION_SECONDS_MIN, max = DURATION_SECONDS_MAX))]
    pub duration_seconds: i64,
    /// The time zone of the schedule, as in Europe/Berlin; UTC unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = TIME_ZONE_CHARS_MAX))]
    pub time_zone: Option<String>,
}
