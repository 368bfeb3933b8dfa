//! What a commit may have left to do.

use std::sync::Arc;

use berth_hub_store::Entry;

/// The ConfigMap of the authority's certificate, the one that a keeper answers for.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";

/// Kinds whose every change matters to a keeper.
const FOLLOWED: [&str; 6] = [
    "pods",
    "namespaces",
    "secrets",
    "poddisruptionbudgets.policy",
    "customresourcedefinitions.apiextensions.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
];

/// An object that was written or removed.
#[derive(Debug, Clone)]
pub(crate) struct Chore {
    pub(crate) entry: Arc<Entry>,
    pub(crate) removed: bool,
}

impl Chore {
    /// The chore that a committed write leaves, if any: a lease that is renewed, for one, leaves none.
    pub(crate) fn after(entry: &Arc<Entry>, removed: bool) -> Option<Self> {
        let matters = removed
            || entry.is_deleting()
            || entry.owners().len() > 0
            || FOLLOWED.contains(&entry.key().resource.as_str())
            || (*entry.key().name == *ROOT_CA && entry.key().resource.as_str() == "configmaps");
        matters.then(|| Self { entry: Arc::clone(entry), removed })
    }
}
