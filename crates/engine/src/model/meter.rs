//! What the expressions of one term cost across the fleet, and who is still to be asked.
//!
//! Owns the account of it. Each evaluation is bounded by itself, but one that uses all it may, on every cluster of a large
//! fleet, would cost more than anybody gains by it. So each cluster has a share that is free, and what expressions cost
//! beyond it is added up over all clusters; where the terms of a placement cost more than is allowed, it is not decided by
//! them, and a term that no other placement needs is asked no more. Whether it comes to that depends on nothing but the
//! clusters as they are: not on the order in which they came, nor on who was asked. It never evaluates anything itself.

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::slots::Slot;

/// Units of cost that expressions may have on each cluster, however many there are. Looking through a cluster's claims
/// costs some tens, comparing versions or scores some hundreds.
pub(crate) const FREE_SHARE: u64 = 2_000;
/// Units of cost that the expressions of a placement may have beyond the free shares, over all clusters together: as much
/// as the free shares of ten thousand clusters, and twenty evaluations that use all they may.
pub(crate) const ALLOWANCE: u64 = 20_000_000;

/// The account of one term.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// What clusters cost beyond their share, where they do.
    beyond: HashMap<Slot, u64>,
    /// The sum of these.
    total: u64,
    /// Clusters that were not asked since they changed.
    unasked: RoaringBitmap,
}

impl Meter {
    /// An account with everybody still to be asked.
    pub(crate) fn new(unasked: RoaringBitmap) -> Self {
        Self { unasked, ..Self::default() }
    }

    /// What those that were asked cost beyond their shares; asking the others can only add to it.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Whether somebody is still to be asked.
    pub(crate) fn is_open(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// What is known of a cluster holds no longer.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.total -= self.beyond.remove(&slot).unwrap_or_default();
        self.unasked.insert(slot.0);
    }

    /// Asks one of those that were not asked; `ask` tells what it cost. Whether there was one.
    pub(crate) fn ask_next(&mut self, ask: impl FnOnce(Slot) -> u64) -> bool {
        let Some(slot) = self.unasked.min() else { return false };
        // Asked first and noted then: one that is left half way is asked again.
        let beyond = ask(Slot(slot)).saturating_sub(FREE_SHARE);
        self.unasked.remove(slot);
        if beyond > 0 {
            self.beyond.insert(Slot(slot), beyond);
            self.total = self.total.saturating_add(beyond);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// The most that one cluster costs here: half of what all may.
    const MOST: u64 = ALLOWANCE / 2;

    fn any_cost() -> impl Strategy<Value = u64> {
        select(vec![0, 1, FREE_SHARE, FREE_SHARE + 1, ALLOWANCE / 10, ALLOWANCE / 3, MOST])
    }

    fn is_spent(meter: &Meter) -> bool {
        meter.total() > ALLOWANCE
    }

    /// Asks by a table of costs, until all are asked or too much was spent; how much that cost.
    fn settle(meter: &mut Meter, costs: &[u64]) -> u64 {
        let mut asked = 0;
        while !is_spent(meter)
            && meter.ask_next(|slot| {
                asked += costs[slot.index()];
                costs[slot.index()]
            })
        {}
        asked
    }

    proptest! {
        #[test]
        fn whether_a_term_is_spent_depends_on_the_clusters_alone(
            mut costs in prop::collection::vec(any_cost(), 1..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any_cost()), 0..60),
        ) {
            let all = 0..u32::try_from(costs.len()).unwrap();
            let mut meter = Meter::new(all.clone().collect());
            settle(&mut meter, &costs);
            for (place, cost) in changes {
                let place = place.index(costs.len());
                costs[place] = cost;
                meter.forget(Slot(u32::try_from(place).unwrap()));
                settle(&mut meter, &costs);
                let beyond: u64 = costs.iter().map(|cost| cost.saturating_sub(FREE_SHARE)).sum();
                prop_assert_eq!(is_spent(&meter), beyond > ALLOWANCE);
                prop_assert!(is_spent(&meter) || !meter.is_open(), "who matches is known");
                // Arriving one by one, in the other order.
                let mut other = Meter::default();
                for slot in all.clone().rev() {
                    other.forget(Slot(slot));
                    settle(&mut other, &costs);
                }
                prop_assert_eq!(is_spent(&other), is_spent(&meter));
            }
        }
    }

    #[test]
    fn a_spent_term_asks_no_more_than_it_takes_to_know() {
        let costs = vec![MOST; 10_000];
        let mut meter = Meter::new((0..10_000).collect());
        assert_eq!(settle(&mut meter, &costs), 3 * MOST);
        assert!(is_spent(&meter));
        for slot in 3..10_000 {
            meter.forget(Slot(slot));
            assert_eq!(settle(&mut meter, &costs), 0, "a change of a cluster that was never asked");
        }
        // One of those by which it is known: somebody else stands in.
        meter.forget(Slot(0));
        assert_eq!(settle(&mut meter, &costs), MOST);
        assert!(is_spent(&meter));
    }

    #[test]
    fn what_each_cluster_may_cost_is_free_however_many_there_are() {
        let costs = vec![FREE_SHARE; 50_000];
        let mut meter = Meter::new((0..50_000).collect());
        settle(&mut meter, &costs);
        assert!(!is_spent(&meter));
        assert!(meter.beyond.is_empty(), "nothing is kept of them");
    }
}
