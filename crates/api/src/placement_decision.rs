//! A slice of the clusters a placement has selected.
//!
//! Owns the `PlacementDecision` kind. Writing decisions is control's work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::label, resource::resource};

/// The most clusters one PlacementDecision holds; consumers rely on it, the schema does not enforce it.
pub const DECISIONS_PER_SLICE_MAX: usize = 100;

/// A slice of the clusters a placement has selected.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecision {
    /// Standard object metadata; labels name the placement and the decision group.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The selected clusters.
    #[serde(default)]
    pub status: Option<PlacementDecisionStatus>,
}

resource!(
    PlacementDecision,
    group: crate::names::GROUP,
    version: "v1beta1",
    plural: "placementdecisions",
    scope: NamespaceResourceScope,
    fields: { optional status }
);

/// The selected clusters of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecisionStatus {
    /// The selected clusters, at most 100 in one slice.
    pub decisions: Vec<ClusterDecision>,
}

/// One selected cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    /// Name of the cluster; it appears in no other slice of the same placement.
    pub cluster_name: String,
    /// Why the cluster was selected; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Total score of the cluster when it was selected; written only where scores are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// Whether the cluster was available when this was written; written only where it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<bool>,
}

impl PlacementDecision {
    /// The selected clusters, none when nothing has been written yet.
    pub fn decisions(&self) -> &[ClusterDecision] {
        self.status.as_ref().map(|status| status.decisions.as_slice()).unwrap_or_default()
    }

    /// The placement this slice belongs to, from its label.
    pub fn placement_name(&self) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(label::PLACEMENT).map(String::as_str)
    }
}
