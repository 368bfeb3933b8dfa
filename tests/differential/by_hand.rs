//! Requests that no walk makes, or only once in a long while: what was found to differ once, written down.

use http::Method;
use serde_json::{Value, json};

use crate::exchange::{Request, get, post};

const WIDGETS: &str = "/apis/tests.berth.dev/v1/namespaces/by-hand/widgets";
const MAPS: &str = "/api/v1/namespaces/by-hand/configmaps";
const CLAIMS: &str = "/api/v1/namespaces/by-hand/persistentvolumeclaims";
const EVENTS: &str = "/api/v1/namespaces/by-hand/events";
const OTHER_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/by-hand/events";

/// Goes on behind `a`, at the revision 5.
const TOKEN: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0";

const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The requests, in order.
pub(crate) fn requests() -> Vec<Request> {
    let mut requests = vec![post("/api/v1/namespaces", &json!({"metadata": {"name": "by-hand"}}))];
    requests.extend(without_a_kind());
    requests.extend(below_subresources());
    requests.extend(entries_of_other_versions());
    requests.extend(claims_that_grow());
    // Where a list goes on, its token says the revision.
    for version in ["7", "x"] {
        requests.push(get(format!("{MAPS}?continue={TOKEN}&resourceVersion={version}")));
    }
    requests
}

fn send(method: Method, target: impl Into<String>, content_type: &'static str, body: String) -> Request {
    Request { method, content_type: Some(content_type), body: Some(body), ..post(target, &Value::Null) }
}

fn merge(target: impl Into<String>, patch: &Value) -> Request {
    send(Method::PATCH, target, MERGE, patch.to_string())
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "tests.berth.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 3}})
}

/// A custom resource that does not say its kind is refused in words that depend on how strictly it is read.
fn without_a_kind() -> Vec<Request> {
    let bodies = ["{\"spec\": {\"size\": 1}}", " {\"apiVersion\": \"v9\"}\n", "null", "{\"kind\": \"\"}"];
    let mut requests = Vec::new();
    for validation in ["Ignore", "Warn", "Strict"] {
        let target = format!("{WIDGETS}?fieldValidation={validation}");
        for body in bodies {
            requests.push(send(Method::POST, &target, "application/json", body.to_owned()));
        }
        requests.push(send(Method::POST, &target, YAML, "spec:\n  size: 1\napiVersion: b/v1\n".to_owned()));
        let one = format!("{WIDGETS}/a?fieldValidation={validation}");
        requests.push(send(Method::PUT, one, "application/json", bodies[0].to_owned()));
    }
    requests
}

/// What follows a subresource of a custom resource is not looked at; what follows one of a built-in kind is.
fn below_subresources() -> Vec<Request> {
    vec![
        post(WIDGETS, &widget("a")),
        post(MAPS, &json!({"metadata": {"name": "a"}})),
        get(format!("{WIDGETS}/a/status/nothing")),
        get(format!("{WIDGETS}/a/scale/nothing/at/all")),
        get(format!("{WIDGETS}/a/nothing/at/all")),
        merge(format!("{WIDGETS}/a/status/nothing"), &json!({"status": {"phase": "Ready"}})),
        get(format!("{MAPS}/a/status/nothing")),
        get("/api/v1/namespaces/by-hand/status/nothing"),
    ]
}

/// Entries of managers under versions that the kind has not.
fn entries_of_other_versions() -> Vec<Request> {
    let entry = |manager: &str, version: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}, "time": "2026-01-01T00:00:00Z"})
    };
    let with = |mut object: Value, versions: [&str; 2]| {
        object["metadata"]["labels"] = json!({"a": "b"});
        object["metadata"]["managedFields"] = json!([entry("m1", versions[0]), entry("m2", versions[1])]);
        object
    };
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "by-hand", "name": "x"},
        "reason": "Made", "type": "Normal"});
    let applied = |note: &str| {
        let config = json!({"apiVersion": "tests.berth.dev/v1", "kind": "Widget",
            "metadata": {"name": "v0", "annotations": {"note": note}}});
        send(Method::PATCH, format!("{WIDGETS}/v0?fieldManager=m3"), APPLY, config.to_string())
    };
    vec![
        post(WIDGETS, &with(widget("v0"), ["tests.berth.dev/v1", "tests.berth.dev/v0"])),
        applied("one"),
        applied("two"),
        post(MAPS, &with(json!({"metadata": {"name": "b"}}), ["v1", "example.com/v1"])),
        merge(format!("{MAPS}/b"), &json!({"data": {"a": "b"}})),
        post(EVENTS, &event),
        merge(format!("{OTHER_EVENTS}/e"), &json!({"metadata": {"labels": {"a": "b"}}})),
        merge(format!("{EVENTS}/e"), &json!({"metadata": {"labels": {"c": "d"}}})),
    ]
}

/// A claim grows when it is bound and its class lets it.
fn claims_that_grow() -> Vec<Request> {
    let class = |name: &str, grows: bool| json!({"metadata": {"name": name}, "provisioner": "tests.berth.dev/none", "allowVolumeExpansion": grows});
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let mut requests =
        vec![post(classes, &class("by-hand-grows", true)), post(classes, &class("by-hand-stays", false))];
    for class in ["by-hand-grows", "by-hand-stays", "by-hand-none", ""] {
        let name = format!("c-{class}x");
        let size = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": class, "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}});
        let one = format!("{CLAIMS}/{name}");
        requests.extend([
            post(CLAIMS, &claim),
            merge(&one, &size("2Gi")),
            merge(
                format!("{one}/status"),
                &json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
            ),
            merge(&one, &size("1024Mi")),
            merge(&one, &size("2Gi")),
        ]);
    }
    requests
}
