use proptest::prelude::*;

use super::*;
use crate::conform::conform;

fn defaulted(group: &str, kind: &str, object: Value) -> Value {
    let kind = Builtins::load().kind(group, "v1", kind).unwrap();
    let mut object = conform(kind.type_id, object).unwrap().value;
    apply(kind, &mut object);
    object
}

#[test]
fn the_table_of_defaults_is_sorted_and_names_existing_fields() {
    assert!(PLAIN.is_sorted());
    let types = &Builtins::load().types;
    for (name, field, value) in PLAIN {
        let id = types.find(name).unwrap_or_else(|| panic!("{name}"));
        assert!(types.get(id).field(field).is_some(), "{name}.{field}");
        assert!(serde_json::from_str::<Value>(value).is_ok(), "{value}");
    }
}

#[test]
fn a_pod_is_filled_in() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"hostNetwork": true, "serviceAccountName": "sa",
        "containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "0.0001"}},
            "livenessProbe": {"httpGet": {"port": 80}}}],
        "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]}});
    assert_eq!(
        defaulted("", "Pod", pod)["spec"],
        json!({"containers": [{"name": "c", "image": "nginx", "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                    "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}],
            "hostNetwork": true, "serviceAccountName": "sa", "serviceAccount": "sa", "enableServiceLinks": true,
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30})
    );
}

#[test]
fn a_pod_template_gets_the_defaults_of_its_spec_only() {
    let set = json!({"metadata": {"name": "d"}, "spec": {"selector": {}, "template": {"spec": {"containers":
        [{"name": "c", "image": "nginx:1", "resources": {"limits": {"cpu": "1"}}}]}}}});
    let set = defaulted("apps", "Deployment", set);
    let spec = &set["spec"]["template"]["spec"];
    assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(spec["containers"][0]["resources"], json!({"limits": {"cpu": "1"}}));
    assert!(spec.get("enableServiceLinks").is_none());
    assert_eq!(
        set["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
    );
    assert_eq!((&set["spec"]["replicas"], &set["spec"]["progressDeadlineSeconds"]), (&json!(1), &json!(600)));
}

#[test]
fn a_strategy_that_recreates_has_no_rolling_update() {
    let set = json!({"spec": {"strategy": {"type": "Recreate"}}});
    assert_eq!(defaulted("apps", "Deployment", set)["spec"]["strategy"], json!({"type": "Recreate"}));
    let set = json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}});
    assert_eq!(
        defaulted("apps", "StatefulSet", set)["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate"})
    );
    assert_eq!(
        defaulted("apps", "StatefulSet", json!({}))["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
}

#[test]
fn bounds_of_a_rolling_update_that_is_not_to_be_are_filled_with_zeros() {
    let set =
        json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 2}}}});
    assert_eq!(
        defaulted("apps", "DaemonSet", set)["spec"]["updateStrategy"],
        json!({"type": "OnDelete", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}})
    );
    let set = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
    assert_eq!(defaulted("apps", "DaemonSet", set)["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
}

#[test]
fn a_namespace_carries_its_name_as_a_label() {
    let namespace = defaulted("", "Namespace", json!({"metadata": {"name": "n"}}));
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!(namespace["status"]["phase"], "Active");
}

#[test]
fn string_data_wins_over_data() {
    let secret = json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}});
    let secret = defaulted("", "Secret", secret);
    assert_eq!(secret["data"], json!({"a": "bmV3", "b": "Yg=="}));
    assert!(secret.get("stringData").is_none());
}

#[test]
fn a_definition_is_named_after_its_kind() {
    let crd = json!({"spec": {"names": {"kind": "CronTab"}, "versions": [{"name": "v1", "storage": true}]}});
    let crd = defaulted("apiextensions.k8s.io", "CustomResourceDefinition", crd);
    assert_eq!(crd["spec"]["names"]["singular"], "crontab");
    assert_eq!(crd["spec"]["names"]["listKind"], "CronTabList");
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
}

#[test]
fn images_without_a_tag_are_the_latest() {
    for image in ["nginx", "library/nginx", "registry.example.com:5000/nginx", "nginx:latest", "localhost/a"]
    {
        assert!(is_latest(image), "{image}");
    }
    for image in ["", "nginx:1", "nginx@sha256:abc", "NGINX", "example.com:5000/a:v1", "/a", "a//b"] {
        assert!(!is_latest(image), "{image}");
    }
}

#[test]
fn subjects_of_bindings_get_their_group() {
    let binding = json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"},
        {"kind": "ServiceAccount", "name": "s"}]});
    let binding = defaulted("rbac.authorization.k8s.io", "RoleBinding", binding);
    assert_eq!(binding["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "s"}])
    );
}

proptest! {
    #[test]
    fn defaults_settle_at_once(replicas in proptest::option::of(0..5_i32), host in any::<bool>(), image in "[a-z]{0,5}(:[a-z]{1,6})?", policy in proptest::option::of("[A-Z]{1,3}")) {
        let set = json!({"spec": {"replicas": replicas, "strategy": {"type": policy}, "template": {"spec": {"hostNetwork": host,
            "containers": [{"image": image, "readinessProbe": {"tcpSocket": {"port": 1}}}], "volumes": [{"name": "a"}]}}}});
        for (group, kind) in [("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")] {
            let id = Builtins::load().kind(group, "v1", kind).unwrap();
            let once = defaulted(group, kind, set.clone());
            let mut twice = conform(id.type_id, once.clone()).unwrap().value;
            prop_assert_eq!(&twice, &once);
            apply(id, &mut twice);
            prop_assert_eq!(twice, once);
        }
    }
}
