//! One object.

use berth_hub_store::{Entry, Revision};
use berth_hub_wire::options::parse_resource_version;
use berth_hub_wire::{GetOptions, Status};
use std::sync::Arc;

use crate::core::Core;
use crate::registry::Resource;

/// The object of this name, no older than what was asked for.
pub(crate) async fn get(
    core: &Core,
    resource: &Resource,
    namespace: &str,
    name: &str,
    options: &GetOptions,
) -> Result<Arc<Entry>, Status> {
    if !options.resource_version.is_empty() {
        let asked = parse_resource_version(&options.resource_version)
            .map_err(|cause| Status::unexplained(format!("{}: {}", cause.field, cause.message)))?;
        super::list::reach(core, Revision(asked)).await?;
    }
    core.find(resource, namespace, name).ok_or_else(|| Status::not_found(resource.group_resource(), name))
}
