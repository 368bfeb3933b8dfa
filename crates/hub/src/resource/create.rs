//! Making an object.
//!
//! ```text
//! begin:  decode ─ strict ─ prune ─ default ─ wipe system metadata ─ namespace ─ managed fields
//!             (mutating admission, by the caller)
//! finish: prune and default again ─ uid, time, name ─ prepare ─ validate
//!             (validating admission, then the commit, by the caller)
//! ```

use berth_hub_merge::Operation;
use berth_hub_wire::Status;
use berth_hub_wire::body::Decoded;
use serde_json::Value;

use super::act::{Act, Mint};
use super::meta;
use super::name;
use super::outcome::{Outcome, Pending, Step};
use super::owners::{Moment, dedup};
use super::refusal;
use super::rules;
use super::sent::{receive, said_revision, settle_namespace};

/// The first half: from the body to the object that mutating admission sees.
pub(crate) fn begin(act: &Act<'_>, sent: Decoded) -> Result<Pending, Status> {
    let (mut object, mut warnings) = receive(act, sent)?;
    wipe(&mut object);
    settle_namespace(act, &mut object)?;
    warnings.extend(dedup(&mut object, Moment::Sent));
    track(act, None, &mut object);
    Ok(Pending::new(object, true, warnings))
}

/// The second half: from what mutating admission left to the object to commit. To be called again with a fresh mint when
/// a generated name is taken, up to [`name::GENERATE_ATTEMPTS`] times in all.
pub(crate) fn finish(act: &Act<'_>, pending: Pending, mint: &Mint) -> Result<Outcome, Status> {
    let (mut object, raw, mut warnings) = pending.take();
    if raw {
        object = readmit(act, object)?;
    }
    warnings.extend(dedup(&mut object, Moment::Admitted));
    let mut object = complete(act, object, mint, &mut warnings)?;
    if !act.dry_run && said_revision(&object).is_ok_and(|said| said != 0) {
        return Err(refusal::bare("resourceVersion should not be set on objects to be created"));
    }
    if raw {
        object = trim(act, object)?;
    }
    seal(act, &mut object);
    Ok(Outcome::written(Step::Create(object), warnings))
}

/// Everything between mutating and validating admission for an object that is not there yet.
pub(super) fn complete(
    act: &Act<'_>,
    mut object: Value,
    mint: &Mint,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    meta::set(&mut object, "creationTimestamp", Some(act.stamp().into()));
    meta::set(&mut object, "uid", Some(mint.uid.as_str().into()));
    let base = meta::text(&object, "generateName");
    if !base.is_empty() && meta::text(&object, "name").is_empty() {
        let generated = name::generate(base, mint.random);
        meta::set(&mut object, "name", Some(generated.into()));
    }
    settle_namespace(act, &mut object)?;
    rules::prepare_create(act.resource, &mut object, &act.stamp());
    rules::check_create(act.resource, &object)?;
    warnings.extend(rules::warnings(act.resource, &object));
    rules::canonicalize(act.resource, &mut object);
    Ok(object)
}

/// Brought in form after mutating admission. Custom resources get their defaults only: what they have too much is judged
/// first and [trimmed](trim) last.
pub(super) fn readmit(act: &Act<'_>, object: Value) -> Result<Value, Status> {
    let mut object = object;
    if !act.form().is_custom() {
        object = trim(act, object)?;
    }
    act.form().fill_raw(&mut object)?;
    Ok(object)
}

/// Cut to what its form knows.
pub(super) fn trim(act: &Act<'_>, object: Value) -> Result<Value, Status> {
    act.form().fit(object).map(|(object, _)| object).map_err(|why| Status::internal(&why))
}

/// Fills in who manages what for everything but apply.
pub(super) fn track(act: &Act<'_>, live: Option<&Value>, object: &mut Value) {
    let tracked = act.form().tracked();
    let reset = act.form().reset(act.part);
    act.as_writer(Operation::Update, |writer| {
        berth_hub_merge::track_update(live, object, tracked, writer, reset);
    });
}

/// What a new object never carries into the store.
pub(super) fn seal(act: &Act<'_>, object: &mut Value) {
    // A dry run shows what was said; a real write gets its revision from the store.
    if !act.dry_run {
        meta::set(object, "resourceVersion", None);
    }
}

/// Takes away what only the server says about an object.
fn wipe(object: &mut Value) {
    for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(object, field, None);
    }
}

#[cfg(test)]
mod tests {
    use berth_hub_wire::FieldValidation;
    use serde_json::json;

    use super::*;
    use crate::resource::fixtures::{
        API_VERSION, act, builtin, created, mint, placement, placements, sent, shown,
    };
    use crate::resource::outcome::{Answer, CREATED};

    fn object(outcome: &Outcome) -> &Value {
        outcome.object().unwrap()
    }

    #[test]
    fn a_new_custom_resource_has_defaults_owned_by_its_creator() {
        let placements = placements();
        let outcome =
            created(&act(&placements, ""), &placement("p1", json!({"numberOfClusters": 2}))).unwrap();
        assert_eq!(outcome.code, CREATED);
        assert_eq!(outcome.answer, Answer::Written);
        assert_eq!(
            object(&outcome),
            &json!({
                "apiVersion": API_VERSION,
                "kind": "Placement",
                "metadata": {
                    "creationTimestamp": "2026-11-15T22:50:54Z",
                    "generation": 1,
                    "managedFields": [{
                        "apiVersion": API_VERSION,
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:spec": {
                            ".": {}, "f:numberOfClusters": {}, "f:scoreRateLimit": {}, "f:sortBy": {},
                        }},
                        "manager": "m1",
                        "operation": "Update",
                        "time": "2026-11-15T22:50:54Z",
                    }],
                    "name": "p1",
                    "namespace": "default",
                    "uid": mint().uid,
                },
                "spec": {"numberOfClusters": 2, "scoreRateLimit": "1m", "sortBy": "ClusterName"},
            })
        );
    }

    #[test]
    fn what_only_the_server_says_is_wiped_and_the_status_is_dropped() {
        let placements = placements();
        let mut body = placement("p1", json!({}));
        body["metadata"]["uid"] = "mine".into();
        body["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
        body["metadata"]["generation"] = 7.into();
        body["status"] = json!({"selected": 3});
        let outcome = created(&act(&placements, ""), &body).unwrap();
        let made = object(&outcome);
        assert_eq!(made["metadata"]["uid"], mint().uid);
        assert_eq!(made["metadata"].get("deletionTimestamp"), None);
        assert_eq!(made["metadata"]["generation"], 1);
        assert_eq!(made.get("status"), None);
    }

    #[test]
    fn strict_requests_fail_on_unknown_fields_in_the_golden_words() {
        let placements = placements();
        let strict = Act { field_validation: FieldValidation::Strict, ..act(&placements, "") };
        let status = created(&strict, &placement("p2", json!({"foo": 1}))).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "BadRequest",
                "message": "Placement in version \"v1beta1\" cannot be handled as a Placement: strict decoding error: \
                            unknown field \"spec.foo\"",
                "code": 400,
            })
        );
    }

    #[test]
    fn strict_errors_come_in_the_order_of_the_real_server() {
        let placements = placements();
        let strict = Act { field_validation: FieldValidation::Strict, ..act(&placements, "") };
        let body = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"Placement","metadata":{{"name":"p3","zz":1}},"foo":1,
                "spec":{{"x":1,"numberOfClusters":1,"numberOfClusters":2,"a":{{"b":1}}}},"bar":{{}}}}"#
        );
        let status = begin(&strict, sent(&placements, &body)).unwrap_err();
        assert_eq!(
            status.message,
            "Placement in version \"v1beta1\" cannot be handled as a Placement: strict decoding error: duplicate field \
             \"spec.numberOfClusters\", unknown field \"metadata.zz\", unknown field \"bar\", unknown field \"foo\", unknown \
             field \"spec.a\", unknown field \"spec.x\""
        );
    }

    #[test]
    fn unknown_fields_are_pruned_with_a_warning_each() {
        let placements = placements();
        let outcome = created(&act(&placements, ""), &placement("p2", json!({"foo": 1}))).unwrap();
        assert_eq!(outcome.warnings, ["unknown field \"spec.foo\""]);
        assert_eq!(object(&outcome)["spec"].get("foo"), None);
        let ignoring = Act { field_validation: FieldValidation::Ignore, ..act(&placements, "") };
        assert!(created(&ignoring, &placement("p2", json!({"foo": 1}))).unwrap().warnings.is_empty());
    }

    #[test]
    fn an_invalid_type_is_told_as_in_the_golden_file() {
        let placements = placements();
        let status =
            created(&act(&placements, ""), &placement("p2", json!({"numberOfClusters": "x"}))).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Placement.cluster.open-cluster-management.io \"p2\" is invalid: spec.numberOfClusters: Invalid \
                            value: \"string\": spec.numberOfClusters in body must be of type integer: \"string\"",
                "reason": "Invalid",
                "details": {
                    "name": "p2", "group": "cluster.open-cluster-management.io", "kind": "Placement",
                    "causes": [{
                        "reason": "FieldValueTypeInvalid",
                        "message": "Invalid value: \"string\": spec.numberOfClusters in body must be of type integer: \"string\"",
                        "field": "spec.numberOfClusters",
                    }],
                },
                "code": 422,
            })
        );
    }

    #[test]
    fn a_body_of_another_kind_gets_no_defaults() {
        let placements = placements();
        let mut body = placement("p3", json!({"foo": 1}));
        body["kind"] = "Foo".into();
        let pending = begin(&act(&placements, ""), sent(&placements, &body.to_string())).unwrap();
        let (object, ..) = pending.take();
        assert_eq!(object["spec"], json!({"foo": 1}));
    }

    #[test]
    fn a_body_of_another_kind_or_version_is_refused() {
        let placements = placements();
        let mut body = placement("p3", json!({}));
        body["kind"] = "Foo".into();
        assert_eq!(
            created(&act(&placements, ""), &body).unwrap_err().message,
            "Foo.cluster.open-cluster-management.io \"p3\" is invalid: kind: Invalid value: \"Foo\": must be Placement"
        );
        body["apiVersion"] = "x/v1".into();
        assert_eq!(
            created(&act(&placements, ""), &body).unwrap_err().message,
            "the API version in the data (x/v1) does not match the expected API version \
             (cluster.open-cluster-management.io/v1beta1)"
        );
        let configs = builtin("", "configmaps");
        let create = |body: &Value| created(&act(&configs, ""), body).unwrap_err().message;
        assert_eq!(
            create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c1"}})),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown \
             conversion"
        );
        assert_eq!(
            create(&json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "c1"}})),
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \
             \"v2\" in scheme \"pkg/runtime/scheme.go:111\""
        );
    }

    #[test]
    fn a_body_for_another_namespace_is_refused_and_none_is_filled_in() {
        let placements = placements();
        let mut body = placement("p3", json!({}));
        body["metadata"]["namespace"] = "kube-system".into();
        assert_eq!(
            created(&act(&placements, ""), &body).unwrap_err().message,
            "the namespace of the provided object does not match the namespace sent on the request"
        );
        let namespaces = builtin("", "namespaces");
        let outcome =
            created(&act(&namespaces, ""), &json!({"metadata": {"name": "t1", "namespace": "zz"}})).unwrap();
        assert_eq!(object(&outcome)["metadata"].get("namespace"), None);
    }

    #[test]
    fn a_namespace_starts_active_with_its_label_even_when_its_name_is_generated() {
        let namespaces = builtin("", "namespaces");
        let outcome = created(&act(&namespaces, ""), &json!({"metadata": {"generateName": "gg-"}})).unwrap();
        let made = object(&outcome);
        let name = made["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("gg-") && name.len() == 8);
        assert_eq!(made["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
        assert_eq!(made["status"], json!({"phase": "Active"}));
        assert_eq!(made["spec"], json!({"finalizers": ["kubernetes"]}));
    }

    #[test]
    fn a_revision_in_a_new_object_is_refused_unless_nothing_is_kept() {
        let configs = builtin("", "configmaps");
        let body = json!({"metadata": {"name": "c3", "resourceVersion": "5"}});
        let status = created(&act(&configs, ""), &body).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "resourceVersion should not be set on objects to be created", "code": 500,
            })
        );
        let dry = Act { dry_run: true, ..act(&configs, "") };
        assert_eq!(object(&created(&dry, &body).unwrap())["metadata"]["resourceVersion"], "5");
        let odd = json!({"metadata": {"name": "c3", "resourceVersion": "abc"}});
        assert_eq!(
            object(&created(&act(&configs, ""), &odd).unwrap())["metadata"].get("resourceVersion"),
            None
        );
    }

    #[test]
    fn what_mutating_admission_adds_is_pruned_and_defaulted_but_nobodys() {
        let placements = placements();
        let act = act(&placements, "");
        let mut pending = begin(&act, sent(&placements, &placement("p1", json!({})).to_string())).unwrap();
        let mut changed = pending.object().clone();
        changed["spec"] = json!({"numberOfClusters": 4, "foo": 1});
        pending.replace(changed);
        let outcome = finish(&act, pending, &mint()).unwrap();
        let spec = json!({"numberOfClusters": 4, "scoreRateLimit": "1m", "sortBy": "ClusterName"});
        assert_eq!(object(&outcome)["spec"], spec);
        let owned = &object(&outcome)["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
        assert_eq!(owned.get("f:numberOfClusters"), None);
    }

    #[test]
    fn a_finalizer_without_a_domain_is_taken_with_a_warning() {
        let placements = placements();
        let mut body = placement("p1", json!({}));
        body["metadata"]["finalizers"] = json!(["bad", "x.io"]);
        let outcome = created(&act(&placements, ""), &body).unwrap();
        assert_eq!(
            outcome.warnings,
            [
                "metadata.finalizers: \"bad\": prefer a domain-qualified finalizer name to avoid accidental conflicts with \
                 other finalizer writers",
                "metadata.finalizers: \"x.io\": prefer a domain-qualified finalizer name including a path (/) to avoid \
                 accidental conflicts with other finalizer writers",
            ]
        );
    }

    #[test]
    fn a_create_that_finds_its_name_taken_says_so() {
        let placements = placements();
        let body = placement("p1", json!({}));
        let status = refusal::exists(&placements, &body, None);
        assert_eq!(status.message, "placements.cluster.open-cluster-management.io \"p1\" already exists");
        let mut going = body.clone();
        going["metadata"]["deletionTimestamp"] = "2026-11-15T22:50:54Z".into();
        let status = refusal::exists(&placements, &body, Some(&going));
        assert!(status.message.starts_with("object is being deleted: placements"));
        let mut generated = body;
        generated["metadata"]["generateName"] = "p".into();
        let status = refusal::exists(&placements, &generated, None);
        assert!(status.message.ends_with("the server was not able to generate a unique name for the object"));
    }
}
