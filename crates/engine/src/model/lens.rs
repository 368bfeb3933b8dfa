//! Reading one cluster's facts, and matching terms against them.

use roaring::RoaringBitmap;

use super::clusters::Clusters;
use super::scores::ScoreTable;
use super::slots::{Slot, Slots};
use super::standing::Standings;
use crate::moment::Moment;
use crate::selector::{Facet, Mismatch, Subject, Term};

/// Whether a cluster matches a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) matches: bool,
    /// What its expressions cost, in units of `berth_cel`.
    pub(crate) cost: u64,
}

/// The parts of the model that say what a cluster is.
#[derive(Clone, Copy)]
pub(crate) struct Lens<'m> {
    pub(crate) slots: &'m Slots,
    pub(crate) clusters: &'m Clusters,
    pub(crate) standings: &'m Standings,
    pub(crate) scores: &'m ScoreTable,
    pub(crate) now: Moment,
}

impl<'m> Lens<'m> {
    /// The cluster as expressions see it. Costly; made once for all expressions about one cluster.
    pub(crate) fn subject(self, slot: Slot) -> Subject {
        let valid = self
            .scores
            .resources_of(slot)
            .filter(|(_, scores)| !scores.expired(self.now))
            .map(|(resource, scores)| (resource.clone(), scores.items.to_vec()));
        Subject::new(&self.clusters.object(slot, self.standings), valid)
    }

    pub(crate) fn value(self, slot: Slot, facet: Facet, key: &str) -> Option<&'m str> {
        self.clusters.value(slot, facet, key)
    }

    /// Whether a live cluster passes everything in a term but its expressions.
    pub(crate) fn passes_screen(self, term: &Term, slot: Slot) -> bool {
        self.clusters.live.contains(slot.0)
            && term.admits_name(self.slots.name(slot))
            && term
                .requirements
                .iter()
                .all(|requirement| requirement.holds(self.value(slot, requirement.facet, &requirement.key)))
    }

    /// Whether a live cluster matches; `subject` is filled when an expression asks for it. Expressions come last: they
    /// are what costs.
    pub(crate) fn matches(self, term: &Term, slot: Slot, subject: &mut Option<Subject>) -> Answer {
        if !self.passes_screen(term, slot) {
            return Answer { matches: false, cost: 0 };
        }
        let (mismatch, cost) = self.first_mismatch(term, slot, subject);
        Answer { matches: mismatch.is_none(), cost }
    }

    /// The first expression of a term that does not hold, and what it cost to find out; `subject` is filled when there
    /// are any.
    pub(crate) fn first_mismatch(
        self,
        term: &Term,
        slot: Slot,
        subject: &mut Option<Subject>,
    ) -> (Option<(usize, Mismatch)>, u64) {
        if term.expressions.is_empty() {
            return (None, 0);
        }
        subject.get_or_insert_with(|| self.subject(slot)).first_mismatch(&term.expressions)
    }

    /// All live clusters that pass everything in a term but its expressions, by postings.
    pub(crate) fn screened(self, term: &Term) -> RoaringBitmap {
        let mut found = self.clusters.live.clone();
        if let Some(names) = &term.names {
            found &= names
                .iter()
                .filter_map(|name| self.slots.find(name))
                .map(|slot| slot.0)
                .collect::<RoaringBitmap>();
        }
        for requirement in &term.requirements {
            match requirement.facet {
                Facet::Label => self.clusters.labels.retain(&mut found, requirement),
                Facet::Claim => self.clusters.claims.retain(&mut found, requirement),
            }
        }
        found
    }
}
