//! The best clusters of a placement, in order.
//!
//! Owns two ways to the same list: [`best`] looks at every feasible cluster, and [`Ranking`] keeps the list by
//! difference. A ranking holds the selection and a reserve behind it; its invariant is that it contains *every*
//! feasible cluster that ranks at or before its last entry. A cluster that changes is taken out and put back where
//! it belongs now; when the reserve runs dry, or the scores of all moved, it is built anew.

use roaring::RoaringBitmap;

use super::feasible::{feasible, is_feasible};
use super::rule::Rule;
use super::score::Scorer;
use crate::model::{Cursor, Entry, Holdings, Model, PlacementId, Slot};
use crate::moment::Moment;

/// How many clusters are kept behind the selection, so that as many may leave before the fleet is looked through.
const RESERVE: usize = 64;

/// A cluster with its score. Ordered as a placement prefers: higher score first, then by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) score: i64,
    pub(crate) rank: u64,
    pub(crate) slot: Slot,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.score.cmp(&self.score).then_with(|| self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The best `count` of the feasible clusters, in order; whether these are all of them.
pub(crate) fn best(
    model: &Model,
    scorer: &Scorer<'_>,
    feasible: &RoaringBitmap,
    count: usize,
) -> (Vec<Ranked>, bool) {
    if count == 0 {
        return (Vec::new(), feasible.is_empty());
    }
    let total = usize::try_from(feasible.len()).expect("slots are 32 bits wide");
    // Twice the wanted number is collected before the worse half is thrown away, so that every cluster costs a
    // comparison with the worst wanted one, and only the few that pass it cost more.
    let room = count.saturating_mul(2).min(total.max(1));
    let mut kept: Vec<Ranked> = Vec::with_capacity(room);
    let mut worst: Option<Ranked> = None;
    scorer.each(feasible, |slot, score| {
        if worst.is_some_and(|worst| score < worst.score) {
            return;
        }
        let ranked = Ranked { score, rank: model.slots.rank(slot), slot };
        if worst.is_some_and(|worst| ranked > worst) {
            return;
        }
        kept.push(ranked);
        if kept.len() == room && total > count && room > count {
            kept.select_nth_unstable(count - 1);
            kept.truncate(count);
            worst = kept.last().copied();
        }
    });
    kept.sort_unstable();
    kept.truncate(count);
    (kept, total <= count)
}

/// The list kept by difference.
#[derive(Debug)]
pub(crate) struct Ranking {
    best: Vec<Ranked>,
    /// Whether `best` holds every feasible cluster.
    complete: bool,
    /// The last entry at the time of building: every feasible cluster at or before it is in `best`.
    floor: Option<Ranked>,
    read_to: Cursor,
    /// The highest foreign load the scores were made with.
    highest_load: u32,
    rank_epoch: u64,
    /// When it was last looked at; it says nothing of the time before.
    judged_at: Moment,
    /// From here on time alone may have changed a score or barred a cluster.
    valid_until: Moment,
}

impl Ranking {
    /// The best clusters at `now`, at least `count` of them if there are as many, from `slot` if it can be brought
    /// up to date and anew otherwise.
    pub(crate) fn refresh<'r>(
        slot: &'r mut Option<Self>,
        model: &Model,
        id: PlacementId,
        rule: &Rule,
        count: usize,
        now: Moment,
    ) -> &'r [Ranked] {
        let entry = model.placements.get(id);
        let own = model.decisions.of(&entry.key);
        let current =
            slot.take().and_then(|ranking| ranking.brought_up_to_date(model, id, rule, own, count, now));
        let ranking = current.unwrap_or_else(|| Self::build(model, entry, rule, own, count, now));
        &slot.insert(ranking).best
    }

    fn build(
        model: &Model,
        entry: &Entry,
        rule: &Rule,
        own: Option<&Holdings>,
        count: usize,
        now: Moment,
    ) -> Self {
        let feasible = feasible(model, entry, own, now);
        let scorer = Scorer::new(model, entry, rule, own, &feasible, now);
        let (best, complete) = best(model, &scorer, &feasible, count.saturating_add(RESERVE));
        Self {
            floor: best.last().copied(),
            best,
            complete,
            read_to: model.changes.end(),
            highest_load: scorer.highest_load(),
            rank_epoch: model.slots.epoch(),
            judged_at: now,
            valid_until: next_end(model, entry, now),
        }
    }

    fn brought_up_to_date(
        mut self,
        model: &Model,
        id: PlacementId,
        rule: &Rule,
        own: Option<&Holdings>,
        count: usize,
        now: Moment,
    ) -> Option<Self> {
        let entry = model.placements.get(id);
        let class_id = entry.class?;
        let class = model.standings.class(class_id);
        let usable =
            self.rank_epoch == model.slots.epoch() && self.judged_at <= now && now < self.valid_until;
        if !usable {
            return None;
        }
        let changed: RoaringBitmap = model.changes.since(self.read_to)?.map(Slot::index_u32).collect();
        let scorer = Scorer::new(model, entry, rule, own, &changed, now);
        if self.highest_load != scorer.highest_load() {
            return None;
        }
        self.best.retain(|ranked| !changed.contains(ranked.slot.index_u32()));
        for slot in changed.iter().map(Slot::from_index) {
            if class.timed.contains(slot.index_u32()) {
                let standing = model.standings.standing(class_id, model.clusters.taints(slot));
                self.valid_until = self.valid_until.min(standing.next_end(now));
            }
            if !is_feasible(model, id, class, own, slot, now) {
                continue;
            }
            let ranked = Ranked { score: scorer.score(slot), rank: model.slots.rank(slot), slot };
            if self.complete || self.floor.is_some_and(|floor| ranked <= floor) {
                let place = self.best.partition_point(|other| *other < ranked);
                self.best.insert(place, ranked);
            }
        }
        let most = count.saturating_add(2 * RESERVE);
        if self.best.len() > most {
            self.best.truncate(most);
            self.floor = self.best.last().copied();
            self.complete = false;
        }
        self.read_to = model.changes.end();
        // What was taken out now may have to be in earlier: a clock that goes back asks for a new one.
        self.judged_at = now;
        (self.complete || self.best.len() >= count).then_some(self)
    }
}

/// The next moment at which a toleration of a candidate runs out.
fn next_end(model: &Model, entry: &Entry, now: Moment) -> Moment {
    let Some(id) = entry.class else { return Moment::NEVER };
    let timed = &model.standings.class(id).timed;
    if timed.is_empty() {
        return Moment::NEVER;
    }
    let candidates = super::feasible::candidates(model, entry);
    (&candidates & timed)
        .iter()
        .map(|slot| model.standings.standing(id, model.clusters.taints(Slot(slot))).next_end(now))
        .min()
        .unwrap_or(Moment::NEVER)
}
