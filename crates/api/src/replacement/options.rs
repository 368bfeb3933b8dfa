//! The option block of the FoundationDB operator, with its names, types, defaults and meanings.
//!
//! Owns what is written under `spec.replacements`; it can be pasted from `automationOptions.replacements` of a
//! FoundationDBCluster as it is. What that operator takes and never acts on (an empty key, `a/*`, negative times) is refused.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trigger::{TRIGGER_KEY_CHARS_MAX, TRIGGER_KEY_PATTERN};
use crate::schema::fragment;

/// The most rules for taint keys, as upstream.
pub const TAINT_OPTIONS_MAX: usize = 32;
/// How long a failure lasts before a member is replaced for it, in seconds.
pub const FAILURE_DETECTION_DEFAULT_SECONDS: i64 = 7_200;
/// How long a member waits once a taint has stayed for long enough, in seconds.
pub const TAINT_REPLACEMENT_DEFAULT_SECONDS: i64 = 1_800;
/// How many are replaced at once.
pub const MAX_CONCURRENT_DEFAULT: i32 = 1;
/// The share of the fault domains that may be tainted before nothing is replaced any more.
pub const MAX_FAULT_DOMAINS_DEFAULT: &str = "10%";

/// When members are replaced by themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementOptions {
    /// Whether anything is replaced at all. On unless given: that is how the operator behaves, whatever its manual says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub enabled: Option<bool>,
    /// Whether maxConcurrentReplacements counts fault domains rather than members; it does not unless given here or as
    /// budget.byFaultDomain.
    // A default in the schema would be what somebody gave, and twice is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domain_based_replacements: Option<bool>,
    /// How long a member must have been failing before it is replaced, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = FAILURE_DETECTION_DEFAULT_SECONDS))]
    pub failure_detection_time_seconds: Option<i64>,
    /// How long a member stays marked, after a taint has been on its node for long enough, before it is replaced, in
    /// seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = TAINT_REPLACEMENT_DEFAULT_SECONDS))]
    pub taint_replacement_time_seconds: Option<i64>,
    /// How many are replaced at once; 0 switches replacements off. 1 unless given here or as budget.maxConcurrent.
    // A default in the schema would be what somebody gave, and twice is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_concurrent_replacements: Option<i32>,
    /// Which taints mark members, and after how long. A rule for the very key counts before the one for `*`. Without any,
    /// taints are not looked at, and no node is read for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TAINT_OPTIONS_MAX))]
    pub taint_replacement_options: Option<Vec<TaintReplacementOption>>,
    /// While more fault domains than this have members that are marked, as a number or a percentage (rounded down, at least
    /// one), none is replaced because of its node.
    #[serde(
        default,
        deserialize_with = "crate::decision_strategy::saturating",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "fragment::affected_fault_domains")]
    pub max_fault_domains_with_tainted_process_groups: Option<IntOrString>,
}

/// How long a taint of one key stays before it marks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintReplacementOption {
    /// The taint's key, or `*` for every key that has no rule of its own.
    #[schemars(length(min = 1, max = TRIGGER_KEY_CHARS_MAX), regex(pattern = TRIGGER_KEY_PATTERN))]
    pub key: String,
    /// How long the taint stays before members on the node are marked, in seconds; the largest number there is for never.
    #[schemars(range(min = 0))]
    pub duration_in_seconds: i64,
}

impl ReplacementOptions {
    /// Whether anything is replaced at all.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Whether the concurrency counts fault domains.
    pub fn counts_fault_domains(&self) -> bool {
        self.fault_domain_based_replacements.unwrap_or(false)
    }

    /// How long a failure lasts before it counts, in seconds.
    pub fn failure_detection_seconds(&self) -> i64 {
        self.failure_detection_time_seconds.unwrap_or(FAILURE_DETECTION_DEFAULT_SECONDS)
    }

    /// How long a member stays marked, in seconds.
    pub fn taint_replacement_seconds(&self) -> i64 {
        self.taint_replacement_time_seconds.unwrap_or(TAINT_REPLACEMENT_DEFAULT_SECONDS)
    }

    /// How many are replaced at once.
    pub fn max_concurrent(&self) -> i32 {
        self.max_concurrent_replacements.unwrap_or(MAX_CONCURRENT_DEFAULT)
    }

    /// The rules for taint keys.
    pub fn taint_options(&self) -> &[TaintReplacementOption] {
        self.taint_replacement_options.as_deref().unwrap_or_default()
    }

    /// How many fault domains may be affected.
    pub fn max_fault_domains(&self) -> IntOrString {
        let given = self.max_fault_domains_with_tainted_process_groups.clone();
        given.unwrap_or_else(|| IntOrString::String(MAX_FAULT_DOMAINS_DEFAULT.to_owned()))
    }
}
