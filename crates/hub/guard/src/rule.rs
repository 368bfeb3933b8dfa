//! Policy rules: one line of a role, read from JSON, and what it matches.
//!
//! Owns the matching of one rule and its compact text. Never knows who a rule is bound to.

use berth_text::gotext::quote_list;
use serde_json::{Map, Value};

use crate::attributes::{Attributes, Target, combined};

/// Matches every verb, group, resource or path.
pub const ALL: &str = "*";

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyRule {
    /// Verbs, `*` for all.
    pub verbs: Vec<String>,
    /// API groups, `*` for all, empty string for core.
    pub api_groups: Vec<String>,
    /// Resources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Names the rule is limited to; empty for any.
    pub resource_names: Vec<String>,
    /// Paths, a trailing `*` matches any rest.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Reads a rule; fields of another type count as absent, since stored objects have been validated before.
    pub fn read(value: &Value) -> Self {
        Self {
            verbs: strings(value.get("verbs")),
            api_groups: strings(value.get("apiGroups")),
            resources: strings(value.get("resources")),
            resource_names: strings(value.get("resourceNames")),
            non_resource_urls: strings(value.get("nonResourceURLs")),
        }
    }

    /// Reads `rules` of a role object.
    pub fn read_all(role: &Value) -> Vec<Self> {
        role.get("rules")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |rules| rules.iter().map(Self::read).collect())
    }

    /// The rule as JSON, empty lists left out.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, list) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                map.insert(key.to_owned(), Value::from(list.clone()));
            }
        }
        Value::Object(map)
    }

    /// Whether this rule alone allows what is asked.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|url| url_matches(url, path)),
            Target::Resource(target) => {
                has_or_all(&self.api_groups, target.group)
                    && self.matches_resource(target.resource, target.subresource)
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|n| n == target.name))
            }
        }
    }

    fn matches_resource(&self, resource: &str, subresource: &str) -> bool {
        if subresource.is_empty() {
            return has_or_all(&self.resources, resource);
        }
        let whole = combined(resource, subresource);
        self.resources.iter().any(|own| {
            own == ALL || *own == whole || own.strip_prefix("*/").is_some_and(|s| s == subresource)
        })
    }

    /// The rule as escalation messages print it.
    pub fn compact(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ]
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quote_list(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|own| own == ALL || own == wanted)
}

/// Whether the path pattern `own` takes in `path`; every trailing star is trimmed, as upstream does.
pub(crate) fn url_matches(own: &str, path: &str) -> bool {
    own == ALL || own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

/// The strings of a JSON list; anything else counts as empty.
pub(crate) fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::ResourceTarget;
    use crate::user::User;
    use serde_json::json;

    fn rule(value: &Value) -> PolicyRule {
        PolicyRule::read(value)
    }

    fn asks(
        rule: &PolicyRule,
        verb: &str,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> bool {
        let user = User::default();
        let target = ResourceTarget { group, resource, subresource, name, ..ResourceTarget::default() };
        rule.allows(&Attributes::resource(&user, verb, target))
    }

    #[test]
    fn a_rule_for_a_resource_says_nothing_about_its_subresources() {
        let pods = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}));
        assert!(asks(&pods, "get", "", "pods", "", "a"));
        assert!(!asks(&pods, "get", "", "pods", "log", "a"));
        assert!(!asks(&pods, "list", "", "pods", "", ""));
        assert!(!asks(&pods, "get", "apps", "pods", "", "a"));
    }

    #[test]
    fn a_star_before_a_subresource_matches_that_subresource_of_every_resource() {
        let scale = rule(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}));
        assert!(asks(&scale, "update", "apps", "deployments", "scale", "a"));
        assert!(!asks(&scale, "update", "apps", "deployments", "", "a"));
        assert!(!asks(&scale, "update", "apps", "deployments", "autoscale", "a"));
        assert!(!asks(&scale, "update", "apps", "deployments", "status", "a"));
    }

    #[test]
    fn a_star_alone_matches_subresources_too() {
        let all = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*"]}));
        assert!(asks(&all, "get", "", "pods", "log", "a"));
        // A star inside anything else is an ordinary character.
        let odd = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]}));
        assert!(!asks(&odd, "get", "", "pods", "log", "a"));
    }

    #[test]
    fn named_rules_match_only_requests_that_name_an_object() {
        let one = rule(&json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"],
                               "resourceNames": ["a", "b"]}));
        assert!(asks(&one, "get", "", "configmaps", "", "b"));
        assert!(!asks(&one, "get", "", "configmaps", "", "c"));
        assert!(!asks(&one, "list", "", "configmaps", "", ""));
    }

    #[test]
    fn paths_match_exactly_or_by_a_trailing_star() {
        let user = User::default();
        let urls = rule(&json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*", "/x/**"]}));
        for (path, expected) in
            [("/healthz", true), ("/healthz/etcd", false), ("/apis/", true), ("/apis", false), ("/x/y", true)]
        {
            assert_eq!(urls.allows(&Attributes::path(&user, "get", path)), expected, "{path}");
        }
        assert!(!urls.allows(&Attributes::path(&user, "post", "/healthz")));
        let all = rule(&json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        assert!(all.allows(&Attributes::path(&user, "post", "/anything")));
        assert!(!asks(&all, "get", "", "pods", "", ""));
    }

    #[test]
    fn a_rule_survives_being_written_and_read() {
        let value =
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]});
        assert_eq!(rule(&value).to_value(), value);
        assert_eq!(
            rule(&value).compact(),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["get"]}"#
        );
    }
}
