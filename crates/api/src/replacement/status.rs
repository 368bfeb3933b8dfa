//! What a policy has seen of its members.
//!
//! Owns what has to outlive a restart before a replacement begins: since when each cause is known, and how often a member
//! has been replaced lately. Filling it in is the engine's work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, schema::fragment};

/// The most members that a status tells of; about a fifth of what an API server stores in one object. Those that are due
/// first are told. Of the others only times that nobody wrote down are lost with a restart: they begin anew, too late and
/// never too early.
pub const MEMBERS_TOLD_MAX: usize = 500;

/// What has been seen and what is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementPolicyStatus {
    /// The generation of the policy that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Accepted, NodeAccess, Paused, BreakerOpen, BudgetExhausted, Overlap, Progressing.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// How many members there are, and how they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// When the last replacement ended: the rest before the next counts from here.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub last_ended_at: Option<Time>,
    /// The members that there is something to say about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MEMBERS_TOLD_MAX), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pods: Option<Vec<MemberStatus>>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<i32>,
}

/// How many members there are, and how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All members.
    pub matched: i32,
    /// With a cause that has not lasted for long enough.
    pub detected: i32,
    /// Marked to be replaced.
    pub replacing: i32,
    /// Being replaced.
    pub in_flight: i32,
    /// Due, and held up.
    pub blocked: i32,
}

open_enum! {
    /// Where the beginning of a cause is known from.
    pub enum SightingSource, schema: closed {
        /// The object says so: a taint's timeAdded, a condition's lastTransitionTime.
        TimeAdded = "TimeAdded",
        /// Nobody wrote it down; that is when it was first seen.
        FirstSeen = "FirstSeen",
    }
}

/// What is known of one member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// The pod's name.
    pub name: String,
    /// The pod that the causes were seen of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The fault domain of that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<String>,
    /// When something changes by time alone.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub next_transition_time: Option<Time>,
    /// NodeTaintDetected and NodeTaintReplacing, as the FoundationDB operator names them.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
    /// Why it is to be replaced: every cause with its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Vec<Sighting>>,
    /// What became of the replacements before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<MemberRecord>,
    /// Why it waits, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A cause and its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// Taint, Cordon, NodeCondition, NodeMissing or PodCondition.
    pub kind: String,
    /// The taint's key, or the condition's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The taint's value, or the condition's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The taint's effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Since when it counts.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub since: Option<Time>,
    /// Where that is known from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_source: Option<SightingSource>,
    /// Since when it has lasted for long enough: from here the member is marked to be replaced.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub replacing_since: Option<Time>,
    /// When it makes the member due, if it lasts.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub due_at: Option<Time>,
    /// The rule that speaks of it, by its place in the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// What became of the replacements of a member before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberRecord {
    /// How often it has been replaced without having been well for long enough in between.
    pub attempts: i32,
    /// When the last of these ended.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub ended_at: Option<Time>,
    /// The pod that the last of them was about: it is counted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
