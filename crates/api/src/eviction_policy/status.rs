//! How an EvictionPolicy stands, as reported.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::fragment;

/// The most pods that a status names as the next to go.
pub const NEXT_MAX: usize = 10;
/// The most reasons that a status gives for pods being held.
pub const HOLDS_MAX: usize = 32;

/// How a policy stands. Only pods on nodes with taints that it is about are counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionPolicyStatus {
    /// The generation of the policy that this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the policy makes sense (Accepted), and whether another one selects the same pods (Overlapped).
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// How many pods it has on tainted nodes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<i64>,
    /// How many of them wait for their time, or for their turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i64>,
    /// How many of them are due and held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<i64>,
    /// How many of them are on their way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<i64>,
    /// How many of them could not be evicted for another reason than a budget, and are tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i64>,
    /// How many pods it has evicted in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<i64>,
    /// How many of its pods would have gone by now if this was no dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<i64>,
    /// The next pods to go, and when; the first ten of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Vec<NextEviction>>,
    /// What holds pods that are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Vec<EvictionHold>>,
}

/// A pod that will go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextEviction {
    /// Its namespace and name.
    pub pod: String,
    /// When.
    #[schemars(schema_with = "fragment::time")]
    pub at: Time,
}

/// Why pods that are due have not gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionHold {
    /// Why, as one word for programs.
    pub reason: String,
    /// The gate, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The zone, where it is one; empty for the nodes that do not say where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How many pods.
    pub count: i64,
    /// The namespace and name of one of them.
    pub example: String,
    /// What is said about that one.
    pub message: String,
}
