//! What a write rests on besides its object: the namespace it is in and the definition it goes by.

use berth_hub_store::{Check, Expect};
use berth_hub_wire::Status;

use super::Author;
use crate::read::parse;
use crate::resource::Act;
use crate::resource::lifecycle::{self, Intent};

/// Whether namespace and definition allow this; the states of both that this rests on. A creation is committed on the
/// condition that they are still in them, so that nothing is left behind by a namespace or definition that ends meanwhile.
pub(super) fn allowed(
    author: &Author<'_>,
    act: &Act<'_>,
    name: &str,
    intent: Intent,
) -> Result<Vec<Check>, Status> {
    let namespace = act.object_namespace();
    let mut grounds = Vec::new();
    let mut holder = None;
    if lifecycle::needs_namespace(act.resource, namespace, intent)
        && let Some(entry) = author.core.namespace(namespace)
    {
        grounds.push(Check { key: entry.key().clone(), expect: Expect::At(entry.revision()) });
        holder = Some(parse(entry.json()));
    }
    lifecycle::check(act.resource, namespace, name, intent, holder.as_ref())?;
    if intent == Intent::Create && act.resource.is_custom() {
        let definition = author.core.definition_of(act.resource).ok_or_else(Status::resource_not_found)?;
        if definition.is_deleting() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(act.resource.group_resource(), name, why));
        }
        grounds.push(Check { key: definition.key().clone(), expect: Expect::At(definition.revision()) });
    }
    Ok(grounds)
}
