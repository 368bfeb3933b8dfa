//! One request and its answer, as raw as HTTP allows.

use berth_bed::Bed;
use http::Method;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

/// A request to either server. `{rv}` and `{uid}` in the body or query stand for what that server last said about
/// the object of the path.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) accept: Option<&'static str>,
    /// Whom the sender pretends to be.
    pub(crate) user: Option<&'static str>,
    pub(crate) body: Option<String>,
    /// Whether the body, which is JSON, is sent as protobuf.
    pub(crate) protobuf: bool,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// One of the two servers.
pub(crate) struct Server {
    pub(crate) client: kube::Client,
}

impl Server {
    pub(crate) fn new(bed: &Bed) -> Self {
        Self { client: bed.client() }
    }

    pub(crate) async fn send(&self, request: &Request) -> Answer {
        let encoded = request.body.as_ref().filter(|_| request.protobuf).and_then(|body| protobuf(body));
        let mut builder = http::Request::builder()
            .method(&request.method)
            .uri(&request.target)
            .header("user-agent", "differential/1.0");
        let content_type = if encoded.is_some() { Some(PROTOBUF) } else { request.content_type };
        if let Some(kind) = content_type {
            builder = builder.header("content-type", kind);
        }
        if let Some(accept) = request.accept {
            builder = builder.header("accept", accept);
        }
        if let Some(user) = request.user {
            builder = builder.header("impersonate-user", user);
        }
        let body = encoded.or_else(|| request.body.clone().map(String::into_bytes));
        let body = body.map_or_else(Body::empty, Body::from);
        let response = self
            .client
            .send(builder.body(body).expect("a well-formed request"))
            .await
            .expect("the server answers");
        let (parts, body) = response.into_parts();
        let text = body.collect().await.expect("the answer arrives whole").to_bytes();
        let header = |name: &str| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        Answer {
            code: parts.status.as_u16(),
            content_type: header("content-type"),
            warnings: parts
                .headers
                .get_all("warning")
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect(),
            body: serde_json::from_slice(&text)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&text).into_owned())),
        }
    }

    /// Sends and insists on success, for what a script takes for granted.
    pub(crate) async fn must(&self, request: &Request) -> Value {
        let answer = self.send(request).await;
        assert!(
            answer.code < 300 || answer.code == 409,
            "{} {}: {} {}",
            request.method,
            request.target,
            answer.code,
            answer.body
        );
        answer.body
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An object of a built-in kind as its clients in Go send it, where it is one.
fn protobuf(body: &str) -> Option<Vec<u8>> {
    let object: Value = serde_json::from_str(body).ok()?;
    berth_hub_kinds::protobuf::encode(&object)
}

pub(crate) fn get(target: impl Into<String>) -> Request {
    Request {
        method: Method::GET,
        target: target.into(),
        content_type: None,
        accept: None,
        user: None,
        protobuf: false,
        body: None,
    }
}

pub(crate) fn post(target: impl Into<String>, body: &Value) -> Request {
    Request {
        method: Method::POST,
        target: target.into(),
        content_type: Some("application/json"),
        accept: None,
        user: None,
        protobuf: false,
        body: Some(body.to_string()),
    }
}
