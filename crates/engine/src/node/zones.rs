//! How fast nodes may be tainted, by how much of their zone is down.
//!
//! Owns the count of ready nodes in each zone, the pace that follows from it, and the verdict that *everything* is down, in
//! which case it is not the nodes: it is the network, the API server or this process.
//!
//! | zone | pace |
//! |---|---|
//! | normal | the rate |
//! | more than two and the share not ready | the secondary rate in a large zone, else none |
//! | none ready, other zones have some | the rate: work is to move to where it can run |
//! | none ready in any zone | none; see [`WhenAllDown`] |
//!
//! A change that lets *less* go is made at once. One that lets more go is made after a calm, so that a zone at the edge of
//! its threshold does not let a node go with each flutter; the same holds for the end of everything being down. All of it
//! is judged by the counts alone, so a missed turn is made up for at the next look.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use berth_api::core::Zone;

use super::zone_state::ZoneState;
use crate::evict::{Cause, Freeze, Rate};
use crate::moment::Moment;

/// Nodes let go after a rest: one, whatever the rate.
const BURST: u32 = 1;
/// How long a zone is remembered that has no nodes: one that is there again at once must not begin with a fresh pace.
const LINGER: Duration = Duration::from_mins(10);

/// What is done while no node of any zone is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenAllDown {
    /// The taints that make pods leave are taken off everywhere, as Kubernetes does: whatever has armed an eviction disarms
    /// it, and the time begins anew when the taints come back.
    #[default]
    Untaint,
    /// Nothing is changed: the taints stay, with their times, and pods are not told that they are not ready. Whoever evicts
    /// holds what is armed: [`Zones::freeze`] is the stop that its [`Marshal`](crate::evict::Marshal) is given.
    Hold,
}

/// How fast nodes may be tainted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisruptionPolicy {
    /// Nodes a second in each zone.
    pub rate: f64,
    /// Nodes a second in a large zone of which too much is down.
    pub secondary_rate: f64,
    /// A zone with more nodes than this is large.
    pub large_zone: usize,
    /// The share of a zone from which on it is too much.
    pub unhealthy_share: f32,
    /// How long it must have been better before more are let go.
    pub calm: Duration,
    /// What is done while everything is down.
    pub when_all_down: WhenAllDown,
}

impl Default for DisruptionPolicy {
    fn default() -> Self {
        Self {
            rate: 0.1,
            secondary_rate: 0.01,
            large_zone: 50,
            unhealthy_share: 0.55,
            // How often Kubernetes' own controller looks: it stays in a mode for that long as well.
            calm: Duration::from_secs(5),
            when_all_down: WhenAllDown::default(),
        }
    }
}

impl DisruptionPolicy {
    fn pace(&self, state: ZoneState, size: usize) -> Rate {
        let per_second = match state {
            ZoneState::Normal | ZoneState::Full => self.rate,
            ZoneState::Partial if size > self.large_zone => self.secondary_rate,
            ZoneState::Partial => 0.0,
        };
        Rate::per_second(per_second, BURST)
    }
}

/// How a node counts in its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As one that is ready.
    Ready,
    /// As one that is not.
    NotReady,
    /// Not at all.
    Excluded,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum ZoneNews {
    /// Nodes of this zone may be tainted at another pace from now on.
    Pace(Zone, Rate),
    /// The zone has had no nodes for long.
    Gone(Zone),
    /// Everything is down from now on.
    AllDown,
    /// Something is ready again, and has been for a while.
    SomeUp,
}

/// The zones of a cluster.
#[derive(Debug)]
pub struct Zones {
    policy: DisruptionPolicy,
    nodes: HashMap<Arc<str>, (Zone, Standing)>,
    watched: BTreeMap<Zone, Watched>,
    /// Since when everything has been down, if it is.
    down_since: Option<Moment>,
    /// Since when something has been up again, while everything still counts as down.
    up_since: Option<Moment>,
    /// Whether something was counted since the last look.
    is_stirred: bool,
    clock: Moment,
}

#[derive(Debug, Default)]
struct Watched {
    counts: ZoneCounts,
    excluded: usize,
    /// The pace that is in force; `None` before the first look.
    pace: Option<Rate>,
    /// Since when a faster one would do.
    better_since: Option<Moment>,
    /// Since when it has had no nodes, if it has none.
    empty_since: Option<Moment>,
}

/// How many nodes of a zone are ready, and how many are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// Ready.
    pub ready: usize,
    /// Not ready.
    pub not_ready: usize,
}

impl ZoneCounts {
    /// All that count.
    pub fn size(self) -> usize {
        self.ready + self.not_ready
    }
}

impl Watched {
    fn tally(&mut self, standing: Standing) -> &mut usize {
        match standing {
            Standing::Ready => &mut self.counts.ready,
            Standing::NotReady => &mut self.counts.not_ready,
            Standing::Excluded => &mut self.excluded,
        }
    }

    fn state(&self, share: f32) -> ZoneState {
        ZoneState::of(self.counts.ready, self.counts.not_ready, share)
    }
}

impl Zones {
    /// Zones without nodes.
    pub fn new(policy: DisruptionPolicy) -> Self {
        Self {
            policy,
            nodes: HashMap::new(),
            watched: BTreeMap::new(),
            down_since: None,
            up_since: None,
            is_stirred: false,
            clock: Moment::PAST,
        }
    }

    /// Counts a node, in place of how it was counted before.
    pub fn count(&mut self, node: &Arc<str>, zone: &Zone, standing: Standing) {
        if self.nodes.get(node).is_some_and(|known| known.0 == *zone && known.1 == standing) {
            return;
        }
        self.forget(node);
        *self.watched.entry(zone.clone()).or_default().tally(standing) += 1;
        self.nodes.insert(Arc::clone(node), (zone.clone(), standing));
        self.is_stirred = true;
    }

    /// A node is no more.
    pub fn forget(&mut self, node: &str) {
        let Some((zone, standing)) = self.nodes.remove(node) else { return };
        if let Some(watched) = self.watched.get_mut(&zone) {
            *watched.tally(standing) -= 1;
        }
        self.is_stirred = true;
    }

    /// Looks at the counts and the clock; what follows comes back.
    pub fn turn(&mut self, now: Moment) -> Vec<ZoneNews> {
        let is_set_back = now < self.clock;
        self.clock = now;
        if !self.is_stirred && !is_set_back && self.wake().is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.is_stirred = false;
        let mut news = Vec::new();
        self.watched.retain(|zone, watched| {
            let is_empty = watched.counts.size() + watched.excluded == 0;
            watched.empty_since = is_empty.then(|| watched.empty_since.map_or(now, |since| since.min(now)));
            let is_gone = watched.empty_since.is_some_and(|since| since.plus(LINGER) <= now);
            if is_gone {
                news.push(ZoneNews::Gone(zone.clone()));
            }
            !is_gone
        });
        let is_rising = self.judge_everything(now, &mut news);
        for (zone, watched) in &mut self.watched {
            let state = watched.state(self.policy.unhealthy_share);
            let target = match self.down_since {
                Some(_) => Rate::Stopped,
                None => self.policy.pace(state, watched.counts.size()),
            };
            let is_better = watched.pace.is_some_and(|pace| target.lets_more_go_than(pace));
            if is_better && !is_rising {
                // A clock that was set back begins the calm anew: too long is safe, and not for ever.
                let since = watched.better_since.map_or(now, |since| since.min(now));
                watched.better_since = Some(since);
                if since.plus(self.policy.calm) > now {
                    continue;
                }
            }
            watched.better_since = None;
            if watched.pace != Some(target) {
                watched.pace = Some(target);
                news.push(ZoneNews::Pace(zone.clone(), target));
            }
        }
        news
    }

    /// Whether everything is down. Says whether that ended just now.
    fn judge_everything(&mut self, now: Moment, news: &mut Vec<ZoneNews>) -> bool {
        let share = self.policy.unhealthy_share;
        let mut counted = self.watched.values().filter(|zone| zone.counts.size() > 0).peekable();
        // Where nobody counts, nothing can be said, and what was said stays.
        let is_down = match counted.peek() {
            None => self.down_since.is_some() && !self.nodes.is_empty(),
            Some(_) => counted.all(|zone| zone.state(share) == ZoneState::Full),
        };
        match (self.down_since, is_down) {
            (None, true) => {
                self.down_since = Some(now);
                news.push(ZoneNews::AllDown);
            }
            (Some(_), true) => self.up_since = None,
            (Some(_), false) => {
                let since = self.up_since.map_or(now, |since| since.min(now));
                self.up_since = Some(since);
                if since.plus(self.policy.calm) <= now {
                    (self.down_since, self.up_since) = (None, None);
                    news.push(ZoneNews::SomeUp);
                    return true;
                }
            }
            (None, false) => {}
        }
        false
    }

    /// When time alone changes something.
    pub fn wake(&self) -> Option<Moment> {
        if self.is_stirred {
            return Some(Moment::PAST);
        }
        let better = self.watched.values().filter_map(|zone| zone.better_since);
        better.chain(self.up_since).min().map(|since| since.plus(self.policy.calm))
    }

    /// Whether everything counts as down.
    pub fn is_all_down(&self) -> bool {
        self.down_since.is_some()
    }

    /// Whether armed evictions are to be held while everything is down.
    pub fn may_freeze(&self) -> bool {
        self.policy.when_all_down == WhenAllDown::Hold
    }

    /// The stop for whoever evicts, where armed evictions are to be held while everything is down.
    pub fn freeze(&self) -> Option<Freeze> {
        let since = self.down_since.filter(|_| self.may_freeze())?;
        let stop = Freeze::of(Cause::AllDown, "no node of any zone is ready, so it is not the nodes");
        Some(Freeze { since: Some(since), ..stop })
    }

    /// The zones that have nodes, with their counts, in order.
    pub fn counts(&self) -> impl Iterator<Item = (&Zone, ZoneCounts)> {
        let zones = self.watched.iter().filter(|(_, watched)| watched.empty_since.is_none());
        zones.map(|(zone, watched)| (zone, watched.counts))
    }
}

#[cfg(test)]
#[path = "zones/tests.rs"]
mod tests;
