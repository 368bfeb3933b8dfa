//! By what a placement ranks clusters.
//!
//! Owns the prioritizer policy and the reading of its older spellings. Computing scores is the engine's work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// The lowest weight of a prioritizer.
pub const WEIGHT_MIN: i32 = -10;
/// The highest weight of a prioritizer.
pub const WEIGHT_MAX: i32 = 10;
/// The weight of a configured prioritizer that names none.
pub const WEIGHT_DEFAULT: i32 = 1;

open_enum! {
    /// Whether configured prioritizers add to the default ones or replace them.
    pub enum PrioritizerMode, schema: free {
        /// Only the configured prioritizers count.
        Exact = "Exact",
        /// The configured prioritizers count on top of the default ones.
        Additive = "Additive",
    }
}

open_enum! {
    /// Where a score comes from.
    pub enum ScoreCoordinateType, schema: closed {
        /// Computed by the scheduler itself.
        BuiltIn = "BuiltIn",
        /// Read from an AddOnPlacementScore.
        AddOn = "AddOn",
    }
    aliases {
        /// An earlier spelling of BuiltIn.
        BuildIn = "BuildIn" => BuiltIn,
    }
}

/// By what clusters are ranked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Additive keeps the default prioritizers, Steady and Balance with weight 1, unless they are configured
    /// otherwise; Exact counts nothing but what is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Additive"))]
    pub mode: Option<PrioritizerMode>,
    /// The prioritizers and their weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Vec<PrioritizerConfig>>,
}

/// One prioritizer and its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Older way to name a built-in prioritizer; scoreCoordinate wins when it names one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the score comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_coordinate: Option<ScoreCoordinate>,
    /// How much the score counts, from -10 to 10: zero switches it off, a negative weight prefers low scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = WEIGHT_MIN, max = WEIGHT_MAX), extend("default" = WEIGHT_DEFAULT))]
    pub weight: Option<i32>,
}

/// Where a score comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// BuiltIn for a score the scheduler computes, AddOn for one read from an AddOnPlacementScore. BuildIn is
    /// read as BuiltIn.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "BuiltIn"))]
    pub type_: Option<ScoreCoordinateType>,
    /// Name of a built-in prioritizer: Balance, Steady, ResourceAllocatableCPU, ResourceAllocatableMemory or
    /// Spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// Older spelling of builtIn, which wins when both are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_in: Option<String>,
    /// The add-on score to use with type AddOn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

/// Names one score of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// Name of the AddOnPlacementScore in each cluster's namespace.
    pub resource_name: String,
    /// Name of the score within it.
    pub score_name: String,
}

impl PrioritizerPolicy {
    /// The mode in force; absent and empty both mean Additive.
    pub fn mode(&self) -> PrioritizerMode {
        match &self.mode {
            Some(mode) if !mode.as_str().is_empty() => mode.clone(),
            _ => PrioritizerMode::Additive,
        }
    }
}

impl PrioritizerConfig {
    /// The type in force, without aliases; absent and empty both mean BuiltIn.
    pub fn score_type(&self) -> ScoreCoordinateType {
        let given = self.score_coordinate.as_ref().and_then(|coordinate| coordinate.type_.as_ref());
        match given {
            Some(given) if !given.as_str().is_empty() => given.canonical(),
            _ => ScoreCoordinateType::BuiltIn,
        }
    }

    /// The built-in prioritizer that is named, by the newest spelling that names one.
    pub fn built_in(&self) -> Option<&str> {
        let coordinate = self.score_coordinate.as_ref();
        let spellings = [
            coordinate.and_then(|coordinate| coordinate.built_in.as_deref()),
            coordinate.and_then(|coordinate| coordinate.build_in.as_deref()),
            self.name.as_deref(),
        ];
        spellings.into_iter().flatten().find(|name| !name.is_empty())
    }

    /// The weight in force.
    pub fn weight(&self) -> i32 {
        self.weight.unwrap_or(WEIGHT_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: serde_json::Value) -> PrioritizerConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_older_spelling_of_a_built_in_prioritizer_is_understood() {
        let old = config(json!({"scoreCoordinate": {"type": "BuildIn", "buildIn": "Steady"}}));
        assert_eq!((old.score_type(), old.built_in()), (ScoreCoordinateType::BuiltIn, Some("Steady")));
        let oldest = config(json!({"name": "Balance", "weight": 2}));
        assert_eq!((oldest.score_type(), oldest.built_in()), (ScoreCoordinateType::BuiltIn, Some("Balance")));
        assert_eq!(oldest.weight(), 2);
    }

    #[test]
    fn the_newest_spelling_wins() {
        let all = config(json!({
            "name": "Balance",
            "scoreCoordinate": {"type": "BuiltIn", "buildIn": "Spread", "builtIn": "Steady"},
        }));
        assert_eq!(all.built_in(), Some("Steady"));
    }
}
