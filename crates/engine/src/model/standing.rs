//! How clusters stand with tolerations.
//!
//! Owns the dictionary of taints in the fleet and, for every distinct list of tolerations (a *class*; most
//! placements share one), which clusters it bars. A taint delta updates each class once, however many placements
//! share it, and finding the feasible clusters is then a subtraction of bitmaps.

use std::sync::Arc;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::placements::PlacementId;
use super::slots::Slot;
use crate::moment::Moment;
use crate::taint::{ClusterEffect, Lasting, Policy, Taint, Toleration, lasting};

/// A taint without its time, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaintId(u32);

/// A taint on one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CarriedTaint {
    pub(crate) id: TaintId,
    pub(crate) added: Option<Moment>,
}

impl CarriedTaint {
    /// From when tolerations count. Without a start nothing can be counted: upstream reads it as the year 1, long
    /// expired, and so do we.
    pub(crate) fn since(self) -> Moment {
        self.added.unwrap_or(Moment::PAST)
    }
}

/// A list of tolerations, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClassId(u32);

/// Until when a cluster stands well with a class, for each way a taint can repel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Until when it may be selected at all.
    pub(crate) any: Moment,
    /// Until when it may be selected anew.
    pub(crate) fresh: Moment,
    /// Until when it is not to be avoided.
    pub(crate) liked: Moment,
}

impl Standing {
    const FREE: Self = Self { any: Moment::NEVER, fresh: Moment::NEVER, liked: Moment::NEVER };

    /// Whether the cluster may be selected at `now`, by a placement that holds it already or not.
    pub(crate) fn allows(self, held: bool, now: Moment) -> bool {
        now < self.any && (held || now < self.fresh)
    }

    /// Whether the cluster is to be avoided at `now`.
    pub(crate) fn shunned(self, now: Moment) -> bool {
        now >= self.liked
    }

    /// The first of the three ends that is after `now`.
    pub(crate) fn next_end(self, now: Moment) -> Moment {
        let after = |end: Moment| if end > now { end } else { Moment::NEVER };
        after(self.any).min(after(self.fresh)).min(after(self.liked))
    }

    fn better_anywhere_than(self, other: Self) -> bool {
        self.any > other.any || self.fresh > other.fresh || self.liked > other.liked
    }
}

/// How a change of taints moved a cluster's standing with one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Same,
    /// In no respect better: only who holds the cluster can be concerned.
    Worse,
    /// In some respect better: anybody may want it now.
    Better,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) tolerations: Arc<[Toleration<ClusterEffect>]>,
    pub(crate) users: Vec<PlacementId>,
    /// What the class says of each taint; indexed by `TaintId`.
    memo: Vec<Lasting>,
    /// Clusters with a taint that bars and is not tolerated for any time.
    pub(crate) barred: RoaringBitmap,
    /// The same for taints that bar only new selections.
    pub(crate) barred_if_new: RoaringBitmap,
    /// Clusters to be avoided, whatever the time.
    pub(crate) shunned: RoaringBitmap,
    /// Clusters with a taint tolerated for a time: ask [`Standings::standing`].
    pub(crate) timed: RoaringBitmap,
}

#[derive(Debug, Default)]
pub(crate) struct Standings {
    taints: Vec<(Taint<ClusterEffect>, u32)>,
    lookup: HashMap<Taint<ClusterEffect>, TaintId>,
    free_taints: Vec<TaintId>,
    classes: Vec<Option<Class>>,
    class_lookup: HashMap<Arc<[Toleration<ClusterEffect>]>, ClassId>,
}

impl Standings {
    pub(crate) fn class(&self, id: ClassId) -> &Class {
        self.classes[id.0 as usize].as_ref().expect("a class lives while a placement uses it")
    }

    pub(crate) fn taint(&self, id: TaintId) -> &Taint<ClusterEffect> {
        &self.taints[id.0 as usize].0
    }

    /// Takes a use of `taint` (its time is not part of its identity).
    pub(crate) fn hold_taint(&mut self, mut taint: Taint<ClusterEffect>) -> TaintId {
        taint.added = None;
        if let Some(id) = self.lookup.get(&taint) {
            self.taints[id.0 as usize].1 += 1;
            return *id;
        }
        let id = if let Some(id) = self.free_taints.pop() {
            self.taints[id.0 as usize] = (taint.clone(), 1);
            id
        } else {
            self.taints.push((taint.clone(), 1));
            TaintId(u32::try_from(self.taints.len() - 1).expect("fewer than 2^32 distinct taints"))
        };
        for class in self.classes.iter_mut().flatten() {
            let said = lasting(&taint, &class.tolerations, Policy::LongestMatch);
            class.memo.resize(class.memo.len().max(id.0 as usize + 1), Lasting::Not);
            class.memo[id.0 as usize] = said;
        }
        self.lookup.insert(taint, id);
        id
    }

    /// Gives a use of a taint back.
    pub(crate) fn release_taint(&mut self, id: TaintId) {
        let (taint, uses) = &mut self.taints[id.0 as usize];
        *uses -= 1;
        if *uses == 0 {
            self.lookup.remove(taint);
            self.free_taints.push(id);
        }
    }

    /// Takes a use of a class by `user`. `carriers` are all clusters with taints, to fill a class seen first.
    pub(crate) fn hold_class<'c>(
        &mut self,
        tolerations: &Arc<[Toleration<ClusterEffect>]>,
        user: PlacementId,
        carriers: impl Iterator<Item = (Slot, &'c [CarriedTaint])>,
    ) -> ClassId {
        if let Some(id) = self.class_lookup.get(tolerations) {
            let class = self.classes[id.0 as usize].as_mut().expect("a class in the lookup lives");
            class.users.push(user);
            return *id;
        }
        let memo =
            self.taints.iter().map(|(taint, _)| lasting(taint, tolerations, Policy::LongestMatch)).collect();
        let mut class = Class {
            tolerations: tolerations.clone(),
            users: vec![user],
            memo,
            barred: RoaringBitmap::new(),
            barred_if_new: RoaringBitmap::new(),
            shunned: RoaringBitmap::new(),
            timed: RoaringBitmap::new(),
        };
        for (slot, taints) in carriers {
            class.place(&self.taints, slot, taints);
        }
        let vacant = self.classes.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.classes.push(None);
            self.classes.len() - 1
        });
        self.classes[index] = Some(class);
        let id = ClassId(u32::try_from(index).expect("fewer than 2^32 classes"));
        self.class_lookup.insert(tolerations.clone(), id);
        id
    }

    /// Gives a use of a class back.
    pub(crate) fn release_class(&mut self, id: ClassId, user: PlacementId) {
        let entry = &mut self.classes[id.0 as usize];
        let class = entry.as_mut().expect("a class lives while a placement uses it");
        class.users.retain(|other| *other != user);
        if class.users.is_empty() {
            self.class_lookup.remove(&class.tolerations);
            *entry = None;
        }
    }

    /// How a cluster with `taints` stands with a class.
    pub(crate) fn standing(&self, class: ClassId, taints: &[CarriedTaint]) -> Standing {
        self.class(class).standing(&self.taints, taints)
    }

    /// Moves `slot` from `old` to `new` taints in every class; `report` hears of each class whose standing moved.
    pub(crate) fn retaint(
        &mut self,
        slot: Slot,
        old: &[CarriedTaint],
        new: &[CarriedTaint],
        mut report: impl FnMut(ClassId, Shift),
    ) {
        let Self { taints, classes, .. } = self;
        for (index, class) in classes.iter_mut().enumerate() {
            let Some(class) = class else { continue };
            let before = class.standing(taints, old);
            let after = class.standing(taints, new);
            class.place(taints, slot, new);
            let shift = if before == after {
                Shift::Same
            } else if after.better_anywhere_than(before) {
                Shift::Better
            } else {
                Shift::Worse
            };
            if shift != Shift::Same {
                report(ClassId(index as u32), shift);
            }
        }
    }
}

impl Class {
    fn standing(&self, table: &[(Taint<ClusterEffect>, u32)], taints: &[CarriedTaint]) -> Standing {
        let mut standing = Standing::FREE;
        for carried in taints {
            let end = self.memo[carried.id.0 as usize].end(carried.since());
            let side = match table[carried.id.0 as usize].0.effect {
                ClusterEffect::NoSelect | ClusterEffect::Other(_) => &mut standing.any,
                ClusterEffect::NoSelectIfNew => &mut standing.fresh,
                ClusterEffect::PreferNoSelect => &mut standing.liked,
            };
            *side = end.min(*side);
        }
        standing
    }

    fn place(&mut self, table: &[(Taint<ClusterEffect>, u32)], slot: Slot, taints: &[CarriedTaint]) {
        let (mut barred, mut if_new, mut shunned, mut timed) = (false, false, false, false);
        for carried in taints {
            match self.memo[carried.id.0 as usize] {
                Lasting::Forever => {}
                Lasting::Seconds(_) => timed = true,
                Lasting::Not => match table[carried.id.0 as usize].0.effect {
                    ClusterEffect::NoSelect | ClusterEffect::Other(_) => barred = true,
                    ClusterEffect::NoSelectIfNew => if_new = true,
                    ClusterEffect::PreferNoSelect => shunned = true,
                },
            }
        }
        for (bitmap, wanted) in [
            (&mut self.barred, barred),
            (&mut self.barred_if_new, if_new),
            (&mut self.shunned, shunned),
            (&mut self.timed, timed),
        ] {
            if wanted {
                bitmap.insert(slot.0);
            } else {
                bitmap.remove(slot.0);
            }
        }
    }
}
