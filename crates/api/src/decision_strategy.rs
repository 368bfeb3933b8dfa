//! The division of decisions into groups, for rollouts in stages.
//!
//! Owns what is asked for and what is reported of groups; forming them is the engine's work.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{schema::fragment, selector::GroupClusterSelector};

/// How decisions are divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// How the selected clusters are divided into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
}

/// How the selected clusters are divided into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Groups formed first, in this order; a cluster goes into the first one that matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroup>>,
    /// The most clusters in one group, as a number or as a percentage of all selected clusters; a larger
    /// group is split into several of the same name. One group for all unless given.
    #[serde(default, deserialize_with = "saturating", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::clusters_per_decision_group")]
    pub clusters_per_decision_group: Option<IntOrString>,
}

/// A group with a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    /// Name of the group, also put on its decisions as the label
    /// `cluster.open-cluster-management.io/decision-group-name`.
    #[schemars(regex(pattern = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,
    /// Which of the selected clusters belong to the group.
    pub group_cluster_selector: GroupClusterSelector,
}

/// A group as it turned out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// Number of the group, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_group_index: Option<i32>,
    /// Name of the group, empty for clusters in no named group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,
    /// Names of the PlacementDecisions that hold the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Vec<String>>,
    /// How many clusters the group has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub cluster_count: Option<i32>,
}

/// Reads a number or a percentage. The schema sets no bounds to the number; one that does not fit reads as the
/// nearest that does, which means the same, since no fleet has two thousand million clusters.
pub(crate) fn saturating<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<IntOrString>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(serde_json::Number),
        Text(String),
    }
    Ok(Option::<Written>::deserialize(deserializer)?.map(|written| match written {
        // Every 32-bit integer is a float, and the cast takes the nearest one that fits.
        Written::Number(number) => IntOrString::Int(number.as_f64().unwrap_or_default() as i32),
        Written::Text(text) => IntOrString::String(text),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_size_of_any_magnitude_can_be_read() {
        let read = |value: serde_json::Value| {
            let strategy: GroupStrategy =
                serde_json::from_value(json!({ "clustersPerDecisionGroup": value })).unwrap();
            strategy.clusters_per_decision_group.unwrap()
        };
        assert_eq!(read(json!(3)), IntOrString::Int(3));
        assert_eq!(read(json!(i64::MIN)), IntOrString::Int(i32::MIN));
        assert_eq!(read(json!(u64::MAX)), IntOrString::Int(i32::MAX));
        assert_eq!(read(json!("25%")), IntOrString::String("25%".into()));
    }
}
