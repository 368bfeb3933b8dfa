//! The policy: for whom, when, how many at once, and how.
//!
//! Owns the `ReplacementPolicy` kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::gate::{GATES_MAX, Gate};
use super::options::ReplacementOptions;
use super::status::ReplacementPolicyStatus;
use super::strategy::{Cancel, Order, Strategy};
use super::trigger::Triggers;
use crate::{open_enum::open_enum, resource::resource, schema::fragment};

/// The most reasons to pause at once: each has a person behind it.
const PAUSE_REQUESTS_MAX: usize = 16;

open_enum! {
    /// What is done with what is decided.
    pub enum Mode, schema: closed {
        /// It is done.
        Enforce = "Enforce",
        /// It is told and not done. The default: what removes data is switched on by hand.
        DryRun = "DryRun",
        /// Nothing is decided.
        Disabled = "Disabled",
    }
}

/// Says when members of a stateful workload are replaced, how many at once, and how.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementPolicy {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// For whom, when and how.
    #[serde(default)]
    pub spec: ReplacementPolicySpec,
    /// What has been seen and what is under way.
    #[serde(default)]
    pub status: Option<ReplacementPolicyStatus>,
}

resource!(
    ReplacementPolicy,
    group: crate::names::BERTH_GROUP,
    version: "v1alpha1",
    plural: "replacementpolicies",
    scope: NamespaceResourceScope,
    fields: { always spec, optional status }
);

/// For whom, when and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementPolicySpec {
    /// The workload whose pods are the members. This or selector, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetRef>,
    /// The pods that are the members. This or targetRef, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub selector: Option<LabelSelector>,
    /// What is done with what is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "DryRun"))]
    pub mode: Option<Mode>,
    /// While there is any entry, nothing new begins; each says who wants that and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = PAUSE_REQUESTS_MAX), inner(length(min = 1, max = 256)))]
    pub pause_requests: Option<Vec<String>>,
    /// The FoundationDB operator's options, as they are written there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacements: Option<ReplacementOptions>,
    /// What makes a member be replaced, beyond `replacements`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Triggers>,
    /// How many at once, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Who goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// How a member is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// What must be true before a replacement goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = GATES_MAX), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub gates: Option<Vec<Gate>>,
    /// When a replacement is called off by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
}

/// The workload whose pods are the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Its group and version, such as `apps/v1`.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Its kind, such as `StatefulSet`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl ReplacementPolicySpec {
    /// What is done with what is decided.
    pub fn mode(&self) -> Mode {
        self.mode.clone().unwrap_or(Mode::DryRun)
    }

    /// Who wants nothing new to begin, and why.
    pub fn pause_requests(&self) -> &[String] {
        self.pause_requests.as_deref().unwrap_or_default()
    }

    /// What must be true before a replacement goes on.
    pub fn gates(&self) -> &[Gate] {
        self.gates.as_deref().unwrap_or_default()
    }
}
