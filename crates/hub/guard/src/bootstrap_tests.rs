use super::*;
use crate::aggregation::aggregate_cluster_roles;
use crate::attributes::{Attributes, ResourceTarget};
use crate::policy::{PolicyKind, PolicySet};
use crate::user::User;

fn policy() -> PolicySet {
    let mut set = PolicySet::new();
    let mut roles = cluster_roles();
    for (name, rules) in aggregate_cluster_roles(&roles) {
        let role = roles.iter_mut().find(|role| role["metadata"]["name"] == name.as_str()).unwrap();
        role["rules"] = Value::Array(rules);
    }
    assert_eq!(aggregate_cluster_roles(&roles), [], "one pass settles the bootstrap roles");
    for (kind, objects) in
        [(PolicyKind::ClusterRole, roles), (PolicyKind::ClusterRoleBinding, cluster_role_bindings())]
    {
        for object in objects {
            set.apply(kind, "", object["metadata"]["name"].as_str().unwrap(), Some(&object));
        }
    }
    for role in ["admin", "edit", "view"] {
        let binding = json!({"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": role}]});
        set.apply(PolicyKind::RoleBinding, "apps", role, Some(&binding));
    }
    set
}

fn may(name: &str, verb: &str, group: &str, resource: &str, subresource: &str) -> bool {
    let user = User::new(name, ["system:authenticated"]);
    let target =
        ResourceTarget { group, resource, subresource, namespace: "apps", ..ResourceTarget::default() };
    policy().authorize(&Attributes::resource(&user, verb, target)).allowed
}

#[test]
fn viewers_read_editors_write_and_admins_give_rights() {
    let table: &[(&str, &str, &str, &str, [bool; 3])] = &[
        ("list", "", "pods", "", [true, true, true]),
        ("get", "", "pods", "log", [true, true, true]),
        ("get", "", "secrets", "", [false, true, true]),
        ("create", "", "pods", "", [false, true, true]),
        ("create", "", "serviceaccounts", "token", [false, true, true]),
        ("update", "apps", "deployments", "scale", [false, true, true]),
        ("update", "apps", "deployments", "status", [false, false, false]),
        ("create", RBAC_GROUP, "rolebindings", "", [false, false, true]),
        ("create", "authorization.k8s.io", "localsubjectaccessreviews", "", [false, false, true]),
        ("create", "", "namespaces", "", [false, false, false]),
        ("list", "cluster.open-cluster-management.io", "placements", "", [false, false, false]),
    ];
    for (verb, group, resource, subresource, expected) in table {
        let got = ["view", "edit", "admin"].map(|name| may(name, verb, group, resource, subresource));
        assert_eq!(got, *expected, "{verb} {group}/{resource}/{subresource}");
    }
}

#[test]
fn everybody_authenticated_discovers_and_asks_about_themselves() {
    let policy = policy();
    let user = User::new("x", ["system:authenticated"]);
    for path in ["/api", "/apis/apps/v1", "/openapi/v3", "/version", "/readyz"] {
        assert!(policy.authorize(&Attributes::path(&user, "get", path)).allowed, "{path}");
    }
    assert!(!policy.authorize(&Attributes::path(&user, "get", "/metrics")).allowed);
    assert!(may("x", "create", "authorization.k8s.io", "selfsubjectaccessreviews", ""));
    assert!(!may("x", "create", "authorization.k8s.io", "subjectaccessreviews", ""));
}

#[test]
fn nothing_is_granted_to_the_anonymous() {
    // Health is answered before anybody is asked who they are.
    let (policy, user) = (policy(), User::anonymous());
    for path in ["/version", "/api", "/openapi/v3", "/healthz/log", "/metrics"] {
        assert!(!policy.authorize(&Attributes::path(&user, "get", path)).allowed, "{path}");
    }
}

#[test]
fn every_object_is_marked_as_bootstrap() {
    for object in cluster_roles().iter().chain(&cluster_role_bindings()) {
        assert_eq!(object["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
        assert_eq!(object["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"], "true");
    }
}

#[test]
fn lists_are_sorted_so_that_objects_never_differ_between_starts() {
    for role in cluster_roles() {
        for rule in role["rules"].as_array().into_iter().flatten() {
            for (key, list) in rule.as_object().unwrap() {
                let list: Vec<&str> = list.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
                assert!(list.is_sorted(), "{} {key} {list:?}", role["metadata"]["name"]);
            }
        }
    }
}

#[test]
fn a_start_adds_what_is_missing_and_keeps_what_people_added() {
    let wanted = &cluster_role_bindings()[0];
    assert_eq!(reconcile(wanted, None).as_ref(), Some(wanted));
    assert_eq!(reconcile(wanted, Some(wanted)), None);
    let mut changed = wanted.clone();
    changed["subjects"] = json!([{"apiGroup": RBAC_GROUP, "kind": "User", "name": "mine"}]);
    changed["metadata"]["labels"]["mine"] = json!("yes");
    let merged = reconcile(wanted, Some(&changed)).unwrap();
    assert_eq!(merged["subjects"].as_array().unwrap().len(), 2);
    assert_eq!(merged["metadata"]["labels"]["mine"], "yes");
    changed["metadata"]["annotations"][AUTO_UPDATE] = json!("false");
    assert_eq!(reconcile(wanted, Some(&changed)), None);
}

#[test]
fn a_role_with_wider_rules_is_left_as_it_is() {
    let roles = cluster_roles();
    let wanted = roles.iter().find(|role| role["metadata"]["name"] == "system:basic-user").unwrap();
    let mut wider = wanted.clone();
    wider["rules"] = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    assert_eq!(reconcile(wanted, Some(&wider)), None);
    let view = roles.iter().find(|role| role["metadata"]["name"] == "view").unwrap();
    let mut filled = view.clone();
    filled["rules"] = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    assert_eq!(reconcile(view, Some(&filled)), None);
}
