//! The failures a server answers with, in the words of a real one.
//!
//! Each constructor is one sentence that clients and people know; programs compare reasons, tests compare words.
//! Never decides when to fail: that is the pipeline's.

use crate::gotext::quote;
use crate::names::{GroupKind, GroupResource};
use crate::status::{AsCause, Cause, Details, Reason, Status};

/// The words after the colon of a conflict on a stale `resourceVersion`.
pub const STALE_OBJECT: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The body of answers to paths that nothing serves: plain text, not a `Status`.
pub const PAGE_NOT_FOUND: &str = "404 page not found\n";

/// Causes beyond this many are left out of an answer: a schema can find one per list item in a large object, and
/// nobody reads more.
pub const CAUSES_MAX: usize = 1_000;

/// Who wanted what, for the sentence of a refusal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access<'a> {
    /// The user's name.
    pub user: &'a str,
    /// What was asked for: `get`, `list`, `post`.
    pub verb: &'a str,
    /// The path, for requests that name no resource.
    pub path: &'a str,
    /// The group of the resource.
    pub group: &'a str,
    /// The plural of the resource; empty for requests that name none.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The namespace, or empty at the cluster scope.
    pub namespace: &'a str,
    /// The object's name, or empty.
    pub name: &'a str,
}

/// The type of a kind in a real server, as some of its sentences name it: `*core.ConfigMapList`.
pub fn go_type(group: &str, kind: &str, is_custom: bool) -> String {
    if is_custom {
        let list = if kind.ends_with("List") { "List" } else { "" };
        return format!("*unstructured.Unstructured{list}");
    }
    let package = match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{kind}")
}

fn about(resource: GroupResource<'_>, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_owned(),
        kind: resource.resource.to_owned(),
        ..Details::default()
    }
}

impl Status {
    /// 404: there is no object of this name.
    pub fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        Status::failure(404, Reason::NotFound, format!("{resource} {} not found", quote(name)))
            .with_details(about(resource, name))
    }

    /// 404 for a request that names something that does not exist on this server, as a `Status`.
    pub fn resource_not_found() -> Self {
        Status::failure(404, Reason::NotFound, "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 409: there is an object of this name already.
    pub fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        Status::failure(409, Reason::AlreadyExists, format!("{resource} {} already exists", quote(name)))
            .with_details(about(resource, name))
    }

    /// 409: every name that was generated is taken.
    pub fn no_name_generated(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            quote(name)
        );
        let details = Details { retry_after_seconds: 1, ..about(resource, name) };
        Status::failure(409, Reason::AlreadyExists, message).with_details(details)
    }

    /// 409: the object is not in the state that the request expects.
    pub fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", quote(name));
        Status::failure(409, Reason::Conflict, message).with_details(about(resource, name))
    }

    /// 409: the object changed since it was read.
    pub fn stale(resource: GroupResource<'_>, name: &str) -> Self {
        Status::conflict(resource, name, STALE_OBJECT)
    }

    /// 409: an apply wants fields that others own. `causes` come one per field.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Status::failure(409, Reason::Conflict, message).with_details(Details { causes, ..Details::default() })
    }

    /// 422: the object breaks its rules. The sentence joins what the causes say.
    pub fn invalid<C: AsCause>(kind: GroupKind<'_>, name: &str, causes: &[C]) -> Self {
        let causes: Vec<Cause> = causes.iter().take(CAUSES_MAX).map(AsCause::as_cause).collect();
        let mut sentences: Vec<String> = Vec::with_capacity(causes.len());
        for cause in &causes {
            let field = if cause.field.is_empty() { "<nil>" } else { &cause.field };
            let sentence = format!("{field}: {}", cause.message);
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        let all = match sentences.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let details = Details {
            name: name.to_owned(),
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            causes,
            ..Details::default()
        };
        Status::failure(422, Reason::Invalid, format!("{kind} {} is invalid{all}", quote(name)))
            .with_details(details)
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Status::failure(400, Reason::BadRequest, message)
    }

    /// 401: nobody is known by these credentials.
    pub fn unauthorized() -> Self {
        Status::failure(401, Reason::Unauthorized, "Unauthorized")
    }

    /// 403: this may not be done, for the reason given.
    pub fn forbidden(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = if resource.resource.is_empty() && resource.group.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", quote(name))
        };
        Status::failure(403, Reason::Forbidden, message).with_details(about(resource, name))
    }

    /// 403: this user may not do this; `reason` is what the policy adds, or empty.
    pub fn access_denied(access: &Access<'_>, reason: &str) -> Self {
        let user = quote(access.user);
        let mut why = if access.resource.is_empty() {
            format!("User {user} cannot {} path {}", access.verb, quote(access.path))
        } else {
            let resource = if access.subresource.is_empty() {
                quote(access.resource)
            } else {
                quote(&format!("{}/{}", access.resource, access.subresource))
            };
            let scope = if access.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quote(access.namespace))
            };
            let group = quote(access.group);
            format!("User {user} cannot {} resource {resource} in API group {group} {scope}", access.verb)
        };
        // The real server escapes these in the part that repeats what the client sent.
        why = why.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        Status::forbidden(GroupResource::new(access.group, access.resource), access.name, &why)
    }

    /// 405: the resource does not know this verb.
    pub fn method_not_allowed(resource: GroupResource<'_>, action: &str) -> Self {
        let message =
            format!("{action} is not supported on resources of kind {}", quote(&resource.to_string()));
        Status::failure(405, Reason::MethodNotAllowed, message).with_details(about(resource, ""))
    }

    /// 405 where the path is served, but for no such method: built-in kinds.
    pub fn method_not_served() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Status::failure(405, Reason::MethodNotAllowed, message).with_details(Details::default())
    }

    /// 406 at endpoints of built-in kinds, where the path's own list of forms decides first.
    pub fn no_such_representation(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Status::failure(406, Reason::NotAcceptable, message).with_details(Details::default())
    }

    /// 406: one object's metadata was asked for where there is a list. See [`go_type`] for the type.
    pub fn is_a_list(go_type: &str) -> Self {
        let message =
            format!("you requested PartialObjectMetadata, but the requested object is a list ({go_type})");
        Status::failure(406, Reason::NotAcceptable, message)
    }

    /// 406: a list's metadata was asked for where there is one object. See [`go_type`] for the type.
    pub fn is_not_a_list(go_type: &str) -> Self {
        let message = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})"
        );
        Status::failure(406, Reason::NotAcceptable, message)
    }

    /// 406: none of the forms the client accepts can be given.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Status::failure(406, Reason::NotAcceptable, message)
    }

    /// 410: the revision or page asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Status::failure(410, Reason::Expired, message)
    }

    /// 410 on a watch from a revision that is no longer kept.
    pub fn too_old_resource_version(asked: u64, oldest: u64) -> Self {
        Status::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// 410 on a list at an exact revision that is no longer kept.
    pub fn list_expired() -> Self {
        Status::expired("The resourceVersion for the provided list is too old.")
    }

    /// 410 on a page whose snapshot is gone, with a token to go on from the same place in the latest state.
    pub fn continue_expired(fresh_token: Option<String>) -> Self {
        let too_old = "The provided continue parameter is too old to display a consistent list result. \
                       You can start a new list without the continue parameter";
        let Some(token) = fresh_token else { return Status::expired(format!("{too_old}.")) };
        let mut status = Status::expired(format!(
            "{too_old}, or use the continue token in this response to retrieve the remainder of the results. \
             Continuing with the provided token results in an inconsistent list - objects that were created, \
             modified, or deleted between the time the first chunk was returned and now may show up in the list."
        ));
        status.metadata.continue_token = token;
        status
    }

    /// 413: the body is larger than allowed.
    pub fn request_too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit_bytes}");
        Status::failure(413, Reason::RequestEntityTooLarge, message)
    }

    /// 415: the body's form is not understood.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Status::failure(415, Reason::UnsupportedMediaType, message)
    }

    /// 429: there is more to do than the server takes on now.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Self {
        Status::failure(429, Reason::TooManyRequests, message)
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// 500: the server broke its own rules.
    pub fn internal(why: &str) -> Self {
        Status::failure(500, Reason::InternalError, format!("Internal error occurred: {why}"))
            .with_cause(Cause { message: why.to_owned(), ..Cause::default() })
    }

    /// 500 without a reason: what a real server answers where an error was never given one, such as to a watch or a
    /// get at a revision that is not a number.
    pub fn unexplained(message: impl Into<String>) -> Self {
        let mut status = Status::failure(500, Reason::InternalError, message);
        status.reason = None;
        status
    }

    /// 500 that may be tried again: the operation was not finished in time.
    pub fn server_timeout(resource: GroupResource<'_>, operation: &str, retry_after_seconds: i32) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        let details = Details { retry_after_seconds, ..about(resource, operation) };
        Status::failure(500, Reason::ServerTimeout, message).with_details(details)
    }

    /// 503: the server cannot work now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Status::failure(503, Reason::ServiceUnavailable, message)
    }

    /// 504: the request did not finish in time.
    pub fn timeout(message: &str, retry_after_seconds: i32) -> Self {
        Status::failure(504, Reason::Timeout, format!("Timeout: {message}"))
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// 504: the revision asked for has not been reached.
    pub fn too_large_resource_version(asked: u64, current: u64) -> Self {
        Status::timeout(&format!("Too large resource version: {asked}, current: {current}"), 1)
            .with_cause(Cause::new("ResourceVersionTooLarge", "Too large resource version", ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEMENTS: GroupResource<'_> =
        GroupResource { group: "cluster.open-cluster-management.io", resource: "placements" };

    #[test]
    fn several_causes_are_joined_in_brackets_and_told_once() {
        let causes = [("FieldValueInvalid", "a", "x"), ("FieldValueInvalid", "a", "x"), ("R", "b", "")];
        let status = Status::invalid(GroupKind::new("", "Pod"), "p", &causes);
        assert_eq!(status.message, "Pod \"p\" is invalid: [x: a, <nil>: b]");
        assert_eq!(status.details.unwrap().causes.len(), 3);
        let none: [Cause; 0] = [];
        assert_eq!(Status::invalid(GroupKind::new("", "Pod"), "p", &none).message, "Pod \"p\" is invalid");
    }

    #[test]
    fn a_refusal_names_user_verb_resource_and_scope() {
        let access = Access {
            user: "system:anonymous",
            verb: "list",
            group: PLACEMENTS.group,
            resource: PLACEMENTS.resource,
            namespace: "default",
            ..Access::default()
        };
        assert_eq!(
            Status::access_denied(&access, "").message,
            "placements.cluster.open-cluster-management.io is forbidden: User \"system:anonymous\" cannot list \
             resource \"placements\" in API group \"cluster.open-cluster-management.io\" in the namespace \"default\""
        );
        let path = Access { user: "u", verb: "get", path: "/metrics", ..Access::default() };
        assert_eq!(
            Status::access_denied(&path, "").message,
            "forbidden: User \"u\" cannot get path \"/metrics\""
        );
    }

    #[test]
    fn types_are_named_as_a_real_server_names_them() {
        assert_eq!(go_type("", "ConfigMapList", false), "*core.ConfigMapList");
        assert_eq!(go_type("rbac.authorization.k8s.io", "Role", false), "*rbac.Role");
        assert_eq!(go_type("x.io", "ThingList", true), "*unstructured.UnstructuredList");
        assert_eq!(
            Status::is_a_list("*core.ConfigMapList").message,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
        );
    }

    #[test]
    fn an_error_without_a_reason_says_so() {
        let status = Status::unexplained("x");
        assert_eq!((status.code(), status.reason), (500, None));
        assert!(!String::from_utf8(status.to_json(false).to_vec()).unwrap().contains("reason"));
    }

    #[test]
    fn an_expired_page_carries_the_token_to_go_on() {
        let status = Status::continue_expired(Some("abc".into()));
        assert_eq!(status.metadata.continue_token, "abc");
        assert_eq!(status.code(), 410);
    }
}
