//! Changing objects: updates and patches.

use berth_hub_guard::webhook::Operation;
use berth_hub_wire::Status;
use serde_json::Value;

use super::admit::{self, Admitting};
use super::definition::{alone, settle};
use super::grounds::allowed;
use super::{Author, Written, commit, until_committed};
use crate::dice;
use crate::read::present_value;
use crate::resource::lifecycle::Intent;
use crate::resource::{Act, Pending, update as updating};

/// Changes an object, or makes one where that is what the change comes to. `begin` says what it is to become, given what
/// is there, and `warned` what the client is told when `begin` fails; `warnings` holds what the client is told otherwise,
/// also when this fails.
pub(crate) async fn change(
    author: &Author<'_>,
    act: &Act<'_>,
    begin: impl Fn(Option<&Value>) -> Result<Pending, Status>,
    warned: impl Fn(Option<&Value>) -> Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Written, Status> {
    let _alone = alone(author, act).await;
    until_committed!(act, {
        let entry = author.core.find(act.resource, act.object_namespace(), act.name);
        let live = entry.as_ref().map(|entry| present_value(act.resource, entry));
        let pending = begin(live.as_ref()).inspect_err(|_| *warnings = warned(live.as_ref()))?;
        warnings.clone_from(&pending.warnings);
        let (intent, operation) = if pending.creating {
            (Intent::Create, Operation::Create)
        } else {
            (Intent::Update, Operation::Update)
        };
        let grounds = allowed(author, act, act.name, intent)?;
        let admitting = Admitting { author, act, operation, old: live.as_ref() };
        let pending = admit::mutate(admitting, pending, warnings).await?;
        warnings.clone_from(&pending.warnings);
        let outcome = updating::finish(act, pending, live.as_ref(), &dice::mint())?;
        warnings.clone_from(&outcome.warnings);
        let mut outcome = settle(author, act, outcome);
        outcome.warnings.extend(admit::validate(admitting, outcome.object(), warnings).await?);
        warnings.clone_from(&outcome.warnings);
        let grounds = if intent == Intent::Create { grounds } else { Vec::new() };
        let entries = commit(author, act, &outcome, entry.as_ref(), grounds).await?;
        Ok(Written { outcome, read: entry, entries })
    })
}
