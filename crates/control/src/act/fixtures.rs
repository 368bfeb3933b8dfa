//! A writer to a server that always says the same.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use berth_engine::model::ObjectKey;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::events::Events;
use super::write::{Target, Write};
use super::writer::{Job, WriteError, Writer, Wrote};
use crate::lead::Fence;
use crate::serve::Metrics;
use crate::world::{Kind, Told};

/// What a server was asked: the method, the path, the kind of body, and the body.
pub(super) type Asked = Arc<Mutex<Vec<(Method, String, String, Value)>>>;

/// A writer to a server that always gives this answer; what it was asked, and what the loop is told.
pub(super) fn writer(code: u16, answer: Value) -> (Writer, Asked, mpsc::Receiver<Told>) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let server = tower::service_fn(move |request: Request<Body>| {
        let (log, answer) = (Arc::clone(&log), answer.to_string());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let content =
                parts.headers.get(header::CONTENT_TYPE).map(|text| text.to_str().unwrap().to_owned());
            let body = serde_json::from_slice(&body).unwrap_or_default();
            log.lock().unwrap().push((
                parts.method,
                parts.uri.path().to_owned(),
                content.unwrap_or_default(),
                body,
            ));
            Ok::<_, Infallible>(
                Response::builder().status(code).body(Body::from(answer.into_bytes())).unwrap(),
            )
        }
    });
    let client = Client::new(server, "default");
    let (told, hearing) = mpsc::channel(8);
    let metrics = Arc::new(Metrics::default());
    let (events, _) = Events::start(
        client.clone(),
        Fence::open(),
        "me".to_owned(),
        Arc::clone(&metrics),
        crate::Pace::default(),
    );
    let reviewer = Arc::default();
    (Writer { client, fence: Fence::open(), told, events, metrics, reviewer }, asked, hearing)
}

pub(super) async fn run(writer: Writer, writes: Vec<Write>) -> Result<Wrote, WriteError> {
    let term = writer.fence.term().expect("nobody else can lead");
    writer.run(Job { term, writes, notes: Vec::new() }).await
}

pub(super) fn pod() -> Target {
    let uid = Some("u".to_owned());
    Target { kind: Kind::Pod, key: ObjectKey::new("n", "p"), uid, resource_version: None }
}

pub(super) fn ending(metadata: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "9"}});
    for (name, value) in metadata.as_object().unwrap() {
        pod["metadata"][name] = value.clone();
    }
    pod
}
