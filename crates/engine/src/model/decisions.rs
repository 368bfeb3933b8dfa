//! The decisions that exist: who holds which cluster now.
//!
//! Owns the PlacementDecisions in sight and what is derived from them: the clusters each placement holds (Steady,
//! NoSelectIfNew) and how many decisions hold each cluster (Balance), kept by difference so that no decision ever
//! counts the whole fleet again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::key::{ObjectKey, PlacementKey};
use super::slots::Slot;

#[derive(Debug)]
struct Held {
    owner: Option<PlacementKey>,
    clusters: Box<[Slot]>,
}

/// What one placement holds.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    /// Its PlacementDecisions, by name.
    pub(crate) objects: BTreeSet<Arc<str>>,
    /// The clusters in them.
    pub(crate) clusters: RoaringBitmap,
    /// How often each is in them: once, unless somebody else wrote there.
    pub(crate) times: BTreeMap<Slot, u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Decisions {
    objects: HashMap<ObjectKey, Held>,
    holdings: HashMap<PlacementKey, Holdings>,
    /// How many decisions name each cluster; indexed by slot.
    load: Vec<u32>,
    /// How many clusters have each load above zero.
    histogram: BTreeMap<u32, u32>,
}

impl Decisions {
    /// Replaces one object's content (`None`: it is gone). The clusters it named and the owner it had come back;
    /// every slot in either list may have a new load.
    pub(crate) fn replace(
        &mut self,
        key: &ObjectKey,
        content: Option<(Option<PlacementKey>, Box<[Slot]>)>,
    ) -> (Option<PlacementKey>, Box<[Slot]>) {
        let mut before = (None, Box::default());
        if let Some(held) = self.objects.remove(key) {
            for slot in &held.clusters {
                self.count(*slot, false);
            }
            if let Some(owner) = &held.owner {
                self.change_holdings(owner, &key.name, &held.clusters, false);
            }
            before = (held.owner, held.clusters);
        }
        if let Some((owner, clusters)) = content {
            for slot in &clusters {
                self.count(*slot, true);
            }
            if let Some(owner) = &owner {
                self.change_holdings(owner, &key.name, &clusters, true);
            }
            self.objects.insert(key.clone(), Held { owner, clusters });
        }
        before
    }

    fn count(&mut self, slot: Slot, more: bool) {
        if self.load.len() <= slot.index() {
            self.load.resize(slot.index() + 1, 0);
        }
        let load = &mut self.load[slot.index()];
        let before = *load;
        *load = if more { before + 1 } else { before - 1 };
        let after = *load;
        if before > 0
            && let Some(clusters) = self.histogram.get_mut(&before)
        {
            *clusters -= 1;
            if *clusters == 0 {
                self.histogram.remove(&before);
            }
        }
        if after > 0 {
            *self.histogram.entry(after).or_default() += 1;
        }
    }

    fn change_holdings(&mut self, owner: &PlacementKey, object: &Arc<str>, clusters: &[Slot], more: bool) {
        let holdings = self.holdings.entry(owner.clone()).or_default();
        if more {
            holdings.objects.insert(object.clone());
        } else {
            holdings.objects.remove(object);
        }
        for slot in clusters {
            let times = holdings.times.entry(*slot).or_default();
            if more {
                *times += 1;
            } else {
                *times -= 1;
            }
            if *times == 0 {
                holdings.times.remove(slot);
                holdings.clusters.remove(slot.0);
            } else {
                holdings.clusters.insert(slot.0);
            }
        }
        if holdings.objects.is_empty() {
            self.holdings.remove(owner);
        }
    }

    /// What `owner` holds; `None` if nothing of it exists.
    pub(crate) fn of(&self, owner: &PlacementKey) -> Option<&Holdings> {
        self.holdings.get(owner)
    }

    /// How many decisions name `slot`.
    pub(crate) fn load(&self, slot: Slot) -> u32 {
        self.load.get(slot.index()).copied().unwrap_or_default()
    }

    /// How many decisions other than `own` name `slot`.
    pub(crate) fn foreign_load(&self, slot: Slot, own: Option<&Holdings>) -> u32 {
        self.load(slot) - own.and_then(|own| own.times.get(&slot)).copied().unwrap_or_default()
    }

    /// The highest load of any cluster in the world, and how many have it. Clusters without load are not counted: there are
    /// more of them than anybody could hold.
    pub(crate) fn peak(&self) -> (u32, u32) {
        self.histogram.last_key_value().map_or((0, u32::MAX), |(load, clusters)| (*load, *clusters))
    }

    /// The highest foreign load of any cluster in the world, whether it may be selected or not.
    pub(crate) fn highest_foreign_load(&self, own: Option<&Holdings>) -> u32 {
        let Some(own) = own else {
            return self.peak().0;
        };
        let mut own_at: BTreeMap<u32, u32> = BTreeMap::new();
        let mut highest = 0;
        for slot in own.times.keys() {
            *own_at.entry(self.load(*slot)).or_default() += 1;
            highest = highest.max(self.foreign_load(*slot, Some(own)));
        }
        let strangers = self
            .histogram
            .iter()
            .rev()
            .find(|(load, clusters)| **clusters > own_at.get(load).copied().unwrap_or_default())
            .map_or(0, |(load, _)| *load);
        highest.max(strangers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "ns".into(), name: name.into() }
    }

    #[test]
    fn the_highest_foreign_load_leaves_out_what_the_asker_holds() {
        let mut decisions = Decisions::default();
        let (me, other) = (key("me"), key("other"));
        decisions.replace(&key("me-1"), Some((Some(me.clone()), [Slot(1), Slot(2)].into())));
        decisions.replace(&key("o-1"), Some((Some(other), [Slot(1)].into())));
        assert_eq!(decisions.load(Slot(1)), 2);
        assert_eq!(decisions.highest_foreign_load(decisions.of(&me)), 1);
        assert_eq!(decisions.highest_foreign_load(None), 2);
        assert_eq!(decisions.foreign_load(Slot(2), decisions.of(&me)), 0);
        decisions.replace(&key("me-1"), None);
        assert!(decisions.of(&me).is_none());
        assert_eq!(decisions.highest_foreign_load(None), 1);
    }
}
