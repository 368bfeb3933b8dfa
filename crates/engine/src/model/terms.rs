//! Terms: every distinct way of matching clusters in the model, with the clusters that match.
//!
//! Owns the interned [`Term`]s of placements' predicates and of cluster sets, and for each the bitmap of live
//! clusters that match it. A change of a cluster asks again only the terms that look at something that changed.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use roaring::RoaringBitmap;

use super::placements::PlacementId;
use super::slots::Slot;
use crate::selector::{Facet, Term};

/// A term, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TermId(u32);

/// What changed about a cluster, as far as terms can see it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The cluster came, went, or began or ceased to be deleted: ask every term.
    pub(crate) all: bool,
    /// Anything at all changed in the object: ask terms with expressions.
    pub(crate) object: bool,
    /// A score of the cluster changed: ask terms whose expressions read scores.
    pub(crate) scores: bool,
    /// Keys whose value changed.
    pub(crate) keys: Vec<(Facet, Arc<str>)>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) term: Arc<Term>,
    /// The live clusters that match.
    pub(crate) matching: RoaringBitmap,
    /// Placements that have it as a predicate.
    pub(crate) users: Vec<PlacementId>,
    /// Sets whose members it tells.
    pub(crate) sets: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Terms {
    entries: Vec<Option<Entry>>,
    lookup: HashMap<Arc<Term>, TermId>,
    /// Which terms look at a key.
    by_key: HashMap<(Facet, Box<str>), HashSet<TermId>>,
    /// Terms with expressions, and whether these read scores.
    with_expressions: HashMap<TermId, bool>,
}

/// Who uses a term.
pub(crate) enum User<'u> {
    Placement(PlacementId),
    Set(&'u Arc<str>),
}

impl Terms {
    pub(crate) fn get(&self, id: TermId) -> &Entry {
        self.entries[id.0 as usize].as_ref().expect("a term lives while somebody uses it")
    }

    fn get_mut(&mut self, id: TermId) -> &mut Entry {
        self.entries[id.0 as usize].as_mut().expect("a term lives while somebody uses it")
    }

    /// Takes a use of `term`; `fill` finds the matching clusters of a term seen first.
    pub(crate) fn hold(
        &mut self,
        term: &Arc<Term>,
        user: &User<'_>,
        fill: impl FnOnce(&Term) -> RoaringBitmap,
    ) -> TermId {
        let id = if let Some(id) = self.lookup.get(term) { *id } else { self.admit(term, fill(term)) };
        let entry = self.get_mut(id);
        match user {
            User::Placement(placement) => entry.users.push(*placement),
            User::Set(set) => entry.sets.push((*set).clone()),
        }
        id
    }

    fn admit(&mut self, term: &Arc<Term>, matching: RoaringBitmap) -> TermId {
        let vacant = self.entries.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let id = TermId(u32::try_from(index).expect("fewer than 2^32 terms"));
        self.entries[index] =
            Some(Entry { term: term.clone(), matching, users: Vec::new(), sets: Vec::new() });
        self.lookup.insert(term.clone(), id);
        for requirement in &term.requirements {
            self.by_key.entry((requirement.facet, requirement.key.clone())).or_default().insert(id);
        }
        if !term.expressions.is_empty() {
            self.with_expressions.insert(id, term.reads_scores());
        }
        id
    }

    /// Gives a use back.
    pub(crate) fn release(&mut self, id: TermId, user: &User<'_>) {
        let entry = self.get_mut(id);
        match user {
            User::Placement(placement) => remove_one(&mut entry.users, placement),
            User::Set(set) => remove_one(&mut entry.sets, set),
        }
        if !entry.users.is_empty() || !entry.sets.is_empty() {
            return;
        }
        let term = entry.term.clone();
        self.entries[id.0 as usize] = None;
        self.lookup.remove(&term);
        self.with_expressions.remove(&id);
        for requirement in &term.requirements {
            let key = (requirement.facet, requirement.key.clone());
            if let Some(ids) = self.by_key.get_mut(&key) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
    }

    /// The terms that may answer differently after what was `seen`.
    fn affected(&self, seen: &Seen) -> Vec<TermId> {
        if seen.all {
            return self.lookup.values().copied().collect();
        }
        let mut ids: Vec<TermId> = Vec::new();
        for (facet, key) in &seen.keys {
            if let Some(found) = self.by_key.get(&(*facet, Box::<str>::from(&**key))) {
                ids.extend(found);
            }
        }
        for (id, reads_scores) in &self.with_expressions {
            if seen.object || (seen.scores && *reads_scores) {
                ids.push(*id);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Asks the affected terms about `slot` again; the terms whose answer turned come back with the new answer.
    pub(crate) fn ask_again(
        &mut self,
        slot: Slot,
        seen: &Seen,
        mut matches: impl FnMut(&Term) -> bool,
    ) -> Vec<(TermId, bool)> {
        let mut turned = Vec::new();
        for id in self.affected(seen) {
            let entry = self.get_mut(id);
            let now = matches(&entry.term);
            let changed = if now { entry.matching.insert(slot.0) } else { entry.matching.remove(slot.0) };
            if changed {
                turned.push((id, now));
            }
        }
        turned
    }

    /// All terms whose expressions read scores.
    pub(crate) fn any_reads_scores(&self) -> bool {
        self.with_expressions.values().any(|reads| *reads)
    }
}

fn remove_one<T: PartialEq>(list: &mut Vec<T>, item: &T) {
    if let Some(place) = list.iter().position(|other| other == item) {
        list.swap_remove(place);
    }
}
