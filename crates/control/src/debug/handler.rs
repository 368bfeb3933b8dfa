//! From a request to its answer.
//!
//! Owns the order of checks and the codes. Nothing is looked at, not even whether a placement exists, before it is known
//! who asks and that they may.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use berth_engine::model::ObjectKey;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use serde_json::json;

use super::answer::Answer;
use super::gate::{Access, Gate, Refusal, verb};
use super::question::{Asker, Question, Unexplained, read};
use crate::inquiry::{Inquirer, Unanswered};

/// Where it answers.
const PATH: &str = "/debug/placements/";
/// The longest placement that may be sent.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The debugger, as a service: `client` reviews tokens and access, `inquirer` knows the fleet.
pub fn router(client: Client, inquirer: Inquirer) -> Router {
    let debugger = Arc::new(Debugger { gate: Gate::new(client), asker: Asker::new(inquirer) });
    // Everything comes through one door, so that no path is answered before it is known who asks.
    Router::new().fallback(move |request: Request<Body>| {
        let debugger = Arc::clone(&debugger);
        async move { Ok::<_, Infallible>(debugger.answer(request).await.unwrap_or_else(Fault::into_response)) }
    })
}

struct Debugger {
    gate: Gate,
    asker: Asker,
}

/// What went wrong, and whose fault it is.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    status: StatusCode,
    message: String,
}

impl Fault {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn into_response(self) -> Response {
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, JSON), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")],
            json!({"error": self.message}).to_string(),
        )
            .into_response();
        let more = match self.status {
            StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, "GET, POST")),
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = more {
            response.headers_mut().insert(name, header::HeaderValue::from_static(value));
        }
        response
    }
}

const JSON: &str = "application/json";

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown(why) => Self::new(StatusCode::UNAUTHORIZED, why),
            Refusal::Forbidden(why) => Self::new(StatusCode::FORBIDDEN, why),
            Refusal::Unanswered(why) => {
                tracing::warn!("the debugger of placements: {why}");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}

impl From<Unexplained> for Fault {
    fn from(unexplained: Unexplained) -> Self {
        let status = match &unexplained {
            Unexplained::NotFound(_) => StatusCode::NOT_FOUND,
            Unexplained::TooLarge(_) | Unexplained::TooCostly(_) => StatusCode::BAD_REQUEST,
            Unexplained::Unanswered(Unanswered::Broken) => StatusCode::INTERNAL_SERVER_ERROR,
            Unexplained::Unanswered(_) | Unexplained::NotNow(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, unexplained.to_string())
    }
}

impl Debugger {
    async fn answer(&self, request: Request<Body>) -> Result<Response, Fault> {
        let (head, body) = request.into_parts();
        let (method, path) = (head.method, head.uri.path());
        let user = self.gate.user(&head.headers).await?;
        let access = Access::Path { verb: verb(&method), path: path.to_owned() };
        self.gate.admit(&user, access).await?;
        let Some(rest) = path.strip_prefix(PATH) else {
            return Err(Fault::new(
                StatusCode::NOT_FOUND,
                format!("nothing is here; ask {PATH}NAMESPACE/NAME"),
            ));
        };
        let (verb, question, namespace) = match method {
            Method::GET => {
                let key = key(rest).map_err(|why| Fault::new(StatusCode::BAD_REQUEST, why))?;
                let namespace = key.namespace.to_string();
                ("get", Question::Existing(key), namespace)
            }
            Method::POST => {
                let sent =
                    read(&whole(body).await?).map_err(|why| Fault::new(StatusCode::BAD_REQUEST, why))?;
                let namespace = sent.placement.metadata.namespace.clone().unwrap_or_default();
                ("create", Question::Sent(Box::new(sent)), namespace)
            }
            other => {
                let message = format!("method {other} is not allowed; use GET or POST");
                return Err(Fault::new(StatusCode::METHOD_NOT_ALLOWED, message));
            }
        };
        self.gate.admit(&user, Access::Placements { verb, namespace }).await?;
        let explained = self.asker.ask(question).await?;
        // Thousands of clusters are megabytes of JSON: neither the loop nor the other connections wait for them.
        let text = tokio::task::spawn_blocking(move || serde_json::to_vec(&Answer::new(explained)));
        let text = match text.await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => return Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
            Err(error) => return Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        };
        let headers = [(header::CONTENT_TYPE, JSON), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
        Ok((StatusCode::OK, headers, text).into_response())
    }
}

/// The placement a path names.
fn key(rest: &str) -> Result<ObjectKey, String> {
    match rest.split('/').collect::<Vec<_>>()[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(ObjectKey::new(namespace, name)),
        [_, _] | [_] => Err("invalid debug path: namespace and name required".to_owned()),
        _ => Err(format!("invalid debug path: unexpected key format: {rest:?}")),
    }
}

/// The body, if it is not too long.
async fn whole(body: Body) -> Result<Vec<u8>, Fault> {
    let limited = Limited::new(body, BODY_BYTES_MAX);
    let read = limited.collect().await.map_err(|error| {
        let message = if error.is::<LengthLimitError>() {
            format!("request body too large: exceeds maximum of {BODY_BYTES_MAX} bytes")
        } else {
            format!("failed to read request body: {error}")
        };
        Fault::new(StatusCode::BAD_REQUEST, message)
    })?;
    Ok(read.to_bytes().into())
}

#[cfg(test)]
mod tests;
