//! Pods that a policy has a say in, or that somebody drains away: how each stands, and what has not let it go.
//!
//! Owns what is kept of such pods, and counts by policy. Pods that leave by Kubernetes' rule alone are not in here, so they cost
//! nothing. It decides nothing.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::evict::policy::{Authority, Keep, Tally};

use super::{PodId, take};

/// When a pod is looked at again that something did not let go: at first, and at last.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_mins(1);

/// How a pod stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// It goes at a moment, or waits for its turn since then.
    Waits(Moment),
    /// It is due and stays.
    Held(Keep),
    /// It is on its way out.
    Leaves,
    /// It would have gone, if this was no dry run.
    Spared,
}

/// A pod.
#[derive(Debug)]
struct Case {
    authority: Authority,
    others: Vec<Arc<str>>,
    /// The zone of its node, while that was tainted last: one that goes takes nobody out of where he was counted.
    zone: Option<Arc<str>>,
    state: State,
    blocks: Vec<Block>,
    /// The policies, with their generation, that would have let it go.
    spared: Vec<(Arc<str>, i64)>,
    /// What people were told last about why it is held.
    told: Option<(&'static str, Option<Arc<str>>)>,
    /// Whether the last attempt on it failed.
    fails: bool,
    /// When it was deleted by force, and still is there.
    destroyed: Option<Moment>,
    /// When it was looked at last for no other reason than that it had changed.
    hurried: Option<Moment>,
}

impl Case {
    /// The policy that has the say, and those that would have it without that one.
    fn policies(&self) -> impl Iterator<Item = &Arc<str>> {
        self.authority
            .rule()
            .into_iter()
            .flat_map(move |rule| std::iter::once(&rule.name).chain(&self.others))
    }
}

/// That something did not let a pod go.
#[derive(Debug)]
struct Block {
    authority: Authority,
    /// When that was, and until when it is not tried again.
    since: Moment,
    until: Moment,
    tries: u32,
    keep: Keep,
}

/// When a pod is looked at again that something did not let go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// After a wait that doubles each time.
    Doubling {
        /// The spread, from 0 to 1.
        jitter: f64,
        /// How long it is at least.
        least: Duration,
    },
    /// When somebody has said.
    Until(Moment),
}

/// What a policy has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pods on tainted nodes.
    pub(super) matched: usize,
    /// Those on their way out.
    pub(super) leaving: usize,
}

/// All such pods.
#[derive(Debug, Default)]
pub(super) struct Cases {
    of: HashMap<PodId, Case>,
    counts: HashMap<Arc<str>, Counts>,
    /// The same by policy and zone.
    zone_counts: HashMap<PolicyZone, Counts>,
    /// Those that a policy is named with, whether or not it has the say.
    of_policy: HashMap<Arc<str>, HashSet<PodId>>,
    /// Policies whose pods stand otherwise than was told last.
    touched: HashSet<Arc<str>>,
    /// Zones in which they do.
    touched_zones: HashSet<PolicyZone>,
}

/// A policy and a zone, by their names.
type PolicyZone = (Arc<str>, Arc<str>);

impl Cases {
    /// A pod stands so, by this authority's word. Without a `zone` it stays where it was.
    pub(super) fn set(
        &mut self,
        id: &PodId,
        authority: &Authority,
        others: &[Arc<str>],
        zone: Option<&Arc<str>>,
        state: State,
    ) {
        if let Some(case) = self.of.get(id)
            && case.authority == *authority
            && case.state == state
            && case.others == others
            && zone.is_none_or(|zone| case.zone.as_ref() == Some(zone))
        {
            return;
        }
        let mut case = self.take(id).unwrap_or_else(|| Case {
            authority: authority.clone(),
            others: Vec::new(),
            zone: None,
            state: State::Spared,
            blocks: Vec::new(),
            spared: Vec::new(),
            told: None,
            fails: false,
            destroyed: None,
            hurried: None,
        });
        case.authority = authority.clone();
        case.others = others.to_vec();
        case.zone = zone.cloned().or(case.zone);
        case.state = state;
        self.put(id, case);
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A pod is nobody's concern any more.
    pub(super) fn remove(&mut self, id: &PodId) -> bool {
        self.take(id).is_some()
    }

    /// What was said by a policy's old words counts no more.
    pub(super) fn forget_policy(&mut self, name: &Arc<str>) {
        let is_its = |authority: &Authority| authority.rule().is_some_and(|rule| rule.name == *name);
        for case in self.of.values_mut() {
            case.blocks.retain(|block| !is_its(&block.authority));
            case.spared.retain(|(spared, _)| spared != name);
        }
        self.touched.insert(Arc::clone(name));
    }

    fn take(&mut self, id: &PodId) -> Option<Case> {
        let case = take(&mut self.of, id)?;
        self.count(&case, |count| count.saturating_sub(1));
        for name in case.policies() {
            if let Some(pods) = self.of_policy.get_mut(name) {
                pods.remove(id);
                if pods.is_empty() {
                    self.of_policy.remove(name);
                }
            }
        }
        Some(case)
    }

    fn put(&mut self, id: &PodId, case: Case) {
        self.count(&case, |count| count + 1);
        for name in case.policies() {
            self.of_policy.entry(Arc::clone(name)).or_default().insert(id.clone());
        }
        self.of.insert(id.clone(), case);
    }

    fn count(&mut self, case: &Case, change: impl Fn(usize) -> usize) {
        self.touched.extend(case.others.iter().cloned());
        let Some(rule) = case.authority.rule() else { return };
        self.touched.insert(Arc::clone(&rule.name));
        let is_leaving = case.state == State::Leaves;
        recount(&mut self.counts, &rule.name, is_leaving, &change);
        if let Some(zone) = &case.zone {
            let place = (Arc::clone(&rule.name), Arc::clone(zone));
            recount(&mut self.zone_counts, &place, is_leaving, &change);
            self.touched_zones.insert(place);
        }
    }

    /// Something did not let a pod go; it is looked at again after a wait.
    pub(super) fn block(&mut self, id: &PodId, authority: &Authority, keep: Keep, wait: Wait, now: Moment) {
        let Some(case) = self.of.get_mut(id) else { return };
        let known = case.blocks.iter_mut().find(|block| block.authority == *authority);
        let before = known.as_ref().map_or(0, |block| block.tries);
        let (tries, until) = match wait {
            Wait::Doubling { jitter, least } => {
                let tries = before.saturating_add(1);
                (tries, now.plus(again(tries, jitter).max(least.min(AGAIN_MAX))))
            }
            Wait::Until(until) => (before, until),
        };
        let block = Block { authority: authority.clone(), since: now, until, tries, keep };
        match known {
            Some(known) => *known = block,
            None => case.blocks.push(block),
        }
    }

    /// A pod has changed: whatever did not let it go may do so now. Who was asked about it outside is asked again in his time. One
    /// that never stops changing is looked at as often as one that has just been held, and no oftener.
    pub(super) fn unblock(&mut self, id: &PodId, now: Moment) -> bool {
        let Some(case) = self.of.get_mut(id) else { return false };
        let is_gate = |keep: &Keep| matches!(keep, Keep::Gate(shut) if !shut.why.is_opinion());
        let gated = case.blocks.iter_mut().filter(|block| is_gate(&block.keep));
        let soonest = match case.hurried {
            Some(at) if at > now => at,
            Some(at) => at.plus(AGAIN_FIRST).max(now),
            None => now,
        };
        let mut is_gated = false;
        for block in gated {
            block.until = block.until.min(soonest);
            is_gated = true;
        }
        if is_gated {
            case.hurried = Some(soonest);
        }
        is_gated
    }

    /// Until when an authority is not tried again for a pod, and what did not let it go.
    pub(super) fn blocked(&self, id: &PodId, authority: &Authority) -> Option<(Moment, &Keep)> {
        let block = self.of.get(id)?.blocks.iter().find(|block| block.authority == *authority)?;
        Some((block.until, &block.keep))
    }

    /// Whether something has not let a pod go.
    pub(super) fn is_blocked(&self, id: &PodId) -> bool {
        self.of.get(id).is_some_and(|case| !case.blocks.is_empty())
    }

    /// A pod would have gone.
    pub(super) fn spare(&mut self, id: &PodId, policy: &Arc<str>, generation: i64) {
        if let Some(case) = self.of.get_mut(id) {
            case.spared.push((Arc::clone(policy), generation));
        }
    }

    /// Whether a pod would have gone by that policy.
    pub(super) fn is_spared(&self, id: &PodId, authority: &Authority) -> bool {
        let Some(rule) = authority.rule() else { return false };
        let said =
            |(name, generation): &(Arc<str>, i64)| *name == rule.name && *generation == rule.generation;
        self.of.get(id).is_some_and(|case| case.spared.iter().any(said))
    }

    /// Whether people have yet to be told why a pod is held; from now on they have been.
    pub(super) fn is_news(&mut self, id: &PodId, keep: &Keep) -> bool {
        let Some(case) = self.of.get_mut(id) else { return false };
        let news = (keep.word(), keep.gate().cloned());
        case.told.replace(news.clone()) != Some(news)
    }

    /// Whether an attempt on a pod failed.
    pub(super) fn set_failing(&mut self, id: &PodId, fails: bool) {
        let Some(case) = self.of.get_mut(id) else { return };
        if std::mem::replace(&mut case.fails, fails) != fails
            && let Some(rule) = case.authority.rule()
        {
            self.touched.insert(Arc::clone(&rule.name));
        }
    }

    /// A pod was deleted by force.
    pub(super) fn destroyed(&mut self, id: &PodId, now: Moment) {
        if let Some(case) = self.of.get_mut(id) {
            case.destroyed = Some(now);
        }
    }

    /// When a pod that was deleted by force and is still there may be tried again.
    pub(super) fn destroyed_until(&self, id: &PodId) -> Moment {
        let destroyed = self.of.get(id).and_then(|case| case.destroyed);
        destroyed.map_or(Moment::PAST, |at| at.plus(AGAIN_MAX))
    }

    /// The clock was set back: who waits does so for as long as ever, from now on. Says who that is.
    pub(super) fn set_back(&mut self, now: Moment) -> Vec<PodId> {
        let mut moved = Vec::new();
        for (id, case) in &mut self.of {
            let mut is_moved = false;
            for block in case.blocks.iter_mut().filter(|block| block.since > now) {
                block.until = now.plus(block.since.until(block.until));
                block.since = now;
                is_moved = true;
            }
            if case.destroyed.is_some_and(|at| at > now) {
                case.destroyed = Some(now);
                is_moved = true;
            }
            case.hurried = case.hurried.filter(|at| *at <= now);
            if is_moved {
                moved.push(id.clone());
            }
        }
        moved
    }

    /// What a policy has.
    pub(super) fn counts(&self, policy: &str) -> Counts {
        self.counts.get(policy).copied().unwrap_or_default()
    }

    /// What a policy has in a zone.
    pub(super) fn counts_in(&self, policy: &Arc<str>, zone: &Arc<str>) -> Counts {
        self.zone_counts.get(&(Arc::clone(policy), Arc::clone(zone))).copied().unwrap_or_default()
    }

    /// The policies and zones in which pods stand otherwise since the last time.
    pub(super) fn take_touched_zones(&mut self) -> HashSet<PolicyZone> {
        std::mem::take(&mut self.touched_zones)
    }

    /// The policies whose pods stand otherwise since the last time.
    pub(super) fn take_touched(&mut self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.touched)
    }

    /// The pods of a policy, counted. `bar` says of those that wait what holds them besides their own affairs.
    pub(super) fn tally(&self, policy: &Arc<str>, bar: impl Fn(&PodId) -> Option<Keep>) -> Tally {
        let mut tally = Tally::default();
        let pods = self.of_policy.get(policy).into_iter().flatten();
        for (id, case) in pods.filter_map(|id| self.of.get_key_value(id)) {
            let pod = id.key.to_string();
            let Some(rule) = case.authority.rule() else { continue };
            if case.others.contains(policy) {
                tally.stands_behind(&rule.name, &pod);
            }
            if rule.name != *policy {
                continue;
            }
            for other in &case.others {
                tally.stands_before(other, &pod);
            }
            let bar = if matches!(case.state, State::Waits(_)) { bar(id) } else { None };
            match (&case.state, bar) {
                (State::Leaves, _) => tally.leaves(),
                (State::Spared, _) => tally.is_spared(),
                // Whatever failed before: it is not tried again while this holds.
                (_, Some(keep)) => tally.is_held(&pod, &keep),
                _ if case.fails => tally.fails(),
                (State::Waits(at), None) => tally.waits(&pod, *at),
                (State::Held(keep), None) => tally.is_held(&pod, keep),
            }
        }
        tally
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

/// One more or one less is there, and perhaps on its way out. What is zero is not kept.
fn recount<K: Eq + Hash + Clone>(
    all: &mut HashMap<K, Counts>,
    key: &K,
    is_leaving: bool,
    change: impl Fn(usize) -> usize,
) {
    let counts = all.entry(key.clone()).or_default();
    counts.matched = change(counts.matched);
    if is_leaving {
        counts.leaving = change(counts.leaving);
    }
    if *counts == Counts::default() {
        all.remove(key);
    }
}

/// How long to wait after so many tries: doubling, from the half to the whole of it by `jitter`.
fn again(tries: u32, jitter: f64) -> Duration {
    let doubled = AGAIN_FIRST.saturating_mul(1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(AGAIN_MAX).mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use berth_engine::model::ObjectKey;

    use super::*;

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_wait_for_longer_than_ever() {
        let at = |second: i64| Moment::from_second(100_000 + second);
        let mut cases = Cases::default();
        let ids = ["a", "b", "c"].map(|name| PodId { uid: name.into(), key: ObjectKey::new("n", name) });
        for id in &ids {
            cases.set(id, &Authority::Kubernetes, &[], None, State::Waits(at(0)));
        }
        let [blocked, destroyed, neither] = &ids;
        let later = Wait::Until(at(3_720));
        cases.block(blocked, &Authority::Kubernetes, Keep::Budget("full".into()), later, at(3_600));
        cases.destroyed(destroyed, at(3_600));
        cases.destroyed(neither, at(-5));
        let mut moved = cases.set_back(at(0));
        moved.sort();
        assert_eq!(moved, [blocked.clone(), destroyed.clone()]);
        let until = cases.blocked(blocked, &Authority::Kubernetes).unwrap().0;
        assert_eq!((until, cases.destroyed_until(destroyed)), (at(120), at(60)));
        assert_eq!(cases.destroyed_until(neither), at(55));
        assert!(cases.set_back(at(0)).is_empty());
    }

    #[test]
    fn the_waits_double_and_are_bounded() {
        let waits: Vec<u64> = (1..12).map(|tries| again(tries, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
        assert_eq!((again(99, 1.0), again(99, 0.0)), (AGAIN_MAX, AGAIN_MAX / 2));
    }
}
