//! A namespace: what every one has, and how it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_hub_store::{Entry, ResourceKey};
use berth_hub_wire::Status;
use serde_json::Value;

use super::{Again, RETRY_AFTER, Worker};
use crate::keep::{accounts, ending, trust};
use crate::read::parse;
use crate::registry::Resource;
use crate::resource::{Propagation, Terms, meta};

impl Worker {
    pub(super) async fn namespace(&self, name: &Arc<str>) -> Result<Again, Status> {
        let Some(entry) = self.core.namespace(name) else { return Ok(None) };
        let namespace = parse(entry.json());
        let registry = self.core.registry();
        let served = |plural: &str| {
            registry
                .find("", "v1", plural)
                .cloned()
                .ok_or_else(|| Status::internal("a built-in kind is not served"))
        };
        let (namespaces, accounts_of) = (served("namespaces")?, served("serviceaccounts")?);
        let exists = self.core.find(&accounts_of, name, accounts::DEFAULT).is_some();
        if let Some(account) = accounts::decide(&namespace, exists) {
            self.namespaces.create(&accounts_of, name, account).await?;
        }
        self.certificate(name, &namespace, &*served("configmaps")?).await?;
        if !meta::deleting(&namespace) {
            return Ok(None);
        }
        let mut failures = Vec::new();
        for pods_only in [true, false] {
            let left = self.core.ledger.in_namespace(name);
            if pods_only != left.iter().any(|entry| entry.key().resource.as_str() == "pods") {
                continue;
            }
            let content: Vec<Arc<Entry>> = left
                .into_iter()
                .filter(|entry| !pods_only || entry.key().resource.as_str() == "pods")
                .filter(|entry| !entry.is_deleting())
                .collect();
            let terms = Terms { propagation: Some(Propagation::Background), ..Terms::default() };
            let refused = self.delete_all(&self.namespaces, &content, &terms).await;
            failures.extend(refused.into_iter().map(|status| status.message));
        }
        let remains = self.remains(name);
        match ending::decide(&namespace, &remains, &failures, self.core.clock.now()) {
            ending::Next::Nothing => Ok(None),
            ending::Next::Delete { namespace, .. } => {
                if let Some(namespace) = namespace {
                    self.namespaces.keep(&namespaces, &entry, namespace).await?;
                }
                Ok((!failures.is_empty()).then_some(RETRY_AFTER))
            }
            ending::Next::Finish { namespace, remove: true } => {
                self.namespaces.remove(&namespaces, &entry, namespace).await.map(|()| None)
            }
            ending::Next::Finish { namespace, remove: false } => {
                self.namespaces.keep(&namespaces, &entry, namespace).await.map(|()| None)
            }
        }
    }

    /// The authority's certificate is in every namespace.
    async fn certificate(&self, name: &str, namespace: &Value, maps: &Resource) -> Result<(), Status> {
        let entry = self.core.find(maps, name, trust::NAME);
        let existing = entry.as_ref().map(|entry| parse(entry.json()));
        match (trust::decide(namespace, existing.as_ref(), &self.core.ca_pem), entry) {
            (Some(map), Some(entry)) => self.trust.keep(maps, &entry, map).await,
            (Some(map), None) => self.trust.create(maps, name, map).await,
            (None, _) => Ok(()),
        }
    }

    fn remains(&self, namespace: &str) -> Vec<ending::Remains> {
        let mut by_resource: BTreeMap<ResourceKey, ending::Remains> = BTreeMap::new();
        for entry in self.core.ledger.in_namespace(namespace) {
            let Some(resource) = self.resource(&entry.key().resource) else { continue };
            let remains =
                by_resource.entry(entry.key().resource.clone()).or_insert_with(|| ending::Remains {
                    group: resource.group.to_string(),
                    plural: resource.plural.to_string(),
                    ..ending::Remains::default()
                });
            remains.count += 1;
            for finalizer in meta::finalizers(&parse(entry.json())) {
                *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        by_resource.into_values().collect()
    }
}
