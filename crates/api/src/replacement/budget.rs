//! How many members are replaced at once, and when.
//!
//! Owns the bounds of a policy: concurrency, breaker, buckets, pauses between replacements, repetition, windows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::fragment;
use crate::window::{MaintenanceWindow, WINDOWS_MAX};

/// The most buckets: each member is matched against each.
pub const BUCKETS_MAX: usize = 16;
/// The node label that tells fault domains apart unless another is given.
pub const FAULT_DOMAIN_KEY_DEFAULT: &str = "kubernetes.io/hostname";
/// The longest label key in characters: a 253 character prefix, a slash, a 63 character name.
const LABEL_KEY_CHARS_MAX: u32 = 317;

/// How many at once, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// How many are replaced at once; 0 switches replacements off. 1 unless given here or as
    /// replacements.maxConcurrentReplacements, but not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_concurrent: Option<i32>,
    /// Whether that counts fault domains rather than members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_fault_domain: Option<bool>,
    /// The node label whose values are the fault domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = LABEL_KEY_CHARS_MAX), extend("default" = FAULT_DOMAIN_KEY_DEFAULT))]
    pub fault_domain_key: Option<String>,
    /// When too much is affected for anything to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
    /// Budgets of their own for some members; a member belongs to the first that matches it, and to the common budget
    /// if none does. A slow replacement in one does not hold up the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = BUCKETS_MAX))]
    pub buckets: Option<Vec<Bucket>>,
    /// How long to rest after a replacement has ended before the next begins, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub cooldown_seconds: Option<i64>,
    /// How often a member is replaced that does not get well by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// When replacements may begin; always unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = WINDOWS_MAX))]
    pub windows: Option<Vec<MaintenanceWindow>>,
}

/// When too much is affected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// While more fault domains than this have marked members, as a number or a percentage rounded down, none is replaced
    /// because of its node.
    #[serde(
        default,
        deserialize_with = "crate::decision_strategy::saturating",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "fragment::affected_fault_domains")]
    pub max_affected_fault_domains: Option<IntOrString>,
    /// So many may be affected in any case: of few domains, a tenth is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub minimum: Option<i32>,
    /// Whether members that are being replaced count as affected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub count_in_flight: Option<bool>,
}

/// A budget of their own for some members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// Which members, by the labels of their pods.
    #[schemars(schema_with = "fragment::label_selector")]
    pub selector: LabelSelector,
    /// How many of them are replaced at once; 0 for none.
    #[schemars(range(min = 0))]
    pub max_concurrent: i32,
}

/// How often a member is replaced that does not get well by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// How often it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 3))]
    pub max_retry: Option<i32>,
    /// How long to wait before trying again, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 600))]
    pub retry_period_seconds: Option<i64>,
    /// A member that was well for so long after a replacement begins anew, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 3_600))]
    pub min_healthy_seconds: Option<i64>,
}

impl Retry {
    /// How often it is tried again.
    pub fn max_retry(&self) -> i32 {
        self.max_retry.unwrap_or(3)
    }

    /// How long to wait before trying again, in seconds.
    pub fn retry_period_seconds(&self) -> i64 {
        self.retry_period_seconds.unwrap_or(600)
    }

    /// How long a member must be well to begin anew, in seconds.
    pub fn min_healthy_seconds(&self) -> i64 {
        self.min_healthy_seconds.unwrap_or(3_600)
    }
}

impl Budget {
    /// The label that tells fault domains apart.
    pub fn fault_domain_key(&self) -> &str {
        self.fault_domain_key.as_deref().unwrap_or(FAULT_DOMAIN_KEY_DEFAULT)
    }

    /// The budgets of their own.
    pub fn buckets(&self) -> &[Bucket] {
        self.buckets.as_deref().unwrap_or_default()
    }

    /// When replacements may begin.
    pub fn windows(&self) -> &[MaintenanceWindow] {
        self.windows.as_deref().unwrap_or_default()
    }
}
