//! Distribution of the selected clusters over topologies: regions, zones, providers.
//!
//! Owns spread constraints and anti-affinity, as said; keeping them is the engine's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, taint::QUALIFIED_KEY_CHARS_MAX};

/// A qualified name, parenthesised as the reference has it for topology keys.
pub const TOPOLOGY_KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// The most spread constraints one placement may have.
pub const SPREAD_CONSTRAINTS_MAX: u32 = 8;
/// The skew allowed by a constraint that names none.
pub const MAX_SKEW_DEFAULT: i32 = 1;

open_enum! {
    /// What a topology key names.
    pub enum TopologyKeyType, schema: closed {
        /// A label of the cluster.
        Label = "Label",
        /// A claim of the cluster.
        Claim = "Claim",
    }
}

open_enum! {
    /// What to do when a spread constraint cannot be kept.
    pub enum UnsatisfiableAction, schema: closed {
        /// Select fewer clusters than wanted.
        DoNotSchedule = "DoNotSchedule",
        /// Select them nevertheless, as evenly as possible.
        ScheduleAnyway = "ScheduleAnyway",
    }
}

/// How the selected clusters are to be distributed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// Constraints, the most important first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = SPREAD_CONSTRAINTS_MAX))]
    pub spread_constraints: Option<Vec<SpreadConstraint>>,
}

/// One rule of distribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The label or claim whose values are the topologies.
    #[schemars(length(max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = TOPOLOGY_KEY_PATTERN))]
    pub topology_key: String,
    /// Whether topologyKey names a Label or a Claim.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters the fullest topology may exceed the emptiest; at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = MAX_SKEW_DEFAULT))]
    pub max_skew: Option<i32>,
    /// What to do when the rule cannot be kept: DoNotSchedule selects fewer clusters, ScheduleAnyway keeps
    /// selecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ScheduleAnyway"))]
    pub when_unsatisfiable: Option<UnsatisfiableAction>,
}

/// No two selected clusters share a topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AntiAffinity {
    /// The label or claim whose value must differ between any two selected clusters.
    #[schemars(length(max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = TOPOLOGY_KEY_PATTERN))]
    pub topology_key: String,
    /// Whether topologyKey names a Label or a Claim.
    pub topology_key_type: TopologyKeyType,
}

impl SpreadConstraint {
    /// The allowed skew in force.
    pub fn max_skew(&self) -> i32 {
        self.max_skew.unwrap_or(MAX_SKEW_DEFAULT)
    }

    /// What to do when the constraint cannot be kept; absent and empty both mean to go on.
    pub fn when_unsatisfiable(&self) -> UnsatisfiableAction {
        match &self.when_unsatisfiable {
            Some(action) if !action.as_str().is_empty() => action.clone(),
            _ => UnsatisfiableAction::ScheduleAnyway,
        }
    }
}
