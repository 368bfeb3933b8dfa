//! The exchange: the AdmissionReview sent and what must hold for the one that comes back.
//!
//! Owns both shapes, in v1 and v1beta1. Never sends anything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use berth_text::gotext::quote;
use serde_json::{Map, Value, json};

use super::configuration::Webhook;
use super::matching::Invocation;
use super::{Admission, Kind, WebhookKind};
use crate::refusal::Refusal;

/// More warnings than a person reads; the rest are dropped.
const WARNINGS_MAX: usize = 64;

/// The version of the review object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first version a webhook accepts that is known here.
    pub(super) fn choose(hook: &Webhook) -> Result<Self, String> {
        let known = hook.review_versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        });
        known.ok_or_else(|| {
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                .to_owned()
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// An object in another version of the same shape.
pub(super) fn versioned(object: &Value, kind: Kind<'_>) -> Value {
    let mut object = object.clone();
    set_version(&mut object, kind);
    object
}

pub(super) fn set_version(object: &mut Value, kind: Kind<'_>) {
    if let Some(map) = object.as_object_mut() {
        let version = if kind.group.is_empty() {
            kind.version.to_owned()
        } else {
            format!("{}/{}", kind.group, kind.version)
        };
        map.insert("apiVersion".to_owned(), Value::String(version));
        map.insert("kind".to_owned(), Value::String(kind.kind.to_owned()));
    }
}

/// The request without its objects, as match conditions see it.
pub(super) fn request_facts(admission: &Admission<'_>, invocation: Invocation<'_>) -> Value {
    let kind = |k: Kind<'_>| json!({"group": k.group, "version": k.version, "kind": k.kind});
    let resource =
        |r: super::Resource<'_>| json!({"group": r.group, "version": r.version, "resource": r.resource});
    let mut request = Map::new();
    let mut put = |key: &str, value: Value| request.insert(key.to_owned(), value);
    put("kind", kind(invocation.kind));
    put("resource", resource(invocation.resource));
    put("requestKind", kind(admission.kind));
    put("requestResource", resource(admission.resource));
    put("operation", json!(admission.operation.as_str()));
    put("userInfo", admission.user.to_value());
    put("dryRun", json!(admission.dry_run));
    put("options", admission.options.cloned().unwrap_or(Value::Null));
    for (key, text) in [
        ("subResource", admission.subresource),
        ("requestSubResource", admission.subresource),
        ("name", admission.name),
        ("namespace", admission.namespace),
    ] {
        if !text.is_empty() {
            put(key, json!(text));
        }
    }
    Value::Object(request)
}

/// The review to send.
pub(super) fn review(
    uid: &str,
    version: ReviewVersion,
    admission: &Admission<'_>,
    invocation: Invocation<'_>,
) -> Value {
    let mut request = request_facts(admission, invocation);
    request["uid"] = json!(uid);
    let shown =
        |object: Option<&Value>| object.map_or(Value::Null, |object| versioned(object, invocation.kind));
    request["object"] = shown(admission.object.as_ref());
    request["oldObject"] = shown(admission.old_object);
    json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request})
}

/// What a webhook answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) verdict: Result<(), Refusal>,
    /// The operations of a JSON patch, none when empty.
    pub(super) patch: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Checks an answer and reads it. The error is a failure of the webhook, not a refusal.
pub(super) fn read_answer(
    hook: &str,
    kind: WebhookKind,
    uid: &str,
    version: ReviewVersion,
    body: &[u8],
) -> Result<Answer, String> {
    let invalid = |text: String| format!("received invalid webhook response: {text}");
    let review: Value = serde_json::from_slice(body)
        .map_err(|error| format!("failed to call webhook: the answer is not JSON: {error}"))?;
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| invalid("webhook response was absent".to_owned()))?;
    if version == ReviewVersion::V1 {
        let given = response["uid"].as_str().unwrap_or_default();
        if given != uid {
            return Err(invalid(format!("expected response.uid={}, got {}", quote(uid), quote(given))));
        }
        let (api, own) =
            (review["apiVersion"].as_str().unwrap_or_default(), review["kind"].as_str().unwrap_or_default());
        if (api, own) != (version.api_version(), "AdmissionReview") {
            let (group, short) = api.split_once('/').unwrap_or(("", api));
            return Err(invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{short}, Kind={own}"
            )));
        }
    }
    let patch = read_patch(kind, version, response).map_err(invalid)?;
    let warnings = crate::rule::strings(response.get("warnings")).into_iter().take(WARNINGS_MAX).collect();
    let allowed = response["allowed"].as_bool().unwrap_or(false);
    if !allowed {
        let refusal = denial(hook, response.get("status"));
        return Ok(Answer { verdict: Err(refusal), patch: None, warnings });
    }
    let patch = patch.map(|bytes| decode_patch(&bytes)).transpose()?;
    let patch = patch.filter(|patch| patch.as_array().is_none_or(|operations| !operations.is_empty()));
    Ok(Answer { verdict: Ok(()), patch, warnings })
}

fn read_patch(
    kind: WebhookKind,
    version: ReviewVersion,
    response: &Value,
) -> Result<Option<Vec<u8>>, String> {
    let patch = response["patch"].as_str().unwrap_or_default();
    let patch = STANDARD.decode(patch).map_err(|_| "response.patch is not base64".to_owned())?;
    let kind_of_patch = response.get("patchType").filter(|value| !value.is_null());
    if version == ReviewVersion::V1Beta1 {
        // The old version never looked at the type of a patch.
        return Ok((kind == WebhookKind::Mutating && !patch.is_empty()).then_some(patch));
    }
    let text = match (kind, patch.is_empty(), kind_of_patch) {
        (WebhookKind::Mutating, false, None) => "webhook returned response.patch but not response.patchType",
        (WebhookKind::Mutating, true, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (WebhookKind::Validating, false, _) => "validating webhook may not return response.patch",
        (WebhookKind::Validating, _, Some(_)) => "validating webhook may not return response.patchType",
        (WebhookKind::Mutating, false, Some(own)) => match own.as_str().unwrap_or_default() {
            "JSONPatch" => return Ok(Some(patch)),
            other => return Err(format!("webhook returned invalid response.patchType of {}", quote(other))),
        },
        _ => return Ok(None),
    };
    Err(text.to_owned())
}

fn decode_patch(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes)
        .ok()
        .filter(Value::is_array)
        .ok_or_else(|| "received undecodable patch in webhook response: not a list of operations".to_owned())
}

/// The refusal a webhook dictates: never a success code, always saying who refused.
fn denial(hook: &str, status: Option<&Value>) -> Refusal {
    let mut out = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"});
    let field = |key: &str| status.and_then(|status| status.get(key));
    let text = |key: &str| field(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let by = format!("admission webhook {} denied the request", quote(hook));
    let message = match text("message").or_else(|| text("reason")) {
        Some(why) => format!("{by}: {why}"),
        None => format!("{by} without explanation"),
    };
    out["message"] = json!(message);
    if let Some(reason) = text("reason") {
        out["reason"] = json!(reason);
    }
    if let Some(details) = field("details").filter(|details| details.is_object()) {
        out["details"] = details.clone();
    }
    let code = field("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..=599).contains(code)).unwrap_or(400);
    out["code"] = json!(code);
    Refusal::Status { code, value: Box::new(out) }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
