//! The placement controller: Placements in, PlacementDecisions and their status out.
//!
//! Owns the model of the fleet, kept by difference, and the index of which PlacementDecisions belong to which Placement.
//! What is selected is the engine's verdict, and so is the order in which slices are written.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use berth_api::names::{self, label};
use berth_api::{Placement, PlacementDecision};
use berth_engine::model::ObjectKey;
use berth_engine::select::{Decision, Outcome, Published, SliceStep, publish, transition};
use berth_engine::{Delta, Model, Moment};
use kube::Resource as _;
use serde_json::json;

use super::{Controller, Verdict};
use crate::act::{Note, Target, Write, difference};
use crate::dialect::Dialect;
use crate::due::Due;
use crate::names::ControllerName;
use crate::world::{Change, Kind, Object, World};

/// The longest ScoreUpdate note, in characters.
const SCORE_NOTE_CHARS_MAX: usize = 1_000;

/// Decides Placements.
#[derive(Debug)]
pub struct PlacementController {
    model: Model,
    /// The names of the PlacementDecisions that belong to each Placement.
    slices: HashMap<ObjectKey, BTreeSet<Arc<str>>>,
    dialect: Dialect,
}

impl PlacementController {
    /// A controller that has seen nothing yet, for a server that speaks `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self { model: Model::new(), slices: HashMap::new(), dialect }
    }

    /// The fleet as it is known.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Keeps the index of slices; the Placements whose slices these were or are come back.
    fn index(
        &mut self,
        key: &ObjectKey,
        before: Option<&Object>,
        after: Option<&Object>,
    ) -> BTreeSet<ObjectKey> {
        let owners = |object: Option<&Object>| match object {
            Some(Object::Decision(decision)) => owners(decision),
            _ => BTreeSet::new(),
        };
        let (were, are) = (owners(before), owners(after));
        for owner in were.difference(&are) {
            if let Some(slices) = self.slices.get_mut(owner) {
                slices.remove(&key.name);
                if slices.is_empty() {
                    self.slices.remove(owner);
                }
            }
        }
        for owner in &are {
            self.slices.entry(owner.clone()).or_default().insert(key.name.clone());
        }
        were.into_iter().chain(are).collect()
    }

    /// The PlacementDecisions of a Placement, in the order of their names.
    fn existing<'w>(&self, placement: &ObjectKey, world: &'w World) -> Vec<&'w PlacementDecision> {
        let named = self.slices.get(placement).into_iter().flatten();
        named
            .map(|name| ObjectKey { namespace: placement.namespace.clone(), name: name.clone() })
            .filter_map(|key| world.decisions.get(&key).map(|object| &**object))
            .filter(|slice| belongs(slice, placement, world))
            .collect()
    }

    fn notes(
        &self,
        placement: &Arc<Placement>,
        decision: &Decision,
        writes: &[Write],
        now: Moment,
    ) -> Vec<Note> {
        let regarding = Target::of(&Object::Placement(Arc::clone(placement)));
        let ObjectKey { namespace, name } = regarding.key.clone();
        let note = |related: Target, is_warning, reason, action, note| Note {
            regarding: regarding.clone(),
            related: Some(related),
            is_warning,
            reason,
            action,
            note,
            reporter: names::PLACEMENT_REPORTER,
            namespace: namespace.to_string(),
        };
        let expired = decision.expired.first().map(|(cluster, score)| {
            format!(": the score {score} of cluster {cluster} has expired in plugin AddOn")
        });
        let mut notes = Vec::new();
        let mut is_filled = None;
        for write in writes {
            let (kind, key) = write.subject();
            if kind != Kind::Decision {
                continue;
            }
            let slice = key.name.clone();
            let sentence = |done: &str| {
                format!("Decision {slice} is {done} with placement {name} in namespace {namespace}")
            };
            match write {
                Write::Create(_) => notes.push(note(
                    Target::to_come(kind, key),
                    false,
                    "DecisionCreate",
                    "DecisionCreated",
                    sentence("created"),
                )),
                Write::Patch { target, subresource: Some(_), .. } => {
                    // A slice that was just made needs no second event for being filled.
                    if target.uid.is_some() {
                        let text = sentence("updated") + expired.as_deref().unwrap_or_default();
                        notes.push(note(
                            target.clone(),
                            expired.is_some(),
                            "DecisionUpdate",
                            "DecisionUpdated",
                            text,
                        ));
                    }
                    is_filled.get_or_insert(target.clone());
                }
                Write::Patch { .. } | Write::Unchanged(_) => {}
                Write::Delete(target) => notes.push(note(
                    target.clone(),
                    false,
                    "DecisionDelete",
                    "DecisionDeleted",
                    sentence("deleted"),
                )),
            }
        }
        if let Some(slice) = is_filled {
            let scores = self.model.score_note(&regarding.key, now, SCORE_NOTE_CHARS_MAX);
            if !scores.is_empty() {
                notes.push(note(slice, false, "ScoreUpdate", "ScoreUpdated", scores));
            }
        }
        notes
    }
}

impl Controller for PlacementController {
    fn name(&self) -> ControllerName {
        ControllerName::Placement
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Cluster, Kind::Set, Kind::Binding, Kind::Placement, Kind::Decision, Kind::Score]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
        match (&change.before, &change.after) {
            (Some(Object::Placement(_)), None) => {
                due.forget(&change.key);
                // Once more, for the count.
                due.mark(&change.key);
            }
            // Its status is no input, but somebody may have edited that, too.
            (_, Some(Object::Placement(_))) => due.mark(&change.key),
            (before @ Some(Object::Decision(_)), after) | (before, after @ Some(Object::Decision(_))) => {
                let owners = self.index(&change.key, before.as_ref(), after.as_ref());
                for owner in &owners {
                    due.mark(owner);
                }
            }
            _ => {}
        }
        let Some(delta) = delta(change) else { return };
        let touched = self.model.apply(delta);
        touched.keys(&self.model).for_each(|placement| due.mark(placement));
    }

    fn advance(&mut self, now: Moment, due: &mut Due) {
        let touched = self.model.advance(now);
        touched.keys(&self.model).for_each(|placement| due.mark(placement));
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(placement) = world.placements.get(subject) else {
            // Its slices go with it: they are its dependents.
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let Some(decision) = self.model.decide(subject, now) else {
            return Verdict { outcome: "idle", ..Verdict::default() };
        };
        let existing = self.existing(subject, world);
        let mut published = publish(&self.model, placement, &existing, &decision, now);
        self.dialect.adapt(&mut published);
        let writes = writes(placement, &existing, &published);
        let notes = self.notes(placement, &decision, &writes, now);
        let next = decision.next.as_ref().map(|next| next.at);
        let wake = next.into_iter().chain(published.scores_due).min();
        Verdict { writes, notes, wake, outcome: outcome(&decision) }
    }
}

/// The writes that make a Placement's slices and its status what they should be.
fn writes(placement: &Arc<Placement>, existing: &[&PlacementDecision], published: &Published) -> Vec<Write> {
    let namespace = placement.metadata.namespace.as_deref().unwrap_or_default();
    let target = |slice: &str| {
        let found = existing.iter().find(|object| object.metadata.name.as_deref() == Some(slice));
        let key = ObjectKey::new(namespace, slice);
        match found {
            Some(object) => Target {
                kind: Kind::Decision,
                key,
                uid: object.metadata.uid.clone(),
                resource_version: object.metadata.resource_version.clone(),
            },
            None => Target::to_come(Kind::Decision, key),
        }
    };
    let steps = transition(existing, &published.decisions).into_iter();
    let mut writes: Vec<Write> = steps
        .filter_map(|step| match step {
            SliceStep::Create(object) => Some(Write::Create(Object::Decision(Arc::from(object)))),
            SliceStep::Fill { slice, decisions } => Some(Write::Patch {
                target: target(&slice),
                subresource: Some("status"),
                patch: json!({"status": {"decisions": decisions}}),
            }),
            SliceStep::Dress(object) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                let found = existing.iter().find(|found| found.metadata.name == object.metadata.name)?;
                let dress = |object: &PlacementDecision| {
                    json!({"metadata": {
                        "labels": object.metadata.labels.clone().unwrap_or_default(),
                        "ownerReferences": object.metadata.owner_references.clone().unwrap_or_default(),
                    }})
                };
                let patch = difference(&dress(found), &dress(&object))?;
                Some(Write::Patch { target: target(name), subresource: None, patch })
            }
            SliceStep::Drop { slice } => Some(Write::Delete(target(&slice))),
        })
        .collect();
    let before = placement.status.clone().unwrap_or_default();
    if let Some(patch) = difference(&before, &published.status) {
        writes.push(Write::Patch {
            target: Target::of(&Object::Placement(Arc::clone(placement))),
            subresource: Some("status"),
            patch: json!({"status": patch}),
        });
    }
    writes
}

fn outcome(decision: &Decision) -> &'static str {
    match decision.outcome {
        _ if !decision.complaints.is_empty() => "misconfigured",
        Outcome::Kept { .. } => "misconfigured",
        Outcome::Decided if decision.unscheduled == 0 && !decision.picks.is_empty() => "satisfied",
        _ => "unsatisfied",
    }
}

/// The change as the model takes it.
fn delta(change: &Change) -> Option<Delta> {
    let key = || change.key.clone();
    let name = || change.key.name.to_string();
    Some(match (&change.before, &change.after) {
        (_, Some(Object::Cluster(object))) => Delta::Cluster(Box::new((**object).clone())),
        (Some(Object::Cluster(_)), None) => Delta::ClusterGone(name()),
        (_, Some(Object::Set(object))) => Delta::Set(Box::new((**object).clone())),
        (Some(Object::Set(_)), None) => Delta::SetGone(name()),
        (_, Some(Object::Binding(object))) => Delta::Binding(Box::new((**object).clone())),
        (Some(Object::Binding(_)), None) => Delta::BindingGone(key()),
        (_, Some(Object::Placement(object))) => Delta::Placement(Box::new((**object).clone())),
        (Some(Object::Placement(_)), None) => Delta::PlacementGone(key()),
        (_, Some(Object::Decision(object))) => Delta::Decision(Box::new((**object).clone())),
        (Some(Object::Decision(_)), None) => Delta::DecisionGone(key()),
        (_, Some(Object::Score(object))) => Delta::Score(Box::new((**object).clone())),
        (Some(Object::Score(_)), None) => Delta::ScoreGone(key()),
        _ => return None,
    })
}

/// The Placements a PlacementDecision may belong to: the one its label names, and the one whose slices are named like it.
fn owners(decision: &PlacementDecision) -> BTreeSet<ObjectKey> {
    let namespace = decision.meta().namespace.as_deref().unwrap_or_default();
    let labelled = decision.meta().labels.as_ref().and_then(|labels| labels.get(label::PLACEMENT));
    let named = decision.meta().name.as_deref().and_then(named_after);
    labelled
        .map(String::as_str)
        .into_iter()
        .chain(named)
        .map(|name| ObjectKey::new(namespace, name))
        .collect()
}

/// The Placement that would give a slice this name.
fn named_after(slice: &str) -> Option<&str> {
    let (placement, number) = slice.rsplit_once(names::DECISION_NAME_INFIX)?;
    number.parse::<u32>().is_ok().then_some(placement)
}

/// Whether a PlacementDecision is this Placement's. Its name says it where a Placement of that name exists, because that
/// Placement cannot do without; otherwise its label does.
fn belongs(decision: &PlacementDecision, placement: &ObjectKey, world: &World) -> bool {
    let named = decision.meta().name.as_deref().and_then(named_after);
    named.is_none_or(|named| {
        let other = ObjectKey { namespace: placement.namespace.clone(), name: named.into() };
        other == *placement || world.placements.get(&other).is_none()
    })
}

#[cfg(test)]
mod tests;
