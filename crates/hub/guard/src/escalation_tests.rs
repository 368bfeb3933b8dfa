use super::*;
use serde_json::json;

fn policy() -> PolicySet {
    let mut set = PolicySet::new();
    let reader = json!({"rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]});
    let writer = json!({"rules": [{"verbs": ["get", "delete", "patch"], "apiGroups": [""], "resources": ["pods", "secrets"]}]});
    let binder = json!({"rules": [{"verbs": ["bind"], "apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "resourceNames": ["writer"]}]});
    let escalator = json!({"rules": [{"verbs": ["escalate"], "apiGroups": [RBAC_GROUP], "resources": ["roles", "clusterroles"]}]});
    let all = json!({"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]});
    for (name, role) in [
        ("reader", &reader),
        ("writer", &writer),
        ("binder", &binder),
        ("escalator", &escalator),
        ("all", &all),
    ] {
        set.apply(PolicyKind::ClusterRole, "", name, Some(role));
        let binding = json!({"roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [{"kind": "Group", "name": name}]});
        set.apply(PolicyKind::ClusterRoleBinding, "", name, Some(&binding));
    }
    set
}

fn check(groups: &[&str], kind: PolicyKind, object: &Value, old: Option<&Value>) -> Result<(), Refusal> {
    let user = User::new("al", groups.iter().copied());
    let namespace = if kind.namespaced() { "apps" } else { "" };
    policy().check_write(&PolicyWrite { user: &user, kind, namespace, request_name: "", object, old })
}

fn bind(kind: &str, role: &str) -> Value {
    json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}, "subjects": []})
}

#[test]
fn a_role_may_give_what_its_author_holds_and_no_more() {
    let held = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    assert_eq!(check(&["reader"], PolicyKind::Role, &held, None), Ok(()));
    let more = json!({"metadata": {"name": "r"}, "rules": [
        {"verbs": ["get", "watch", "delete"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
    let refusal = check(&["reader"], PolicyKind::Role, &more, None).unwrap_err();
    assert_eq!(
        refusal.message(),
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"al\" (groups=[\"reader\"]) is attempting to grant RBAC \
         permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}\n\
         {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
    );
    assert_eq!(refusal.code(), 403);
}

#[test]
fn the_escalate_verb_and_masters_may_give_anything() {
    let more = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    assert_eq!(check(&["escalator"], PolicyKind::ClusterRole, &more, None), Ok(()));
    assert_eq!(check(&["system:masters"], PolicyKind::ClusterRole, &more, None), Ok(()));
    assert!(check(&["binder"], PolicyKind::ClusterRole, &more, None).is_err());
}

#[test]
fn an_aggregation_rule_needs_everything() {
    let role =
        json!({"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": []});
    let refusal = check(&["reader"], PolicyKind::ClusterRole, &role, None).unwrap_err();
    assert_eq!(
        refusal.message(),
        "clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
    );
    assert_eq!(check(&["all"], PolicyKind::ClusterRole, &role, None), Ok(()));
    // Taking one away is tightening somebody else's role.
    let plain = json!({"metadata": {"name": "r"}, "rules": []});
    assert!(check(&["reader"], PolicyKind::ClusterRole, &plain, Some(&role)).is_err());
}

#[test]
fn binding_needs_the_rules_or_the_bind_verb() {
    assert_eq!(check(&["reader"], PolicyKind::RoleBinding, &bind("ClusterRole", "reader"), None), Ok(()));
    assert_eq!(check(&["binder"], PolicyKind::RoleBinding, &bind("ClusterRole", "writer"), None), Ok(()));
    assert_eq!(
        check(&["binder"], PolicyKind::ClusterRoleBinding, &bind("ClusterRole", "writer"), None),
        Ok(())
    );
    assert!(
        check(&["binder"], PolicyKind::ClusterRoleBinding, &bind("ClusterRole", "reader"), None).is_err()
    );
    let refusal =
        check(&["reader"], PolicyKind::RoleBinding, &bind("ClusterRole", "writer"), None).unwrap_err();
    assert!(
        refusal
            .message()
            .starts_with("rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"al\"")
    );
    assert!(
        refusal
            .message()
            .contains("{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\" \"patch\"]}")
    );
}

#[test]
fn binding_a_role_that_is_not_there_is_not_found() {
    let refusal = check(&["reader"], PolicyKind::RoleBinding, &bind("Role", "gone"), None).unwrap_err();
    assert_eq!(refusal.message(), "rolebindings.rbac.authorization.k8s.io \"gone\" not found");
    assert_eq!(refusal.code(), 404);
}

#[test]
fn changing_only_finalizers_gives_nothing_away() {
    let old = json!({"metadata": {"name": "r", "finalizers": ["x/y"]}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert_eq!(check(&["reader"], PolicyKind::Role, &new, Some(&old)), Ok(()));
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(check(&["reader"], PolicyKind::Role, &new, Some(&old)).is_err());
}

#[test]
fn roles_that_could_not_be_found_are_named_beside_what_is_missing() {
    let mut set = policy();
    let dangling = json!({"roleRef": {"kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "al"}]});
    set.apply(PolicyKind::ClusterRoleBinding, "", "dangling", Some(&dangling));
    let user = User::new("al", Vec::<String>::new());
    let object = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]});
    let kind = PolicyKind::ClusterRole;
    let write =
        PolicyWrite { user: &user, kind, namespace: "", request_name: "", object: &object, old: None };
    assert!(set.check_write(&write).unwrap_err().message().ends_with(
        "Verbs:[\"get\"]}; resolution errors: [clusterroles.rbac.authorization.k8s.io \"gone\" not found]"
    ));
}
