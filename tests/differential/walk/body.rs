//! Bodies of requests, and what may be wrong with them or with the request around them.

use http::Method;
use serde_json::{Value, json};

use super::{APPLY, JSON_PATCH, Walk};
use crate::exchange::Request;
use crate::vocabulary::{Kind, spoil, words};

impl Walk {
    pub(super) fn body(&mut self, kind: &Kind, name: Option<String>) -> Value {
        let mut body = (kind.body)(&mut self.random);
        self.fill(&mut body, name.as_deref().unwrap_or_default());
        body["apiVersion"] = kind.api_version.into();
        body["kind"] = kind.kind.into();
        body["metadata"] = json!({});
        if let Some(name) = name {
            body["metadata"]["name"] = name.into();
        }
        if self.random.chance(60) {
            let colour = *self.random.pick(&["red", "green", "blue"]);
            body["metadata"]["labels"] = json!({"colour": colour});
        }
        if self.random.chance(20) {
            body["metadata"]["annotations"] = json!({"note": words(&mut self.random)});
        }
        if self.random.chance(10) {
            body["metadata"]["finalizers"] = json!(["berth.dev/hold"]);
        }
        body
    }

    /// What a body says of where it is.
    pub(super) fn fill(&self, body: &mut Value, name: &str) {
        for about in ["involvedObject", "regarding"] {
            if let Some(namespace) = body.get_mut(about).and_then(|about| about.get_mut("namespace")) {
                *namespace = self.namespace.as_str().into();
            }
        }
        if let Some(Value::String(plural)) = body.pointer_mut("/spec/names/plural") {
            *plural = name.split('.').next().unwrap_or_default().to_owned();
        }
    }

    /// What may be wrong with a request as such: how it is written, how it is labelled, who sends it.
    pub(super) fn disturb(&mut self, request: &mut Request) {
        match self.random.below(60) {
            0 if request.content_type == Some("application/json") => {
                request.content_type = Some("application/yaml")
            }
            1 if request.method == Method::PATCH => {
                request.content_type = *self.random.pick(&[
                    None,
                    Some("application/json"),
                    Some("text/plain"),
                    Some(JSON_PATCH),
                    Some(APPLY),
                ]);
            }
            2 if request.body.is_some() => {
                request.content_type =
                    *self.random.pick(&[None, Some("text/plain"), Some("application/x-www-form-urlencoded")])
            }
            3 | 4 => {
                if let Some(body) = &mut request.body {
                    *body = twice(
                        body,
                        *self.random.pick(&["\"kind\":", "\"name\":", "\"spec\":{", "\"labels\":{"]),
                    );
                }
            }
            5 => {
                if let Some(body) = &mut request.body {
                    body.truncate(body.len() / 2);
                }
            }
            6 | 7 => request.user = Some(*self.random.pick(&["nobody", "system:serviceaccount:x:y"])),
            8 => {
                request.accept = *self.random.pick(&[
                    Some("text/html"),
                    Some("*/*"),
                    Some("application/json;as=Nothing;v=v1;g=meta.k8s.io"),
                ])
            }
            _ => {}
        }
    }

    pub(super) fn spoiled(&mut self, kind: &Kind, body: &mut Value) {
        if self.random.chance(15) {
            spoil(&mut self.random, kind, body);
        }
    }
}

/// A text that says one of its keys twice.
fn twice(body: &str, key: &str) -> String {
    let again = if key.ends_with('{') { format!("{key}}},") } else { format!("{key}\"Twice\",") };
    body.replacen(key, &format!("{again}{key}"), 1)
}
