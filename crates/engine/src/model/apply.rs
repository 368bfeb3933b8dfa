//! Applying deltas: the one way the model changes.

use std::sync::Arc;

use berth_api::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::Model;
use super::clusters::{Cluster, Parts};
use super::delta::{Delta, DeltaRef};
use super::key::{ObjectKey, PlacementKey};
use super::placements::{Entry, Identity, PlacementId};
use super::scores::Scores;
use super::sets::{Members, Set, term_of};
use super::slots::Slot;
use super::standing::CarriedTaint;
use super::terms::{Doubts, Seen, User};
use super::touch::{Touched, forget};
use crate::moment::Moment;
use crate::select::compile;
use crate::selector::Facet;
use crate::taint::{ClusterEffect, Taint};

impl Model {
    /// Takes one change in. The placements whose decision may differ because of it come back, each once; all others
    /// would decide as before. Changes of other placements' decisions alone (Balance) concern nobody: they are
    /// looked at when a placement is decided for another reason, so that one tenant's move never starts another's.
    // The objects are owned for the caller's sake: most make them for this.
    #[expect(clippy::needless_pass_by_value, reason = "see above")]
    pub fn apply(&mut self, delta: Delta) -> Touched {
        self.observe((&delta).into())
    }

    /// [`Model::apply`], of objects that somebody else keeps.
    pub fn observe(&mut self, delta: DeltaRef<'_>) -> Touched {
        let touched = self.take_in(delta);
        touched.and(std::mem::take(&mut self.ripe)).settled(self)
    }

    /// [`Model::observe`], for whoever knows that it concerns nobody else.
    pub fn note(&mut self, delta: DeltaRef<'_>) {
        let _ = self.take_in(delta);
    }

    /// [`Model::observe`], where who is ripe is told to somebody else.
    pub(super) fn take_in(&mut self, delta: DeltaRef<'_>) -> Touched {
        let mut touched = Touched::default();
        match delta {
            DeltaRef::Cluster(cluster) => self.put_cluster(cluster, Parts::of(cluster), &mut touched),
            DeltaRef::SharedCluster(cluster) => {
                self.put_cluster(cluster, Parts::of_shared(cluster), &mut touched);
            }
            DeltaRef::ClusterGone(name) => self.drop_cluster(name, &mut touched),
            DeltaRef::Set(set) => self.put_set(set, &mut touched),
            DeltaRef::SetGone(name) => self.replace_set(&Arc::from(name), None, &mut touched),
            DeltaRef::Binding(binding) => self.put_binding(binding, &mut touched),
            DeltaRef::BindingGone(key) => self.drop_binding(key, &mut touched),
            DeltaRef::Placement(placement) => self.put_placement(placement, &mut touched),
            DeltaRef::PlacementGone(key) => self.drop_placement(key),
            DeltaRef::Decision(decision) => self.put_decision(decision, &mut touched),
            DeltaRef::DecisionGone(key) => self.replace_decision(key, None, &mut touched),
            DeltaRef::Score(score) => self.put_score(score, &mut touched),
            DeltaRef::ScoreGone(key) => self.replace_score(key, None, &mut touched),
        }
        touched
    }

    /// Lets time pass. Expressions see scores that expired meanwhile as gone; the placements that may decide
    /// differently because of it come back. Deciding does this by itself.
    pub fn advance(&mut self, now: Moment) -> Touched {
        let touched = self.move_clock(now);
        touched.and(std::mem::take(&mut self.ripe)).settled(self)
    }

    /// [`Model::advance`], where who is ripe is told to somebody else.
    pub(crate) fn move_clock(&mut self, now: Moment) -> Touched {
        let before = std::mem::replace(&mut self.clock, now);
        if before == now || !self.terms.any_reads_scores() {
            return Touched::default();
        }
        let mut touched = Touched::default();
        // Backwards it is the same set of scores that turn, from gone to there.
        for slot in self.scores.ended_between(before.min(now), before.max(now)) {
            self.look_again(slot, &Seen { scores: true, ..Seen::default() }, &mut touched);
        }
        touched
    }

    /// Asks terms about a cluster again and touches whom it concerns.
    fn look_again(&mut self, slot: Slot, seen: &Seen, touched: &mut Touched) {
        let Self { slots, clusters, standings, scores, terms, clock, .. } = self;
        let lens = super::Lens { slots, clusters, standings, scores, now: *clock };
        let Doubts { mut answers, opened } = terms.doubt(slot, seen, lens);
        answers.extend(self.ask_open(Some((slot, &opened))));
        if !answers.is_empty() {
            self.moved(slot);
            self.touch_turned(slot, &answers, touched);
        }
    }

    /// A cluster's place in rankings may be another. Said before anybody is asked whether the cluster may enter.
    fn moved(&mut self, slot: Slot) {
        self.changes.push(slot);
        self.thresholds.moved(slot);
    }

    fn put_cluster(&mut self, cluster: &ManagedCluster, parts: Parts<'_>, touched: &mut Touched) {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let known = self.slots.find(name).filter(|slot| self.clusters.get(*slot).is_some());
        let slot = known.unwrap_or_else(|| self.slots.hold(name));
        let new_taints: Box<[CarriedTaint]> = parts.taints.iter().map(|taint| self.carry(taint)).collect();
        self.replace_cluster(slot, Some((parts, new_taints)), touched);
    }

    fn drop_cluster(&mut self, name: &str, touched: &mut Touched) {
        let Some(slot) = self.slots.find(name).filter(|slot| self.clusters.get(*slot).is_some()) else {
            return;
        };
        self.replace_cluster(slot, None, touched);
        self.slots.release(slot);
    }

    fn carry(&mut self, taint: &berth_api::Taint) -> CarriedTaint {
        let added = taint.time_added.as_ref().map(|time| Moment::from_timestamp(time.0));
        let id = self.standings.hold_taint(Taint {
            key: taint.key.as_str().into(),
            value: taint.value().into(),
            effect: ClusterEffect::parse(taint.effect.as_str()),
            added: None,
        });
        CarriedTaint { id, added }
    }

    fn replace_cluster(
        &mut self,
        slot: Slot,
        parts: Option<(Parts<'_>, Box<[CarriedTaint]>)>,
        touched: &mut Touched,
    ) {
        let (old_labels, old_claims) = match self.clusters.get(slot) {
            Some(record) => (record.labels.clone(), record.claims.clone()),
            None => Default::default(),
        };
        let (labels, label_keys) = self.clusters.labels.replace(
            slot,
            &old_labels,
            parts
                .iter()
                .flat_map(|(parts, _)| parts.labels.into_iter().flatten())
                .map(|(key, value)| (key.as_str(), value.as_str())),
        );
        let claims = parts.iter().flat_map(|(parts, _)| parts.claims);
        let (claims, claim_keys) = self.clusters.claims.replace(
            slot,
            &old_claims,
            claims.map(|claim| {
                (claim.name.as_deref().unwrap_or_default(), claim.value.as_deref().unwrap_or_default())
            }),
        );
        let record = parts.map(|(parts, taints)| Cluster {
            labels,
            claims,
            taints,
            cpu: parts.cpu,
            memory: parts.memory,
            available: parts.available,
            deleting: parts.deleting,
            rest: parts.rest,
        });
        let before = self.clusters.put(slot, record);
        let after = self.clusters.get(slot);
        let empty: &[CarriedTaint] = &[];
        let old_taints = before.as_ref().map_or(empty, |record| &record.taints);
        let new_taints = after.map_or(empty, |record| &record.taints);
        let mut shifted = Vec::new();
        let retainted = old_taints != new_taints;
        if retainted {
            self.standings.retaint(slot, old_taints, new_taints, |class, shift| shifted.push((class, shift)));
        }
        let existence = |record: Option<&Cluster>| record.map(|record| record.deleting);
        let names = |facet: Facet, keys: &[super::facets::KeyId], facets: &super::facets::Facets| {
            keys.iter().map(|key| (facet, facets.key_name(*key).clone())).collect::<Vec<_>>()
        };
        let mut keys = names(Facet::Label, &label_keys, &self.clusters.labels);
        keys.extend(names(Facet::Claim, &claim_keys, &self.clusters.claims));
        let same_rest = match (&before, after) {
            (Some(before), Some(after)) => before.rest.is_same(&after.rest),
            (None, None) => true,
            _ => false,
        };
        let seen = Seen {
            all: existence(before.as_deref()) != existence(after),
            object: !same_rest || !keys.is_empty() || retainted,
            scores: false,
            keys,
        };
        if retainted {
            self.moved(slot);
        }
        self.look_again(slot, &seen, touched);
        if seen.all {
            // What is kept of a decision that cannot be made anew depends on whether a cluster is there at all.
            self.touch_holders(slot, touched);
        }
        self.touch_shifted(slot, &shifted, touched);
        self.touch_keys(slot, &seen.keys, touched);
        self.touch_facts(slot, before.as_deref(), self.clusters.get(slot), touched);
        for carried in before.iter().flat_map(|record| &record.taints) {
            self.standings.release_taint(carried.id);
        }
    }

    fn put_set(&mut self, set: &ManagedClusterSet, touched: &mut Touched) {
        let name: Arc<str> = set.metadata.name.as_deref().unwrap_or_default().into();
        let members = match term_of(set) {
            Err(why) => Members::Broken(why),
            Ok(None) => Members::Nobody,
            Ok(Some(term)) => {
                let Self { slots, clusters, standings, scores, terms, clock, .. } = &mut *self;
                let lens = super::Lens { slots, clusters, standings, scores, now: *clock };
                Members::Matching(terms.hold(&Arc::new(term), &User::Set(&name), lens))
            }
        };
        self.replace_set(&name, Some(members), touched);
    }

    fn replace_set(&mut self, name: &Arc<str>, members: Option<Members>, touched: &mut Touched) {
        let before = self.sets.sets.remove(name);
        let same = before.as_ref().map(|set| &set.members) == members.as_ref();
        let users = match members {
            Some(members) => {
                let users = before.as_ref().map(|set| set.users.clone()).unwrap_or_default();
                self.sets.sets.insert(name.clone(), Set { members, users: users.clone() });
                users
            }
            None => before.as_ref().map(|set| set.users.clone()).unwrap_or_default(),
        };
        // The placements must stop reading the old term before it is given back.
        let namespaces = if same { Vec::new() } else { self.sets.namespaces_bound_to(name) };
        for namespace in namespaces {
            for id in self.placements.in_namespace(&namespace) {
                if self.refresh_eligible(id) || users.contains(&id) {
                    touched.add(id);
                }
            }
        }
        if let Some(Members::Matching(term)) = before.map(|set| set.members) {
            self.terms.release(term, &User::Set(name));
        }
    }

    fn put_binding(&mut self, binding: &ManagedClusterSetBinding, touched: &mut Touched) {
        let key = ObjectKey::of(&binding.metadata);
        let counts = match binding.cluster_set() {
            Some(set) if *set == *key.name => Ok(()),
            set => Err(format!(
                "spec.clusterSet is {:?}; it must equal the binding's name, {:?}",
                set.unwrap_or_default(),
                key.name
            )),
        };
        self.sets.bindings.entry(key.namespace.clone()).or_default().insert(key.name, counts);
        self.refresh_namespace(&key.namespace, touched);
    }

    fn drop_binding(&mut self, key: &ObjectKey, touched: &mut Touched) {
        if let Some(bindings) = self.sets.bindings.get_mut(&key.namespace) {
            bindings.remove(&key.name);
            if bindings.is_empty() {
                self.sets.bindings.remove(&key.namespace);
            }
        }
        self.refresh_namespace(&key.namespace, touched);
    }

    fn refresh_namespace(&mut self, namespace: &Arc<str>, touched: &mut Touched) {
        for id in self.placements.in_namespace(namespace) {
            if self.refresh_eligible(id) {
                touched.add(id);
            }
        }
    }

    /// Finds the sets of a placement again; whether they changed.
    fn refresh_eligible(&mut self, id: PlacementId) -> bool {
        let entry = self.placements.get(id);
        let eligible = self.sets.eligible(&entry.key.namespace, &entry.asked);
        if eligible == entry.eligible {
            return false;
        }
        let before = self.placements.set_eligible(id, eligible);
        self.thresholds.forget(id);
        let after = &self.placements.get(id).eligible;
        for (set, _) in &before.sets {
            if let Some(set) = self.sets.sets.get_mut(set) {
                set.users.retain(|user| *user != id);
            }
        }
        for (set, _) in &after.sets {
            if let Some(set) = self.sets.sets.get_mut(set) {
                set.users.push(id);
            }
        }
        true
    }

    pub(super) fn put_placement(&mut self, placement: &Placement, touched: &mut Touched) {
        let mut key = ObjectKey::of(&placement.metadata);
        key.namespace = self.placements.namespace(&key.namespace);
        let rule = compile(placement).map(Arc::new).map_err(Arc::<[_]>::from);
        let asked: Box<[Box<str>]> =
            placement.spec.cluster_sets.iter().flatten().map(|set| set.as_str().into()).collect();
        let idle = placement.is_deleting() || placement.is_scheduling_disabled();
        let identity = Identity {
            uid: placement.metadata.uid.as_deref().map(Into::into),
            generation: placement.metadata.generation,
            score_rate_limit: placement.spec.score_rate_limit.as_deref().map(Into::into),
        };
        let mut chosen = None;
        if let Some(id) = self.placements.find(&key) {
            let entry = self.placements.get(id);
            if entry.rule == rule && entry.asked == asked && entry.idle == idle && entry.identity == identity
            {
                return;
            }
            chosen = self.unwire(id).chosen;
        }
        touched.add(self.wire(Entry::loose(key, rule, asked, identity, idle, chosen)));
    }

    /// Takes a placement in and wires it to what it depends on. It is entered first and wired step by step, so that one
    /// that is left half way can be taken out whole.
    pub(super) fn wire(&mut self, entry: Entry) -> PlacementId {
        let id = self.placements.reserve();
        // The number may have been another's, or its own with another rule.
        self.thresholds.forget(id);
        for slot in entry.chosen.iter().flatten() {
            self.chosen_by.entry(Slot(slot)).or_default().push(id);
        }
        let rule = entry.rule.as_ref().ok().cloned();
        self.placements.put(id, entry);
        if let Some(rule) = rule {
            let Self { slots, clusters, standings, scores, terms, placements, clock, .. } = &mut *self;
            let lens = super::Lens { slots, clusters, standings, scores, now: *clock };
            for term in &rule.predicates {
                let held = terms.hold(term, &User::Placement(id), lens);
                placements.get_mut(id).terms.push(held);
            }
            self.weigh(&[id]);
            self.ask_open(None);
            let class = self.standings.hold_class(&rule.tolerations, id, self.clusters.carriers());
            self.placements.set_class(id, class);
        }
        self.refresh_eligible(id);
        // Whoever takes it in knows of it.
        self.ripe.remove(id);
        id
    }

    /// Takes a placement out with everything it is wired to.
    pub(super) fn unwire(&mut self, id: PlacementId) -> Entry {
        let entry = self.placements.take(id);
        self.ripe.remove(id);
        for term in &entry.terms {
            self.terms.release(*term, &User::Placement(id));
        }
        if let Some(class) = entry.class {
            self.standings.release_class(class, id);
        }
        for (set, _) in &entry.eligible.sets {
            if let Some(set) = self.sets.sets.get_mut(set) {
                set.users.retain(|user| *user != id);
            }
        }
        for slot in entry.chosen.iter().flatten() {
            forget(&mut self.chosen_by, Slot(slot), &id);
        }
        entry
    }

    fn drop_placement(&mut self, key: &PlacementKey) {
        if let Some(id) = self.placements.find(key) {
            self.unwire(id);
        }
    }

    fn put_decision(&mut self, decision: &PlacementDecision, touched: &mut Touched) {
        let key = ObjectKey::of(&decision.metadata);
        let owner = decision
            .placement_name()
            .map(|name| PlacementKey { namespace: key.namespace.clone(), name: name.into() });
        let clusters =
            decision.decisions().iter().map(|decision| self.slots.hold(&decision.cluster_name)).collect();
        self.replace_decision(&key, Some((owner, clusters)), touched);
    }

    fn replace_decision(
        &mut self,
        key: &ObjectKey,
        content: Option<(Option<PlacementKey>, Box<[Slot]>)>,
        touched: &mut Touched,
    ) {
        let (new_owner, new_clusters) = content.clone().unwrap_or_default();
        let (old_owner, old_clusters) = self.decisions.replace(key, content);
        let slots = |clusters: &[Slot]| clusters.iter().map(|slot| slot.0).collect::<RoaringBitmap>();
        let (old_slots, new_slots) = (slots(&old_clusters), slots(&new_clusters));
        // A slice that is written again with one cluster more changes the standing of one cluster; so does one that names
        // a cluster once which it named twice, for both count as load.
        let moved = if old_owner == new_owner {
            let repeats = |slots: &RoaringBitmap, clusters: &[Slot]| slots.len() < clusters.len() as u64;
            let mut moved = &old_slots ^ &new_slots;
            if repeats(&old_slots, &old_clusters) || repeats(&new_slots, &new_clusters) {
                let times = |clusters: &[Slot]| {
                    clusters.iter().fold(HashMap::<u32, usize>::new(), |mut times, slot| {
                        *times.entry(slot.0).or_default() += 1;
                        times
                    })
                };
                let (old_times, new_times) = (times(&old_clusters), times(&new_clusters));
                let differs = |slot: &u32| old_times.get(slot) != new_times.get(slot);
                moved |= (old_slots & new_slots).iter().filter(differs).collect::<RoaringBitmap>();
            }
            moved
        } else {
            old_slots | new_slots
        };
        for slot in &moved {
            self.moved(Slot(slot));
        }
        for (slot, owner) in old_clusters.iter().filter_map(|slot| Some((slot, old_owner.as_ref()?))) {
            forget(&mut self.held_by, *slot, owner);
        }
        for (slot, owner) in new_clusters.iter().filter_map(|slot| Some((slot, new_owner.as_ref()?))) {
            self.held_by.entry(*slot).or_default().push(owner.clone());
        }
        for owner in old_owner.iter().chain(&new_owner) {
            let Some(id) = self.placements.find(owner) else { continue };
            self.thresholds.forget(id);
            // Our own write coming back says nothing new, unless what is written or chosen depends on what is held.
            let reads_holdings =
                self.placements.get(id).rule.as_ref().is_ok_and(|rule| rule.reads_holdings());
            if reads_holdings && !moved.is_empty() {
                touched.add(id);
            }
            let holds = self.decisions.of(owner).map(|holdings| &holdings.clusters);
            let chosen = self.placements.get(id).chosen.as_ref();
            let as_chosen = match (chosen, holds) {
                (Some(chosen), Some(holds)) => chosen == holds,
                (Some(chosen), None) => chosen.is_empty() && old_clusters.is_empty(),
                (None, _) => false,
            };
            if !as_chosen {
                touched.add(id);
            }
        }
        for slot in &old_clusters {
            self.slots.release(*slot);
        }
    }

    fn put_score(&mut self, score: &AddOnPlacementScore, touched: &mut Touched) {
        let scores = Scores {
            ends: score
                .valid_until()
                .map_or(Moment::NEVER, |until| Moment::from_timestamp(until).just_after()),
            items: score
                .scores()
                .iter()
                .map(|item| (item.name.as_str().into(), i64::from(item.value)))
                .collect(),
        };
        self.replace_score(&ObjectKey::of(&score.metadata), Some(scores), touched);
    }

    fn replace_score(&mut self, key: &ObjectKey, scores: Option<Scores>, touched: &mut Touched) {
        let slot = self.slots.hold(&key.namespace);
        let had = self.scores.get(slot, &key.name).is_some();
        let has = scores.is_some();
        if self.scores.replace(slot, &key.name, scores) {
            self.look_again(slot, &Seen { scores: true, ..Seen::default() }, touched);
            self.touch_readers(slot, touched);
            for id in self.placements.interested_in_score(&key.name) {
                if self.is_candidate(*id, slot) {
                    touched.add(*id);
                }
            }
        }
        // One use of the slot stands for each score object; the one taken above becomes it or goes back.
        if had || !has {
            self.slots.release(slot);
        }
        if had && !has {
            self.slots.release(slot);
        }
    }
}
