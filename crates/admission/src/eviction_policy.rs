//! EvictionPolicies: what the engine would call misconfigured is refused at the door.
//!
//! One that is stored already is not held to rules it never met, as with Placements. Where nobody guards the door, a policy
//! that cannot be understood holds the pods it selects; that is told by its status.

use berth_api::{EvictionPolicy, Object};
use berth_engine::evict::policy::compile;
use serde_json::Value;

use crate::attempt::Attempt;
use crate::denial::{Denial, FieldProblem, unless_known};

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Denial> {
    if attempt.old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Ok(Vec::new());
    }
    // What does not fit the schema is the schema's to refuse.
    let Some(policy) = read(object) else { return Ok(Vec::new()) };
    let before = attempt.old.and_then(read).map(|old| problems(&old)).unwrap_or_default();
    unless_known(problems(&policy), &before)
}

fn problems(policy: &EvictionPolicy) -> Vec<FieldProblem> {
    let complaints = compile(policy).orders.err();
    let problem = |complaint: &berth_engine::evict::policy::Complaint| FieldProblem {
        path: complaint.path.clone(),
        message: complaint.message.clone(),
    };
    complaints.iter().flat_map(|complaints| complaints.iter()).map(problem).collect()
}

fn read(object: &Value) -> Option<Box<EvictionPolicy>> {
    match Object::read(object.clone()).ok()?.object {
        Object::EvictionPolicy(policy) => Some(policy),
        _ => None,
    }
}
