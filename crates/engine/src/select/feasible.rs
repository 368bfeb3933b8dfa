//! Which clusters a placement could select now.
//!
//! Owns the filters: set membership, predicates, taints. All of it is arithmetic on bitmaps the model keeps; only
//! clusters with a toleration that runs out are looked at one by one.

use roaring::RoaringBitmap;

use crate::model::{Class, ClassId, Entry, Holdings, Model, PlacementId, Slot};
use crate::moment::Moment;

/// The clusters of the placement's sets that are not being deleted.
pub(crate) fn members(model: &Model, entry: &Entry) -> RoaringBitmap {
    union(
        entry.eligible.sets.iter().filter_map(|(_, term)| *term).map(|term| &model.terms.get(term).matching),
    )
}

/// The members that pass a predicate.
pub(crate) fn candidates(model: &Model, entry: &Entry) -> RoaringBitmap {
    let matching = |term| &model.terms.get(term).matching;
    match (&entry.eligible.sets[..], &entry.terms[..]) {
        // The common shape, without a copy in between.
        ([(_, Some(set))], [predicate]) => matching(*set) & matching(*predicate),
        (_, []) => members(model, entry),
        (_, predicates) => {
            let mut found = members(model, entry);
            if let [only] = predicates {
                found &= matching(*only);
            } else {
                found &= union(predicates.iter().map(|term| matching(*term)));
            }
            found
        }
    }
}

fn union<'b>(mut bitmaps: impl Iterator<Item = &'b RoaringBitmap>) -> RoaringBitmap {
    let mut all = bitmaps.next().cloned().unwrap_or_default();
    for bitmap in bitmaps {
        all |= bitmap;
    }
    all
}

/// The candidates whose taints allow it at `now`.
pub(crate) fn feasible(model: &Model, entry: &Entry, own: Option<&Holdings>, now: Moment) -> RoaringBitmap {
    let mut found = candidates(model, entry);
    let Some(class) = entry.class else { return found };
    let (id, class) = (class, model.standings.class(class));
    found -= &class.barred;
    match own {
        Some(own) => found -= &class.barred_if_new - &own.clusters,
        None => found -= &class.barred_if_new,
    }
    if !class.timed.is_disjoint(&found) {
        for slot in &found & &class.timed {
            let standing = model.standings.standing(id, model.clusters.taints(Slot(slot)));
            if !standing.allows(holds(own, Slot(slot)), now) {
                found.remove(slot);
            }
        }
    }
    found
}

/// The same question for one cluster.
pub(crate) fn is_feasible(
    model: &Model,
    id: PlacementId,
    class: &Class,
    own: Option<&Holdings>,
    slot: Slot,
    now: Moment,
) -> bool {
    if !model.is_candidate(id, slot) || class.barred.contains(slot.0) {
        return false;
    }
    let held = holds(own, slot);
    if !held && class.barred_if_new.contains(slot.0) {
        return false;
    }
    let Some(class_id) = model.placements.get(id).class else { return true };
    !class.timed.contains(slot.0)
        || model.standings.standing(class_id, model.clusters.taints(slot)).allows(held, now)
}

/// The feasible clusters with an untolerated wish to be avoided.
pub(crate) fn shunned(model: &Model, entry: &Entry, feasible: &RoaringBitmap, now: Moment) -> RoaringBitmap {
    let Some(id) = entry.class else { return RoaringBitmap::new() };
    let class = model.standings.class(id);
    let mut shunned = RoaringBitmap::new();
    if !class.shunned.is_empty() {
        shunned = feasible & &class.shunned;
    }
    if !class.timed.is_empty() {
        for slot in feasible & &class.timed {
            if model.standings.standing(id, model.clusters.taints(Slot(slot))).shunned(now) {
                shunned.insert(slot);
            }
        }
    }
    shunned
}

/// Whether a class wishes to avoid one cluster.
pub(crate) fn is_shunned(model: &Model, id: ClassId, slot: Slot, now: Moment) -> bool {
    let class = model.standings.class(id);
    class.shunned.contains(slot.index_u32())
        || (class.timed.contains(slot.index_u32())
            && model.standings.standing(id, model.clusters.taints(slot)).shunned(now))
}

pub(crate) fn holds(own: Option<&Holdings>, slot: Slot) -> bool {
    own.is_some_and(|own| own.clusters.contains(slot.0))
}
