//! Taints on clusters and the tolerations that placements answer them with.
//!
//! Owns the two structures and their vocabulary. Whether a toleration matches a taint is decided by the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{open_enum::open_enum, schema::fragment};

/// `dns-subdomain/` as an optional prefix of a qualified name; taint keys, toleration keys and condition types.
pub const QUALIFIED_KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The longest qualified key in characters: a 253 character prefix, a slash, a 62 character name.
pub const QUALIFIED_KEY_CHARS_MAX: u32 = 316;
/// The longest taint or toleration value in characters, as in the reference schema.
pub const TAINT_VALUE_CHARS_MAX: u32 = 1024;

open_enum! {
    /// What a taint does to placements that do not tolerate it.
    pub enum TaintEffect, schema: closed {
        /// The cluster is not selected, and leaves the decisions it is already in.
        NoSelect = "NoSelect",
        /// The cluster is selected only when nothing untainted is left.
        PreferNoSelect = "PreferNoSelect",
        /// The cluster is not newly selected, but stays where it already is.
        NoSelectIfNew = "NoSelectIfNew",
    }
}

open_enum! {
    /// How a toleration compares its value with a taint's.
    pub enum TolerationOperator, schema: free {
        /// Any value matches.
        Exists = "Exists",
        /// Only the same value matches.
        Equal = "Equal",
    }
}

/// A mark on a cluster that keeps placements away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Name of the taint, optionally prefixed with a DNS subdomain and a slash, such as
    /// `example.com/maintenance`.
    #[schemars(length(max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = QUALIFIED_KEY_PATTERN))]
    pub key: String,
    /// Free text a toleration may compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TAINT_VALUE_CHARS_MAX))]
    pub value: Option<String>,
    /// What happens to placements without a matching toleration: NoSelect refuses the cluster and removes
    /// it from existing decisions, NoSelectIfNew refuses it only where it is not yet selected, and
    /// PreferNoSelect makes it the last choice.
    pub effect: TaintEffect,
    /// When the taint was put on the cluster; set by the hub. Limited tolerations count from here.
    #[serde(default, deserialize_with = "crate::time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fragment::nullable_time")]
    pub time_added: Option<Time>,
}

/// A placement's consent to clusters that carry a matching taint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint key to match; leave it out (with operator Exists) to match every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = QUALIFIED_KEY_CHARS_MAX), regex(pattern = QUALIFIED_KEY_PATTERN))]
    pub key: Option<String>,
    /// Equal compares the values, Exists accepts any value. Equal unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Equal"))]
    pub operator: Option<TolerationOperator>,
    /// The taint value to match; must stay empty with operator Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TAINT_VALUE_CHARS_MAX))]
    pub value: Option<String>,
    /// The taint effect to match; every effect unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how many seconds after the taint's timeAdded it is tolerated; for ever unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl Taint {
    /// The value, where an absent one reads as the empty string.
    pub fn value(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

impl Toleration {
    /// The key, where an absent one reads as the empty string (every key).
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// The value, where an absent one reads as the empty string.
    pub fn value(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// The operator in force: absent and empty both mean Equal.
    pub fn operator(&self) -> TolerationOperator {
        match &self.operator {
            None => TolerationOperator::Equal,
            Some(TolerationOperator::Other(text)) if text.is_empty() => TolerationOperator::Equal,
            Some(operator) => operator.clone(),
        }
    }

    /// The effect to match; absent and empty both mean every effect.
    pub fn effect(&self) -> Option<&TaintEffect> {
        self.effect.as_ref().filter(|effect| !effect.as_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_or_empty_operator_reads_as_equal_and_an_unknown_one_stays_unknown() {
        let with = |operator: Option<&str>| {
            Toleration { operator: operator.map(TolerationOperator::from), ..Default::default() }.operator()
        };
        assert_eq!(with(None), TolerationOperator::Equal);
        assert_eq!(with(Some("")), TolerationOperator::Equal);
        assert_eq!(with(Some("Exists")), TolerationOperator::Exists);
        assert_eq!(with(Some("Matches")), TolerationOperator::Other("Matches".into()));
    }

    #[test]
    fn an_empty_effect_matches_every_effect() {
        let toleration = Toleration { effect: Some(TaintEffect::from("")), ..Default::default() };
        assert_eq!(toleration.effect(), None);
    }
}
