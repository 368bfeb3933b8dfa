//! The objects of the demo, and their way into a hub.

use anyhow::Context as _;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};

use crate::manifest::{Loaded, load as read};

/// What there is to see.
const FLEET: &str = include_str!("../../../../examples/demo/fleet.yaml");
/// Where its placements are.
pub(crate) const NAMESPACE: &str = "demo";
/// As whom it is written.
pub(super) const MANAGER: &str = "berth-demo";

/// Creates what is missing of the fleet. What is there is left alone, as somebody may have changed it on purpose.
pub(crate) async fn load(client: &Client) -> anyhow::Result<()> {
    for (resource, object) in objects() {
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match api.create(&params, &object).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => {
                let name = object.metadata.name.unwrap_or_default();
                return Err(error)
                    .with_context(|| format!("{} {name} of the demo cannot be created", resource.kind));
            }
        }
    }
    Ok(())
}

fn objects() -> Vec<(ApiResource, DynamicObject)> {
    let Loaded { objects, .. } = read(&["-".into()], &mut FLEET.as_bytes());
    let typed = objects.into_iter().map(|object| {
        let gvk = GroupVersionKind::gvk(object.group(), object.version(), &object.kind);
        let plural = berth_api::kind_info(&object.api_version, &object.kind).map(|info| info.plural);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural.unwrap_or("namespaces"));
        (resource, serde_json::from_value(object.value).expect("the demo's fleet is made of objects"))
    });
    typed.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::LABEL;
    use super::*;

    #[test]
    fn the_fleet_of_the_demo_is_whole() {
        let loaded = read(&["-".into()], &mut FLEET.as_bytes());
        assert_eq!(loaded.problems, []);
        let mut kinds = BTreeMap::<String, Vec<String>>::new();
        for (resource, object) in objects() {
            assert!(resource.plural == "namespaces" || resource.kind != "Namespace");
            kinds.entry(resource.kind).or_default().push(object.metadata.name.unwrap());
        }
        assert_eq!(kinds["Namespace"], [NAMESPACE]);
        assert_eq!(kinds["ManagedCluster"].len(), 8);
        assert_eq!(kinds["ManagedClusterSet"], ["production", "staging"]);
        assert_eq!(kinds["ManagedClusterSetBinding"], ["production", "staging"]);
        assert_eq!(kinds["Placement"], ["web", "ledger", "batch"]);
        let clusters = objects().into_iter().filter(|(resource, _)| resource.kind == "ManagedCluster");
        for (_, cluster) in clusters {
            assert_eq!(cluster.metadata.labels.unwrap()[LABEL.0], LABEL.1);
        }
    }
}
