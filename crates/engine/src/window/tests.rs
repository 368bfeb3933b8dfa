//! Windows: what their schedules say, where clocks change, and against a twin that looks at every minute.

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;

use super::schedule::Schedule;
use super::*;

fn at(time: &str) -> Moment {
    Moment::from_timestamp(time.parse().unwrap())
}

fn window(schedule: &str, seconds: i64, zone: &str) -> Window {
    Window::parse(schedule, seconds, Some(zone)).unwrap()
}

fn openings(window: &Window, from: &str, count: usize) -> Vec<String> {
    let mut now = at(from);
    (0..count)
        .map(|_| {
            now = window.next_opening(now).unwrap();
            now.to_string()
        })
        .collect()
}

fn refusal(schedule: &str) -> String {
    let error = Window::parse(schedule, 60, None).unwrap_err();
    assert_eq!(error.field(), "schedule");
    error.to_string()
}

#[test]
fn a_window_is_open_from_its_first_moment_up_to_but_not_at_its_last() {
    let nightly = window("0 2 * * *", 3_600, "UTC");
    for (time, open) in
        [("01:59:59.999999", false), ("02:00:00", true), ("02:59:59.999999", true), ("03:00:00", false)]
    {
        assert_eq!(nightly.is_open(at(&format!("2026-11-17T{time}Z"))), open, "{time}");
    }
    assert_eq!(
        openings(&nightly, "2026-11-17T02:00:00Z", 2),
        ["2026-11-18T02:00:00Z", "2026-11-19T02:00:00Z"]
    );
}

#[test]
fn no_windows_are_always_open() {
    let none = Windows::default();
    let now = at("2026-11-17T12:00:00Z");
    assert!(none.is_open(now));
    assert_eq!(none.next_opening(now), None);
    assert_eq!(none.next_open(now), Some(now));
    assert_eq!(none.closes_at(now), Some(Moment::NEVER));
}

#[test]
fn windows_that_meet_or_overlap_are_one() {
    let windows: Windows = [
        window("0 2 * * *", 3_600, "UTC"),
        window("0 3 * * *", 3_600, "UTC"),
        window("30 3 * * *", 3_600, "UTC"),
    ]
    .into_iter()
    .collect();
    assert_eq!(windows.closes_at(at("2026-11-17T02:30:00Z")), Some(at("2026-11-17T04:30:00Z")));
    assert_eq!(windows.closes_at(at("2026-11-17T04:30:00Z")), None);
    assert_eq!(windows.next_opening(at("2026-11-17T02:30:00Z")), Some(at("2026-11-17T03:00:00Z")));
    assert_eq!(windows.next_open(at("2026-11-17T02:30:00Z")), Some(at("2026-11-17T02:30:00Z")));
    assert_eq!(windows.next_open(at("2026-11-17T05:00:00Z")), Some(at("2026-11-18T02:00:00Z")));
}

#[test]
fn windows_without_a_break_are_followed_for_days_and_no_further() {
    let always: Windows = [window("* * * * *", 60, "Europe/Berlin")].into_iter().collect();
    let now = at("2026-10-24T12:00:30Z");
    let end = always.closes_at(now).unwrap();
    assert_eq!(end.seconds_since(now), 30 + 60 * FOLLOWED_MAX as i64);
    assert!(always.is_open(end), "whoever asks again is told that they are open still");
}

#[test]
fn a_time_that_is_left_out_counts_on_from_before_the_change() {
    // On that day 02:00 to 03:00 is left out in Berlin.
    let window = window("30 2 * * *", 3_600, "Europe/Berlin");
    assert_eq!(
        openings(&window, "2027-03-27T00:00:00Z", 3),
        ["2027-03-27T01:30:00Z", "2027-03-28T01:30:00Z", "2027-03-29T00:30:00Z"]
    );
    assert!(window.is_open(at("2027-03-28T02:29:59Z")), "it lasts as long as on any other day");
    assert!(!window.is_open(at("2027-03-28T02:30:00Z")));
}

#[test]
fn of_a_time_that_comes_twice_the_first_counts() {
    // On that day 02:00 to 03:00 comes twice in Berlin.
    let window = window("30 2 * * *", 1_800, "Europe/Berlin");
    assert_eq!(
        openings(&window, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    assert!(!window.is_open(at("2026-10-25T01:45:00Z")));
}

#[test]
fn a_schedule_for_any_hour_goes_by_what_the_clock_shows() {
    let half = window("30 * * * *", 60, "Europe/Berlin");
    assert_eq!(
        openings(&half, "2026-10-24T23:31:00Z", 3),
        ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
        "02:30 twice, then 03:30"
    );
    // Lord Howe puts its clocks by half an hour: 02:00 is 02:30, and 02:20 is left out.
    let twenty = window("20 */1 * * *", 60, "Australia/Lord_Howe");
    assert_eq!(
        openings(&twenty, "2026-10-03T14:00:00Z", 3),
        ["2026-10-03T14:50:00Z", "2026-10-03T16:20:00Z", "2026-10-03T17:20:00Z"]
    );
}

#[test]
fn a_day_that_a_zone_leaves_out_is_made_up_for() {
    // Samoa went from the 29th of December 2011 to the 31st.
    let window = window("0 12 30 12 *", 3_600, "Pacific/Apia");
    assert_eq!(openings(&window, "2011-12-01T00:00:00Z", 1), ["2011-12-30T22:00:00Z"]);
}

#[test]
fn a_window_may_be_open_across_a_change_of_clocks() {
    let window = window("0 22 * * sat", 8 * 3_600, "Europe/Berlin");
    let windows: Windows = [window].into_iter().collect();
    assert_eq!(windows.closes_at(at("2026-10-25T00:00:00Z")), Some(at("2026-10-25T04:00:00Z")));
}

#[test]
fn either_day_is_enough_where_both_are_said() {
    let either = window("0 0 13 * fri", 60, "UTC");
    assert_eq!(
        openings(&either, "2026-11-12T12:00:00Z", 3),
        ["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"]
    );
    assert_eq!(openings(&either, "2026-12-12T00:00:00Z", 1), ["2026-12-13T00:00:00Z"]);
    let mondays = window("0 0 ? * mon", 60, "UTC");
    assert_eq!(openings(&mondays, "2026-11-17T00:00:00Z", 1), ["2026-11-23T00:00:00Z"]);
}

#[test]
fn names_numbers_and_seven_say_the_same() {
    for (one, other) in [
        ("0 0 * jan-mar sun", "0 0 * 1-3 7"),
        ("0 0 * JAN,Feb,mar 0", "0 0 * 1,2,3 7"),
        ("0 0 * * fri-sun", "0 0 * * 5-7"),
        ("0 0 * * fri-sun", "0 0 * * 0,5,6"),
        ("*/15 * * * *", "0,15,30,45 * * * *"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("0 0 * * 1/2", "0 0 * * 1,3,5"),
        ("10-30/10 0 * * *", "10,20,30 0 * * *"),
        (" 0\t0  * * * ", "0 0 * * *"),
    ] {
        assert_eq!(Schedule::parse(one).unwrap(), Schedule::parse(other).unwrap(), "{one} and {other}");
    }
}

#[test]
fn a_mistake_is_told_with_its_field_and_column() {
    for (schedule, message) in [
        ("61 * * * *", "minute, column 1: 61 is not between 0 and 59"),
        ("0 1,24 * * *", "hour, column 5: 24 is not between 0 and 23"),
        ("0 0 0 * *", "day of the month, column 5: 0 is not between 1 and 31"),
        ("0 0 * 13 *", "month, column 7: 13 is not between 1 and 12"),
        ("0 0 * * 8", "day of the week, column 9: 8 is not between 0 and 7"),
        ("0 0 * january *", "month, column 7: \"january\" is neither a number nor a name of this field"),
        ("0 mon * * *", "hour, column 3: \"mon\" is neither a number nor a name of this field"),
        ("0 -1 * * *", "hour, column 3: a number, a name or * is missing"),
        ("0 1, * * *", "hour, column 5: a number, a name or * is missing"),
        ("0 1/ * * *", "hour, column 5: a number, a name or * is missing"),
        ("*/0 * * * *", "minute, column 3: a step must be between 1 and 59, not 0"),
        ("*/60 * * * *", "minute, column 3: a step must be between 1 and 59, not 60"),
        (
            "0 22-4 * * *",
            "hour, column 3: \"22-4\" ends before it begins; write two ranges with a comma between them",
        ),
        (
            "99999999999 * * * *",
            "minute, column 1: \"99999999999\" is neither a number nor a name of this field",
        ),
        ("ä * * * *", "minute, column 1: \"ä\" is neither a number nor a name of this field"),
        ("@daily", "must have five fields (minute, hour, day of the month, month, day of the week), not 1"),
        (
            "0 0 0 * * *",
            "must have five fields (minute, hour, day of the month, month, day of the week), not 6",
        ),
        ("0 0 30 2 *", "no month that it names has a day that it names: it would never open"),
        ("0 0 31 4,6,9,11 ?", "no month that it names has a day that it names: it would never open"),
    ] {
        assert_eq!(refusal(schedule), message, "{schedule}");
    }
    assert_eq!(refusal(&format!("{}0 0 * * *", "0,".repeat(300))), "must have no more than 512 bytes");
    assert!(Window::parse("0 0 30 2 mon", 60, None).is_ok(), "the Mondays of February are enough");
}

#[test]
fn a_length_or_a_zone_that_cannot_be_is_refused() {
    for seconds in [i64::MIN, -1, 0, 59, DURATION_SECONDS_MAX + 1, i64::MAX] {
        let error = Window::parse("0 0 * * *", seconds, None).unwrap_err();
        assert_eq!(error.field(), "durationSeconds");
        assert_eq!(error.to_string(), format!("must be between 60 and 2678400, not {seconds}"));
    }
    for zone in ["", "Mars/Olympus", "Etc/Unknown", "../../etc/passwd"] {
        let error = Window::parse("0 0 * * *", 60, Some(zone)).unwrap_err();
        assert_eq!(error.field(), "timeZone");
        assert_eq!(error.to_string(), format!("there is no time zone {zone:?}, such as \"Europe/Berlin\""));
    }
}

#[test]
fn what_a_clock_would_have_shown_had_nobody_changed_it_is_no_opening() {
    // At 02:00 it is 02:30 there: there is no 02:00, and at the change itself nothing opens.
    let hourly = window("0 * * * *", 60, "Australia/Lord_Howe");
    assert!(!hourly.is_open(at("2026-10-03T15:30:00Z")));
    assert!(hourly.is_open(at("2026-10-03T16:00:00Z")), "03:00");
}

#[test]
fn a_leap_day_is_found_across_the_year_that_leaves_it_out() {
    for zone in ["UTC", "Europe/Berlin", "Africa/Casablanca"] {
        let leap = window("0 12 29 2 *", 60, zone);
        let opening = openings(&leap, "2096-03-01T00:00:00Z", 1).remove(0);
        assert!(opening.starts_with("2104-02-29T1"), "{zone}: {opening}");
    }
}

#[test]
fn the_ends_of_time_are_no_opening() {
    let daily: Windows = [window("0 0 * * *", 60, "Asia/Tokyo")].into_iter().collect();
    for end in [Moment::PAST, Moment::NEVER, Moment::from_timestamp(Timestamp::MAX)] {
        assert_eq!((daily.next_opening(end), daily.closes_at(end)), (None, None));
    }
    assert!(daily.next_opening(Moment::from_timestamp(Timestamp::MIN)).is_some());
}

/// A field's items, so that most schedules name little and some name much.
fn field(least: u8, most: u8) -> impl Strategy<Value = String> {
    let number = least..=most;
    let range = (number.clone(), number.clone())
        .prop_map(|(one, other)| format!("{}-{}", one.min(other), one.max(other)));
    let item = prop_oneof![
        3 => number.clone().prop_map(|number| number.to_string()),
        1 => range.clone(),
        1 => (range, 1..=most).prop_map(|(range, step)| format!("{range}/{step}")),
        1 => (1..=most).prop_map(|step| format!("*/{step}")),
    ];
    prop_oneof![
        1 => Just("*".to_owned()),
        2 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

fn any_schedule() -> impl Strategy<Value = String> {
    (
        field(0, 59),
        field(0, 23),
        field(1, 31),
        prop_oneof![3 => Just("*".to_owned()), 1 => field(1, 12)],
        field(0, 6),
    )
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

/// Days on which clocks change somewhere, and days on which none do.
const DAYS: [&str; 8] = [
    "2026-10-25T01:00:00Z",
    "2027-03-28T01:00:00Z",
    "2026-10-03T15:30:00Z",
    "2027-04-03T15:00:00Z",
    "2026-11-01T06:00:00Z",
    "2027-03-14T07:00:00Z",
    "2011-12-30T10:00:00Z",
    "2026-12-31T23:30:00Z",
];
const ZONES: [&str; 7] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/St_Johns",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_search_finds_what_looking_at_every_minute_finds(
        schedule in any_schedule(),
        zone in select(&ZONES),
        day in select(&DAYS),
        shift_seconds in -100_000_i64..100_000,
        duration in prop_oneof![60_i64..7_200, 60_i64..200_000],
    ) {
        let Ok(window) = Window::parse(&schedule, duration, Some(zone)) else { return Ok(()) };
        let now = at(day).plus_seconds(shift_seconds);
        let (from, until) = (now.plus_seconds(-3 * 86_400), now.plus_seconds(3 * 86_400));
        let naive: Vec<Moment> = naive::openings(
            &window.schedule,
            &window.zone,
            from.timestamp().unwrap(),
            until.timestamp().unwrap(),
        )
        .into_iter()
        .map(Moment::from_timestamp)
        .collect();

        let next = naive.iter().copied().find(|opening| *opening > now);
        let found = window.next_opening(now).filter(|opening| *opening <= until);
        prop_assert_eq!(found, next);

        let end = |opening: Moment| opening.plus_seconds(duration);
        let open = naive.iter().any(|opening| *opening <= now && now < end(*opening));
        prop_assert_eq!(window.is_open(now), open);

        // The naive end: openings in order, each that begins before the end so far moves it.
        let mut closes = None;
        for opening in &naive {
            if *opening <= closes.unwrap_or(now) {
                closes = closes.max(Some(end(*opening)).filter(|end| *end > now));
            }
        }
        let windows: Windows = [window].into_iter().collect();
        let closes_at = windows.closes_at(now);
        match closes {
            // The naive list ends there.
            Some(end) if end > until => prop_assert!(closes_at.is_some()),
            _ => prop_assert_eq!(closes_at, closes),
        }
    }

    #[test]
    fn no_words_make_the_reading_of_a_schedule_fail_otherwise(text in "[ -~äö0-9*/,-]{0,40}") {
        let _ = Window::parse(&text, 60, None);
    }
}
