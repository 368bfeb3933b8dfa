//! What clusters have to rank before, placement by placement, as far as somebody looked.
//!
//! Owns the [`Threshold`]s found since the clusters that a placement chose last moved, and who is to be forgotten when
//! one of them does. Beside the placements and not in them: a taint that is taken off asks for those of half the
//! placements and needs nothing else of nearly all of these. It never decides.

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::Model;
use super::placements::PlacementId;
use super::slots::Slot;
use crate::select::{Newcomer, Threshold, judge};

#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    /// Indexed by `PlacementId`; unknown beyond the end.
    known: Vec<Threshold>,
    /// Whose threshold was found by looking at a cluster. Everybody of whom one is known is here for each cluster it chose;
    /// some are here who were forgotten since. So what a move costs was paid by who looked.
    by_slot: HashMap<Slot, RoaringBitmap>,
}

impl Thresholds {
    /// What is known of a placement is not to be relied on any more.
    pub(crate) fn forget(&mut self, id: PlacementId) {
        if let Some(threshold) = self.known.get_mut(id.0 as usize) {
            *threshold = Threshold::Unknown;
        }
    }

    /// The same for everybody who chose a cluster that moved.
    pub(crate) fn moved(&mut self, slot: Slot) {
        for id in self.by_slot.remove(&slot).into_iter().flatten() {
            self.forget(PlacementId(id));
        }
    }

    /// Whether a placement may select a cluster that became better. Of whoever chose or holds that cluster nothing is known
    /// here: it moved, and that was told before.
    pub(crate) fn let_in(
        &mut self,
        model: &Model,
        id: PlacementId,
        newcomer: &Newcomer,
        is_shunned: bool,
    ) -> bool {
        let known = self.known.get(id.0 as usize);
        if let Some(may_enter) = known.and_then(|threshold| threshold.lets_in(newcomer, is_shunned)) {
            debug_assert_eq!(
                may_enter,
                judge(model, id, newcomer).0,
                "what is kept equals what is found anew"
            );
            return may_enter;
        }
        let (may_enter, threshold) = judge(model, id, newcomer);
        self.keep(model, id, threshold);
        may_enter
    }

    fn keep(&mut self, model: &Model, id: PlacementId, threshold: Threshold) {
        let place = id.0 as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, Threshold::Unknown);
        }
        self.known[place] = threshold;
        if matches!(threshold, Threshold::Last(_)) {
            for slot in model.placements.get(id).chosen.iter().flatten() {
                self.by_slot.entry(Slot(slot)).or_default().insert(id.0);
            }
        }
    }
}
