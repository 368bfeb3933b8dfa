//! A definition that ends, and names that become free.

use std::sync::Arc;

use berth_hub_store::ResourceKey;
use berth_hub_wire::Status;
use serde_json::Value;

use super::Worker;
use crate::read::parse;
use crate::resource::{Terms, definition};

impl Worker {
    /// The objects of a definition go with it. The name of a definition is how its objects are stored.
    pub(super) async fn definition(&self, name: &Arc<str>) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(definitions) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let Some(entry) = self.core.find(definitions, "", name).filter(|entry| entry.is_deleting()) else {
            return Ok(());
        };
        let object = parse(entry.json());
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let storage = ResourceKey::new(text("/spec/group"), text("/spec/names/plural"));
        let mut objects = self.core.all(&storage);
        objects.retain(|entry| !entry.is_deleting());
        if let Some(status) = self.delete_all(&self.garbage, &objects, &Terms::default()).await.pop() {
            return Err(status);
        }
        let left = self.core.all(&storage).len();
        match definition::end(&object, left, self.core.clock.now()) {
            definition::Next::Nothing | definition::Next::Delete(None) => Ok(()),
            definition::Next::Delete(Some(object)) => self.garbage.keep(definitions, &entry, object).await,
            definition::Next::Finish { definition, remove: true } => {
                self.garbage.remove(definitions, &entry, definition).await
            }
            definition::Next::Finish { definition, remove: false } => {
                self.garbage.keep(definitions, &entry, definition).await
            }
        }
    }

    pub(super) async fn names(&self) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(definitions) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let _alone = self.core.defining.lock().await;
        for entry in self.core.all(&definitions.storage) {
            let known = self.core.derived.definitions();
            let others: Vec<&Value> = known.iter().map(|definition| &**definition).collect();
            if let Some(object) = definition::establish(&parse(entry.json()), &others, self.core.clock.now())
            {
                self.garbage.keep(definitions, &entry, object).await?;
            }
        }
        Ok(())
    }
}
