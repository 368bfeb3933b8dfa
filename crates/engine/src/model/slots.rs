//! Slots: the dense numbers by which the model knows clusters.
//!
//! Owns the two-way map between names and slots and, for every slot, a rank key whose order is the order of names,
//! so that ties break by name without comparing strings. A name has a slot while anything in the model speaks of
//! it: a ManagedCluster, a decision, a score.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A cluster name's number. Stable while the name is in use, then used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn index_u32(self) -> u32 {
        self.0
    }

    pub(crate) fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// The distance left between neighbours when names arrive in order; half of it remains for each later insertion
/// between them, so 32 insertions at one spot fit before the ranks are dealt anew.
const RANK_STEP: u64 = 1 << 32;
const RANK_MIDDLE: u64 = 1 << 63;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    by_name: BTreeMap<Arc<str>, Slot>,
    names: Vec<Arc<str>>,
    ranks: Vec<u64>,
    uses: Vec<u32>,
    free: Vec<Slot>,
    /// Counts how often the ranks were dealt anew. Whoever remembers ranks must compare it.
    epoch: u64,
}

impl Slots {
    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn name(&self, slot: Slot) -> &Arc<str> {
        &self.names[slot.index()]
    }

    pub(crate) fn rank(&self, slot: Slot) -> u64 {
        self.ranks[slot.index()]
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// All names in use, in order, with their slots.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&Arc<str>, Slot)> {
        self.by_name.iter().map(|(name, slot)| (name, *slot))
    }

    /// The slot of `name`, given now if need be, with one more use counted.
    pub(crate) fn hold(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.find(name) {
            self.uses[slot.index()] += 1;
            return slot;
        }
        let name: Arc<str> = name.into();
        let rank = self.rank_for(&name);
        let slot = if let Some(slot) = self.free.pop() {
            self.names[slot.index()] = name.clone();
            self.uses[slot.index()] = 1;
            slot
        } else {
            self.names.push(name.clone());
            self.ranks.push(0);
            self.uses.push(1);
            Slot(u32::try_from(self.names.len() - 1).expect("fewer than 2^32 cluster names"))
        };
        self.by_name.insert(name, slot);
        match rank {
            Some(rank) => self.ranks[slot.index()] = rank,
            None => self.deal_ranks(),
        }
        slot
    }

    /// Gives one use back; with the last one the name is forgotten and the slot free.
    pub(crate) fn release(&mut self, slot: Slot) {
        let uses = &mut self.uses[slot.index()];
        *uses -= 1;
        if *uses == 0 {
            let name = std::mem::replace(&mut self.names[slot.index()], Arc::from(""));
            self.by_name.remove(&name);
            self.free.push(slot);
        }
    }

    /// A rank between the neighbours of `name`; `None` when there is no room.
    fn rank_for(&self, name: &str) -> Option<u64> {
        let rank = |entry: (&Arc<str>, &Slot)| self.rank(*entry.1);
        let below =
            self.by_name.range::<str, _>((Bound::Unbounded, Bound::Excluded(name))).next_back().map(rank);
        let above = self.by_name.range::<str, _>((Bound::Excluded(name), Bound::Unbounded)).next().map(rank);
        match (below, above) {
            (None, None) => Some(RANK_MIDDLE),
            (Some(below), None) => below.checked_add(RANK_STEP),
            (None, Some(above)) => above.checked_sub(RANK_STEP),
            (Some(below), Some(above)) => {
                let middle = below + (above - below) / 2;
                (middle != below).then_some(middle)
            }
        }
    }

    fn deal_ranks(&mut self) {
        self.epoch += 1;
        let start = RANK_MIDDLE - (self.by_name.len() as u64 / 2) * RANK_STEP;
        for (place, slot) in self.by_name.values().enumerate() {
            self.ranks[slot.index()] = start + place as u64 * RANK_STEP;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_are_always_in_the_order_of_names(names in prop::collection::vec("[a-c]{1,6}", 0..200)) {
            let mut slots = Slots::default();
            for name in &names {
                slots.hold(name);
            }
            let ranks: Vec<_> = slots.in_order().map(|(_, slot)| slots.rank(slot)).collect();
            prop_assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn names_that_keep_arriving_at_one_spot_make_the_ranks_be_dealt_anew() {
        let mut slots = Slots::default();
        slots.hold("a");
        slots.hold("b");
        let mut name = String::from("a");
        for _ in 0..100 {
            name.push('z');
            slots.hold(&name);
        }
        assert!(slots.epoch() > 0);
        let ranks: Vec<_> = slots.in_order().map(|(_, slot)| slots.rank(slot)).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_slot_is_given_again_only_after_its_last_use() {
        let mut slots = Slots::default();
        let first = slots.hold("a");
        assert_eq!(slots.hold("a"), first);
        slots.release(first);
        assert_eq!(slots.find("a"), Some(first));
        slots.release(first);
        assert_eq!(slots.find("a"), None);
        assert_eq!(slots.hold("b"), first);
    }
}
