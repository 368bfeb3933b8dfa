//! Somebody who talks to an API server: requests as they go over the wire, answers as they come back.

#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use berth_bed::Bed;
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::{Client, Config, client::Body};
use serde_json::{Value, json};

use crate::waiting::{eventually, in_time};

/// What came back.
#[derive(Debug)]
pub struct Answer {
    request: String,
    /// The status code.
    pub code: u16,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    /// The body; text that is no JSON is a string.
    pub body: Value,
}

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.code), "{}: {} {}", self.request, self.code, self.body);
        self.body
    }

    /// The Status of a refusal with that code.
    #[track_caller]
    pub fn refused(self, code: u16) -> Refusal {
        assert_eq!(self.code, code, "{}: {}", self.request, self.body);
        Refusal(self.body)
    }
}

/// A Status that says no.
#[derive(Debug)]
pub struct Refusal(pub Value);

impl Refusal {
    /// Its reason.
    pub fn reason(&self) -> &str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    /// Its message.
    pub fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    /// The reasons of its causes.
    pub fn causes(&self) -> Vec<&str> {
        let causes = self.0["details"]["causes"].as_array();
        causes.into_iter().flatten().filter_map(|cause| cause["reason"].as_str()).collect()
    }
}

/// A client that neither retries nor interprets.
#[derive(Clone)]
pub struct Caller {
    client: Client,
}

impl Caller {
    /// The administrator.
    pub fn admin(bed: &Bed) -> Self {
        Self::of(bed.config())
    }

    /// Whoever the configuration says.
    pub fn of(mut config: Config) -> Self {
        // A refusal is what many scenarios are about.
        config.default_retry = false;
        Self { client: Client::try_from(config).unwrap() }
    }

    /// Somebody else, by impersonation.
    pub fn acting_as(bed: &Bed, user: &str, groups: &[&str]) -> Self {
        let mut config = bed.config();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(ToString::to_string).collect());
        Self::of(config)
    }

    /// Whoever the token says, and nobody else: without the administrator's certificate.
    pub fn with_token(bed: &Bed, token: &str) -> Self {
        let mut config = bed.config();
        config.auth_info = kube::config::AuthInfo::default();
        config.auth_info.token = Some(token.to_owned().into());
        Self::of(config)
    }

    /// Any request.
    pub async fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let request = format!("{method} {target}");
        let mut builder = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.into_bytes()));
        let response = in_time(&request, self.client.send(builder.body(body).unwrap())).await;
        let (parts, body) = response.unwrap_or_else(|error| panic!("{request}: {error}")).into_parts();
        let bytes = in_time(&request, body.collect()).await.unwrap().to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let warnings = parts.headers.get_all("warning").iter();
        Answer {
            request,
            code: parts.status.as_u16(),
            warnings: warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect(),
            body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()),
        }
    }

    async fn write(&self, method: Method, target: &str, kind: &str, body: &Value) -> Answer {
        self.send(method, target, &[("content-type", kind)], Some(body.to_string())).await
    }

    /// Reads.
    pub async fn get(&self, target: &str) -> Answer {
        self.send(Method::GET, target, &[], None).await
    }

    /// Reads in another form.
    pub async fn get_as(&self, target: &str, accept: &str) -> Answer {
        self.send(Method::GET, target, &[("accept", accept)], None).await
    }

    /// Creates.
    pub async fn post(&self, target: &str, body: &Value) -> Answer {
        self.write(Method::POST, target, "application/json", body).await
    }

    /// Replaces.
    pub async fn put(&self, target: &str, body: &Value) -> Answer {
        self.write(Method::PUT, target, "application/json", body).await
    }

    /// Patches by JSON merge patch.
    pub async fn merge(&self, target: &str, patch: &Value) -> Answer {
        self.write(Method::PATCH, target, "application/merge-patch+json", patch).await
    }

    /// Server-side apply; the target carries `fieldManager` and, when wanted, `force`.
    pub async fn apply_to(&self, target: &str, config: &Value) -> Answer {
        self.write(Method::PATCH, target, "application/apply-patch+yaml", config).await
    }

    /// Deletes.
    pub async fn delete(&self, target: &str) -> Answer {
        self.send(Method::DELETE, target, &[], None).await
    }

    /// Deletes with `DeleteOptions`.
    pub async fn delete_with(&self, target: &str, options: &Value) -> Answer {
        self.write(Method::DELETE, target, "application/json", options).await
    }

    /// Applies every object of a YAML text, in order, as `kubectl apply --server-side` would, and gives back the last.
    pub async fn apply(&self, text: &str) -> Value {
        let mut last = Value::Null;
        for document in documents(text) {
            let target = self.target_of(&document).await;
            let answer =
                self.apply_to(&format!("{target}?fieldManager=scenario&force=true"), &document).await;
            last = answer.ok();
        }
        last
    }

    /// Where an object lives, by what the server says it serves.
    async fn target_of(&self, object: &Value) -> String {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        // A definition that was just established may need a moment until it is served.
        let (plural, namespaced) = eventually(&format!("{kind} of {version} being served"), async || {
            let found = self.get(&root).await;
            let resources = found.body["resources"].as_array()?.iter();
            let mut main = resources.filter(|resource| !resource["name"].as_str().unwrap().contains('/'));
            let resource = main.find(|resource| resource["kind"] == kind)?;
            Some((resource["name"].as_str()?.to_owned(), resource["namespaced"].as_bool()?))
        })
        .await;
        if namespaced {
            let namespace = object["metadata"]["namespace"].as_str().expect("a namespace");
            format!("{root}/namespaces/{namespace}/{plural}/{name}")
        } else {
            format!("{root}/{plural}/{name}")
        }
    }

    /// Waits until an object is as it should be.
    pub async fn until(&self, target: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let look = async || {
            last = self.get(target).await.body;
            good(&last).then(|| last.clone())
        };
        eventually(&format!("{target}: {what}"), look).await
    }

    /// Waits until an object is no more.
    pub async fn until_gone(&self, target: &str) {
        let look = async || (self.get(target).await.code == 404).then_some(());
        eventually(&format!("{target} gone"), look).await;
    }

    /// Opens a watch; the target carries its query, `watch=true` is added.
    pub async fn watch(&self, target: &str) -> Watching {
        self.watch_as(target, "application/json").await
    }

    /// Opens a watch in another form.
    pub async fn watch_as(&self, target: &str, accept: &str) -> Watching {
        let separator = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{separator}watch=true");
        let request = Request::get(&target).header("accept", accept).body(Body::empty()).unwrap();
        let response = in_time(&target, self.client.send(request)).await.unwrap();
        assert_eq!(response.status(), 200, "{target}");
        let body = response.into_body().into_data_stream().map_err(std::io::Error::other);
        let lines = body.into_async_read().lines();
        let events = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        Watching { target, events: events.boxed() }
    }
}

/// A watch that is open.
pub struct Watching {
    target: String,
    events: BoxStream<'static, Value>,
}

impl Watching {
    /// The next event, whole.
    pub async fn next(&mut self) -> Value {
        let event = in_time(&self.target, self.events.next()).await;
        event.unwrap_or_else(|| panic!("{} ended", self.target))
    }

    /// The next event's type and object's name, bookmarks left out.
    pub async fn step(&mut self) -> (String, String) {
        loop {
            let event = self.next().await;
            let kind = event["type"].as_str().unwrap().to_owned();
            if kind != "BOOKMARK" {
                let name = event["object"]["metadata"]["name"].as_str();
                return (kind, name.unwrap_or_else(|| panic!("{}: {event}", self.target)).to_owned());
            }
        }
    }
}

/// The documents of a YAML text.
pub fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").filter(|document| !document.trim().is_empty());
    documents.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// The path of something in a namespace of the core group, as `configmaps/a`.
pub fn core(namespace: &str, rest: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{rest}")
}

/// The path of something in a namespace of a group's version, as `apps/v1` and `replicasets/a`.
pub fn grouped(version: &str, namespace: &str, rest: &str) -> String {
    format!("/apis/{version}/namespaces/{namespace}/{rest}")
}

/// A ConfigMap with one value.
pub fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

/// The condition of that type, or null.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// A field that is text.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {object}"))
}
