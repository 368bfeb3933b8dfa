//! Changing an object by a patch: JSON patch, merge patch, strategic merge, server-side apply.
//!
//! ```text
//! read:   bytes ─ patch
//! begin:  patch applied to the live object ─ strict ─ prune ─ default ─ managed fields ─ namespace and name
//!             (mutating admission, by the caller)
//! finish: as for an update
//! ```
//! Owns what is said about patches that do not fit. How they are applied is the merge crate's.

use berth_hub_merge::PatchError;
use berth_hub_wire::body::{self, TextFormat};
use berth_hub_wire::gotext::{json_kind, quote};
use berth_hub_wire::names::split_api_version;
use berth_hub_wire::{FieldValidation, GroupVersionKind, PatchType, Reason, Status};
use berth_schema::gotext::Plain;
use serde_json::{Map, Value};

use super::act::{Act, Part};
use super::apply;
use super::create;
use super::govalue::conversion_failure;
use super::meta;
use super::outcome::Pending;
use super::refusal;
use super::rules;
use super::sent::{check_name, settle_namespace};

/// A patch as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Patch {
    /// How it is meant.
    pub kind: PatchType,
    /// What it says.
    pub value: Value,
    /// Paths of fields that it says twice.
    pub duplicates: Vec<String>,
    /// Whether an apply takes fields from others.
    pub force: bool,
}

/// Reads a patch. How the complaint about one that cannot be read begins depends on how strictly it was to be read.
pub(crate) fn read(
    kind: PatchType,
    validation: FieldValidation,
    bytes: &[u8],
    force: bool,
) -> Result<Patch, Status> {
    let format = if kind == PatchType::Apply { TextFormat::Yaml } else { TextFormat::Json };
    let document = body::read_text(format, bytes).map_err(|why| {
        Status::bad_request(match (kind, validation) {
            (PatchType::Apply, _) => format!("error decoding YAML: {why}"),
            (PatchType::Merge, FieldValidation::Ignore) => "Invalid JSON Patch".to_owned(),
            (PatchType::StrategicMerge, _) | (PatchType::Json, FieldValidation::Ignore) => why,
            (PatchType::Json | PatchType::Merge, _) => format!("error decoding patch: {why}"),
        })
    })?;
    // No configuration at all reads as one that says nothing.
    let nothing = kind == PatchType::Apply && document.value.is_null();
    let value = if nothing { Value::Object(Map::new()) } else { document.value };
    Ok(Patch { kind, value, duplicates: document.duplicates, force })
}

/// The first half of a PATCH: from the patch and the live object to the object that mutating admission sees.
pub(crate) fn begin(act: &Act<'_>, patch: &Patch, live: Option<&Value>) -> Result<Pending, Status> {
    let (mut object, warnings) = match (patch.kind, live) {
        (PatchType::Apply, None) if act.part != Part::Whole => {
            return Err(refusal::not_found(act.resource, act.name));
        }
        (PatchType::Apply, live) => apply::applied(act, patch, live)?,
        (_, None) => return Err(refusal::not_found(act.resource, act.name)),
        (_, Some(live)) => patched(act, patch, live)?,
    };
    let uid = meta::text(&object, "uid");
    if live.is_none() && !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Status::conflict(act.resource.group_resource(), act.name, &why));
    }
    settle_namespace(act, &mut object)?;
    check_name(act, &object)?;
    let pending = Pending::new(object, live.is_none(), warnings);
    let raw = patch.kind == PatchType::Apply && act.form().is_custom();
    Ok(if raw { pending.not_read() } else { pending })
}

/// What a client is warned of about its patch alone. A request that fails after the patch was applied carries these too,
/// and they are not kept with the failure.
pub(crate) fn warnings(act: &Act<'_>, patch: &Patch, live: Option<&Value>) -> Vec<String> {
    let result = match (patch.kind, live) {
        // There is nothing yet that a part could be applied to.
        (PatchType::Apply, None) if act.part != Part::Whole => return Vec::new(),
        (PatchType::Apply, live) => apply::applied(act, patch, live),
        (_, None) => return Vec::new(),
        (_, Some(live)) => patched(act, patch, live),
    };
    result.map(|(_, warnings)| warnings).unwrap_or_default()
}

/// The object that a JSON patch, merge patch or strategic merge patch makes of the live one.
fn patched(act: &Act<'_>, patch: &Patch, live: &Value) -> Result<(Value, Vec<String>), Status> {
    let result = merged(act, patch, live)?;
    // The text of the result is needed by failures alone, so it is made anew for them.
    let invalid = |why: &str| match merged(act, patch, live) {
        Ok(result) => refusal::invalid_patch(&shown(patch, &result), why),
        Err(status) => status,
    };
    let (mut object, unknown) = read_result(act, result).map_err(|why| {
        let converted = (patch.kind == PatchType::StrategicMerge).then(|| conversion_failure(&why)).flatten();
        invalid(&converted.unwrap_or(why))
    })?;
    let mut strict_errors = said_twice(patch);
    strict_errors.extend(unknown);
    let mut warnings = Vec::new();
    if !strict_errors.is_empty() {
        match act.field_validation {
            FieldValidation::Strict => {
                return Err(invalid(&format!("strict decoding error: {}", strict_errors.join(", "))));
            }
            FieldValidation::Warn => warnings = strict_errors,
            FieldValidation::Ignore => {}
        }
    }
    act.form().fill(&mut object)?;
    create::track(act, Some(live), &mut object);
    Ok((object, warnings))
}

fn merged(act: &Act<'_>, patch: &Patch, live: &Value) -> Result<Value, Status> {
    match patch.kind {
        PatchType::Json => {
            if act.field_validation == FieldValidation::Ignore {
                unread(&patch.value)?;
            }
            berth_hub_merge::json_patch(live, &patch.value).map_err(patch_refused)
        }
        PatchType::Merge => {
            berth_hub_merge::check_merge_patch(&patch.value).map_err(patch_refused)?;
            let mut result = live.clone();
            berth_hub_merge::merge_patch(&mut result, &patch.value);
            Ok(result)
        }
        PatchType::StrategicMerge | PatchType::Apply => {
            let mut result = berth_hub_merge::strategic_merge(live, &patch.value, act.form().schema())
                .map_err(patch_refused)?;
            // It is read as the kind that the path serves, whatever the patch calls it.
            for field in ["apiVersion", "kind"] {
                meta::map(&mut result).insert(field.to_owned(), live.get(field).cloned().unwrap_or_default());
            }
            Ok(result)
        }
    }
}

/// What is said of a JSON patch that is none, where nobody looked for unknown fields in it before.
fn unread(patch: &Value) -> Result<(), Status> {
    let refused = |found: &Value, wanted: &str| {
        let kind = json_kind(found);
        Err(Status::bad_request(format!(
            "json: cannot unmarshal {kind} into Go value of type jsonpatch.{wanted}"
        )))
    };
    match patch {
        Value::Array(operations) => operations
            .iter()
            .find(|operation| !operation.is_object() && !operation.is_null())
            .map_or(Ok(()), |operation| refused(operation, "Operation")),
        Value::Null => Ok(()),
        other => refused(other, "Patch"),
    }
}

/// What a patch itself says twice or says needlessly.
fn said_twice(patch: &Patch) -> Vec<String> {
    if patch.kind != PatchType::Json {
        return body::strict_errors(TextFormat::Json, &patch.duplicates);
    }
    let duplicates =
        patch.duplicates.iter().map(|path| format!("json patch duplicate field {}", quote(path)));
    berth_hub_merge::unknown_operation_fields(&patch.value).into_iter().chain(duplicates).collect()
}

/// The result of a patch, read as the kind that the path serves.
fn read_result(act: &Act<'_>, result: Value) -> Result<(Value, Vec<String>), String> {
    if !result.is_object() {
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_kind(&result)
        ));
    }
    let said = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default();
    if act.form().is_custom() {
        if said("kind").is_empty() {
            return Err(format!("Object 'Kind' is missing in '{result}'"));
        }
        return act.form().fit(result);
    }
    let expected = act.form().gvk();
    let (group, version) = split_api_version(said("apiVersion"))?;
    let mut kind = GroupVersionKind::new(group, version, said("kind"));
    if kind.kind.is_empty() {
        kind.kind.clone_from(&expected.kind);
    }
    if kind.group.is_empty() && kind.version.is_empty() {
        (kind.group, kind.version) = (expected.group.clone(), expected.version.clone());
    }
    if kind.group != expected.group || kind.kind != expected.kind {
        return Err(rules::foreign_kind(&kind, &expected));
    }
    if kind.version != expected.version {
        return Err(rules::unregistered(&kind));
    }
    act.form().fit(result)
}

/// The result of a patch, or for strategic merges the patch, as failures show it.
fn shown(patch: &Patch, result: &Value) -> String {
    if patch.kind == PatchType::StrategicMerge { Plain(&patch.value).to_string() } else { result.to_string() }
}

fn patch_refused(error: PatchError) -> Status {
    match error {
        PatchError::BadRequest(message) => Status::bad_request(message),
        PatchError::Unprocessable(_) => refusal::rejected_patch(),
        PatchError::TooLarge(message) => Status::failure(
            413,
            Reason::RequestEntityTooLarge,
            format!("Request entity too large: {message}"),
        ),
        PatchError::Internal(message) => refusal::bare(message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{
        API_VERSION, act, builtin, patched, placement, placements, shown, stored,
    };
    use crate::resource::outcome::{Answer, Step};

    fn message(result: Result<super::super::Outcome, Status>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn a_merge_patch_that_changes_nothing_is_no_write() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({"numberOfClusters": 1})), "5");
        let outcome =
            patched(&act, PatchType::Merge, r#"{"spec":{"numberOfClusters":1}}"#, Some(&live)).unwrap();
        assert_eq!((outcome.steps, outcome.answer), (Vec::new(), Answer::Live));
        let outcome =
            patched(&act, PatchType::Merge, r#"{"spec":{"numberOfClusters":2}}"#, Some(&live)).unwrap();
        assert!(
            matches!(&outcome.steps[..], [Step::Update(object)] if object["metadata"]["generation"] == 2)
        );
    }

    #[test]
    fn a_revision_in_a_patch_makes_it_conditional() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let patch = |body: &str| patched(&act, PatchType::Merge, body, Some(&live));
        assert_eq!(patch(r#"{"metadata":{"resourceVersion":"1"}}"#).unwrap_err().code(), 409);
        assert!(patch(r#"{"metadata":{"resourceVersion":"5"}}"#).is_ok());
        assert!(
            message(patch(r#"{"metadata":{"resourceVersion":null}}"#))
                .ends_with("must be specified for an update")
        );
        assert!(message(patch(r#"{"metadata":{"resourceVersion":"abc"}}"#)).starts_with("strconv.ParseUint"));
    }

    #[test]
    fn a_patch_cannot_change_who_an_object_is() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let patch = |body: &str| message(patched(&act, PatchType::Merge, body, Some(&live)));
        assert_eq!(
            patch(r#"{"metadata":{"name":"p2"}}"#),
            "the name of the object (p2) does not match the name on the URL (p1)"
        );
        assert_eq!(
            patch(r#"{"metadata":{"namespace":"x"}}"#),
            "the namespace of the provided object does not match the namespace sent on the request"
        );
        assert_eq!(
            patch(r#"{"metadata":null}"#),
            "the name of the object (p1 based on URL) was undeterminable: name must be provided"
        );
        assert_eq!(
            patch(r#"{"kind":"Foo"}"#),
            "Foo.cluster.open-cluster-management.io \"p1\" is invalid: kind: Invalid value: \"Foo\": must be Placement"
        );
        assert_eq!(
            patch(r#"{"apiVersion":"x/v1"}"#),
            "Placement.x \"p1\" is invalid: apiVersion: Invalid value: \"x/v1\": must be \
             cluster.open-cluster-management.io/v1beta1"
        );
        assert_eq!(
            patch(r#"{"metadata":{"uid":"abc"}}"#),
            "Placement.cluster.open-cluster-management.io \"p1\" is invalid: metadata.uid: Invalid value: \"abc\": field is \
             immutable"
        );
    }

    #[test]
    fn a_strict_patch_shows_the_object_it_would_have_made() {
        let placements = placements();
        let strict = Act { field_validation: FieldValidation::Strict, ..act(&placements, "p1") };
        let live = json!({"apiVersion": API_VERSION, "kind": "Placement",
            "metadata": {"name": "p1", "namespace": "default", "resourceVersion": "5", "uid": "u"}, "spec": {}});
        let status = patched(&strict, PatchType::Merge, r#"{"spec":{"foo":1}}"#, Some(&live)).unwrap_err();
        let why = "Invalid value: \"{\\\"apiVersion\\\":\\\"cluster.open-cluster-management.io/v1beta1\\\",\\\"kind\\\":\
                   \\\"Placement\\\",\\\"metadata\\\":{\\\"name\\\":\\\"p1\\\",\\\"namespace\\\":\\\"default\\\",\
                   \\\"resourceVersion\\\":\\\"5\\\",\\\"uid\\\":\\\"u\\\"},\\\"spec\\\":{\\\"foo\\\":1}}\": strict decoding \
                   error: unknown field \"spec.foo\"";
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": format!(" \"\" is invalid: patch: {why}"),
                "reason": "Invalid",
                "details": {"causes": [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]},
                "code": 422,
            })
        );
        let warned = Act { field_validation: FieldValidation::Warn, ..strict };
        let patch = r#"{"spec":{"foo":1,"numberOfClusters":1,"numberOfClusters":2}}"#;
        let outcome = patched(&warned, PatchType::Merge, patch, Some(&live)).unwrap();
        assert_eq!(
            outcome.warnings,
            ["duplicate field \"spec.numberOfClusters\"", "unknown field \"spec.foo\""]
        );
    }

    #[test]
    fn strategic_merges_show_the_patch_itself() {
        let configs = builtin("", "configmaps");
        let strict = Act { field_validation: FieldValidation::Strict, ..act(&configs, "c1") };
        let live = stored(&strict, &json!({"metadata": {"name": "c1"}, "data": {"a": "b"}}), "5");
        let patch = |body: &str| message(patched(&strict, PatchType::StrategicMerge, body, Some(&live)));
        assert_eq!(
            patch(r#"{"foo":1}"#),
            " \"\" is invalid: patch: Invalid value: \"map[foo:1]\": strict decoding error: unknown field \"foo\""
        );
        assert_eq!(
            patch(r#"{"data":{"a":"1","a":"2"}}"#),
            " \"\" is invalid: patch: Invalid value: \"map[data:map[a:2]]\": strict decoding error: duplicate field \
             \"data.a\""
        );
        assert_eq!(
            patch(r#"{"data":{"a":5}}"#),
            " \"\" is invalid: patch: Invalid value: \"map[data:map[a:5]]\": cannot convert int64 to string"
        );
        assert_eq!(
            patch(r#"{"data":{"b":{"x":1}}}"#),
            " \"\" is invalid: patch: Invalid value: \"map[data:map[b:map[x:1]]]\": unrecognized type: string"
        );
        assert!(
            patch(r#"{"binaryData":{"a":"!"}}"#)
                .ends_with(": error decoding from json: illegal base64 data at input byte 0")
        );
        let outcome =
            patched(&strict, PatchType::StrategicMerge, r#"{"kind":"Secret"}"#, Some(&live)).unwrap();
        assert_eq!(outcome.steps, []);
    }

    #[test]
    fn patches_that_cannot_be_read_or_applied_are_refused_in_golden_words() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let patch = |kind: PatchType, body: &str| patched(&act, kind, body, Some(&live)).unwrap_err();
        assert_eq!(
            patch(PatchType::Merge, "[1]").message,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
        assert_eq!(
            patch(PatchType::Merge, "{").message,
            "error decoding patch: unexpected end of JSON input"
        );
        assert_eq!(
            patch(PatchType::Json, "{}").message,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        let rejected = patch(PatchType::Json, r#"[{"op":"test","path":"/spec/sortBy","value":9}]"#);
        assert_eq!(
            shown(&rejected),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "the server rejected our request due to an error in our request",
                "reason": "Invalid", "details": {}, "code": 422,
            })
        );
        let absent = patched(&act, PatchType::Merge, "{}", None).unwrap_err();
        assert_eq!(absent.message, "placements.cluster.open-cluster-management.io \"p1\" not found");
    }

    #[test]
    fn too_many_operations_are_refused_before_any_is_done() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let operation = json!({"op": "test", "path": "/kind", "value": "Placement"});
        let many = Value::Array(vec![operation; 10_001]).to_string();
        let status = patched(&act, PatchType::Json, &many, Some(&live)).unwrap_err();
        assert_eq!(status.code(), 413);
        assert_eq!(
            status.message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }
}
