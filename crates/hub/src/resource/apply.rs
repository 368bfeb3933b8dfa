//! Server-side apply: a configuration merged into the live object, or made into a new one.
//!
//! Owns what is asked of a configuration before it is merged, and what is said when it cannot be. Merging, owners and
//! conflicts are the merge crate's.

use berth_hub_merge::{ApplyError, Operation};
use berth_hub_wire::body::cannot_be_handled;
use berth_hub_wire::gotext::{json_kind, quote};
use berth_hub_wire::{Cause, FieldValidation, Status};
use serde_json::Value;

use super::act::{Act, Part};
use super::govalue::conversion_failure;
use super::growth;
use super::meta;
use super::patch::Patch;
use super::refusal;

/// The object that an apply makes of the live one, or of nothing.
pub(super) fn applied(
    act: &Act<'_>,
    patch: &Patch,
    live: Option<&Value>,
) -> Result<(Value, Vec<String>), Status> {
    let config = &patch.value;
    if !config.is_object() {
        return Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of \
             type map[string]interface {{}}",
            json_kind(config)
        )));
    }
    check_type(act, config)?;
    // Built-in kinds count when they are read, below.
    if act.form().is_custom() {
        let kind = act.form().gvk();
        growth::check_values(config).map_err(|why| cannot_be_handled(&kind, &kind, &why))?;
    }
    if meta::at(config, &["metadata", "managedFields"]).is_some_and(|fields| !fields.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if act.part == Part::Scale && act.resource.is_custom() {
        return Err(refusal::bare(
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to \
             proper version: request to convert CR to an invalid group/version: autoscaling/v1",
        ));
    }
    let tracked = act.form().tracked();
    let reset = act.form().reset(act.part);
    let applied = act
        .as_writer(Operation::Apply, |writer| {
            berth_hub_merge::apply(live, config, tracked, writer, patch.force, reset)
        })
        .map_err(apply_refused)?;
    let twice = |path: &String| {
        let key = path.rsplit('.').next().unwrap_or(path);
        format!("line 1: key {} already set in map", quote(key))
    };
    let warnings: Vec<String> = match act.field_validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => patch.duplicates.iter().map(twice).collect(),
        FieldValidation::Strict if patch.duplicates.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            let lines: Vec<String> =
                patch.duplicates.iter().map(|path| format!("\n  {}", twice(path))).collect();
            return Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{}",
                lines.concat()
            )));
        }
    };
    // What the schema knows of a custom resource is asked later: unlike other writes, an apply is validated as it stands.
    let mut object = if act.form().is_custom() { applied } else { convert(act, config, applied)? };
    act.form().fill_raw(&mut object)?;
    Ok((object, warnings))
}

/// The result of an apply as the built-in kind it is.
fn convert(act: &Act<'_>, config: &Value, applied: Value) -> Result<Value, Status> {
    act.form().fit(applied).map(|(object, _)| object).map_err(|why| {
        let gvk = act.form().gvk();
        let kind = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
        let core = if gvk.group.is_empty() { "/" } else { "" };
        refusal::bare(format!(
            "failed to convert new object ({}/{}; {core}{kind}) to proper version: unable to convert unstructured object to \
             {core}{kind}: {}",
            meta::text(config, "namespace"),
            meta::text(config, "name"),
            conversion_failure(&why).unwrap_or(why)
        ))
    })
}

/// An apply must say exactly which kind it means.
fn check_type(act: &Act<'_>, config: &Value) -> Result<(), Status> {
    let said = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let expected = act.form().gvk();
    if said("kind") == expected.kind && said("apiVersion") == expected.api_version() {
        return Ok(());
    }
    let (group, version) = said("apiVersion").split_once('/').unwrap_or(("", said("apiVersion")));
    Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={}", said("kind"))))
}

fn apply_refused(error: ApplyError) -> Status {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|conflict| {
                Cause::new("FieldManagerConflict", conflict.message(), conflict.field.as_str())
            });
            let causes = causes.collect();
            Status::apply_conflict(conflicts.to_string(), causes)
        }
        ApplyError::BadRequest(message) => Status::bad_request(message),
        ApplyError::Failed(message) => refusal::bare(message),
    }
}

#[cfg(test)]
mod tests {
    use berth_hub_wire::PatchType;
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{
        API_VERSION, act, builtin, patched, placement, placements, shown, stored,
    };
    use crate::resource::{Outcome, Part};

    fn message(result: Result<Outcome, Status>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn an_apply_makes_what_is_not_there() {
        let placements = placements();
        let act = act(&placements, "s1");
        let config = placement("s1", json!({"numberOfClusters": 1})).to_string();
        let outcome = patched(&act, PatchType::Apply, &config, None).unwrap();
        assert_eq!(outcome.code, 201);
        let made = outcome.object().unwrap();
        assert_eq!(made["spec"]["sortBy"], "ClusterName");
        let fields = json!({"f:spec": {"f:numberOfClusters": {}}});
        assert_eq!(made["metadata"]["managedFields"][0]["fieldsV1"], fields);
        assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Apply");
        let status = Act { part: Part::Status, ..act };
        assert_eq!(patched(&status, PatchType::Apply, &config, None).unwrap_err().code(), 404);
    }

    #[test]
    fn an_apply_is_validated_as_it_stands_and_trimmed_when_kept() {
        let placements = placements();
        let act = act(&placements, "s1");
        let config = placement("s1", json!({"numberOfClusters": null})).to_string();
        assert_eq!(
            message(patched(&act, PatchType::Apply, &config, None)),
            "Placement.cluster.open-cluster-management.io \"s1\" is invalid: spec.numberOfClusters: Invalid value: \"null\": \
             spec.numberOfClusters in body must be of type integer: \"null\""
        );
        let config = placement("s1", json!({"sortBy": null})).to_string();
        let outcome = patched(&act, PatchType::Apply, &config, None).unwrap();
        assert_eq!(
            outcome.object().unwrap()["spec"],
            json!({"scoreRateLimit": "1m", "sortBy": "ClusterName"})
        );
        let deployments = builtin("apps", "deployments");
        let act = crate::resource::fixtures::act(&deployments, "d");
        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1.5}});
        assert_eq!(
            message(patched(&act, PatchType::Apply, &config.to_string(), None)),
            "failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured \
             object to apps/v1, Kind=Deployment: cannot convert float64 to int32"
        );
    }

    #[test]
    fn an_apply_over_fields_of_others_is_a_conflict() {
        let placements = placements();
        let creator = act(&placements, "p1");
        let live = stored(&creator, &placement("p1", json!({"numberOfClusters": 2})), "5");
        let applier = Act { manager: "m2", ..creator };
        let config = placement("p1", json!({"numberOfClusters": 5})).to_string();
        let status = patched(&applier, PatchType::Apply, &config, Some(&live)).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Apply failed with 1 conflict: conflict with \"m1\" using \
                            cluster.open-cluster-management.io/v1beta1: .spec.numberOfClusters",
                "reason": "Conflict",
                "details": {"causes": [{
                    "reason": "FieldManagerConflict",
                    "message": "conflict with \"m1\" using cluster.open-cluster-management.io/v1beta1",
                    "field": ".spec.numberOfClusters",
                }]},
                "code": 409,
            })
        );
    }

    #[test]
    fn an_apply_must_say_what_it_means() {
        let placements = placements();
        let act = act(&placements, "s1");
        let apply = |config: &Value| message(patched(&act, PatchType::Apply, &config.to_string(), None));
        let with = |field: &str, value: Value| {
            let mut config = placement("s1", json!({}));
            config["metadata"][field] = value;
            config
        };
        assert_eq!(apply(&json!({"kind": "Placement"})), "invalid object type: /, Kind=Placement");
        assert_eq!(
            apply(&json!({"apiVersion": API_VERSION, "kind": "Foo"})),
            "invalid object type: cluster.open-cluster-management.io/v1beta1, Kind=Foo"
        );
        assert_eq!(apply(&with("managedFields", json!([]))), "metadata.managedFields must be nil");
        assert_eq!(
            apply(&with("uid", json!("x"))),
            "Operation cannot be fulfilled on placements.cluster.open-cluster-management.io \"s1\": uid mismatch: the \
             provided object specified uid x, and no existing object was found"
        );
        assert_eq!(
            apply(&with("name", Value::Null)),
            "the name of the object (s1 based on URL) was undeterminable: name must be provided"
        );
        assert_eq!(
            apply(&json!([])),
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of \
             type map[string]interface {}"
        );
        assert_eq!(
            apply(&placement("s1", json!({"foo": 1}))),
            "failed to create typed patch object (/s1; cluster.open-cluster-management.io/v1beta1, Kind=Placement): \
             .spec.foo: field not declared in schema"
        );
    }

    #[test]
    fn a_field_said_twice_in_an_apply_is_told_by_its_key() {
        let placements = placements();
        let strict = Act { field_validation: FieldValidation::Strict, ..act(&placements, "s1") };
        let config = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"Placement","metadata":{{"name":"s1"}},
            "spec":{{"numberOfClusters":1,"numberOfClusters":2}}}}"#
        )
        .replace('\n', "");
        assert_eq!(
            message(patched(&strict, PatchType::Apply, &config, None)),
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \
             \"numberOfClusters\" already set in map"
        );
        let warned = Act { field_validation: FieldValidation::Warn, ..strict };
        let outcome = patched(&warned, PatchType::Apply, &config, None).unwrap();
        assert_eq!(outcome.warnings, ["line 1: key \"numberOfClusters\" already set in map"]);
    }
}
