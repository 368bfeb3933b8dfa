//! Which rules are for whom.

use berth_api::names;
use serde_json::Value;

use crate::attempt::{Attempt, Operation};
use crate::denial::Denial;
use crate::oracle::Oracle;
use crate::{cluster, eviction_policy, placement, replacement, replacement_policy, set_binding};

/// What has rules, or something at stake: group and plural. Each plural is in one group only.
pub const RESOURCES: [(&str, &str); 7] = [
    (names::GROUP, "managedclusters"),
    (names::GROUP, "managedclustersetbindings"),
    (names::GROUP, "managedclustersets"),
    (names::GROUP, "placements"),
    (names::BERTH_GROUP, "evictionpolicies"),
    (names::BERTH_GROUP, "replacementpolicies"),
    (names::BERTH_GROUP, "replacements"),
];

/// Whether there is something to say to writes to this resource itself. There is not to subresources: they are
/// other people's doors.
pub fn concerns(group: &str, resource: &str, subresource: &str) -> bool {
    subresource.is_empty() && RESOURCES.contains(&(group, resource))
}

/// Turns the object into what is to be stored.
pub fn mutate(attempt: &Attempt<'_>, object: &mut Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    match (attempt.operation, attempt.resource) {
        (Operation::Create | Operation::Update, "managedclusters") => {
            cluster::mutate(attempt, object, oracle)
        }
        _ => Ok(()),
    }
}

/// Whether the object may be stored; what should be said to whoever wrote it comes back.
pub fn validate(
    attempt: &Attempt<'_>,
    object: Option<&Value>,
    oracle: &dyn Oracle,
) -> Result<Vec<String>, Denial> {
    let (Operation::Create | Operation::Update, Some(object)) = (attempt.operation, object) else {
        return Ok(Vec::new());
    };
    match attempt.resource {
        "managedclusters" => cluster::validate(attempt, object, oracle).map(|()| Vec::new()),
        "managedclustersetbindings" => set_binding::validate(attempt, object, oracle).map(|()| Vec::new()),
        "placements" => placement::validate(attempt, object),
        "evictionpolicies" => eviction_policy::validate(attempt, object),
        "replacementpolicies" => replacement_policy::validate(attempt, object),
        "replacements" => replacement::validate(attempt, object),
        _ => Ok(Vec::new()),
    }
}
