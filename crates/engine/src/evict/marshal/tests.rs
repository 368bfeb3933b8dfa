//! The marshal against a naive twin that looks at everybody, and what must hold whatever happens.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::evict::{Allowance, Cause, Freeze, Rate, Thresholds};

const START: Moment = Moment::from_second(1_000);

fn zone(name: &str) -> Domain {
    Domain::Zone(name.into())
}

fn workload(name: &str) -> Domain {
    Domain::PolicyWorkload("p".into(), name.into())
}

fn route(domains: &[Domain]) -> Route {
    domains.into()
}

fn freeze(reason: &str) -> Freeze {
    Freeze::of(Cause::Person, reason)
}

fn second(seconds: i64) -> Moment {
    START.plus_seconds(seconds)
}

/// Everybody who may go now.
fn all(marshal: &mut Marshal<u32>, now: Moment) -> Vec<u32> {
    std::iter::from_fn(|| marshal.next(now)).collect()
}

#[test]
fn the_longest_due_goes_first_and_nobody_before_its_moment() {
    let mut marshal = Marshal::default();
    let everything = route(&[Domain::Everything]);
    for (subject, due) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        marshal.want(&subject, second(due), &everything);
    }
    assert_eq!(marshal.wake(), Some(second(10)));
    assert_eq!(all(&mut marshal, second(9)), Vec::<u32>::new());
    assert_eq!(all(&mut marshal, second(20)), [2, 4, 3]);
    assert_eq!(marshal.hold(&1, second(20)), Some(Hold::NotDue { at: second(30) }));
}

/// Upstream: tainteviction/timed_workers_test.go "TestExecute", "TestExecuteDelayed".
#[test]
fn who_is_wanted_twice_goes_once_and_at_its_moment() {
    let everything = route(&[Domain::Everything]);
    for delay in [0, 10] {
        let mut marshal = Marshal::default();
        for subject in (0..5).chain(0..5) {
            marshal.want(&subject, second(delay), &everything);
        }
        assert_eq!(all(&mut marshal, second(delay - 1)), Vec::<u32>::new());
        assert_eq!(all(&mut marshal, second(delay)), [0, 1, 2, 3, 4]);
        assert_eq!(all(&mut marshal, second(100)), Vec::<u32>::new());
    }
}

/// Upstream: tainteviction/timed_workers_test.go "TestCancel", "TestCancelAndRead".
#[test]
fn who_is_taken_back_stays_unless_it_is_wanted_again() {
    let everything = route(&[Domain::Everything]);
    for (again, gone) in [(None, vec![0, 2, 4]), (Some(1), vec![0, 2, 4, 1])] {
        let mut marshal = Marshal::default();
        for subject in 0..5 {
            marshal.want(&subject, second(10), &everything);
        }
        assert!(marshal.withdraw(&1) && marshal.withdraw(&3));
        if let Some(subject) = again {
            marshal.want(&subject, second(11), &everything);
        }
        assert_eq!(all(&mut marshal, second(10)), [0, 2, 4]);
        let rest = all(&mut marshal, second(100));
        assert_eq!([vec![0, 2, 4], rest].concat(), gone);
    }
}

#[test]
fn a_domain_that_is_full_holds_its_own_and_nobody_else() {
    let mut marshal = Marshal::default();
    let (a, b) = (zone("a"), zone("b"));
    let bounds = Bounds { in_flight: Allowance::Count(1), ..Bounds::default() };
    marshal.bound(&a, bounds, START);
    for subject in [1, 2] {
        marshal.want(&subject, START, &route(&[Domain::Everything, a.clone()]));
    }
    marshal.want(&3, second(1), &route(&[Domain::Everything, b]));
    assert_eq!(all(&mut marshal, second(1)), [1, 3]);
    let hold = marshal.hold(&2, second(1)).unwrap();
    assert_eq!(hold.to_string(), "1 of zone a are away, and 1 may be");
    marshal.ended(&1);
    assert_eq!(all(&mut marshal, second(1)), [2]);
    assert_eq!((marshal.waiting(), marshal.away()), (0, 2));
}

#[test]
fn who_is_away_by_somebody_elses_hand_counts_as_well() {
    let mut marshal = Marshal::default();
    let a = workload("a");
    marshal.bound(&a, Bounds { in_flight: Allowance::Percent(50), ..Bounds::default() }, START);
    marshal.census(&a, 0, 4, START);
    marshal.absent(&a, 1);
    for subject in [1, 2] {
        marshal.want(&subject, START, &route(&[Domain::Everything, a.clone()]));
    }
    assert_eq!(all(&mut marshal, START), [1]);
    let hold = marshal.hold(&2, START).unwrap();
    assert_eq!(hold.to_string(), "2 of policy p in workload a are away, and 50% may be");
    marshal.ended(&1);
    marshal.absent(&a, 2);
    assert_eq!(marshal.next(START), None, "it goes on being away");
    marshal.absent(&a, 1);
    assert_eq!(marshal.next(START), Some(2));
}

#[test]
fn who_was_let_go_and_has_not_gone_gives_its_turn_back() {
    let mut marshal = Marshal::default();
    let a = zone("a");
    marshal.bound(&a, Bounds { rate: Rate::per_second(0.1, 1), ..Bounds::default() }, START);
    for subject in [1, 2, 3] {
        marshal.want(&subject, START, &route(std::slice::from_ref(&a)));
    }
    assert_eq!(all(&mut marshal, START), [1]);
    marshal.given_back(&1);
    assert_eq!(all(&mut marshal, second(1)), [2], "nobody has gone yet");
    assert_eq!(marshal.wake(), Some(second(11)));
}

#[test]
fn that_a_breaker_opens_and_closes_is_told_once_each() {
    let mut marshal: Marshal<u32> = Marshal::default();
    let a = zone("a");
    let thresholds =
        Thresholds { open_percent: 50, open_count: 2, close_percent: 50, calm: Duration::from_secs(10) };
    marshal.bound(&a, Bounds { breaker: Some(thresholds), ..Bounds::default() }, START);
    marshal.census(&a, 1, 4, START);
    assert_eq!(marshal.take_turned(), [(a.clone(), BreakerSight::Closed)]);
    marshal.census(&a, 2, 4, second(1));
    marshal.census(&a, 3, 4, second(2));
    let open = Hold::BreakerOpen { domain: a.clone(), affected: 3, total: 4, until: None };
    assert_eq!(marshal.take_turned(), [(a.clone(), BreakerSight::Open(open))]);
    marshal.census(&a, 4, 4, second(3));
    assert_eq!(marshal.take_turned(), [], "it is open already");
    marshal.census(&a, 0, 4, second(4));
    assert_eq!((marshal.next(second(4)), marshal.take_turned()), (None, vec![]), "not before it was calm");
    assert_eq!(marshal.wake(), Some(second(14)));
    marshal.next(second(14));
    assert_eq!(marshal.take_turned(), [(a.clone(), BreakerSight::Closed)]);
    marshal.forget(&a, second(15));
    assert_eq!(marshal.take_turned(), [(a, BreakerSight::Gone)]);
}

#[test]
fn a_person_who_says_stop_is_heard_at_once_and_until_they_take_it_back() {
    let mut marshal = Marshal::default();
    marshal.want(&1, START, &route(&[Domain::Everything]));
    marshal.stop([freeze("network maintenance")].into_iter().collect());
    assert_eq!((marshal.next(second(9)), marshal.wake()), (None, None));
    assert_eq!(marshal.hold(&1, second(9)).unwrap().to_string(), "frozen: network maintenance");
    assert_eq!(marshal.held(second(9)), BTreeMap::from([("frozen", 1)]));
    marshal.stop(Stops::default());
    assert_eq!(marshal.held(second(9)), BTreeMap::new());
    assert_eq!(marshal.next(second(9)), Some(1));
}

#[test]
fn a_stopped_rate_holds_and_a_new_one_starts_without_a_burst() {
    let mut marshal = Marshal::default();
    let a = zone("a");
    marshal.bound(&a, Bounds { rate: Rate::Stopped, ..Bounds::default() }, START);
    for subject in 1..=3 {
        marshal.want(&subject, START, &route(std::slice::from_ref(&a)));
    }
    assert_eq!(all(&mut marshal, second(9)), Vec::<u32>::new());
    assert_eq!(marshal.hold(&1, second(9)).unwrap().to_string(), "zone a is stopped");
    assert_eq!(marshal.wake(), None, "time alone changes nothing");
    marshal.bound(&a, Bounds { rate: Rate::per_second(0.1, 1), ..Bounds::default() }, second(10));
    assert_eq!(all(&mut marshal, second(10)), Vec::<u32>::new());
    assert_eq!(marshal.wake(), Some(second(20)));
    assert_eq!(all(&mut marshal, second(20)), [1]);
    assert_eq!(marshal.hold(&2, second(20)), Some(Hold::Paced { domain: a, until: second(30) }));
    assert_eq!(all(&mut marshal, second(30)), [2]);
}

#[test]
fn an_open_breaker_holds_everybody_in_its_domain_and_closes_by_itself() {
    let mut marshal = Marshal::default();
    let a = zone("a");
    let thresholds =
        Thresholds { open_percent: 50, open_count: 2, close_percent: 30, calm: Duration::from_mins(1) };
    marshal.bound(&a, Bounds { breaker: Some(thresholds), ..Bounds::default() }, START);
    marshal.census(&a, 5, 10, START);
    marshal.want(&1, START, &route(std::slice::from_ref(&a)));
    assert_eq!(marshal.next(START), None);
    let hold = marshal.hold(&1, START).unwrap();
    assert_eq!(hold.to_string(), "5 of 10 in zone a are affected, which is too many at once");
    marshal.census(&a, 1, 10, second(10));
    assert_eq!(marshal.next(second(10)), None);
    assert_eq!(marshal.wake(), Some(second(70)));
    assert_eq!(marshal.next(second(70)), Some(1));
}

#[test]
fn who_was_let_go_is_barred_by_what_opens_or_stops_behind_it_and_by_nothing_else() {
    let mut marshal = Marshal::default();
    let (a, b) = (zone("a"), zone("b"));
    let thresholds =
        Thresholds { open_percent: 50, open_count: 2, close_percent: 30, calm: Duration::from_mins(1) };
    let bounds = Bounds { breaker: Some(thresholds), in_flight: Allowance::Count(1), ..Bounds::default() };
    for domain in [&a, &b] {
        marshal.bound(domain, bounds, START);
        marshal.census(domain, 1, 10, START);
    }
    marshal.want(&1, START, &route(&[Domain::Everything, a.clone()]));
    marshal.want(&2, START, &route(&[Domain::Everything, b]));
    assert_eq!(all(&mut marshal, START), [1, 2]);
    assert!(!marshal.is_barred(&1), "as many are away as may be, and it is one of them");
    marshal.census(&a, 5, 10, second(1));
    assert_eq!((marshal.is_barred(&1), marshal.is_barred(&2)), (true, false));
    marshal.census(&a, 1, 10, second(2));
    assert_eq!(marshal.next(second(62)), None);
    assert!(!marshal.is_barred(&1), "it has closed again");
    marshal.bound(&a, Bounds { rate: Rate::Stopped, ..bounds }, second(62));
    assert_eq!((marshal.is_barred(&1), marshal.is_barred(&2)), (true, false));
    marshal.stop([freeze("stop")].into_iter().collect());
    assert!(marshal.is_barred(&2));
}

#[test]
fn a_clock_that_is_set_back_an_hour_holds_nobody_up_for_an_hour() {
    let mut marshal = Marshal::default();
    let a = zone("a");
    marshal.bound(&a, Bounds { rate: Rate::per_second(1.0, 1), ..Bounds::default() }, second(3_600));
    for subject in [1, 2] {
        marshal.want(&subject, START, &route(std::slice::from_ref(&a)));
    }
    assert_eq!(all(&mut marshal, second(3_600)), [1]);
    assert_eq!(all(&mut marshal, second(0)), Vec::<u32>::new());
    assert_eq!(marshal.wake(), Some(second(1)));
    assert_eq!(all(&mut marshal, second(1)), [2]);
}

#[test]
fn whose_cause_is_gone_never_goes() {
    let mut marshal = Marshal::default();
    let everything = route(&[Domain::Everything]);
    marshal.want(&1, START, &everything);
    assert!(marshal.withdraw(&1) && !marshal.withdraw(&1));
    assert_eq!((marshal.next(START), marshal.wake()), (None, None));
    marshal.want(&2, START, &everything);
    assert_eq!(marshal.next(START), Some(2));
    marshal.want(&2, START, &everything);
    assert_eq!(marshal.next(START), None, "who is away is not let go twice");
}

#[test]
fn what_is_idle_is_forgotten() {
    let mut marshal = Marshal::default();
    for name in 0..100 {
        let workload = workload(&format!("ns/{name}"));
        marshal.want(&name, START, &route(&[Domain::Everything, workload.clone()]));
        assert_eq!(marshal.next(START), Some(name));
        marshal.ended(&name);
        marshal.forget(&workload, START);
    }
    assert!(marshal.domains.is_empty() && marshal.queues.is_empty() && marshal.timers.is_empty());
}

/// A marshal that looks at everybody each time: slow, and plainly right.
#[derive(Default)]
struct Naive {
    frozen: bool,
    domains: BTreeMap<Domain, (Bounds, Bucket, Option<Breaker>, usize)>,
    absent: BTreeMap<Domain, usize>,
    waiting: BTreeMap<u32, (Moment, Route)>,
    away: BTreeMap<u32, Route>,
}

impl Naive {
    fn away_of(&self, domain: &Domain) -> usize {
        self.away.values().filter(|route| route.contains(domain)).count()
    }

    fn is_held(&self, route: &Route, now: Moment) -> bool {
        route.iter().any(|domain| {
            let Some((bounds, bucket, breaker, size)) = self.domains.get(domain) else { return false };
            breaker.as_ref().is_some_and(Breaker::is_open)
                || self.away_of(domain) + self.absent.get(domain).copied().unwrap_or_default()
                    >= bounds.in_flight.of(*size)
                || bucket.ready_at(now) > now
        })
    }

    fn look_at_the_clock(&mut self, now: Moment) {
        for (_, bucket, breaker, _) in self.domains.values_mut() {
            bucket.set_back(now);
            if let Some(breaker) = breaker {
                breaker.advance(now);
            }
        }
    }

    fn next(&mut self, now: Moment) -> Option<u32> {
        self.look_at_the_clock(now);
        if self.frozen {
            return None;
        }
        let mut turns: Vec<_> =
            self.waiting.iter().map(|(subject, (due, route))| (*due, *subject, route)).collect();
        turns.sort_unstable_by_key(|(due, subject, _)| (*due, *subject));
        let found = turns.into_iter().find(|(due, _, route)| *due <= now && !self.is_held(route, now));
        let subject = found?.1;
        let (_, route) = self.waiting.remove(&subject).unwrap();
        for domain in route.iter() {
            if let Some((_, bucket, ..)) = self.domains.get_mut(domain) {
                bucket.take(now);
            }
        }
        self.away.insert(subject, route);
        Some(subject)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Want(u32, i64, Route),
    Withdraw(u32),
    Ended(u32),
    GivenBack(u32),
    Absent(Domain, usize),
    Bound(Domain, Bounds),
    Census(Domain, usize, usize),
    Forget(Domain),
    Freeze(bool),
    Pass(i64),
    Next,
}

fn any_domain() -> impl Strategy<Value = Domain> {
    select(vec![Domain::Everything, zone("a"), zone("b"), workload("w")])
}

fn any_route() -> impl Strategy<Value = Route> {
    let (a, b, w) = (zone("a"), zone("b"), workload("w"));
    select(vec![
        route(&[Domain::Everything]),
        route(&[Domain::Everything, a.clone()]),
        route(&[Domain::Everything, b.clone()]),
        route(&[Domain::Everything, a, w.clone()]),
        route(&[Domain::Everything, b, w]),
    ])
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    let rate =
        select(vec![Rate::Unlimited, Rate::Stopped, Rate::per_second(1.0, 1), Rate::per_second(0.25, 2)]);
    let in_flight = select(vec![
        Allowance::All,
        Allowance::Count(0),
        Allowance::Count(1),
        Allowance::Count(2),
        Allowance::Percent(50),
    ]);
    let breaker = prop::option::weighted(
        0.3,
        Just(Thresholds { open_percent: 60, open_count: 2, close_percent: 30, calm: Duration::from_secs(5) }),
    );
    (rate, in_flight, breaker).prop_map(|(rate, in_flight, breaker)| Bounds { rate, in_flight, breaker })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..12, -2_i64..12, any_route()).prop_map(|(subject, due, route)| Step::Want(subject, due, route)),
        2 => (0_u32..12).prop_map(Step::Withdraw),
        5 => (0_u32..12).prop_map(Step::Ended),
        2 => (0_u32..12).prop_map(Step::GivenBack),
        1 => (any_domain(), 0_usize..3).prop_map(|(domain, absent)| Step::Absent(domain, absent)),
        2 => (any_domain(), any_bounds()).prop_map(|(domain, bounds)| Step::Bound(domain, bounds)),
        2 => (any_domain(), 0_usize..6, 0_usize..6).prop_map(|(domain, affected, healthy)| {
            Step::Census(domain, affected, affected + healthy)
        }),
        1 => any_domain().prop_map(Step::Forget),
        1 => any::<bool>().prop_map(Step::Freeze),
        // Clocks are set back, too.
        3 => (-3_i64..10).prop_map(Step::Pass),
        8 => Just(Step::Next),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happens in whatever order, exactly the one goes whom a look at everybody would choose, and no bound is
    /// ever exceeded; and once every cause for waiting is gone, everybody goes.
    #[test]
    fn it_chooses_as_its_naive_twin_does(steps in prop::collection::vec(any_step(), 0..120)) {
        let (mut marshal, mut naive) = (Marshal::default(), Naive::default());
        let mut now = START;
        let mut asked = now;
        for step in steps {
            match step {
                Step::Want(subject, due, route) => {
                    let due = now.plus_seconds(due);
                    marshal.want(&subject, due, &route);
                    naive.waiting.remove(&subject);
                    if !naive.away.contains_key(&subject) {
                        naive.waiting.insert(subject, (due, route));
                    }
                }
                Step::Withdraw(subject) => {
                    prop_assert_eq!(marshal.withdraw(&subject), naive.waiting.remove(&subject).is_some());
                }
                Step::Ended(subject) => {
                    marshal.ended(&subject);
                    naive.away.remove(&subject);
                }
                Step::GivenBack(subject) => {
                    marshal.given_back(&subject);
                    let route = naive.away.remove(&subject);
                    for domain in route.iter().flat_map(|route| route.iter()) {
                        if let Some((_, bucket, ..)) = naive.domains.get_mut(domain) {
                            bucket.give_back();
                        }
                    }
                }
                Step::Absent(domain, absent) => {
                    marshal.absent(&domain, absent);
                    naive.domains.entry(domain.clone()).or_default();
                    naive.absent.insert(domain, absent);
                }
                Step::Bound(domain, bounds) => {
                    marshal.bound(&domain, bounds, now);
                    asked = now;
                    naive.look_at_the_clock(now);
                    let (known, bucket, breaker, _) = naive.domains.entry(domain).or_default();
                    *known = bounds;
                    bucket.set_rate(bounds.rate, now);
                    match (bounds.breaker, &mut *breaker) {
                        (Some(thresholds), Some(breaker)) => breaker.set_thresholds(thresholds),
                        (thresholds, breaker) => *breaker = thresholds.map(Breaker::new),
                    }
                }
                Step::Census(domain, affected, total) => {
                    marshal.census(&domain, affected, total, now);
                    asked = now;
                    naive.look_at_the_clock(now);
                    let (_, _, breaker, size) = naive.domains.entry(domain).or_default();
                    *size = total;
                    if let Some(breaker) = breaker {
                        breaker.observe(affected, total, now);
                    }
                }
                Step::Forget(domain) => {
                    marshal.forget(&domain, now);
                    asked = now;
                    naive.look_at_the_clock(now);
                    // What is taken anew is as new as what was never there.
                    naive.domains.remove(&domain);
                    naive.absent.remove(&domain);
                }
                Step::Freeze(stop) => {
                    marshal.stop(stop.then(|| freeze("stop")).into_iter().collect());
                    naive.frozen = stop;
                }
                Step::Pass(seconds) => now = now.plus_seconds(seconds),
                Step::Next => {
                    let is_asleep = now >= asked && marshal.wake().is_none_or(|at| at > now);
                    asked = now;
                    let next = marshal.next(now);
                    prop_assert!(!(is_asleep && next.is_some()), "it would have been slept through");
                    prop_assert_eq!(next, naive.next(now));
                }
            }
            prop_assert_eq!(marshal.away(), naive.away.len());
            prop_assert_eq!(marshal.waiting(), naive.waiting.len());
        }
        // All causes go: nobody may be forgotten.
        marshal.stop(Stops::default());
        for domain in [Domain::Everything, zone("a"), zone("b"), workload("w")] {
            marshal.bound(&domain, Bounds::default(), now);
        }
        for subject in 0..12 {
            marshal.ended(&subject);
        }
        let gone = all(&mut marshal, now.plus_seconds(1_000));
        prop_assert_eq!(gone.len(), naive.waiting.len());
        prop_assert_eq!(marshal.waiting(), 0);
    }
}

/// Bounds that stay as they are while the steps are taken, told by the numbers themselves.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// One in so many milliseconds, and so many after a rest.
    pace: Option<(u64, u32)>,
    /// So many of a hundred may be away.
    percent: u8,
    /// None goes while so many of a hundred are affected.
    breaks_at: u8,
}

impl Told {
    fn bounds(self) -> Bounds {
        let rate = self.pace.map_or(Rate::Unlimited, |(millis, burst)| Rate::Every {
            interval: Duration::from_millis(millis),
            burst,
        });
        let thresholds = Thresholds {
            open_percent: self.breaks_at,
            open_count: 1,
            close_percent: self.breaks_at,
            calm: Duration::from_secs(2),
        };
        Bounds { rate, in_flight: Allowance::Percent(self.percent), breaker: Some(thresholds) }
    }

    /// How many of so many may be away.
    fn allows(self, size: usize) -> usize {
        if self.percent == 0 { 0 } else { (size * usize::from(self.percent) / 100).max(1) }
    }
}

fn any_told() -> impl Strategy<Value = Told> {
    let pace = prop::option::of((select(vec![100_u64, 400, 1_000, 5_000]), 1_u32..4));
    (pace, select(vec![0_u8, 20, 50, 100]), 30_u8..=100).prop_map(|(pace, percent, breaks_at)| Told {
        pace,
        percent,
        breaks_at,
    })
}

#[derive(Clone, Debug)]
enum Move {
    Want(u32, i64, Route),
    Ended(u32),
    Census(Domain, usize, usize),
    Absent(Domain, usize),
    Pass(u64),
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => (0_u32..30, -2_i64..3, any_route()).prop_map(|(subject, due, route)| Move::Want(subject, due, route)),
        4 => (0_u32..30).prop_map(Move::Ended),
        2 => (any_domain(), 0_usize..6, 0_usize..12).prop_map(|(domain, affected, healthy)| {
            Move::Census(domain, affected, affected + healthy)
        }),
        1 => (any_domain(), 0_usize..3).prop_map(|(domain, absent)| Move::Absent(domain, absent)),
        4 => prop_oneof![0_u64..60, 0_u64..3_000].prop_map(Move::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// What goes is held against the numbers, and not against somebody who counts in the same way: never more away than may be,
    /// never one with a breaker's share affected, never one ahead of its moment, and in no time more than the rate.
    #[test]
    fn no_bound_is_ever_exceeded(
        told in prop::collection::vec(any_told(), 4),
        moves in prop::collection::vec(any_move(), 0..150),
    ) {
        let domains = [Domain::Everything, zone("a"), zone("b"), workload("w")];
        let told: BTreeMap<Domain, Told> = domains.into_iter().zip(told).collect();
        let mut marshal = Marshal::default();
        let mut counted: BTreeMap<Domain, (usize, usize)> = BTreeMap::new();
        let mut absent: BTreeMap<Domain, usize> = BTreeMap::new();
        let mut wanted: BTreeMap<u32, (Moment, Route)> = BTreeMap::new();
        let mut away: BTreeMap<u32, Route> = BTreeMap::new();
        let mut went: BTreeMap<Domain, Vec<Moment>> = BTreeMap::new();
        let mut now = START;
        for (domain, told) in &told {
            marshal.bound(domain, told.bounds(), now);
        }
        for step in moves {
            match step {
                Move::Want(subject, due, route) => {
                    let due = now.plus_seconds(due);
                    marshal.want(&subject, due, &route);
                    if !away.contains_key(&subject) {
                        wanted.insert(subject, (due, route));
                    }
                }
                Move::Ended(subject) => {
                    marshal.ended(&subject);
                    away.remove(&subject);
                }
                Move::Census(domain, affected, size) => {
                    marshal.census(&domain, affected, size, now);
                    counted.insert(domain, (affected, size));
                }
                Move::Absent(domain, so_many) => {
                    marshal.absent(&domain, so_many);
                    absent.insert(domain, so_many);
                }
                Move::Pass(millis) => now = now.plus(Duration::from_millis(millis)),
            }
            while let Some(subject) = marshal.next(now) {
                let (due, route) = wanted.remove(&subject).expect("only who is wanted goes");
                prop_assert!(due <= now);
                away.insert(subject, Arc::clone(&route));
                for domain in route.iter() {
                    let told = told[domain];
                    let Some((affected, size)) = counted.get(domain).copied() else {
                        return Err(TestCaseError::fail(format!("nobody has counted {domain}")));
                    };
                    let is_too_much =
                        affected > 0 && affected * 100 >= size * usize::from(told.breaks_at);
                    prop_assert!(!is_too_much, "{affected} of {size} in {domain} are affected");
                    let together = away.values().filter(|route| route.contains(domain)).count()
                        + absent.get(domain).copied().unwrap_or_default();
                    prop_assert!(together <= told.allows(size), "{together} of {size} in {domain} are away");
                    let times = went.entry(domain.clone()).or_default();
                    times.push(now);
                    let Some((interval, burst)) = told.pace else { continue };
                    // What a timer may be late by is made up for: 25 ms, or an interval.
                    let slack = interval.min(25) as f64;
                    for (number, begun) in times.iter().rev().enumerate() {
                        let window = begun.until(now).as_secs_f64() * 1e3 + slack;
                        let most = window / interval as f64 + f64::from(burst);
                        prop_assert!((number + 1) as f64 <= most + 1e-6, "{number} and one in {window} ms");
                    }
                }
            }
        }
    }

    /// Those whose every attempt fails come back behind those who were due before the failure: whoever can go goes, in the time
    /// that one attempt of everybody takes.
    #[test]
    fn nobody_starves_behind_those_who_fail_again_and_again(
        failing in 1_usize..20,
        healthy in 1_usize..20,
        burst in 1_u32..4,
        at_once in 1_u32..4,
        later in 0_i64..10,
    ) {
        let mut marshal = Marshal::default();
        let bounds = Bounds {
            rate: Rate::per_second(1.0, burst),
            in_flight: Allowance::Count(at_once),
            breaker: None,
        };
        marshal.bound(&Domain::Everything, bounds, START);
        let everything = route(&[Domain::Everything]);
        for subject in 0..failing {
            marshal.want(&subject, START, &everything);
        }
        for subject in failing..failing + healthy {
            marshal.want(&subject, second(later), &everything);
        }
        let mut left = healthy;
        for tick in 0..later + 2 * (failing + healthy) as i64 {
            let mut failed = Vec::new();
            while let Some(subject) = marshal.next(second(tick)) {
                marshal.ended(&subject);
                if subject < failing { failed.push(subject) } else { left -= 1 }
            }
            for subject in failed {
                marshal.want(&subject, second(tick), &everything);
            }
        }
        prop_assert_eq!(left, 0);
    }
}
