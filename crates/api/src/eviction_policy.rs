//! How pods leave tainted nodes: which pods, by what way, when, how fast, and who has a say before.
//!
//! Owns the `EvictionPolicy` kind. What is asked of others before an eviction is in `gate`, how it stands in `status`;
//! compiling and obeying a policy is the engine's and the controllers' work.

pub mod gate;
pub mod status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::gate::EvictionGate;
use self::status::EvictionPolicyStatus;
use crate::{
    open_enum::open_enum,
    resource::resource,
    schema::fragment,
    taint::{QUALIFIED_KEY_CHARS_MAX, QUALIFIED_KEY_PATTERN},
    window::{MaintenanceWindow, WINDOWS_MAX},
};

/// The most namespaces one policy may name: each pod is compared with all of them.
pub const NAMESPACES_MAX: u32 = 128;
/// The longest name of a namespace, in characters, as Kubernetes has it.
pub const NAMESPACE_CHARS_MAX: u32 = 63;
/// The most kinds of owners one policy may name.
pub const OWNER_KINDS_MAX: u32 = 32;
/// The longest kind, in characters, as Kubernetes has it.
pub const KIND_CHARS_MAX: u32 = 63;
/// The most taints one policy may name: each taint of a node is compared with all of them.
pub const TAINTS_MAX: u32 = 32;
/// The longest value of a taint on a node, in characters, as Kubernetes has it.
pub const TAINT_VALUE_CHARS_MAX: u32 = 63;
/// The most proofs one policy may accept.
pub const PROOFS_MAX: u32 = 8;
/// The longest time a policy may speak of, in seconds: a year, after which nobody remembers why.
pub const SECONDS_MAX: i64 = 31_536_000;
/// The longest value of an annotation that is asked for, in characters.
pub const ANNOTATION_VALUE_CHARS_MAX: u32 = 1024;

open_enum! {
    /// How a pod leaves.
    pub enum EvictionWay, schema: closed {
        /// It is deleted with its own grace period, as Kubernetes' own controller does. Budgets are not asked.
        Delete = "Delete",
        /// It is evicted by the API, which asks the pod's PodDisruptionBudget.
        Evict = "Evict",
        /// It is not evicted.
        Hold = "Hold",
    }
}

open_enum! {
    /// What becomes of a pod whose budget has not let it go in time.
    pub enum EvictionFallback, schema: closed {
        /// It is deleted, whatever the budget says.
        Delete = "Delete",
        /// It stays, and is not tried again.
        Hold = "Hold",
    }
}

open_enum! {
    /// What a taint does to pods that do not tolerate it.
    pub enum EvictingEffect, schema: closed {
        /// They leave.
        NoExecute = "NoExecute",
    }
}

open_enum! {
    /// What shows that nothing runs on a node any more.
    pub enum ProofType, schema: closed {
        /// The node has the taint `node.kubernetes.io/out-of-service`, which says that it is shut down.
        OutOfServiceTaint = "OutOfServiceTaint",
        /// The node has the taint `node.cloudprovider.kubernetes.io/shutdown`: the provider of the machine says that it is shut
        /// down.
        ProviderShutdownTaint = "ProviderShutdownTaint",
        /// The Node object is gone.
        NodeGone = "NodeGone",
        /// The node has an annotation that somebody puts there who has fenced it.
        NodeAnnotation = "NodeAnnotation",
    }
}

/// Says how pods leave tainted nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionPolicy {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which pods leave, and how.
    #[serde(default)]
    pub spec: EvictionPolicySpec,
    /// How it stands.
    #[serde(default)]
    pub status: Option<EvictionPolicyStatus>,
}

resource!(
    EvictionPolicy,
    group: crate::names::BERTH_GROUP,
    version: "v1alpha1",
    plural: "evictionpolicies",
    scope: ClusterResourceScope,
    fields: { always spec, optional status }
);

/// Which pods leave tainted nodes how. Of several policies that select a pod and a taint the most specific counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionPolicySpec {
    /// The pods; all of them unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodSelection>,
    /// The taints of nodes that it is about; every NoExecute taint unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = TAINTS_MAX))]
    pub taints: Option<Vec<TaintSelection>>,
    /// How the pods leave: Delete, as Kubernetes' own controller does; Evict, which asks the PodDisruptionBudgets; or Hold,
    /// which means that they stay.
    pub way: EvictionWay,
    /// What to do where a budget does not let a pod go; only for the way Evict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict: Option<EvictTerms>,
    /// When the pods leave; when their own tolerations end unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<EvictionTiming>,
    /// How many leave how fast; without bounds of its own unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<EvictionPace>,
    /// What has to hold before a pod goes; all of them. They are asked in this order, just before it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = gate::GATES_MAX))]
    pub gates: Option<Vec<EvictionGate>>,
    /// What to do about pods that do not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<EvictionAftermath>,
    /// Do everything but the eviction, and count those that would have gone. The pods stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

impl Default for EvictionPolicySpec {
    /// What does nothing.
    fn default() -> Self {
        Self {
            pods: None,
            taints: None,
            way: EvictionWay::Hold,
            evict: None,
            when: None,
            pace: None,
            gates: None,
            after: None,
            dry_run: None,
        }
    }
}

/// Pods: those for which everything holds that is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSelection {
    /// In one of these namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAMESPACES_MAX), inner(length(min = 1, max = NAMESPACE_CHARS_MAX)))]
    pub namespaces: Option<Vec<String>>,
    /// In a namespace with such labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// With such labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::label_selector")]
    pub selector: Option<LabelSelector>,
    /// Kept by a controller of one of these kinds, as in StatefulSet; the pods of a Deployment are kept by a ReplicaSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = OWNER_KINDS_MAX), inner(length(min = 1, max = KIND_CHARS_MAX)))]
    pub owner_kinds: Option<Vec<String>>,
}

/// Taints of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintSelection {
    /// Their key.
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = QUALIFIED_KEY_PATTERN))]
    pub key: String,
    /// Their value; any unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TAINT_VALUE_CHARS_MAX))]
    pub value: Option<String>,
    /// Their effect: NoExecute, the only one that makes pods leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EvictingEffect>,
}

/// What to do where a budget does not let a pod go. Without it the budget has the last word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictTerms {
    /// For how long after it is due, and a window has opened since, a pod is tried to be evicted.
    #[schemars(range(min = 0, max = SECONDS_MAX))]
    pub deadline_seconds: i64,
    /// What becomes of it then: Delete takes it away whatever its budget says, Hold leaves it.
    pub fallback: EvictionFallback,
}

/// When pods leave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionTiming {
    /// For how long the taint is tolerated, in place of what the pod says. A pod that tolerates it for ever stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = SECONDS_MAX))]
    pub toleration_seconds: Option<i64>,
    /// For how much longer they stay than they would otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = SECONDS_MAX))]
    pub delay_seconds: Option<i64>,
    /// They leave only while one of these windows is open; at any time unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = WINDOWS_MAX))]
    pub windows: Option<Vec<MaintenanceWindow>>,
}

/// How many leave how fast. The bounds of the controller hold besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionPace {
    /// At most so many pods a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::per_second")]
    pub rate: Option<f64>,
    /// How many may go at once after a rest; one unless given. Needs a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub burst: Option<i32>,
    /// At most so many pods a second from one zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::per_second")]
    pub zone_rate: Option<f64>,
    /// How many may be on their way out at once, as a number or as a percentage of the pods that it has on tainted nodes; at
    /// least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::count_or_percent")]
    pub in_flight: Option<IntOrString>,
    /// How many of those in one zone may be on their way out at once, as a number or as a percentage of the pods that it has on
    /// tainted nodes of the zone; at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::count_or_percent")]
    pub zone_in_flight: Option<IntOrString>,
    /// How many pods of one owner may be away at once, as a number or as a percentage of its pods; at least one. Away is who
    /// is on its way out, and who has come in the place of such a pod and is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::count_or_percent")]
    pub per_workload: Option<IntOrString>,
}

/// What to do about pods that do not end, because nobody is there to end them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionAftermath {
    /// Delete such a pod by force so long after its grace period has ended, whoever has deleted it. Its containers may still run
    /// where nobody sees them: a proof is needed that they do not.
    #[schemars(range(min = 0, max = SECONDS_MAX))]
    pub force_delete_after_seconds: i64,
    /// What counts as a proof that nothing runs on the node any more; any one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = PROOFS_MAX))]
    pub proofs: Option<Vec<FencingProof>>,
    /// Delete by force without a proof. Two pods may then have the same identity or the same volume at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_risk: Option<bool>,
}

/// What shows that nothing runs on a node any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FencingProof {
    /// OutOfServiceTaint, ProviderShutdownTaint, NodeGone or NodeAnnotation.
    #[serde(rename = "type")]
    pub kind: ProofType,
    /// The annotation; only for NodeAnnotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<AnnotationMatch>,
}

/// An annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationMatch {
    /// Its key.
    #[schemars(length(min = 1, max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = QUALIFIED_KEY_PATTERN))]
    pub key: String,
    /// Its value; any unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = ANNOTATION_VALUE_CHARS_MAX))]
    pub value: Option<String>,
}
