//! The objects every cluster begins with: four namespaces, and the roles and bindings that give rights to begin with.
//!
//! Owns planting them at every start. What is there is left alone, except that bootstrap roles regain what a newer version
//! adds to them, as on any Kubernetes.

use std::sync::Arc;

use berth_hub_guard::{User, bootstrap};
use berth_hub_store::Key;
use serde_json::{Value, json};

use crate::core::Core;
use crate::keep::Hand;
use crate::read::parse;
use crate::resource::lifecycle::INITIAL;

const RBAC: &str = "rbac.authorization.k8s.io";
/// The two classes for what a cluster itself needs, with Kubernetes' names and values.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "pods the cluster cannot do without, which may move to another node",
    ),
    ("system-node-critical", 2_000_001_000, "pods a node cannot do without, which must not be moved"),
];

/// Plants what is missing.
pub(crate) async fn plant(core: &Arc<Core>) -> Result<(), String> {
    let hand = Hand::as_user(Arc::clone(core), User::in_process());
    let registry = core.registry();
    let find = |group: &str, plural: &str| {
        registry.find(group, "v1", plural).cloned().ok_or(format!("{plural} are not served"))
    };
    let namespaces = find("", "namespaces")?;
    for name in INITIAL {
        if core.namespace(name).is_none() {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            hand.create(&namespaces, "", object).await.map_err(|status| status.message)?;
        }
    }
    let classes = find("scheduling.k8s.io", "priorityclasses")?;
    for (name, value, description) in PRIORITY_CLASSES {
        if core.find(&classes, "", name).is_none() {
            let object = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, "description": description});
            hand.create(&classes, "", object).await.map_err(|status| status.message)?;
        }
    }
    let roles = (find(RBAC, "clusterroles")?, bootstrap::cluster_roles());
    let bindings = (find(RBAC, "clusterrolebindings")?, bootstrap::cluster_role_bindings());
    for (resource, wanted) in [roles, bindings] {
        for object in wanted {
            let name =
                object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let entry = core.ledger.get(&Key::new(&resource.storage, "", &name));
            let existing = entry.as_ref().map(|entry| parse(entry.json()));
            match (bootstrap::reconcile(&object, existing.as_ref()), entry) {
                (Some(object), None) => {
                    hand.create(&resource, "", object).await.map_err(|status| status.message)?;
                }
                (Some(object), Some(entry)) => {
                    hand.keep(&resource, &entry, object).await.map_err(|status| status.message)?;
                }
                (None, _) => {}
            }
        }
    }
    Ok(())
}
