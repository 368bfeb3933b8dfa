//! The ways to choose clusters by what they are.
//!
//! Owns the selector structures of placements. Evaluating them is the engine's work.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::fragment;

/// One alternative of a placement: a cluster has to satisfy everything said in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// What a cluster must satisfy to be selected, and to stay selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
    /// Short form of requiredClusterSelector.labelSelector; both hold when both are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Short form of requiredClusterSelector.claimSelector; both hold when both are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
    /// Only the cluster of this name; any cluster when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
}

/// What a cluster must satisfy; all given parts together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// By the labels of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// By the claims in the cluster's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
    /// By CEL expressions over the cluster object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<ClusterCelSelector>,
    /// By name: only the clusters listed here; any cluster when the list is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_names: Option<Vec<String>>,
}

/// Chooses clusters by claims; all parts have to hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    /// Claims that must be present with exactly these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_claims: Option<BTreeMap<String, String>>,
    /// Requirements on claims, written like label requirements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::requirements")]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// Chooses clusters by CEL expressions; all of them have to be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCelSelector {
    /// Expressions over `managedCluster`, each giving true or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_expressions: Option<Vec<String>>,
}

/// Chooses the clusters of a decision group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// By the labels of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// By the claims in the cluster's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClusterClaimSelector>,
}
