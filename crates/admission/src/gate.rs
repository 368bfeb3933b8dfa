//! Which rules are for whom.

use berth_api::names;
use serde_json::Value;

use crate::attempt::{Attempt, Operation};
use crate::denial::Denial;
use crate::oracle::Oracle;
use crate::{cluster, placement, set_binding};

/// The plurals with rules, or with something at stake; all in one group.
pub const RESOURCES: [&str; 4] =
    ["managedclusters", "managedclustersetbindings", "managedclustersets", "placements"];

/// Whether there is something to say to writes to this resource itself. There is not to subresources: they are
/// other people's doors.
pub fn concerns(group: &str, resource: &str, subresource: &str) -> bool {
    group == names::GROUP && subresource.is_empty() && RESOURCES.contains(&resource)
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
        _ => Ok(Vec::new()),
    }
}
