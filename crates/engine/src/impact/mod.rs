//! What a change would move: the clusters that leave placements because of it, before anybody makes it.
//!
//! Owns trying a change on the model and taking it back. Never decides anything that counts: the model decides afterwards
//! as it did before. What is said of a change is `words`' business.

mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Delta, Model, PlacementKey};
use crate::moment::Moment;
use crate::select::{Cause, Decision, NextChange};

/// How much is looked at, in clusters times placements: a change that touches more is looked at in part, because
/// whoever makes it waits.
const WORK_MAX: usize = 500_000;

/// What leaves because of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impact {
    /// The clusters that leave at least one placement.
    pub clusters: BTreeSet<Arc<str>>,
    /// The placements they leave, and how many leave each: most first, then by name.
    pub losses: Vec<(PlacementKey, usize)>,
    /// How many other placements lose a cluster later, when a toleration ends that only this change makes run, and when the
    /// first of them does.
    pub later: Option<(usize, Moment)>,
    /// Whether so many placements are touched that not all were looked at.
    pub is_partial: bool,
}

impl Impact {
    /// Whether nothing leaves, as far as was looked.
    pub fn is_none(&self) -> bool {
        self.losses.is_empty() && self.later.is_none()
    }

    fn lose(&mut self, placement: &PlacementKey, leaving: BTreeSet<Arc<str>>) {
        if !leaving.is_empty() {
            self.losses.push((placement.clone(), leaving.len()));
            self.clusters.extend(leaving);
        }
    }

    fn settled(mut self) -> Self {
        self.losses.sort_by(|(one, much), (other, more)| more.cmp(much).then_with(|| one.cmp(other)));
        self
    }
}

/// What would leave at `now` if `change` came in. `undo` is the same object as the model has it. A cluster leaves a
/// placement when its PlacementDecisions hold it, it would be selected without the change, and would not be with it.
pub fn impact(model: &mut Model, change: Delta, undo: Delta, now: Moment) -> Impact {
    let mut impact = Impact::default();
    if let Delta::PlacementGone(key) = &change {
        // Its decisions go with it, whatever they are.
        impact.lose(key, model.held(key).into_iter().collect());
        return impact;
    }
    let most = (WORK_MAX / model.clusters().count().max(1)).max(1);
    let tried = Tried { undo: Some(undo), model: &mut *model };
    let mut touched: Vec<PlacementKey> = tried.model.apply(change).keys(tried.model).cloned().collect();
    impact.is_partial = touched.len() > most;
    touched.truncate(most);
    let after: Vec<Option<Decision>> =
        touched.iter().map(|key| tried.model.decide_afresh(key, now)).collect();
    drop(tried);
    for (key, after) in touched.iter().zip(after) {
        let (Some(before), Some(after)) = (model.decide_afresh(key, now), after) else { continue };
        let (had, has) = (picks(&before), picks(&after));
        let leaves = |cluster: &Arc<str>| had.contains(cluster) && !has.contains(cluster);
        let leaving: BTreeSet<_> = model.held(key).into_iter().filter(leaves).collect();
        if !leaving.is_empty() {
            impact.lose(key, leaving);
        } else if let Some(at) = leave(&after).filter(|at| leave(&before).is_none_or(|then| *at < then)) {
            let (count, first) = impact.later.unwrap_or((0, at));
            impact.later = Some((count + 1, first.min(at)));
        }
    }
    impact.settled()
}

/// The model with a change in it that nobody has made. It is taken back however the trial ends: who is decided next must
/// never be decided by it.
struct Tried<'m> {
    model: &'m mut Model,
    undo: Option<Delta>,
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
            // Whom that touches would decide as before, because it is as before.
            let _ = self.model.apply(undo);
        }
    }
}

fn picks(decision: &Decision) -> BTreeSet<Arc<str>> {
    decision.picks.iter().map(|pick| pick.cluster.clone()).collect()
}

/// When a cluster leaves by time alone.
fn leave(decision: &Decision) -> Option<Moment> {
    match decision.next {
        Some(NextChange { at, cause: Cause::TolerationEnds { .. }, .. }) => Some(at),
        _ => None,
    }
}
