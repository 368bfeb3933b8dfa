//! Scores that add-ons publish about clusters.
//!
//! Owns the content of the AddOnPlacementScores in sight and when each ceases to be valid. A score is valid up to
//! and including its `validUntil`; from the next instant on it counts as not being there.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use super::slots::Slot;
use crate::moment::Moment;

/// One AddOnPlacementScore.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scores {
    /// The first moment at which it is no longer valid.
    pub(crate) ends: Moment,
    /// Name and value of each score; the first of a name counts.
    pub(crate) items: Box<[(Arc<str>, i64)]>,
}

impl Scores {
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        self.items.iter().find(|(other, _)| **other == *name).map(|(_, value)| *value)
    }

    pub(crate) fn expired(&self, now: Moment) -> bool {
        now >= self.ends
    }
}

#[derive(Debug, Default)]
pub(crate) struct ScoreTable {
    by_resource: HashMap<Arc<str>, HashMap<Slot, Scores>>,
    /// When scores end, to find those that ended between two moments.
    ends: BTreeSet<(Moment, Slot, Arc<str>)>,
}

impl ScoreTable {
    /// Replaces one object (`None`: it is gone); whether anything changed.
    pub(crate) fn replace(&mut self, slot: Slot, resource: &Arc<str>, scores: Option<Scores>) -> bool {
        let table = self.by_resource.entry(resource.clone()).or_default();
        let before = table.get(&slot);
        if before == scores.as_ref() {
            if table.is_empty() {
                self.by_resource.remove(resource);
            }
            return false;
        }
        if let Some(before) = before {
            self.ends.remove(&(before.ends, slot, resource.clone()));
        }
        match scores {
            Some(scores) => {
                if scores.ends.is_finite() {
                    self.ends.insert((scores.ends, slot, resource.clone()));
                }
                table.insert(slot, scores);
            }
            None => {
                table.remove(&slot);
            }
        }
        if table.is_empty() {
            self.by_resource.remove(resource);
        }
        true
    }

    /// All scores published under one resource name.
    pub(crate) fn of(&self, resource: &str) -> Option<&HashMap<Slot, Scores>> {
        self.by_resource.get(resource)
    }

    /// The scores of one cluster under one resource name.
    pub(crate) fn get(&self, slot: Slot, resource: &str) -> Option<&Scores> {
        self.of(resource)?.get(&slot)
    }

    /// Clusters with a score that ended after `from` and up to `to`.
    pub(crate) fn ended_between(&self, from: Moment, to: Moment) -> Vec<Slot> {
        let after = (from.just_after(), Slot(0), Arc::from(""));
        let mut slots: Vec<Slot> =
            self.ends.range(after..).take_while(|(end, ..)| *end <= to).map(|(_, slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The names of all resources with scores for `slot`.
    pub(crate) fn resources_of(&self, slot: Slot) -> impl Iterator<Item = (&Arc<str>, &Scores)> {
        self.by_resource.iter().filter_map(move |(name, table)| table.get(&slot).map(|scores| (name, scores)))
    }
}
