//! A schedule of five fields: which minutes of the calendar it names.
//!
//! Owns the grammar (numbers, names, ranges, lists, steps) and the search among the minutes of a calendar without time
//! zones. Days follow the rule of cron: where both the day of the month and the day of the week are restricted, one of
//! the two is enough. As for Kubernetes' CronJobs, only a bare `*` (or `?`) is no restriction.

use berth_api::window::SCHEDULE_CHARS_MAX;
use jiff::civil::{Date, DateTime, Time, date};

use super::error::{Field, ScheduleProblem, WindowError};

/// The longest schedule that is read, in bytes: what can be understood is of single bytes.
pub(super) const SCHEDULE_BYTES_MAX: usize = SCHEDULE_CHARS_MAX as usize;
/// How many days and months are tried before a search is given up. A leap day that the calendar leaves out is eight
/// years after the one before; each year is eleven months to skip and at most 31 days to try.
const TRIED_MAX: usize = 20 * (12 + 31);
/// February has this day in some years.
const DAYS_OF_MONTH: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Sunday as the end of a week.
const LAST_SUNDAY: u8 = 7;

/// The minutes that a schedule names: a set of numbers for each field, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the day of the month, and of the week, is said at all.
    restricts_days: bool,
    restricts_weekdays: bool,
    any_hour: bool,
}

impl Schedule {
    /// The schedule that `text` says.
    pub(super) fn parse(text: &str) -> Result<Self, WindowError> {
        if text.len() > SCHEDULE_BYTES_MAX {
            return Err(WindowError::ScheduleTooLong);
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[_, hour, day, _, weekday] = words.as_slice() else {
            return Err(WindowError::FieldCount { found: words.len() });
        };
        // Words are parts of the text, so where one begins is told by where it lies.
        let column = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize + 1;
        let mut sets = [0; 5];
        for ((field, word), set) in Field::ALL.into_iter().zip(words).zip(&mut sets) {
            *set = read_list(field, word).map_err(|(part, problem)| WindowError::Schedule {
                field,
                column: column(part),
                problem,
            })?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        let schedule = Self {
            minutes,
            hours,
            days,
            months,
            // Seven is Sunday as well.
            weekdays: (weekdays | weekdays >> LAST_SUNDAY) & 0x7f,
            restricts_days: !is_any(day),
            restricts_weekdays: !is_any(weekday),
            any_hour: hour.starts_with(['*', '?']),
        };
        if schedule.has_a_day() { Ok(schedule) } else { Err(WindowError::NeverOpens) }
    }

    /// Whether it goes by what the clock shows at any hour, rather than naming hours.
    pub(super) fn any_hour(&self) -> bool {
        self.any_hour
    }

    /// The first minute that it names at `from` or after it.
    pub(super) fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        let mut day = from.date();
        let mut earliest = from.time();
        if earliest.second() > 0 || earliest.subsec_nanosecond() > 0 {
            if let Ok(next) = whole_minute(earliest).checked_add(jiff::SignedDuration::from_mins(1)) {
                earliest = next;
            } else {
                (day, earliest) = (day.tomorrow().ok()?, Time::midnight());
            }
        }
        for _ in 0..TRIED_MAX {
            if !has(self.months, day.month()) {
                day = first_of_next_month(day)?;
                earliest = Time::midnight();
                continue;
            }
            if self.has_day(day)
                && let Some(time) = self.time_at_or_after(earliest)
            {
                return Some(day.to_datetime(time));
            }
            day = day.tomorrow().ok()?;
            earliest = Time::midnight();
        }
        None
    }

    /// The last minute that it names at `until` or before it.
    pub(super) fn at_or_before(&self, until: DateTime) -> Option<DateTime> {
        let mut day = until.date();
        let mut latest = whole_minute(until.time());
        for _ in 0..TRIED_MAX {
            if !has(self.months, day.month()) {
                day = day.first_of_month().yesterday().ok()?;
                latest = LAST_MINUTE;
                continue;
            }
            if self.has_day(day)
                && let Some(time) = self.time_at_or_before(latest)
            {
                return Some(day.to_datetime(time));
            }
            day = day.yesterday().ok()?;
            latest = LAST_MINUTE;
        }
        None
    }

    /// Whether it names a minute of the calendar.
    #[cfg(test)]
    pub(super) fn names(&self, minute: DateTime) -> bool {
        has(self.months, minute.month())
            && self.has_day(minute.date())
            && has(self.hours, minute.hour())
            && has(self.minutes, minute.minute())
    }

    fn has_day(&self, day: Date) -> bool {
        let of_month = has(self.days, day.day());
        let of_week = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        if self.restricts_days && self.restricts_weekdays { of_month || of_week } else { of_month && of_week }
    }

    /// Whether some year has a day that it names.
    fn has_a_day(&self) -> bool {
        // Every month has every day of the week, and one of the two is enough.
        self.restricts_weekdays
            || (1..).zip(DAYS_OF_MONTH).any(|(month, last)| {
                let first_days = (1_u64 << (last + 1)) - 1;
                has(self.months, month) && self.days & first_days != 0
            })
    }

    fn time_at_or_after(&self, earliest: Time) -> Option<Time> {
        let hour = earliest.hour();
        if has(self.hours, hour)
            && let Some(minute) = lowest(self.minutes, earliest.minute())
        {
            return Time::new(hour, minute, 0, 0).ok();
        }
        let hour = lowest(self.hours, hour + 1)?;
        Time::new(hour, lowest(self.minutes, 0)?, 0, 0).ok()
    }

    fn time_at_or_before(&self, latest: Time) -> Option<Time> {
        let hour = latest.hour();
        if has(self.hours, hour)
            && let Some(minute) = highest(self.minutes, latest.minute())
        {
            return Time::new(hour, minute, 0, 0).ok();
        }
        let hour = highest(self.hours, hour.checked_sub(1).filter(|hour| *hour >= 0)?)?;
        Time::new(hour, highest(self.minutes, 59)?, 0, 0).ok()
    }
}

const LAST_MINUTE: Time = Time::constant(23, 59, 0, 0);

fn whole_minute(time: Time) -> Time {
    Time::constant(time.hour(), time.minute(), 0, 0)
}

fn first_of_next_month(day: Date) -> Option<Date> {
    match day.month() {
        12 if day.year() == Date::MAX.year() => None,
        12 => Some(date(day.year() + 1, 1, 1)),
        month => Some(date(day.year(), month + 1, 1)),
    }
}

/// Whether a set has a number; the calendar's numbers are never negative.
fn has(set: u64, number: i8) -> bool {
    set & (1 << number) != 0
}

/// The lowest number of a set from `least` on.
fn lowest(set: u64, least: i8) -> Option<i8> {
    let rest = set >> least << least;
    (rest != 0).then(|| rest.trailing_zeros() as i8)
}

/// The highest number of a set up to `most`.
fn highest(set: u64, most: i8) -> Option<i8> {
    let rest = set & (u64::MAX >> (63 - most));
    (rest != 0).then(|| 63 - rest.leading_zeros() as i8)
}

/// Whether a field says nothing.
fn is_any(word: &str) -> bool {
    matches!(word, "*" | "?")
}

/// The words that are wrong, and why.
type Wrong<'a> = (&'a str, ScheduleProblem);

/// The numbers of a field: items with commas between them.
fn read_list(field: Field, word: &str) -> Result<u64, Wrong<'_>> {
    word.split(',').try_fold(0, |set, item| Ok(set | read_item(field, item)?))
}

/// The numbers of `*`, `N`, `N-M`, each with or without `/STEP`. `N/STEP` goes to the end of the field.
fn read_item(field: Field, item: &str) -> Result<u64, Wrong<'_>> {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let (least, most) = field.bounds();
    // The week ends with Saturday, except where somebody writes 7.
    let most = if field == Field::DayOfWeek { most - 1 } else { most };
    let (first, last) = match range.split_once('-') {
        _ if is_any(range) => (least, most),
        Some((first, last)) => {
            let (begin, mut end) = (read_number(field, first)?, read_number(field, last)?);
            if field == Field::DayOfWeek && end == 0 && begin > 0 {
                end = LAST_SUNDAY;
            }
            if begin > end {
                return Err((range, ScheduleProblem::Backwards { text: range.to_owned() }));
            }
            (begin, end)
        }
        None => {
            let only = read_number(field, range)?;
            (only, if step.is_some() { most.max(only) } else { only })
        }
    };
    let step = match step {
        None => 1,
        Some(text) => match digits(text)? {
            step if step == 0 || step > u32::from(most) => {
                return Err((text, ScheduleProblem::Step { step, most }));
            }
            step => step as usize,
        },
    };
    Ok((first..=last).step_by(step).fold(0, |set, number| set | 1 << number))
}

fn read_number(field: Field, text: &str) -> Result<u8, Wrong<'_>> {
    let names: &[&str] = match field {
        Field::Month => &MONTHS,
        Field::DayOfWeek => &WEEKDAYS,
        _ => &[],
    };
    let (least, most) = field.bounds();
    if let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(least + index as u8);
    }
    match digits(text)? {
        number if (u32::from(least)..=u32::from(most)).contains(&number) => Ok(number as u8),
        number => Err((text, ScheduleProblem::OutOfBounds { number, least, most })),
    }
}

fn digits(text: &str) -> Result<u32, Wrong<'_>> {
    if text.is_empty() {
        return Err((text, ScheduleProblem::Missing));
    }
    let unreadable = || (text, ScheduleProblem::Unreadable { text: text.to_owned() });
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unreadable());
    }
    text.parse().map_err(|_| unreadable())
}
