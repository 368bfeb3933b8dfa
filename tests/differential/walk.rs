//! A random walk: one request after another about objects of a few kinds.

use http::Method;
use serde_json::{Value, json};

use crate::exchange::{Request, get};
use crate::random::Random;
use crate::script::Flavour;
use crate::vocabulary::{Kind, spoil, words};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
pub(crate) const PARTIAL: &str =
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Where a walk is and what chance it has.
pub(crate) struct Walk {
    pub(crate) random: Random,
    pub(crate) flavour: Flavour,
    pub(crate) namespace: String,
    pub(crate) number: usize,
}

impl Walk {
    pub(crate) fn step(&mut self, kind: &'static Kind) -> Request {
        if self.random.chance(2) {
            return self.review();
        }
        let mut request = self.choose(kind);
        if kind.only_tried() && request.method == Method::DELETE {
            // A body is all that counts then, and must not go wrong.
            request.body = Some(json!({"dryRun": ["All"]}).to_string());
            return request;
        }
        if kind.only_tried() && request.method != Method::GET && !request.target.contains("dryRun") {
            request.target.push_str(if request.target.contains('?') { "&dryRun=All" } else { "?dryRun=All" });
        }
        if kind.kind == "Widget" && self.random.chance(12) {
            other_version(&mut request);
        }
        self.disturb(&mut request);
        request
    }

    fn choose(&mut self, kind: &'static Kind) -> Request {
        let roll = self.random.below(100);
        match (self.flavour, roll) {
            (_, 0..20) => self.create(kind),
            (Flavour::Apply, 20..80) => self.apply(kind),
            (Flavour::Strategic, 20..80) => self.strategic(kind),
            (Flavour::Mixed, 20..34) => self.update(kind),
            (Flavour::Mixed, 34..40) if kind.status => self.update_status(kind),
            (Flavour::Mixed, 34..44) => self.merge_patch(kind),
            (Flavour::Mixed, 44..51) => self.json_patch(kind),
            (Flavour::Mixed, 51..56) => self.apply(kind),
            (Flavour::Mixed, 56..60) => self.strategic(kind),
            (_, 75..77) if kind.scales() => self.scale(kind),
            (Flavour::Mixed, 77..78) if !kind.only_tried() => self.delete_many(kind),
            (Flavour::Mixed, 60..75) => self.list(kind),
            (_, 80..86) => self.update(kind),
            (_, 86..90) => self.delete(kind),
            (_, 90..93) => self.merge_patch(kind),
            _ => self.get(kind),
        }
    }

    /// Cluster-scoped objects carry the script's number, so that scripts do not meet.
    fn name(&mut self, kind: &Kind) -> String {
        let name = *self.random.pick(&["a", "b", "c"]);
        match (kind.namespaced, kind.kind) {
            (true, _) => name.into(),
            (_, "CustomResourceDefinition") if name == "c" => "widgets.tests.berth.dev".into(),
            (_, "CustomResourceDefinition") => format!("{name}{}s.made.berth.dev", self.namespace),
            _ => format!("{name}-{}", self.namespace),
        }
    }

    fn path(&mut self, kind: &Kind) -> String {
        let name = self.name(kind);
        format!("{}/{name}", kind.collection(&self.namespace))
    }

    fn query(&mut self, more: &[&str]) -> String {
        let mut parts: Vec<String> =
            more.iter().filter(|part| !part.is_empty()).map(|part| (*part).to_owned()).collect();
        if self.random.chance(30) {
            parts.push(format!("fieldManager={}", self.random.pick(&["m1", "m2", "m3"])));
        }
        if self.random.chance(12) {
            parts.push("dryRun=All".into());
        }
        if self.random.chance(40) {
            parts.push(format!(
                "fieldValidation={}",
                self.random.pick(&["Strict", "Warn", "Ignore", "Ignore"])
            ));
        }
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    fn body(&mut self, kind: &Kind, name: Option<String>) -> Value {
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
    fn fill(&self, body: &mut Value, name: &str) {
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
    fn disturb(&mut self, request: &mut Request) {
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

    fn spoiled(&mut self, kind: &Kind, body: &mut Value) {
        if self.random.chance(15) {
            spoil(&mut self.random, kind, body);
        }
    }

    fn request(method: Method, target: String, content_type: &'static str, body: &Value) -> Request {
        Request {
            method,
            target,
            content_type: Some(content_type),
            accept: None,
            user: None,
            body: Some(body.to_string()),
        }
    }

    fn create(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let mut body = self.body(kind, Some(name));
        if self.random.chance(5) {
            let base = if kind.namespaced { "gen-".to_owned() } else { format!("{}-gen-", self.namespace) };
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

    fn update(&mut self, kind: &Kind) -> Request {
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

    fn update_status(&mut self, kind: &Kind) -> Request {
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

    fn merge_patch(&mut self, kind: &Kind) -> Request {
        let mut fragment = self.fragment(kind);
        if self.random.chance(12) {
            spoil(&mut self.random, kind, &mut fragment);
        }
        let (path, query) = (self.path(kind), self.query(&[]));
        Self::request(Method::PATCH, format!("{path}{query}"), MERGE_PATCH, &fragment)
    }

    fn json_patch(&mut self, kind: &Kind) -> Request {
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

    fn strategic(&mut self, kind: &Kind) -> Request {
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
        if self.random.chance(4) {
            fragment["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!(["berth.dev/hold"]);
        }
        let (path, query) = (self.path(kind), self.query(&[]));
        Self::request(Method::PATCH, format!("{path}{query}"), STRATEGIC, &fragment)
    }

    fn apply(&mut self, kind: &Kind) -> Request {
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

    fn delete(&mut self, kind: &Kind) -> Request {
        let path = self.path(kind);
        let body = match self.random.below(6) {
            0 => json!({"preconditions": {"uid": "{uid}"}}),
            1 => json!({"preconditions": {"resourceVersion": "1"}}),
            2 => json!({"propagationPolicy": "Background"}),
            3 => json!({"gracePeriodSeconds": 0}),
            4 => json!({"dryRun": ["All"]}),
            _ => Value::Null,
        };
        Request {
            method: Method::DELETE,
            target: path,
            content_type: Some("application/json"),
            accept: None,
            user: None,
            body: (!body.is_null()).then(|| body.to_string()),
        }
    }

    /// Only what this script made, where others may have made something.
    fn delete_many(&mut self, kind: &Kind) -> Request {
        let own = kind.own(self.number);
        let query = *self.random.pick(&[
            "labelSelector=colour%3Dred",
            "labelSelector=colour%3Dred&dryRun=All",
            "labelSelector=colour+is+red",
            "labelSelector=colour",
        ]);
        Request {
            method: Method::DELETE,
            target: format!("{}?{query}{own}", kind.collection(&self.namespace)),
            content_type: None,
            accept: None,
            user: None,
            body: None,
        }
    }

    fn scale(&mut self, kind: &Kind) -> Request {
        let name = self.name(kind);
        let query = self.query(&[]);
        let target = format!("{}/{name}/scale{query}", kind.collection(&self.namespace));
        let replicas = match self.random.below(6) {
            0 => json!(-1),
            1 => json!("two"),
            _ => json!(self.random.below(5)),
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

    /// May somebody do something? Only about those to whom no script gives any right: when a right is known to the part of
    /// the real server that decides is a matter of time.
    fn review(&mut self) -> Request {
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

    fn get(&mut self, kind: &Kind) -> Request {
        let mut request = get(self.path(kind));
        request.accept = *self.random.pick(&[None, None, Some(TABLE), Some(PARTIAL)]);
        if request.accept == Some(TABLE) && self.random.chance(50) {
            request.target.push_str(*self.random.pick(&[
                "?includeObject=None",
                "?includeObject=Object",
                "?includeObject=Metadata",
            ]));
            return request;
        }
        if self.random.chance(10) && kind.status {
            request.target.push_str("/status");
        }
        if self.random.chance(4) {
            request.target.push_str(*self.random.pick(&["/nothing", "/status", "/scale"]));
        }
        request
    }

    fn list(&mut self, kind: &Kind) -> Request {
        let collection = kind.collection(&self.namespace);
        let own = kind.own(self.number);
        let query = match self.random.below(12) {
            0 if kind.namespaced && kind.kind != "ServiceAccount" => format!("limit=1{own}"),
            1 if kind.namespaced && kind.kind != "ServiceAccount" => {
                format!("limit=1&continue={{token}}{own}")
            }
            2 => format!("labelSelector=colour%3Dred{own}"),
            3 => format!("labelSelector=colour+in+(red,blue),colour!%3Dgreen{own}"),
            4 => "labelSelector=colour+is+red".to_owned(),
            5 => format!(
                "fieldSelector=metadata.name%3D{}",
                if kind.namespaced { "a".into() } else { format!("a-s{}", self.number) }
            ),
            6 => "fieldSelector=spec.nothing%3Da".to_owned(),
            7 => format!("resourceVersion=0{own}"),
            8 => "resourceVersionMatch=Exact".to_owned(),
            9 => "limit=1&continue=garbage".to_owned(),
            10 if kind.kind == "Widget" => "fieldSelector=spec.colour%3Dred".to_owned(),
            _ => own.trim_start_matches('&').to_owned(),
        };
        let mut request = get(format!("{collection}?{query}"));
        request.accept = *self.random.pick(&[None, None, None, Some(PARTIAL_LIST), Some(TABLE)]);
        request
    }
}

/// The same request through the version that is not stored.
fn other_version(request: &mut Request) {
    request.target = request.target.replacen("/tests.berth.dev/v1/", "/tests.berth.dev/v1beta1/", 1);
    request.body =
        request.body.take().map(|body| body.replace("\"tests.berth.dev/v1\"", "\"tests.berth.dev/v1beta1\""));
}

/// A text that says one of its keys twice.
fn twice(body: &str, key: &str) -> String {
    let again = if key.ends_with('{') { format!("{key}}},") } else { format!("{key}\"Twice\",") };
    body.replacen(key, &format!("{again}{key}"), 1)
}
