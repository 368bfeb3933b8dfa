//! The placement controller: Placements in, PlacementDecisions and their status out.
//!
//! Owns the model of the fleet, kept by difference, and the index of which PlacementDecisions belong to which Placement.
//! What is selected is the engine's verdict, and so is the order in which slices are written.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use berth_api::names::{self, label};
use berth_api::{Placement, PlacementDecision};
use berth_engine::model::ObjectKey;
use berth_engine::select::{Decision, Outcome, Published, SliceStep, publish, transition};
use berth_engine::{DeltaRef, Model, Moment};
use kube::Resource as _;
use serde_json::json;

use super::{Controller, Verdict};
use crate::act::{Note, Target, Write, difference};
use crate::dialect::Dialect;
use crate::due::{Due, Ended};
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Units of cost that expressions may have in one turn of the loop: about as long as a turn may take.
pub(crate) const TURN_COST_MAX: u64 = 200_000;
/// The longest ScoreUpdate note, in characters.
const SCORE_NOTE_CHARS_MAX: usize = 1_000;
/// How many scores that are out of date an event names: it has room for a thousand characters, and names are long.
const EXPIRED_LISTED_MAX: usize = 10;

/// Decides Placements.
#[derive(Debug)]
pub struct PlacementController {
    model: Model,
    /// The names of the PlacementDecisions that belong to each Placement.
    slices: HashMap<ObjectKey, BTreeSet<Arc<str>>>,
    /// The slices of Placements whose writes are under way. The model has them as they will be: who is decided meanwhile
    /// must see what is taken, or all would take the same and move apart again afterwards.
    expected: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// The Placements that were found to be as they should be.
    settled: HashMap<ObjectKey, Settled>,
    dialect: Dialect,
}

/// A Placement that needed no write: as long as it is decided alike and nobody changes an object, it needs none.
#[derive(Debug)]
struct Settled {
    placement: Arc<Placement>,
    slices: Vec<Arc<PlacementDecision>>,
    decision: Decision,
}

impl Settled {
    fn still(
        &self,
        placement: &Arc<Placement>,
        slices: &[&Arc<PlacementDecision>],
        decision: &Decision,
    ) -> bool {
        Arc::ptr_eq(&self.placement, placement)
            && self.slices.len() == slices.len()
            && self.slices.iter().zip(slices).all(|(before, slice)| Arc::ptr_eq(before, slice))
            && alike(&self.decision, decision)
    }
}

/// Whether two decisions look the same to everybody, where no scores are shown: these move with every other placement.
fn alike(one: &Decision, other: &Decision) -> bool {
    let Decision { outcome, complaints, picks, groups, unscheduled, next, expired } = one;
    *outcome == other.outcome
        && *complaints == other.complaints
        && picks.len() == other.picks.len()
        && picks.iter().zip(&other.picks).all(|(one, other)| one.cluster == other.cluster)
        && *groups == other.groups
        && *unscheduled == other.unscheduled
        && *next == other.next
        && *expired == other.expired
}

impl PlacementController {
    /// A controller that has seen nothing yet, for a server that speaks `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        let mut model = Model::new();
        model.be_patient(TURN_COST_MAX);
        Self { model, slices: HashMap::new(), expected: HashMap::new(), settled: HashMap::new(), dialect }
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
    fn existing<'w>(&self, placement: &ObjectKey, world: &'w World) -> Vec<&'w Arc<PlacementDecision>> {
        let named = self.slices.get(placement).into_iter().flatten();
        named
            .map(|name| ObjectKey { namespace: placement.namespace.clone(), name: name.clone() })
            .filter_map(|key| world.decisions.get(&key))
            .filter(|slice| belongs(slice, placement, world))
            .collect()
    }

    /// Counts slices as they will be once the writes are done.
    fn expect(&mut self, subject: &ObjectKey, existing: &[&PlacementDecision], published: &Published) {
        let mut keys: BTreeSet<ObjectKey> =
            existing.iter().map(|slice| ObjectKey::of(&slice.metadata)).collect();
        for slice in &published.decisions {
            let key = ObjectKey::of(&slice.metadata);
            // Nobody else is touched by it: what others hold concerns a Placement when it is decided for another reason.
            self.model.note(DeltaRef::Decision(slice));
            keys.remove(&key);
        }
        for gone in &keys {
            self.model.note(DeltaRef::DecisionGone(gone));
        }
        keys.extend(published.decisions.iter().map(|slice| ObjectKey::of(&slice.metadata)));
        self.expected.insert(subject.clone(), keys);
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
        let expired = expiry(&decision.expired);
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
                    // A slice that was just made needs no second event for being filled, unless there is more to tell.
                    if target.uid.is_some() || expired.is_some() {
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
                Write::Patch { .. }
                | Write::Strategic { .. }
                | Write::Unchanged(_)
                | Write::Destroy(_)
                | Write::Evict { .. }
                | Write::Look { .. }
                | Write::Review { .. }
                | Write::Ask { .. }
                | Write::Foreign { .. } => {}
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

    fn needs(&self) -> &'static [Need] {
        &[
            Need::Create(Kind::Decision),
            Need::Patch(Kind::Decision),
            Need::PatchPart(Kind::Decision, "status"),
            Need::Delete(Kind::Decision),
            Need::PatchPart(Kind::Placement, "status"),
            Need::Record,
            // Who makes something that keeps its owner from going needs a say in the owner's going.
            Need::Might { verb: "update", kind: Kind::Placement, part: "finalizers", names: &[] },
        ]
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
                // Half-way there: what it comes to is known, and was counted when it was decided.
                if owners
                    .iter()
                    .filter_map(|owner| self.expected.get(owner))
                    .any(|keys| keys.contains(&change.key))
                {
                    return;
                }
            }
            _ => {}
        }
        let Some(delta) = delta(change) else { return };
        let touched = self.model.observe(delta);
        touched.keys(&self.model).for_each(|placement| due.mark(placement));
    }

    fn model(&mut self) -> Option<&mut Model> {
        Some(&mut self.model)
    }

    fn advance(&mut self, now: Moment, _: &World, due: &mut Due) {
        let touched = self.model.advance(now);
        touched.keys(&self.model).for_each(|placement| due.mark(placement));
    }

    fn go_on(&mut self, due: &mut Due) -> bool {
        let touched = self.model.go_on(TURN_COST_MAX);
        touched.keys(&self.model).for_each(|placement| due.mark(placement));
        self.model.is_behind()
    }

    fn speak(&mut self, dialect: Dialect, world: &World, due: &mut Due) {
        self.dialect = dialect;
        self.settled.clear();
        world.placements.iter().for_each(|(placement, _)| due.mark(placement));
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(placement) = world.placements.get(subject) else {
            // Its slices go with it: they are its dependents.
            self.settled.remove(subject);
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        if self.model.is_waiting(subject) {
            // It is marked again when its expressions have been asked of everybody.
            return Verdict { outcome: "waiting", ..Verdict::default() };
        }
        let Some(decision) = self.model.decide(subject, now) else {
            return Verdict { outcome: "idle", ..Verdict::default() };
        };
        let (outcome, next) = (outcome(&decision), decision.next.as_ref().map(|next| next.at));
        let slices = self.existing(subject, world);
        if self.settled.get(subject).is_some_and(|settled| settled.still(placement, &slices, &decision)) {
            return Verdict { wake: next, outcome, ..Verdict::default() };
        }
        let existing: Vec<&PlacementDecision> = slices.iter().map(|slice| &***slice).collect();
        let mut published = publish(&self.model, placement, &existing, &decision, self.dialect.details, now);
        self.dialect.adapt(&mut published);
        let writes = writes(placement, &existing, &published);
        let notes = self.notes(placement, &decision, &writes, now);
        let wake = next.into_iter().chain(published.scores_due).min();
        if writes.is_empty() && notes.is_empty() && !shows_details(&published) {
            let slices = slices.into_iter().map(Arc::clone).collect();
            self.settled
                .insert(subject.clone(), Settled { placement: Arc::clone(placement), slices, decision });
        } else {
            self.settled.remove(subject);
        }
        if !writes.is_empty() || !notes.is_empty() {
            self.expect(subject, &existing, &published);
        }
        Verdict { writes, notes, wake, outcome, ..Verdict::default() }
    }

    fn ended(&mut self, subject: &ObjectKey, _: Ended, _: Moment, world: &World, due: &mut Due) {
        for key in self.expected.remove(subject).into_iter().flatten() {
            let delta = match world.decisions.get(&key) {
                Some(slice) => DeltaRef::Decision(slice),
                None => DeltaRef::DecisionGone(&key),
            };
            let touched = self.model.observe(delta);
            touched.keys(&self.model).for_each(|placement| due.mark(placement));
        }
    }
}

/// What a note adds about scores in use that are out of date, in upstream's words.
fn expiry(expired: &[(Arc<str>, Arc<str>)]) -> Option<String> {
    if expired.is_empty() {
        return None;
    }
    let mut text = ": AddOnPlacementScores".to_owned();
    for (cluster, score) in expired.iter().take(EXPIRED_LISTED_MAX) {
        let _ = write!(text, " {cluster}/{score}");
    }
    if expired.len() > EXPIRED_LISTED_MAX {
        let _ = write!(text, " and {} more", expired.len() - EXPIRED_LISTED_MAX);
    }
    Some(text + " expired in plugin AddOn")
}

/// Whether slices show what may change without the decision: scores, when these may be written, and availability.
fn shows_details(published: &Published) -> bool {
    let mut entries = published.decisions.iter().flat_map(PlacementDecision::decisions);
    published.scores_due.is_some()
        || published.status.last_score_update_time.is_some()
        || entries.any(|entry| entry.score.is_some() || entry.available.is_some())
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
fn delta(change: &Change) -> Option<DeltaRef<'_>> {
    let key = &change.key;
    Some(match (&change.before, &change.after) {
        (_, Some(Object::Cluster(object))) => DeltaRef::SharedCluster(object),
        (Some(Object::Cluster(_)), None) => DeltaRef::ClusterGone(&key.name),
        (_, Some(Object::Set(object))) => DeltaRef::Set(object),
        (Some(Object::Set(_)), None) => DeltaRef::SetGone(&key.name),
        (_, Some(Object::Binding(object))) => DeltaRef::Binding(object),
        (Some(Object::Binding(_)), None) => DeltaRef::BindingGone(key),
        (_, Some(Object::Placement(object))) => DeltaRef::Placement(object),
        (Some(Object::Placement(_)), None) => DeltaRef::PlacementGone(key),
        (_, Some(Object::Decision(object))) => DeltaRef::Decision(object),
        (Some(Object::Decision(_)), None) => DeltaRef::DecisionGone(key),
        (_, Some(Object::Score(object))) => DeltaRef::Score(object),
        (Some(Object::Score(_)), None) => DeltaRef::ScoreGone(key),
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
