//! What must be true before a replacement goes on.
//!
//! Owns how gates are written. Asking them is the controller's work, judging the answers the engine's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;
use crate::taint::QUALIFIED_KEY_CHARS_MAX;

/// The most gates of a policy: all of a stage are asked before each act.
pub const GATES_MAX: usize = 16;
/// How long a gate may stay shut before its `onTimeout` is followed: a day, in which somebody looks.
pub const GATE_TIMEOUT_DEFAULT_SECONDS: i64 = 86_400;
/// The longest expression in characters; longer ones belong into a gate of one's own.
pub(super) const EXPRESSION_CHARS_MAX: u32 = 4_096;
/// The longest address in characters.
const URL_CHARS_MAX: u32 = 2_048;

open_enum! {
    /// Before what a gate is asked.
    pub enum Stage, schema: closed {
        /// Before a replacement begins: nothing is done, and no place in the budget is taken.
        BeforeStart = "BeforeStart",
        /// Before the pod is removed.
        BeforePodRemoval = "BeforePodRemoval",
        /// Before volumes are removed.
        BeforeVolumeRemoval = "BeforeVolumeRemoval",
        /// Before the replacement counts as done.
        BeforeComplete = "BeforeComplete",
    }
}

open_enum! {
    /// What happens when a gate stays shut for too long.
    pub enum OnTimeout, schema: closed {
        /// It goes on waiting.
        Block = "Block",
        /// The replacement is given up.
        Abort = "Abort",
        /// The gate counts as open; never where volumes are removed.
        Proceed = "Proceed",
    }
}

/// Something that must be true; exactly one of the ways to ask is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// What it is called in status and events.
    #[schemars(length(min = 1, max = 63), regex(pattern = crate::names::DNS_LABEL_PATTERN))]
    pub name: String,
    /// Before what it is asked.
    #[schemars(extend("default" = "BeforePodRemoval"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// An expression over pod, node, owner, pvcs, pvs, peers and now that gives true or false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = EXPRESSION_CHARS_MAX))]
    pub cel: Option<String>,
    /// A condition that the application or its operator sets on the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_condition: Option<PodConditionGate>,
    /// An annotation that an operator sets on the pod in answer to one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<AnnotationGate>,
    /// A service that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpGate>,
    /// How long it may stay shut, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = GATE_TIMEOUT_DEFAULT_SECONDS))]
    pub timeout_seconds: Option<i64>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Block"))]
    pub on_timeout: Option<OnTimeout>,
}

/// A condition of the pod that must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodConditionGate {
    /// The condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX))]
    pub type_: String,
    /// What it must say; True unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether it counts only if it changed after the replacement began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_after_start: Option<bool>,
}

/// A handshake by annotations of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationGate {
    /// The annotation by which the operator says that it is ready.
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX))]
    pub key: String,
    /// The value it must have; any unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A service that is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGate {
    /// Its address; https only.
    #[schemars(length(min = 1, max = URL_CHARS_MAX), regex(pattern = "^https://"))]
    pub url: String,
    /// The certificates it is known by, in PEM and base64; those of the machine unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

impl Gate {
    /// Before what it is asked.
    pub fn stage(&self) -> Stage {
        self.stage.clone().unwrap_or(Stage::BeforePodRemoval)
    }

    /// How long it may stay shut, in seconds.
    pub fn timeout_seconds(&self) -> i64 {
        self.timeout_seconds.unwrap_or(GATE_TIMEOUT_DEFAULT_SECONDS)
    }

    /// What happens then.
    pub fn on_timeout(&self) -> OnTimeout {
        self.on_timeout.clone().unwrap_or(OnTimeout::Block)
    }
}
