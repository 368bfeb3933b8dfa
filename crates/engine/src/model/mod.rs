//! The fleet, indexed.
//!
//! Owns everything the engine knows of the world and keeps it by difference: a [`Delta`] goes in, the placements
//! whose decision may have changed come out. How a decision is made is `select`'s business, why is `explain`'s.
//!
//! ```text
//!   ManagedCluster ---> slots, facets (labels, claims), standing (taints x tolerations)
//!        ManagedClusterSet --> terms --> members    Binding --> which sets a namespace may use
//!        Placement --> rule, terms, class           PlacementDecision --> holdings, loads
//!        AddOnPlacementScore --> scores
//! ```
//!
//! A change that no placement can notice touches nothing; that is decided here, by the indexes, before any decision
//! is computed.

mod apply;
mod asking;
mod changes;
mod clusters;
mod decisions;
mod delta;
mod facets;
mod key;
mod lens;
mod meter;
mod placements;
mod posting;
mod scores;
mod sets;
mod slots;
mod standing;
mod terms;
mod thresholds;
mod touch;
mod trial;

use std::sync::Arc;

use hashbrown::HashMap;

pub use delta::{Delta, DeltaRef};
pub use key::{ObjectKey, PlacementKey};
pub(crate) use slots::Slot;
pub use touch::Touched;

pub(crate) use asking::ASK_COST;
pub(crate) use changes::Cursor;
pub(crate) use decisions::Holdings;
pub(crate) use lens::Lens;
pub(crate) use meter::{ALLOWANCE, FREE_SHARE};
pub(crate) use placements::{Entry, PlacementId};
pub(crate) use scores::Scores;
pub(crate) use sets::{Members, term_of};
pub(crate) use standing::{Class, ClassId};
pub(crate) use trial::Trial;

use crate::moment::Moment;
use crate::select::{Complaint, Decision};

/// The indexed fleet.
#[derive(Debug)]
pub struct Model {
    pub(crate) slots: slots::Slots,
    pub(crate) clusters: clusters::Clusters,
    pub(crate) standings: standing::Standings,
    pub(crate) terms: terms::Terms,
    pub(crate) sets: sets::Sets,
    pub(crate) placements: placements::Placements,
    pub(crate) decisions: decisions::Decisions,
    pub(crate) scores: scores::ScoreTable,
    pub(crate) changes: changes::ChangeLog,
    thresholds: thresholds::Thresholds,
    /// Who holds a cluster in decisions that exist.
    held_by: HashMap<Slot, Vec<PlacementKey>>,
    /// Who chose a cluster in the last decision, written or not.
    chosen_by: HashMap<Slot, Vec<PlacementId>>,
    /// The moment up to which expired scores are known to expressions.
    clock: Moment,
    /// Units of cost that expressions may still have before somebody else has a turn.
    pub(crate) patience: u64,
    /// The term that was asked last.
    asked_last: Option<terms::TermId>,
    /// Placements that may decide differently because of expressions that were asked, and of whom that was not told yet.
    ripe: Touched,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            slots: slots::Slots::default(),
            clusters: clusters::Clusters::default(),
            standings: standing::Standings::default(),
            terms: terms::Terms::default(),
            sets: sets::Sets::default(),
            placements: placements::Placements::default(),
            decisions: decisions::Decisions::default(),
            scores: scores::ScoreTable::default(),
            changes: changes::ChangeLog::default(),
            thresholds: thresholds::Thresholds::default(),
            held_by: HashMap::default(),
            chosen_by: HashMap::default(),
            clock: Moment::PAST,
            patience: u64::MAX,
            asked_last: None,
            ripe: Touched::default(),
        }
    }
}

impl Model {
    /// An empty world.
    pub fn new() -> Self {
        Self::default()
    }

    /// The placements in the model, in the order of their keys.
    pub fn placements(&self) -> impl Iterator<Item = &PlacementKey> {
        self.placements.iter().map(|(key, _)| key)
    }

    /// The names of all clusters that exist, in order.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.slots.in_order().filter(|(_, slot)| self.clusters.get(*slot).is_some()).map(|(name, _)| name)
    }

    /// What expressions of placements have cost so far, in units of `berth_cel`.
    pub fn expression_cost(&self) -> u64 {
        self.terms.cost()
    }

    pub(crate) fn name(&self, slot: Slot) -> &Arc<str> {
        self.slots.name(slot)
    }

    /// The names of the clusters a placement holds in the PlacementDecisions of the model, in order.
    pub fn held(&self, placement: &PlacementKey) -> Vec<Arc<str>> {
        let mut held: Vec<_> = self
            .decisions
            .of(placement)
            .into_iter()
            .flat_map(|holdings| holdings.times.keys())
            .map(|slot| self.name(*slot).clone())
            .collect();
        held.sort_unstable();
        held
    }

    /// Decides one placement at `now`, using whatever can be kept from the last time. `None` if there is no such
    /// placement, or it is to be left alone (being deleted, or switched off by annotation).
    ///
    /// The result equals [`Model::decide_afresh`]; only the cost differs.
    pub fn decide(&mut self, placement: &PlacementKey, now: Moment) -> Option<Decision> {
        let id = self.placements.find(placement)?;
        // Who else is touched by the passing of time is asked with `advance`.
        let _ = self.move_clock(now);
        self.finish(id);
        let mut ranking = self.placements.get_mut(id).ranking.take();
        let decision = crate::select::decide(self, id, now, Some(&mut ranking));
        self.placements.get_mut(id).ranking = ranking;
        if let Some(decision) = &decision {
            self.remember(id, decision);
        }
        decision
    }

    /// Decides one placement at `now` from nothing but the indexed facts.
    pub fn decide_afresh(&mut self, placement: &PlacementKey, now: Moment) -> Option<Decision> {
        let id = self.placements.find(placement)?;
        // Who else is touched by the passing of time is asked with `advance`.
        let _ = self.move_clock(now);
        self.finish(id);
        crate::select::decide(self, id, now, None)
    }

    /// What in a placement works but hardly means what was meant.
    pub fn hints(&self, placement: &PlacementKey) -> &[Complaint] {
        let entry = self.placements.find(placement).map(|id| self.placements.get(id));
        entry.and_then(|entry| entry.rule.as_ref().ok()).map_or(&[], |rule| &rule.hints)
    }

    pub(crate) fn lens(&self) -> Lens<'_> {
        Lens {
            slots: &self.slots,
            clusters: &self.clusters,
            standings: &self.standings,
            scores: &self.scores,
            now: self.clock,
        }
    }
}
