//! Which placements a change concerns.
//!
//! Owns the reasoning from "this about a cluster changed" to "these placements may decide differently now". It errs
//! on the side of naming one too many; naming one too few would be a lost decision, and a property test looks for it.

use roaring::RoaringBitmap;

use super::Model;
use super::clusters::Cluster;
use super::key::PlacementKey;
use super::placements::PlacementId;
use super::slots::Slot;
use super::standing::{ClassId, Shift};
use super::terms::TermId;
use super::thresholds::Thresholds;
use crate::select::{Decision, Newcomer};
use crate::selector::Facet;

/// The placements that a change touched, each once and none that is to be left alone. Their names cost nothing until
/// they are asked for; ask before the next change.
#[derive(Clone, Debug, Default)]
pub struct Touched(Vec<PlacementId>);

impl Touched {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the change concerns nobody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their keys, in the order in which the model came to know them.
    pub fn keys<'m>(&'m self, model: &'m Model) -> impl Iterator<Item = &'m PlacementKey> {
        self.0.iter().filter_map(|id| model.placements.active(*id))
    }

    pub(crate) fn add(&mut self, id: PlacementId) {
        self.0.push(id);
    }

    pub(crate) fn contains(&self, id: PlacementId) -> bool {
        self.0.contains(&id)
    }

    pub(crate) fn remove(&mut self, id: PlacementId) {
        self.0.retain(|other| *other != id);
    }

    /// These and those.
    pub(crate) fn and(mut self, mut others: Self) -> Self {
        self.0.append(&mut others.0);
        self
    }

    /// Each once, and none that is to be left alone.
    pub(crate) fn settled(mut self, model: &Model) -> Self {
        self.0.sort_unstable();
        self.0.dedup();
        self.0.retain(|id| model.placements.active(*id).is_some());
        self
    }
}

impl Model {
    /// Whether the cluster is in a set of the placement and passes a predicate.
    pub(crate) fn is_candidate(&self, id: PlacementId, slot: Slot) -> bool {
        let entry = self.placements.get(id);
        self.admits(entry.eligible.sets.iter().filter_map(|(_, term)| term.as_ref()), &entry.terms, slot)
    }

    /// Whether a cluster is in any of `sets` and passes any of `terms`, if there are any.
    fn admits<'t>(&self, sets: impl IntoIterator<Item = &'t TermId>, terms: &[TermId], slot: Slot) -> bool {
        let matching = |term: &TermId| self.terms.get(*term).may_match(slot);
        sets.into_iter().any(matching) && (terms.is_empty() || terms.iter().any(matching))
    }

    /// Whoever has the cluster, in a decision that exists or in one just made.
    pub(crate) fn touch_holders(&self, slot: Slot, touched: &mut Touched) {
        for key in self.held_by.get(&slot).into_iter().flatten() {
            if let Some(id) = self.placements.find(key) {
                touched.add(id);
            }
        }
        for id in self.chosen_by.get(&slot).into_iter().flatten() {
            touched.add(*id);
        }
    }

    /// Looks at a candidate that became better, with what is known of who may select it apart, so that it can grow meanwhile.
    fn look_at(&mut self, slot: Slot, look: impl FnOnce(&Self, &mut Thresholds, &Newcomer)) {
        let mut thresholds = std::mem::take(&mut self.thresholds);
        look(self, &mut thresholds, &Newcomer::new(self, slot, self.clock));
        self.thresholds = thresholds;
    }

    fn is_relative(&self, id: PlacementId) -> bool {
        self.placements.get(id).rule.as_ref().is_ok_and(|rule| rule.is_relative())
    }

    /// Terms that turned for a cluster.
    pub(crate) fn touch_turned(&mut self, slot: Slot, turned: &[(TermId, bool)], touched: &mut Touched) {
        self.look_at(slot, |model, thresholds, newcomer| {
            model.find_turned(turned, newcomer, thresholds, touched);
        });
    }

    fn find_turned(
        &self,
        turned: &[(TermId, bool)],
        newcomer: &Newcomer,
        thresholds: &mut Thresholds,
        touched: &mut Touched,
    ) {
        let slot = newcomer.slot;
        let mut may_enter = |id: PlacementId| {
            let class = self.placements.get(id).class;
            let is_shunned = class.is_some_and(|class| newcomer.is_shunned(self, class));
            thresholds.let_in(self, id, newcomer, is_shunned)
        };
        for (term, gained) in turned {
            let entry = self.terms.get(*term);
            let set_users =
                entry.sets.iter().filter_map(|set| self.sets.sets.get(set)).flat_map(|set| &set.users);
            for id in entry.users.iter().chain(set_users) {
                // Who loses a candidate it does not hold decides as before, unless scores are relative.
                let concerned = if *gained {
                    self.is_candidate(*id, slot) && may_enter(*id)
                } else {
                    self.is_relative(*id)
                };
                if concerned {
                    touched.add(*id);
                }
            }
            // The first member or the last: the reason why nothing is selected may be another now.
            if entry.matching.len() == u64::from(*gained) {
                let set_users =
                    entry.sets.iter().filter_map(|set| self.sets.sets.get(set)).flat_map(|set| &set.users);
                set_users.for_each(|id| touched.add(*id));
            }
            if !gained {
                self.touch_holders(slot, touched);
            }
        }
    }

    /// Classes of tolerations with which a cluster's standing moved.
    pub(crate) fn touch_shifted(&mut self, slot: Slot, shifted: &[(ClassId, Shift)], touched: &mut Touched) {
        if shifted.is_empty() {
            return;
        }
        self.look_at(slot, |model, thresholds, newcomer| {
            model.find_shifted(shifted, newcomer, thresholds, touched);
        });
    }

    fn find_shifted(
        &self,
        shifted: &[(ClassId, Shift)],
        newcomer: &Newcomer,
        thresholds: &mut Thresholds,
        touched: &mut Touched,
    ) {
        let slot = newcomer.slot;
        for (class, shift) in shifted {
            match shift {
                Shift::Same => {}
                Shift::Better => {
                    let is_shunned = newcomer.is_shunned(self, *class);
                    let mut may_enter = |id: PlacementId| thresholds.let_in(self, id, newcomer, is_shunned);
                    for (scope, users) in self.placements.scopes(*class) {
                        if self.admits(&scope.sets, &scope.terms, slot) {
                            touched.0.extend(users.iter().filter(|id| may_enter(**id)));
                        }
                    }
                }
                Shift::Worse => {
                    self.touch_holders(slot, touched);
                    for id in self.placements.relative() {
                        if self.placements.get(*id).class == Some(*class) && self.is_candidate(*id, slot) {
                            touched.add(*id);
                        }
                    }
                }
            }
        }
    }

    /// Labels or claims that groups, spreading or anti-affinity look at.
    pub(crate) fn touch_keys(
        &self,
        slot: Slot,
        keys: &[(Facet, std::sync::Arc<str>)],
        touched: &mut Touched,
    ) {
        for (facet, key) in keys {
            for id in self.placements.interested_in_key(*facet, key) {
                if self.is_candidate(*id, slot) {
                    touched.add(*id);
                }
            }
        }
    }

    /// Facts that scores or optional fields are made of.
    pub(crate) fn touch_facts(
        &self,
        slot: Slot,
        before: Option<&Cluster>,
        after: Option<&Cluster>,
        touched: &mut Touched,
    ) {
        let resources = |cluster: Option<&Cluster>| cluster.map(|cluster| (cluster.cpu, cluster.memory));
        if resources(before) != resources(after) {
            for id in self.placements.interested_in_resources() {
                if self.is_candidate(*id, slot) {
                    touched.add(*id);
                }
            }
        }
        let available = |cluster: Option<&Cluster>| cluster.map(|cluster| cluster.available);
        if available(before) != available(after) {
            let mut holders = Touched::default();
            self.touch_holders(slot, &mut holders);
            for id in holders.0 {
                if self.placements.get(id).rule.as_ref().is_ok_and(|rule| rule.details.available) {
                    touched.add(id);
                }
            }
        }
    }

    /// A score that expressions read: whoever decided by it must look again for when it ends, matching or not.
    pub(crate) fn touch_readers(&self, slot: Slot, touched: &mut Touched) {
        let mut concerned = Touched::default();
        self.touch_holders(slot, &mut concerned);
        self.placements
            .relative()
            .iter()
            .filter(|id| self.is_candidate(**id, slot))
            .for_each(|id| concerned.add(*id));
        let reads = |id: &PlacementId| {
            let rule = self.placements.get(*id).rule.as_ref();
            rule.is_ok_and(|rule| rule.predicates.iter().any(|term| term.reads_scores()))
        };
        concerned.0.into_iter().filter(reads).for_each(|id| touched.add(id));
    }

    /// Keeps what a placement just chose, so that a change to one of these clusters finds it even before the
    /// decision is written.
    pub(super) fn remember(&mut self, id: PlacementId, decision: &Decision) {
        let chosen = decision.picks.iter().map(|pick| pick.slot.0).collect::<RoaringBitmap>();
        let before = self.placements.get_mut(id).chosen.replace(chosen).unwrap_or_default();
        let after = self.placements.get(id).chosen.as_ref().expect("set just above");
        if before == *after {
            return;
        }
        self.thresholds.forget(id);
        for slot in &before - after {
            forget(&mut self.chosen_by, Slot(slot), &id);
        }
        for slot in after - &before {
            self.chosen_by.entry(Slot(slot)).or_default().push(id);
        }
    }
}

/// Removes one entry from a list in a map, and the list with its last entry.
pub(super) fn forget<T: PartialEq>(map: &mut hashbrown::HashMap<Slot, Vec<T>>, slot: Slot, item: &T) {
    if let Some(list) = map.get_mut(&slot) {
        if let Some(place) = list.iter().position(|other| other == item) {
            list.swap_remove(place);
        }
        if list.is_empty() {
            map.remove(&slot);
        }
    }
}
