//! Terms: every distinct way of matching clusters in the model, with the clusters that match.
//!
//! Owns the interned [`Term`]s of placements' predicates and of cluster sets, and for each the bitmap of live
//! clusters that match it. A change of a cluster asks again only the terms that look at something that changed. Terms
//! without expressions know the answer at once; those with expressions are *open* until whoever is to be asked was asked,
//! and when that is done is `asking`'s business, because it costs.

use std::collections::BTreeSet;
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
    /// The live clusters that match, as far as they were asked.
    pub(crate) matching: RoaringBitmap,
    /// What its expressions cost.
    meter: Meter,
    /// Placements that have it as a predicate.
    pub(crate) users: Vec<PlacementId>,
    /// Sets whose members it tells.
    pub(crate) sets: Vec<Arc<str>>,
    /// How many keep it for later.
    kept: usize,
}

impl Entry {
    /// Whether somebody is still to be asked, so that nobody knows who matches.
    pub(crate) fn is_open(&self) -> bool {
        self.meter.is_open()
    }

    /// What its expressions cost beyond the free shares, as far as they were asked.
    pub(crate) fn cost(&self) -> u64 {
        self.meter.total()
    }

    /// Whether a cluster matches, or might.
    pub(crate) fn may_match(&self, slot: Slot) -> bool {
        self.is_open() || self.matching.contains(slot.0)
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

/// What a change of a cluster does to terms.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Terms whose answer about the cluster is another, with the new one.
    pub(crate) answers: Vec<(TermId, bool)>,
    /// Terms that must ask about the cluster again.
    pub(crate) opened: Vec<Opened>,
}

/// A term that must ask again, as it was before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) term: TermId,
    /// Whether the cluster matched; of no meaning where it was open already.
    pub(crate) matched: bool,
    pub(crate) was_open: bool,
    /// What the term cost.
    pub(crate) cost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Terms {
    entries: Vec<Option<Entry>>,
    lookup: HashMap<Arc<Term>, TermId>,
    /// Which terms look at a key.
    by_key: HashMap<(Facet, Box<str>), HashSet<TermId>>,
    /// Terms with expressions, and whether these read scores.
    with_expressions: HashMap<TermId, bool>,
    /// Terms of which somebody is still to be asked.
    open: BTreeSet<TermId>,
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

    /// Takes a use of `term`; of one seen first the matching clusters are found, or are to be asked for.
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
        let entry =
            Entry { term: term.clone(), matching, meter, users: Vec::new(), sets: Vec::new(), kept: 0 };
        let vacant = self.entries.iter().position(Option::is_none);
        let index = vacant.unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let id = TermId(u32::try_from(index).expect("fewer than 2^32 terms"));
        if entry.is_open() {
            self.open.insert(id);
        }
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
        self.clear(id);
    }

    /// Keeps a term for a placement that stands aside and will need it again.
    pub(crate) fn keep(&mut self, id: TermId) {
        self.get_mut(id).kept += 1;
    }

    /// Keeps it no longer.
    pub(crate) fn let_go(&mut self, id: TermId) {
        self.get_mut(id).kept -= 1;
        self.clear(id);
    }

    /// Takes a term out that nobody needs any more.
    fn clear(&mut self, id: TermId) {
        let entry = self.get_mut(id);
        if !entry.users.is_empty() || !entry.sets.is_empty() || entry.kept > 0 {
            return;
        }
        let term = entry.term.clone();
        self.entries[id.0 as usize] = None;
        self.lookup.remove(&term);
        self.open.remove(&id);
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

    /// Asks the affected terms about `slot` again; those with expressions only note that they have to.
    pub(crate) fn doubt(&mut self, slot: Slot, seen: &Seen, lens: Lens<'_>) -> Doubts {
        let mut doubts = Doubts::default();
        for term in self.affected(seen) {
            let entry = self.get_mut(term);
            let (matched, was_open, cost) = (entry.matching.contains(slot.0), entry.is_open(), entry.cost());
            if entry.term.expressions.is_empty() {
                let matches = lens.passes_screen(&entry.term, slot);
                mark(&mut entry.matching, slot, matches);
                if matched != matches {
                    doubts.answers.push((term, matches));
                }
            } else {
                entry.meter.forget(slot);
                self.open.insert(term);
                doubts.opened.push(Opened { term, matched, was_open, cost });
            }
        }
        doubts
    }

    /// Asks one cluster that an open term has to ask about; `subject` is the one at `known`. What it cost comes back, or
    /// `None` where nobody was left to be asked.
    pub(crate) fn ask_next(
        &mut self,
        id: TermId,
        lens: Lens<'_>,
        known: Option<Slot>,
        subject: &mut Option<Subject>,
    ) -> Option<u64> {
        let entry = self.entries[id.0 as usize].as_mut()?;
        let Entry { term, matching, meter, .. } = entry;
        let mut cost = 0;
        let asked = meter.ask_next(|slot| {
            let mut other = None;
            let subject = if known == Some(slot) { subject } else { &mut other };
            let answer = lens.matches(term, slot, subject);
            mark(matching, slot, answer.matches);
            cost = answer.cost;
            cost
        });
        if !entry.is_open() {
            self.open.remove(&id);
        }
        self.cost = self.cost.saturating_add(cost);
        asked.then_some(cost)
    }

    /// The open terms, beginning with the first after `last`.
    pub(crate) fn open_after(&self, last: Option<TermId>) -> Vec<TermId> {
        let Some(last) = last else { return self.open.iter().copied().collect() };
        let first = self.open.iter().filter(|id| **id > last);
        first.chain(self.open.iter().filter(|id| **id <= last)).copied().collect()
    }

    /// Whether no term is open.
    pub(crate) fn is_closed(&self) -> bool {
        self.open.is_empty()
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
