//! One request at a time, with the three outcomes that matter here.

use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::vessel::{Collection, DEFINITIONS, definition};

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A whole answer came back.
    Told { code: u16, body: Value },
    /// None did, or not all of it: whether the request was carried out is unknown.
    Silence,
}

pub(crate) const JSON: &str = "application/json";

/// Sends a request and reads the whole answer.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    target: &str,
    body: Option<(&str, &Value)>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(target);
    if let Some((kind, _)) = body {
        request = request.header(header::CONTENT_TYPE, kind);
    }
    let body = body.map_or_else(Body::empty, |(_, body)| Body::from(body.to_string().into_bytes()));
    let request = request.body(body).expect("a well-formed request");
    let Ok(response) = client.send(request).await else { return Answer::Silence };
    let code = response.status().as_u16();
    let Ok(bytes) = response.into_body().collect().await else { return Answer::Silence };
    match serde_json::from_slice(&bytes.to_bytes()) {
        Ok(body) => Answer::Told { code, body },
        Err(_) => Answer::Silence,
    }
}

/// The text of a health check, and its code.
pub(crate) async fn health(client: &Client, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).expect("a constant request");
    let response = client.send(request).await.expect("the hub answers");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("the answer arrives").to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

/// Lists a collection, and insists on an answer.
pub(crate) async fn list(client: &Client, collection: Collection) -> Value {
    match send(client, Method::GET, collection.path(), None).await {
        Answer::Told { code: 200, body } => body,
        other => panic!("{collection:?} cannot be listed: {other:?}"),
    }
}

/// Serves the custom kind.
pub(crate) async fn define(client: &Client) {
    let made = send(client, Method::POST, DEFINITIONS, Some((JSON, &definition()))).await;
    assert!(matches!(made, Answer::Told { code: 201, .. }), "{made:?}");
}

/// The revision of a list or an object.
pub(crate) fn revision(of: &Value) -> u64 {
    let text = of.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("there is no resourceVersion in {of}"))
}
