//! What people are told about members, as events.

use std::collections::BTreeSet;
use std::sync::Arc;

use berth_api::replacement::Replacement;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{Act, Phase, Plan, PolicyKey, Reason, State, Step};

use super::case::Case;
use crate::act::{Note, Target};
use crate::names::ControllerName;
use crate::world::{Object, World};

/// The longest note of an event, in characters: what API servers take, with room to spare.
const NOTE_CHARS_MAX: usize = 900;

fn note(regarding: Target, is_warning: bool, reason: &'static str, action: &'static str, text: &str) -> Note {
    let namespace = regarding.key.namespace.to_string();
    Note {
        regarding,
        related: None,
        is_warning,
        reason,
        action,
        note: text.chars().take(NOTE_CHARS_MAX).collect(),
        reporter: ControllerName::Replacement.as_str(),
        namespace,
    }
}

/// The pod of a member, if there is one.
fn pod(key: &PolicyKey, name: &Arc<str>, world: &World) -> Option<Target> {
    let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
    world.pods.get(&place).map(|pod| Target::whatever_revision(&Object::Pod(Arc::clone(pod))))
}

/// A replacement is in another phase.
pub(super) fn phase(key: &PolicyKey, step: &Step, work: &Arc<Replacement>, world: &World) -> Vec<Note> {
    let State::Course(phase) = step.state else { return Vec::new() };
    let why = step.reasons.iter().find(|reason| reason.holds()).or(step.reasons.last());
    let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
    let (is_warning, reason, text) = match phase {
        Phase::Done => (false, "Replaced", format!("{} was replaced{why}", step.name)),
        Phase::Aborted => {
            (false, "ReplacementAborted", format!("the replacement of {} was called off{why}", step.name))
        }
        Phase::Failed => {
            (true, "ReplacementFailed", format!("the replacement of {} has failed{why}", step.name))
        }
        phase => (false, "Replacing", format!("the replacement of {} is {phase}{why}", step.name)),
    };
    let work = Target::whatever_revision(&Object::Replacement(Arc::clone(work)));
    let mut notes = vec![note(work, is_warning, reason, "Replace", &text)];
    if phase.is_an_end()
        && let Some(pod) = pod(key, &step.name, world)
    {
        notes.push(note(pod, is_warning, reason, "Replace", &text));
    }
    notes
}

/// Something is done about a member.
pub(super) fn act(key: &PolicyKey, act: &Act, step: &Step, world: &World) -> Vec<Note> {
    let Some(pod) = pod(key, &step.name, world) else { return Vec::new() };
    let reason = if act.is_irreversible() { "ReplacementRemoves" } else { "Replacing" };
    let why = step.memory.course.as_ref().map(|course| format!(" because of {}", course.cause));
    let text = format!("{act}{}", why.unwrap_or_default());
    vec![note(pod, false, reason, "Replace", &text)]
}

/// What is new of members that are not being replaced: that they are held, and that somebody else may be faster.
pub(super) fn news(key: &PolicyKey, case: &mut Case, plan: &Plan, world: &World) -> Vec<Note> {
    let mut notes = Vec::new();
    for step in &plan.steps {
        let is_told = |reason: &&Reason| match reason {
            Reason::TaintEvictionRace { .. } => true,
            reason => step.state == State::Queued && reason.holds(),
        };
        let told: Vec<&Reason> = step.reasons.iter().filter(is_told).collect();
        let words: BTreeSet<&'static str> = told.iter().map(|reason| reason.word()).collect();
        let before = if words.is_empty() {
            case.noted.remove(&step.name)
        } else {
            case.noted.insert(Arc::clone(&step.name), words)
        };
        let before = before.unwrap_or_default();
        if told.is_empty() {
            continue;
        }
        let Some(pod) = pod(key, &step.name, world) else { continue };
        for reason in told.into_iter().filter(|reason| !before.contains(reason.word())) {
            let (is_warning, word) = match reason {
                Reason::TaintEvictionRace { .. } => (true, "TaintEvictionRace"),
                Reason::BreakerOpen { .. } => (true, "ReplacementHeld"),
                _ => (false, "ReplacementHeld"),
            };
            let text = match reason {
                Reason::TaintEvictionRace { .. } => reason.to_string(),
                reason => format!("due, and not replaced by policy {}: {reason}", key.name),
            };
            notes.push(note(pod.clone(), is_warning, word, "Replace", &text));
        }
    }
    notes
}
