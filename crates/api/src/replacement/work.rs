//! One member's replacement.
//!
//! Owns the `Replacement` kind: who is replaced and why, how far that is, and what a person may say to it. What is written
//! here is written before it is done, so that whoever comes after a crash knows what may have been done.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::Sighting;
use crate::{open_enum::open_enum, resource::resource, schema::fragment};

open_enum! {
    /// How far a replacement is.
    pub enum Phase, schema: closed {
        /// It has its place in the budget and waits for gates and for the other members.
        Gating = "Gating",
        /// The operator has been told, and does its part.
        Draining = "Draining",
        /// Claims are being removed: there is no way back from here.
        RemovingVolumes = "RemovingVolumes",
        /// The pod is being removed.
        RemovingPod = "RemovingPod",
        /// The pod is gone, and its successor is not ready.
        AwaitingSuccessor = "AwaitingSuccessor",
        /// The successor is ready, and has to stay so for a while.
        Verifying = "Verifying",
        /// It is done.
        Done = "Done",
        /// It was called off before anything was removed.
        Aborted = "Aborted",
        /// It could not be finished.
        Failed = "Failed",
    }
}

/// One member's replacement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Who is replaced, and why.
    #[serde(default)]
    pub spec: ReplacementSpec,
    /// How far that is.
    #[serde(default)]
    pub status: Option<ReplacementStatus>,
}

resource!(
    Replacement,
    group: crate::names::BERTH_GROUP,
    version: "v1alpha1",
    plural: "replacements",
    scope: NamespaceResourceScope,
    fields: { always spec, optional status }
);

/// Who is replaced, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementSpec {
    /// The name of the policy.
    pub policy: String,
    /// The workload that the member belongs to, by its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The pod.
    pub target: PodRef,
    /// Why it is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Sighting>,
    /// Whether it removes volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removes_volumes: Option<bool>,
    /// Stops it where it is; nothing more is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub suspend: Option<bool>,
    /// Calls it off, if nothing has been removed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub cancel: Option<bool>,
}

/// A pod, by its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodRef {
    /// Its name.
    pub name: String,
    /// Its identity: a pod of the same name is another one.
    pub uid: String,
    /// The node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The fault domain of that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<String>,
    /// What its operator knows it by, with type Delegate: what is appended to the owner's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// How far a replacement is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementStatus {
    /// The phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Since when it is in this phase.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub phase_since: Option<Time>,
    /// When it began.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub started_at: Option<Time>,
    /// From when on there was no way back.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub point_of_no_return_at: Option<Time>,
    /// When the pod was seen to be gone: a successor is waited for from here.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub pod_removed_at: Option<Time>,
    /// When it ended.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub ended_at: Option<Time>,
    /// The claims that are removed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Vec<ClaimRef>>,
    /// How many members there were when it began, where they can only be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_at_start: Option<i32>,
    /// What the gates say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateVerdict>>,
    /// The pod that took the member's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<Successor>,
    /// Why it is where it is, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Progressing, Blocked and the like.
    #[serde(default, deserialize_with = "crate::condition::list", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::conditions_by_type")]
    pub conditions: Option<Vec<Condition>>,
}

/// A claim, by its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRef {
    /// Its name.
    pub name: String,
    /// Its identity: a claim of the same name is another one.
    pub uid: String,
}

/// What a gate said last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateVerdict {
    /// The gate.
    pub name: String,
    /// Pass, Deny, InProgress or Unknown.
    pub verdict: String,
    /// What it said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was asked last.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub last_checked: Option<Time>,
    /// Since when it is shut, if it is: its timeout counts from here.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::time")]
    pub shut_since: Option<Time>,
}

/// The pod that took a member's place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Successor {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// The node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
