//! `pods/binding`: a scheduler's word on where a pod runs.
//!
//! Owns the checks and the change to the pod. It does not judge the choice of the node.

use berth_hub_wire::{GroupResource, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::condition;
use super::meta;
use super::refusal;

/// What is wrong with a `Binding` whatever the pod is. `name` is the pod's in the path.
pub(crate) fn check(name: &str, binding: &Value) -> Result<(), Status> {
    if meta::text(binding, "name") != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    if !["", "Node"].contains(&target(binding, "kind")) {
        let message = format!(
            "target.kind: Unsupported value: {:?}: supported values: \"Node\", \"<empty>\"",
            target(binding, "kind")
        );
        return Err(refusal::bare(message));
    }
    if target(binding, "name").is_empty() {
        return Err(refusal::bare("target.name: Required value"));
    }
    Ok(())
}

fn target<'a>(binding: &'a Value, field: &str) -> &'a str {
    meta::at(binding, &["target", field]).and_then(Value::as_str).unwrap_or_default()
}

/// The pod as bound to the node that a `Binding` names, which has been [checked](check).
pub(crate) fn decide(name: &str, binding: &Value, pod: &Value, now: Timestamp) -> Result<Value, Status> {
    let pods = GroupResource::new("", "pods");
    for (field, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (asked, found) = (meta::text(binding, field), meta::text(pod, field));
        if !asked.is_empty() && asked != found {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: {word} in precondition: {asked}, {word} in object meta: {found}",
                meta::text(pod, "namespace")
            );
            return Err(Status::conflict(pods, name, &why));
        }
    }
    let refused = |why: String| Err(Status::conflict(GroupResource::new("", "pods/binding"), name, &why));
    if meta::deleting(pod) {
        return refused(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = meta::at(pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
    if !node.is_empty() {
        return refused(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gates = meta::at(pod, &["spec", "schedulingGates"]).and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return refused(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut bound = pod.clone();
    let fields = meta::map(&mut bound);
    meta::child(fields, "spec").insert("nodeName".to_owned(), target(binding, "name").into());
    meta::child(fields, "status").remove("nominatedNodeName");
    for field in ["annotations", "labels"] {
        let added = meta::at(binding, &["metadata", field]).and_then(Value::as_object);
        for (key, value) in added.into_iter().flatten() {
            meta::child(meta::of(&mut bound), field).insert(key.clone(), value.clone());
        }
    }
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    condition::set(&mut bound, scheduled, now);
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T22:50:54Z".parse().unwrap()
    }

    fn pod() -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "5"},
            "spec": {},
            "status": {"phase": "Pending", "nominatedNodeName": "n0"},
        })
    }

    fn binding() -> Value {
        json!({"metadata": {"name": "p", "annotations": {"a": "b"}}, "target": {"kind": "Node", "name": "n1"}})
    }

    #[test]
    fn a_bound_pod_has_its_node_and_says_since_when() {
        let bound = decide("p", &binding(), &pod(), now()).unwrap();
        assert_eq!(bound["spec"]["nodeName"], "n1");
        assert_eq!(bound["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(
            bound["status"],
            json!({
                "phase": "Pending",
                "conditions": [{
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": null,
                    "lastTransitionTime": "2026-11-15T22:50:54Z",
                }],
            })
        );
    }

    #[test]
    fn a_pod_is_bound_once() {
        let bound = decide("p", &binding(), &pod(), now()).unwrap();
        let status = decide("p", &binding(), &bound, now()).unwrap_err();
        assert_eq!(
            status.message,
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
        );
    }

    #[test]
    fn a_binding_for_another_incarnation_is_a_conflict() {
        let mut binding = binding();
        binding["metadata"]["uid"] = "other".into();
        let status = decide("p", &binding, &pod(), now()).unwrap_err();
        assert_eq!(status.code(), 409);
        assert!(
            status
                .message
                .ends_with("Precondition failed: UID in precondition: other, UID in object meta: u")
        );
    }

    #[test]
    fn a_gated_or_deleted_pod_is_not_bound() {
        let mut gated = pod();
        gated["spec"]["schedulingGates"] = json!([{"name": "x"}]);
        assert!(
            decide("p", &binding(), &gated, now())
                .unwrap_err()
                .message
                .ends_with("non-empty .spec.schedulingGates")
        );
        let mut deleted = pod();
        deleted["metadata"]["deletionTimestamp"] = "2026-11-15T22:50:54Z".into();
        assert!(decide("p", &binding(), &deleted, now()).unwrap_err().message.contains("is being deleted"));
    }

    #[test]
    fn a_binding_is_judged_before_its_pod_is_looked_for() {
        let told = |name: &str, binding: &Value| check(name, binding).unwrap_err().message;
        assert_eq!(told("q", &binding()), "name in URL does not match name in Binding object");
        let mut odd = binding();
        odd["target"] = json!({"kind": "Pod", "name": "n1"});
        assert!(told("p", &odd).starts_with("target.kind: Unsupported value: \"Pod\""));
        odd["target"] = json!({"kind": "Node"});
        assert_eq!(told("p", &odd), "target.name: Required value");
        assert_eq!(check("p", &binding()), Ok(()));
    }
}
