//! ReplacementPolicies: what the engine would call misconfigured is refused at the door.
//!
//! One that is stored already is not held to rules it never met, as with Placements. Where nobody guards the door, a policy
//! that cannot be understood starts nothing; that is told by its status.

use berth_api::Object;
use berth_api::replacement::ReplacementPolicy;
use berth_engine::replace::problems;
use serde_json::Value;

use crate::attempt::Attempt;
use crate::denial::{Denial, FieldProblem, unless_known};

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Denial> {
    if attempt.old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Ok(Vec::new());
    }
    // What does not fit the schema is the schema's to refuse.
    let Some(policy) = read(object) else { return Ok(Vec::new()) };
    let before = attempt.old.and_then(read).map(|old| told(&old)).unwrap_or_default();
    unless_known(told(&policy), &before)
}

fn told(policy: &ReplacementPolicy) -> Vec<FieldProblem> {
    let problem = |problem: &berth_api::schema::Problem| FieldProblem {
        path: problem.path.to_string(),
        message: problem.message.clone(),
    };
    problems(&policy.spec).iter().map(problem).collect()
}

fn read(object: &Value) -> Option<Box<ReplacementPolicy>> {
    match Object::read(object.clone()).ok()?.object {
        Object::ReplacementPolicy(policy) => Some(policy),
        _ => None,
    }
}
