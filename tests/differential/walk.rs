//! A random walk: one request after another about objects of a few kinds.

mod body;
mod change;
mod patch;
mod read;
mod review;
mod scale;

use http::Method;
use serde_json::{Value, json};

use crate::exchange::Request;
use crate::script::Flavour;
use crate::vocabulary::Kind;
use berth_tests::random::Random;

pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
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
    /// How many names were left to the server.
    pub(crate) made: usize,
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
        if request.method != Method::GET && self.random.chance(6) {
            request.accept = Some(*self.random.pick(&[TABLE, PARTIAL]));
        }
        self.disturb(&mut request);
        if !kind.custom && [Method::POST, Method::PUT].contains(&request.method) && self.random.chance(15) {
            request.protobuf = true;
        }
        request
    }

    fn choose(&mut self, kind: &'static Kind) -> Request {
        let roll = self.random.below(100);
        match self.flavour {
            Flavour::Mixed => match roll {
                0..20 => self.create(kind),
                20..34 => self.update(kind),
                34..40 if kind.status => self.update_status(kind),
                34..44 => self.merge_patch(kind),
                44..51 => self.json_patch(kind),
                51..56 => self.apply(kind),
                56..60 => self.strategic(kind),
                60..73 => self.list(kind),
                73..75 if !kind.only_tried() => self.delete_many(kind),
                _ => self.any(kind, roll),
            },
            Flavour::Apply | Flavour::Strategic => match roll {
                0..20 => self.create(kind),
                20..75 if self.flavour == Flavour::Apply => self.apply(kind),
                20..75 => self.strategic(kind),
                _ => self.any(kind, roll),
            },
            Flavour::Reading => match roll {
                0..30 => self.create(kind),
                30..60 => self.page(kind),
                60..65 => self.refused_watch(kind),
                65..72 => self.list(kind),
                72..75 => self.delete_many(kind),
                _ => self.any(kind, roll),
            },
        }
    }

    /// The last quarter, whatever a script is about.
    fn any(&mut self, kind: &'static Kind, roll: usize) -> Request {
        match roll {
            75..78 if kind.scales() => self.scale(kind),
            75..78 if kind.kind == "Pod" => self.dispose(),
            78..84 => self.update(kind),
            84..89 => self.delete(kind),
            89..92 => self.merge_patch(kind),
            _ => self.get(kind),
        }
    }

    /// Cluster-scoped objects carry the script's number, so that scripts do not meet.
    fn name(&mut self, kind: &Kind) -> String {
        let names: &[&str] =
            if self.flavour == Flavour::Reading { &["a", "b", "c", "d", "e"] } else { &["a", "b", "c"] };
        let name = *self.random.pick(names);
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
        if self.random.chance(2) {
            parts.push(
                (*self.random.pick(&["dryRun=Some", "fieldValidation=Some", "fieldManager=a%00b"])).into(),
            );
        }
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }

    fn request(method: Method, target: String, content_type: &'static str, body: &Value) -> Request {
        Request {
            method,
            target,
            content_type: Some(content_type),
            accept: None,
            user: None,
            protobuf: false,
            body: Some(body.to_string()),
        }
    }
}

/// The same request through the version that is not stored.
fn other_version(request: &mut Request) {
    request.target = request.target.replacen("/tests.berth.dev/v1/", "/tests.berth.dev/v1beta1/", 1);
    request.body =
        request.body.take().map(|body| body.replace("\"tests.berth.dev/v1\"", "\"tests.berth.dev/v1beta1\""));
}
