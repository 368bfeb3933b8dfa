//! Replacing an object, or one part of it.
//!
//! ```text
//! begin:  decode ─ strict ─ prune ─ default ─ namespace and name ─ uid ─ managed fields
//!             (mutating admission, by the caller)
//! finish: revision ─ keep what only the server sets ─ keep the other parts ─ validate ─ nothing new? ─ last finalizer?
//!             (validating admission, then the commit, by the caller)
//! ```
//! The second half serves patches too.

use berth_hub_wire::Status;
use berth_hub_wire::body::Decoded;
use serde_json::Value;

use super::act::{Act, Mint, Part};
use super::create;
use super::delete;
use super::meta;
use super::outcome::{Answer, OK, Outcome, Pending, Step};
use super::owners::{Moment, dedup};
use super::refusal;
use super::rules;
use super::sent::{check_name, receive, said_revision, settle_namespace};

/// The first half of a PUT: from the body to the object that mutating admission sees.
pub(crate) fn begin(act: &Act<'_>, sent: Decoded, live: Option<&Value>) -> Result<Pending, Status> {
    let (mut object, mut warnings) = receive(act, sent)?;
    settle_namespace(act, &mut object)?;
    check_name(act, &object)?;
    warnings.extend(dedup(&mut object, Moment::Sent));
    if live.is_none() && !(act.part == Part::Whole && act.resource.creates_on_update()) {
        return Err(refusal::not_found(act.resource, act.name));
    }
    let (said, found) = (meta::text(&object, "uid"), live.map_or("", |live| meta::text(live, "uid")));
    if !said.is_empty() && said != found {
        return Err(refusal::other_uid(act, said, found));
    }
    create::track(act, live, &mut object);
    Ok(Pending::new(object, live.is_none(), warnings))
}

/// The second half of a PUT or PATCH: from what mutating admission left to what is committed. `live` is the object that
/// the first half saw; the mint is used when there was none.
pub(crate) fn finish(
    act: &Act<'_>,
    pending: Pending,
    live: Option<&Value>,
    mint: &Mint,
) -> Result<Outcome, Status> {
    let (mut object, raw, mut warnings) = pending.take();
    if raw {
        object = create::readmit(act, object)?;
    }
    warnings.extend(dedup(&mut object, Moment::Admitted));
    let said = said_revision(&object).map_err(refusal::bare)?;
    let Some(live) = live else {
        let mut object = create::complete(act, object, mint, &mut warnings)?;
        if raw {
            object = create::trim(act, object)?;
        }
        create::seal(act, &mut object);
        return Ok(Outcome::written(Step::Create(object), warnings));
    };
    let revision = meta::text(live, "resourceVersion");
    if said == 0 {
        if !act.resource.updates_unconditionally() {
            return Err(refusal::version_needed(act.resource, act.name));
        }
    } else if said_revision(live) != Ok(said) {
        return Err(refusal::stale(act.resource, act.name));
    }
    meta::set(&mut object, "resourceVersion", Some(revision.into()));
    settle(act, &mut object, live)?;
    rules::check_update(act.resource, act.part, &object, live)?;
    warnings.extend(rules::warnings_on_update(act.resource, act.part, &object, live));
    rules::canonicalize(act.resource, &mut object);
    if raw {
        object = create::trim(act, object)?;
    }
    Ok(outcome(act, object, live, warnings))
}

/// Keeps what an update cannot change.
fn settle(act: &Act<'_>, object: &mut Value, live: &Value) -> Result<(), Status> {
    settle_namespace(act, object)?;
    let kept = |field: &str| meta::at(live, &["metadata", field]).cloned();
    meta::set(object, "generation", kept("generation"));
    rules::prepare_update(act.resource, act.part, object, live, &act.stamp());
    if meta::text(object, "uid").is_empty() {
        meta::set(object, "uid", kept("uid"));
    }
    if let Some(created) = kept("creationTimestamp") {
        meta::set(object, "creationTimestamp", Some(created));
    }
    if let Some(deleted) = kept("deletionTimestamp") {
        meta::set(object, "deletionTimestamp", Some(deleted));
    }
    if meta::number(object, "deletionGracePeriodSeconds").is_none()
        && let Some(grace) = kept("deletionGracePeriodSeconds")
    {
        meta::set(object, "deletionGracePeriodSeconds", Some(grace));
    }
    Ok(())
}

fn outcome(act: &Act<'_>, object: Value, live: &Value, warnings: Vec<String>) -> Outcome {
    if delete::completes(act.resource, &object, live) {
        // Watchers see the object as it was kept last; the caller sees what it asked for.
        let steps = vec![Step::Remove(live.clone())];
        return Outcome { steps, answer: Answer::Object(object), code: OK, warnings };
    }
    if same_but_for_times(&object, live) {
        return Outcome::unchanged(warnings);
    }
    Outcome::written(Step::Update(object), warnings)
}

/// Whether two states differ in nothing but the times of managed fields.
fn same_but_for_times(new: &Value, live: &Value) -> bool {
    meta::same_except(Some(new), Some(live), "metadata")
        && meta::same_except(new.get("metadata"), live.get("metadata"), "managedFields")
        && match (
            meta::at(new, &["metadata", "managedFields"]),
            meta::at(live, &["metadata", "managedFields"]),
        ) {
            (Some(Value::Array(new)), Some(Value::Array(live))) => {
                new.len() == live.len()
                    && new
                        .iter()
                        .zip(live)
                        .all(|(new, live)| meta::same_except(Some(new), Some(live), "time"))
            }
            (new, live) => new == live,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{
        act, at_revision, builtin, mint, placement, placements, shown, stored, time, updated,
    };

    fn with(mut object: Value, field: &str, value: impl Into<Value>) -> Value {
        object["metadata"][field] = value.into();
        object
    }

    #[test]
    fn an_update_of_a_custom_resource_must_name_its_revision() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let status = updated(&act, &placement("p1", json!({})), Some(&live)).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "placements.cluster.open-cluster-management.io \"p1\" is invalid: metadata.resourceVersion: \
                            Invalid value: 0: must be specified for an update",
                "reason": "Invalid",
                "details": {
                    "name": "p1", "group": "cluster.open-cluster-management.io", "kind": "placements",
                    "causes": [{
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: 0: must be specified for an update",
                        "field": "metadata.resourceVersion",
                    }],
                },
                "code": 422,
            })
        );
        let stale = with(placement("p1", json!({})), "resourceVersion", "4");
        assert_eq!(
            updated(&act, &stale, Some(&live)).unwrap_err().message,
            "Operation cannot be fulfilled on placements.cluster.open-cluster-management.io \"p1\": the object has been \
             modified; please apply your changes to the latest version and try again"
        );
        let odd = with(placement("p1", json!({})), "resourceVersion", "abc");
        assert_eq!(
            updated(&act, &odd, Some(&live)).unwrap_err().message,
            "strconv.ParseUint: parsing \"abc\": invalid syntax"
        );
    }

    #[test]
    fn an_update_moves_the_generation_only_with_more_than_metadata() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let spec = with(placement("p1", json!({"numberOfClusters": 3})), "resourceVersion", "5");
        let outcome = updated(&act, &spec, Some(&live)).unwrap();
        assert_eq!(outcome.object().unwrap()["metadata"]["generation"], 2);
        let labels =
            with(with(placement("p1", json!({})), "resourceVersion", "5"), "labels", json!({"a": "b"}));
        let outcome = updated(&act, &labels, Some(&live)).unwrap();
        assert_eq!(outcome.object().unwrap()["metadata"]["generation"], 1);
    }

    #[test]
    fn status_and_the_rest_are_written_apart() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let mut body = with(placement("p1", json!({"numberOfClusters": 3})), "resourceVersion", "5");
        body["status"] = json!({"selected": 1});
        body["metadata"]["labels"] = json!({"a": "b"});
        let main = updated(&act, &body, Some(&live)).unwrap();
        assert_eq!(main.object().unwrap().get("status"), None);
        let status_act = Act { part: Part::Status, manager: "m2", ..act };
        let outcome = updated(&status_act, &body, Some(&live)).unwrap();
        let written = outcome.object().unwrap();
        assert_eq!(written["status"], json!({"selected": 1}));
        assert_eq!(written["spec"], live["spec"]);
        assert_eq!(written["metadata"].get("labels"), None);
        assert_eq!(written["metadata"]["generation"], 1);
        let entry = &written["metadata"]["managedFields"][1];
        assert_eq!(entry["subresource"], "status");
        assert_eq!(entry["fieldsV1"], json!({"f:status": {".": {}, "f:selected": {}}}));
    }

    #[test]
    fn an_update_that_says_nothing_new_changes_nothing() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({"numberOfClusters": 3})), "5");
        let again = with(placement("p1", json!({"numberOfClusters": 3})), "resourceVersion", "5");
        let later = Act { now: time("2026-11-16T00:00:00Z"), ..act };
        let outcome = updated(&later, &again, Some(&live)).unwrap();
        assert_eq!(outcome.steps, []);
        assert_eq!(outcome.answer, Answer::Live);
        // Another manager that says the same comes to own it, which is new.
        let other = Act { manager: "m2", ..later };
        let mut relabelled = again;
        relabelled["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(updated(&other, &relabelled, Some(&live)).unwrap().steps.len(), 1);
    }

    #[test]
    fn names_uids_and_absent_objects_are_told_as_the_real_server_tells_them() {
        let configs = builtin("", "configmaps");
        let act = act(&configs, "c1");
        let live = stored(&act, &json!({"metadata": {"name": "c1"}, "data": {"a": "b"}}), "243");
        let put = |body: Value, live: Option<&Value>| updated(&act, &body, live).unwrap_err().message;
        assert_eq!(
            put(json!({"metadata": {"name": "c1", "uid": "xx"}}), Some(&live)),
            format!(
                "Operation cannot be fulfilled on configmaps \"c1\": StorageError: invalid object, Code: 4, Key: \
                 /registry/configmaps/default/c1, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
                 precondition: xx, UID in object meta: {}",
                mint().uid
            )
        );
        assert_eq!(
            put(json!({"metadata": {}}), Some(&live)),
            "the name of the object (c1 based on URL) was undeterminable: name must be provided"
        );
        assert_eq!(
            put(json!({"metadata": {"name": "c2"}}), Some(&live)),
            "the name of the object (c2) does not match the name on the URL (c1)"
        );
        assert_eq!(put(json!({"metadata": {"name": "c1"}}), None), "configmaps \"c1\" not found");
    }

    #[test]
    fn built_in_kinds_mostly_take_updates_without_a_revision() {
        let configs = builtin("", "configmaps");
        let act = act(&configs, "c1");
        let live = stored(&act, &json!({"metadata": {"name": "c1"}, "data": {"a": "b"}}), "243");
        let outcome =
            updated(&act, &json!({"metadata": {"name": "c1"}, "data": {"a": "c"}}), Some(&live)).unwrap();
        let written = outcome.object().unwrap();
        assert_eq!(written["metadata"]["resourceVersion"], "243");
        assert_eq!(written["metadata"]["uid"], mint().uid);
        assert_eq!(written["metadata"]["creationTimestamp"], live["metadata"]["creationTimestamp"]);
    }

    #[test]
    fn a_lease_is_made_by_an_update() {
        let leases = builtin("coordination.k8s.io", "leases");
        let act = act(&leases, "l1");
        let body = json!({"metadata": {"name": "l1", "resourceVersion": "9"}, "spec": {}});
        let outcome = updated(&act, &body, None).unwrap();
        assert_eq!(outcome.code, 201);
        assert!(
            matches!(&outcome.steps[..], [Step::Create(lease)] if lease["metadata"].get("resourceVersion").is_none())
        );
        let live = at_revision(outcome, "10");
        let status =
            updated(&act, &json!({"metadata": {"name": "l1"}, "spec": {}}), Some(&live)).unwrap_err();
        assert_eq!(status.code(), 422);
        let other = json!({"metadata": {"name": "l1", "uid": "x"}, "spec": {}});
        assert!(
            updated(&act, &other, None)
                .unwrap_err()
                .message
                .ends_with("UID in precondition: x, UID in object meta: ")
        );
    }

    #[test]
    fn removing_the_last_finalizer_of_an_object_that_is_going_removes_it() {
        let placements = placements();
        let act = act(&placements, "p1");
        let mut live = stored(&act, &with(placement("p1", json!({})), "finalizers", json!(["x.io/f"])), "5");
        live["metadata"]["deletionTimestamp"] = "2026-11-15T22:51:01Z".into();
        live["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        let body = with(placement("p1", json!({})), "resourceVersion", "5");
        let outcome = updated(&act, &body, Some(&live)).unwrap();
        assert_eq!(outcome.steps, [Step::Remove(live.clone())]);
        let Answer::Object(answer) = &outcome.answer else { panic!("{:?}", outcome.answer) };
        assert_eq!(answer["metadata"].get("finalizers"), None);
        assert_eq!(answer["metadata"]["resourceVersion"], "5");
        assert_eq!(answer["metadata"]["deletionTimestamp"], "2026-11-15T22:51:01Z");
        let more = with(body, "finalizers", json!(["x.io/f", "y.io/g"]));
        assert_eq!(
            updated(&act, &more, Some(&live)).unwrap_err().message,
            "Placement.cluster.open-cluster-management.io \"p1\" is invalid: metadata.finalizers: Forbidden: no new \
             finalizers can be added if the object is being deleted, found new finalizers []string{\"y.io/g\"}"
        );
    }

    #[test]
    fn finalizing_an_ending_namespace_removes_it() {
        let namespaces = builtin("", "namespaces");
        let act = act(&namespaces, "t1");
        let mut live = stored(&act, &json!({"metadata": {"name": "t1"}}), "359");
        live["metadata"]["deletionTimestamp"] = "2026-11-15T22:51:01Z".into();
        live["status"]["phase"] = "Terminating".into();
        let body = json!({"metadata": {"name": "t1"}, "spec": {"finalizers": []}});
        assert!(!matches!(updated(&act, &body, Some(&live)).unwrap().steps[..], [Step::Remove(_)]));
        let finalize = Act { part: Part::Finalize, ..act };
        let outcome = updated(&finalize, &body, Some(&live)).unwrap();
        assert_eq!(outcome.steps, [Step::Remove(live)]);
        let Answer::Object(answer) = outcome.answer else { panic!() };
        assert_eq!(answer["spec"], json!({}));
        assert_eq!(answer["status"], json!({"phase": "Terminating"}));
    }

    #[test]
    fn an_immutable_field_is_listed_twice_and_said_once() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let body = with(
            with(placement("p1", json!({})), "resourceVersion", "5"),
            "deletionTimestamp",
            "2020-01-01T00:00:00Z",
        );
        let status = updated(&act, &body, Some(&live)).unwrap_err();
        assert_eq!(
            status.message,
            "Placement.cluster.open-cluster-management.io \"p1\" is invalid: metadata.deletionTimestamp: Invalid value: \
             \"2020-01-01T00:00:00Z\": field is immutable"
        );
        assert_eq!(status.details.unwrap().causes.len(), 2);
    }
}
