//! Aggregated cluster roles: rules collected from other cluster roles by their labels.
//!
//! A pure function from all cluster roles to the ones whose rules are out of date; the hub writes them back.

use berth_hub_wire::LabelSelector;
use serde_json::Value;

use crate::selector;

/// Who writes aggregated rules, as managed fields name them.
pub const AGGREGATION_MANAGER: &str = "clusterrole-aggregation-controller";

/// Rounds needed until roles that collect from collecting roles settle. Upstream's controller just runs again; a ring
/// of roles can only copy rules around, so it settles too.
const ROUNDS_MAX: usize = 32;

/// New `rules` for every aggregated role whose rules are not what its selectors collect.
///
/// `roles` are all ClusterRole objects. The result is settled: writing it back leaves nothing more to do.
pub fn aggregate_cluster_roles(roles: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut sorted: Vec<(&str, &Value, Vec<Value>)> = roles
        .iter()
        .filter_map(|role| role["metadata"]["name"].as_str().map(|name| (name, role, rules_of(role))))
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(b.0));
    // A selector that cannot be read leaves its role as it is, as upstream's controller does.
    let aggregated: Vec<(usize, Vec<LabelSelector>)> = sorted
        .iter()
        .enumerate()
        .filter_map(|(index, (_, role, _))| {
            let list = role.get("aggregationRule")?.get("clusterRoleSelectors");
            let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let selectors =
                list.iter().map(|s| selector::read(Some(s))).collect::<Result<Vec<_>, _>>().ok()?;
            Some((index, selectors))
        })
        .collect();
    for _ in 0..ROUNDS_MAX {
        let mut settled = true;
        for (index, selectors) in &aggregated {
            let rules = collect(&sorted, *index, selectors);
            if rules != sorted[*index].2 {
                sorted[*index].2 = rules;
                settled = false;
            }
        }
        if settled {
            break;
        }
    }
    aggregated
        .into_iter()
        .map(|(index, _)| &sorted[index])
        .filter(|(_, role, rules)| rules_of(role) != *rules)
        .map(|(name, _, rules)| ((*name).to_owned(), rules.clone()))
        .collect()
}

fn rules_of(role: &Value) -> Vec<Value> {
    role["rules"].as_array().cloned().unwrap_or_default()
}

fn collect(sorted: &[(&str, &Value, Vec<Value>)], own: usize, selectors: &[LabelSelector]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for selector in selectors {
        for (index, (_, role, rules)) in sorted.iter().enumerate() {
            if index == own || !selector.matches_object(role) {
                continue;
            }
            for rule in rules {
                if !out.contains(rule) {
                    out.push(rule.clone());
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(name: &str, label: Option<&str>, collects: Option<&str>, verbs: &[&str]) -> Value {
        let mut role = json!({"metadata": {"name": name}});
        if let Some(label) = label {
            role["metadata"]["labels"] = json!({label: "true"});
        }
        if let Some(label) = collects {
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        }
        if !verbs.is_empty() {
            role["rules"] = verbs.iter().map(|v| json!({"verbs": [v]})).collect();
        }
        role
    }

    #[test]
    fn rules_are_collected_in_the_order_of_names_without_doubles() {
        let roles = [
            role("z", Some("x"), None, &["get", "list"]),
            role("a", Some("x"), None, &["list", "watch"]),
            role("all", None, Some("x"), &["stale"]),
        ];
        assert_eq!(
            aggregate_cluster_roles(&roles),
            [(
                "all".to_owned(),
                vec![json!({"verbs": ["list"]}), json!({"verbs": ["watch"]}), json!({"verbs": ["get"]})]
            )]
        );
    }

    #[test]
    fn roles_that_collect_from_collecting_roles_settle_at_once() {
        let roles = [
            role("a-admin", None, Some("x"), &[]),
            role("b-edit", Some("x"), Some("y"), &[]),
            role("c", Some("y"), None, &["get"]),
        ];
        let updates = aggregate_cluster_roles(&roles);
        assert_eq!(updates.len(), 2);
        assert!(updates.iter().all(|(_, rules)| *rules == [json!({"verbs": ["get"]})]));
    }

    #[test]
    fn up_to_date_roles_need_no_write_and_no_role_collects_itself() {
        let roles = [role("self", Some("x"), Some("x"), &[]), role("plain", None, None, &["get"])];
        assert_eq!(aggregate_cluster_roles(&roles), []);
    }
}
