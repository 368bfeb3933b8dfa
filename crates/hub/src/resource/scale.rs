//! `/scale`: how many replicas, in one shape for every kind that has them.
//!
//! ```text
//! live ─► scale ─► (PUT or PATCH, as for any object) ─► scale ─► replicas, revision and owners back into live ─► update
//! ```
//! Owns the way there and back. The write itself is an update of the object.

use berth_hub_merge::ScalePaths as ManagedPaths;
use berth_hub_wire::body::Decoded;
use berth_hub_wire::gotext::quote;
use berth_hub_wire::{Cause, GroupKind, LabelSelector, Status};
use serde_json::{Value, json};

use crate::registry::{Resource, ScalePaths};

use super::act::{Act, Mint, Part};
use super::meta;
use super::outcome::{Outcome, Pending};
use super::patch::{self, Patch};
use super::refusal;
use super::update;

/// Where built-in kinds keep their replicas.
const REPLICAS: [&str; 2] = ["spec", "replicas"];
/// Stands for "no replicas are set" on the way through a custom resource's scale. No real number of replicas is negative.
const UNSET: i64 = i32::MIN as i64;

/// The scale of an object, as writes of it show: no replicas are none.
pub(crate) fn of(resource: &Resource, object: &Value) -> Result<Value, Status> {
    paths_of(resource).map_or_else(|| builtin(object), |paths| Ok(custom(paths, object)?.0))
}

/// The scale of an object, as a GET of it shows: an object that says nothing of replicas has none.
pub(crate) fn show(resource: &Resource, object: &Value) -> Result<Value, Status> {
    let Some(paths) = paths_of(resource) else {
        return builtin(object);
    };
    let (scale, found) = custom(paths, object)?;
    if !found {
        let why = format!("the spec replicas field {} does not exist", quote(&dotted(&paths.spec_replicas)));
        return Err(Status::internal(&why));
    }
    Ok(scale)
}

/// The first half of a PUT to a scale; the part of the act is [`Part::Scale`]. Mutating admission sees the scale.
pub(crate) fn begin_update(act: &Act<'_>, sent: Decoded, live: Option<&Value>) -> Result<Pending, Status> {
    let view = live.map(|live| view(act.resource, live)).transpose()?;
    update::begin(act, sent, view.as_ref())
}

/// The first half of a PATCH of a scale.
pub(crate) fn begin_patch(act: &Act<'_>, patch: &Patch, live: Option<&Value>) -> Result<Pending, Status> {
    let view = live.map(|live| view(act.resource, live)).transpose()?;
    patch::begin(act, patch, view.as_ref())
}

/// The second half: what the scale comes to for the object. The outcome is about the object; [`show`] makes its answer.
pub(crate) fn finish(act: &Act<'_>, pending: Pending, live: &Value, mint: &Mint) -> Result<Outcome, Status> {
    let (mut scale, raw, warnings) = pending.take();
    if raw {
        scale = act.form().fit(scale).map_err(|why| Status::internal(&why))?.0;
    }
    let replicas = meta::at(&scale, &REPLICAS).and_then(Value::as_i64).unwrap_or(0);
    let mut object = live.clone();
    let revision = meta::text(&scale, "resourceVersion");
    if let Some(paths) = paths_of(act.resource) {
        if replicas == UNSET {
            let why =
                format!("the spec replicas field {} cannot be empty", quote(&dotted(&paths.spec_replicas)));
            return Err(Status::bad_request(why));
        }
        put(&mut object, &paths.spec_replicas, replicas);
        if !revision.is_empty() {
            meta::set(&mut object, "resourceVersion", Some(revision.into()));
        }
    } else {
        if replicas < 0 {
            let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
            let cause = Cause::new("FieldValueInvalid", message, "spec.replicas");
            return Err(Status::invalid(GroupKind::new("autoscaling", "Scale"), act.name, &[cause]));
        }
        put(&mut object, &REPLICAS.map(str::to_owned), replicas);
        meta::set(&mut object, "resourceVersion", Some(revision.into()));
    }
    let version = act.resource.api_version();
    let owners = with_replicas(act.resource, |paths| {
        berth_hub_merge::scale_to_parent(entries(live), entries(&scale), &version, paths)
    });
    let owners = owners.map_err(refusal::bare)?;
    meta::set(&mut object, "managedFields", (!owners.is_empty()).then(|| owners.into()));
    let whole = Act { part: Part::Whole, ..*act };
    update::finish(&whole, Pending::new(object, false, warnings), Some(live), mint)
}

/// The scale that a write starts from, with the owners of the replicas.
fn view(resource: &Resource, live: &Value) -> Result<Value, Status> {
    let mut scale = match paths_of(resource) {
        None => builtin(live)?,
        Some(paths) => {
            let (mut scale, found) = custom(paths, live)?;
            if !found {
                meta::child(meta::map(&mut scale), "spec").insert("replicas".to_owned(), UNSET.into());
            }
            scale
        }
    };
    let owners = with_replicas(resource, |paths| berth_hub_merge::scale_view(entries(live), paths));
    let owners = owners.map_err(refusal::bare)?;
    meta::set(&mut scale, "managedFields", (!owners.is_empty()).then(|| owners.into()));
    Ok(scale)
}

fn entries(object: &Value) -> &Value {
    meta::at(object, &["metadata", "managedFields"]).unwrap_or(&Value::Null)
}

/// Calls with where each version of a resource keeps its replicas.
fn with_replicas<T>(resource: &Resource, call: impl FnOnce(ManagedPaths<'_>) -> T) -> T {
    let Some(custom) = resource.custom() else {
        return call(&[(resource.api_version().as_str(), Some(&REPLICAS))]);
    };
    let split: Vec<(&str, Option<Vec<&str>>)> = custom
        .replicas
        .iter()
        .map(|(version, path)| {
            let path = path.as_ref().map(|path| path.iter().map(String::as_str).collect());
            (version.as_str(), path)
        })
        .collect();
    let paths: Vec<(&str, Option<&[&str]>)> =
        split.iter().map(|(version, path)| (*version, path.as_deref())).collect();
    call(&paths)
}

fn builtin(object: &Value) -> Result<Value, Status> {
    let count = |path: &[&str]| meta::at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let selector = meta::at(object, &["spec", "selector"]).unwrap_or(&Value::Null);
    let selector = LabelSelector::from_object(selector).map_err(Status::bad_request)?;
    Ok(scale(object, count(&REPLICAS), count(&["status", "replicas"]), &selector.to_string()))
}

fn custom(paths: &ScalePaths, object: &Value) -> Result<(Value, bool), Status> {
    let at = |path: &[String]| path.iter().try_fold(object, |value, field| value.get(field));
    let count = |path: &[String]| match at(path) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong_type(path, value, "int64")),
    };
    let spec = count(&paths.spec_replicas)?;
    let status = count(&paths.status_replicas)?.unwrap_or(0);
    let selector = match paths.label_selector.as_deref().and_then(|path| Some((path, at(path)?))) {
        None => "",
        Some((path, value)) => value.as_str().ok_or_else(|| wrong_type(path, value, "string"))?,
    };
    Ok((scale(object, spec.unwrap_or(0), status, selector), spec.is_some()))
}

fn wrong_type(path: &[String], value: &Value, wanted: &str) -> Status {
    let fields: Vec<&str> = path.iter().map(String::as_str).collect();
    refusal::bare(super::govalue::misfit(&fields, value, wanted))
}

fn scale(object: &Value, spec: i64, status: i64, selector: &str) -> Value {
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {},
        "spec": {},
        "status": {"replicas": status},
    });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = meta::text(object, field);
        if !value.is_empty() {
            meta::set(&mut scale, field, Some(value.into()));
        }
    }
    if spec != 0 {
        scale["spec"]["replicas"] = spec.into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn put(object: &mut Value, path: &[String], replicas: i64) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().fold(meta::map(object), |parent, field| meta::child(parent, field));
    parent.insert(last.clone(), replicas.into());
}

fn paths_of(resource: &Resource) -> Option<&ScalePaths> {
    resource.custom().and_then(|version| version.scale.as_ref())
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

#[cfg(test)]
mod tests {
    use berth_hub_wire::PatchType;
    use berth_hub_wire::body::{KindRule, TextFormat, decode_object};

    use super::*;
    use crate::resource::fixtures::{act, at_revision, builtin, mint, placement, scaled_placements, stored};
    use crate::resource::patch;

    fn scaling<'a>(resource: &'a Resource, name: &'a str, manager: &'a str) -> Act<'a> {
        Act { part: Part::Scale, manager, ..act(resource, name) }
    }

    fn put(act: &Act<'_>, body: &Value, live: &Value) -> Result<Outcome, Status> {
        let gvk = act.form().gvk();
        let sent =
            decode_object(TextFormat::Json, body.to_string().as_bytes(), &gvk, KindRule::FromPath).unwrap();
        let pending = begin_update(act, sent, Some(live))?;
        finish(act, pending, live, &mint())
    }

    fn deployment(act: &Act<'_>) -> Value {
        let body = json!({
            "metadata": {"name": "d"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        });
        stored(act, &body, "449")
    }

    #[test]
    fn the_scale_of_a_workload_shows_replicas_and_selector() {
        let deployments = builtin("apps", "deployments");
        let live = deployment(&act(&deployments, "d"));
        assert_eq!(
            show(&deployments, &live).unwrap(),
            json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": "d", "namespace": "default", "uid": mint().uid, "resourceVersion": "449",
                    "creationTimestamp": "2026-11-15T22:50:54Z"},
                "spec": {"replicas": 2},
                "status": {"replicas": 0, "selector": "a=b"},
            })
        );
    }

    #[test]
    fn writing_a_scale_moves_replicas_and_their_owner() {
        let deployments = builtin("apps", "deployments");
        let live = deployment(&act(&deployments, "d"));
        let outcome = put(
            &scaling(&deployments, "d", "sc"),
            &json!({"metadata": {"name": "d"}, "spec": {"replicas": 5}}),
            &live,
        );
        let scaled = at_revision(outcome.unwrap(), "451");
        assert_eq!(scaled["spec"]["replicas"], 5);
        assert_eq!(scaled["metadata"]["generation"], 2);
        let entries = scaled["metadata"]["managedFields"].as_array().unwrap();
        let of = |manager: &str| entries.iter().find(|entry| entry["manager"] == manager).unwrap();
        assert_eq!(of("sc")["subresource"], "scale");
        assert_eq!(of("sc")["apiVersion"], "apps/v1");
        assert_eq!(of("sc")["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(of("m1")["fieldsV1"]["f:spec"].get("f:replicas"), None);
        let again = patch::read(
            PatchType::Merge,
            act(&deployments, "d").field_validation,
            br#"{"spec":{"replicas":5}}"#,
            false,
        );
        let patching = scaling(&deployments, "d", "sc");
        let pending = begin_patch(&patching, &again.unwrap(), Some(&scaled)).unwrap();
        assert_eq!(finish(&patching, pending, &scaled, &mint()).unwrap().steps, []);
    }

    #[test]
    fn an_apply_of_a_scale_conflicts_over_replicas() {
        let deployments = builtin("apps", "deployments");
        let live = deployment(&act(&deployments, "d"));
        let config = br#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":7}}"#;
        let applying = scaling(&deployments, "d", "sap");
        let read = patch::read(PatchType::Apply, applying.field_validation, config, false).unwrap();
        let status = begin_patch(&applying, &read, Some(&live)).unwrap_err();
        assert_eq!(
            status.message,
            "Apply failed with 1 conflict: conflict with \"m1\" using autoscaling/v1: .spec.replicas"
        );
        let forced = Patch { force: true, ..read };
        let pending = begin_patch(&applying, &forced, Some(&live)).unwrap();
        let outcome = finish(&applying, pending, &live, &mint()).unwrap();
        let written = outcome.object().unwrap();
        assert_eq!(written["spec"]["replicas"], 7);
        assert_eq!(written["metadata"]["managedFields"][0]["operation"], "Apply");
    }

    #[test]
    fn scales_that_make_no_sense_are_refused_about_the_right_object() {
        let deployments = builtin("apps", "deployments");
        let live = deployment(&act(&deployments, "d"));
        let act = scaling(&deployments, "d", "sc");
        let refused = |body: Value| put(&act, &body, &live).unwrap_err().message;
        assert_eq!(
            refused(json!({"metadata": {"name": "d"}, "spec": {"replicas": -1}})),
            "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
        assert!(
            refused(json!({"metadata": {"name": "d", "uid": "x"}})).starts_with(
                "Operation cannot be fulfilled on deployments.apps \"d\": StorageError: invalid object, Code: 4, Key: \
                 /registry/deployments/default/d,"
            )
        );
        assert!(
            refused(json!({"metadata": {"name": "d", "resourceVersion": "1"}})).contains("has been modified")
        );
        let absent = decode_object(
            TextFormat::Json,
            br#"{"metadata":{"name":"d"}}"#,
            &act.form().gvk(),
            KindRule::FromPath,
        );
        assert_eq!(
            begin_update(&act, absent.unwrap(), None).unwrap_err().message,
            "deployments.apps \"d\" not found"
        );
    }

    #[test]
    fn a_custom_resource_is_scaled_by_its_paths() {
        let placements = scaled_placements();
        let empty = stored(&act(&placements, "w"), &placement("w", json!({})), "458");
        assert_eq!(
            show(&placements, &empty).unwrap_err().message,
            "Internal error occurred: the spec replicas field \".spec.numberOfClusters\" does not exist"
        );
        let act = scaling(&placements, "w", "sc");
        let labels = patch::read(
            PatchType::Merge,
            act.field_validation,
            br#"{"metadata":{"labels":{"q":"r"}}}"#,
            false,
        );
        let pending = begin_patch(&act, &labels.unwrap(), Some(&empty)).unwrap();
        assert_eq!(
            finish(&act, pending, &empty, &mint()).unwrap_err().message,
            "the spec replicas field \".spec.numberOfClusters\" cannot be empty"
        );
        let outcome =
            put(&act, &json!({"metadata": {"name": "w"}, "spec": {"replicas": 3}}), &empty).unwrap();
        let scaled = at_revision(outcome, "459");
        assert_eq!(scaled["spec"]["numberOfClusters"], 3);
        assert_eq!(scaled["metadata"]["generation"], 2);
        assert_eq!(show(&placements, &scaled).unwrap()["spec"], json!({"replicas": 3}));
        assert_eq!(
            put(&act, &json!({"metadata": {"name": "w"}, "spec": {"replicas": -3}}), &scaled)
                .unwrap_err()
                .message,
            "Placement.cluster.open-cluster-management.io \"w\" is invalid: .spec.numberOfClusters: Invalid value: -3: \
             should be a non-negative integer"
        );
    }

    #[test]
    fn who_scales_a_custom_resource_owns_its_replicas_from_then_on() {
        let placements = scaled_placements();
        let live = stored(&act(&placements, "w"), &placement("w", json!({"numberOfClusters": 2})), "458");
        let act = scaling(&placements, "w", "sc");
        let view = view(&placements, &live).unwrap();
        assert_eq!(view["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
        let outcome = put(&act, &json!({"metadata": {"name": "w"}, "spec": {"replicas": 3}}), &live).unwrap();
        let scaled = at_revision(outcome, "459");
        let entries = scaled["metadata"]["managedFields"].as_array().unwrap();
        let of = |manager: &str| entries.iter().find(|entry| entry["manager"] == manager).unwrap();
        assert_eq!(of("sc")["subresource"], "scale");
        assert_eq!(of("sc")["fieldsV1"], json!({"f:spec": {"f:numberOfClusters": {}}}));
        assert_eq!(of("m1")["fieldsV1"]["f:spec"].get("f:numberOfClusters"), None);
    }

    #[test]
    fn a_scale_is_written_where_nothing_was_said_of_replicas_before() {
        let placements = scaled_placements();
        let empty = stored(&act(&placements, "w"), &placement("w", json!({})), "458");
        assert_eq!(of(&placements, &empty).unwrap()["spec"], json!({}));
        assert!(show(&placements, &empty).is_err());
    }
}
