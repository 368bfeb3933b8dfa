//! What a change would move: the clusters that leave placements because of it, before anybody makes it.
//!
//! Owns comparing what would be decided with a change and without it. Never decides anything that counts: the change is a
//! trial, and the model decides afterwards as it did before. What is said of a change is `words`' business.

mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Delta, Model, PlacementKey, Trial};
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
    /// Whether not all placements that are touched were looked at: there are so many, or their expressions cost so much.
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

/// What would leave at `now` if `change` came in, as far as the model's patience goes. `undo` is the same object as the
/// model has it. A cluster leaves a placement when its PlacementDecisions hold it, it would be selected without the
/// change, and would not be with it.
pub fn impact(model: &mut Model, change: &Delta, undo: Delta, now: Moment) -> Impact {
    let mut impact = Impact::default();
    if let Delta::PlacementGone(key) = change {
        // Its decisions go with it, whatever they are.
        impact.lose(key, model.held(key).into_iter().collect());
        return impact;
    }
    let most = (WORK_MAX / model.clusters().count().max(1)).max(1);
    let (mut trial, mut touched) = Trial::of_change(model, change, undo);
    impact.is_partial = touched.len() > most;
    touched.truncate(most);
    let after: Vec<Option<Decision>> =
        touched.iter().map(|key| decided(&mut trial, key, now, &mut impact.is_partial)).collect();
    drop(trial);
    for (key, after) in touched.iter().zip(after) {
        let before = decided(model, key, now, &mut impact.is_partial);
        let (Some(before), Some(after)) = (before, after) else { continue };
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

/// What would be decided. A placement that would have to wait for its expressions is not looked at, and nobody waits for it.
fn decided(
    model: &mut Model,
    placement: &PlacementKey,
    now: Moment,
    is_partial: &mut bool,
) -> Option<Decision> {
    if model.is_waiting(placement) {
        *is_partial = true;
        return None;
    }
    model.decide_afresh(placement, now)
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
