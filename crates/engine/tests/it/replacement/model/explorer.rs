//! The explorer: breadth-first over all that can happen next, with the rules that hold everywhere.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use berth_engine::Moment;
use berth_engine::replace::{Memory, Record, Verdict};

use super::world::{Broken, Event, Life, State, World, mishaps};

/// As long as the longest wait of the policies here, in seconds: what is older is old.
const OLD_SECONDS: i64 = 2;
/// The most steps that a world without mishaps needs to come to rest.
const REST_STEPS_MAX: usize = 300;

impl World {
    fn next(&self, state: &State) -> Result<Vec<(Event, State)>, Broken> {
        let mut next = Vec::new();
        self.controller(state, &mut next)?;
        self.kubernetes(state, &mut next);
        mishaps(state, &mut next);
        self.restless(state, &mut next);
        next.push((Event::Tick, State { now: state.now.plus_seconds(1), ..state.clone() }));
        Ok(next)
    }

    /// What holds in every state.
    fn check(&self, state: &State) -> Result<(), Broken> {
        let under_way: Vec<_> = state.memories.iter().filter_map(Memory::under_way).collect();
        let domains: BTreeSet<_> = under_way.iter().filter_map(|course| course.domain.as_ref()).collect();
        let in_flight = if self.by_domain { domains.len() } else { under_way.len() };
        if in_flight > self.max {
            return Err(format!("{in_flight} are being replaced, and {} may be", self.max));
        }
        let losing = under_way.iter().filter(|course| course.removes_volumes).count();
        if losing > 1 {
            return Err(format!("{losing} lose their volumes at once"));
        }
        let leaving =
            state.actors.iter().filter(|actor| actor.claim.is_some_and(|(_, leaving)| leaving)).count();
        let no_return = under_way.iter().filter(|course| course.point_of_no_return.is_some()).count();
        if leaving > 1 || no_return > 1 {
            return Err(format!("{leaving} claims go at once, {no_return} replacements have no way back"));
        }
        if !self.removes_volumes && leaving > 0 {
            return Err("a volume goes that should stay".into());
        }
        Ok(())
    }

    /// Once nothing goes wrong any more, everybody who has to be is replaced, and the world comes to rest.
    fn comes_to_rest(&self, state: &State, known: &mut HashSet<u64>) -> Result<(), Broken> {
        let mut state = mended(state);
        let mut way = Vec::new();
        for _ in 0..REST_STEPS_MAX {
            let key = key(&state);
            if known.contains(&key) {
                known.extend(way);
                return Ok(());
            }
            way.push(key);
            let mut next = Vec::new();
            self.controller(&state, &mut next)?;
            next.retain(|(event, _)| *event != Event::Crash);
            if next.is_empty() {
                self.kubernetes(&state, &mut next);
            }
            if let Some((_, after)) = next.into_iter().next() {
                state = after;
                continue;
            }
            let plan = self.plan(&state, &state.memories);
            if plan.deadline == Moment::NEVER {
                let rests = plan.tally.in_flight == 0 && plan.tally.replacing == 0;
                known.extend(way);
                return if rests { Ok(()) } else { Err(format!("stuck with {:?}", plan.tally)) };
            }
            state.now = plan.deadline.max(state.now.plus_seconds(1));
        }
        Err(format!("no rest after {REST_STEPS_MAX} steps"))
    }

    /// Explores; how many states there are, and whether these are all. Of more than so many, those nearest to the beginning are
    /// looked at, and from each of them the way to rest.
    pub(super) fn explore(&self, most: usize) -> Result<(usize, bool), Broken> {
        let mut found = vec![(self.start(), 0, Event::Begin)];
        let mut seen = HashSet::from([key(&found[0].0)]);
        let mut resting = HashSet::new();
        let mut queue = VecDeque::from([0]);
        while let Some(index) = queue.pop_front() {
            let state = found[index].0.clone();
            let checked = self.check(&state).and_then(|()| self.comes_to_rest(&state, &mut resting));
            let next = match checked.and_then(|()| self.next(&state)) {
                Ok(next) => next,
                Err(broken) => return Err(format!("{broken}\n{}", way_to(&found, index))),
            };
            if found.len() >= most {
                continue;
            }
            for (event, after) in next {
                if seen.insert(key(&after)) {
                    queue.push_back(found.len());
                    found.push((after, index, event));
                }
            }
        }
        Ok((found.len(), found.len() < most))
    }
}

/// The state when all mishaps are over.
fn mended(state: &State) -> State {
    let mut state = State {
        gate: Verdict::Pass,
        is_target_known: true,
        is_suspended: false,
        mishaps: 0,
        ..state.clone()
    };
    state.unreadable.fill(false);
    for actor in &mut state.actors {
        if actor.life == Life::Failing {
            actor.life = Life::Ready;
        }
    }
    state
}

/// The events from the beginning to a state.
fn way_to(found: &[(State, usize, Event)], mut index: usize) -> String {
    let mut way = Vec::new();
    while index > 0 {
        way.push(format!("  {} {}", found[index].0.now, found[index].2));
        index = found[index].1;
    }
    way.reverse();
    way.join("\n")
}

/// What tells states apart: all of it, but how long ago only as far as that matters.
fn key(state: &State) -> u64 {
    let aged = |memory: &Memory| {
        let mut memory = memory.clone();
        for sighting in &mut memory.sightings {
            let age = state.now.seconds_since(sighting.since).min(OLD_SECONDS);
            sighting.since = Moment::from_second(age);
            sighting.replacing = sighting.replacing.map(|_| Moment::PAST);
        }
        // When a replacement came to where it is, and how often there was one, decides nothing here: no gate and no successor
        // is too late, and nobody rests.
        if let Some(course) = &mut memory.course {
            (course.since, course.started) = (Moment::PAST, Moment::PAST);
            for moment in [&mut course.point_of_no_return, &mut course.removed, &mut course.ended] {
                *moment = moment.map(|_| Moment::PAST);
            }
            course.shut.clear();
        }
        memory.record = Record::default();
        memory
    };
    let memories: Vec<Memory> = state.memories.iter().map(aged).collect();
    let hand = state
        .hand
        .as_ref()
        .map(|hand| (hand.member, aged(&hand.step.memory), hand.step.acts.clone(), hand.is_written));
    let said = (state.gate, state.is_target_known, state.keeps, state.max, state.is_suspended);
    let world = (&state.actors, &state.taints, &state.unreadable, said, state.mishaps);
    BuildHasherDefault::<DefaultHasher>::default().hash_one((world, memories, hand))
}
