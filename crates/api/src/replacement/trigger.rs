//! What makes a member be replaced.
//!
//! Owns the native triggers; the FoundationDB block is another way to write some of them. Matching is the engine's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;
use crate::taint::QUALIFIED_KEY_CHARS_MAX;

/// The most triggers of one sort: each is tried on every taint or condition of every member's node.
pub const TRIGGERS_MAX: usize = 32;
/// The longest key of a taint in a trigger, in characters.
pub(super) const TRIGGER_KEY_CHARS_MAX: u32 = QUALIFIED_KEY_CHARS_MAX;
/// A taint's key, or `*` alone: no other pattern has a meaning.
pub(super) const TRIGGER_KEY_PATTERN: &str = r"^(\*|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]))$";
/// The longest taint value, in characters, as Kubernetes has it.
const VALUE_CHARS_MAX: u32 = 63;
/// The most effects there are.
const EFFECTS_MAX: u32 = 3;

open_enum! {
    /// Whether a member is replaced because of a taint that it tolerates.
    pub enum Tolerated, schema: closed {
        /// It is not.
        Ignore = "Ignore",
        /// It is.
        Match = "Match",
    }
}

open_enum! {
    /// What a taint leads to.
    pub enum TaintAction, schema: closed {
        /// Members on the node are replaced.
        Replace = "Replace",
        /// Nothing: the taint is known and harmless.
        Ignore = "Ignore",
    }
}

open_enum! {
    /// Whether the node comes back.
    pub enum Intent, schema: closed {
        /// It does not: what is on it is given up, as the strategy says.
        Permanent = "Permanent",
        /// It does: volumes are kept, whatever the strategy says.
        Temporary = "Temporary",
    }
}

/// What makes a member be replaced; each trigger for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Triggers {
    /// Taints on the member's node. The most specific rule decides: one for the key and its value, then one for the key,
    /// then `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TRIGGERS_MAX))]
    pub taints: Option<Vec<TaintTrigger>>,
    /// Whether taints that the pod tolerates for ever count. Ignore, but Match where nothing but `replacements` is given, as
    /// the FoundationDB operator does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated: Option<Tolerated>,
    /// The node is cordoned. Without this, a cordon does nothing by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<CordonTrigger>,
    /// Conditions of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TRIGGERS_MAX))]
    pub node_conditions: Option<Vec<NodeConditionTrigger>>,
    /// The node no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_missing: Option<NodeMissingTrigger>,
    /// Conditions of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TRIGGERS_MAX))]
    pub pod_conditions: Option<Vec<PodConditionTrigger>>,
}

/// A taint that members leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintTrigger {
    /// The taint's key, or `*` for every key that no other rule speaks of.
    #[schemars(length(min = 1, max = TRIGGER_KEY_CHARS_MAX), regex(pattern = TRIGGER_KEY_PATTERN))]
    pub key: String,
    /// The taint's value; any unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = VALUE_CHARS_MAX))]
    pub value: Option<String>,
    /// The taint's effect, one of these: NoSchedule, PreferNoSchedule, NoExecute; any unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = EFFECTS_MAX))]
    pub effects: Option<Vec<Effect>>,
    /// How long it stays before members are replaced, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub duration_seconds: Option<i64>,
    /// What it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Replace"))]
    pub action: Option<TaintAction>,
    /// Whether the node comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Permanent"))]
    pub intent: Option<Intent>,
}

open_enum! {
    /// The effect of a taint on a node.
    pub enum Effect, schema: closed {
        /// Nothing new is put there.
        NoSchedule = "NoSchedule",
        /// Something new is put there only if it must be.
        PreferNoSchedule = "PreferNoSchedule",
        /// Nothing new is put there, and what is there leaves.
        NoExecute = "NoExecute",
    }
}

/// A cordon as a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CordonTrigger {
    /// How long it lasts before members are replaced, in seconds.
    #[schemars(range(min = 0))]
    pub duration_seconds: i64,
}

/// A condition of a node as a trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeConditionTrigger {
    /// The condition, such as Ready or MaintenanceInProgress.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX))]
    pub type_: String,
    /// What it says: True, False or Unknown.
    #[schemars(regex(pattern = "^(True|False|Unknown)$"))]
    pub status: String,
    /// How long it says so before members are replaced, in seconds.
    #[schemars(range(min = 0))]
    pub duration_seconds: i64,
}

/// The loss of a node as a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMissingTrigger {
    /// How long it has been gone before members are replaced, in seconds.
    #[schemars(range(min = 0))]
    pub duration_seconds: i64,
}

/// A condition of a pod as a trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodConditionTrigger {
    /// The condition, such as Ready.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX))]
    pub type_: String,
    /// What it says: True, False or Unknown.
    #[schemars(regex(pattern = "^(True|False|Unknown)$"))]
    pub status: String,
    /// How long it says so before the member is replaced, in seconds.
    #[schemars(range(min = 0))]
    pub duration_seconds: i64,
}

impl Triggers {
    /// The rules for taints.
    pub fn taints(&self) -> &[TaintTrigger] {
        self.taints.as_deref().unwrap_or_default()
    }

    /// The conditions of nodes.
    pub fn node_conditions(&self) -> &[NodeConditionTrigger] {
        self.node_conditions.as_deref().unwrap_or_default()
    }

    /// The conditions of pods.
    pub fn pod_conditions(&self) -> &[PodConditionTrigger] {
        self.pod_conditions.as_deref().unwrap_or_default()
    }

    /// Whether there is any trigger at all.
    pub fn is_empty(&self) -> bool {
        self.taints().is_empty()
            && self.node_conditions().is_empty()
            && self.pod_conditions().is_empty()
            && self.cordon.is_none()
            && self.node_missing.is_none()
    }
}
