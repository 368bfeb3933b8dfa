//! Bodies of the kinds that belong to no namespace, and of roles.

use serde_json::{Value, json};

use super::{maybe, words};
use berth_tests::random::Random;

pub(super) fn cluster_role(random: &mut Random) -> Value {
    json!({"rules": [{"apiGroups": [""], "resources": [*random.pick(&["pods", "nodes"])], "verbs": ["get", *random.pick(&["list", "watch"])]}]})
}

pub(super) fn priority_class(random: &mut Random) -> Value {
    let mut class = json!({"value": 100});
    maybe(random, 40, &mut class, "description", |r| json!(words(r)));
    maybe(random, 30, &mut class, "preemptionPolicy", |_| json!("Never"));
    class
}

pub(super) fn storage_class(random: &mut Random) -> Value {
    let mut class = json!({"provisioner": "berth.dev/none"});
    maybe(random, 40, &mut class, "volumeBindingMode", |_| json!("WaitForFirstConsumer"));
    maybe(random, 40, &mut class, "allowVolumeExpansion", |r| json!(r.chance(50)));
    class
}

pub(super) fn role_binding(random: &mut Random) -> Value {
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": *random.pick(&["view", "edit"])}, "subjects": subjects(random)})
}

fn subjects(random: &mut Random) -> Value {
    let mut subjects =
        vec![json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"})];
    if random.chance(40) {
        subjects.push(json!({"kind": "ServiceAccount", "name": "a", "namespace": "x"}));
    }
    if random.chance(30) {
        subjects.push(json!({"kind": "Group", "name": "g"}));
    }
    subjects.into()
}

/// Concerns a resource that nobody serves, so that nothing else in a run is held up by it.
pub(super) fn webhooks(random: &mut Random) -> Value {
    let mut hook = json!({"name": "one.berth.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [{"apiGroups": ["nothing.berth.dev"], "apiVersions": ["*"], "resources": ["nothings"], "operations": ["CREATE"]}]});
    maybe(random, 30, &mut hook, "failurePolicy", |r| json!(*r.pick(&["Fail", "Ignore"])));
    maybe(random, 30, &mut hook, "timeoutSeconds", |r| json!(1 + r.below(10)));
    maybe(random, 20, &mut hook, "namespaceSelector", |_| json!({"matchLabels": {"a": "b"}}));
    maybe(random, 20, &mut hook, "matchPolicy", |_| json!("Exact"));
    json!({"webhooks": [hook]})
}
