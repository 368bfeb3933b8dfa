//! Making objects.

use berth_hub_guard::webhook::Operation;
use berth_hub_wire::Status;
use berth_hub_wire::body::Decoded;
use serde_json::Value;

use super::admit::{self, Admitting};
use super::definition::{alone, settle};
use super::grounds::allowed;
use super::{ATTEMPTS, Author, Lost, Written, commit};
use crate::dice;
use crate::read::present_value;
use crate::registry::Resource;
use crate::resource::lifecycle::Intent;
use crate::resource::{Act, Pending, create as creation, meta, name, refusal};

/// Makes the object that `pending` begins. `warnings` holds what the client is told, also when this fails.
pub(crate) async fn create(
    author: &Author<'_>,
    act: &Act<'_>,
    pending: Pending,
    warnings: &mut Vec<String>,
) -> Result<Written, Status> {
    let resource = act.resource;
    warnings.clone_from(&pending.warnings);
    let proposed = meta::text(pending.object(), "name").to_owned();
    let mut grounds = allowed(author, act, &proposed, Intent::Create)?;
    let admitting = Admitting { author, act, operation: Operation::Create, old: None };
    let pending = admit::mutate(admitting, pending, warnings).await?;
    let _alone = alone(author, act).await;
    for attempt in 1.. {
        warnings.clone_from(&pending.warnings);
        let outcome = creation::finish(act, pending.clone(), &dice::mint())?;
        warnings.clone_from(&outcome.warnings);
        let mut outcome = settle(author, act, outcome);
        outcome.warnings.extend(admit::validate(admitting, outcome.object(), warnings).await?);
        warnings.clone_from(&outcome.warnings);
        match commit(author, act, &outcome, None, grounds.clone()).await {
            Ok(entries) => return Ok(Written { outcome, read: None, entries }),
            Err(Lost::Race(_)) if pending.needs_name() && attempt < name::GENERATE_ATTEMPTS => {}
            Err(Lost::Grounds) if attempt < ATTEMPTS => {
                grounds = allowed(author, act, &proposed, Intent::Create)?;
            }
            Err(Lost::Grounds) => return Err(refusal::stale(resource, &proposed)),
            Err(Lost::Race(current)) => {
                let live = current.map(|entry| present_value(resource, &entry));
                let object = outcome.object().cloned().unwrap_or_default();
                return Err(refusal::exists(resource, &object, live.as_ref()));
            }
            Err(Lost::Refused(status)) => return Err(status),
        }
    }
    unreachable!("the loop ends by returning")
}

/// Makes an object of the hub's own, which nobody else has a say in.
pub(crate) async fn make(
    author: &Author<'_>,
    resource: &Resource,
    namespace: &str,
    object: Value,
) -> Result<(), Status> {
    let act = Act { manager: "berth", ..author.act(resource, namespace, "") };
    let sent = Decoded { value: object, kind: resource.gvk(), strict_errors: Vec::new() };
    let pending = creation::begin(&act, sent)?;
    let outcome = creation::finish(&act, pending, &dice::mint())?;
    let name = outcome.object().map_or("", |object| meta::text(object, "name"));
    let grounds = allowed(author, &act, name, Intent::Create)?;
    match commit(author, &act, &outcome, None, grounds).await {
        Ok(_) => Ok(()),
        Err(Lost::Race(_) | Lost::Grounds) => Err(Status::already_exists(resource.group_resource(), name)),
        Err(Lost::Refused(status)) => Err(status),
    }
}
