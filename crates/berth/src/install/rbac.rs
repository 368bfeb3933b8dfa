//! Accounts and what they may do: one role for each controller, one for each task of a process.

use berth_control::lead::LeaderElection;
use berth_control::{ControllerName, rights};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::object::object;
use super::{CONTROLLERS, Installation, NAME, WEBHOOK};
use crate::webhook;

const GROUP: &str = "rbac.authorization.k8s.io";
pub(super) const VERSION: &str = "rbac.authorization.k8s.io/v1";
/// The role of whoever answers questions.
const DEBUGGER_ROLE: &str = "berth:debugger";

/// The name of the account of a component.
pub(super) fn account(component: &str) -> String {
    match component {
        // As the webhook knows it, which does not ask about its writes.
        CONTROLLERS => webhook::usual::CONTROLLERS_ACCOUNT.to_owned(),
        component => format!("{NAME}-{component}"),
    }
}

/// As whom the API server knows the pods of a component.
pub(super) fn user(component: &str, namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:{}", account(component))
}

/// The Lease that the controllers' pods choose a leader by.
pub(super) fn lease() -> String {
    LeaderElection::new(String::new()).name
}

/// The accounts. Only pods that ask for a token get one.
pub(super) fn accounts(installation: &Installation) -> Vec<Value> {
    let place = Some(&*installation.namespace);
    let components = [CONTROLLERS].into_iter().chain(installation.has_webhooks.then_some(WEBHOOK));
    components
        .map(|component| {
            let body = json!({"automountServiceAccountToken": false});
            object(("v1", "ServiceAccount"), (place, &account(component)), component, body)
        })
        .collect()
}

/// The roles, and who has them.
pub(super) fn roles(installation: &Installation) -> Vec<Value> {
    let mut objects = Vec::new();
    let namespace = &*installation.namespace;
    for name in installation.controllers.enabled() {
        let rules = rights::rules(&rights::of(name));
        objects.extend(grant(namespace, CONTROLLERS, None, &role_of(name), &rules));
    }
    let election = rights::rules(&rights::of_election(&lease()));
    objects.extend(grant(namespace, CONTROLLERS, Some(namespace), "berth:leader-election", &election));
    if installation.has_debugger {
        let rules = rights::rules(&rights::of_debugger());
        objects.extend(grant(namespace, CONTROLLERS, None, DEBUGGER_ROLE, &rules));
    }
    if installation.has_webhooks {
        let rules = webhook::rights::cluster(webhook::usual::CONFIGURATION);
        objects.extend(grant(namespace, WEBHOOK, None, "berth:webhook", &rules));
        let rules = webhook::rights::namespaced(webhook::usual::SECRET);
        objects.extend(grant(namespace, WEBHOOK, Some(namespace), "berth:webhook", &rules));
    }
    objects
}

/// What the role of a controller is called.
fn role_of(name: ControllerName) -> String {
    format!("berth:{name}")
}

/// A role, in a namespace or everywhere, and its binding to the account of a component.
fn grant(home: &str, component: &str, place: Option<&str>, name: &str, rules: &[PolicyRule]) -> [Value; 2] {
    let (role, binding) = match place {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let bound = json!({
        "roleRef": {"apiGroup": GROUP, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account(component), "namespace": home}],
    });
    [
        object((VERSION, role), (place, name), component, json!({"rules": rules})),
        object((VERSION, binding), (place, name), component, bound),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use berth_admission::{Access, Attempt, Operation, Question, Recorder, TimeAdded, mutate, validate};
    use berth_control::rights::Right;

    use super::*;

    /// What our own rules ask about somebody who makes this write.
    fn asked(
        operation: Operation,
        resource: &str,
        old: Option<&Value>,
        mut object: Value,
    ) -> BTreeSet<Right> {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let time_added = TimeAdded::Server;
        let attempt = Attempt { operation, resource, name: &name, user: "controllers", old, now, time_added };
        let recorder = Recorder::default();
        mutate(&attempt, &mut object, &recorder).unwrap();
        validate(&attempt, Some(&object), &recorder).unwrap();
        let right = |question| match question {
            Question::May(Access { group, resource, subresource, verb, name }) => {
                Right::new(group, format!("{resource}/{subresource}"), &[&name], verb)
            }
            Question::IsTerminating(_) => panic!("the controllers accept nobody"),
        };
        recorder.into_questions().into_iter().map(right).collect()
    }

    fn is_covered(asked: &Right, rights: &BTreeSet<Right>) -> bool {
        rights.iter().any(|right| {
            let is_named = right.names.is_empty() || right.names == asked.names;
            is_named
                && (&right.group, &right.resource, right.verb) == (&asked.group, &asked.resource, asked.verb)
        })
    }

    /// The rights of a controller that no request of its own uses, apart from one that only Kubernetes asks about.
    fn virtual_ones(name: ControllerName) -> usize {
        let is_virtual = |right: &&Right| {
            right.resource.contains('/')
                && !right.resource.ends_with("/status")
                && !right.resource.ends_with("/finalizers")
                && !right.resource.ends_with("/eviction")
        };
        rights::of(name).iter().filter(is_virtual).count()
    }

    #[test]
    fn what_our_rules_ask_about_the_controllers_is_what_they_hold() {
        let cluster = json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true}});
        let mut tainted = cluster.clone();
        tainted["spec"]["taints"] = json!([{
            "key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect",
            "timeAdded": "2026-01-01T00:00:00Z",
        }]);
        let binding = json!({
            "metadata": {"name": "blue", "namespace": "n", "labels": {"berth.dev/bound-by": "rbac"}},
            "spec": {"clusterSet": "blue"},
        });
        let update = asked(Operation::Update, "managedclusters", Some(&cluster), tainted);
        let create = asked(Operation::Create, "managedclustersetbindings", None, binding);
        for (name, asked) in [(ControllerName::ClusterTaint, update), (ControllerName::RbacBinding, create)] {
            let rights = rights::of(name);
            for one in &asked {
                assert!(is_covered(one, &rights), "{name} is asked about {one:?}");
            }
            assert_eq!(asked.len(), virtual_ones(name), "{name} holds what nobody asks about: {asked:?}");
        }
        let others = ControllerName::ALL
            .into_iter()
            .filter(|name| ![ControllerName::ClusterTaint, ControllerName::RbacBinding].contains(name));
        assert_eq!(others.map(virtual_ones).sum::<usize>(), 0);
    }
}
