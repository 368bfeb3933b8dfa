//! What a role lets its holders bind.
//!
//! Owns the reading of RBAC rules as far as they speak of `create` on `managedclustersets/bind`, with the wildcards an
//! authorizer would honour. Aggregated roles need nothing special: the API server fills in their rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use berth_api::names::{BIND_RESOURCE, GROUP};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

/// The sets a role lets its holders bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rights {
    /// None.
    #[default]
    None,
    /// Those of these names, as far as they exist.
    Named(BTreeSet<Arc<str>>),
    /// Every set there is.
    All,
}

impl Rights {
    /// The rights a role grants.
    pub fn of(role: &ClusterRole) -> Self {
        let mut names = BTreeSet::new();
        for rule in role.rules.iter().flatten().filter(|rule| grants_binding(rule)) {
            let only = rule.resource_names.as_deref().unwrap_or_default();
            if only.is_empty() {
                return Self::All;
            }
            names.extend(only.iter().map(|name| Arc::from(name.as_str())));
        }
        if names.is_empty() { Self::None } else { Self::Named(names) }
    }

    /// Whether they extend to a set.
    pub fn cover(&self, set: &str) -> bool {
        match self {
            Self::None => false,
            Self::Named(names) => names.contains(set),
            Self::All => true,
        }
    }
}

fn grants_binding(rule: &PolicyRule) -> bool {
    const EVERYTHING: &str = "*";
    /// Every resource's subresource of this name.
    const EVERY_BIND: &str = "*/bind";
    let has = |words: &[String], wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    has(&rule.verbs, &["create", EVERYTHING])
        && has(rule.api_groups.as_deref().unwrap_or_default(), &[GROUP, EVERYTHING])
        && has(rule.resources.as_deref().unwrap_or_default(), &[BIND_RESOURCE, EVERY_BIND, EVERYTHING])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rights(rules: &Value) -> Rights {
        Rights::of(&serde_json::from_value(json!({"metadata": {"name": "r"}, "rules": rules})).unwrap())
    }

    fn rule(verb: &str, group: &str, resource: &str, names: &[&str]) -> Value {
        json!({"verbs": ["get", verb], "apiGroups": ["", group], "resources": ["pods", resource], "resourceNames": names})
    }

    #[test]
    fn a_rule_with_names_grants_these_sets_and_one_without_grants_all() {
        let named = |names: &[&str]| Rights::Named(names.iter().map(|name| Arc::from(*name)).collect());
        let blue = rule("create", GROUP, BIND_RESOURCE, &["blue"]);
        let red = rule("create", GROUP, BIND_RESOURCE, &["red", "blue"]);
        assert_eq!(rights(&json!([blue])), named(&["blue"]));
        assert_eq!(rights(&json!([blue, red])), named(&["blue", "red"]));
        assert_eq!(rights(&json!([blue, rule("create", GROUP, BIND_RESOURCE, &[])])), Rights::All);
    }

    #[test]
    fn wildcards_count_as_an_authorizer_counts_them() {
        for (verb, group, resource) in [
            ("*", GROUP, BIND_RESOURCE),
            ("create", "*", BIND_RESOURCE),
            ("create", GROUP, "*/bind"),
            ("create", GROUP, "*"),
            ("*", "*", "*"),
        ] {
            assert_eq!(rights(&json!([rule(verb, group, resource, &[])])), Rights::All);
        }
    }

    #[test]
    fn rights_to_something_else_bind_nothing() {
        for (verb, group, resource) in [
            ("update", GROUP, BIND_RESOURCE),
            ("create", "apps", BIND_RESOURCE),
            ("create", GROUP, "managedclustersets"),
            ("create", GROUP, "managedclustersets/join"),
            ("create", GROUP, "managedclustersets/*"),
        ] {
            assert_eq!(rights(&json!([rule(verb, group, resource, &[])])), Rights::None);
        }
        assert_eq!(rights(&json!(null)), Rights::None);
        assert_eq!(rights(&json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}])), Rights::None);
        // A star among resource names is a set called star.
        assert!(!rights(&json!([rule("create", GROUP, BIND_RESOURCE, &["*"])])).cover("blue"));
    }
}
