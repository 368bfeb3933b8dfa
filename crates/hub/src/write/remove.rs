//! Removing objects.

use berth_hub_wire::Status;

use super::grounds::allowed;
use super::{Author, Written, admit, commit, until_committed};
use crate::read::present_value;
use crate::resource::lifecycle::Intent;
use crate::resource::{Act, Terms, delete as deletion};

/// Deletes an object. When it is refused, `told` gets what was warned of on the way.
pub(crate) async fn remove(
    author: &Author<'_>,
    act: &Act<'_>,
    terms: &Terms,
    told: &mut Vec<String>,
) -> Result<Written, Status> {
    until_committed!(act, {
        let Some(entry) = author.core.find(act.resource, act.object_namespace(), act.name) else {
            return Err(Status::not_found(act.resource.group_resource(), act.name).into());
        };
        let live = present_value(act.resource, &entry);
        allowed(author, act, act.name, Intent::Delete)?;
        deletion::check(act, terms, &live)?;
        let warnings = admit::validate_deletion(author, act, &live, terms, told).await?;
        let mut outcome = deletion::decide(act, terms, &live)?;
        outcome.warnings.extend(warnings);
        let entries = commit(author, act, &outcome, Some(&entry), Vec::new()).await?;
        Ok(Written { outcome, read: Some(entry), entries })
    })
}
