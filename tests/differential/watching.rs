//! Watches that are open while a script runs, and what they saw.

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::exchange::Server;

/// The name of the object whose appearance ends a watch.
pub(crate) const LAST: &str = "zz-last";

/// How long a watch may stay silent before the script is called broken.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Starts a watch, and is back when it has begun; it ends when it has seen [`LAST`] come.
pub(crate) async fn watch(
    server: &Server,
    target: &str,
    accept: Option<&'static str>,
) -> JoinHandle<Vec<Value>> {
    let client = server.client.clone();
    let mut request = http::Request::get(target);
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    let request = request.body(Body::empty()).expect("a well-formed request");
    let response = client.send(request).await.expect("the server answers");
    assert_eq!(response.status(), 200, "a watch begins");
    tokio::spawn(async move {
        let mut body = response.into_body();
        let (mut pending, mut seen) = (Vec::new(), Vec::new());
        loop {
            let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
            let Ok(Some(Ok(frame))) = frame else {
                seen.push(Value::String(format!("the watch ended early: {frame:?}")));
                return seen;
            };
            pending.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).expect("a line is an event");
                let last = event
                    .pointer("/object/metadata/name")
                    .or(event.pointer("/object/rows/0/object/metadata/name"))
                    == Some(&Value::from(LAST));
                if last {
                    return seen;
                }
                if let Some(event) = comparable(event) {
                    seen.push(event);
                }
            }
        }
    })
}

/// What a bookmark says when the state that was there at first has been told.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Bookmarks come when a server pleases and say where it is; that the initial events are over is told once. Beyond that, the
/// real server shows in them what an object of the kind is when nothing is known of it.
fn comparable(mut event: Value) -> Option<Value> {
    if event["type"] != "BOOKMARK" {
        return Some(event);
    }
    event
        .pointer("/object/metadata/annotations")
        .and_then(|annotations| annotations.get(INITIAL_EVENTS_END))?;
    if let Some(Value::Object(object)) = event.get_mut("object") {
        object.retain(|field, _| ["apiVersion", "kind", "metadata"].contains(&field.as_str()));
        if let Some(Value::Object(meta)) = object.get_mut("metadata") {
            meta.retain(|field, _| field == "annotations");
            if let Some(Value::Object(annotations)) = meta.get_mut("annotations") {
                annotations.retain(|name, _| name == INITIAL_EVENTS_END);
            }
        }
    }
    Some(event)
}
