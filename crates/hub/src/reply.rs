//! Answers on their way out: status, headers, bytes.
//!
//! Owns how a body becomes an HTTP response, compression included. Never decides what is answered.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use berth_hub_wire::media::use_gzip;
use berth_hub_wire::{Status, warning};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A response of the hub.
pub(crate) type Reply = Response<Body>;

/// What kube-apiserver says about everything that is not an OpenAPI document.
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");

/// A whole body.
pub(crate) fn whole(code: u16, content_type: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Body::from(body));
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    reply
}

/// A JSON body.
pub(crate) fn json(code: u16, body: Bytes) -> Reply {
    whole(code, "application/json", body)
}

/// A status, with its `Retry-After`.
pub(crate) fn status(status: &Status, pretty: bool) -> Reply {
    let code = match status.code() {
        0 => 200,
        code => code,
    };
    let mut reply = json(code, status.to_json(pretty));
    if let Some(seconds) = status.retry_after_seconds() {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(0)));
    }
    reply
}

/// Text, as health and unknown paths are answered.
pub(crate) fn text(code: u16, body: impl Into<Bytes>) -> Reply {
    let mut reply = whole(code, "text/plain; charset=utf-8", body.into());
    reply
        .headers_mut()
        .insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    reply
}

/// Adds warnings as clients print them.
pub(crate) fn warn(reply: &mut Reply, warnings: &[String]) {
    for value in warning::headers(warnings) {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            reply.headers_mut().append(header::WARNING, value);
        }
    }
}

/// What a path that nothing is served at answers.
pub(crate) fn not_served() -> Reply {
    text(404, "404 page not found\n")
}

/// A body that comes bit by bit.
pub(crate) fn stream(content_type: &'static str, body: Body) -> Reply {
    let mut reply = whole(200, content_type, Bytes::new());
    *reply.body_mut() = body;
    reply
}

/// Compresses a large body where the client asked for it.
pub(crate) fn compressed(
    code: u16,
    content_type: &'static str,
    body: Bytes,
    accept_encoding: Option<&str>,
) -> Reply {
    if !use_gzip(accept_encoding, body.len(), false) {
        return whole(code, content_type, body);
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::new(4));
    let packed =
        encoder.write_all(&body).and_then(|()| encoder.finish()).expect("writing to memory does not fail");
    let mut reply = whole(code, content_type, packed.into());
    reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    reply
}
