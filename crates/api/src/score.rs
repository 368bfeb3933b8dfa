//! Scores that add-ons give to one cluster.
//!
//! Owns the `AddOnPlacementScore` kind. How scores weigh in a decision is the engine's matter.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{resource::resource, schema::fragment};

/// The lowest score an add-on may give.
pub const SCORE_MIN: i32 = -100;
/// The highest score an add-on may give.
pub const SCORE_MAX: i32 = 100;

/// Scores that an add-on gives to one cluster; it lives in that cluster's namespace on the hub.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScore {
    /// Standard object metadata; the namespace is the scored cluster's name.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The scores and how long they hold.
    #[serde(default)]
    pub status: Option<AddOnPlacementScoreStatus>,
}

resource!(
    AddOnPlacementScore,
    group: crate::names::GROUP,
    version: "v1alpha1",
    plural: "addonplacementscores",
    scope: NamespaceResourceScope,
    fields: { optional status }
);

/// The scores of a cluster and how long they hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    /// How the scoring itself stands.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// The scores, each under its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Option<Vec<AddOnPlacementScoreItem>>,
    /// Until when the scores hold; for ever unless given. Expired scores count as zero.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub valid_until: Option<Time>,
}

/// One named score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreItem {
    /// Name of the score.
    pub name: String,
    /// The score itself, from -100 (worst) to 100 (best).
    #[schemars(range(min = SCORE_MIN, max = SCORE_MAX))]
    pub value: i32,
}

impl AddOnPlacementScore {
    /// The score of this name, whether it still holds or not.
    pub fn score(&self, name: &str) -> Option<i32> {
        self.scores().iter().find(|score| score.name == name).map(|score| score.value)
    }

    /// All scores.
    pub fn scores(&self) -> &[AddOnPlacementScoreItem] {
        self.status.as_ref().and_then(|status| status.scores.as_deref()).unwrap_or_default()
    }

    /// The last instant at which the scores hold, if there is one.
    pub fn valid_until(&self) -> Option<Timestamp> {
        self.status.as_ref()?.valid_until.as_ref().map(|time| time.0)
    }
}
