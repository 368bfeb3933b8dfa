//! A named group of clusters.
//!
//! Owns the `ManagedClusterSet` kind. Which clusters belong to a set is worked out by the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, resource::resource, schema::fragment};

open_enum! {
    /// How a set finds its clusters.
    pub enum SelectorType, schema: closed {
        /// By the cluster set label, which names one set: a cluster is in at most one such set.
        ExclusiveClusterSetLabel = "ExclusiveClusterSetLabel",
        /// By a label selector: a cluster may be in any number of such sets.
        LabelSelector = "LabelSelector",
    }
    aliases {
        /// The earlier name of the exclusive label.
        LegacyClusterSetLabel = "LegacyClusterSetLabel" => ExclusiveClusterSetLabel,
    }
}

/// A named group of clusters that can be bound to namespaces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSet {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How the set finds its clusters.
    #[serde(default)]
    pub spec: Option<ManagedClusterSetSpec>,
    /// What has been observed of the set.
    #[serde(default)]
    pub status: Option<ManagedClusterSetStatus>,
}

resource!(
    ManagedClusterSet,
    group: crate::names::GROUP,
    version: "v1beta2",
    plural: "managedclustersets",
    scope: ClusterResourceScope,
    fields: { optional spec, optional status }
);

/// How a set finds its clusters, and what it keeps on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}))]
pub struct ManagedClusterSetSpec {
    /// How the clusters of the set are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"selectorType": "ExclusiveClusterSetLabel"}))]
    pub cluster_selector: Option<ManagedClusterSelector>,
    /// Namespaces to keep on every cluster of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Option<Vec<ManagedNamespaceConfig>>,
}

/// How the clusters of a set are found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSelector {
    /// ExclusiveClusterSetLabel takes the clusters whose label
    /// `cluster.open-cluster-management.io/clusterset` names this set; LabelSelector takes those that
    /// labelSelector matches. LegacyClusterSetLabel is an older word for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ExclusiveClusterSetLabel"))]
    pub selector_type: Option<SelectorType>,
    /// Used with selectorType LabelSelector: an empty selector takes every cluster, none takes no cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

/// A namespace to keep on every cluster of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedNamespaceConfig {
    /// Name of the namespace.
    #[schemars(length(max = 63), regex(pattern = crate::names::DNS_LABEL_PATTERN))]
    pub name: String,
}

/// What has been observed of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetStatus {
    /// Whether any cluster belongs to the set.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

impl ManagedClusterSet {
    /// The way of finding clusters in force, without aliases; absent and empty mean the exclusive label.
    pub fn selector_type(&self) -> SelectorType {
        let given =
            self.spec.as_ref().and_then(|spec| spec.cluster_selector.as_ref()?.selector_type.as_ref());
        match given {
            None => SelectorType::ExclusiveClusterSetLabel,
            Some(SelectorType::Other(text)) if text.is_empty() => SelectorType::ExclusiveClusterSetLabel,
            Some(selector) => selector.canonical(),
        }
    }

    /// The label selector, if one is given.
    pub fn label_selector(&self) -> Option<&LabelSelector> {
        self.spec.as_ref()?.cluster_selector.as_ref()?.label_selector.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_without_a_spec_uses_the_exclusive_label() {
        assert_eq!(ManagedClusterSet::new("blue").selector_type(), SelectorType::ExclusiveClusterSetLabel);
    }

    #[test]
    fn an_unknown_selector_type_is_not_taken_for_the_default() {
        let mut set = ManagedClusterSet::new("blue");
        let selector = ManagedClusterSelector { selector_type: Some("Magic".into()), label_selector: None };
        set.spec = Some(ManagedClusterSetSpec { cluster_selector: Some(selector), managed_namespaces: None });
        assert_eq!(set.selector_type(), SelectorType::Other("Magic".into()));
    }
}
