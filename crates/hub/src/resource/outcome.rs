//! What a write comes to: the steps to commit, and what to answer.
//!
//! Owns the vocabulary only. Committing the steps, and giving the answer its revision, is the caller's.

use berth_hub_wire::Status;
use serde_json::Value;

/// What a request comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// What to commit, in order and atomically. Empty when nothing changes. All steps are about the same object.
    pub steps: Vec<Step>,
    /// What to say.
    pub answer: Answer,
    /// The HTTP status on success.
    pub code: u16,
    /// Warnings for the caller, in order.
    pub warnings: Vec<String>,
}

/// One change to the object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Keep it; there must be none yet.
    Create(Value),
    /// Keep this state; the object must be the one that was read.
    Update(Value),
    /// Remove it; this is the last state, which watchers see.
    Remove(Value),
}

/// What the answer's body is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The object as the last step leaves it, with the revision the store gives it. In a dry run, as the step holds it.
    Written,
    /// The object as it was read.
    Live,
    /// This object.
    Object(Value),
    /// This status.
    Status(Box<Status>),
}

/// An object on its way, between the two halves of a write: the caller lets mutating admission change it here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pending {
    object: Value,
    /// Whether it was not read through the schema as it stands: it comes from mutating admission, or from an apply.
    raw: bool,
    /// Whether there is no such object yet.
    pub creating: bool,
    /// Warnings gathered so far.
    pub warnings: Vec<String>,
}

/// OK.
pub(crate) const OK: u16 = 200;
/// Created.
pub(crate) const CREATED: u16 = 201;
/// Accepted: deletion goes on after the answer.
pub(crate) const ACCEPTED: u16 = 202;

impl Outcome {
    /// Nothing changes and the object is answered as it was read.
    pub(crate) fn unchanged(warnings: Vec<String>) -> Self {
        Outcome { steps: Vec::new(), answer: Answer::Live, code: OK, warnings }
    }

    /// One step, answered with what it leaves.
    pub(crate) fn written(step: Step, warnings: Vec<String>) -> Self {
        let code = if matches!(step, Step::Create(_)) { CREATED } else { OK };
        Outcome { steps: vec![step], answer: Answer::Written, code, warnings }
    }

    /// The object as the last step leaves it, for validating admission and for dry runs.
    pub(crate) fn object(&self) -> Option<&Value> {
        match (&self.answer, self.steps.last()) {
            (Answer::Object(object), _)
            | (_, Some(Step::Create(object) | Step::Update(object) | Step::Remove(object))) => Some(object),
            _ => None,
        }
    }
}

impl Pending {
    pub(crate) fn new(object: Value, creating: bool, warnings: Vec<String>) -> Self {
        Pending { object, raw: false, creating, warnings }
    }

    /// The object as it stands.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// Puts what mutating admission made of the object in its place; it is then pruned and defaulted again.
    pub(crate) fn replace(&mut self, object: Value) {
        self.object = object;
        self.raw = true;
    }

    pub(crate) fn not_read(mut self) -> Self {
        self.raw = true;
        self
    }

    /// Whether a name is still to be generated, so that the second half may have to be tried again with fresh dice.
    pub(crate) fn needs_name(&self) -> bool {
        super::meta::text(&self.object, "name").is_empty()
            && !super::meta::text(&self.object, "generateName").is_empty()
    }

    pub(crate) fn take(self) -> (Value, bool, Vec<String>) {
        (self.object, self.raw, self.warnings)
    }
}
