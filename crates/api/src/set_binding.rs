//! The link between a namespace and a cluster set.
//!
//! Owns the `ManagedClusterSetBinding` kind. Who may bind is admission's question, what is bound the engine's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{resource::resource, schema::fragment};

/// Lets the placements of a namespace choose from the clusters of one set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBinding {
    /// Standard object metadata; the name is the name of the bound set.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which set is bound.
    #[serde(default)]
    pub spec: Option<ManagedClusterSetBindingSpec>,
    /// What has been observed of the binding.
    #[serde(default)]
    pub status: Option<ManagedClusterSetBindingStatus>,
}

resource!(
    ManagedClusterSetBinding,
    group: crate::names::GROUP,
    version: "v1beta2",
    plural: "managedclustersetbindings",
    scope: NamespaceResourceScope,
    fields: { optional spec, optional status }
);

/// Which set is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// Name of the bound set; the same as the name of this binding. Choosing it needs the right to create
    /// `managedclustersets/bind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub cluster_set: Option<String>,
}

/// What has been observed of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingStatus {
    /// Whether the bound set exists.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

impl ManagedClusterSetBinding {
    /// The name of the bound set, if one is given.
    pub fn cluster_set(&self) -> Option<&str> {
        self.spec.as_ref()?.cluster_set.as_deref()
    }
}
