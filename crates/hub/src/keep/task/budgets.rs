//! The status of the disruption budgets of a namespace.

use std::sync::Arc;
use std::time::Duration;

use berth_hub_store::ResourceKey;
use berth_hub_wire::{LabelSelector, Status};
use serde_json::Value;

use super::garbage::owner;
use super::{Again, Worker};
use crate::keep::garbage;
use crate::read::parse;
use crate::resource::{budget, scale};

impl Worker {
    pub(super) async fn budgets(&self, namespace: &Arc<str>) -> Result<Again, Status> {
        let registry = self.core.registry();
        let Some(resource) = registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(None) };
        let budgets = self.core.within(&resource.storage, Some(namespace));
        if budgets.is_empty() {
            return Ok(None);
        }
        let pods = self.core.within(&ResourceKey::new("", "pods"), Some(namespace));
        let pods: Vec<Value> = pods.iter().map(|entry| parse(entry.json())).collect();
        let now = self.core.clock.now();
        let mut again: Again = None;
        for entry in budgets {
            let object = parse(entry.json());
            let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
            let Ok(selector) = LabelSelector::from_object(selector) else { continue };
            let selected: Vec<&Value> = pods.iter().filter(|pod| selector.matches_object(pod)).collect();
            let decision =
                budget::decide(&object, &selected, &|uid| self.scale(namespace, uid, &selected), now);
            if let Some(object) = decision.budget {
                self.namespaces.keep(resource, &entry, object).await?;
            }
            if let Some(at) = decision.recheck {
                let wait = Duration::try_from(now.duration_until(at)).unwrap_or_default();
                again = Some(again.map_or(wait, |known| known.min(wait)));
            }
        }
        Ok(again)
    }

    /// The replicas that the controller of this uid wants.
    fn scale(&self, namespace: &str, uid: &str, pods: &[&Value]) -> Option<i64> {
        let reference =
            pods.iter().flat_map(|pod| garbage::references(pod)).find(|reference| reference.uid == uid)?;
        let (resource, entry) = owner(&self.core, namespace, &reference)?;
        let object = parse(entry.json());
        // A replica set speaks for the deployment above it.
        if let Some(above) = garbage::references(&object).first()
            && let Some((_, above)) = owner(&self.core, namespace, above)
            && let Some(replicas) = parse(above.json()).pointer("/spec/replicas").and_then(Value::as_i64)
        {
            return Some(replicas);
        }
        scale::show(&resource, &object).ok()?.pointer("/spec/replicas").and_then(Value::as_i64)
    }
}
