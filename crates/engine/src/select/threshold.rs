//! What a cluster has to rank before to enter a selection that is complete.
//!
//! Owns the question whether a cluster that became better may be selected by a placement that has decided before, in
//! two ways that say the same: [`judge`] looks at all that was chosen, and a [`Threshold`] is what that found of the
//! last of them. A change of one cluster asks this of every placement that could select it, so what was found is kept
//! (`model/thresholds.rs`) and carries what it depends on besides the chosen clusters themselves.

use roaring::RoaringBitmap;

use super::feasible::{holds, is_feasible, is_shunned};
use super::ranking::Ranked;
use super::rule::{Prioritizer, Rule};
use super::score::{BEST, Scorer, balance};
use crate::model::{ClassId, Entry, Holdings, Model, PlacementId, Slot};
use crate::moment::Moment;

/// A cluster that became better.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) slot: Slot,
    pub(crate) now: Moment,
    rank: u64,
    rank_epoch: u64,
    /// The highest load, and how many clusters have it.
    peak: (u32, u32),
    /// What Balance says of it to who holds neither it nor all that have the highest load.
    balance: i64,
}

impl Newcomer {
    pub(crate) fn new(model: &Model, slot: Slot, now: Moment) -> Self {
        let peak = model.decisions.peak();
        Self {
            slot,
            now,
            rank: model.slots.rank(slot),
            rank_epoch: model.slots.epoch(),
            peak,
            balance: balance(model.decisions.load(slot), peak.0),
        }
    }

    /// Whether placements with these tolerations avoid it.
    pub(crate) fn is_shunned(&self, model: &Model, class: ClassId) -> bool {
        is_shunned(model, class, self.slot, self.now)
    }
}

/// What a cluster that a placement neither chose nor holds has to rank before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Threshold {
    /// Nobody looked, or what was found does not last.
    #[default]
    Unknown,
    /// Before nobody: the selection is not complete, or one cluster more changes what others are worth.
    Open,
    /// Before the last of the chosen.
    Last(Last),
}

/// The last of the chosen, all of which may be chosen again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    ranked: Ranked,
    rank_epoch: u64,
    /// The time in which no toleration of a chosen cluster runs out.
    since: Moment,
    until: Moment,
    /// The weights that count for clusters that are not held.
    balance: i64,
    prefer_no_select: i64,
    /// The highest load, and how many of the clusters that have it are held.
    top: u32,
    held_at_top: u32,
}

impl Threshold {
    /// Whether the newcomer may be selected; `None` where what is known does not tell.
    pub(crate) fn lets_in(&self, newcomer: &Newcomer, is_shunned: bool) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Open => Some(true),
            Self::Last(last) => {
                last.counts_for(newcomer).then(|| last.ranked >= last.rank(newcomer, is_shunned))
            }
        }
    }
}

impl Last {
    /// Whether the last would be found the same now.
    fn counts_for(&self, newcomer: &Newcomer) -> bool {
        let (top, clusters) = newcomer.peak;
        self.rank_epoch == newcomer.rank_epoch
            && self.since <= newcomer.now
            && newcomer.now < self.until
            // A stranger with the highest load is what all loads are compared with, whatever is held.
            && (self.balance == 0 || (self.top == top && self.held_at_top < clusters))
    }

    /// Where a newcomer ranks. Steady says nothing of clusters that are not held.
    fn rank(&self, newcomer: &Newcomer, is_shunned: bool) -> Ranked {
        let shunned = if is_shunned { self.prefer_no_select.saturating_mul(-BEST) } else { 0 };
        let score = self.balance.saturating_mul(newcomer.balance).saturating_add(shunned);
        Ranked { score, rank: newcomer.rank, slot: newcomer.slot }
    }
}

/// Whether the newcomer may be selected, and what of that can be kept. It may not where it ranks behind all that was
/// chosen last, and those are as many as are wanted and may all be chosen again: then nobody makes room for it. What is
/// known of the chosen ones is looked at as it is, so whatever moved them since counts.
pub(crate) fn judge(model: &Model, id: PlacementId, newcomer: &Newcomer) -> (bool, Threshold) {
    let Newcomer { slot, now, .. } = *newcomer;
    let entry = model.placements.get(id);
    let (Ok(rule), Some(chosen), Some(class_id)) = (&entry.rule, &entry.chosen, entry.class) else {
        return (true, Threshold::Open);
    };
    let is_full = rule.count.is_some_and(|count| count > 0 && chosen.len() == count as u64);
    if !is_full || !rule.is_separable() {
        return (true, Threshold::Open);
    }
    let own = model.decisions.of(&entry.key);
    let is_new = !chosen.contains(slot.index_u32()) && !holds(own, slot);
    // As long as somebody is to be asked, nobody knows who may be chosen.
    let is_known = !entry.terms.iter().any(|term| model.terms.get(*term).is_open());
    if !is_new || !is_known {
        return (true, Threshold::Unknown);
    }
    let class = model.standings.class(class_id);
    let mut looked_at = chosen.clone();
    looked_at.insert(slot.index_u32());
    let scorer = Scorer::new(model, entry, rule, own, &looked_at, now);
    let ranked = |slot| Ranked { score: scorer.score(slot), rank: model.slots.rank(slot), slot };
    let slots = || chosen.iter().map(Slot::from_index);
    if !slots().all(|slot| is_feasible(model, id, class, own, slot, now)) {
        return (true, Threshold::Unknown);
    }
    let last = slots().map(ranked).max().expect("as many as are wanted, and that is not zero");
    let threshold = lasting(model, entry, rule, chosen, own, class_id, last, now);
    (last >= ranked(slot), threshold)
}

/// The last of the chosen, where everything it depends on is told of or can be compared.
#[expect(clippy::too_many_arguments, reason = "all of it is at hand in the one place that asks")]
fn lasting(
    model: &Model,
    entry: &Entry,
    rule: &Rule,
    chosen: &RoaringBitmap,
    own: Option<&Holdings>,
    class: ClassId,
    ranked: Ranked,
    now: Moment,
) -> Threshold {
    // Expressions may be asked again at any time.
    let asks = entry.terms.iter().any(|term| !model.terms.get(*term).term.expressions.is_empty());
    // Of clusters that are held and not chosen nobody is told that their load is another.
    let holds_others = own.is_some_and(|own| !own.clusters.is_subset(chosen));
    if asks || holds_others {
        return Threshold::Unknown;
    }
    let (top, clusters) = model.decisions.peak();
    let held = own.into_iter().flat_map(|own| own.times.keys());
    let held_at_top = held.filter(|slot| model.decisions.load(**slot) == top).count();
    let held_at_top = u32::try_from(held_at_top).expect("slots are 32 bits wide");
    let balance = rule.weight(&Prioritizer::Balance);
    if balance != 0 && held_at_top >= clusters {
        return Threshold::Unknown;
    }
    let timed = chosen & &model.standings.class(class).timed;
    let ends = timed.iter().map(|slot| {
        model.standings.standing(class, model.clusters.taints(Slot::from_index(slot))).next_end(now)
    });
    Threshold::Last(Last {
        ranked,
        rank_epoch: model.slots.epoch(),
        since: if timed.is_empty() { Moment::PAST } else { now },
        until: ends.min().unwrap_or(Moment::NEVER),
        balance,
        prefer_no_select: rule.weight(&Prioritizer::PreferNoSelect),
        top,
        held_at_top,
    })
}
