//! Choosing clusters that lie apart.
//!
//! Owns the selection under spread constraints and anti-affinity: one cluster at a time, always the best that the
//! rules still allow. A cluster's wish to be spread is worth points like any other preference (prioritizer
//! `Spread`), computed anew as the selection grows; hard constraints are never broken, whatever the points.
//!
//! Clusters that share all topologies differ only by score, so each such *cell* queues its clusters and only the
//! heads compete. A head's points fall as its topologies fill and rise only when the emptiest topology fills, which
//! is when the queue of heads is put in order again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::{HashMap, HashSet};
use roaring::RoaringBitmap;
use serde::Serialize;

use super::ranking::Ranked;
use super::rule::{Prioritizer, Rule, Topology};
use crate::model::{Model, Slot};

/// Steps between the best and the worst value of one spread term; earlier terms count this much more than later.
const TERM_STEPS: u64 = 63;
/// Bits of one term in the combined value: eight terms fit in 48.
const TERM_BITS: u32 = 6;

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

/// A head of a cell competing to be chosen next. The greatest is chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Bid {
    points: i64,
    spread: u64,
    rank: Reverse<u64>,
    cell: usize,
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
        let weight = self.rule.weight(&Prioritizer::Spread);
        let mut chosen = Vec::new();
        let mut bids = self.bids(weight);
        while chosen.len() < count {
            let Some(bid) = bids.pop() else { break };
            let Some(fresh) = self.bid(bid.cell, weight) else { continue };
            if fresh != bid {
                // The topology filled since this bid was made; it stands behind those that are still fresh.
                bids.push(fresh);
                continue;
            }
            let ranked =
                self.cells[bid.cell].queue.pop_front().expect("a cell bids only while its queue has a head");
            chosen.push(Chosen { ranked, spread: self.worth(fresh.spread) });
            // Where crowding is a merit (a negative weight) every bid may have risen.
            if self.occupy(bid.cell) || weight < 0 {
                bids = self.bids(weight);
            } else if let Some(next) = self.bid(bid.cell, weight) {
                bids.push(next);
            }
        }
        chosen
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
                let shared = self
                    .apart
                    .as_ref()
                    .is_some_and(|(_, taken)| apart.as_ref().is_none_or(|value| taken.contains(value)));
                if nowhere || shared {
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

    fn bids(&self, weight: i64) -> BinaryHeap<Bid> {
        (0..self.cells.len()).filter_map(|cell| self.bid(cell, weight)).collect()
    }

    /// The bid of a cell's head, if the rules allow it to be chosen now.
    fn bid(&self, cell: usize, weight: i64) -> Option<Bid> {
        let head = self.cells[cell].queue.front()?;
        if self.obstacle(cell).is_some() {
            return None;
        }
        let spread = self.spread_value(&self.cells[cell].places);
        let points = head.score.saturating_add(weight.saturating_mul(self.worth(spread)));
        Some(Bid { points, spread, rank: Reverse(head.rank), cell })
    }

    /// The terms' values side by side, the first term in the highest bits.
    fn spread_value(&self, places: &[Place]) -> u64 {
        self.terms.iter().zip(places).fold(0, |value, (term, place)| {
            let steps = match place {
                // Nowhere is as bad as the most crowded place.
                None => 0,
                Some(place) => {
                    let excess = (term.counts[*place] + 1 - term.least).saturating_sub(term.max_skew);
                    // The step over the allowed skew costs half of all there is; how far over, little by little.
                    if excess == 0 { TERM_STEPS } else { (TERM_STEPS / 2 + 1).saturating_sub(excess as u64) }
                }
            };
            (value << TERM_BITS) | steps
        })
    }

    /// The combined value scaled to -100..=100; 0 without terms.
    fn worth(&self, value: u64) -> i64 {
        let bits = TERM_BITS * self.terms.len() as u32;
        if bits == 0 {
            return 0;
        }
        let most = (1_i128 << bits) - 1;
        (i128::from(value) * 200 / most - 100) as i64
    }

    /// Counts a chosen cluster; whether the emptiest topology of some term filled, so that others may bid again.
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
                    filled = true;
                }
            }
        }
        if let (Some((_, taken)), Some(value)) = (apart, &cells[cell].apart) {
            taken.insert(value.clone());
        }
        filled
    }

    /// What keeps the clusters of a cell from being chosen now.
    fn obstacle(&self, cell: usize) -> Option<Obstacle> {
        let Cell { places, apart, .. } = &self.cells[cell];
        self.obstacle_at(places, apart.as_deref())
    }

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
