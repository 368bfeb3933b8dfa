//! Replacements: whom one is about, and why, is said once.
//!
//! A replacement that removes volumes is bound to one pod by its identity. People may suspend it and call it off; whoever
//! could change its target could turn it on another pod after its gates were asked. One that was made by hand has waited for
//! nothing and has no place in a budget: each belongs to its policy, which made it.

use berth_api::names;
use serde_json::Value;

use crate::attempt::{Attempt, Operation, text};
use crate::denial::{Denial, FieldProblem};

/// What stays as it was made.
const FIXED: [&str; 5] = ["policy", "owner", "target", "trigger", "removesVolumes"];

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Denial> {
    let (Operation::Update, Some(old)) = (attempt.operation, attempt.old) else {
        return made(attempt, object);
    };
    let of = |object: &Value, field: &str| object.get("spec").and_then(|spec| spec.get(field)).cloned();
    let changed: Vec<FieldProblem> = FIXED
        .into_iter()
        .filter(|field| of(old, field) != of(object, field))
        .map(|field| FieldProblem {
            path: format!("spec.{field}"),
            message: "field is immutable; only suspend and cancel may be changed".to_owned(),
        })
        .collect();
    if changed.is_empty() { Ok(Vec::new()) } else { Err(Denial::invalid(changed)) }
}

/// One that is made is kept by the policy it names, as the controller makes them.
fn made(attempt: &Attempt<'_>, object: &Value) -> Result<Vec<String>, Denial> {
    if attempt.operation != Operation::Create {
        return Ok(Vec::new());
    }
    let policy = text(Some(object), "/spec/policy");
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is_it = |owner: &Value| {
        let group = text(Some(owner), "/apiVersion").split('/').next();
        group == Some(names::BERTH_GROUP)
            && text(Some(owner), "/kind") == "ReplacementPolicy"
            && text(Some(owner), "/name") == policy
            && owner.get("controller") == Some(&Value::Bool(true))
    };
    if owners.into_iter().flatten().any(is_it) {
        return Ok(Vec::new());
    }
    Err(Denial::invalid(vec![FieldProblem {
        path: "metadata.ownerReferences".to_owned(),
        message: "replacements are made by their policy, with everything that it waits for; change the policy instead"
            .to_owned(),
    }]))
}
