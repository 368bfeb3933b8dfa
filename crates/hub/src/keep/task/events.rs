//! Events that are old.

use berth_hub_store::ResourceKey;
use berth_hub_wire::Status;

use super::Worker;
use crate::keep::expiry;
use crate::read::parse;

impl Worker {
    pub(super) async fn events(&self) -> Result<(), Status> {
        let Some(resource) = self.resource(&ResourceKey::new("", "events")) else { return Ok(()) };
        let now = self.core.clock.now();
        for entry in self.core.all(&resource.storage) {
            let event = parse(entry.json());
            if expiry::written(&event).is_some_and(|written| expiry::decide(written, now)) {
                self.garbage.remove(&resource, &entry, event).await?;
            }
        }
        Ok(())
    }
}
