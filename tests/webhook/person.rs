//! Somebody with some rights and no others.

use berth_tests::{caller::Caller, waiting::eventually};
use serde_json::{Value, json};

use crate::ground::{Place, cluster_path};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A right: group, resource, verb, and the one object it is about, if it is about one.
pub(crate) type Right<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// What everybody here may do: the fleet's objects, as far as plain access goes.
const ORDINARY: [Right<'static>; 2] = [
    ("cluster.open-cluster-management.io", "managedclusters", "*", None),
    ("cluster.open-cluster-management.io", "managedclustersetbindings", "*", None),
];

/// The right to accept a cluster.
pub(crate) fn accept(cluster: &str) -> Right<'_> {
    ("register.open-cluster-management.io", "managedclusters/accept", "update", Some(cluster))
}

/// The right to move clusters in and out of a set.
pub(crate) fn join(set: &str) -> Right<'_> {
    ("cluster.open-cluster-management.io", "managedclustersets/join", "create", Some(set))
}

/// The right to bind a set.
pub(crate) fn bind(set: &str) -> Right<'_> {
    ("cluster.open-cluster-management.io", "managedclustersets/bind", "create", Some(set))
}

/// Makes a user with these rights beside the ordinary ones, and waits until the server knows.
pub(crate) async fn person(place: &Place<'_>, short: &str, rights: &[Right<'_>]) -> (String, Caller) {
    let user = place.name(short);
    let rule = |(group, resource, verb, name): &Right<'_>| {
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
        if let Some(name) = name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    };
    let rules: Vec<Value> = ORDINARY.iter().chain(rights).map(rule).collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": user}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    place.admin.post(&format!("{RBAC}/clusterroles"), &role).await.ok();
    place.admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.ok();
    let caller = Caller::acting_as(place.bed, &user, &["people"]);
    eventually("the rights being known", async || {
        (caller.get(&cluster_path("")).await.code == 200).then_some(())
    })
    .await;
    (user, caller)
}
