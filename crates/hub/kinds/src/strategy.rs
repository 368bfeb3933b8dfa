//! What a write to a built-in kind may touch, and what the server sets itself.
//!
//! Owns, per kind: the status a new object begins with, what an update of the object or of its status keeps from the stored
//! object, when `metadata.generation` moves on, and the fields nobody may own through which path. Never validates, and the
//! metadata every kind shares (uid, creation time, names) is set by the pipeline.

use serde_json::{Map, Value, json};

use crate::{
    access::{at, int, items, put, text},
    qos,
    registry::Builtin,
};

/// Kinds that take a status with their creation, because what creates them (a kubelet, a controller) reports it at once.
const STATUS_ON_CREATE: [&str; 1] = ["Node"];
/// Kinds without a `spec` whose other fields are what generation counts.
const COUNTED: [(&str, &str); 2] =
    [("MutatingWebhookConfiguration", "webhooks"), ("ValidatingWebhookConfiguration", "webhooks")];

/// Sets what the server decides about a new object: its first status, generation, and what its kind demands. The object has
/// its name and uid by now; `now` is RFC 3339 to the second.
pub fn prepare_for_create(kind: &Builtin, object: &mut Value, now: &str) {
    if kind.generation {
        put(object, &["metadata", "generation"], Some(1.into()));
    }
    if kind.subresource("status").is_some() && !STATUS_ON_CREATE.contains(&kind.kind) {
        let status = first_status(kind, object, now);
        put(object, &["status"], Some(status));
    }
    match kind.kind {
        "Namespace" => {
            let mut finalizers = items(object, &["spec", "finalizers"]).to_vec();
            if !finalizers.iter().any(|name| name == "kubernetes") {
                finalizers.push("kubernetes".into());
            }
            put(object, &["spec", "finalizers"], Some(finalizers.into()));
        }
        "DaemonSet" => {
            let path = ["metadata", "annotations", TEMPLATE_GENERATION];
            let generation = text(object, &path).parse::<i64>().unwrap_or(0).max(1);
            put(object, &path, Some(generation.to_string().into()));
        }
        "ServiceAccount" => clean_secret_references(object),
        "Job" => select_own_pods(object),
        "Lease" => drop_coordination(object, None),
        _ => {}
    }
}

/// Coordinated leader election is off: its fields are taken only where they are already.
fn drop_coordination(lease: &mut Value, old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        if old.is_none_or(|old| at(old, &["spec", field]).is_none()) {
            put(lease, &["spec", field], None);
        }
    }
}

/// A job finds its pods by its uid, unless it brings a selector of its own.
fn select_own_pods(job: &mut Value) {
    const UID: &str = "batch.kubernetes.io/controller-uid";
    if at(job, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) =
        (text(job, &["metadata", "uid"]).to_owned(), text(job, &["metadata", "name"]).to_owned());
    for (label, value) in
        [("controller-uid", &uid), ("job-name", &name), (UID, &uid), ("batch.kubernetes.io/job-name", &name)]
    {
        put(job, &["spec", "template", "metadata", "labels", label], Some(value.as_str().into()));
    }
    put(job, &["spec", "selector", "matchLabels", UID], Some(uid.into()));
    if at(job, &["metadata", "labels"]).is_none() {
        let labels = at(job, &["spec", "template", "metadata", "labels"]).cloned();
        put(job, &["metadata", "labels"], labels);
    }
}

/// The annotation in which `apps/v1` shows the generation of a daemon set's template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn first_status(kind: &Builtin, object: &Value, now: &str) -> Value {
    match kind.kind {
        "Pod" => {
            let mut status = json!({"phase": "Pending", "qosClass": qos::class_of(object)});
            if !items(object, &["spec", "schedulingGates"]).is_empty() {
                status["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": null,
                    "lastTransitionTime": now}]);
            }
            status
        }
        "Namespace" => json!({"phase": "Active"}),
        "PersistentVolume" => json!({"phase": "Pending", "lastPhaseTransitionTime": now}),
        "PersistentVolumeClaim" => json!({"phase": "Pending"}),
        "DaemonSet" => {
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0})
        }
        "ReplicaSet" => json!({"replicas": 0}),
        "StatefulSet" => json!({"availableReplicas": 0, "replicas": 0}),
        "PodDisruptionBudget" => {
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
        }
        "Service" => json!({"loadBalancer": {}}),
        "CustomResourceDefinition" => {
            // None yet is no list, which is how the refusal of such a definition shows it.
            let stored = storage_version(object).map(|version| vec![version]);
            json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": stored})
        }
        _ => json!({}),
    }
}

fn storage_version(definition: &Value) -> Option<&Value> {
    let versions = items(definition, &["spec", "versions"]);
    versions.iter().find(|version| version["storage"] == true).map(|version| &version["name"])
}

/// Sets what an update of the object itself may not change, and moves the generation on when it says something new.
pub fn prepare_for_update(kind: &Builtin, new: &mut Value, old: &Value) {
    if kind.subresource("status").is_some() {
        put(new, &["status"], old.get("status").cloned());
    }
    match kind.kind {
        "Namespace" => put(new, &["spec", "finalizers"], at(old, &["spec", "finalizers"]).cloned()),
        "Secret" if text(new, &["type"]).is_empty() => {
            put(new, &["type"], at(old, &["type"]).cloned());
        }
        "ServiceAccount" => clean_secret_references(new),
        "DaemonSet" => keep_template_generation(new, old),
        "Lease" => drop_coordination(new, Some(old)),
        "CustomResourceDefinition" => {
            let mut stored = items(new, &["status", "storedVersions"]).to_vec();
            if let Some(version) = storage_version(new).filter(|version| !stored.contains(version)) {
                stored.push(version.clone());
                put(new, &["status", "storedVersions"], Some(stored.into()));
            }
        }
        _ => {}
    }
    let generation = int(old, &["metadata", "generation"]).unwrap_or(0);
    let moved = kind.generation && kind.kind != "PriorityClass" && says_something_new(kind, new, old);
    let generation = generation + i64::from(moved);
    put(new, &["metadata", "generation"], (generation > 0).then(|| generation.into()));
}

fn says_something_new(kind: &Builtin, new: &Value, old: &Value) -> bool {
    let differs = |path: &[&str]| at(new, path) != at(old, path);
    if let Some((_, field)) = COUNTED.iter().find(|(name, _)| *name == kind.kind) {
        return differs(&[field]);
    }
    match kind.kind {
        "Deployment" => differs(&["spec"]) || differs(&["metadata", "annotations"]),
        "EndpointSlice" => {
            ["addressType", "endpoints", "ports"].iter().any(|field| differs(&[field]))
                || differs(&["metadata", "labels"])
        }
        _ => differs(&["spec"]),
    }
}

/// Sets what an update through a subresource may not change. `Some` path of a subresource other than `status` and `finalize`
/// changes nothing here.
pub fn prepare_for_subresource_update(kind: &Builtin, subresource: &str, new: &mut Value, old: &Value) {
    match subresource {
        "status" => {
            put(new, &["spec"], old.get("spec").cloned());
            let generation = at(old, &["metadata", "generation"]).cloned();
            put(new, &["metadata", "generation"], generation);
            match kind.kind {
                "Deployment" => put(new, &["metadata", "labels"], at(old, &["metadata", "labels"]).cloned()),
                "DaemonSet" => {
                    let path = ["metadata", "annotations", TEMPLATE_GENERATION];
                    put(new, &path, at(old, &path).cloned());
                }
                "Pod" => {
                    put(
                        new,
                        &["metadata", "ownerReferences"],
                        at(old, &["metadata", "ownerReferences"]).cloned(),
                    );
                    if text(new, &["status", "qosClass"]).is_empty() {
                        put(new, &["status", "qosClass"], at(old, &["status", "qosClass"]).cloned());
                    }
                }
                _ => {}
            }
        }
        "finalize" => put(new, &["status"], old.get("status").cloned()),
        _ => {}
    }
}

/// The time of a volume's last change of phase, after an update of its status.
pub fn set_phase_transition(new: &mut Value, old: &Value, now: &str) {
    const TIME: [&str; 2] = ["status", "lastPhaseTransitionTime"];
    let same_phase = text(new, &["status", "phase"]) == text(old, &["status", "phase"]);
    let unchanged = at(new, &TIME).is_none() || (!same_phase && at(new, &TIME) == at(old, &TIME));
    if unchanged {
        let time = if same_phase { at(old, &TIME).cloned() } else { Some(now.into()) };
        put(new, &TIME, time);
    }
}

/// Paths that a writer through this path cannot own: apply and updates leave them out of `managedFields`.
pub fn reset_paths(kind: &Builtin, subresource: Option<&str>) -> &'static [&'static [&'static str]] {
    match (kind.kind, subresource) {
        ("Pod", Some("status")) => {
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
        }
        ("Deployment", Some("status")) => &[&["spec"], &["metadata", "labels"]],
        (_, Some("status")) => &[&["spec"]],
        (_, None | Some("finalize")) if kind.subresource("status").is_some() => &[&["status"]],
        _ => &[],
    }
}

/// Only the name of a secret that a service account lists is kept.
fn clean_secret_references(account: &mut Value) {
    let Some(Value::Array(secrets)) = account.get_mut("secrets") else { return };
    for secret in secrets {
        let name = secret.get("name").cloned();
        *secret =
            Value::Object(name.map(|name| ("name".to_owned(), name)).into_iter().collect::<Map<_, _>>());
    }
}

fn keep_template_generation(new: &mut Value, old: &Value) {
    let path = ["metadata", "annotations", TEMPLATE_GENERATION];
    let generation: i64 = text(old, &path).parse().unwrap_or(0);
    let moved = at(new, &["spec", "template"]) != at(old, &["spec", "template"]);
    put(new, &path, Some((generation + i64::from(moved)).to_string().into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builtins;

    fn kind(group: &str, name: &str) -> &'static Builtin {
        Builtins::load().kind(group, "v1", name).unwrap()
    }

    const NOW: &str = "2026-01-02T03:04:05Z";

    #[test]
    fn a_new_object_has_the_status_its_kind_begins_with() {
        let mut pod = json!({"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Running"}});
        prepare_for_create(kind("", "Pod"), &mut pod, NOW);
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
        assert_eq!(pod["metadata"]["generation"], 1);
        let mut node = json!({"metadata": {}, "status": {"phase": "x"}});
        prepare_for_create(kind("", "Node"), &mut node, NOW);
        assert_eq!(node["status"], json!({"phase": "x"}));
    }

    #[test]
    fn a_namespace_keeps_the_finalizer_of_kubernetes() {
        let mut namespace = json!({"metadata": {}, "spec": {}});
        prepare_for_create(kind("", "Namespace"), &mut namespace, NOW);
        assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
        let mut new = json!({"metadata": {}, "spec": {"finalizers": []}});
        prepare_for_update(kind("", "Namespace"), &mut new, &namespace);
        assert_eq!(new["spec"]["finalizers"], json!(["kubernetes"]));
    }

    #[test]
    fn generation_moves_with_the_spec_and_for_deployments_with_annotations() {
        let old = json!({"metadata": {"generation": 3}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
        let mut new = json!({"metadata": {"generation": 9}, "spec": {"replicas": 1}, "status": {}});
        prepare_for_update(kind("apps", "StatefulSet"), &mut new, &old);
        assert_eq!((&new["metadata"]["generation"], &new["status"]), (&json!(3), &json!({"replicas": 1})));
        new["metadata"]["annotations"] = json!({"a": "b"});
        prepare_for_update(kind("apps", "StatefulSet"), &mut new, &old);
        assert_eq!(new["metadata"]["generation"], 3);
        prepare_for_update(kind("apps", "Deployment"), &mut new, &old);
        assert_eq!(new["metadata"]["generation"], 4);
    }

    #[test]
    fn a_status_update_keeps_the_spec() {
        let old = json!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}});
        let mut new =
            json!({"metadata": {"generation": 9}, "spec": {"replicas": 7}, "status": {"replicas": 2}});
        prepare_for_subresource_update(kind("apps", "Deployment"), "status", &mut new, &old);
        assert_eq!(
            new,
            json!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {"replicas": 2}})
        );
    }

    #[test]
    fn kinds_without_generation_never_get_one() {
        let mut map = json!({"metadata": {}});
        prepare_for_create(kind("", "ConfigMap"), &mut map, NOW);
        prepare_for_update(kind("", "ConfigMap"), &mut map, &json!({"metadata": {}}));
        assert_eq!(map, json!({"metadata": {}}));
    }
}
