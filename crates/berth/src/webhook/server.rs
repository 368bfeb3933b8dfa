//! The HTTPS server that the API server calls.
//!
//! Owns the paths and the bounds on everything a caller can send. Below HTTP requests it is the hub's listener, with its
//! care for slow, silent and endless clients.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use berth_hub::Limits;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::door::{Door, Path};
use super::registration::{MUTATE_PATH, VALIDATE_PATH};
use super::review::Request;

/// Largest body: an object and what it was, each as large as an API server takes it, and the words around them.
const BODY_BYTES_MAX: usize = 7 * 1024 * 1024;
/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How much of a refused body is still read, so that the caller gets to see why.
const DISCARD_BYTES_MAX: usize = 1024 * 1024;
/// Connections at once: API servers keep a few each.
const CONNECTIONS_MAX: usize = 512;
/// Requests under way on one connection.
const STREAMS_MAX: u32 = 256;
/// Reviews worked on at once; one more waits, as long as its caller does.
const REVIEWS_MAX: usize = 128;
/// How long a handshake, a head and a body may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
const HEAD_WITHIN: Duration = Duration::from_secs(5);
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// How long a caller may take none of its answer.
const STALL_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be open without a request: longer than Go's clients keep theirs, so that it is they who close.
const IDLE_MAX: Duration = Duration::from_mins(3);
/// How long requests under way may take once the process stops: as long as the API server waits.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// What the listener allows.
pub(crate) fn limits() -> Limits {
    Limits {
        headers: HEAD_BYTES_MAX,
        discard: DISCARD_BYTES_MAX,
        connections: CONNECTIONS_MAX,
        streams_per_connection: STREAMS_MAX,
        handshake: HANDSHAKE_WITHIN,
        header_read: HEAD_WITHIN,
        body_read: BODY_WITHIN,
        write_stall: STALL_MAX,
        idle: IDLE_MAX,
        drain: DRAIN_WITHIN,
        ..Limits::default()
    }
}

struct Served {
    door: Door,
    places: Semaphore,
}

/// The paths.
pub(crate) fn router(door: Door) -> Router {
    let served = Arc::new(Served { door, places: Semaphore::new(REVIEWS_MAX) });
    let at = |path| {
        post(async move |State(served): State<Arc<Served>>, request: HttpRequest<Body>| {
            served.answer(path, request).await
        })
    };
    Router::new()
        .route(MUTATE_PATH, at(Path::Mutate))
        .route(VALIDATE_PATH, at(Path::Validate))
        .with_state(served)
}

impl Served {
    async fn answer(&self, path: Path, request: HttpRequest<Body>) -> Response {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_none_or(|kind| kind.split(';').next().unwrap_or_default().trim() != "application/json") {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send an AdmissionReview as application/json");
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match tokio::time::timeout(BODY_WITHIN, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than any AdmissionReview");
            }
            Ok(Err(_)) => return refuse(StatusCode::BAD_REQUEST, "the body ended early"),
            Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        };
        let review = match Request::read(&body) {
            Ok(review) => review,
            Err(unreadable) => return refuse(StatusCode::BAD_REQUEST, &unreadable.to_string()),
        };
        drop(body);
        let _place = self.places.acquire().await.expect("the semaphore is never closed");
        let answer = self.door.answer(path, &review, Timestamp::now()).await;
        let body = answer.body(&review.uid).to_string();
        (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{why}\n")).into_response()
}
