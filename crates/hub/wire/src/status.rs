//! The `Status` object: how the server says that something failed, or that a deletion is done.
//!
//! Owns the shape, the order of its fields and its encoding. The sentences are in [`crate::failure`].
//! Never decides when a request fails.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One answer that is not an object of the requested kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    kind: StatusKind,
    api_version: StatusVersion,
    /// Carries a fresh continue token when a page has expired.
    pub metadata: ListMeta,
    /// Whether the request did what it asked for.
    pub status: Outcome,
    /// The sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What the failure is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP status, absent on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

/// The metadata of lists, tables and statuses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMeta {
    /// The revision the list was read at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Where the next page starts; empty on the last one.
    #[serde(default, rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
    /// How many objects the pages to come hold, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// Whether a request did what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It did.
    Success,
    /// It did not.
    Failure,
}

/// What a failure is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural of the resource, or the kind for objects that are invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per thing that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again; zero says nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: i32,
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The word for programs, such as `FieldValueInvalid`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The sentence for people, without the field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Anything that can stand as a cause of an invalid object.
pub trait AsCause {
    /// The cause it stands for.
    fn as_cause(&self) -> Cause;
}

impl AsCause for Cause {
    fn as_cause(&self) -> Cause {
        self.clone()
    }
}

impl<R: AsRef<str>, M: AsRef<str>, F: AsRef<str>> AsCause for (R, M, F) {
    fn as_cause(&self) -> Cause {
        Cause::new(self.0.as_ref(), self.1.as_ref(), self.2.as_ref())
    }
}

impl Cause {
    /// A cause from its reason, message and field.
    pub fn new(reason: impl Into<String>, message: impl Into<String>, field: impl Into<String>) -> Self {
        Cause { reason: reason.into(), message: message.into(), field: field.into() }
    }
}

/// Why a request failed, for programs. The server reasons of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// Nobody is known by these credentials.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// There is no such object.
    NotFound,
    /// There is such an object already.
    AlreadyExists,
    /// The object is not in the state the request expects.
    Conflict,
    /// The object is gone for good.
    Gone,
    /// The object breaks its rules.
    Invalid,
    /// The server could not do it in time; it may be tried again.
    ServerTimeout,
    /// The store could not read the object.
    StoreReadError,
    /// The request did not finish in time.
    Timeout,
    /// There is more to do than the server takes on now.
    TooManyRequests,
    /// The request makes no sense.
    BadRequest,
    /// The resource does not know this verb.
    MethodNotAllowed,
    /// No acceptable form of the answer exists.
    NotAcceptable,
    /// The body is larger than allowed.
    RequestEntityTooLarge,
    /// The body's form is not understood.
    UnsupportedMediaType,
    /// The server broke its own rules.
    InternalError,
    /// The revision or page asked for is no longer kept.
    Expired,
    /// The server cannot work now.
    ServiceUnavailable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StatusKind {
    Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StatusVersion {
    #[serde(rename = "v1")]
    V1,
}

// serde hands the field over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

impl Status {
    /// A failure with a code, a reason and a sentence.
    pub fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Status {
            kind: StatusKind::Status,
            api_version: StatusVersion::V1,
            metadata: ListMeta::default(),
            status: Outcome::Failure,
            message: message.into(),
            reason: Some(reason),
            details: None,
            code: Some(code),
        }
    }

    /// A success, as a deletion answers it.
    pub fn success(details: Details) -> Self {
        Status {
            kind: StatusKind::Status,
            api_version: StatusVersion::V1,
            metadata: ListMeta::default(),
            status: Outcome::Success,
            message: String::new(),
            reason: None,
            details: Some(Box::new(details)),
            code: None,
        }
    }

    /// The HTTP status that goes with it.
    pub fn code(&self) -> u16 {
        self.code.unwrap_or(200)
    }

    /// The same with another HTTP status, shown in the body.
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The same with one more cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The same with the seconds after which to try again.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The value of the `Retry-After` header, when the status carries one.
    pub fn retry_after_seconds(&self) -> Option<i32> {
        self.details.as_deref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// The body: one line, or indented for people. One line is what clients that read watches line by line need.
    pub fn to_json(&self, pretty: bool) -> Bytes {
        crate::envelope::encode(self, pretty)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_in_the_order_of_the_real_server() {
        let status = Status::failure(410, Reason::Expired, "too old resource version: 1 (241)");
        assert_eq!(
            String::from_utf8(status.to_json(false).to_vec()).unwrap(),
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
             \"message\":\"too old resource version: 1 (241)\",\"reason\":\"Expired\",\"code\":410}\n"
        );
        assert_eq!(status.code(), 410);
    }

    #[test]
    fn a_success_has_no_code_in_its_body() {
        let status = Status::success(Details { name: "x".into(), ..Details::default() });
        let text = String::from_utf8(status.to_json(true).to_vec()).unwrap();
        assert!(text.contains("\"status\": \"Success\""));
        assert!(!text.contains("code"));
        assert_eq!(status.code(), 200);
    }

    #[test]
    fn a_status_reads_back_as_it_was_written() {
        let status = Status::failure(409, Reason::Conflict, "x")
            .with_cause(Cause::new("FieldManagerConflict", "m", ".spec"))
            .with_retry_after(3);
        let back: Status = serde_json::from_slice(&status.to_json(false)).unwrap();
        assert_eq!(back, status);
        assert_eq!(back.retry_after_seconds(), Some(3));
    }
}
