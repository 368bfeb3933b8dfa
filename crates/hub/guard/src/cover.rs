//! Cover: whether rules somebody holds take in rules somebody wants to give.
//!
//! Owns the breakdown into single permissions and the compaction of what is missing. Never asks who holds what.

use std::collections::{BTreeMap, BTreeSet};

use crate::rule::{ALL, PolicyRule};

/// Single permissions looked at in one check. Lists multiply, so a small object can hold very many; real roles hold
/// a few hundred.
const PERMISSIONS_MAX: usize = 100_000;

/// What is not covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// These permissions.
    Rules(Vec<PolicyRule>),
    /// More than anybody would look through.
    TooMany,
}

/// Whether `owned` covers `wanted`; if not, what is missing.
pub(crate) fn covers(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Result<(), Missing> {
    let mut missing = Vec::new();
    let mut looked_at = 0;
    for rule in wanted {
        if owned.iter().any(|own| covers_whole(own, rule)) {
            continue;
        }
        let names = rule.resource_names.len().max(1);
        let resources =
            [&rule.api_groups, &rule.resources, &rule.verbs].iter().map(|l| l.len()).product::<usize>();
        looked_at +=
            resources.saturating_mul(names).saturating_add(rule.non_resource_urls.len() * rule.verbs.len());
        if looked_at > PERMISSIONS_MAX {
            return Err(Missing::TooMany);
        }
        missing
            .extend(breakdown(rule).into_iter().filter(|one| !owned.iter().any(|own| rule_covers(own, one))));
    }
    if missing.is_empty() { Ok(()) } else { Err(Missing::Rules(missing)) }
}

/// Covering a rule at once covers all its parts; paths never depend on names, so those are left to the parts.
fn covers_whole(own: &PolicyRule, rule: &PolicyRule) -> bool {
    rule.non_resource_urls.is_empty() && rule_covers(own, rule)
}

/// Rules with at most one verb, group, resource and name each.
pub(crate) fn breakdown(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut out = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let one = PolicyRule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    out.push(one);
                } else {
                    let named =
                        |name: &String| PolicyRule { resource_names: vec![name.clone()], ..one.clone() };
                    out.extend(rule.resource_names.iter().map(named));
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        out.extend(rule.verbs.iter().map(|verb| PolicyRule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..PolicyRule::default()
        }));
    }
    out
}

fn rule_covers(own: &PolicyRule, sub: &PolicyRule) -> bool {
    let names = own.resource_names.is_empty()
        || (!sub.resource_names.is_empty() && has_all(&own.resource_names, &sub.resource_names));
    names
        && has_all_or_star(&own.verbs, &sub.verbs)
        && has_all_or_star(&own.api_groups, &sub.api_groups)
        && resources_cover(&own.resources, &sub.resources)
        && sub.non_resource_urls.iter().all(|url| own.non_resource_urls.iter().any(|o| url_covers(o, url)))
}

fn has_all(own: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|one| own.contains(one))
}

fn has_all_or_star(own: &[String], wanted: &[String]) -> bool {
    own.iter().any(|one| one == ALL) || has_all(own, wanted)
}

fn resources_cover(own: &[String], wanted: &[String]) -> bool {
    own.iter().any(|one| one == ALL)
        || wanted.iter().all(|resource| {
            own.contains(resource)
                || resource
                    .split_once('/')
                    .is_some_and(|(_, sub)| own.iter().any(|one| one.strip_prefix("*/") == Some(sub)))
        })
}

/// Unlike when a request is matched, a lone star covers by being a prefix of nothing in particular: the same here.
fn url_covers(own: &str, wanted: &str) -> bool {
    own == wanted || (own.ends_with('*') && wanted.starts_with(own.trim_end_matches('*')))
}

/// Joins rules that differ only in their verb, and prints each once, in order.
pub(crate) fn descriptions(missing: &[PolicyRule]) -> Vec<String> {
    let mut simple: BTreeMap<(&str, &str, Option<&str>), PolicyRule> = BTreeMap::new();
    let mut out = BTreeSet::new();
    for rule in missing {
        match (rule.api_groups.as_slice(), rule.resources.as_slice()) {
            ([group], [resource]) if rule.resource_names.len() <= 1 && rule.non_resource_urls.is_empty() => {
                let key =
                    (group.as_str(), resource.as_str(), rule.resource_names.first().map(String::as_str));
                simple
                    .entry(key)
                    .and_modify(|joined| joined.verbs.extend(rule.verbs.iter().cloned()))
                    .or_insert_with(|| rule.clone());
            }
            _ => {
                out.insert(rule.compact());
            }
        }
    }
    out.extend(simple.values().map(PolicyRule::compact));
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn rules(value: &Value) -> Vec<PolicyRule> {
        PolicyRule::read_all(&json!({"rules": value}))
    }

    fn covered(own: &Value, wanted: &Value) -> bool {
        covers(&rules(own), &rules(wanted)).is_ok()
    }

    #[test]
    fn several_rules_together_cover_one() {
        let own = json!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes"]},
            {"verbs": ["list"], "apiGroups": ["", "apps"], "resources": ["pods"]},
        ]);
        assert!(covered(
            &own,
            &json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}])
        ));
        let wanted = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "nodes"]}]);
        let Err(Missing::Rules(missing)) = covers(&rules(&own), &rules(&wanted)) else { panic!("covered") };
        assert_eq!(descriptions(&missing), [r#"{APIGroups:[""], Resources:["nodes"], Verbs:["list"]}"#]);
    }

    #[test]
    fn names_narrow_and_never_widen() {
        let any = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let one =
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}]);
        let two = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"]}]);
        assert!(covered(&any, &two));
        assert!(covered(&two, &one));
        assert!(!covered(&one, &two));
        assert!(!covered(&one, &any));
    }

    #[test]
    fn stars_cover_what_they_match() {
        let scale = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}]);
        assert!(covered(
            &scale,
            &json!([{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]}])
        ));
        assert!(!covered(
            &scale,
            &json!([{"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}])
        ));
        let urls = json!([{"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}]);
        assert!(covered(&urls, &json!([{"verbs": ["get"], "nonResourceURLs": ["/apis/a*"]}])));
        assert!(!covered(&urls, &json!([{"verbs": ["get"], "nonResourceURLs": ["/*"]}])));
        // Every verb of today is not every verb.
        let verbs = json!([{"verbs": ["get", "list"], "apiGroups": ["*"], "resources": ["*"]}]);
        assert!(!covered(&verbs, &json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}])));
    }

    #[test]
    fn a_product_of_long_lists_is_refused_rather_than_expanded() {
        let many: Vec<String> = (0..1000).map(|n| format!("r{n}")).collect();
        let wanted = json!([{"verbs": many, "apiGroups": many, "resources": many}]);
        assert_eq!(covers(&[], &rules(&wanted)), Err(Missing::TooMany));
        // But who holds everything is not asked to count.
        assert!(covered(&json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]), &wanted));
    }

    fn any_rule() -> impl Strategy<Value = PolicyRule> {
        let list = |choices: &'static [&'static str]| {
            proptest::collection::vec(proptest::sample::select(choices).prop_map(str::to_owned), 0..3)
        };
        (
            list(&["get", "list", "*"]),
            list(&["", "apps", "*"]),
            list(&["pods", "pods/log", "*/log", "*"]),
            list(&["a", "b"]),
        )
            .prop_map(|(verbs, api_groups, resources, resource_names)| PolicyRule {
                verbs,
                api_groups,
                resources,
                resource_names,
                non_resource_urls: Vec::new(),
            })
    }

    proptest! {
        #[test]
        fn looking_at_whole_rules_first_changes_no_answer(
            own in proptest::collection::vec(any_rule(), 0..4), wanted in any_rule(),
        ) {
            let slow = breakdown(&wanted).iter().all(|one| own.iter().any(|o| rule_covers(o, one)));
            prop_assert_eq!(covers(&own, std::slice::from_ref(&wanted)).is_ok(), slow);
        }
    }
}
