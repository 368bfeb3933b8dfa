//! AdmissionReviews: what the API server asks, and how it is answered.
//!
//! Owns the wire types of admission.k8s.io/v1. Never decides.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_admission::{Attempt, Denial, Operation, TimeAdded};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A question of the API server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

/// The write that is asked about.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) uid: String,
    pub(crate) resource: Resource,
    #[serde(default)]
    pub(crate) sub_resource: String,
    #[serde(default)]
    name: String,
    operation: String,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    object: Option<Value>,
    old_object: Option<Value>,
}

/// What is written to.
#[derive(Debug, Deserialize)]
pub(crate) struct Resource {
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) resource: String,
}

/// Why a question cannot be answered: it is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It is not JSON of the right form.
    #[error("the body is no AdmissionReview: {0}")]
    Malformed(String),
    /// It is of another kind or version.
    #[error("expected an {KIND} of {API_VERSION}, got {kind:?} of {api_version:?}")]
    Foreign {
        /// What it says it is.
        kind: String,
        /// Of which version.
        api_version: String,
    },
    /// There is no question in it.
    #[error("the AdmissionReview has no request")]
    Empty,
}

impl Request {
    /// Reads the body of a call.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let review: Review =
            serde_json::from_slice(body).map_err(|error| Unreadable::Malformed(error.to_string()))?;
        let Review { api_version, kind, request } = review;
        if api_version != API_VERSION || kind != KIND {
            return Err(Unreadable::Foreign { kind, api_version });
        }
        request.filter(|request| !request.uid.is_empty()).ok_or(Unreadable::Empty)
    }

    /// The write, as the rules know it; `None` for operations that no rule is about.
    pub(crate) fn attempt(&self, now: Timestamp, time_added: TimeAdded) -> Option<Attempt<'_>> {
        let operation = match &*self.operation {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            _ => return None,
        };
        let named = self.object().and_then(|object| object.pointer("/metadata/name"));
        let named = named.and_then(Value::as_str).unwrap_or_default();
        Some(Attempt {
            operation,
            resource: &self.resource.resource,
            name: if self.name.is_empty() { named } else { &self.name },
            user: self.user_info.username.as_deref().unwrap_or_default(),
            old: self.old_object.as_ref().filter(|object| object.is_object()),
            now,
            time_added,
        })
    }

    /// The object as it would be stored; none in a deletion.
    pub(crate) fn object(&self) -> Option<&Value> {
        self.object.as_ref().filter(|object| object.is_object())
    }
}

/// What the API server is told.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// Why not, if not.
    pub(crate) denial: Option<Denial>,
    /// What to tell whoever writes.
    pub(crate) warnings: Vec<String>,
    /// What to change, as a JSON patch.
    pub(crate) patch: Option<Value>,
}

impl Answer {
    /// A refusal.
    pub(crate) fn denied(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }

    /// The whole body of the answer to the question `uid`.
    pub(crate) fn body(&self, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.denial.is_none()});
        if let Some(denial) = &self.denial {
            response["status"] = status(denial);
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        if let Some(patch) = &self.patch {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch.to_string()));
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

fn status(denial: &Denial) -> Value {
    let reason = match denial.code {
        400 => "BadRequest",
        403 => "Forbidden",
        422 => "Invalid",
        504 => "Timeout",
        _ => "InternalError",
    };
    let mut status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": denial.code, "reason": reason, "message": denial.message,
    });
    if !denial.fields.is_empty() {
        let cause = |field: &berth_admission::FieldProblem| json!({"reason": "FieldValueInvalid", "message": field.message, "field": field.path});
        status["details"] = json!({"causes": denial.fields.iter().map(cause).collect::<Vec<_>>()});
    }
    status
}

#[cfg(test)]
mod tests {
    use berth_admission::FieldProblem;

    use super::*;

    fn read(review: &Value) -> Result<Request, Unreadable> {
        Request::read(review.to_string().as_bytes())
    }

    fn question(operation: &str) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u1",
                "kind": {"group": "g", "version": "v1", "kind": "K"},
                "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "resource": "managedclusters"},
                "operation": operation,
                "userInfo": {"username": "ann", "groups": ["dev"], "extra": {"a": ["b"]}},
                "object": {"metadata": {"name": "c1"}}, "oldObject": null, "dryRun": false,
            },
        })
    }

    #[test]
    fn a_question_is_read_with_its_writer() {
        let request = read(&question("CREATE")).unwrap();
        let attempt = request.attempt(Timestamp::UNIX_EPOCH, TimeAdded::Server).unwrap();
        assert_eq!((attempt.name, attempt.user, attempt.operation), ("c1", "ann", Operation::Create));
        assert!(attempt.old.is_none());
        assert!(
            read(&question("CONNECT")).unwrap().attempt(Timestamp::UNIX_EPOCH, TimeAdded::Server).is_none()
        );
    }

    #[test]
    fn what_is_no_question_is_told_so() {
        assert!(matches!(Request::read(b"\xff"), Err(Unreadable::Malformed(_))));
        assert!(matches!(Request::read(b"[]"), Err(Unreadable::Malformed(_))));
        assert!(matches!(read(&json!({})), Err(Unreadable::Foreign { .. })));
        let mut old = question("CREATE");
        old["apiVersion"] = json!("admission.k8s.io/v1beta1");
        assert!(matches!(read(&old), Err(Unreadable::Foreign { .. })));
        let mut empty = question("CREATE");
        empty["request"] = Value::Null;
        assert_eq!(read(&empty).unwrap_err(), Unreadable::Empty);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(Request::read(deep.as_bytes()), Err(Unreadable::Malformed(_))));
    }

    #[test]
    fn an_answer_has_the_form_the_api_server_reads() {
        let allowed = Answer {
            warnings: vec!["mind the gap".to_owned()],
            patch: Some(json!([{"op": "add", "path": "/a", "value": 1}])),
            ..Answer::default()
        };
        let body = allowed.body("u1");
        assert_eq!(body["response"]["uid"], "u1");
        assert_eq!(body["response"]["allowed"], true);
        assert_eq!(body["response"]["patchType"], "JSONPatch");
        let patch = STANDARD.decode(body["response"]["patch"].as_str().unwrap()).unwrap();
        assert_eq!(patch, br#"[{"op":"add","path":"/a","value":1}]"#);
        let fields = vec![FieldProblem { path: "spec.a".to_owned(), message: "no".to_owned() }];
        let denied = Answer::denied(Denial { code: 422, message: "spec.a: no".to_owned(), fields });
        let status = &denied.body("u2")["response"]["status"];
        assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
        assert_eq!(status["details"]["causes"][0]["field"], "spec.a");
    }
}
