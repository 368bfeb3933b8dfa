//! Requests that make, replace and delete objects.

use http::Method;
use serde_json::json;

use super::{MERGE_PATCH, Walk};
use crate::exchange::Request;
use crate::vocabulary::Kind;

impl Walk {
    pub(super) fn create(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let mut body = self.body(kind, Some(name));
        if self.random.chance(5) {
            // Each has a place of its own in lists, whatever it ends in.
            self.made += 1;
            let base = if kind.namespaced {
                format!("g{}-gen-", self.made)
            } else {
                format!("{}-g{}-gen-", self.namespace, self.made)
            };
            body["metadata"] = json!({"generateName": base});
        }
        if kind.status && self.random.chance(20) {
            body["status"] = (kind.status_body)(&mut self.random);
        }
        if self.random.chance(3) {
            body["metadata"]["namespace"] = "elsewhere".into();
        }
        if self.random.chance(2) {
            body["apiVersion"] = "other/v1".into();
        }
        self.spoiled(kind, &mut body);
        let query = self.query(&[]);
        Self::request(
            Method::POST,
            format!("{}{query}", kind.collection(&self.namespace)),
            "application/json",
            &body,
        )
    }

    pub(super) fn update(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let mut body = self.body(kind, Some(name.clone()));
        match self.random.below(10) {
            0 => {}
            1 => body["metadata"]["resourceVersion"] = "1".into(),
            _ => body["metadata"]["resourceVersion"] = "{rv}".into(),
        }
        if self.random.chance(10) {
            body["metadata"]["uid"] = "{uid}".into();
        }
        if self.random.chance(4) {
            body["metadata"]["name"] = "other".into();
        }
        self.spoiled(kind, &mut body);
        let query = self.query(&[]);
        Self::request(
            Method::PUT,
            format!("{}/{name}{query}", kind.collection(&self.namespace)),
            "application/json",
            &body,
        )
    }

    pub(super) fn update_status(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let mut body = self.body(kind, Some(name.clone()));
        body["metadata"]["resourceVersion"] = "{rv}".into();
        body["status"] = (kind.status_body)(&mut self.random);
        let query = self.query(&[]);
        let target = format!("{}/{name}/status{query}", kind.collection(&self.namespace));
        if self.random.chance(50) {
            let patch = json!({"status": body["status"], "metadata": {"labels": {"from": "status"}}});
            return Self::request(Method::PATCH, target, MERGE_PATCH, &patch);
        }
        Self::request(Method::PUT, target, "application/json", &body)
    }

    pub(super) fn delete(&mut self, kind: &Kind) -> Request {
        let path = self.path(kind);
        let query = *self.random.pick(&[
            "",
            "",
            "",
            "",
            "?dryRun=All",
            "?gracePeriodSeconds=0",
            // Only tried: the hub has a collector of garbage, which would go on to let the dependents go.
            "?propagationPolicy=Orphan&dryRun=All",
            "?propagationPolicy=Sideways",
            "?dryRun=Some",
        ]);
        Request {
            method: Method::DELETE,
            target: format!("{path}{query}"),
            content_type: Some("application/json"),
            accept: None,
            user: None,
            protobuf: false,
            body: self.delete_options(),
        }
    }

    fn delete_options(&mut self) -> Option<String> {
        let body = match self.random.below(9) {
            0 => json!({"preconditions": {"uid": "{uid}"}}),
            1 => json!({"preconditions": {"resourceVersion": "1"}}),
            2 => json!({"propagationPolicy": "Background"}),
            3 => json!({"gracePeriodSeconds": 0}),
            4 => json!({"dryRun": ["All"]}),
            5 if self.random.chance(30) => json!({"gracePeriodSeconds": "soon"}),
            6 if self.random.chance(30) => {
                json!({"orphanDependents": true, "propagationPolicy": "Background", "dryRun": ["All"]})
            }
            7 if self.random.chance(30) => {
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "unknown": 1})
            }
            _ => return None,
        };
        Some(body.to_string())
    }

    /// Only what this script made, where others may have made something.
    pub(super) fn delete_many(&mut self, kind: &Kind) -> Request {
        let own = kind.own(self.number);
        let query = *self.random.pick(&[
            "labelSelector=colour%3Dred",
            "labelSelector=colour%3Dred&dryRun=All",
            "labelSelector=colour+in+(red,blue),colour!%3Dblue",
            "labelSelector=colour+is+red",
            "labelSelector=colour",
            "labelSelector=!colour",
            "labelSelector=colour%3Dgreen&gracePeriodSeconds=0",
            "labelSelector=colour%3Dgreen&propagationPolicy=Orphan&dryRun=All",
            "labelSelector=colour%3Dred&limit=1",
            "labelSelector=colour%3Dred&dryRun=Some",
            "labelSelector=colour%3Dred&continue=garbage",
        ]);
        let query = match self.random.below(8) {
            0 if own.is_empty() => "fieldSelector=metadata.name%3Da".to_owned(),
            1 if own.is_empty() => "fieldSelector=metadata.name!%3Da,metadata.name!%3Db".to_owned(),
            2 if own.is_empty() => "fieldSelector=spec.nothing%3Da".to_owned(),
            3 if kind.kind == "Widget" => "fieldSelector=spec.colour%3Dred".to_owned(),
            _ => format!("{query}{own}"),
        };
        let body = if self.random.chance(25) { self.delete_options() } else { None };
        Request {
            method: Method::DELETE,
            target: format!("{}?{query}", kind.collection(&self.namespace)),
            content_type: body.as_ref().map(|_| "application/json"),
            accept: None,
            user: None,
            protobuf: false,
            body,
        }
    }

    /// Asks a pod to go, or to run somewhere.
    pub(super) fn dispose(&mut self) -> Request {
        let name = *self.random.pick(&["a", "b", "c"]);
        let query = self.query(&[]);
        let pod = format!("/api/v1/namespaces/{}/pods/{name}", self.namespace);
        if self.random.chance(40) {
            // Only tried: who runs on a node that is not there is cleaned up by somebody, or not.
            let mut body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}});
            match self.random.below(8) {
                0 => body["target"]["kind"] = "Pod".into(),
                1 => body["target"]["name"] = "".into(),
                2 => body["metadata"]["name"] = "other".into(),
                _ => {}
            }
            let target = format!("{pod}/binding?dryRun=All");
            return Self::request(Method::POST, target, "application/json", &body);
        }
        let mut body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        match self.random.below(8) {
            0 => body["deleteOptions"] = json!({"dryRun": ["All"]}),
            1 => body["deleteOptions"] = json!({"gracePeriodSeconds": 0}),
            2 => body["deleteOptions"] = json!({"preconditions": {"resourceVersion": "1"}}),
            3 => body["metadata"]["name"] = "other".into(),
            4 => body["apiVersion"] = "policy/v9".into(),
            _ => {}
        }
        Self::request(Method::POST, format!("{pod}/eviction{query}"), "application/json", &body)
    }
}
