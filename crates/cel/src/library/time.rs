//! Timestamps and durations: reading, writing and taking them apart.
//!
//! Owns RFC 3339 and the notation of durations (`1h30m`). Time zones are fixed offsets and UTC: the
//! zone database of a machine must not decide what a policy means.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Outcome, Row};
use crate::library::conversion::conversion_error;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("timestamp", "timestamp_to_timestamp", "(timestamp) -> timestamp", to_timestamp),
    ("timestamp", "int64_to_timestamp", "(int) -> timestamp", to_timestamp),
    ("timestamp", "string_to_timestamp", "(string) -> timestamp", to_timestamp),
    ("duration", "duration_to_duration", "(duration) -> duration", to_duration),
    ("duration", "int64_to_duration", "(int) -> duration", to_duration),
    ("duration", "string_to_duration", "(string) -> duration", to_duration),
    ("getFullYear", "timestamp_to_year", "timestamp.() -> int", year),
    ("getFullYear", "timestamp_to_year_with_tz", "timestamp.(string) -> int", year),
    ("getMonth", "timestamp_to_month", "timestamp.() -> int", month),
    ("getMonth", "timestamp_to_month_with_tz", "timestamp.(string) -> int", month),
    ("getDate", "timestamp_to_day_of_month_1_based", "timestamp.() -> int", date),
    ("getDate", "timestamp_to_day_of_month_1_based_with_tz", "timestamp.(string) -> int", date),
    ("getDayOfMonth", "timestamp_to_day_of_month", "timestamp.() -> int", day_of_month),
    ("getDayOfMonth", "timestamp_to_day_of_month_with_tz", "timestamp.(string) -> int", day_of_month),
    ("getDayOfWeek", "timestamp_to_day_of_week", "timestamp.() -> int", day_of_week),
    ("getDayOfWeek", "timestamp_to_day_of_week_with_tz", "timestamp.(string) -> int", day_of_week),
    ("getDayOfYear", "timestamp_to_day_of_year", "timestamp.() -> int", day_of_year),
    ("getDayOfYear", "timestamp_to_day_of_year_with_tz", "timestamp.(string) -> int", day_of_year),
    ("getHours", "timestamp_to_hours", "timestamp.() -> int", hours),
    ("getHours", "timestamp_to_hours_with_tz", "timestamp.(string) -> int", hours),
    ("getHours", "duration_to_hours", "duration.() -> int", hours),
    ("getMinutes", "timestamp_to_minutes", "timestamp.() -> int", minutes),
    ("getMinutes", "timestamp_to_minutes_with_tz", "timestamp.(string) -> int", minutes),
    ("getMinutes", "duration_to_minutes", "duration.() -> int", minutes),
    ("getSeconds", "timestamp_to_seconds", "timestamp.() -> int", seconds),
    ("getSeconds", "timestamp_to_seconds_tz", "timestamp.(string) -> int", seconds),
    ("getSeconds", "duration_to_seconds", "duration.() -> int", seconds),
    ("getMilliseconds", "timestamp_to_milliseconds", "timestamp.() -> int", milliseconds),
    ("getMilliseconds", "timestamp_to_milliseconds_with_tz", "timestamp.(string) -> int", milliseconds),
    ("getMilliseconds", "duration_to_milliseconds", "duration.() -> int", milliseconds),
];

/// 0001-01-01T00:00:00Z, the first second CEL knows.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, the last.
const LAST_SECOND: i64 = 253_402_300_799;

pub(crate) fn fits_timestamp(timestamp: &Timestamp) -> bool {
    (FIRST_SECOND..=LAST_SECOND).contains(&whole_seconds(*timestamp))
}

pub(crate) fn fits_duration(duration: &SignedDuration) -> bool {
    i64::try_from(duration.as_nanos()).is_ok()
}

/// Seconds since the epoch, rounded towards the past.
pub(crate) fn whole_seconds(timestamp: Timestamp) -> i64 {
    timestamp.as_nanosecond().div_euclid(1_000_000_000) as i64
}

fn to_timestamp(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Timestamp(timestamp)] => Ok(Value::Timestamp(*timestamp)),
        [Value::Int(seconds)] => Timestamp::from_second(*seconds)
            .ok()
            .filter(fits_timestamp)
            .map(Value::Timestamp)
            .ok_or(EvalError::Overflow { what: "timestamp" }),
        [Value::String(text)] => match parse_timestamp(text) {
            Some(timestamp) if fits_timestamp(&timestamp) => Ok(Value::Timestamp(timestamp)),
            Some(_) => Err(EvalError::Overflow { what: "timestamp" }),
            None => Err(conversion_error("string", "google.protobuf.Timestamp")),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// RFC 3339 and nothing looser.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i32> {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i32::from(digit - b'0')))
    };
    let at = |index: usize, wanted: u8| bytes.get(index).is_some_and(|byte| *byte == wanted);
    if !(at(4, b'-') && at(7, b'-') && at(10, b'T') && at(13, b':') && at(16, b':')) {
        return None;
    }
    let date = Date::new(number(0, 4)? as i16, number(5, 7)? as i8, number(8, 10)? as i8).ok()?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &text[19..];
    let mut nanos = 0i32;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let kept = &fraction[..digits.min(9)];
        nanos = kept.parse::<i32>().ok()? * 10i32.pow(9 - kept.len() as u32);
        rest = &fraction[digits..];
    }
    let offset = if rest == "Z" { 0 } else { parse_offset(rest)? };
    let local = date.at(hour as i8, minute as i8, second as i8, nanos);
    Offset::from_seconds(offset).ok()?.to_timestamp(local).ok()
}

/// `+hh:mm` in seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let [a, b, b':', c, d] = rest.as_bytes() else { return None };
    if ![a, b, c, d].iter().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digit = |byte: &u8| i32::from(byte - b'0');
    let (hours, minutes) = (digit(a) * 10 + digit(b), digit(c) * 10 + digit(d));
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// RFC 3339 in UTC, with as many digits of a second as there are.
pub(crate) fn format_timestamp(timestamp: Timestamp) -> String {
    let local = Offset::UTC.to_datetime(timestamp);
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    let nanos = local.subsec_nanosecond();
    if nanos != 0 {
        let fraction = format!("{nanos:09}");
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

fn to_duration(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(duration)] => Ok(Value::Duration(*duration)),
        // Declared, and always refused: a number does not say its unit.
        [Value::Int(_)] => Err(conversion_error("int", "google.protobuf.Duration")),
        [Value::String(text)] => parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| conversion_error("string", "google.protobuf.Duration")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// A sum of decimal numbers with units, as in `-1h30.5m`.
pub(crate) fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let whole_length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole: i128 = if whole_length == 0 { 0 } else { rest[..whole_length].parse().ok()? };
        rest = &rest[whole_length..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            (fraction, rest) = (&after[..length], &after[length..]);
        }
        if whole_length == 0 && fraction.is_empty() {
            return None;
        }
        let unit_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit: i128 = match &rest[..unit_length] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[unit_length..];
        total = total.checked_add(whole.checked_mul(unit)?)?;
        // Digits beyond the fifteenth are below a nanosecond for every unit.
        let kept = &fraction[..fraction.len().min(15)];
        if !kept.is_empty() {
            total += kept.parse::<i128>().ok()? * unit / 10i128.pow(kept.len() as u32);
        }
        if total > 1 << 63 {
            return None;
        }
    }
    let total = if negative { -total } else { total };
    i64::try_from(total).ok().map(SignedDuration::from_nanos)
}

/// Seconds with as many decimals as needed, as in `1.5s`.
pub(crate) fn format_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_nanos() as f64 / 1e9;
    format!("{seconds}s")
}

/// The wall-clock time of a timestamp where a call asks for it: in UTC, or in the zone of its second
/// argument.
fn local(args: &[Value]) -> Result<Zoned, EvalError> {
    match args {
        [Value::Timestamp(timestamp)] => Ok(timestamp.to_zoned(TimeZone::UTC)),
        [Value::Timestamp(timestamp), Value::String(zone)] => {
            let seconds = zone_offset(zone).ok_or_else(|| {
                EvalError::invalid(format!("unknown time zone {zone}: use UTC or an offset such as +02:00"))
            })?;
            let offset =
                Offset::from_seconds(seconds).map_err(|_| EvalError::invalid("time zone out of range"))?;
            Ok(timestamp.to_zoned(TimeZone::fixed(offset)))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn zone_offset(zone: &str) -> Option<i32> {
    if matches!(zone, "UTC" | "" | "Etc/UTC" | "Z" | "GMT") {
        return Some(0);
    }
    if zone.starts_with(['+', '-']) { parse_offset(zone) } else { parse_offset(&format!("+{zone}")) }
}

fn field(args: &[Value], of_time: fn(&Zoned) -> i64) -> Outcome {
    local(args).map(|local| Value::Int(of_time(&local)))
}

fn year(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.year()))
}

fn month(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.month()) - 1)
}

fn date(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.day()))
}

fn day_of_month(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.day()) - 1)
}

fn day_of_week(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.weekday().to_sunday_zero_offset()))
}

fn day_of_year(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    field(args, |local| i64::from(local.day_of_year()) - 1)
}

fn hours(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_hours())),
        _ => field(args, |local| i64::from(local.hour())),
    }
}

fn minutes(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_mins())),
        _ => field(args, |local| i64::from(local.minute())),
    }
}

fn seconds(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_secs())),
        _ => field(args, |local| i64::from(local.second())),
    }
}

fn milliseconds(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_millis() as i64)),
        _ => field(args, |local| i64::from(local.millisecond())),
    }
}
