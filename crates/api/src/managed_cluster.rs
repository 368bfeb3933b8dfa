//! A cluster of the fleet, as the hub knows it.
//!
//! Owns the `ManagedCluster` kind and readers of its parts that treat absent and empty alike. Decides nothing.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::condition, quantity::Quantity, resource::resource, schema::fragment, taint::Taint};

/// The lease duration in seconds in force when a cluster names none (or zero).
pub const LEASE_DURATION_DEFAULT_SECONDS: i32 = 60;

/// A cluster that has joined, or asks to join, the fleet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedCluster {
    /// Standard object metadata; the name is the cluster's name and also its namespace on the hub.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What the hub's administrators want of the cluster.
    #[serde(default)]
    pub spec: Option<ManagedClusterSpec>,
    /// What the cluster's agent and the hub have observed.
    #[serde(default)]
    pub status: Option<ManagedClusterStatus>,
}

resource!(
    ManagedCluster,
    group: crate::names::GROUP,
    version: "v1",
    plural: "managedclusters",
    scope: ClusterResourceScope,
    fields: { optional spec, optional status }
);

/// What the hub's administrators want of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Where the cluster's own API server can be reached; empty when the hub has no way in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_cluster_client_configs: Option<Vec<ClientConfig>>,
    /// Whether the hub lets the cluster's agent in. Turning it on needs the right to update
    /// `managedclusters/accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_accepts_client: Option<bool>,
    /// How often, in seconds, the agent renews its lease on the hub; 60 when zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = LEASE_DURATION_DEFAULT_SECONDS))]
    pub lease_duration_seconds: Option<i32>,
    /// Marks that keep placements without a matching toleration away. The hub itself manages
    /// `cluster.open-cluster-management.io/unavailable` and `cluster.open-cluster-management.io/unreachable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
}

/// One way to reach a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Address of the API server, beginning with https.
    pub url: String,
    /// Base64 text of the certificates to trust for this address; the system's own when left out.
    // Kept as text: nothing here reads the bytes, and one odd encoding must not make a cluster unreadable.
    #[serde(default, rename = "caBundle", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::bytes")]
    pub ca_bundle: Option<String>,
}

/// What has been observed of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Whether the cluster is accepted, joined, available, in step with the hub's clock, and so on.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// Resources of all nodes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// Resources of all schedulable nodes together; not what is free at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// Versions of the software the cluster runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,
    /// What the cluster says about itself: claims collected by its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_claims: Option<Vec<ManagedClusterClaim>>,
    /// Namespaces that the cluster's sets keep on the cluster, and how that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["clusterSet", "name"]
    ))]
    pub managed_namespaces: Option<Vec<ClusterSetManagedNamespaceStatus>>,
}

/// Versions of the software a cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// Version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// One claim: a name and a text value that the cluster itself vouches for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterClaim {
    /// Name of the ClusterClaim on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Value of the claim; its meaning is the claim's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}

/// How a namespace kept by a cluster set stands on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespaceStatus {
    /// The cluster set that asks for the namespace.
    pub cluster_set: String,
    /// Name of the namespace.
    #[schemars(length(max = 63), regex(pattern = crate::names::DNS_LABEL_PATTERN))]
    pub name: String,
    /// Whether the namespace is there.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
}

impl ManagedCluster {
    /// The taints, none when there is no spec.
    pub fn taints(&self) -> &[Taint] {
        self.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    /// Whether the hub has accepted the cluster.
    pub fn is_accepted(&self) -> bool {
        self.spec.as_ref().and_then(|spec| spec.hub_accepts_client).unwrap_or(false)
    }

    /// The lease duration in force, in seconds: the default when absent or zero.
    pub fn lease_duration_seconds(&self) -> i32 {
        match self.spec.as_ref().and_then(|spec| spec.lease_duration_seconds) {
            None | Some(0) => LEASE_DURATION_DEFAULT_SECONDS,
            Some(seconds) => seconds,
        }
    }

    /// Claims as (name, value) in the order they are listed; a missing part reads as the empty string.
    pub fn claims(&self) -> impl Iterator<Item = (&str, &str)> {
        self.status.iter().flat_map(|status| status.cluster_claims.iter().flatten()).map(|claim| {
            (claim.name.as_deref().unwrap_or_default(), claim.value.as_deref().unwrap_or_default())
        })
    }

    /// The amount of a resource on the schedulable nodes, if reported and well-formed.
    pub fn allocatable(&self, resource: &str) -> Option<&Quantity> {
        self.status.as_ref()?.allocatable.as_ref()?.get(resource)
    }

    /// The amount of a resource on all nodes, if reported.
    pub fn capacity(&self, resource: &str) -> Option<&Quantity> {
        self.status.as_ref()?.capacity.as_ref()?.get(resource)
    }

    /// The condition of this type, if any.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        let conditions = self.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == condition_type)
    }

    /// The condition that says whether the cluster's API server is healthy.
    pub fn available(&self) -> Option<&Condition> {
        self.condition(condition::AVAILABLE)
    }

    /// Whether the cluster is on its way out.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
