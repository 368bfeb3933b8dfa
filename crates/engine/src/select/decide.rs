//! Deciding one placement: filter, score, spread, pick, group.

use std::collections::BTreeSet;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::compile::Complaint;
use super::decision::{Cause, Decision, Group, NextChange, Outcome, Pick};
use super::feasible::{feasible, holds, members};
use super::group::group;
use super::mistake::Mistake;
use super::ranking::{Ranked, Ranking, best};
use super::rule::Rule;
use super::score::Scorer;
use super::spread::Spreader;
use crate::model::{ALLOWANCE, Entry, FREE_SHARE, Holdings, Model, PlacementId, Slot};
use crate::moment::Moment;
use crate::taint::ClusterEffect;

/// Decides a placement at `now`. With a `ranking` to keep, the work is proportional to what changed since; without,
/// to the number of feasible clusters. `None` if the placement is to be left alone.
pub(crate) fn decide(
    model: &Model,
    id: PlacementId,
    now: Moment,
    ranking: Option<&mut Option<Ranking>>,
) -> Option<Decision> {
    let entry = model.placements.get(id);
    if entry.idle {
        return None;
    }
    let own = model.decisions.of(&entry.key);
    let complaints = entry.rule.as_ref().err().cloned().unwrap_or_else(|| overspending(model, id));
    let nothing = |outcome| Decision {
        outcome,
        complaints: complaints.clone(),
        picks: Vec::new(),
        groups: vec![Group { name: Arc::from(""), len: 0 }],
        unscheduled: 0,
        next: None,
        expired: Vec::new(),
    };
    if !entry.eligible.bound {
        return Some(nothing(Outcome::NoBindings));
    }
    if entry.eligible.sets.is_empty() {
        let asked = entry.asked.iter().map(ToString::to_string).collect();
        return Some(nothing(Outcome::NoIntersection { asked }));
    }
    let (Ok(rule), []) = (&entry.rule, &*complaints) else {
        let why = complaints.first().map(|first| format!("{}: {}", first.path, first.message));
        return Some(keep(model, entry, own, why.unwrap_or_default(), nothing(Outcome::Decided)));
    };
    if let Some((set, why)) = &entry.eligible.broken {
        let why = format!("ManagedClusterSet {set}: {why}");
        return Some(keep(model, entry, own, why, nothing(Outcome::Decided)));
    }
    // Rare enough to look for only when nothing would be selected anyway.
    let sets_empty = || members(model, entry).is_empty();
    let sets = || entry.eligible.sets.iter().map(|(set, _)| set.clone()).collect();
    let mut decision = select(model, id, rule, own, now, ranking);
    if decision.picks.is_empty() && sets_empty() {
        return Some(nothing(Outcome::SetsEmpty { sets: sets() }));
    }
    decision.unscheduled = rule.count.map_or(0, |count| count.saturating_sub(decision.picks.len()));
    Some(decision)
}

/// What is wrong with predicates whose expressions cost too much together, so that nobody knows whom they match. The words
/// do not depend on the fleet, so that a cluster more or less is nothing to write about.
fn overspending(model: &Model, id: PlacementId) -> Arc<[Complaint]> {
    if !model.is_overspent(id) {
        return Arc::default();
    }
    let terms = model.placements.get(id).terms.iter().enumerate();
    let mut costly = terms.filter(|(_, term)| !model.terms.get(**term).term.expressions.is_empty());
    let path = match (costly.next(), costly.next()) {
        (Some((index, _)), None) => format!("spec.predicates[{index}].requiredClusterSelector.celSelector"),
        _ => "spec.predicates".to_owned(),
    };
    let complaint = Complaint {
        path,
        message: format!(
            "the expressions cost too much across the fleet: beyond {FREE_SHARE} units for each cluster, all clusters \
             together may cost {ALLOWANCE}; narrow the clusters by labels, claims or names in the same predicate, or \
             write cheaper expressions"
        ),
        plugin: Mistake::PredicateCost.plugin(),
        mistake: Some(Mistake::PredicateCost),
    };
    [complaint].into()
}

fn select(
    model: &Model,
    id: PlacementId,
    rule: &Rule,
    own: Option<&Holdings>,
    now: Moment,
    ranking: Option<&mut Option<Ranking>>,
) -> Decision {
    let entry = model.placements.get(id);
    let (selected, next, expired) = match (ranking, rule.count) {
        (Some(ranking), Some(count)) if rule.is_separable() => {
            let best = Ranking::refresh(ranking, model, id, rule, count, now);
            let selected: Vec<Ranked> = best.iter().take(count).copied().collect();
            let slots = || selected.iter().map(|ranked| ranked.slot);
            let next = next_leave(model, entry, slots(), Reach::Selected, now);
            let next = earliest(next, next_turn(model, rule, slots(), now));
            (selected, next, Vec::new())
        }
        _ => {
            let feasible = feasible(model, entry, own, now);
            let scorer = Scorer::new(model, entry, rule, own, &feasible, now);
            let selected = pick(model, rule, own, &scorer, &feasible).0;
            // Where scores are relative, a cluster that leaves moves others although it was not selected itself.
            let next = if rule.is_relative() {
                let slots = || feasible.iter().map(Slot::from_index);
                let taken = selected.iter().map(|ranked| ranked.slot.index_u32()).collect();
                let next = next_leave(model, entry, slots(), Reach::Feasible { own, taken: &taken }, now);
                earliest(next, next_turn(model, rule, slots(), now))
            } else {
                let slots = || selected.iter().map(|ranked| ranked.slot);
                let next = next_leave(model, entry, slots(), Reach::Selected, now);
                earliest(next, next_turn(model, rule, slots(), now))
            };
            let expiry = scorer.next_expiry(&feasible).map(|(at, slot, resource)| {
                let cause = Cause::ScoreExpires { resource: resource.into() };
                NextChange { at, cluster: model.name(slot).clone(), cause }
            });
            let next = earliest(next, expiry);
            let expired = scorer.expired(&feasible);
            let expired =
                expired.into_iter().map(|(slot, resource)| (model.name(slot).clone(), resource.into()));
            // A set: two prioritizers may read one score, and slots are in the order of arrival.
            let expired: BTreeSet<(Arc<str>, Arc<str>)> = expired.collect();
            (selected, next, expired.into_iter().collect())
        }
    };
    let (picks, groups) = group(model, rule, selected);
    Decision {
        outcome: Outcome::Decided,
        complaints: Arc::default(),
        picks,
        groups,
        unscheduled: 0,
        next,
        expired,
    }
}

fn earliest(one: Option<NextChange>, other: Option<NextChange>) -> Option<NextChange> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.at < one.at { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// When an expression that reads scores may turn, because a score of one of `slots` expires. Only those that match
/// now can turn: an expired score is an error to an expression, and an error never makes one true.
fn next_turn(
    model: &Model,
    rule: &Rule,
    slots: impl Iterator<Item = Slot>,
    now: Moment,
) -> Option<NextChange> {
    if !rule.predicates.iter().any(|term| term.reads_scores()) {
        return None;
    }
    let ends = slots.flat_map(|slot| {
        let rank = model.slots.rank(slot);
        model.scores.resources_of(slot).map(move |(resource, scores)| (scores.ends, rank, resource, slot))
    });
    let (at, _, resource, slot) = ends.filter(|(at, ..)| *at > now && at.is_finite()).min()?;
    Some(NextChange {
        at,
        cluster: model.name(slot).clone(),
        cause: Cause::ScoreExpires { resource: resource.clone() },
    })
}

/// The selection out of the feasible clusters, best first, and how it was spread.
pub(crate) fn pick<'r>(
    model: &Model,
    rule: &'r Rule,
    own: Option<&Holdings>,
    scorer: &Scorer<'_>,
    feasible: &RoaringBitmap,
) -> (Vec<Ranked>, Option<Spreader<'r>>) {
    let all = usize::try_from(feasible.len()).expect("slots are 32 bits wide");
    let count = rule.count.unwrap_or(all);
    // Wishes tell clusters apart only where not all can be had.
    let ruled = rule.anti_affinity.is_some() || rule.spread.iter().any(|term| term.hard);
    if !ruled && (rule.spread.is_empty() || count >= all) {
        return (best(model, scorer, feasible, count).0, None);
    }
    let (ranked, _) = best(model, scorer, feasible, all);
    let choose = |spreader: &mut Spreader<'r>, count: usize| -> Vec<Ranked> {
        spreader.choose(count).into_iter().map(|chosen| chosen.ranked).collect()
    };
    let mut spreader = Spreader::new(model, rule, ranked.iter().copied());
    let chosen = choose(&mut spreader, count);
    // Step by step, rules that cross can lead into a corner. What is held and keeps them all is no worse a start; it is
    // taken where it leads further, so that a selection once reached is never lost to the order of steps.
    if ruled
        && chosen.len() < count.min(all)
        && let Some(own) = own
    {
        let mut from_held = Spreader::new(model, rule, ranked.into_iter());
        if let Some(mut seated) = from_held.seat(&own.clusters).filter(|seated| seated.len() <= count) {
            let left = count - seated.len();
            seated.extend(choose(&mut from_held, left));
            if seated.len() > chosen.len() {
                return (seated, Some(from_held));
            }
        }
    }
    (chosen, Some(spreader))
}

/// Keeps what the placement holds, except clusters that none of its sets contains any more: a grant that was
/// withdrawn is withdrawn, however broken the object.
fn keep(model: &Model, entry: &Entry, own: Option<&Holdings>, why: String, nothing: Decision) -> Decision {
    let mut held: Vec<Slot> = own.into_iter().flat_map(|own| own.times.keys()).copied().collect();
    held.retain(|slot| model.clusters.get(*slot).is_some());
    if entry.eligible.broken.is_none() {
        let members = members(model, entry);
        // A cluster being deleted is still a member here; it leaves with its object.
        held.retain(|slot| {
            members.contains(slot.index_u32()) || model.clusters.get(*slot).is_some_and(|c| c.deleting)
        });
    }
    held.sort_unstable_by_key(|slot| model.slots.rank(*slot));
    let picks: Vec<Pick> =
        held.into_iter().map(|slot| Pick { cluster: model.name(slot).clone(), slot, score: 0 }).collect();
    let groups = vec![Group { name: Arc::from(""), len: picks.len() }];
    Decision { outcome: Outcome::Kept { why }, picks, groups, ..nothing }
}

/// Whose deadlines matter to a decision.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'m> {
    /// Those of selected clusters: a taint against new selections does not make them leave.
    Selected,
    /// Those of every feasible cluster, selected or not.
    Feasible {
        /// What is held.
        own: Option<&'m Holdings>,
        /// What is selected now: once written it is held, and a taint against new selections does not end that.
        taken: &'m RoaringBitmap,
    },
}

/// The first moment at which one of `slots` leaves, or is to be avoided, because a toleration runs out.
pub(crate) fn next_leave(
    model: &Model,
    entry: &Entry,
    slots: impl Iterator<Item = Slot>,
    reach: Reach<'_>,
    now: Moment,
) -> Option<NextChange> {
    let id = entry.class?;
    let timed = &model.standings.class(id).timed;
    if timed.is_empty() {
        return None;
    }
    let bars_when_new = |slot: Slot| match reach {
        Reach::Selected => false,
        Reach::Feasible { own, taken } => !holds(own, slot) && !taken.contains(slot.index_u32()),
    };
    let mut next: Option<(Moment, u64, Slot)> = None;
    for slot in slots.filter(|slot| timed.contains(slot.index_u32())) {
        let standing = model.standings.standing(id, model.clusters.taints(slot));
        let fresh = if bars_when_new(slot) { standing.fresh } else { Moment::NEVER };
        for at in [standing.any, standing.liked, fresh] {
            let key = (at, model.slots.rank(slot), slot);
            if at > now && at.is_finite() && next.is_none_or(|next| key < next) {
                next = Some(key);
            }
        }
    }
    let (at, _, slot) = next?;
    let ending = model.clusters.taints(slot).iter().find(|carried| {
        let effect = &model.standings.taint(carried.id).effect;
        (*effect != ClusterEffect::NoSelectIfNew || bars_when_new(slot))
            && model.standings.standing(id, std::slice::from_ref(*carried)).next_end(now) == at
    })?;
    let taint = model.standings.taint(ending.id);
    let text = taint.to_string();
    let cause = if taint.effect == ClusterEffect::PreferNoSelect {
        Cause::PreferenceEnds { taint: text }
    } else {
        Cause::TolerationEnds { taint: text }
    };
    Some(NextChange { at, cluster: model.name(slot).clone(), cause })
}
