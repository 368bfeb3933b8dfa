//! ManagedClusterSetBindings: who may bring a set into a namespace.

use berth_api::names;
use serde_json::Value;

use crate::attempt::{Attempt, Operation, text};
use crate::denial::Denial;
use crate::oracle::{Access, Oracle, Question};

/// Where the label is that says who made a binding.
const BOUND_BY: &str = "/metadata/labels/berth.dev~1bound-by";

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    let set = text(Some(object), "/spec/clusterSet");
    if set != attempt.name {
        let message = "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet";
        return Err(Denial::bad_request(message.to_owned()));
    }
    // A name cannot change, so neither can the set; whoever may edit the rest need not have the right to bind. But who
    // turns a binding that follows a grant into one made by hand binds the set for good.
    let is_relabelled = text(attempt.old, BOUND_BY) != text(Some(object), BOUND_BY);
    if attempt.operation != Operation::Create && !is_relabelled {
        return Ok(());
    }
    let right = Access {
        group: names::GROUP,
        resource: "managedclustersets",
        subresource: "bind",
        verb: "create",
        name: set.to_owned(),
    };
    if oracle.answer(&Question::May(right)) {
        return Ok(());
    }
    Err(Denial::forbidden(format!("user {:?} is not allowed to bind cluster set {set:?}", attempt.user)))
}
