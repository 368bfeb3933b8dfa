//! The nearest change of one cluster that would select it.
//!
//! Owns the search for a single, concrete change: a label, a claim, a taint, a score. Where one change is not enough
//! it says how many stand in the way instead of guessing.

use serde::Serialize;

use super::account::{ClusterAccount, Verdict};
use super::build::Context;
use crate::model::Slot;
use crate::select::Prioritizer;
use crate::selector::{Ask, Facet, Requirement, Term};

/// The highest value an AddOnPlacementScore can have.
const SCORE_MAX: i64 = 100;

/// A change of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Change {
    /// Set a label or claim to a value.
    Set {
        /// Label or claim.
        facet: Facet,
        /// Its key.
        key: String,
        /// The value.
        value: String,
    },
    /// Remove a label or claim.
    Unset {
        /// Label or claim.
        facet: Facet,
        /// Its key.
        key: String,
    },
    /// Remove a taint (or let the placement tolerate it).
    RemoveTaint {
        /// The taint, `key=value:Effect`.
        taint: String,
    },
    /// Raise a published score.
    RaiseScore {
        /// The AddOnPlacementScore.
        resource: String,
        /// The score in it.
        score: String,
        /// At least to this.
        to: i64,
    },
    /// Gain points in whatever way.
    GainPoints {
        /// At least this many.
        points: i64,
    },
    /// Several things stand in the way.
    Several {
        /// How many.
        obstacles: usize,
    },
}

/// What would select a cluster that is not selected.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counterfactual {
    /// The change.
    pub change: Change,
    /// Whether the cluster is sure to be selected then. `false`: the change removes this obstacle; what follows is not
    /// known, or others would still outrank the cluster.
    pub selects: bool,
}

/// Finds the change for a cluster that is not selected.
pub(super) fn counterfactual(
    context: &Context<'_>,
    slot: Slot,
    account: &ClusterAccount,
) -> Option<Counterfactual> {
    let rule = context.rule?;
    let barring: Vec<&str> =
        account.taints.iter().filter(|taint| taint.bars).map(|taint| taint.taint.as_str()).collect();
    // Spreading decides by itself, and relative scores move with every cluster; what they would make of one more is not
    // said before it is tried.
    let free = !rule.is_relative();
    let selects = || {
        free && context.score_if_feasible(slot).is_some_and(|score| context.would_be_selected(slot, score))
    };
    let several =
        |obstacles: usize| Some(Counterfactual { change: Change::Several { obstacles }, selects: false });
    match &account.verdict {
        Verdict::NotInSets { .. } => {
            let set = context.joinable_set()?;
            let missing = fewest_failures(context, slot).map_or(0, |(count, _)| count) + barring.len();
            if missing > 0 {
                return several(missing + 1);
            }
            let change = Change::Set {
                facet: Facet::Label,
                key: berth_api::names::label::CLUSTER_SET.to_owned(),
                value: set.to_string(),
            };
            let selects = still_passes(context, slot, &change) && selects();
            Some(Counterfactual { change, selects })
        }
        Verdict::NoPredicateMatches => match fewest_failures(context, slot)? {
            (1, Some(change)) if barring.is_empty() => {
                let selects = still_passes(context, slot, &change) && selects();
                Some(Counterfactual { change, selects })
            }
            (1, None) if barring.is_empty() => None,
            (count, _) => several(count + barring.len()),
        },
        Verdict::Barred => match &barring[..] {
            [taint] => {
                let change = Change::RemoveTaint { taint: (*taint).to_owned() };
                Some(Counterfactual { change, selects: selects() })
            }
            taints => several(taints.len()),
        },
        // Under spreading points alone do not decide; how many would is not known before it is tried.
        Verdict::Outranked { .. } if !free => None,
        Verdict::Outranked { .. } => {
            let cut = context.cut()?;
            let total = account.total?;
            let wins_ties = context.model.slots.rank(slot) < cut.rank;
            let points = cut.score.saturating_sub(total).saturating_add(i64::from(!wins_ties));
            let raise = rule.weights.iter().find_map(|(prioritizer, weight)| {
                let Prioritizer::AddOn { resource, score } = prioritizer else { return None };
                let value =
                    account.scores.iter().find(|entry| entry.prioritizer == prioritizer.to_string())?.value;
                let to = value.saturating_add(ceil_div(points, *weight)?);
                (to.abs() <= SCORE_MAX).then(|| Change::RaiseScore {
                    resource: resource.to_string(),
                    score: score.to_string(),
                    to,
                })
            });
            // A score that expressions read as well may decide more than the rank.
            let selects = !rule.predicates.iter().any(|term| term.reads_scores());
            Some(Counterfactual { change: raise.unwrap_or(Change::GainPoints { points }), selects })
        }
        Verdict::Obstructed { .. }
        | Verdict::Selected
        | Verdict::Kept
        | Verdict::Deleting
        | Verdict::Missing
        | Verdict::NotConsidered => None,
    }
}

/// Whether the cluster is sure to be in a set and to pass a predicate after a change of a label or claim: the same
/// key may be asked for elsewhere. What an expression would say is not guessed.
fn still_passes(context: &Context<'_>, slot: Slot, change: &Change) -> bool {
    let (facet, key, value) = match change {
        Change::Set { facet, key, value } => (facet, key, Some(value.as_str())),
        Change::Unset { facet, key } => (facet, key, None),
        _ => return true,
    };
    let lens = context.model.lens();
    let holds = |term: &Term| {
        term.requirements.iter().all(|requirement| {
            let changed = requirement.facet == *facet && *requirement.key == **key;
            requirement.holds(if changed {
                value
            } else {
                lens.value(slot, requirement.facet, &requirement.key)
            })
        })
    };
    let sets = context.entry.eligible.sets.iter().filter_map(|(_, term)| *term);
    let named = |term: &Term| term.admits_name(context.model.name(slot));
    let predicates = context.rule.map(|rule| &rule.predicates[..]).unwrap_or_default();
    sets.into_iter().any(|term| holds(&context.model.terms.get(term).term))
        && (predicates.is_empty()
            || predicates.iter().any(|term| term.expressions.is_empty() && named(term) && holds(term)))
}

/// By how much a value with `weight` must move to gain `points`; `None` without weight.
fn ceil_div(points: i64, weight: i64) -> Option<i64> {
    let magnitude = points.checked_add(weight.checked_abs()? - 1)?.checked_div(weight.checked_abs()?)?;
    Some(magnitude * weight.signum())
}

/// The predicate with the fewest failures: how many, and the change that mends a single one.
fn fewest_failures(context: &Context<'_>, slot: Slot) -> Option<(usize, Option<Change>)> {
    let lens = context.model.lens();
    let rule = context.rule?;
    let mut subject = None;
    rule.predicates
        .iter()
        .map(|term| {
            let named = term.admits_name(context.model.name(slot));
            let failing: Vec<&Requirement> = term
                .requirements
                .iter()
                .filter(|requirement| {
                    !requirement.holds(lens.value(slot, requirement.facet, &requirement.key))
                })
                .collect();
            let expressions = usize::from(context.first_mismatch(term, slot, &mut subject).is_some());
            let count = failing.len() + expressions + usize::from(!named);
            let change = match failing[..] {
                [requirement] if count == 1 => mend(requirement),
                _ => None,
            };
            (count, change)
        })
        .min_by_key(|(count, change)| (*count, change.is_none()))
}

/// The change of one label or claim that fulfils a requirement it fails.
fn mend(requirement: &Requirement) -> Option<Change> {
    let (facet, key) = (requirement.facet, requirement.key.to_string());
    Some(match &requirement.ask {
        Ask::In(values) => Change::Set { facet, key, value: values.first()?.to_string() },
        Ask::NotIn(_) | Ask::DoesNotExist => Change::Unset { facet, key },
        Ask::Exists => Change::Set { facet, key, value: "true".into() },
    })
}
