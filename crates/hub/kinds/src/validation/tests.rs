use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Builtins, conform::conform, defaults, strategy};

/// An object as it comes to validation.
fn prepared(group: &str, name: &str, object: &Value) -> (&'static Builtin, Value) {
    let kind = Builtins::load().kind(group, "v1", name).unwrap();
    let mut object = conform(kind.type_id, object.clone()).unwrap().value;
    defaults::apply(kind, &mut object);
    strategy::prepare_for_create(kind, &mut object, "2026-01-02T03:04:05Z");
    (kind, object)
}

fn problems(group: &str, name: &str, object: &Value) -> Vec<String> {
    let (kind, object) = prepared(group, name, object);
    create(kind, &object).iter().map(ToString::to_string).collect()
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    let mut place = &mut object;
    for part in path.split('/') {
        place = match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        };
    }
    *place = value;
    object
}

fn pod() -> Value {
    json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn deployment() -> Value {
    json!({"metadata": {"name": "d", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

#[test]
fn objects_in_order_have_no_problems() {
    assert_eq!(problems("", "Pod", &pod()), [""; 0]);
    assert_eq!(problems("apps", "Deployment", &deployment()), [""; 0]);
}

#[test]
fn pods_are_refused_in_kubernetes_words() {
    for (path, value, expected) in [
        ("spec/containers", json!([]), "spec.containers: Required value"),
        ("spec/containers/0/image", json!(""), "spec.containers[0].image: Required value"),
        ("spec/containers/0/name", json!(""), "spec.containers[0].name: Required value"),
        (
            "spec/containers/0/imagePullPolicy",
            json!("x"),
            r#"spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never""#,
        ),
        (
            "spec/containers/0/ports",
            json!([{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            "spec/containers/0/volumeMounts",
            json!([{"name": "v", "mountPath": "/a"}]),
            r#"spec.containers[0].volumeMounts[0].name: Not found: "v""#,
        ),
        (
            "spec/containers/0/resources",
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
            r#"spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#,
        ),
        (
            "spec/containers/0/resources",
            json!({"requests": {"example.com/gpu": "1"}}),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            "spec/containers/0/livenessProbe",
            json!({}),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            "spec/restartPolicy",
            json!("x"),
            r#"spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never""#,
        ),
        (
            "spec/tolerations",
            json!([{"key": "a", "operator": "Exists", "value": "x"}]),
            r#"spec.tolerations[0].operator: Invalid value: "x": value must be empty when `operator` is 'Exists'"#,
        ),
        (
            "spec/volumes",
            json!([{"name": "x", "secret": {}}]),
            "spec.volumes[0].secret.secretName: Required value",
        ),
        (
            "spec/activeDeadlineSeconds",
            json!(0),
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
    ] {
        assert_eq!(problems("", "Pod", &with(pod(), path, value)), [expected], "{path}");
    }
}

#[test]
fn two_containers_may_not_share_a_name() {
    let twins = json!([{"name": "a", "image": "b"}, {"name": "a", "image": "c"}]);
    assert_eq!(
        problems("", "Pod", &with(pod(), "spec/containers", twins)),
        [r#"spec.containers[1].name: Duplicate value: "a""#]
    );
}

#[test]
fn a_selector_has_to_match_its_template() {
    let other = with(deployment(), "spec/selector", json!({"matchLabels": {"x": "y"}}));
    assert_eq!(
        problems("apps", "Deployment", &other),
        [
            r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#
        ]
    );
    let none = with(deployment(), "spec/selector", Value::Null);
    assert_eq!(problems("apps", "Deployment", &none)[0], "spec.selector: Required value");
    let odd = with(deployment(), "spec/strategy", json!({"type": "x"}));
    assert_eq!(
        problems("apps", "Deployment", &odd),
        [
            r#"spec.strategy: Unsupported value: {"Type":"x","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate""#
        ]
    );
}

#[test]
fn a_stateful_set_gives_its_pods_their_names_whatever_the_template_says() {
    let named = with(deployment(), "spec/template/spec/hostname", json!("Bad_Host"));
    assert_eq!(problems("apps", "Deployment", &named).len(), 1);
    assert_eq!(problems("apps", "StatefulSet", &named), Vec::<String>::new());
    let domain = with(deployment(), "spec/template/spec/subdomain", json!("Bad_Domain"));
    assert_eq!(problems("apps", "StatefulSet", &domain), Vec::<String>::new());
}

#[test]
fn a_stateful_set_may_mount_the_claims_it_makes() {
    let set = json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i",
            "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}]}});
    assert_eq!(problems("apps", "StatefulSet", &set), [""; 0]);
}

#[test]
fn taints_are_unique_by_key_and_effect() {
    let node = json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoSchedule", "value": "x"}, {"key": "b", "effect": "foo"}]}});
    assert_eq!(
        problems("", "Node", &node),
        [
            r#"metadata.taints[1]: Duplicate value: {"Key":"a","Value":"x","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair"#,
            r#"metadata.taints[2].effect: Unsupported value: "foo": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#
        ]
    );
}

#[test]
fn keys_of_config_maps_are_names_of_files() {
    let map = json!({"metadata": {"name": "c", "namespace": "n"}, "data": {"..": "a", "ok": "b"}, "binaryData": {"ok": "YQ=="}});
    assert_eq!(
        problems("", "ConfigMap", &map),
        [
            r#"data[..]: Invalid value: "..": must not be '..'"#,
            r#"data[ok]: Invalid value: "ok": duplicate of key present in binaryData"#
        ]
    );
    let large =
        json!({"metadata": {"name": "c", "namespace": "n"}, "data": {"a": "x".repeat(1024 * 1024 + 1)}});
    assert_eq!(problems("", "ConfigMap", &large), ["[]: Too long: may not be more than 1048576 bytes"]);
}

#[test]
fn rules_of_roles_need_verbs_groups_and_resources() {
    let role = json!({"metadata": {"name": "r", "namespace": "n"}, "rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/a"]}]});
    assert_eq!(
        problems("rbac.authorization.k8s.io", "Role", &role),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            r#"rules[1].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs"#
        ]
    );
}

#[test]
fn budgets_have_one_bound() {
    let budget = json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {"minAvailable": 1, "maxUnavailable": "10%"}});
    assert_eq!(
        problems("policy", "PodDisruptionBudget", &budget),
        [
            r#"spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"10%","UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set"#
        ]
    );
}

fn update_problems(group: &str, name: &str, new: &Value, old: &Value) -> Vec<String> {
    let versioned = |object: &Value| {
        let (_, mut object) = prepared(group, name, object);
        object["metadata"]["resourceVersion"] = json!("1");
        object
    };
    let (kind, old) = (prepared(group, name, old).0, versioned(old));
    let mut new = versioned(new);
    strategy::prepare_for_update(kind, &mut new, &old);
    update(kind, None, &new, &old).iter().map(ToString::to_string).collect()
}

#[test]
fn what_must_not_change_does_not() {
    let other = with(
        with(deployment(), "spec/selector", json!({"matchLabels": {"x": "y"}})),
        "spec/template/metadata/labels",
        json!({"x": "y"}),
    );
    assert_eq!(
        update_problems("apps", "Deployment", &other, &deployment()),
        [r#"spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: field is immutable"#]
    );
    let binding = |role: &str| json!({"metadata": {"name": "b", "namespace": "n"}, "roleRef": {"kind": "Role", "name": role}});
    assert_eq!(
        update_problems("rbac.authorization.k8s.io", "RoleBinding", &binding("x"), &binding("y")),
        [
            r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"x"}: cannot change roleRef"#
        ]
    );
    let map = |value: &str| json!({"metadata": {"name": "c", "namespace": "n"}, "immutable": true, "data": {"a": value}});
    assert_eq!(
        update_problems("", "ConfigMap", &map("x"), &map("y")),
        ["data: Forbidden: field is immutable when `immutable` is set"]
    );
}

#[test]
fn of_a_pod_only_images_and_added_tolerations_change() {
    let image = with(pod(), "spec/containers/0/image", json!("i"));
    assert_eq!(update_problems("", "Pod", &image, &pod()), [""; 0]);
    let tolerant = with(pod(), "spec/tolerations", json!([{"key": "a", "operator": "Exists"}]));
    assert_eq!(update_problems("", "Pod", &tolerant, &pod()), [""; 0]);
    assert_eq!(
        update_problems("", "Pod", &pod(), &tolerant),
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"]
    );
    let moved = with(pod(), "spec/nodeName", json!("elsewhere"));
    assert!(update_problems("", "Pod", &moved, &pod())[0].starts_with(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    ));
    let more =
        with(pod(), "spec/containers", json!([{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]));
    assert_eq!(
        update_problems("", "Pod", &more, &pod()),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    );
}

#[test]
fn names_follow_their_kind() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(problems("", "Namespace", &named("a.b")).len(), 1);
    assert_eq!(problems("rbac.authorization.k8s.io", "ClusterRole", &named("system:a")), [""; 0]);
    assert_eq!(problems("rbac.authorization.k8s.io", "ClusterRole", &named("a/b")).len(), 1);
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let pod = json!({"metadata": {"name": "a.b", "namespace": "n"}, "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"},
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}, {"name": "A", "value": "c"}],
            "ports": [{"containerPort": 80}, {"containerPort": 80}], "resources": {"requests": {"memory": "1m"}}}]}});
    let (kind, pod) = prepared("", "Pod", &pod);
    assert_eq!(
        create_warnings(kind, &pod),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            "spec.containers[0].resources.requests[memory]: fractional byte value \"1m\" is invalid, must be an integer",
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"
        ]
    );
    assert_eq!(update_warnings(kind, &pod, &pod), [""; 0]);
}

#[test]
fn services_need_ports_with_names_of_their_own() {
    let service = |spec: Value| {
        problems("", "Service", &json!({"metadata": {"name": "s", "namespace": "n"}, "spec": spec}))
    };
    assert_eq!(service(json!({})), ["spec.ports: Required value"]);
    assert_eq!(service(json!({"type": "ExternalName"})), ["spec.externalName: Required value"]);
    assert_eq!(service(json!({"ports": [{"port": 80}]})), [""; 0]);
    assert_eq!(
        service(json!({"ports": [{"port": 80}, {"port": 81, "name": "b"}]})),
        ["spec.ports[0].name: Required value"]
    );
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from)
    ];
    let names = prop_oneof![
        Just("spec"),
        Just("metadata"),
        Just("containers"),
        Just("template"),
        Just("selector"),
        Just("matchLabels"),
        Just("tolerations"),
        Just("taints"),
        Just("rules"),
        Just("webhooks"),
        Just("volumes"),
        Just("data"),
        Just("name"),
        Just("clientConfig"),
        Just("url")
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..6).prop_map(|map| Value::Object(
                map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    /// Validation is only asked about conformed objects, and does not rely on it.
    #[test]
    fn any_value_is_judged(new in anything(), old in anything()) {
        for kind in &Builtins::load().kinds {
            let _ = create(kind, &new);
            let _ = update(kind, None, &new, &old);
            let _ = update(kind, Some("status"), &new, &old);
            let _ = (create_warnings(kind, &new), update_warnings(kind, &new, &old));
        }
    }
}
