//! Reading one cluster's facts, and matching terms against them.

use roaring::RoaringBitmap;

use super::clusters::Clusters;
use super::scores::ScoreTable;
use super::slots::{Slot, Slots};
use super::standing::Standings;
use crate::moment::Moment;
use crate::selector::{Facet, Subject, Term};

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

    /// Whether a live cluster matches; `subject` is filled when an expression asks for it.
    pub(crate) fn matches(self, term: &Term, slot: Slot, subject: &mut Option<Subject>) -> bool {
        self.clusters.live.contains(slot.0)
            && term.admits_name(self.slots.name(slot))
            && term
                .requirements
                .iter()
                .all(|requirement| requirement.holds(self.value(slot, requirement.facet, &requirement.key)))
            && self.expressions_hold(term, slot, subject)
    }

    /// Whether the expressions of a term hold; `subject` is filled when there are any.
    pub(crate) fn expressions_hold(self, term: &Term, slot: Slot, subject: &mut Option<Subject>) -> bool {
        if term.expressions.is_empty() {
            return true;
        }
        let subject = subject.get_or_insert_with(|| self.subject(slot));
        subject.satisfies(&term.expressions)
    }

    /// All live clusters that match, by postings first.
    pub(crate) fn matching(self, term: &Term) -> RoaringBitmap {
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
        if !term.expressions.is_empty() {
            found = found.iter().filter(|slot| self.expressions_hold(term, Slot(*slot), &mut None)).collect();
        }
        found
    }
}
