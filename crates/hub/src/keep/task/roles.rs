//! The rules of aggregated roles.

use berth_hub_guard::aggregate_cluster_roles;
use berth_hub_wire::Status;
use serde_json::Value;

use super::Worker;
use crate::read::parse;

impl Worker {
    pub(super) async fn roles(&self) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(resource) = registry.find("rbac.authorization.k8s.io", "v1", "clusterroles") else {
            return Ok(());
        };
        let entries = self.core.all(&resource.storage);
        let roles: Vec<Value> = entries.iter().map(|entry| parse(entry.json())).collect();
        for (name, rules) in aggregate_cluster_roles(&roles) {
            let Some(position) = entries.iter().position(|entry| *entry.key().name == *name) else {
                continue;
            };
            let mut role = roles[position].clone();
            role["rules"] = rules.into();
            self.garbage.keep(resource, &entries[position], role).await?;
        }
        Ok(())
    }
}
