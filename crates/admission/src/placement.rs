//! Placements: what the engine would call misconfigured is refused at the door.
//!
//! An object that is stored already is not held to rules it never met: on update only what the change brings in is
//! refused, so that somebody can label or mend a Placement from before these rules one field at a time.

use berth_api::{Object, Placement};
use berth_engine::select::{Complaint, DETAILS_ANNOTATION, NAME_CHARS_MAX, compile};
use serde_json::Value;

use crate::attempt::{Attempt, Operation};
use crate::denial::{Denial, FieldProblem, unless_known};

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
    let complaints = match compile(&placement) {
        Ok(rule) => {
            return Ok(rule.hints.iter().cloned().map(problem).map(|hint| hint.sentence()).collect());
        }
        Err(complaints) => complaints,
    };
    let before = attempt.old.and_then(read).and_then(|old| compile(&old).err()).unwrap_or_default();
    let before: Vec<FieldProblem> = before.into_iter().map(problem).collect();
    unless_known(complaints.into_iter().map(problem).collect(), &before)
}

fn problem(complaint: Complaint) -> FieldProblem {
    FieldProblem { path: complaint.path, message: complaint.message }
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
