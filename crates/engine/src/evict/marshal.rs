//! Who may go now: those whose moment has come, the longest due first, within every bound.
//!
//! A subject that one of its domains holds waits with that domain and costs nothing until something there changes, so a
//! stopped zone with ten thousand waiting does not slow the others. What comes out is what a look at everybody would give:
//! the one that is due the longest of all whom nothing holds.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::breaker::{Breaker, BreakerSight};
use super::domain::{Bounds, Domain, Route};
use super::hold::Hold;
use super::rate::{Bucket, Rate};
use super::stop::Stops;
use crate::moment::Moment;

/// Lets subjects go. `S` is their identity; where names are used again it must not be the name.
#[derive(Debug)]
pub struct Marshal<S> {
    stops: Stops,
    domains: HashMap<Domain, Watched<S>>,
    /// Everybody who waits.
    waiting: HashMap<S, Waiting>,
    /// Those who wait, by what they have in common.
    queues: HashMap<Route, Queue<S>>,
    /// The queues nobody is known to hold, by the first in each.
    open: BTreeMap<Turn<S>, Route>,
    /// Domains in which something may have come free.
    stirred: BTreeSet<Domain>,
    /// When time alone frees something.
    timers: BTreeSet<(Moment, Domain)>,
    /// Those who go, and have not ended.
    away: HashMap<S, Route>,
    /// Domains whose breaker has opened, closed, come or gone since somebody asked.
    turned: BTreeSet<Domain>,
    /// The moment it knew last.
    clock: Moment,
}

/// Whose turn it is: the longest due, and among equals by identity.
type Turn<S> = (Moment, S);

#[derive(Debug)]
struct Waiting {
    due: Moment,
    route: Route,
}

#[derive(Debug)]
struct Queue<S> {
    turns: BTreeSet<Turn<S>>,
    /// The domain that holds it; `None` while it stands open.
    parked: Option<Domain>,
}

impl<S> Default for Queue<S> {
    fn default() -> Self {
        Self { turns: BTreeSet::new(), parked: None }
    }
}

/// A domain and what is known of it.
#[derive(Debug)]
struct Watched<S> {
    bounds: Bounds,
    bucket: Bucket,
    breaker: Option<Breaker>,
    size: usize,
    /// Those who were let go and have not ended.
    away: usize,
    /// Those who are away besides, by whosever hand.
    absent: usize,
    /// Queues it holds, by the first in each.
    parked: BTreeMap<Turn<S>, Route>,
    timer: Option<Moment>,
}

impl<S> Default for Watched<S> {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            bucket: Bucket::default(),
            breaker: None,
            size: 0,
            away: 0,
            absent: 0,
            parked: BTreeMap::new(),
            timer: None,
        }
    }
}

impl<S> Watched<S> {
    /// Whether too much of it is affected; `None` where nobody looks.
    fn is_broken(&self) -> Option<bool> {
        self.breaker.as_ref().map(|breaker| breaker.affected().is_some())
    }

    /// That its breaker is open.
    fn breakage(&self, domain: &Domain) -> Option<Hold> {
        let breaker = self.breaker.as_ref()?;
        let (affected, total) = breaker.affected()?;
        let until = breaker.closes_at();
        Some(Hold::BreakerOpen { domain: domain.clone(), affected, total, until })
    }

    /// What holds its members now.
    fn hold(&self, domain: &Domain, now: Moment) -> Option<Hold> {
        if self.breaker.as_ref().is_some_and(Breaker::is_uncounted) {
            return Some(Hold::NotCounted { domain: domain.clone() });
        }
        if let Some(breakage) = self.breakage(domain) {
            return Some(breakage);
        }
        let away = self.away.saturating_add(self.absent);
        if away >= self.bounds.in_flight.of(self.size) {
            return Some(Hold::Full { domain: domain.clone(), away, allowed: self.bounds.in_flight });
        }
        let until = self.bucket.ready_at(now);
        (until > now).then(|| Hold::Paced { domain: domain.clone(), until })
    }
}

impl<S> Default for Marshal<S> {
    fn default() -> Self {
        Self {
            stops: Stops::default(),
            domains: HashMap::new(),
            waiting: HashMap::new(),
            queues: HashMap::new(),
            open: BTreeMap::new(),
            stirred: BTreeSet::new(),
            timers: BTreeSet::new(),
            away: HashMap::new(),
            turned: BTreeSet::new(),
            clock: Moment::PAST,
        }
    }
}

impl<S: Clone + Ord + Hash> Marshal<S> {
    /// Nobody goes while there is one of these. Who has gone has gone.
    pub fn stop(&mut self, stops: Stops) {
        self.stops = stops;
    }

    /// The stops that are in force.
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// Whether somebody who was let go must not go on any more: somebody has said stop since, a breaker of one of its domains has
    /// opened, or one of them is stopped. What a rate or a budget allowed stays allowed: it was counted when it was let go.
    pub fn is_barred(&self, subject: &S) -> bool {
        let bars = |domain: &Domain| {
            self.domains.get(domain).is_some_and(|watched| {
                watched.breaker.as_ref().is_some_and(Breaker::is_open) || watched.bounds.rate == Rate::Stopped
            })
        };
        !self.stops.is_empty() || self.away.get(subject).is_some_and(|route| route.iter().any(bars))
    }

    /// Sets what a domain allows from now on.
    pub fn bound(&mut self, domain: &Domain, bounds: Bounds, now: Moment) {
        self.look_at_the_clock(now);
        let watched = self.domains.entry(domain.clone()).or_default();
        let was_broken = watched.is_broken();
        watched.bounds = bounds;
        watched.bucket.set_rate(bounds.rate, now);
        match (bounds.breaker, &mut watched.breaker) {
            (Some(thresholds), Some(breaker)) => breaker.set_thresholds(thresholds),
            (thresholds, breaker) => *breaker = thresholds.map(Breaker::new),
        }
        if watched.is_broken() != was_broken {
            self.turned.insert(domain.clone());
        }
        self.stir(domain);
    }

    /// Tells how many members a domain has, and how many of them are affected now.
    pub fn census(&mut self, domain: &Domain, affected: usize, size: usize, now: Moment) {
        self.look_at_the_clock(now);
        let watched = self.domains.entry(domain.clone()).or_default();
        watched.size = size;
        let was_broken = watched.is_broken();
        if let Some(breaker) = &mut watched.breaker {
            breaker.observe(affected, size, now);
        }
        if watched.is_broken() != was_broken {
            self.turned.insert(domain.clone());
        }
        self.stir(domain);
    }

    /// Tells how many members of a domain are away whom nobody let go here, or who have ended and are not back.
    pub fn absent(&mut self, domain: &Domain, absent: usize) {
        self.domains.entry(domain.clone()).or_default().absent = absent;
        self.stir(domain);
        self.tidy(domain);
    }

    /// Forgets a domain that is no more. One that still has members waiting or away stays, without bounds.
    pub fn forget(&mut self, domain: &Domain, now: Moment) {
        self.bound(domain, Bounds::default(), now);
        if let Some(watched) = self.domains.get_mut(domain) {
            watched.size = 0;
            watched.absent = 0;
        }
        self.tidy(domain);
    }

    /// `subject` must leave from `due` on; whatever was said of it before no longer counts. Who is away already stays so.
    pub fn want(&mut self, subject: &S, due: Moment, route: &Route) {
        if self.away.contains_key(subject) {
            return;
        }
        let before = match self.waiting.entry(subject.clone()) {
            Entry::Occupied(known) if known.get().due == due && is_same(&known.get().route, route) => return,
            Entry::Occupied(mut known) => Some(known.insert(Waiting { due, route: Arc::clone(route) })),
            Entry::Vacant(unknown) => {
                unknown.insert(Waiting { due, route: Arc::clone(route) });
                None
            }
        };
        if let Some(before) = before {
            self.dequeue(&before.route, &(before.due, subject.clone()));
        }
        self.enqueue(route, (due, subject.clone()));
    }

    /// `subject` need not leave any more. Says whether it was waiting; who is away already cannot be called back.
    pub fn withdraw(&mut self, subject: &S) -> bool {
        let Some((subject, Waiting { due, route })) = self.waiting.remove_entry(subject) else {
            return false;
        };
        self.dequeue(&route, &(due, subject));
        true
    }

    /// The next who may go now. It counts as away until [`Marshal::ended`].
    pub fn next(&mut self, now: Moment) -> Option<S> {
        self.look_at_the_clock(now);
        if !self.stops.is_empty() {
            return None;
        }
        loop {
            self.let_one_of_each_try(now);
            let (turn, route) = self.open.first_key_value()?;
            if turn.0 > now {
                return None;
            }
            let (turn, route) = (turn.clone(), Arc::clone(route));
            if let Some((domain, hold)) = self.holder(&route, now) {
                self.park(turn, &route, domain, &hold, now);
            } else {
                self.go(&turn.1, &route, now);
                return Some(turn.1);
            }
        }
    }

    /// `subject` has left, or will not: its places are free again. What must be tried again is wanted again.
    pub fn ended(&mut self, subject: &S) {
        // To take somebody out of an empty map costs a hash, and whoever is judged is called back first.
        if self.away.is_empty() {
            return;
        }
        let Some(route) = self.away.remove(subject) else { return };
        for domain in route.iter() {
            if let Some(watched) = self.domains.get_mut(domain) {
                watched.away -= 1;
            }
            self.stir(domain);
            self.tidy(domain);
        }
    }

    /// `subject` was let go and has not gone, for a reason of its own: its places are free again, and no rate is used up by it.
    pub fn given_back(&mut self, subject: &S) {
        let Some(route) = self.away.get(subject).cloned() else { return };
        for domain in route.iter() {
            if let Some(watched) = self.domains.get_mut(domain) {
                watched.bucket.give_back();
            }
        }
        self.ended(subject);
    }

    /// `subject` was let go on trial only: its places are free again, and what it has used up is what its policy says, for that is
    /// what is tried. Those who go in earnest lose nothing by it.
    pub fn rehearsed(&mut self, subject: &S) {
        let Some(route) = self.away.get(subject).cloned() else { return };
        for domain in route.iter().filter(|domain| matches!(domain, Domain::Everything | Domain::Zone(_))) {
            if let Some(watched) = self.domains.get_mut(domain) {
                watched.bucket.give_back();
            }
        }
        self.ended(subject);
    }

    /// When [`Marshal::next`] may have somebody, if nothing but time passes.
    pub fn wake(&self) -> Option<Moment> {
        if !self.stops.is_empty() {
            return None;
        }
        if !self.stirred.is_empty() {
            return Some(Moment::PAST);
        }
        let due = self.open.first_key_value().map(|((due, _), _)| *due);
        let timer = self.timers.first().map(|(at, _)| *at);
        due.into_iter().chain(timer).min().filter(|at| *at < Moment::NEVER)
    }

    /// Why `subject` has not gone; `None` if it does not wait or nothing holds it.
    pub fn hold(&self, subject: &S, now: Moment) -> Option<Hold> {
        let Waiting { due, route } = self.waiting.get(subject)?;
        if let Some(freeze) = self.stops.first() {
            return Some(Hold::Frozen(freeze.clone()));
        }
        if *due > now {
            return Some(Hold::NotDue { at: *due });
        }
        if let Some((_, hold)) = self.holder(route, now) {
            return Some(hold);
        }
        let others = self.queues.get(route)?.turns.range(..(*due, subject.clone())).count();
        (others > 0).then_some(Hold::Behind { others })
    }

    /// What holds `subject` besides time and those before it: a stop, or one of its domains. `None` if nothing does, or it does not
    /// wait, or its moment has not come.
    pub fn bar(&self, subject: &S, now: Moment) -> Option<Hold> {
        let Waiting { due, route } = self.waiting.get(subject)?;
        if *due > now { None } else { self.bar_of(route, now) }
    }

    /// Those whose moment has come and who are held, by what they have in common: what holds them, and how many they are. A look
    /// at everybody who is due.
    pub fn barred(&self, now: Moment) -> impl Iterator<Item = (&Route, Hold, usize)> {
        self.queues.iter().filter_map(move |(route, queue)| {
            let hold = self.bar_of(route, now)?;
            let due = queue.turns.iter().take_while(|(due, _)| *due <= now).count();
            (due > 0).then_some((route, hold, due))
        })
    }

    /// How many whose moment has come are held, by what holds them in one word. A look at everybody who is due.
    pub fn held(&self, now: Moment) -> BTreeMap<&'static str, usize> {
        let mut held = BTreeMap::new();
        for (_, hold, due) in self.barred(now) {
            if let Some(word) = hold.word() {
                *held.entry(word).or_default() += due;
            }
        }
        held
    }

    /// The domains whose breaker has opened, closed, come or gone since the last time, and how each stands now.
    pub fn take_turned(&mut self) -> Vec<(Domain, BreakerSight)> {
        let turned = std::mem::take(&mut self.turned);
        let sight = |domain: Domain| {
            let watched = self.domains.get(&domain).filter(|watched| watched.breaker.is_some());
            let sight = match watched.map(|watched| watched.breakage(&domain)) {
                None => BreakerSight::Gone,
                Some(None) => BreakerSight::Closed,
                Some(Some(breakage)) => BreakerSight::Open(breakage),
            };
            (domain, sight)
        };
        turned.into_iter().map(sight).collect()
    }

    /// How many wait, due or not.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many have been let go and have not ended.
    pub fn away(&self) -> usize {
        self.away.len()
    }

    /// How many of a domain have been let go and have not ended.
    pub fn away_of(&self, domain: &Domain) -> usize {
        self.domains.get(domain).map_or(0, |watched| watched.away)
    }

    /// What holds a route: a stop, or the first of its domains that does.
    fn bar_of(&self, route: &Route, now: Moment) -> Option<Hold> {
        match self.stops.first() {
            Some(freeze) => Some(Hold::Frozen(freeze.clone())),
            None => self.holder(route, now).map(|(_, hold)| hold),
        }
    }

    /// The first of its domains that holds a route, and how.
    fn holder(&self, route: &Route, now: Moment) -> Option<(Domain, Hold)> {
        route.iter().find_map(|domain| {
            let hold = self.domains.get(domain)?.hold(domain, now)?;
            Some((domain.clone(), hold))
        })
    }

    fn go(&mut self, subject: &S, route: &Route, now: Moment) {
        self.withdraw(subject);
        for domain in route.iter() {
            let watched = self.domains.entry(domain.clone()).or_default();
            watched.away += 1;
            watched.bucket.take(now);
        }
        self.away.insert(subject.clone(), Arc::clone(route));
    }

    /// Something in a domain may have come free.
    fn stir(&mut self, domain: &Domain) {
        let is_worth_a_look = |watched: &Watched<S>| {
            // A breaker that will close by itself needs its timer, also while nobody waits.
            !watched.parked.is_empty() || watched.breaker.as_ref().and_then(Breaker::closes_at).is_some()
        };
        if self.domains.get(domain).is_some_and(is_worth_a_look) {
            self.stirred.insert(domain.clone());
        }
    }

    /// Drops a domain of which nothing is known: no bounds, no size, nobody waiting or away.
    fn tidy(&mut self, domain: &Domain) {
        let is_idle = self.domains.get(domain).is_some_and(|watched| {
            watched.bounds == Bounds::default()
                && (watched.size, watched.away, watched.absent) == (0, 0, 0)
                && watched.parked.is_empty()
        });
        if is_idle && let Some(watched) = self.domains.remove(domain) {
            self.stirred.remove(domain);
            if let Some(at) = watched.timer {
                self.timers.remove(&(at, domain.clone()));
            }
        }
    }

    /// Domains whose time has come are stirred. After the clock was set back all are: their timers were set by another one,
    /// and what they wait for is never further off than their own bounds say.
    fn look_at_the_clock(&mut self, now: Moment) {
        let is_set_back = now < self.clock;
        self.clock = now;
        while let Some((at, domain)) = self.timers.first().cloned()
            && (at <= now || is_set_back)
        {
            self.timers.pop_first();
            if let Some(watched) = self.domains.get_mut(&domain) {
                watched.timer = None;
            }
            self.stir(&domain);
        }
        if is_set_back {
            self.stirred.extend(self.domains.keys().cloned());
            self.domains.values_mut().for_each(|watched| watched.bucket.set_back(now));
        }
        for domain in &self.stirred {
            let Some(watched) = self.domains.get_mut(domain) else { continue };
            let was_broken = watched.is_broken();
            if let Some(breaker) = &mut watched.breaker {
                breaker.advance(now);
            }
            if watched.is_broken() != was_broken {
                self.turned.insert(domain.clone());
            }
        }
    }

    /// The first queue of every stirred domain that holds nobody any more stands open again; its others follow one by one,
    /// because each who goes may close the door behind it.
    fn let_one_of_each_try(&mut self, now: Moment) {
        let mut calm = Vec::new();
        for domain in &self.stirred {
            let Some(watched) = self.domains.get_mut(domain) else {
                calm.push(domain.clone());
                continue;
            };
            if let Some(hold) = watched.hold(domain, now) {
                set_timer(&mut self.timers, domain, watched, &hold, now);
                calm.push(domain.clone());
                continue;
            }
            // Whoever it let out before and stands open is tried first.
            match watched.parked.pop_first() {
                Some((turn, route)) => {
                    let queue = self.queues.get_mut(&route).expect("a queue that is parked exists");
                    queue.parked = None;
                    self.open.insert(turn, route);
                }
                None => calm.push(domain.clone()),
            }
        }
        for domain in calm {
            self.stirred.remove(&domain);
        }
    }

    fn park(&mut self, turn: Turn<S>, route: &Route, domain: Domain, hold: &Hold, now: Moment) {
        self.open.remove(&turn);
        let watched = self.domains.get_mut(&domain).expect("what holds somebody is known");
        set_timer(&mut self.timers, &domain, watched, hold, now);
        watched.parked.insert(turn, Arc::clone(route));
        self.queues.get_mut(route).expect("a queue that stands open exists").parked = Some(domain);
    }

    /// Somebody waits in a queue from now on; as its first, it takes the queue to where it belongs.
    fn enqueue(&mut self, route: &Route, turn: Turn<S>) {
        let queue = match self.queues.get_mut(route) {
            Some(queue) => queue,
            None => self.queues.entry(Arc::clone(route)).or_default(),
        };
        let before = queue.turns.first();
        if before.is_some_and(|before| *before < turn) {
            queue.turns.insert(turn);
            return;
        }
        let before = before.cloned();
        queue.turns.insert(turn.clone());
        let parked = queue.parked.take();
        self.lead(route, before, parked.as_ref(), Some(turn));
    }

    /// Somebody waits in a queue no more; without its first, the queue belongs elsewhere or is no more.
    fn dequeue(&mut self, route: &Route, turn: &Turn<S>) {
        let Some(queue) = self.queues.get_mut(route) else { return };
        let is_first = queue.turns.first() == Some(turn);
        queue.turns.remove(turn);
        if !is_first {
            return;
        }
        let (parked, after) = (queue.parked.take(), queue.turns.first().cloned());
        if after.is_none() {
            self.queues.remove(route);
        }
        self.lead(route, Some(turn.clone()), parked.as_ref(), after);
    }

    /// Another is the first of a queue than before. It stands open even if it was held: whether its new first is, is seen when its
    /// turn comes.
    fn lead(
        &mut self,
        route: &Route,
        before: Option<Turn<S>>,
        parked: Option<&Domain>,
        after: Option<Turn<S>>,
    ) {
        if let Some(before) = before {
            match parked.and_then(|domain| self.domains.get_mut(domain)) {
                Some(watched) => drop(watched.parked.remove(&before)),
                None => drop(self.open.remove(&before)),
            }
        }
        if let Some(after) = after {
            self.open.insert(after, Arc::clone(route));
        }
    }
}

/// Whether two routes lead through the same domains. They mostly are one and the same.
fn is_same(one: &Route, other: &Route) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// Sees to it that a domain is looked at again when time frees its members.
fn set_timer<S>(
    timers: &mut BTreeSet<(Moment, Domain)>,
    domain: &Domain,
    watched: &mut Watched<S>,
    hold: &Hold,
    now: Moment,
) {
    let until = match hold {
        Hold::Paced { until, .. } => Some(*until),
        Hold::BreakerOpen { until, .. } => *until,
        _ => None,
    };
    let until = until.filter(|until| *until < Moment::NEVER).map(|until| until.max(now));
    if until == watched.timer {
        return;
    }
    if let Some(before) = watched.timer.take() {
        timers.remove(&(before, domain.clone()));
    }
    if let Some(until) = until {
        timers.insert((until, domain.clone()));
        watched.timer = Some(until);
    }
}

#[cfg(test)]
mod tests;
