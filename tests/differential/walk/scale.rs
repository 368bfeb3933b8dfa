//! Requests about how many replicas there are.

use http::Method;
use serde_json::json;

use super::{JSON_PATCH, MERGE_PATCH, Walk};
use crate::exchange::{Request, get};
use crate::vocabulary::Kind;

impl Walk {
    pub(super) fn scale(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let query = self.query(&[]);
        let target = format!("{}/{name}/scale{query}", kind.collection(&self.namespace));
        let replicas = match self.random.below(6) {
            0 => json!(-1),
            1 => json!("two"),
            // More than bodies ever have: after an apply the real server writes a scale that changes nothing all the same.
            _ => json!(5 + self.random.below(4)),
        };
        match self.random.below(4) {
            0 => get(format!("{}/{name}/scale", kind.collection(&self.namespace))),
            1 => Self::request(Method::PATCH, target, MERGE_PATCH, &json!({"spec": {"replicas": replicas}})),
            2 => Self::request(
                Method::PATCH,
                target,
                JSON_PATCH,
                &json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}]),
            ),
            _ => {
                let mut body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": self.namespace}, "spec": {"replicas": replicas}});
                if self.random.chance(50) {
                    body["metadata"]["resourceVersion"] = "{rv}".into();
                }
                Self::request(Method::PUT, target, "application/json", &body)
            }
        }
    }
}
