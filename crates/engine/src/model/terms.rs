//! Terms: every distinct way of matching clusters in the model, with the clusters that match.
//!
//! Owns the interned [`Term`]s of placements' predicates and of cluster sets, and for each the bitmap of live
//! clusters that match it. A change of a cluster asks again only the terms that look at something that changed, and none
//! whose expressions cost too much.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use roaring::RoaringBitmap;

use super::lens::Lens;
use super::meter::Meter;
use super::placements::PlacementId;
use super::slots::Slot;
use crate::selector::{Facet, Subject, Term};

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
    /// The live clusters that match. Of no meaning while the term is spent.
    pub(crate) matching: RoaringBitmap,
    /// What its expressions cost.
    meter: Meter,
    /// Placements that have it as a predicate.
    pub(crate) users: Vec<PlacementId>,
    /// Sets whose members it tells.
    pub(crate) sets: Vec<Arc<str>>,
}

impl Entry {
    /// Whether the expressions cost more than they may, so that nobody knows who matches.
    pub(crate) fn is_spent(&self) -> bool {
        self.meter.is_spent()
    }

    /// Whether a cluster matches, or might.
    pub(crate) fn may_match(&self, slot: Slot) -> bool {
        self.is_spent() || self.matching.contains(slot.0)
    }

    /// Asks everybody that must be asked; `subject` is the cluster at `slot`. What it cost comes back.
    fn settle(&mut self, lens: Lens<'_>, slot: Option<Slot>, subject: &mut Option<Subject>) -> u64 {
        let Self { term, matching, meter, .. } = self;
        let mut cost: u64 = 0;
        meter.settle(|asked| {
            let answer = if slot == Some(asked) {
                lens.matches(term, asked, subject)
            } else {
                lens.matches(term, asked, &mut None)
            };
            mark(matching, asked, answer.matches);
            cost = cost.saturating_add(answer.cost);
            answer.cost
        });
        cost
    }
}

/// Puts a cluster in or out.
fn mark(matching: &mut RoaringBitmap, slot: Slot, matches: bool) {
    if matches {
        matching.insert(slot.0);
    } else {
        matching.remove(slot.0);
    }
}

/// What a change of a cluster did to terms.
#[derive(Debug, Default)]
pub(crate) struct Turned {
    /// Terms whose answer about the cluster is another, with the new one.
    pub(crate) answers: Vec<(TermId, bool)>,
    /// Terms that are spent since, or no longer.
    pub(crate) spent: Vec<TermId>,
}

#[derive(Debug, Default)]
pub(crate) struct Terms {
    entries: Vec<Option<Entry>>,
    lookup: HashMap<Arc<Term>, TermId>,
    /// Which terms look at a key.
    by_key: HashMap<(Facet, Box<str>), HashSet<TermId>>,
    /// Terms with expressions, and whether these read scores.
    with_expressions: HashMap<TermId, bool>,
    /// What all expressions have cost so far.
    cost: u64,
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

    /// Takes a use of `term`; of one seen first the matching clusters are found.
    pub(crate) fn hold(&mut self, term: &Arc<Term>, user: &User<'_>, lens: Lens<'_>) -> TermId {
        let id = if let Some(id) = self.lookup.get(term) { *id } else { self.admit(term, lens) };
        let entry = self.get_mut(id);
        match user {
            User::Placement(placement) => entry.users.push(*placement),
            User::Set(set) => entry.sets.push((*set).clone()),
        }
        id
    }

    fn admit(&mut self, term: &Arc<Term>, lens: Lens<'_>) -> TermId {
        let screened = lens.screened(term);
        let (matching, unasked) = if term.expressions.is_empty() {
            (screened, RoaringBitmap::new())
        } else {
            (RoaringBitmap::new(), screened)
        };
        let meter = Meter::new(unasked);
        let mut entry = Entry { term: term.clone(), matching, meter, users: Vec::new(), sets: Vec::new() };
        self.cost = self.cost.saturating_add(entry.settle(lens, None, &mut None));
        let vacant = self.entries.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let id = TermId(u32::try_from(index).expect("fewer than 2^32 terms"));
        self.entries[index] = Some(entry);
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

    /// Asks the affected terms about `slot` again.
    pub(crate) fn ask_again(&mut self, slot: Slot, seen: &Seen, lens: Lens<'_>) -> Turned {
        let mut turned = Turned::default();
        let mut subject = None;
        for id in self.affected(seen) {
            let entry = self.get_mut(id);
            let (matched, was_spent) = (entry.matching.contains(slot.0), entry.is_spent());
            let mut cost = 0;
            if entry.term.expressions.is_empty() {
                mark(&mut entry.matching, slot, lens.passes_screen(&entry.term, slot));
            } else {
                entry.meter.forget(slot);
                cost = entry.settle(lens, Some(slot), &mut subject);
            }
            let matches = entry.matching.contains(slot.0);
            if was_spent != entry.is_spent() {
                turned.spent.push(id);
            } else if !was_spent && matched != matches {
                turned.answers.push((id, matches));
            }
            self.cost = self.cost.saturating_add(cost);
        }
        turned
    }

    /// What all expressions have cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
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
