//! When expressions are asked, and how much of that at once.
//!
//! Owns the bounds on what they cost. What those of one placement may cost together is a property of the fleet: beyond it
//! the placement is *overspent*, keeps what it has and says so, and what no other placement needs is asked no more. How much
//! is asked before somebody else has a turn is up to whoever keeps the model ([`Model::go_on`]): what is left is asked in
//! the next turn, a little of each term in each, and until then the placements that need it *wait*. It never decides.

use std::collections::BTreeMap;

use super::Model;
use super::key::PlacementKey;
use super::meter::ALLOWANCE;
use super::placements::PlacementId;
use super::slots::Slot;
use super::terms::{Opened, TermId};
use super::touch::Touched;

/// Units of cost for asking one cluster at all: it is made ready for expressions, however cheap these are.
pub(crate) const ASK_COST: u64 = 200;
/// Units of cost that one term may have before the next has its turn: those that are cheap never wait for those that are not.
const SLICE: u64 = 20_000;

impl Model {
    /// Goes on with what was put off, and lets expressions cost so many units until this is called again. The placements that
    /// may decide differently because of it come back. A model for which this is never called puts nothing off.
    pub fn go_on(&mut self, units: u64) -> Touched {
        self.be_patient(units);
        self.ask_open(None);
        std::mem::take(&mut self.ripe).settled(self)
    }

    /// Lets expressions cost so many units until [`Model::go_on`] says otherwise, for a question that somebody waits for.
    pub fn be_patient(&mut self, units: u64) {
        self.patience = units;
    }

    /// Whether something was put off that a decision depends on.
    pub fn is_behind(&self) -> bool {
        self.terms.open_after(None).into_iter().any(|term| self.most(term).is_some())
    }

    /// Whether a decision of this placement has to wait for what was put off. Deciding it all the same asks everything.
    pub fn is_waiting(&self, placement: &PlacementKey) -> bool {
        self.placements.find(placement).is_some_and(|id| self.waits(id))
    }

    fn waits(&self, id: PlacementId) -> bool {
        let entry = self.placements.get(id);
        let is_open = |term: &TermId| self.terms.get(*term).is_open();
        !self.terms.is_closed() && !entry.idle && entry.terms.iter().any(is_open) && !self.is_overspent(id)
    }

    /// Whether the expressions of a placement cost more than they may. Those that were asked do already, so those that were
    /// not need not be.
    pub(crate) fn is_overspent(&self, id: PlacementId) -> bool {
        self.cost_beside(id, None) > ALLOWANCE
    }

    /// What the terms of a placement cost, each once and without one of them.
    fn cost_beside(&self, id: PlacementId, without: Option<TermId>) -> u64 {
        let terms = &self.placements.get(id).terms;
        let first = |place: usize, term: &TermId| !terms[..place].contains(term);
        let costs = terms.iter().enumerate().filter(|(_, term)| Some(**term) != without);
        let costs = costs.map(|(place, term)| (place, term, self.terms.get(*term).cost()));
        // Nearly all cost nothing, and which are the same is then not looked for.
        let costly = costs.filter(|(place, term, cost)| *cost > 0 && first(*place, term));
        costly.fold(0, |sum, (_, _, cost)| cost.saturating_add(sum))
    }

    /// What a term may cost before no placement needs it any more; `None` where none does.
    fn most(&self, term: TermId) -> Option<u64> {
        let users = self.terms.get(term).users.iter().filter(|id| !self.placements.get(**id).idle);
        let most = users.filter_map(|id| ALLOWANCE.checked_sub(self.cost_beside(*id, Some(term)))).max()?;
        (self.terms.get(term).cost() <= most).then_some(most)
    }

    /// Asks everything that a placement waits for, whatever it costs.
    pub(super) fn finish(&mut self, id: PlacementId) {
        if self.waits(id) {
            let patience = std::mem::replace(&mut self.patience, u64::MAX);
            self.ask(Some(id), None);
            self.patience = patience;
        }
    }

    /// Asks whoever is still to be asked, as far as patience goes; the terms whose answer `about` a cluster is another come
    /// back. Who else may decide differently is `ripe`.
    pub(super) fn ask_open(&mut self, about: Option<(Slot, &[Opened])>) -> Vec<(TermId, bool)> {
        self.ask(None, about)
    }

    /// The open terms, or those of one placement, beginning after the one that was asked last.
    fn open_terms(&self, of: Option<PlacementId>) -> Vec<TermId> {
        let mut open = self.terms.open_after(self.asked_last);
        if let Some(id) = of {
            open.retain(|term| self.placements.get(id).terms.contains(term));
        }
        open
    }

    fn ask(&mut self, of: Option<PlacementId>, about: Option<(Slot, &[Opened])>) -> Vec<(TermId, bool)> {
        let mut answers = Vec::new();
        if self.terms.is_closed() {
            return answers;
        }
        let (slot, opened) = about.map_or((None, &[][..]), |(slot, opened)| (Some(slot), opened));
        let opened: BTreeMap<TermId, &Opened> = opened.iter().map(|opened| (opened.term, opened)).collect();
        let mut costs: BTreeMap<TermId, u64> = opened.iter().map(|(id, opened)| (*id, opened.cost)).collect();
        let mut subject = None;
        loop {
            let mut has_asked = false;
            for id in self.open_terms(of) {
                if self.patience == 0 {
                    break;
                }
                let Some(most) = self.most(id) else { continue };
                costs.entry(id).or_insert_with(|| self.terms.get(id).cost());
                let Self { slots, clusters, standings, scores, terms, clock, patience, .. } = &mut *self;
                let lens = super::Lens { slots, clusters, standings, scores, now: *clock };
                let mut slice = SLICE;
                while terms.get(id).cost() <= most && slice > 0 && *patience > 0 {
                    let Some(cost) = terms.ask_next(id, lens, slot, &mut subject) else { break };
                    let cost = cost.max(1).saturating_add(if cost > 0 { ASK_COST } else { 0 });
                    (slice, *patience) = (slice.saturating_sub(cost), patience.saturating_sub(cost));
                    has_asked = true;
                }
                self.asked_last = Some(id);
                let entry = self.terms.get(id);
                match (slot, opened.get(&id)) {
                    _ if entry.is_open() => {}
                    // One cluster was asked, so one answer may be another.
                    (Some(slot), Some(opened)) if !opened.was_open => {
                        let matches = entry.matching.contains(slot.0);
                        answers.extend((opened.matched != matches).then_some((id, matches)));
                    }
                    _ => {
                        let users = entry.users.clone();
                        self.ripen(&users);
                    }
                }
            }
            if !has_asked || self.patience == 0 {
                break;
            }
        }
        for (term, before) in costs {
            if self.terms.get(term).cost() != before {
                let users = self.terms.get(term).users.clone();
                self.weigh(&users);
            }
        }
        answers
    }

    /// Looks whether placements cost too much since, or no longer.
    pub(super) fn weigh(&mut self, placements: &[PlacementId]) {
        for id in placements {
            let is_overspent = self.is_overspent(*id);
            if std::mem::replace(&mut self.placements.get_mut(*id).was_overspent, is_overspent)
                != is_overspent
            {
                self.ripen(&[*id]);
            }
        }
    }

    /// These may decide differently; what was kept of their decisions was not kept up to date while nobody knew who matches.
    fn ripen(&mut self, placements: &[PlacementId]) {
        for id in placements {
            self.placements.get_mut(*id).ranking = None;
            self.ripe.add(*id);
        }
    }
}
