//! Bodies on their way in: bounded, timed, decoded.

use axum::body::Body;
use berth_hub_kinds::{Gvk, protobuf};
use berth_hub_wire::body::{Decoded, KindRule, decode_object};
use berth_hub_wire::media::body_format;
use berth_hub_wire::{BodyFormat, DeleteOptions, GroupVersionKind, Status};
use bytes::Bytes;
use http::header;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::Value;

use super::Call;
use crate::registry::Resource;

/// The bytes of a body, within the limits.
pub(crate) async fn read(call: &Call, body: Body) -> Result<Bytes, Status> {
    let limits = &call.core.limits;
    let collected = tokio::time::timeout(limits.body_read, Limited::new(body, limits.body).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(Status::request_too_large(limits.body))
        }
        Ok(Err(error)) => Err(Status::bad_request(format!("the body could not be read: {error}"))),
        Err(_) => Err(Status::timeout("the body did not arrive in time", 0)),
    }
}

/// The object of a create or update, of the kind `expected` at its path.
pub(crate) fn object(
    call: &Call,
    bytes: &[u8],
    expected: &GroupVersionKind,
    rule: KindRule,
) -> Result<Decoded, Status> {
    let format = body_format(call.header(header::CONTENT_TYPE), rule == KindRule::FromPath)?;
    match format.text() {
        Some(text) => decode_object(text, bytes, expected, rule),
        None => binary(bytes, expected),
    }
}

/// Whether the body is in a form that can be read here, which a creation asks before anything else.
pub(crate) fn check_format(call: &Call, resource: &Resource) -> Result<(), Status> {
    body_format(call.header(header::CONTENT_TYPE), !resource.is_custom()).map(drop)
}

/// The object of a create or update of a resource.
pub(crate) fn object_of(call: &Call, bytes: &[u8], resource: &Resource) -> Result<Decoded, Status> {
    let rule = match call.query.get("fieldValidation") {
        _ if !resource.is_custom() => KindRule::FromPath,
        Some("Ignore") => KindRule::FromLooseBody,
        _ => KindRule::FromBody,
    };
    object(call, bytes, &resource.gvk(), rule)
}

fn binary(bytes: &[u8], expected: &GroupVersionKind) -> Result<Decoded, Status> {
    let wanted = Gvk {
        group: expected.group.as_str().into(),
        version: expected.version.as_str().into(),
        kind: expected.kind.as_str().into(),
    };
    let (kind, value) = protobuf::decode(bytes, Some(&wanted)).map_err(|error| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error}",
            expected.kind
        ))
    })?;
    Ok(Decoded {
        value,
        kind: GroupVersionKind::new(kind.group, kind.version, kind.kind),
        strict_errors: Vec::new(),
    })
}

/// The options of a deletion, from its body or its query.
pub(crate) fn delete_options(call: &Call, bytes: &[u8]) -> Result<DeleteOptions, Status> {
    if bytes.is_empty() {
        return DeleteOptions::parse(&call.query, None);
    }
    let expected = GroupVersionKind::new("meta.k8s.io", "v1", "DeleteOptions");
    let value: Value = match body_format(call.header(header::CONTENT_TYPE), true)? {
        BodyFormat::Protobuf => binary(bytes, &expected)?.value,
        format => match format.text() {
            Some(text) => {
                berth_hub_wire::body::read_text(text, bytes)
                    .map_err(|error| {
                        Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
                    })?
                    .value
            }
            None => Value::Null,
        },
    };
    DeleteOptions::parse(&call.query, Some(&value))
}
