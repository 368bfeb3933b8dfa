//! Deletion: preconditions, finalizers, what becomes of dependents, and the grace of pods.
//!
//! ```text
//! live ── preconditions ── grace (pods) ── finalizers left? ── yes ─► marked as deleting
//!                                                           └─ no ──► removed
//! ```
//! Owns the decision. Removing dependents and finishing pods that no kubelet watches is kept elsewhere.

use berth_hub_wire::{DeleteOptions, Details, GroupResource, Propagation, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::registry::Resource;

use super::act::{Act, stamp};
use super::condition;
use super::lifecycle::is_namespaces;
use super::meta;
use super::outcome::{ACCEPTED, Answer, OK, Outcome, Step};

/// The finalizer that keeps an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps an owner until its dependents are set free.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What a deletion asks for, as validated by the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Only this incarnation.
    pub uid: Option<String>,
    /// Only this state.
    pub resource_version: Option<String>,
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`.
    pub propagation: Option<Propagation>,
    /// `orphanDependents`, the older way to say it.
    pub orphan_dependents: Option<bool>,
}

impl From<&DeleteOptions> for Terms {
    fn from(options: &DeleteOptions) -> Self {
        Terms {
            uid: options.preconditions.uid.clone(),
            resource_version: options.preconditions.resource_version.clone(),
            grace_period_seconds: options.grace_period_seconds,
            propagation: options.propagation,
            orphan_dependents: options.orphan_dependents,
        }
    }
}

/// Whether the live object is the one that the terms mean. [`decide`] checks this too; callers that ask webhooks do it
/// first.
pub(crate) fn check(act: &Act<'_>, terms: &Terms, live: &Value) -> Result<(), Status> {
    let name = meta::text(live, "name");
    let special = is_namespaces(act.resource) || is_definitions(act.resource);
    // Most kinds name the kind where the plural belongs.
    let subject = if special {
        act.resource.group_resource()
    } else {
        // Events are looked at as they are kept, in the core group.
        let group = if &*act.resource.kind == "Event" && !act.resource.is_custom() {
            ""
        } else {
            &act.resource.group
        };
        GroupResource::new(group, &act.resource.kind)
    };
    if let Some(uid) = terms.uid.as_deref()
        && uid != meta::text(live, "uid")
    {
        let found = meta::text(live, "uid");
        let why = if special {
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}")
        } else {
            format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({found}). The object might have been \
                 deleted and then recreated"
            )
        };
        return Err(Status::conflict(subject, name, &why));
    }
    if let Some(version) = terms.resource_version.as_deref()
        && version != meta::text(live, "resourceVersion")
    {
        let found = meta::text(live, "resourceVersion");
        let why = if special {
            format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {found}"
            )
        } else {
            format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({found}). The object might have been modified"
            )
        };
        return Err(Status::conflict(subject, name, &why));
    }
    Ok(())
}

/// What deleting the live object on these terms comes to.
pub(crate) fn decide(act: &Act<'_>, terms: &Terms, live: &Value) -> Result<Outcome, Status> {
    check(act, terms, live)?;
    if is_namespaces(act.resource) {
        if !meta::deleting(live) {
            return Ok(terminate_namespace(act, terms, live));
        }
        if !meta::strings(meta::at(live, &["spec", "finalizers"])).is_empty() {
            return Ok(accepted(Outcome::unchanged(Vec::new()), terms));
        }
    }
    if is_definitions(act.resource) && !meta::deleting(live) {
        return Ok(accepted(kept(terminate_definition(act, live), live), terms));
    }
    let mut object = live.clone();
    let grace = if is_pods(act.resource) { grace(act.now, terms, &mut object) } else { Grace::None };
    if grace == Grace::Pending {
        return Ok(accepted(pending_answer(act.resource, live), terms));
    }
    // Nothing depends on events.
    if act.resource.storage.as_str() != "events"
        && let Some(finalizers) = finalizers_for(terms, &object)
    {
        meta::set_finalizers(&mut object, finalizers);
    }
    let held = !meta::finalizers(&object).is_empty();
    let Grace::Period(seconds) = grace else {
        if held {
            mark(&mut object, act.now);
            return Ok(accepted(kept(object, live), terms));
        }
        return Ok(removed(act.resource, vec![Step::Remove(live.clone())], live));
    };
    if held || seconds > 0 {
        return Ok(accepted(kept(object, live), terms));
    }
    if act.dry_run {
        // A dry run stops at the mark, and shows it.
        return Ok(Outcome {
            steps: Vec::new(),
            answer: Answer::Object(object),
            code: OK,
            warnings: Vec::new(),
        });
    }
    let steps = vec![Step::Update(object.clone()), Step::Remove(object)];
    Ok(removed(act.resource, steps, live))
}

/// Whether an update that leaves the object like this completes a deletion under way.
pub(crate) fn completes(resource: &Resource, new: &Value, live: &Value) -> bool {
    meta::finalizers(new).is_empty()
        && meta::deleting(live)
        && meta::number(live, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && (!is_namespaces(resource) || meta::strings(meta::at(new, &["spec", "finalizers"])).is_empty())
}

/// The `Status` that says an object is gone.
pub(crate) fn gone(resource: &Resource, last: &Value) -> Status {
    Status::success(Details {
        name: meta::text(last, "name").to_owned(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        uid: meta::text(last, "uid").to_owned(),
        ..Details::default()
    })
}

/// How gracefully an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// Not at all: this kind knows no grace, or its grace is over.
    None,
    /// It was marked now, to be given this many seconds.
    Period(i64),
    /// It was marked before, and nothing changes.
    Pending,
}

/// Marks a pod as going, as gracefully as it may.
fn grace(now: Timestamp, terms: &Terms, pod: &mut Value) -> Grace {
    let asked = terms.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if meta::deleting(pod) {
        let given = meta::number(pod, "deletionGracePeriodSeconds").map_or(0, |s| if s < 0 { 1 } else { s });
        if given == 0 {
            return Grace::None;
        }
        let Some(mut period) = asked.filter(|asked| *asked < given) else { return Grace::Pending };
        let Ok(until) = meta::text(pod, "deletionTimestamp").parse::<Timestamp>() else { return Grace::None };
        let mut moved = later(until, period - given);
        if moved < now {
            moved = now;
            if period != 0 {
                // The whole grace is used up, yet grace was asked for: the least there is.
                period = 1;
            }
        }
        meta::set(pod, "deletionTimestamp", Some(stamp(moved).into()));
        meta::set(pod, "deletionGracePeriodSeconds", Some(period.into()));
        return Grace::Period(period);
    }
    let wanted = meta::at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let mut period = asked.or(wanted).unwrap_or(0);
    let unscheduled = meta::at(pod, &["spec", "nodeName"]).and_then(Value::as_str).is_none_or(str::is_empty);
    let phase = meta::at(pod, &["status", "phase"]).and_then(Value::as_str);
    if unscheduled || matches!(phase, Some("Failed" | "Succeeded")) {
        period = 0;
    } else if period < 0 {
        period = 1;
    }
    meta::set(pod, "deletionTimestamp", Some(stamp(later(now, period)).into()));
    meta::set(pod, "deletionGracePeriodSeconds", Some(period.into()));
    raise_generation(pod);
    Grace::Period(period)
}

/// A time moved by seconds, at the end of time if there is none so late.
fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

fn raise_generation(object: &mut Value) {
    if let Some(generation) = meta::number(object, "generation").filter(|generation| *generation > 0) {
        meta::set(object, "generation", Some(generation.saturating_add(1).into()));
    }
}

/// Marks an object that finalizers hold back.
fn mark(object: &mut Value, now: Timestamp) {
    if !meta::deleting(object) {
        raise_generation(object);
    }
    let until = meta::text(object, "deletionTimestamp").parse::<Timestamp>().ok();
    if until.is_none_or(|until| until > now) {
        meta::set(object, "deletionTimestamp", Some(stamp(now).into()));
    }
    meta::set(object, "deletionGracePeriodSeconds", Some(0.into()));
}

/// The finalizers an object has once the fate of its dependents is settled; `None` when they stay as they are.
fn finalizers_for(terms: &Terms, object: &Value) -> Option<Vec<String>> {
    let present = meta::finalizers(object);
    let first = present.iter().find(|finalizer| **finalizer == ORPHAN || **finalizer == FOREGROUND).copied();
    let orphan = match (terms.orphan_dependents, terms.propagation) {
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == Propagation::Orphan,
        (None, None) => first == Some(ORPHAN),
    };
    let foreground = match (terms.orphan_dependents, terms.propagation) {
        (Some(_), _) => false,
        (None, Some(policy)) => policy == Propagation::Foreground,
        (None, None) => first == Some(FOREGROUND),
    };
    if present.contains(&ORPHAN) == orphan && present.contains(&FOREGROUND) == foreground {
        return None;
    }
    let others = present.iter().filter(|finalizer| **finalizer != ORPHAN && **finalizer != FOREGROUND);
    let mut finalizers: Vec<String> = others.map(|finalizer| (*finalizer).to_owned()).collect();
    finalizers.extend(orphan.then(|| ORPHAN.to_owned()));
    finalizers.extend(foreground.then(|| FOREGROUND.to_owned()));
    Some(finalizers)
}

/// The first deletion of a namespace only ends its life; its content goes next.
fn terminate_namespace(act: &Act<'_>, terms: &Terms, live: &Value) -> Outcome {
    let mut object = live.clone();
    meta::set(&mut object, "deletionTimestamp", Some(act.stamp().into()));
    meta::child(meta::map(&mut object), "status").insert("phase".to_owned(), "Terminating".into());
    let present = meta::finalizers(live);
    let orphan = match (terms.orphan_dependents, terms.propagation) {
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == Propagation::Orphan,
        (None, None) => present.contains(&ORPHAN),
    };
    let foreground = match (terms.orphan_dependents, terms.propagation) {
        (Some(orphan), _) => !orphan,
        (None, Some(policy)) => policy == Propagation::Foreground,
        (None, None) => present.contains(&FOREGROUND),
    };
    if present.contains(&ORPHAN) != orphan || present.contains(&FOREGROUND) != foreground {
        let mut finalizers: Vec<String> =
            present.iter().filter(|f| **f != ORPHAN && **f != FOREGROUND).map(|f| (*f).to_owned()).collect();
        finalizers.extend(orphan.then(|| ORPHAN.to_owned()));
        finalizers.extend(foreground.then(|| FOREGROUND.to_owned()));
        meta::set_finalizers(&mut object, finalizers);
    }
    accepted(kept(object, live), terms)
}

/// The first deletion of a definition ends it; its objects go next.
fn terminate_definition(act: &Act<'_>, live: &Value) -> Value {
    let mut object = live.clone();
    meta::set(&mut object, "deletionTimestamp", Some(act.stamp().into()));
    let mut finalizers: Vec<String> = meta::finalizers(live).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    meta::set_finalizers(&mut object, finalizers);
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    condition::set(&mut object, condition, act.now);
    object
}

fn kept(object: Value, live: &Value) -> Outcome {
    if object == *live {
        return Outcome::unchanged(Vec::new());
    }
    Outcome { steps: vec![Step::Update(object)], answer: Answer::Written, code: OK, warnings: Vec::new() }
}

fn removed(resource: &Resource, steps: Vec<Step>, last: &Value) -> Outcome {
    let answer = if resource.answers_deleted_object() {
        Answer::Written
    } else {
        Answer::Status(Box::new(gone(resource, last)))
    };
    Outcome { steps, answer, code: OK, warnings: Vec::new() }
}

fn pending_answer(resource: &Resource, live: &Value) -> Outcome {
    let mut outcome = Outcome::unchanged(Vec::new());
    if !resource.answers_deleted_object() {
        outcome.answer = Answer::Status(Box::new(gone(resource, live)));
    }
    outcome
}

/// Deletions that go on after the answer say so to callers who asked in the older way.
fn accepted(mut outcome: Outcome, terms: &Terms) -> Outcome {
    if terms.orphan_dependents == Some(false) {
        outcome.code = ACCEPTED;
    }
    outcome
}

/// Whether this is the resource of definitions.
pub(crate) fn is_definitions(resource: &Resource) -> bool {
    &*resource.group == "apiextensions.k8s.io" && &*resource.plural == "customresourcedefinitions"
}

/// Whether this is the resource of pods.
pub(crate) fn is_pods(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.plural == "pods"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::fixtures::{NOW, act, builtin, mint, placement, placements, shown, stored, time};

    fn propagating(policy: Propagation) -> Terms {
        Terms { propagation: Some(policy), ..Terms::default() }
    }

    #[test]
    fn a_deletion_without_finalizers_answers_with_a_status_without_code() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "5");
        let outcome = decide(&act, &Terms::default(), &live).unwrap();
        assert_eq!(outcome.steps, [Step::Remove(live)]);
        let Answer::Status(status) = outcome.answer else { panic!() };
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {
                    "name": "p1", "group": "cluster.open-cluster-management.io", "kind": "placements", "uid": mint().uid,
                },
            })
        );
    }

    #[test]
    fn some_kinds_answer_with_the_object_they_removed() {
        let accounts = builtin("", "serviceaccounts");
        let act = act(&accounts, "a");
        let live = stored(&act, &json!({"metadata": {"name": "a"}}), "5");
        assert_eq!(decide(&act, &Terms::default(), &live).unwrap().answer, Answer::Written);
    }

    #[test]
    fn finalizers_hold_an_object_back_and_count_as_a_new_generation() {
        let placements = placements();
        let act = act(&placements, "p1");
        let mut body = placement("p1", json!({}));
        body["metadata"]["finalizers"] = json!(["x.io/f"]);
        let live = stored(&act, &body, "5");
        let outcome = decide(&act, &Terms::default(), &live).unwrap();
        let [Step::Update(marked)] = &outcome.steps[..] else { panic!("{:?}", outcome.steps) };
        assert_eq!(marked["metadata"]["deletionTimestamp"], NOW);
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_eq!(marked["metadata"]["generation"], 2);
        assert_eq!(outcome.answer, Answer::Written);
        let again =
            decide(&Act { now: time("2026-11-16T00:00:00Z"), ..act }, &Terms::default(), marked).unwrap();
        assert_eq!((again.steps, again.answer), (Vec::new(), Answer::Live));
    }

    #[test]
    fn the_fate_of_dependents_is_written_as_a_finalizer() {
        let placements = placements();
        let act = act(&placements, "p1");
        let mut body = placement("p1", json!({}));
        body["metadata"]["finalizers"] = json!(["x.io/f"]);
        let live = stored(&act, &body, "5");
        let finalizers = |terms: &Terms, live: &Value| {
            let outcome = decide(&act, terms, live).unwrap();
            let object = outcome.object().unwrap_or(live).clone();
            (meta::finalizers(&object).into_iter().map(str::to_owned).collect::<Vec<_>>(), outcome.code)
        };
        let foreground =
            decide(&act, &propagating(Propagation::Foreground), &live).unwrap().object().unwrap().clone();
        assert_eq!(meta::finalizers(&foreground), ["x.io/f", "foregroundDeletion"]);
        let (orphan, code) = finalizers(&propagating(Propagation::Orphan), &foreground);
        assert_eq!((orphan, code), (vec!["x.io/f".to_owned(), "orphan".to_owned()], 200));
        let older = Terms { orphan_dependents: Some(false), ..Terms::default() };
        assert_eq!(finalizers(&older, &foreground), (vec!["x.io/f".to_owned()], 202));
        let plain = stored(&act, &placement("p1", json!({})), "5");
        assert_eq!(finalizers(&propagating(Propagation::Orphan), &plain).0, ["orphan"]);
        let kept = decide(&act, &Terms::default(), &foreground).unwrap();
        assert_eq!(kept.steps, [], "without a policy the finalizers that are there decide");
    }

    #[test]
    fn a_deletion_of_another_incarnation_or_state_is_a_conflict() {
        let placements = placements();
        let act = act(&placements, "p1");
        let live = stored(&act, &placement("p1", json!({})), "251");
        let uid = Terms { uid: Some("x".to_owned()), ..Terms::default() };
        assert_eq!(
            decide(&act, &uid, &live).unwrap_err().message,
            format!(
                "Operation cannot be fulfilled on Placement.cluster.open-cluster-management.io \"p1\": the UID in the \
                 precondition (x) does not match the UID in record ({}). The object might have been deleted and then recreated",
                mint().uid
            )
        );
        let version = Terms { resource_version: Some("1".to_owned()), ..Terms::default() };
        assert_eq!(
            decide(&act, &version, &live).unwrap_err().message,
            "Operation cannot be fulfilled on Placement.cluster.open-cluster-management.io \"p1\": the ResourceVersion in \
             the precondition (1) does not match the ResourceVersion in record (251). The object might have been modified"
        );
    }

    fn pod(node: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "pp", "namespace": "default", "uid": "u", "resourceVersion": "5", "generation": 1},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        })
    }

    fn graceful(seconds: i64) -> Terms {
        Terms { grace_period_seconds: Some(seconds), ..Terms::default() }
    }

    #[test]
    fn a_pod_on_a_node_is_given_its_grace_and_only_ever_less() {
        let pods = builtin("", "pods");
        let act = act(&pods, "pp");
        let outcome = decide(&act, &Terms::default(), &pod("n")).unwrap();
        let [Step::Update(marked)] = &outcome.steps[..] else { panic!() };
        assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-11-15T22:51:24Z");
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
        assert_eq!(marked["metadata"]["generation"], 2);
        let longer = decide(&act, &graceful(60), marked).unwrap();
        assert_eq!((longer.steps, longer.answer), (Vec::new(), Answer::Live));
        let later = Act { now: time("2026-11-15T22:50:56Z"), ..act };
        let shorter = decide(&later, &graceful(5), marked).unwrap();
        let [Step::Update(sooner)] = &shorter.steps[..] else { panic!() };
        assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-11-15T22:50:59Z");
        assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
        assert_eq!(sooner["metadata"]["generation"], 2);
        let late = Act { now: time("2026-11-15T22:51:10Z"), ..act };
        let over = decide(&late, &graceful(5), marked).unwrap();
        let [Step::Update(least)] = &over.steps[..] else { panic!() };
        assert_eq!(least["metadata"]["deletionTimestamp"], "2026-11-15T22:51:10Z");
        assert_eq!(least["metadata"]["deletionGracePeriodSeconds"], 1);
    }

    #[test]
    fn a_pod_without_grace_is_marked_and_removed_at_once() {
        let pods = builtin("", "pods");
        let act = act(&pods, "pp");
        for (terms, pod) in [(graceful(0), pod("n")), (Terms::default(), pod(""))] {
            let outcome = decide(&act, &terms, &pod).unwrap();
            let [Step::Update(marked), Step::Remove(last)] = &outcome.steps[..] else { panic!() };
            assert_eq!(marked, last);
            assert_eq!(last["metadata"]["deletionGracePeriodSeconds"], 0);
            assert_eq!(last["metadata"]["deletionTimestamp"], NOW);
        }
        let dry = Act { dry_run: true, ..act };
        let outcome = decide(&dry, &graceful(0), &pod("n")).unwrap();
        assert!(outcome.steps.is_empty());
        assert!(
            matches!(outcome.answer, Answer::Object(shown) if shown["metadata"]["deletionTimestamp"] == NOW)
        );
        let negative = decide(&act, &graceful(-5), &pod("n")).unwrap();
        assert_eq!(negative.object().unwrap()["metadata"]["deletionGracePeriodSeconds"], 1);
    }

    #[test]
    fn a_pod_that_is_over_or_held_is_treated_as_such() {
        let pods = builtin("", "pods");
        let act = act(&pods, "pp");
        let mut over = pod("n");
        over["status"]["phase"] = "Succeeded".into();
        assert_eq!(decide(&act, &Terms::default(), &over).unwrap().steps.len(), 2);
        let mut held = pod("n");
        held["metadata"]["finalizers"] = json!(["x.io/f"]);
        let outcome = decide(&act, &graceful(0), &held).unwrap();
        assert!(matches!(&outcome.steps[..], [Step::Update(_)]));
    }

    #[test]
    fn a_namespace_ends_in_two_steps() {
        let namespaces = builtin("", "namespaces");
        let act = act(&namespaces, "t1");
        let live = stored(&act, &json!({"metadata": {"name": "t1"}}), "356");
        let outcome = decide(&act, &propagating(Propagation::Foreground), &live).unwrap();
        let ending = outcome.object().unwrap().clone();
        assert_eq!(ending["status"]["phase"], "Terminating");
        assert_eq!(ending["metadata"]["deletionTimestamp"], NOW);
        assert_eq!(ending["metadata"]["finalizers"], json!(["foregroundDeletion"]));
        assert_eq!(ending["metadata"].get("deletionGracePeriodSeconds"), None);
        assert_eq!(decide(&act, &Terms::default(), &ending).unwrap().steps, []);
        let uid = Terms { uid: Some("q".to_owned()), ..Terms::default() };
        assert_eq!(
            decide(&act, &uid, &live).unwrap_err().message,
            format!(
                "Operation cannot be fulfilled on namespaces \"t1\": Precondition failed: UID in precondition: q, UID in \
                 object meta: {}",
                mint().uid
            )
        );
    }

    #[test]
    fn a_definition_waits_for_its_objects() {
        let definitions = builtin("apiextensions.k8s.io", "customresourcedefinitions");
        let act = act(&definitions, "ws.x.io");
        let live =
            json!({"metadata": {"name": "ws.x.io", "uid": "u", "resourceVersion": "5", "generation": 1}});
        let outcome = decide(&act, &Terms::default(), &live).unwrap();
        let ending = outcome.object().unwrap();
        assert_eq!(meta::finalizers(ending), [CLEANUP]);
        assert_eq!(ending["status"]["conditions"][0]["reason"], "InstanceDeletionPending");
        assert_eq!(ending["metadata"]["generation"], 1);
    }
}
