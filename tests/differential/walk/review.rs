//! Questions about who may do what.

use http::Method;
use serde_json::json;

use super::Walk;
use crate::exchange::Request;

impl Walk {
    /// May somebody do something? Only about those to whom no script gives any right: when a right is known to the part of
    /// the real server that decides is a matter of time.
    pub(super) fn review(&mut self) -> Request {
        let mut attributes = json!({"verb": *self.random.pick(&["get", "list", "*"]), "resource": *self.random.pick(&["pods", "widgets", "*"])});
        match self.random.below(4) {
            0 => attributes["namespace"] = self.namespace.as_str().into(),
            1 => attributes["group"] = "tests.berth.dev".into(),
            2 => {
                attributes["fieldSelector"] = json!({"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]})
            }
            _ => {}
        }
        let mut spec = json!({"resourceAttributes": attributes});
        match self.random.below(5) {
            0 => {
                spec = json!({"nonResourceAttributes": {"path": *self.random.pick(&["/healthz", "/secret"]), "verb": "get"}})
            }
            1 => spec["nonResourceAttributes"] = json!({"path": "/x", "verb": "get"}),
            2 => spec = json!({}),
            _ => {}
        }
        let (kind, plural) = *self.random.pick(&[
            ("SubjectAccessReview", "subjectaccessreviews"),
            ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
            ("LocalSubjectAccessReview", "localsubjectaccessreviews"),
        ]);
        if kind != "SelfSubjectAccessReview" {
            match self.random.below(4) {
                0 => spec["groups"] = json!(["system:masters"]),
                1 => spec["user"] = "nobody".into(),
                2 => {
                    spec["user"] = "nobody".into();
                    spec["groups"] = json!(["system:authenticated"]);
                }
                _ => {}
            }
        }
        let place = if kind == "LocalSubjectAccessReview" {
            format!("namespaces/{}/", self.namespace)
        } else {
            String::new()
        };
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        Self::request(
            Method::POST,
            format!("/apis/authorization.k8s.io/v1/{place}{plural}"),
            "application/json",
            &body,
        )
    }
}
