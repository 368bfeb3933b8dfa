//! Policies as they change, and how many of whom are away.
//!
//! Owns telling the marshal what policies bound and how many of their pods are on their way out, and the policies how they stand.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::evict::policy::Keep;
use berth_engine::evict::{Domain, Hold};

use super::TaintEvictionController;
use super::policies::subject_of_policy;
use crate::controllers::Verdict;
use crate::due::Due;
use crate::runtime::PLACES;
use crate::world::World;

/// What holds pods of policies besides their own affairs: by the word for it and the zone, how many, and what is said of it.
pub(super) type Bars = HashMap<Arc<str>, BTreeMap<(&'static str, Option<Arc<str>>), (usize, String)>>;

impl TaintEvictionController {
    /// Policies that have changed are read, and everybody they may be about is judged again.
    pub(super) fn read_policies(&mut self, world: &World, now: Moment, due: &mut Due) {
        let read = self.policies.read(world);
        if read.is_empty() {
            return;
        }
        for (name, rule) in read {
            let domain = Domain::Policy(Arc::clone(&name));
            let is_its = |domain: &Domain| match domain {
                Domain::PolicyZone(of, _) | Domain::PolicyWorkload(of, _) => *of == name,
                _ => false,
            };
            for domain in self.bounded.extract_if(|domain| is_its(domain)) {
                self.marshal.forget(&domain, now);
            }
            match rule.as_ref().map(|rule| &rule.orders) {
                Some(Ok(orders)) => self.marshal.bound(&domain, orders.pace.of_policy(), now),
                _ => self.marshal.forget(&domain, now),
            }
            if rule.is_none() {
                self.metrics.policy_is_gone(&name);
            }
            self.cases.forget_policy(&name);
        }
        self.workloads.keep(self.policies.counts_workloads(), &world.pods);
        for node in self.places.keys() {
            for pod in self.map.on(node) {
                due.mark(pod);
            }
        }
        if self.policies.uses_force() {
            for (key, pod) in world.pods.iter().filter(|(_, pod)| pod.is_terminating()) {
                if !self.places.contains_key(&pod.node) {
                    due.mark(key);
                }
            }
        }
    }

    /// Namespaces have other labels now: their pods may have another policy.
    pub(super) fn look_at_namespaces(&mut self, due: &mut Due) {
        if self.relabelled.is_empty() {
            return;
        }
        let relabelled = std::mem::take(&mut self.relabelled);
        for node in self.places.keys() {
            for pod in self.map.on(node).filter(|pod| relabelled.contains(&pod.namespace)) {
                due.mark(pod);
            }
        }
    }

    /// Tells the marshal how many pods of a policy are away in a zone, if that has bounds.
    pub(super) fn count_zone(&mut self, name: &Arc<str>, zone: &Arc<str>, now: Moment) {
        let domain = Domain::PolicyZone(Arc::clone(name), Arc::clone(zone));
        if self.bounded.contains(&domain) {
            let counts = self.cases.counts_in(name, zone);
            self.marshal.census(&domain, 0, counts.matched, now);
            self.marshal.absent(&domain, counts.leaving);
        }
    }

    /// Tells the marshal how many of whom are away, and the policies how they stand.
    pub(super) fn count(&mut self, world: &World, now: Moment, due: &mut Due) {
        for name in self.cases.take_touched() {
            self.policies.touch(&name);
            if self.policies.book.get(&name).is_some() {
                let domain = Domain::Policy(Arc::clone(&name));
                let counts = self.cases.counts(&name);
                self.marshal.census(&domain, 0, counts.matched, now);
                self.marshal.absent(&domain, counts.leaving);
            }
        }
        for (name, zone) in self.cases.take_touched_zones() {
            self.count_zone(&name, &zone, now);
        }
        self.muster.extend(self.workloads.take_touched());
        self.muster.extend(self.mustered.extract_if(|_, at| *at <= now).map(|(owner, _)| owner));
        for owner in std::mem::take(&mut self.muster) {
            let is_tainted = |node: &str| self.places.contains_key(node);
            let (muster, again) = self.workloads.muster(&owner, &world.pods, is_tainted, now);
            self.mustered.extend(again.map(|again| (Arc::clone(&owner), again)));
            for rule in self.policies.book.rules() {
                let domain = Domain::PolicyWorkload(Arc::clone(&rule.name), Arc::clone(&owner));
                if !self.workloads.has(&owner) {
                    // Nobody of it is left, and no other will have its identity.
                    if self.bounded.remove(&domain) {
                        self.marshal.forget(&domain, now);
                    }
                } else if self.bounded.contains(&domain) {
                    self.marshal.census(&domain, 0, muster.size, now);
                    self.marshal.absent(&domain, muster.away);
                }
            }
        }
        for name in self.policies.take_untold(now) {
            due.mark(&subject_of_policy(&name));
        }
    }

    /// Tells the marshal how many pods are on their way out of tainted nodes, where that has a bound.
    pub(super) fn count_leaving(&mut self, have_nodes_changed: bool, now: Moment) {
        self.leaving.pass(now);
        if !self.leaving.take_changed(have_nodes_changed) {
            return;
        }
        let mut all = 0;
        let mut zones: HashMap<&Arc<str>, usize> = HashMap::new();
        for (node, place) in &self.places {
            let leaving = self.leaving.on(node);
            all += leaving;
            // Zones of which all have gone are told so as well.
            if let Some(zone) = place.route.iter().find_map(Domain::zone) {
                *zones.entry(zone).or_default() += leaving;
            }
        }
        self.marshal.bound(&Domain::Everything, self.limits.of_all(PLACES, all), now);
        self.marshal.absent(&Domain::Everything, all);
        for (zone, leaving) in zones {
            self.marshal.absent(&Domain::Zone(Arc::clone(zone)), leaving);
        }
    }

    /// Policies whose pods are held by stops, breakers and bounds otherwise than when it was last looked are told how they stand.
    /// Time alone brings that about as well: who comes due behind a stop is nobody's news.
    pub(super) fn look_at_bars(&mut self, now: Moment) {
        let mut bars = Bars::new();
        for (route, hold, count) in self.marshal.barred(now) {
            let Some(policy) = route.iter().find_map(Domain::policy) else { continue };
            let Some(keep) = Keep::bound(hold) else { continue };
            let of_policy = bars.entry(Arc::clone(policy)).or_default();
            let bar = of_policy.entry((keep.word(), keep.zone().cloned())).or_insert_with(|| {
                // How many are away is news of the pods themselves.
                let is_full = matches!(keep, Keep::Bound(Hold::Full { .. }));
                (0, if is_full { String::new() } else { keep.to_string() })
            });
            bar.0 += count;
        }
        for name in bars.keys().chain(self.bars.keys()) {
            if bars.get(name) != self.bars.get(name) {
                self.policies.touch(name);
            }
        }
        self.bars = bars;
    }

    pub(super) fn decide_policy(&mut self, name: &Arc<str>, world: &World, now: Moment) -> Verdict {
        let marshal = &self.marshal;
        let tally = self.cases.tally(name, |id| marshal.bar(id, now).and_then(Keep::bound));
        let write = self.policies.tell(name, &tally, world, now);
        self.metrics.held_by_policy(name, tally.holds());
        let outcome = if write.is_some() { "told" } else { "in-order" };
        Verdict { writes: write.into_iter().collect(), outcome, ..Verdict::default() }
    }
}
