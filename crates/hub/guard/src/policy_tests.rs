use super::*;
use crate::attributes::ResourceTarget;
use proptest::prelude::*;
use serde_json::json;

fn set(objects: &[(PolicyKind, &str, &str, Value)]) -> PolicySet {
    let mut set = PolicySet::new();
    for (kind, namespace, name, object) in objects {
        set.apply(*kind, namespace, name, Some(object));
    }
    set
}

fn rules(rules: &Value) -> Value {
    json!({"rules": rules})
}

fn binding(kind: &str, role: &str, subjects: &Value) -> Value {
    json!({"roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}, "subjects": subjects})
}

fn user(name: &str, groups: &[&str]) -> User {
    User::new(name, groups.iter().copied())
}

fn pods<'a>(namespace: &'a str, subresource: &'a str, name: &'a str) -> ResourceTarget<'a> {
    ResourceTarget {
        version: "v1",
        resource: "pods",
        namespace,
        subresource,
        name,
        ..ResourceTarget::default()
    }
}

fn sample() -> PolicySet {
    let get_pods = rules(&json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]));
    let logs = rules(
        &json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"], "resourceNames": ["a"]}]),
    );
    set(&[
        (PolicyKind::ClusterRole, "", "reader", get_pods),
        (PolicyKind::Role, "apps", "logs", logs),
        (
            PolicyKind::ClusterRoleBinding,
            "",
            "readers",
            binding(
                "ClusterRole",
                "reader",
                &json!([{"kind": "User", "name": "nobody"}, {"kind": "Group", "name": "dev"}]),
            ),
        ),
        (
            PolicyKind::RoleBinding,
            "apps",
            "loggers",
            binding(
                "Role",
                "logs",
                &json!([{"kind": "ServiceAccount", "name": "runner"}, {"kind": "User", "name": "eve"}]),
            ),
        ),
        (
            PolicyKind::RoleBinding,
            "apps",
            "local-readers",
            binding(
                "ClusterRole",
                "reader",
                &json!([{"kind": "ServiceAccount", "name": "bot", "namespace": "ops"}]),
            ),
        ),
    ])
}

#[test]
fn verdicts_name_binding_role_and_subject() {
    let set = sample();
    let runner = user("system:serviceaccount:apps:runner", &[]);
    let bot = user("system:serviceaccount:ops:bot", &[]);
    let dev = user("dana", &["dev"]);
    for (who, verb, target, expected) in [
        (
            &dev,
            "list",
            pods("", "", ""),
            r#"ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#,
        ),
        (
            &dev,
            "get",
            pods("apps", "", "x"),
            r#"ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#,
        ),
        (
            &runner,
            "get",
            pods("apps", "log", "a"),
            r#"RoleBinding "loggers/apps" of Role "logs" to ServiceAccount "runner/apps""#,
        ),
        (
            &bot,
            "list",
            pods("apps", "", ""),
            r#"RoleBinding "local-readers/apps" of ClusterRole "reader" to ServiceAccount "bot/ops""#,
        ),
    ] {
        let verdict = set.authorize(&Attributes::resource(who, verb, target));
        assert_eq!(verdict, Verdict { allowed: true, reason: format!("RBAC: allowed by {expected}") });
    }
}

#[test]
fn what_no_rule_grants_is_refused_without_a_reason() {
    let set = sample();
    let runner = user("system:serviceaccount:apps:runner", &[]);
    let bot = user("system:serviceaccount:ops:bot", &[]);
    let other = user("system:serviceaccount:other:runner", &[]);
    let dev = user("dana", &["dev"]);
    for (who, verb, target) in [
        (&dev, "delete", pods("apps", "", "x")),
        (&dev, "get", pods("apps", "log", "a")),
        (&runner, "get", pods("apps", "log", "b")),
        (&runner, "get", pods("ops", "log", "a")),
        (&other, "get", pods("apps", "log", "a")),
        (&bot, "list", pods("ops", "", "")),
        (&bot, "list", pods("", "", "")),
    ] {
        let verdict = set.authorize(&Attributes::resource(who, verb, target));
        assert_eq!(verdict, Verdict::default(), "{who:?} {verb} {target:?}");
    }
}

#[test]
fn masters_may_do_anything_without_any_role() {
    let admin = user("root", &["system:masters"]);
    let set = PolicySet::new();
    assert!(set.authorize(&Attributes::path(&admin, "get", "/anything")).allowed);
    assert_eq!(set.authorize(&Attributes::resource(&admin, "delete", pods("a", "", "b"))).reason, "");
}

#[test]
fn a_missing_role_grants_nothing_and_is_named_once() {
    let subjects = json!([{"kind": "User", "name": "al"}]);
    let set = set(&[
        (PolicyKind::ClusterRoleBinding, "", "b1", binding("ClusterRole", "gone", &subjects)),
        (PolicyKind::ClusterRoleBinding, "", "b2", binding("ClusterRole", "gone", &subjects)),
        (PolicyKind::RoleBinding, "apps", "b3", binding("Role", "lost", &subjects)),
        (PolicyKind::RoleBinding, "apps", "b4", binding("Thing", "x", &subjects)),
    ]);
    let al = user("al", &[]);
    let attributes = Attributes::resource(&al, "get", pods("apps", "", "x"));
    let verdict = set.authorize(&attributes);
    assert_eq!(
        verdict.reason,
        "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, role.rbac.authorization.k8s.io \"lost\" not \
         found, unsupported role reference kind: \"Thing\"]"
    );
    assert_eq!(
        set.check(&Attributes::resource(&al, "get", pods("", "", "x"))).unwrap_err().message(),
        "pods \"x\" is forbidden: User \"al\" cannot get resource \"pods\" in API group \"\" at the cluster scope: RBAC: \
         clusterrole.rbac.authorization.k8s.io \"gone\" not found"
    );
}

#[test]
fn a_service_account_without_a_namespace_in_a_cluster_binding_is_nobody() {
    let set = set(&[
        (
            PolicyKind::ClusterRole,
            "",
            "all",
            rules(&json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])),
        ),
        (
            PolicyKind::ClusterRoleBinding,
            "",
            "b",
            binding("ClusterRole", "all", &json!([{"kind": "ServiceAccount", "name": "x"}])),
        ),
    ]);
    for name in ["system:serviceaccount::x", "x", "system:serviceaccount:default:x"] {
        assert!(
            !set.authorize(&Attributes::resource(&user(name, &[]), "get", pods("", "", ""))).allowed,
            "{name}"
        );
    }
}

#[test]
fn changes_and_removals_take_effect_at_once() {
    let mut set = sample();
    let dev = user("dana", &["dev"]);
    let attributes = Attributes::resource(&dev, "list", pods("", "", ""));
    assert!(set.authorize(&attributes).allowed);
    let other = binding("ClusterRole", "reader", &json!([{"kind": "Group", "name": "ops"}]));
    set.apply(PolicyKind::ClusterRoleBinding, "", "readers", Some(&other));
    assert!(!set.authorize(&attributes).allowed);
    let ops = user("olga", &["ops"]);
    let attributes = Attributes::resource(&ops, "list", pods("", "", ""));
    assert!(set.authorize(&attributes).allowed);
    set.apply(PolicyKind::ClusterRole, "", "reader", None);
    assert!(!set.authorize(&attributes).allowed);
    set.apply(PolicyKind::ClusterRoleBinding, "", "readers", None);
    assert_eq!(set.authorize(&attributes).reason, "");
}

#[test]
fn malformed_objects_grant_nothing_and_break_nothing() {
    let mut set = PolicySet::new();
    for odd in [
        json!(null),
        json!([]),
        json!({"rules": 3, "subjects": "x", "roleRef": []}),
        json!({"subjects": [1, {}]}),
    ] {
        for kind in PolicyKind::ALL {
            set.apply(kind, "ns", "odd", Some(&odd));
        }
        assert!(!set.authorize(&Attributes::resource(&user("", &[""]), "get", pods("ns", "", ""))).allowed);
    }
}

/// The rule as the documentation states it, without any index.
fn naive(objects: &[(PolicyKind, String, String, Value)], attributes: &Attributes<'_>) -> bool {
    let role = |kind: &str, namespace: &str, name: &str| -> Vec<PolicyRule> {
        let found =
            objects.iter().rfind(|(own, ns, n, _)| own.kind() == kind && ns == namespace && n == name);
        found.map(|(_, _, _, object)| PolicyRule::read_all(object)).unwrap_or_default()
    };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    for (index, (kind, namespace, name, object)) in objects.iter().enumerate() {
        let superseded =
            objects[index + 1..].iter().any(|(k, ns, n, _)| (k, ns, n) == (kind, namespace, name));
        let in_scope = match kind {
            PolicyKind::ClusterRoleBinding => true,
            PolicyKind::RoleBinding => namespace == attributes.namespace(),
            _ => false,
        };
        if superseded || !in_scope {
            continue;
        }
        let applies = object["subjects"].as_array().is_some_and(|subjects| {
            subjects.iter().any(|subject| match text(subject, "kind").as_str() {
                "User" => text(subject, "name") == attributes.user.name,
                "Group" => attributes.user.in_group(&text(subject, "name")),
                "ServiceAccount" => {
                    let own = text(subject, "namespace");
                    let place = if own.is_empty() { namespace.clone() } else { own };
                    !place.is_empty()
                        && attributes.user.name
                            == format!("system:serviceaccount:{place}:{}", text(subject, "name"))
                }
                _ => false,
            })
        });
        let reference = &object["roleRef"];
        let (kind, name) = (text(reference, "kind"), text(reference, "name"));
        let place = if kind == "Role" { namespace.as_str() } else { "" };
        if applies && role(&kind, place, &name).iter().any(|rule| rule.allows(attributes)) {
            return true;
        }
    }
    false
}

fn pick(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(choices).prop_map(str::to_owned)
}

fn any_object() -> impl Strategy<Value = (PolicyKind, String, String, Value)> {
    let rule = (
        pick(&["get", "list", "*"]),
        pick(&["", "apps", "*"]),
        pick(&["pods", "pods/log", "*/log", "*"]),
        pick(&["", "a"]),
    )
        .prop_map(|(verb, group, resource, name)| {
            let names: Vec<String> = if name.is_empty() { vec![] } else { vec![name] };
            json!({"verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": names})
        });
    let subject = (
        pick(&["User", "Group", "ServiceAccount", "Other"]),
        pick(&["u", "g", "s"]),
        pick(&["", "n1", "n2"]),
    )
        .prop_map(|(kind, name, namespace)| json!({"kind": kind, "name": name, "namespace": namespace}));
    let body = (
        proptest::collection::vec(rule, 0..3),
        proptest::collection::vec(subject, 0..3),
        pick(&["Role", "ClusterRole", "Other"]),
        pick(&["r1", "r2"]),
    )
        .prop_map(|(rules, subjects, kind, name)| {
            json!({"rules": rules, "subjects": subjects, "roleRef": {"kind": kind, "name": name}})
        });
    (proptest::sample::select(&PolicyKind::ALL[..]), pick(&["n1", "n2"]), pick(&["r1", "r2"]), body).prop_map(
        |(kind, namespace, name, body)| {
            (kind, if kind.namespaced() { namespace } else { String::new() }, name, body)
        },
    )
}

proptest! {
    #[test]
    fn the_index_answers_as_a_plain_reading_of_the_objects(
        objects in proptest::collection::vec(any_object(), 0..12),
        name in pick(&["u", "g", "system:serviceaccount:n1:s", "system:serviceaccount:n2:u"]),
        groups in proptest::collection::vec(pick(&["g", "u", "s"]), 0..3),
        verb in pick(&["get", "list", "delete"]),
        group in pick(&["", "apps"]),
        subresource in pick(&["", "log"]),
        namespace in pick(&["", "n1", "n2"]),
        object_name in pick(&["", "a", "b"]),
    ) {
        let mut set = PolicySet::new();
        for (kind, ns, name, object) in &objects {
            set.apply(*kind, ns, name, Some(object));
        }
        let user = User::new(name, groups);
        let target = ResourceTarget {
            group: &group, version: "v1", resource: "pods", subresource: &subresource, namespace: &namespace, name: &object_name,
        };
        let attributes = Attributes::resource(&user, &verb, target);
        prop_assert_eq!(set.authorize(&attributes).allowed, naive(&objects, &attributes));
        // Taking everything out again leaves nothing behind.
        for (kind, ns, name, _) in &objects {
            set.apply(*kind, ns, name, None);
        }
        prop_assert!(set.cluster.by_user.is_empty() && set.cluster.by_group.is_empty() && set.namespaces.is_empty());
        prop_assert!(set.roles.is_empty() && set.cluster_roles.is_empty());
    }
}
