//! Patches of every kind.

use http::Method;
use serde_json::{Value, json};

use super::{APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC, Walk};
use crate::exchange::Request;
use crate::vocabulary::{Kind, spoil, words};

impl Walk {
    /// A change to some of what `body` makes: a part of another body, with some fields taken away.
    fn fragment(&mut self, kind: &Kind) -> Value {
        let mut fragment = match self.random.below(4) {
            0 => json!({"metadata": {"labels": {"colour": *self.random.pick(&["red", "green", "blue"])}}}),
            1 => json!({"metadata": {"annotations": {"note": words(&mut self.random)}}}),
            _ => {
                let mut body = (kind.body)(&mut self.random);
                self.fill(&mut body, "widgets");
                body
            }
        };
        if self.random.chance(15) {
            fragment["metadata"]["labels"]["colour"] = Value::Null;
        }
        if self.random.chance(6) {
            fragment["metadata"]["resourceVersion"] = "{rv}".into();
        }
        if self.random.chance(5) {
            fragment["metadata"]["finalizers"] =
                if self.random.chance(50) { Value::Null } else { json!(["berth.dev/hold"]) };
        }
        if let Some(spec) = fragment.get_mut("spec").and_then(Value::as_object_mut) {
            let keys: Vec<String> = spec.keys().cloned().collect();
            if !keys.is_empty() && self.random.chance(25) {
                spec.insert(self.random.pick(&keys).clone(), Value::Null);
            }
        }
        fragment
    }

    pub(super) fn merge_patch(&mut self, kind: &Kind) -> Request {
        let mut fragment = self.fragment(kind);
        if self.random.chance(12) {
            spoil(&mut self.random, kind, &mut fragment);
        }
        let (path, query) = (self.path(kind), self.query(&[]));
        Self::request(Method::PATCH, format!("{path}{query}"), MERGE_PATCH, &fragment)
    }

    pub(super) fn json_patch(&mut self, kind: &Kind) -> Request {
        let mut operations = Vec::new();
        for _ in 0..=self.random.below(2) {
            operations.push(match self.random.below(7) {
                0 => json!({"op": "add", "path": "/metadata/labels", "value": {"colour": "red"}}),
                1 => json!({"op": "replace", "path": "/metadata/labels/colour", "value": "blue"}),
                2 => json!({"op": "remove", "path": "/metadata/labels/colour"}),
                3 => json!({"op": "test", "path": "/metadata/labels/colour", "value": "red"}),
                4 => json!({"op": "add", "path": "/metadata/annotations", "value": {"note": "patched"}}),
                5 => json!({"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}),
                _ => json!({"op": "move", "from": "/metadata/annotations/note", "path": "/metadata/annotations/moved"}),
            });
        }
        let (path, query) = (self.path(kind), self.query(&[]));
        Self::request(Method::PATCH, format!("{path}{query}"), JSON_PATCH, &Value::from(operations))
    }

    pub(super) fn strategic(&mut self, kind: &Kind) -> Request {
        let mut fragment = self.fragment(kind);
        if kind.kind == "Pod" || kind.kind == "Deployment" {
            let pods = if kind.kind == "Pod" { json!({}) } else { json!({"template": {"spec": {}}}) };
            fragment["spec"] = pods;
            let spec = if kind.kind == "Pod" {
                &mut fragment["spec"]
            } else {
                &mut fragment["spec"]["template"]["spec"]
            };
            match self.random.below(8) {
                0 => spec["containers"] = json!([{"name": "c0", "image": "busybox:2"}]),
                1 => spec["containers"] = json!([{"name": "c1", "$patch": "delete"}]),
                2 => {
                    spec["containers"] = json!([{"name": "c0", "env": [{"name": "A", "$patch": "delete"}, {"name": "Z", "value": "z"}]}])
                }
                3 => spec["containers"] = json!([{"name": "c9", "image": "x"}]),
                4 => {
                    spec["containers"] = json!([{"name": "c0", "image": "y"}]);
                    spec["$setElementOrder/containers"] = json!([{"name": "c1"}, {"name": "c0"}]);
                }
                5 => spec["tolerations"] = json!([{"key": "q", "operator": "Exists"}]),
                6 => spec["containers"] = json!([{"image": "nameless"}]),
                _ => spec["nodeSelector"] = json!({"disk": Value::Null, "cpu": "fast"}),
            }
        }
        if kind.kind == "Node" && self.random.chance(50) {
            fragment["spec"] = json!({"taints": [{"key": "n", "effect": "NoSchedule"}]});
        }
        if kind.kind == "ConfigMap" && self.random.chance(30) {
            fragment["data"] = json!({"$patch": "replace", "only": "this"});
        }
        if self.random.chance(8) {
            fragment["metadata"]["finalizers"] = json!(["berth.dev/other"]);
        }
        // Of a list that is added to and taken from at once, the real server does first what a Go map happens to name first.
        if self.random.chance(4) && fragment["metadata"].get("finalizers").is_none() {
            fragment["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!(["berth.dev/hold"]);
        }
        let (path, query) = (self.path(kind), self.query(&[]));
        Self::request(Method::PATCH, format!("{path}{query}"), STRATEGIC, &fragment)
    }

    pub(super) fn apply(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let mut body = self.body(kind, Some(name.clone()));
        if self.random.chance(10) {
            self.spoiled(kind, &mut body);
        }
        if kind.status && self.random.chance(8) {
            body["status"] = (kind.status_body)(&mut self.random);
        }
        let manager = if self.random.chance(97) {
            format!("fieldManager={}", self.random.pick(&["m1", "m2", "m3"]))
        } else {
            String::new()
        };
        let force = *self.random.pick(&["", "", "force=true", "force=false"]);
        let sub = if kind.status && self.random.chance(15) { "/status" } else { "" };
        let mut parts: Vec<&str> =
            [manager.as_str(), force].into_iter().filter(|part| !part.is_empty()).collect();
        if self.random.chance(10) {
            parts.push("dryRun=All");
        }
        let query = if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) };
        Self::request(
            Method::PATCH,
            format!("{}/{name}{sub}{query}", kind.collection(&self.namespace)),
            APPLY,
            &body,
        )
    }
}
