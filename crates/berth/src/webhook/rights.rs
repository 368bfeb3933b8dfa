//! What `berth webhook` may do on its server: no more than its work needs.
//!
//! Owns the list, for `berth install` and for whoever writes a role by hand. Never grants anything itself.

use berth_control::{ControllerName, rights};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// To be kept in sight, and nothing else.
const SEE: [&str; 2] = ["list", "watch"];
/// To be kept in step, of objects that are there already.
const KEEP: &[&str] = &["get", "list", "watch", "update"];

/// In the whole cluster.
///
/// - Who may: the questions of the rules, asked for the one who writes, and whether a cluster's namespace is going away.
/// - The fleet, to tell what a change would move. Nothing of it is written.
/// - The two webhook configurations of that name, to say in them whom to trust.
pub fn cluster(configuration: &str) -> Vec<PolicyRule> {
    // Warnings come from the placement controller's loop, which looks at all of its kinds.
    let mut fleet = rights::of(ControllerName::Placement);
    fleet.retain(|right| SEE.contains(&right.verb));
    let mut rules = vec![
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"], None),
        rule("", &["namespaces"], &["get"], None),
    ];
    rules.extend(rights::rules(&fleet));
    rules.push(rule("admissionregistration.k8s.io", CONFIGURATIONS, KEEP, Some(configuration)));
    rules
}

/// In its own namespace: the one Secret with its certificates, which is there already.
///
/// It may not create Secrets: who may create any can make one that holds the token of another account of the namespace.
pub fn namespaced(secret: &str) -> Vec<PolicyRule> {
    vec![rule("", &["secrets"], KEEP, Some(secret))]
}

const CONFIGURATIONS: &[&str] = &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

fn rule(group: &str, resources: &[&str], verbs: &[&str], name: Option<&str>) -> PolicyRule {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(words(&[group])),
        resources: Some(words(resources)),
        verbs: words(verbs),
        resource_names: name.map(|name| vec![name.to_owned()]),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_named_one_by_one() {
        let written = |rule: &&PolicyRule| {
            rule.verbs.iter().any(|verb| ["update", "patch", "delete"].contains(&verb.as_str()))
        };
        let rules = [cluster("berth-admission"), namespaced("berth-webhook-tls")].concat();
        let named: Vec<&[String]> =
            rules.iter().filter(written).filter_map(|rule| rule.resource_names.as_deref()).collect();
        assert_eq!(named, [["berth-admission"], ["berth-webhook-tls"]]);
        assert_eq!(rules.iter().filter(written).count(), named.len());
    }

    #[test]
    fn nothing_is_granted_by_a_star() {
        for rule in [cluster("a"), namespaced("b")].concat() {
            let parts = [rule.api_groups, rule.resources, Some(rule.verbs)];
            assert!(parts.iter().flatten().flatten().all(|word| word != "*"));
        }
    }
}
