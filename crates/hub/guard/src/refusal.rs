//! Refusals: every way this crate says no, with the Status a client gets for it.
//!
//! Owns the mapping from a refusal to HTTP code, reason, message and details. Never writes a response.

use serde_json::{Map, Value, json};

/// One complaint about one field, as `details.causes` carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The message without the field in front.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

impl FieldProblem {
    /// `Invalid value: <value>: <detail>`; `value` is already rendered.
    pub fn invalid(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {detail}"),
            field: field.into(),
        }
    }

    /// `Required value[: <detail>]`.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// `Forbidden: <detail>`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {detail}"), field: field.into() }
    }
}

/// A request refused, in the terms of the API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 401: no or unusable credentials.
    #[error("Unauthorized")]
    Unauthorized,
    /// 403: known, but not allowed. The message is complete.
    #[error("{}", forbidden_text(group, resource, name, detail))]
    Forbidden {
        /// API group of the resource, empty for core and for paths.
        group: String,
        /// Plural of the resource, empty for paths.
        resource: String,
        /// Name of the object, empty when the request names none.
        name: String,
        /// What follows `is forbidden: `.
        detail: String,
    },
    /// 400: the request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// 404: something the request refers to is not there.
    #[error("{}{} {} not found", resource, dotted(group), berth_text::gotext::quote(name))]
    NotFound {
        /// API group of the resource.
        group: String,
        /// Plural of the resource.
        resource: String,
        /// Name of the object.
        name: String,
    },
    /// 409: a precondition of the request does not hold.
    #[error(
        "Operation cannot be fulfilled on {}{} {}: {detail}",
        resource,
        dotted(group),
        berth_text::gotext::quote(name)
    )]
    Conflict {
        /// API group of the resource.
        group: String,
        /// Plural of the resource (or the kind, where upstream says so).
        resource: String,
        /// Name of the object.
        name: String,
        /// What does not hold.
        detail: String,
    },
    /// 422: the object is not valid.
    #[error(
        "{}{} {} is invalid: {}",
        kind,
        dotted(group),
        berth_text::gotext::quote(name),
        problem_text(problems)
    )]
    Invalid {
        /// API group of the kind.
        group: String,
        /// The kind.
        kind: String,
        /// Name of the object.
        name: String,
        /// What is wrong, field by field.
        problems: Vec<FieldProblem>,
    },
    /// 500: the server could not do its part.
    #[error("Internal error occurred: {0}")]
    Internal(String),
    /// A status dictated by somebody else (an admission webhook), passed on as it is.
    #[error("{}", value.get("message").and_then(Value::as_str).unwrap_or_default())]
    Status {
        /// HTTP code.
        code: u16,
        /// The whole Status object.
        value: Box<Value>,
    },
}

fn dotted(group: &str) -> String {
    if group.is_empty() { String::new() } else { format!(".{group}") }
}

fn forbidden_text(group: &str, resource: &str, name: &str, detail: &str) -> String {
    // Without a resource (a request by path) upstream's message starts at the reason.
    match (resource.is_empty() && group.is_empty(), name.is_empty()) {
        (true, _) => format!("forbidden: {detail}"),
        (false, true) => format!("{resource}{} is forbidden: {detail}", dotted(group)),
        (false, false) => {
            format!("{resource}{} {} is forbidden: {detail}", dotted(group), berth_text::gotext::quote(name))
        }
    }
}

/// One problem alone, or all in brackets with doubles left out, as an aggregate prints.
fn problem_text(problems: &[FieldProblem]) -> String {
    let mut lines: Vec<String> = Vec::with_capacity(problems.len());
    for problem in problems {
        let line = format!("{}: {}", problem.field, problem.message);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    aggregate(lines)
}

/// Several messages as one: alone as it is, many as `[a, b]`.
pub(crate) fn aggregate(mut lines: Vec<String>) -> String {
    match lines.len() {
        0 => String::new(),
        1 => lines.remove(0),
        _ => format!("[{}]", lines.join(", ")),
    }
}

impl Refusal {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Forbidden { .. } => 403,
            Self::BadRequest(_) => 400,
            Self::NotFound { .. } => 404,
            Self::Conflict { .. } => 409,
            Self::Invalid { .. } => 422,
            Self::Internal(_) => 500,
            Self::Status { code, .. } => *code,
        }
    }

    /// The machine-readable reason of the Status.
    pub fn reason(&self) -> &str {
        match self {
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden { .. } => "Forbidden",
            Self::BadRequest(_) => "BadRequest",
            Self::NotFound { .. } => "NotFound",
            Self::Conflict { .. } => "Conflict",
            Self::Invalid { .. } => "Invalid",
            Self::Internal(_) => "InternalError",
            Self::Status { value, .. } => value.get("reason").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// The message of the Status.
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// `details` of the Status, if it has any.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Unauthorized | Self::BadRequest(_) => None,
            Self::Forbidden { group, resource, name, .. }
            | Self::NotFound { group, resource, name }
            | Self::Conflict { group, resource, name, .. } => {
                Some(Value::Object(object_details(group, resource, name)))
            }
            Self::Invalid { group, kind, name, problems } => {
                let mut details = object_details(group, kind, name);
                let causes = problems
                    .iter()
                    .map(|p| json!({"reason": p.reason, "message": p.message, "field": p.field}))
                    .collect();
                details.insert("causes".to_owned(), Value::Array(causes));
                Some(Value::Object(details))
            }
            Self::Internal(text) => Some(json!({"causes": [{"message": text}]})),
            Self::Status { value, .. } => value.get("details").cloned(),
        }
    }

    /// The whole Status object.
    pub fn status(&self) -> Value {
        if let Self::Status { value, .. } = self {
            return (**value).clone();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message(), "reason": self.reason(), "code": self.code(),
        });
        if let (Some(details), Some(map)) = (self.details(), status.as_object_mut()) {
            map.insert("details".to_owned(), details);
        }
        status
    }
}

fn object_details(group: &str, kind: &str, name: &str) -> Map<String, Value> {
    let mut details = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details.insert(key.to_owned(), Value::String(value.to_owned()));
        }
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unauthorized_status_has_no_details() {
        assert_eq!(
            Refusal::Unauthorized.status(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                   "message": "Unauthorized", "reason": "Unauthorized", "code": 401})
        );
    }

    #[test]
    fn an_invalid_status_lists_its_causes() {
        let refusal = Refusal::Invalid {
            group: "authorization.k8s.io".into(),
            kind: "SubjectAccessReview".into(),
            name: String::new(),
            problems: vec![
                FieldProblem::invalid("spec.user", "\"\"", "at least one of user or group must be specified"),
                FieldProblem::required("spec.x", ""),
            ],
        };
        assert_eq!(
            refusal.message(),
            "SubjectAccessReview.authorization.k8s.io \"\" is invalid: [spec.user: Invalid value: \"\": at least one of \
             user or group must be specified, spec.x: Required value]"
        );
        assert_eq!(refusal.details().unwrap()["causes"][1]["reason"], "FieldValueRequired");
        assert_eq!(refusal.code(), 422);
    }
}
