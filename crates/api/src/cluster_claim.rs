//! A statement a cluster makes about itself.
//!
//! Owns the `ClusterClaim` kind, which lives on the managed cluster; the hub sees claims through
//! `ManagedCluster.status.clusterClaims` only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::resource;

/// A statement a cluster makes about itself; the name says what is claimed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaim {
    /// Standard object metadata; the name is the claim's name.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is claimed.
    #[serde(default)]
    pub spec: Option<ClusterClaimSpec>,
}

resource!(
    ClusterClaim,
    group: crate::names::GROUP,
    version: "v1alpha1",
    plural: "clusterclaims",
    scope: ClusterResourceScope,
    fields: { optional spec }
);

/// What is claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSpec {
    /// Value of the claim; its meaning is the claim's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}
