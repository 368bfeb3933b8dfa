//! Choosing clusters that lie apart.
//!
//! Owns the selection under spread constraints and anti-affinity: one cluster at a time, always the best that the
//! rules still allow. A cluster's wish to be spread is worth points like any other preference (prioritizer
//! `Spread`), computed anew as the selection grows; hard constraints are never broken, whatever the points.
//!
//! Clusters that share all topologies differ only by score, so each such *cell* queues its clusters and only the
//! heads compete; `tiers` keeps the heads in an order that does not have to be made again when one is chosen.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use roaring::RoaringBitmap;
use serde::Serialize;

use super::ranking::Ranked;
use super::rule::{Prioritizer, Rule, Topology};
use super::tiers::{Bid, Seat, Tiers};
use crate::model::{Model, Slot};

/// Steps between the best and the worst value of one spread term; earlier terms count this much more than later.
const TERM_STEPS: u64 = 63;
/// Bits of one term in the combined value: eight terms fit in 48.
const TERM_BITS: u32 = 6;
/// `Spread` is worth between this and its negative.
const WORTH_MAX: i64 = 100;

/// Why a cluster was passed over although it was next in rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Obstacle {
    /// It has no value for the key that must differ or be spread.
    NoTopology {
        /// The key.
        key: Box<str>,
    },
    /// A selected cluster has the same value.
    SameTopology {
        /// The key.
        key: Box<str>,
        /// The value they share.
        value: Box<str>,
    },
    /// Its topology would exceed the emptiest by more than allowed.
    Skew {
        /// The key.
        key: Box<str>,
        /// Its value.
        value: Box<str>,
        /// Selected clusters there.
        here: usize,
        /// Selected clusters in the emptiest topology.
        least: usize,
        /// How far apart these may be.
        max_skew: usize,
    },
}

/// A cluster chosen, with the points that spreading was worth at that step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) ranked: Ranked,
    /// The value of `Spread`, -100 to 100.
    pub(crate) spread: i64,
}

/// Where a cell is in one topology: the number of its value, or nowhere.
type Place = Option<usize>;

struct Term<'r> {
    topology: &'r Topology,
    max_skew: usize,
    hard: bool,
    values: Vec<Box<str>>,
    /// The number of each value.
    numbers: HashMap<Box<str>, usize>,
    counts: Vec<usize>,
    least: usize,
    /// How many topologies have the least.
    at_least: usize,
}

impl Term<'_> {
    /// What it is worth to this term to choose where `here` were chosen, or nowhere.
    fn steps(&self, here: Option<usize>) -> u64 {
        // Nowhere is as bad as the most crowded place.
        let Some(here) = here else { return 0 };
        // Fewer than the least are where a tier has not heard of those chosen since.
        let excess = (here + 1).saturating_sub(self.least).saturating_sub(self.max_skew);
        // The step over the allowed skew costs half of all there is; how far over, little by little.
        if excess == 0 { TERM_STEPS } else { (TERM_STEPS / 2 + 1).saturating_sub(excess as u64) }
    }
}

pub(crate) struct Spreader<'r> {
    rule: &'r Rule,
    terms: Vec<Term<'r>>,
    /// Values of the anti-affinity key that are taken; `None` without anti-affinity.
    apart: Option<(&'r Topology, HashSet<Box<str>>)>,
    cells: Vec<Cell>,
}

struct Cell {
    places: Vec<Place>,
    /// The cell's value of the anti-affinity key.
    apart: Option<Box<str>>,
    queue: std::collections::VecDeque<Ranked>,
}

impl<'r> Spreader<'r> {
    /// Sorts the feasible clusters, given best first, into cells.
    pub(crate) fn new(model: &Model, rule: &'r Rule, ranked: impl Iterator<Item = Ranked>) -> Self {
        let mut terms: Vec<Term<'r>> = rule
            .spread
            .iter()
            .map(|term| Term {
                topology: &term.topology,
                max_skew: term.max_skew,
                hard: term.hard,
                values: Vec::new(),
                numbers: HashMap::new(),
                counts: Vec::new(),
                least: 0,
                at_least: 0,
            })
            .collect();
        let mut cells: Vec<Cell> = Vec::new();
        let mut lookup: HashMap<(Vec<Place>, Option<Box<str>>), usize> = HashMap::new();
        for ranked in ranked {
            let value =
                |topology: &Topology| model.clusters.value(ranked.slot, topology.facet, &topology.key);
            let places: Vec<Place> = terms
                .iter_mut()
                .map(|term| {
                    let value = value(term.topology)?;
                    let Term { values, numbers, counts, .. } = term;
                    Some(*numbers.entry_ref(value).or_insert_with(|| {
                        values.push(value.into());
                        counts.push(0);
                        counts.len() - 1
                    }))
                })
                .collect();
            let apart = rule.anti_affinity.as_ref().and_then(value).map(Box::from);
            let cell = *lookup.entry((places, apart)).or_insert_with_key(|(places, apart)| {
                cells.push(Cell { places: places.clone(), apart: apart.clone(), queue: [].into() });
                cells.len() - 1
            });
            cells[cell].queue.push_back(ranked);
        }
        for term in &mut terms {
            term.at_least = term.counts.len();
        }
        let apart = rule.anti_affinity.as_ref().map(|topology| (topology, HashSet::new()));
        Self { rule, terms, apart, cells }
    }

    /// Chooses up to `count` clusters, best first.
    pub(crate) fn choose(&mut self, count: usize) -> Vec<Chosen> {
        let mut tiers = self.tiers();
        self.choose_from(&mut tiers, count)
    }

    fn choose_from(&mut self, tiers: &mut Tiers, count: usize) -> Vec<Chosen> {
        let weight = self.rule.weight(&Prioritizer::Spread);
        let mut chosen = Vec::new();
        while chosen.len() < count {
            let best = tiers.best(
                |cell| self.is_taken(self.cells[cell].apart.as_deref()),
                |seats, ranked| self.bid(seats, ranked, weight),
            );
            let Some(((_, value, _), head)) = best else { break };
            let (ranked, cell) = head;
            let Cell { places, .. } = &self.cells[cell];
            if weight >= 0 && tiers.reseat(head, places, |term, place| self.terms[term].counts[place]) {
                continue;
            }
            chosen.push(Chosen { ranked, spread: self.worth(value) });
            // A place that fills makes its cells worth less: it is soon enough to move them when they come first. Where
            // crowding is a merit they are worth more, and have to be moved at once.
            let mut moved = if weight < 0 { tiers.moved(places) } else { Vec::new() };
            moved.retain(|other| *other != cell && self.leave(tiers, *other));
            self.leave(tiers, cell);
            self.cells[cell].queue.pop_front();
            if self.occupy(cell) || weight < 0 {
                tiers.unsettle();
            }
            for cell in moved.into_iter().chain([cell]) {
                self.wait(tiers, cell);
            }
        }
        chosen
    }

    fn tiers(&self) -> Tiers {
        let sizes: Vec<usize> = self.terms.iter().map(|term| term.counts.len()).collect();
        self.seated(Tiers::new(self.cells.iter().map(|cell| &*cell.places), &sizes))
    }

    /// Lets every head wait to be chosen.
    fn seated(&self, mut tiers: Tiers) -> Tiers {
        for cell in 0..self.cells.len() {
            self.wait(&mut tiers, cell);
        }
        tiers
    }

    fn wait(&self, tiers: &mut Tiers, cell: usize) {
        let Cell { places, queue, .. } = &self.cells[cell];
        if let Some(head) = queue.front() {
            tiers.add((*head, cell), places, |term, place| self.terms[term].counts[place]);
        }
    }

    fn leave(&self, tiers: &mut Tiers, cell: usize) -> bool {
        self.cells[cell].queue.front().is_some_and(|head| tiers.remove(&(*head, cell)))
    }

    /// What a cluster of a tier bids, if the rules allow it to be chosen now.
    fn bid(&self, seats: &[Seat], ranked: &Ranked, weight: i64) -> Option<Bid> {
        let value = self.value_if_allowed(seats)?;
        let points = ranked.score.saturating_add(weight.saturating_mul(self.worth(value)));
        Some((points, value, Reverse(ranked.rank)))
    }

    /// The combined value of a tier; `None` if a hard term forbids its cells.
    fn value_if_allowed(&self, seats: &[Seat]) -> Option<u64> {
        self.terms.iter().zip(seats).try_fold(0, |value, (term, seat)| {
            let here = match *seat {
                Seat::Nowhere => None,
                Seat::In(place) => Some(term.counts[place as usize]),
                Seat::With(count) => Some(count as usize),
            };
            let forbidden =
                term.hard && here.is_none_or(|here| (here + 1).saturating_sub(term.least) > term.max_skew);
            (!forbidden).then(|| (value << TERM_BITS) | term.steps(here))
        })
    }

    /// Whether anti-affinity forbids a value, as it will to the end.
    fn is_taken(&self, value: Option<&str>) -> bool {
        self.apart.as_ref().is_some_and(|(_, taken)| value.is_none_or(|value| taken.contains(value)))
    }

    /// Seats clusters that are held already, all at once; `None` if together they break a rule. One at a time even a
    /// selection that keeps every rule can be out of reach.
    pub(crate) fn seat(&mut self, held: &RoaringBitmap) -> Option<Vec<Ranked>> {
        let mut seated = Vec::new();
        for cell in 0..self.cells.len() {
            let queue = std::mem::take(&mut self.cells[cell].queue);
            let (stay, rest): (Vec<_>, Vec<_>) =
                queue.into_iter().partition(|ranked| held.contains(ranked.slot.index_u32()));
            self.cells[cell].queue = rest.into();
            for ranked in stay {
                let Cell { places, apart, .. } = &self.cells[cell];
                let nowhere = self.terms.iter().zip(places).any(|(term, place)| term.hard && place.is_none());
                if nowhere || self.is_taken(apart.as_deref()) {
                    return None;
                }
                self.occupy(cell);
                seated.push(ranked);
            }
        }
        let fullest = |term: &Term<'_>| term.counts.iter().max().copied().unwrap_or_default();
        let mut hard = self.terms.iter().filter(|term| term.hard);
        hard.all(|term| fullest(term) - term.least <= term.max_skew).then_some(seated)
    }

    /// The terms' values side by side, the first term in the highest bits.
    fn spread_value(&self, places: &[Place]) -> u64 {
        self.terms
            .iter()
            .zip(places)
            .fold(0, |value, (term, place)| (value << TERM_BITS) | term.steps(place.map(|p| term.counts[p])))
    }

    /// The combined value scaled to -100..=100; 0 without terms.
    fn worth(&self, value: u64) -> i64 {
        let bits = TERM_BITS * self.terms.len() as u32;
        if bits == 0 {
            return 0;
        }
        let most = (1_u64 << bits) - 1;
        (value * (2 * WORTH_MAX as u64) / most) as i64 - WORTH_MAX
    }

    /// Counts a chosen cluster; whether the emptiest place of some term filled, so that others may be worth more.
    fn occupy(&mut self, cell: usize) -> bool {
        let Self { terms, cells, apart, .. } = self;
        let mut filled = false;
        for (term, place) in terms.iter_mut().zip(&cells[cell].places) {
            let Some(place) = *place else { continue };
            term.counts[place] += 1;
            if term.counts[place] == term.least + 1 {
                term.at_least -= 1;
                if term.at_least == 0 {
                    term.least += 1;
                    term.at_least = term.counts.iter().filter(|count| **count == term.least).count();
                    // Where there is no other place, nothing is worth more or less than before.
                    filled |= term.counts.len() > 1;
                }
            }
        }
        if let (Some((_, taken)), Some(value)) = (apart, &cells[cell].apart) {
            taken.insert(value.clone());
        }
        filled
    }

    /// What keeps clusters in these places from being chosen now.
    fn obstacle_at(&self, places: &[Place], apart: Option<&str>) -> Option<Obstacle> {
        if let Some((topology, taken)) = &self.apart {
            match apart {
                None => return Some(Obstacle::NoTopology { key: topology.key.clone() }),
                Some(value) if taken.contains(value) => {
                    return Some(Obstacle::SameTopology { key: topology.key.clone(), value: value.into() });
                }
                Some(_) => {}
            }
        }
        self.terms.iter().zip(places).filter(|(term, _)| term.hard).find_map(|(term, place)| {
            let key = term.topology.key.clone();
            let Some(place) = *place else { return Some(Obstacle::NoTopology { key }) };
            let here = term.counts[place];
            (here + 1 - term.least > term.max_skew).then(|| Obstacle::Skew {
                key,
                value: term.values[place].clone(),
                here,
                least: term.least,
                max_skew: term.max_skew,
            })
        })
    }

    /// After choosing: what keeps a cluster that was not chosen out, if a rule does.
    pub(crate) fn why_not(&self, model: &Model, slot: Slot) -> Option<Obstacle> {
        let apart = self.rule.anti_affinity.as_ref();
        let apart = apart.and_then(|topology| model.clusters.value(slot, topology.facet, &topology.key));
        self.obstacle_at(&self.places(model, slot), apart)
    }

    /// After choosing: what `Spread` would be worth for a cluster now.
    pub(crate) fn worth_of(&self, model: &Model, slot: Slot) -> i64 {
        self.worth(self.spread_value(&self.places(model, slot)))
    }

    fn places(&self, model: &Model, slot: Slot) -> Vec<Place> {
        let place = |term: &Term<'_>| {
            let value = model.clusters.value(slot, term.topology.facet, &term.topology.key)?;
            term.numbers.get(value).copied()
        };
        self.terms.iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests;
