//! Placements: what the engine would call misconfigured is refused at the door.
//!
//! An object that is stored already is not held to rules it never met: on update only what the change brings in is
//! refused, so that somebody can label or mend a Placement from before these rules one field at a time.

use std::collections::HashSet;

use berth_api::{Object, Placement};
use berth_engine::select::{Complaint, DETAILS_ANNOTATION, NAME_CHARS_MAX, compile};
use serde_json::Value;

use crate::attempt::{Attempt, Operation};
use crate::denial::{Denial, FieldProblem};

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Denial> {
    if attempt.operation == Operation::Create && attempt.name.len() > NAME_CHARS_MAX {
        let message = format!(
            "must be no longer than {NAME_CHARS_MAX} characters: PlacementDecisions carry the name as a label, and \
             this one has {}",
            attempt.name.len()
        );
        return Err(Denial::invalid(vec![FieldProblem { path: "metadata.name".to_owned(), message }]));
    }
    if attempt.old.is_some_and(|old| judged(old) == judged(object)) {
        return Ok(Vec::new());
    }
    // What does not fit the schema is the schema's to refuse.
    let Some(placement) = read(object) else { return Ok(Vec::new()) };
    let sentence = |complaint: &Complaint| format!("{}: {}", complaint.path, complaint.message);
    let complaints = match compile(&placement) {
        Ok(rule) => return Ok(rule.hints.iter().map(sentence).collect()),
        Err(complaints) => complaints,
    };
    let known: HashSet<String> = attempt
        .old
        .and_then(read)
        .and_then(|old| compile(&old).err())
        .map(|complaints| complaints.iter().map(sentence).collect())
        .unwrap_or_default();
    let (old, new): (Vec<Complaint>, Vec<Complaint>) =
        complaints.into_iter().partition(|complaint| known.contains(&sentence(complaint)));
    if new.is_empty() {
        return Ok(old.iter().map(sentence).collect());
    }
    let fields =
        new.into_iter().map(|complaint| FieldProblem { path: complaint.path, message: complaint.message });
    Err(Denial::invalid(fields.collect()))
}

/// What the rules are about: the spec, and the one annotation that can be wrong.
fn judged(object: &Value) -> (Option<&Value>, Option<&Value>) {
    let annotations = object.pointer("/metadata/annotations");
    (object.get("spec"), annotations.and_then(|annotations| annotations.get(DETAILS_ANNOTATION)))
}

fn read(object: &Value) -> Option<Box<Placement>> {
    match Object::read(object.clone()).ok()?.object {
        Object::Placement(placement) => Some(placement),
        _ => None,
    }
}
