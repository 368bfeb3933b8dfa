//! What each feasible cluster is worth.
//!
//! Owns the arithmetic of the prioritizers, bit for bit as upstream computes it, truncations included. A score is
//! the sum of weight times value; sums saturate, so that no weight can wrap one.

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::feasible::{holds, shunned};
use super::rule::{Prioritizer, Resource, Rule};
use crate::model::{Entry, Holdings, Model, Scores, Slot};
use crate::moment::Moment;

/// Loads up to this have their Balance value looked up instead of computed.
const BALANCE_TABLE_MAX: u32 = 1024;

/// The best value of a prioritizer.
pub(crate) const BEST: i64 = 100;

/// The value of Balance for a cluster with `load` foreign decisions where the most loaded has `highest`.
pub(crate) fn balance(load: u32, highest: u32) -> i64 {
    if load == 0 {
        return BEST;
    }
    let usage = f64::from(load) / f64::from(highest);
    // Cut towards zero before doubling, as upstream does: only even values come out.
    2 * (100.0 * (0.5 - usage)) as i64
}

/// The value of an allocatable amount between the least and the most of the feasible clusters.
pub(crate) fn allocatable(amount: f64, least: f64, most: f64) -> i64 {
    if (most - least).abs() > 0.0 {
        (((amount - least) / (most - least) - 0.5) * 2.0 * 100.0) as i64
    } else {
        BEST
    }
}

/// One prioritizer, ready to be asked about any feasible cluster.
enum Part<'m> {
    Balance {
        highest: u32,
        table: Vec<i64>,
    },
    Steady,
    PreferNoSelect {
        shunned: RoaringBitmap,
    },
    Allocatable {
        resource: Resource,
        range: Option<(f64, f64)>,
    },
    AddOn {
        scores: Option<&'m HashMap<Slot, Scores>>,
        name: &'m str,
    },
    /// Depends on what is selected already; `spread` adds it.
    Spread,
}

/// The prioritizers of one placement at one moment.
pub(crate) struct Scorer<'m> {
    model: &'m Model,
    own: Option<&'m Holdings>,
    now: Moment,
    parts: Vec<(&'m Prioritizer, i64, Part<'m>)>,
}

impl<'m> Scorer<'m> {
    /// Prepares the prioritizers for a placement whose feasible clusters are known.
    pub(crate) fn new(
        model: &'m Model,
        entry: &Entry,
        rule: &'m Rule,
        own: Option<&'m Holdings>,
        feasible: &RoaringBitmap,
        now: Moment,
    ) -> Self {
        let parts = rule.weights.iter().map(|(prioritizer, weight)| {
            let part = match prioritizer {
                Prioritizer::Balance => {
                    let highest = model.decisions.highest_foreign_load(own);
                    let table =
                        (0..=highest.min(BALANCE_TABLE_MAX)).map(|load| balance(load, highest)).collect();
                    Part::Balance { highest, table }
                }
                Prioritizer::Steady => Part::Steady,
                Prioritizer::PreferNoSelect => {
                    Part::PreferNoSelect { shunned: shunned(model, entry, feasible, now) }
                }
                Prioritizer::ResourceAllocatableCpu => allocatable_part(model, Resource::Cpu, feasible),
                Prioritizer::ResourceAllocatableMemory => allocatable_part(model, Resource::Memory, feasible),
                Prioritizer::AddOn { resource, score } => {
                    Part::AddOn { scores: model.scores.of(resource), name: score }
                }
                Prioritizer::Spread => Part::Spread,
            };
            (prioritizer, *weight, part)
        });
        Self { model, own, now, parts: parts.collect() }
    }

    /// The highest foreign load the scores are relative to; 0 without Balance.
    pub(crate) fn highest_load(&self) -> u32 {
        self.parts
            .iter()
            .find_map(
                |(_, _, part)| if let Part::Balance { highest, .. } = part { Some(*highest) } else { None },
            )
            .unwrap_or_default()
    }

    fn value(&self, part: &Part<'_>, slot: Slot) -> i64 {
        match part {
            Part::Balance { highest, table } => {
                let load = self.model.decisions.foreign_load(slot, self.own);
                table.get(load as usize).copied().unwrap_or_else(|| balance(load, *highest))
            }
            Part::Steady => i64::from(holds(self.own, slot)) * BEST,
            Part::PreferNoSelect { shunned } => {
                if shunned.is_empty() || !shunned.contains(slot.0) {
                    0
                } else {
                    -BEST
                }
            }
            Part::Allocatable { resource, range } => {
                let amount = self.model.clusters.get(slot).and_then(|cluster| cluster.resource(*resource));
                match (amount, range) {
                    (Some(amount), Some((least, most))) => allocatable(amount, *least, *most),
                    _ => 0,
                }
            }
            Part::AddOn { scores, name } => scores
                .and_then(|scores| scores.get(&slot))
                .filter(|scores| !scores.expired(self.now))
                .and_then(|scores| scores.value(name))
                .unwrap_or_default(),
            Part::Spread => 0,
        }
    }

    /// The sum for one cluster, without Spread.
    pub(crate) fn score(&self, slot: Slot) -> i64 {
        self.parts.iter().fold(0_i64, |sum, (_, weight, part)| {
            sum.saturating_add(weight.saturating_mul(self.value(part, slot)))
        })
    }

    /// Each prioritizer's weight and value for one cluster, without Spread.
    pub(crate) fn values(&self, slot: Slot) -> impl Iterator<Item = (&'m Prioritizer, i64, i64)> {
        self.parts
            .iter()
            .filter(|(_, _, part)| !matches!(part, Part::Spread))
            .map(move |(prioritizer, weight, part)| (*prioritizer, *weight, self.value(part, slot)))
    }

    /// Scores a fleet quickly: the clusters nobody of us holds share all but their load.
    pub(crate) fn each(&self, feasible: &RoaringBitmap, mut take: impl FnMut(Slot, i64)) {
        let Some((weight, table)) = self.only_loads_matter() else {
            for slot in feasible {
                take(Slot(slot), self.score(Slot(slot)));
            }
            return;
        };
        let mut strangers = |slot: u32| {
            let load = self.model.decisions.load(Slot(slot)) as usize;
            take(Slot(slot), weight.saturating_mul(table[load]));
        };
        match self.own {
            Some(own) if !own.clusters.is_disjoint(feasible) => {
                (feasible - &own.clusters).iter().for_each(&mut strangers);
                for slot in feasible & &own.clusters {
                    take(Slot(slot), self.score(Slot(slot)));
                }
            }
            _ => feasible.iter().for_each(strangers),
        }
    }

    /// Balance's weight and table, if nothing else can tell apart clusters we do not hold.
    fn only_loads_matter(&self) -> Option<(i64, &[i64])> {
        let mut found = None;
        for (_, weight, part) in &self.parts {
            match part {
                Part::Balance { highest, table } if *highest <= BALANCE_TABLE_MAX => {
                    found = Some((*weight, &table[..]));
                }
                Part::Steady | Part::Spread => {}
                Part::PreferNoSelect { shunned } if shunned.is_empty() => {}
                _ => return None,
            }
        }
        found
    }

    /// Scores in use that have expired, as `cluster, resource`, for the clusters in sight.
    pub(crate) fn expired(&self, feasible: &RoaringBitmap) -> Vec<(Slot, &'m str)> {
        let mut expired = Vec::new();
        for (prioritizer, scores) in self.add_ons() {
            for slot in feasible {
                if scores.get(&Slot(slot)).is_some_and(|scores| scores.expired(self.now)) {
                    expired.push((Slot(slot), prioritizer));
                }
            }
        }
        expired
    }

    /// The next moment at which a score in use expires, with its cluster and resource.
    pub(crate) fn next_expiry(&self, feasible: &RoaringBitmap) -> Option<(Moment, Slot, &'m str)> {
        let mut next: Option<(Moment, u64, Slot, &str)> = None;
        for (resource, scores) in self.add_ons() {
            for slot in feasible {
                let slot = Slot(slot);
                let Some(ends) = scores.get(&slot).map(|scores| scores.ends) else { continue };
                if ends <= self.now || !ends.is_finite() {
                    continue;
                }
                let key = (ends, self.model.slots.rank(slot), slot, resource);
                if next.is_none_or(|next| (key.0, key.1) < (next.0, next.1)) {
                    next = Some(key);
                }
            }
        }
        next.map(|(at, _, slot, resource)| (at, slot, resource))
    }

    fn add_ons(&self) -> impl Iterator<Item = (&'m str, &'m HashMap<Slot, Scores>)> {
        self.parts.iter().filter_map(|(prioritizer, _, part)| match (prioritizer, part) {
            (Prioritizer::AddOn { resource, .. }, Part::AddOn { scores: Some(scores), .. }) => {
                Some((&**resource, *scores))
            }
            _ => None,
        })
    }
}

fn allocatable_part<'m>(model: &Model, resource: Resource, feasible: &RoaringBitmap) -> Part<'m> {
    let amounts = feasible
        .iter()
        .filter_map(|slot| model.clusters.get(Slot(slot)).and_then(|cluster| cluster.resource(resource)));
    let range = amounts.fold(None, |range: Option<(f64, f64)>, amount| {
        Some(range.map_or((amount, amount), |(least, most)| (least.min(amount), most.max(amount))))
    });
    Part::Allocatable { resource, range }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_has_upstreams_values_floating_point_artefacts_included() {
        let row = |highest: u32| (1..=highest).map(|load| balance(load, highest)).collect::<Vec<_>>();
        assert_eq!(row(3), [32, -32, -100]);
        assert_eq!(row(7), [70, 42, 14, -14, -42, -70, -100]);
        assert_eq!(row(10), [80, 60, 40, 18, 0, -18, -38, -60, -80, -100]);
        assert_eq!(balance(0, 0), 100);
        assert_eq!(balance(0, 5), 100);
    }

    #[test]
    fn allocatable_has_upstreams_values_floating_point_artefacts_included() {
        let row: Vec<_> = (0..=10).map(|amount| allocatable(f64::from(amount), 0.0, 10.0)).collect();
        assert_eq!(row, [-100, -80, -60, -40, -19, 0, 19, 39, 60, 80, 100]);
        let of = |amounts: [f64; 3], least, most| amounts.map(|amount| allocatable(amount, least, most));
        assert_eq!(of([10.0, 7.0, 9.0], 7.0, 10.0), [100, -100, 33]);
        assert_eq!(of([50.0, 90.0, 80.0], 50.0, 90.0), [-100, 100, 50]);
        assert_eq!(allocatable(4.0, 4.0, 4.0), 100);
    }
}
