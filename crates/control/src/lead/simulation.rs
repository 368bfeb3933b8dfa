//! Electors against one another, in virtual time: whatever happens to clocks, processes and messages, no two hold.
//!
//! True time exists only here. Each node reads clocks of its own, which start anywhere, run a little fast or slow, stand
//! still while the machine sleeps (the monotonic one) or are set (the wall clock). Messages are lost, or arrive long after
//! their sender gave up on them. A node that is paused finds its answers and its timers late, all at once.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::clock::Reading;
use super::config::Timing;
use super::elector::{Action, Answer, Elector};
use super::record::{Record, Seen};

/// How much faster or slower than true time a clock runs at most.
const DRIFT: f64 = 0.1;

/// What befalls one node.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The process stands still; both clocks go on.
    Pause(Duration),
    /// The machine sleeps; its monotonic clock stands still with it.
    Sleep(Duration),
    /// The wall clock is set ahead or back, by seconds.
    SetWall(i64),
    /// Nothing reaches the server, nor comes back.
    Cut(Duration),
    /// The process is gone.
    Kill,
    /// The process is asked to stop.
    Resign,
}

#[derive(Debug, Clone)]
struct Plan {
    nodes: Vec<(u64, f64, i64)>,
    faults: Vec<(Duration, usize, Fault)>,
    seed: u64,
    /// Out of a hundred messages.
    lost: u64,
    /// Out of a hundred messages, these take up to [`Plan::late`].
    slow: u64,
    late: Duration,
    watches: bool,
}

#[derive(Debug)]
enum Event {
    Wake(usize),
    Arrive { node: usize, request: u64, action: Action },
    Answer { node: usize, request: u64, answer: Answer },
    GiveUp { node: usize, request: u64 },
    Nudge(usize),
    Befall(usize, Fault),
}

#[derive(Debug)]
struct Node {
    elector: Elector,
    start: Duration,
    rate: f64,
    skew: i64,
    /// True time that its monotonic clock did not count.
    slept: Duration,
    still_until: Duration,
    cut_until: Duration,
    is_dead: bool,
    request: Option<u64>,
    wakes_at: Option<Duration>,
}

impl Node {
    fn reads(&self, time: Duration) -> Reading {
        let wall = SignedDuration::try_from(time).unwrap() + SignedDuration::from_secs(self.skew);
        Reading {
            ticks: self.start + time.saturating_sub(self.slept).mul_f64(self.rate),
            wall: Timestamp::from_second(1_800_000_000).unwrap() + wall,
        }
    }

    /// The true time at which its monotonic clock shows `ticks`, if it does not sleep.
    fn when(&self, ticks: Duration) -> Duration {
        ticks.saturating_sub(self.start).div_f64(self.rate) + self.slept + Duration::from_nanos(10)
    }
}

struct Simulation {
    timing: Timing,
    time: Duration,
    nodes: Vec<Node>,
    lease: Option<Seen>,
    versions: u64,
    events: BTreeMap<(Duration, u64), Event>,
    sequence: u64,
    plan: Plan,
    random: u64,
    /// Who held, and from when on.
    history: Vec<(Duration, usize)>,
}

impl Simulation {
    fn new(plan: Plan) -> Self {
        let timing = Timing::default();
        let node = |(number, (start, rate, skew)): (usize, &(u64, f64, i64))| Node {
            elector: Elector::new(format!("node-{number}"), timing),
            start: Duration::from_secs(*start),
            rate: *rate,
            skew: *skew,
            slept: Duration::ZERO,
            still_until: Duration::ZERO,
            cut_until: Duration::ZERO,
            is_dead: false,
            request: None,
            wakes_at: None,
        };
        let mut simulation = Self {
            timing,
            time: Duration::ZERO,
            nodes: plan.nodes.iter().enumerate().map(node).collect(),
            lease: None,
            versions: 0,
            events: BTreeMap::new(),
            sequence: 0,
            random: plan.seed | 1,
            plan,
            history: Vec::new(),
        };
        for node in 0..simulation.nodes.len() {
            let after = Duration::from_millis(simulation.roll(3000));
            simulation.wake(node, after);
        }
        for (at, node, fault) in simulation.plan.faults.clone() {
            simulation.at(at, Event::Befall(node % simulation.nodes.len(), fault));
        }
        simulation
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.sequence += 1;
        self.events.insert((time.max(self.time), self.sequence), event);
    }

    fn wake(&mut self, node: usize, time: Duration) {
        self.nodes[node].wakes_at = Some(time);
        self.at(time, Event::Wake(node));
    }

    /// When a message arrives that is sent now; none if it does not.
    fn flight(&mut self, node: usize) -> Option<Duration> {
        if self.roll(100) < self.plan.lost || self.nodes[node].cut_until > self.time {
            return None;
        }
        let slow = self.roll(100) < self.plan.slow;
        let most = if slow { self.plan.late } else { Duration::from_millis(30) };
        Some(self.time + Duration::from_millis(1 + self.roll(most.as_millis() as u64)))
    }

    /// Who may write, by their own clocks.
    fn holders(&self) -> Vec<usize> {
        let lasts = |node: &Node| {
            node.elector.hold().is_some_and(|hold| hold.lasts(self.timing, node.reads(self.time)))
        };
        (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_dead && lasts(&self.nodes[*node])).collect()
    }

    /// Runs up to `end`, or until `stop` says so; fails as soon as two hold.
    fn run(&mut self, end: Duration, stop: impl Fn(&Self) -> bool) -> Result<(), TestCaseError> {
        while let Some((&(time, _), _)) = self.events.first_key_value()
            && time <= end
        {
            let (_, event) = self.events.pop_first().expect("it was just seen");
            self.time = time;
            self.handle(event);
            let holders = self.holders();
            prop_assert!(holders.len() < 2, "{holders:?} hold at {time:?}; {:?}", self.history);
            if let [holder] = holders[..]
                && self.history.last().is_none_or(|(_, last)| *last != holder)
            {
                self.history.push((time, holder));
            }
            if stop(self) {
                return Ok(());
            }
        }
        self.time = end;
        Ok(())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive { node, request, action } => self.serve(node, request, action),
            Event::Befall(node, fault) => self.befall(node, fault),
            Event::Wake(node)
            | Event::Nudge(node)
            | Event::Answer { node, .. }
            | Event::GiveUp { node, .. }
                if self.nodes[node].is_dead => {}
            Event::Wake(node)
            | Event::Nudge(node)
            | Event::Answer { node, .. }
            | Event::GiveUp { node, .. }
                if self.nodes[node].still_until > self.time =>
            {
                let resumed = self.nodes[node].still_until;
                self.at(resumed, event);
            }
            Event::Wake(node) => {
                if self.nodes[node].wakes_at.is_some_and(|at| at <= self.time)
                    && self.nodes[node].request.is_none()
                {
                    self.step(node);
                }
            }
            Event::Nudge(node) => {
                let now = self.nodes[node].reads(self.time);
                self.nodes[node].elector.nudge(now);
                if self.nodes[node].request.is_none() {
                    self.step(node);
                }
            }
            Event::Answer { node, request, answer } => self.answered(node, request, answer),
            Event::GiveUp { node, request } => self.answered(node, request, Answer::Unknown),
        }
    }

    fn answered(&mut self, node: usize, request: u64, answer: Answer) {
        let jitter = self.roll(1000) as f64 / 1000.0;
        let time = self.time;
        let it = &mut self.nodes[node];
        if it.request == Some(request) {
            it.request = None;
            let now = it.reads(time);
            it.elector.answer(answer, now, jitter);
            self.step(node);
        }
    }

    fn step(&mut self, node: usize) {
        let time = self.time;
        let it = &mut self.nodes[node];
        it.wakes_at = None;
        let now = it.reads(time);
        match it.elector.next(now) {
            Action::Done => {}
            Action::Wait(until) => {
                let until = it.when(until);
                self.wake(node, until);
            }
            action => {
                let usual = self.timing.request_timeout();
                let limit = it.elector.hold().map_or(usual, |hold| {
                    usual.min((hold.since.ticks + self.timing.renew_deadline()).saturating_sub(now.ticks))
                });
                let gives_up = it.when(now.ticks + limit);
                self.sequence += 1;
                let request = self.sequence;
                self.nodes[node].request = Some(request);
                self.at(gives_up, Event::GiveUp { node, request });
                if let Some(arrives) = self.flight(node) {
                    self.at(arrives, Event::Arrive { node, request, action });
                }
            }
        }
    }

    fn serve(&mut self, node: usize, request: u64, action: Action) {
        let answer = match (action, &self.lease) {
            (Action::Get | Action::Update { .. }, None) => Answer::Absent,
            (Action::Get, Some(seen)) => Answer::Found(seen.clone()),
            (Action::Create(_), Some(_)) => Answer::Conflict,
            (Action::Update { version, .. }, Some(seen)) if version != seen.version => Answer::Conflict,
            (Action::Create(record), None) | (Action::Update { record, .. }, Some(_)) => self.store(record),
            (Action::Wait(_) | Action::Done, _) => unreachable!("these are not requests"),
        };
        if let Some(arrives) = self.flight(node) {
            self.at(arrives, Event::Answer { node, request, answer });
        }
    }

    fn store(&mut self, record: Record) -> Answer {
        self.versions += 1;
        let seen = Seen { record, version: self.versions.to_string() };
        self.lease = Some(seen.clone());
        for node in 0..self.nodes.len() {
            if self.plan.watches
                && let Some(arrives) = self.flight(node)
            {
                self.at(arrives, Event::Nudge(node));
            }
        }
        Answer::Found(seen)
    }

    fn befall(&mut self, node: usize, fault: Fault) {
        let time = self.time;
        let it = &mut self.nodes[node];
        match fault {
            Fault::Pause(length) => it.still_until = it.still_until.max(time + length),
            Fault::Sleep(length) if it.still_until <= time => {
                // Read by nobody before it wakes, so the clock may lose the time at once.
                it.still_until = time + length;
                it.slept += length;
                let behind = it.still_until;
                self.at(behind, Event::Nudge(node));
            }
            Fault::Sleep(_) => {}
            Fault::SetWall(by) => it.skew += by,
            Fault::Cut(length) => it.cut_until = it.cut_until.max(time + length),
            Fault::Kill => it.is_dead = true,
            Fault::Resign => {
                it.elector.resign();
                if it.request.is_none() && it.still_until <= time {
                    self.step(node);
                }
            }
        }
    }
}

fn seconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    (range.start * 1000..range.end * 1000).prop_map(Duration::from_millis)
}

/// A fault that passes; clocks are not set back on machines that sleep, since then no clock tells how long it slept.
fn passing(sleepy: bool) -> BoxedStrategy<Fault> {
    let usual = prop_oneof![
        3 => seconds(0..40).prop_map(Fault::Pause),
        3 => seconds(0..40).prop_map(Fault::Cut),
    ];
    if sleepy {
        prop_oneof![usual, seconds(0..40).prop_map(Fault::Sleep), (0_i64..100).prop_map(Fault::SetWall)]
            .boxed()
    } else {
        prop_oneof![usual, (-4000_i64..4000).prop_map(Fault::SetWall)].boxed()
    }
}

fn plan(lost: u64, slow: u64) -> impl Strategy<Value = Plan> {
    let node = (0_u64..100_000, 1.0 - DRIFT..1.0 + DRIFT, -100_000_i64..100_000);
    let faults = any::<bool>()
        .prop_flat_map(|sleepy| prop::collection::vec((seconds(0..200), 0_usize..3, passing(sleepy)), 0..12));
    (
        prop::collection::vec(node, 2..4),
        faults,
        any::<u64>(),
        0..=lost,
        0..=slow,
        seconds(1..25),
        any::<bool>(),
    )
        .prop_map(|(nodes, faults, seed, lost, slow, late, watches)| Plan {
            nodes,
            faults,
            seed,
            lost,
            slow,
            late,
            watches,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_two_hold_whatever_befalls_them(plan in plan(30, 30), kill in prop::option::of(seconds(0..200)), resign in prop::option::of(seconds(0..200))) {
        let mut plan = plan;
        plan.faults.extend(kill.map(|at| (at, 0, Fault::Kill)));
        plan.faults.extend(resign.map(|at| (at, 1, Fault::Resign)));
        Simulation::new(plan).run(Duration::from_secs(260), |_| false)?;
    }

    #[test]
    fn when_the_trouble_is_over_one_holds(plan in plan(20, 20)) {
        let mut simulation = Simulation::new(plan);
        simulation.run(Duration::from_secs(200), |_| false)?;
        let healed = simulation.nodes.iter().map(|node| node.still_until.max(node.cut_until)).max().unwrap().max(simulation.time);
        simulation.plan.lost = 0;
        simulation.plan.slow = 0;
        // The lease may have been renewed just then; and a request that was sent before may still be waited for.
        let timing = simulation.timing;
        let most = timing.lease_duration() + 2 * timing.retry_period().mul_f64(2.2) + timing.request_timeout() + simulation.plan.late;
        simulation.run(healed, |_| false)?;
        simulation.run(healed + most.mul_f64(1.0 / (1.0 - DRIFT)) + Duration::from_secs(1), |simulation| !simulation.holders().is_empty())?;
        prop_assert_eq!(simulation.holders().len(), 1, "{:?}", simulation.nodes);
    }

    #[test]
    fn a_dead_leader_is_replaced_within_the_lease_duration_and_a_retry(seed in any::<u64>(), at in seconds(20..60), skew in -1000_i64..1000, watches in any::<bool>()) {
        let nodes = vec![(7, 1.0, skew), (400, 1.0, -skew), (9, 1.0, 0)];
        let mut simulation = Simulation::new(Plan { nodes, faults: Vec::new(), seed, lost: 0, slow: 0, late: Duration::from_secs(1), watches });
        simulation.run(at, |_| false)?;
        let leader = simulation.holders()[0];
        simulation.nodes[leader].is_dead = true;
        simulation.run(at + Duration::from_mins(1), |simulation| !simulation.holders().is_empty())?;
        let timing = simulation.timing;
        // Without a watch, the last renewal is seen with the next look.
        let look = if watches { Duration::ZERO } else { timing.retry_period().mul_f64(2.2) };
        let took = simulation.time.saturating_sub(at);
        prop_assert!(took <= timing.lease_duration() + look + Duration::from_millis(200), "{took:?}");
        prop_assert!(took + timing.retry_period() + Duration::from_millis(200) >= timing.lease_duration(), "{took:?}");
        prop_assert_eq!(simulation.lease.unwrap().record.transitions, 1);
    }

    #[test]
    fn a_leader_that_resigns_is_replaced_at_once_by_one_that_watches(seed in any::<u64>(), at in seconds(20..60)) {
        let nodes = vec![(7, 1.0, 0), (400, 1.0, 50)];
        let mut simulation = Simulation::new(Plan { nodes, faults: Vec::new(), seed, lost: 0, slow: 0, late: Duration::from_secs(1), watches: true });
        simulation.run(at, |_| false)?;
        let leader = simulation.holders()[0];
        simulation.befall(leader, Fault::Resign);
        prop_assert!(simulation.holders().is_empty());
        simulation.run(at + Duration::from_mins(1), |simulation| !simulation.holders().is_empty())?;
        let took = simulation.time.saturating_sub(at);
        prop_assert!(took <= Duration::from_millis(500), "{took:?}");
        prop_assert_eq!(simulation.holders(), vec![1 - leader]);
    }
}
