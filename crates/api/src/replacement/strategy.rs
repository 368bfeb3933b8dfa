//! How a member is replaced.
//!
//! Owns who does it, what becomes of the volumes, where the successor may go, when it counts as well, and until when a
//! replacement can be called off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::EXPRESSION_CHARS_MAX;
use crate::open_enum::open_enum;
use crate::taint::QUALIFIED_KEY_CHARS_MAX;

/// The most storage classes that volumes may be removed of.
const CLASSES_MAX: usize = 32;
/// A field of an object, by the names on the way to it.
const PATH_PATTERN: &str = r"^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*)*$";
/// The longest value of an annotation or list entry that an operator is told by, in characters.
const TOLD_CHARS_MAX: u32 = 1_024;

open_enum! {
    /// Who removes the pod.
    pub enum StrategyType, schema: closed {
        /// We do, by the Eviction API, so that disruption budgets are kept.
        Evict = "Evict",
        /// The operator of the workload, whom we tell.
        Delegate = "Delegate",
    }
}

open_enum! {
    /// What becomes of the member's volumes.
    pub enum VolumePolicy, schema: closed {
        /// They stay.
        Retain = "Retain",
        /// Those that cannot leave the node are removed, with what is on them.
        DeleteNodeLocal = "DeleteNodeLocal",
        /// All are removed, with what is on them.
        Delete = "Delete",
    }
}

open_enum! {
    /// Until when a replacement ends by itself once its cause is gone.
    pub enum OnCleared, schema: closed {
        /// What has begun is finished.
        Never = "Never",
        /// Until the first act.
        BeforeStart = "BeforeStart",
        /// Until something is removed.
        BeforePointOfNoReturn = "BeforePointOfNoReturn",
    }
}

/// How a member is replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// Who removes the pod.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Evict"))]
    pub type_: Option<StrategyType>,
    /// What becomes of the volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Volumes>,
    /// What must be sure of the successor's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<SuccessorPlacement>,
    /// How the operator is told; with type Delegate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate: Option<Delegate>,
    /// When the successor counts as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
}

/// What becomes of the volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volumes {
    /// Whether they stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Retain"))]
    pub policy: Option<VolumePolicy>,
    /// Only volumes of these storage classes are removed; of any class unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = CLASSES_MAX))]
    pub storage_class_names: Option<Vec<String>>,
    /// `Retain`: the persistent volume is kept when its claim is removed, so that somebody can still look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^Retain$"))]
    pub set_reclaim_policy: Option<String>,
}

/// What must be sure of the successor's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SuccessorPlacement {
    /// The node that is left takes no new pod of the workload: it is cordoned, or has a taint that the pod does not tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub require_unschedulable_node: Option<bool>,
    /// Some other node can take the successor. Unless given, that is asked where the policy speaks of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_feasible_target: Option<bool>,
}

/// How an operator is told that a member must go; exactly one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegate {
    /// An annotation on the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotate_pod: Option<AnnotatePod>,
    /// An entry in a list of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_owner: Option<PatchOwner>,
    /// Where the operator says that it has done its part. Unless given, that is when the pod is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_when: Option<DoneWhen>,
    /// How long the operator may take, in seconds; then the replacement has failed, and its place is free. For ever unless
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i64>,
}

/// Where an operator says that it has done its part: in a list of the owner that has an entry for each member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoneWhen {
    /// The list, such as `status.processGroups`.
    #[schemars(length(min = 1, max = 253), regex(pattern = PATH_PATTERN))]
    pub list: String,
    /// The field of an entry that says whom it is about, such as `processGroupID`: the value of patchOwner.entryFromLabel, or
    /// the pod's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = PATH_PATTERN))]
    pub key: String,
    /// The field that the entry has once the operator is done, such as `exclusionTimestamp`. An entry that is gone with its
    /// pod is done as well.
    #[schemars(length(min = 1, max = 253), regex(pattern = PATH_PATTERN))]
    pub field: String,
}

/// An annotation that tells an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotatePod {
    /// Its key.
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX))]
    pub key: String,
    /// Its value.
    #[schemars(length(max = TOLD_CHARS_MAX))]
    pub value: String,
}

/// An entry in a list of the owner that tells an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchOwner {
    /// The list, such as `spec.processGroupsToRemove`.
    #[schemars(length(min = 1, max = 253), regex(pattern = PATH_PATTERN))]
    pub list: String,
    /// The label of the pod whose value is the entry; the pod's name unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub entry_from_label: Option<String>,
}

/// When a successor counts as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// How long it may take to become ready, in seconds; then the replacement has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1_800))]
    pub timeout_seconds: Option<i64>,
    /// How long it must have been ready, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 60))]
    pub min_ready_seconds: Option<i64>,
}

/// Who is replaced first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// An expression over pod, node and owner that gives a whole number; the lowest goes first, then who has been due for
    /// longest, then by name.
    #[schemars(length(min = 1, max = EXPRESSION_CHARS_MAX))]
    pub cel: String,
}

/// When a replacement is called off by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancel {
    /// Until when it ends by itself once its cause is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "BeforePointOfNoReturn"))]
    pub on_cleared: Option<OnCleared>,
}

impl Strategy {
    /// Who removes the pod.
    pub fn kind(&self) -> StrategyType {
        self.type_.clone().unwrap_or(StrategyType::Evict)
    }

    /// What becomes of the volumes.
    pub fn volume_policy(&self) -> VolumePolicy {
        let given = self.volumes.as_ref().and_then(|volumes| volumes.policy.clone());
        given.unwrap_or(VolumePolicy::Retain)
    }
}

impl SuccessorPlacement {
    /// Whether the node that is left must take no new pod.
    pub fn requires_unschedulable_node(&self) -> bool {
        self.require_unschedulable_node.unwrap_or(true)
    }
}

impl Ready {
    /// How long a successor may take to become ready, in seconds.
    pub fn timeout_seconds(&self) -> i64 {
        self.timeout_seconds.unwrap_or(1_800)
    }

    /// How long a successor must have been ready, in seconds.
    pub fn min_ready_seconds(&self) -> i64 {
        self.min_ready_seconds.unwrap_or(60)
    }
}
