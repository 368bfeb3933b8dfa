//! What has to hold before a pod is evicted, as said; asking is the engine's and the controllers' work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AnnotationMatch;
use crate::{
    open_enum::open_enum,
    schema::fragment,
    taint::{QUALIFIED_KEY_CHARS_MAX, QUALIFIED_KEY_PATTERN},
};

/// The most gates of one policy: each is asked before every eviction.
pub const GATES_MAX: u32 = 16;
/// The longest name of a gate, in characters: it is shown in events, metrics and conditions.
pub const GATE_NAME_CHARS_MAX: u32 = 63;
/// The longest expression, in characters.
pub const EXPRESSION_CHARS_MAX: u32 = 4096;
/// The longest address of a review, in characters.
pub const URL_CHARS_MAX: u32 = 2048;
/// How long a review may take where nothing is said, in seconds.
pub const REVIEW_SECONDS: i64 = 5;
/// How long a review may take at most, in seconds: the pod waits meanwhile, and so does the place that the question takes.
pub const REVIEW_SECONDS_MAX: i64 = 30;

open_enum! {
    /// The status of a condition.
    pub enum ConditionStatus, schema: closed {
        /// It is so.
        True = "True",
        /// It is not.
        False = "False",
        /// Nobody knows.
        Unknown = "Unknown",
    }
}

/// Something that has to hold before a pod goes: exactly one of the fields besides the name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionGate {
    /// What it is called where a pod is held by it; each name once.
    #[schemars(length(min = 1, max = GATE_NAME_CHARS_MAX), regex(pattern = crate::names::DNS_LABEL_PATTERN))]
    pub name: String,
    /// An expression that has to be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelGate>,
    /// A condition that the pod has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_condition: Option<PodConditionGate>,
    /// An annotation that the pod has to have. Whoever put it there may take it back until the eviction is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<AnnotationMatch>,
    /// A service that has to allow it. It is asked only when all gates before it are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewGate>,
}

/// An expression over the pod, its node and its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelGate {
    /// In CEL, over the objects `pod`, `node` and `owner`, which is null where the pod has none of Kubernetes' own kinds.
    #[schemars(length(min = 1, max = EXPRESSION_CHARS_MAX))]
    pub expression: String,
}

/// A service that is asked whether a pod may go. Whatever is not a clear yes is a no.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewGate {
    /// Its address; https only.
    #[schemars(length(min = 1, max = URL_CHARS_MAX), regex(pattern = "^https://"))]
    pub url: String,
    /// The authorities of which one has to vouch for it, in PEM and base64; those that the machine trusts unless given.
    // Kept as text, so that one odd encoding does not make a policy unreadable, which would hold everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::bytes")]
    pub ca_bundle: Option<String>,
    /// How long it may take to answer; five seconds unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = REVIEW_SECONDS_MAX))]
    pub timeout_seconds: Option<i64>,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodConditionGate {
    /// Its type.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = QUALIFIED_KEY_PATTERN))]
    pub kind: String,
    /// The status it has to have: True, False or Unknown.
    pub status: ConditionStatus,
}
