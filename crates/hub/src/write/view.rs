//! What admission functions see of the hub.

use berth_hub_guard::webhook::Resource;
use berth_hub_guard::{Attributes, Verdict};
use serde_json::Value;

use super::Author;
use crate::admission::Lookup;
use crate::read::present_value;

/// The objects and the policy as they are now, in the resources that were served when the request came in.
pub(super) struct View<'a>(pub(super) &'a Author<'a>);

impl Lookup for View<'_> {
    fn find(&self, resource: Resource<'_>, namespace: &str, name: &str) -> Option<Value> {
        let served = self.0.registry.find(resource.group, resource.version, resource.resource)?;
        let entry = self.0.core.find(served, namespace, name)?;
        Some(present_value(served, &entry))
    }

    fn list(&self, resource: Resource<'_>, namespace: Option<&str>) -> Vec<Value> {
        let Some(served) = self.0.registry.find(resource.group, resource.version, resource.resource) else {
            return Vec::new();
        };
        let entries = self.0.core.within(&served.storage, namespace);
        entries.iter().map(|entry| present_value(served, entry)).collect()
    }

    fn authorize(&self, question: &Attributes<'_>) -> Verdict {
        self.0.core.authorize(question)
    }
}
