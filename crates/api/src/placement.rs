//! A request for clusters: from which sets, which ones, how many, best by what.
//!
//! Owns the `Placement` kind. Scoring and spreading have files of their own (`prioritizer`, `topology`,
//! `decision_strategy`); deciding is the engine's work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    decision_strategy::{DecisionGroupStatus, DecisionStrategy},
    open_enum::open_enum,
    prioritizer::PrioritizerPolicy,
    resource::resource,
    schema::fragment,
    selector::ClusterPredicate,
    taint::Toleration,
    topology::{AntiAffinity, SpreadPolicy},
};

open_enum! {
    /// The order of the decisions.
    pub enum SortBy, schema: closed {
        /// By name of the cluster.
        ClusterName = "ClusterName",
        /// Best score first, then by name.
        Score = "Score",
    }
}

/// Selects clusters for the workloads of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which clusters are wanted; an absent or null spec wants all of them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: PlacementSpec,
    /// How the selection stands.
    #[serde(default)]
    pub status: Option<PlacementStatus>,
}

resource!(
    Placement,
    group: crate::names::GROUP,
    version: "v1beta1",
    plural: "placements",
    scope: NamespaceResourceScope,
    fields: { always spec, optional status }
);

/// Which clusters are wanted. An empty spec wants every cluster of the sets bound to the namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {}))]
pub struct PlacementSpec {
    /// Choose only from these sets, as far as they are bound to the namespace; from all bound sets when
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_sets: Option<Vec<String>>,
    /// How many clusters are wanted; all that qualify unless given. If fewer qualify, all of them are
    /// selected and the condition PlacementSatisfied is False.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// Alternatives: a cluster qualifies when at least one of them holds, or when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicates: Option<Vec<ClusterPredicate>>,
    /// By what qualifying clusters are ranked when not all are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// How the selected clusters are to be distributed over topologies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Taints the placement puts up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How the decisions are divided into groups for staged rollouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// Order of the decisions: ClusterName, or Score for the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ClusterName"))]
    pub sort_by: Option<SortBy>,
    /// How long to wait, as a whole number of h, m or s, before writing again scores that change nothing
    /// else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[hms]$"), extend("default" = "1m"))]
    pub score_rate_limit: Option<String>,
    /// Select no two clusters with the same value of a label or claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anti_affinity: Option<AntiAffinity>,
}

/// How a selection stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i32>,
    /// The groups the selected clusters are divided into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroupStatus>>,
    /// Whether the placement is satisfied, and whether it makes sense.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// When the scores in the decisions were last written.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub last_score_update_time: Option<Time>,
    /// The next change that time alone will bring, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<NextTransition>,
}

/// A change that time alone will bring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextTransition {
    /// When the decision will change by itself.
    #[schemars(schema_with = "fragment::time")]
    pub time: Time,
    /// What happens then, such as the toleration that runs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Placement {
    /// The decision order in force, by name unless given.
    pub fn sort_by(&self) -> SortBy {
        match &self.spec.sort_by {
            Some(order) if !order.as_str().is_empty() => order.clone(),
            _ => SortBy::ClusterName,
        }
    }

    /// Whether the placement is on its way out.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether another scheduler has taken the placement over.
    pub fn is_scheduling_disabled(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(crate::names::annotation::SCHEDULING_DISABLED)).map(String::as_str)
            == Some("true")
    }
}

/// The server drops a null spec and then defaults it; documents read without a server get the same.
fn null_as_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PlacementSpec, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
