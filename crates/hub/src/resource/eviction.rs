//! `pods/eviction`: a deletion that asks the pod's disruption budget first.
//!
//! Owns the arithmetic on one pod and its budgets, and what is written about it. Reading them, committing
//! all of it at once, and trying again on conflicts is the caller's.

use berth_hub_wire::{Cause, GroupResource, LabelSelector, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::act::{Act, stamp};
use super::budget;
use super::condition;
use super::delete::{self, Terms};
use super::meta;
use super::outcome::Step;
use super::refusal;

/// How many evictions may wait for the budget's controller to confirm them.
const DISRUPTED_PODS_MAX: usize = 2_000;
/// When to try again while a budget is being worked out, in seconds.
const RETRY_AFTER_SECONDS: i32 = 10;

/// What evicting a pod comes to. All of it is one commit; on a conflict everything is read and decided again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Eviction {
    /// The budget with one disruption less, to be written where it was read. Absent when none is charged, and in dry runs.
    pub budget: Option<Value>,
    /// What happens to the pod. Empty in dry runs, and when it is on its way already.
    pub steps: Vec<Step>,
}

/// The body of an eviction after its checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// How to delete.
    pub terms: Terms,
    /// Whether nothing may be kept, said in the query or in the body.
    pub dry_run: bool,
}

/// Reads an `Eviction` posted to the pod of this name. `terms` are what the wire made of its `deleteOptions`, and
/// `body_dry_run` what they say about dry runs.
pub(crate) fn read(
    name: &str,
    body: &Value,
    terms: Terms,
    query_dry_run: bool,
    body_dry_run: bool,
) -> Result<Order, Status> {
    if meta::text(body, "name") != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    Ok(Order { terms, dry_run: query_dry_run || body_dry_run })
}

/// What the order comes to for a pod and all budgets of its namespace. `act` is about the pod.
pub(crate) fn decide(
    act: &Act<'_>,
    order: &Order,
    pod: &Value,
    budgets: &[Value],
) -> Result<Eviction, Status> {
    let phase = meta::at(pod, &["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::deleting(pod) {
        // Such a pod serves nobody, so no budget has a say.
        return evict(act, order, pod, None);
    }
    let mut matching = budgets.iter().filter(|budget| {
        meta::text(budget, "namespace") == meta::text(pod, "namespace")
            && LabelSelector::from_object(meta::at(budget, &["spec", "selector"]).unwrap_or(&Value::Null))
                .is_ok_and(|selector| selector.matches_object(pod))
    });
    let Some(found) = matching.next() else {
        return evict(act, order, pod, None);
    };
    if matching.next().is_some() {
        return Err(refusal::bare(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    if !budget::is_ready(pod) {
        let policy = meta::at(found, &["spec", "unhealthyPodEvictionPolicy"]).and_then(Value::as_str);
        let healthy = status_number(found, "currentHealthy");
        let desired = status_number(found, "desiredHealthy");
        if policy == Some("AlwaysAllow") || (healthy >= desired && desired > 0) {
            // A pod that is not ready counts for nothing, so nothing is charged.
            return evict(act, order, pod, None);
        }
    }
    let charged = charge(found, meta::text(pod, "name"), order.dry_run, act.now)?;
    evict(act, order, pod, charged)
}

/// The answer to an eviction or binding that was done.
pub(crate) fn done() -> Status {
    let mut status = Status::success(berth_hub_wire::Details::default()).with_code(201);
    status.details = None;
    status
}

/// 429 while it cannot be known whether the budget allows it.
pub(crate) fn try_again(budget: &str) -> Status {
    Status::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        RETRY_AFTER_SECONDS,
    )
    .with_cause(Cause::new(
        "DisruptionBudget",
        format!("The disruption budget {budget} is still being processed by the server."),
        "",
    ))
}

fn check_pod(terms: &Terms, pod: &Value) -> Result<(), Status> {
    let (subject, name) = (GroupResource::new("", "Pod"), meta::text(pod, "name"));
    if let Some(uid) = terms.uid.as_deref().filter(|uid| !uid.is_empty() && *uid != meta::text(pod, "uid")) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted \
             and then recreated",
            meta::text(pod, "uid")
        );
        return Err(Status::conflict(subject, name, &why));
    }
    let found = meta::text(pod, "resourceVersion");
    if let Some(version) = terms.resource_version.as_deref().filter(|v| !v.is_empty() && *v != found) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({found}). The \
             object might have been modified"
        );
        return Err(Status::conflict(subject, name, &why));
    }
    Ok(())
}

fn evict(act: &Act<'_>, order: &Order, pod: &Value, budget: Option<Value>) -> Result<Eviction, Status> {
    // The budget has its say first, as on a real server.
    check_pod(&order.terms, pod)?;
    if order.dry_run {
        return Ok(Eviction { budget: None, steps: Vec::new() });
    }
    let mut marked = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    condition::set(&mut marked, condition, act.now);
    // The precondition was checked on the pod as it was read; the mark changes its revision.
    let terms = Terms { resource_version: None, ..order.terms.clone() };
    let deletion = delete::decide(act, &terms, &marked)?;
    let mut steps = Vec::with_capacity(deletion.steps.len() + 1);
    if marked != *pod {
        steps.push(Step::Update(marked));
    }
    steps.extend(deletion.steps);
    Ok(Eviction { budget, steps })
}

/// Takes one disruption from a budget, or says why there is none to take.
fn charge(found: &Value, pod: &str, dry_run: bool, now: Timestamp) -> Result<Option<Value>, Status> {
    let name = meta::text(found, "name");
    let subject = GroupResource::new("policy", "poddisruptionbudget");
    if status_number(found, "observedGeneration") < meta::number(found, "generation").unwrap_or(0) {
        return Err(try_again(name));
    }
    let allowed = status_number(found, "disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(subject, name, "pdb disruptions allowed is negative"));
    }
    let waiting = meta::at(found, &["status", "disruptedPods"])
        .and_then(Value::as_object)
        .map_or(0, serde_json::Map::len);
    if waiting > DISRUPTED_PODS_MAX {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(subject, name, why));
    }
    if allowed == 0 {
        return Err(Status::too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            0,
        )
        .with_cause(Cause::new("DisruptionBudget", why_not(found), "")));
    }
    if dry_run {
        return Ok(None);
    }
    let mut charged = found.clone();
    let status = meta::child(meta::map(&mut charged), "status");
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    meta::child(status, "disruptedPods").insert(pod.to_owned(), stamp(now).into());
    if allowed == 1 {
        budget::set_allowed_condition(&mut charged, now);
    }
    Ok(Some(charged))
}

fn why_not(found: &Value) -> String {
    let name = meta::text(found, "name");
    let (healthy, desired) = (status_number(found, "currentHealthy"), status_number(found, "desiredHealthy"));
    let denied = condition::find(found, "DisruptionAllowed").filter(|condition| {
        condition::text(condition, "status") == "False" && !condition::text(condition, "message").is_empty()
    });
    match denied {
        Some(condition) if condition::text(condition, "reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition::text(condition, "message")
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            condition::text(condition, "reason"),
            condition::text(condition, "message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn status_number(object: &Value, field: &str) -> i64 {
    meta::at(object, &["status", field]).and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::fixtures::{NOW, act, builtin, shown};

    fn pod(phase: &str, ready: bool) -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}},
            "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        })
    }

    fn budget(name: &str, allowed: i64) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "default", "generation": 1, "resourceVersion": "7"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2,
                "expectedPods": 3},
        })
    }

    fn evict(pod: &Value, budgets: &[Value]) -> Result<Eviction, Status> {
        let pods = builtin("", "pods");
        decide(&act(&pods, "p"), &Order::default(), pod, budgets)
    }

    #[test]
    fn an_eviction_that_the_budget_allows_is_charged_to_it() {
        let eviction = evict(&pod("Running", true), &[budget("b", 1)]).unwrap();
        let charged = eviction.budget.unwrap();
        assert_eq!(charged["status"]["disruptionsAllowed"], 0);
        assert_eq!(charged["status"]["disruptedPods"], json!({"p": NOW}));
        assert_eq!(charged["status"]["conditions"][0]["reason"], "InsufficientPods");
        let [Step::Update(marked), Step::Update(going)] = &eviction.steps[..] else {
            panic!("{:?}", eviction.steps)
        };
        assert_eq!(
            marked["status"]["conditions"][1],
            json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": NOW,
            })
        );
        assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 30);
    }

    #[test]
    fn an_eviction_over_budget_is_told_to_try_again() {
        let status = evict(&pod("Running", true), &[budget("b", 0)]).unwrap_err();
        assert_eq!(
            shown(&status),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Cannot evict pod as it would violate the pod's disruption budget.",
                "reason": "TooManyRequests",
                "details": {"causes": [{
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
                }]},
                "code": 429,
            })
        );
        let mut fresh = budget("b", 1);
        fresh["metadata"]["generation"] = 2.into();
        let status = evict(&pod("Running", true), &[fresh]).unwrap_err();
        assert_eq!(status.retry_after_seconds(), Some(10));
        assert_eq!(
            status.details.unwrap().causes[0].message,
            "The disruption budget b is still being processed by the server."
        );
    }

    #[test]
    fn two_budgets_are_one_too_many() {
        let status = evict(&pod("Running", true), &[budget("a", 1), budget("b", 1)]).unwrap_err();
        assert_eq!(status.code(), 500);
        assert_eq!(
            status.message,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        );
    }

    /// Upstream: integration/evictions/evictions_test.go "TestTerminalPodEviction",
    /// "TestEvictionWithFinalizers: terminal pod".
    #[test]
    fn pods_that_serve_nobody_need_no_budget() {
        for phase in ["Succeeded", "Failed", "Pending"] {
            let eviction = evict(&pod(phase, false), &[budget("b", 0)]).unwrap();
            assert_eq!(eviction.budget, None, "{phase}");
            assert!(!eviction.steps.is_empty(), "{phase}");
        }
    }

    /// Upstream: integration/evictions/evictions_test.go "TestEvictionWithUnhealthyPodEvictionPolicy".
    #[test]
    fn a_pod_that_is_not_ready_goes_when_the_others_suffice() {
        let eviction = evict(&pod("Running", false), &[budget("b", 0)]).unwrap();
        assert_eq!(eviction.budget, None);
        let mut short = budget("b", 0);
        short["status"]["currentHealthy"] = 1.into();
        assert_eq!(evict(&pod("Running", false), &[short.clone()]).unwrap_err().code(), 429);
        short["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
        assert_eq!(evict(&pod("Running", false), &[short]).unwrap().budget, None);
    }

    #[test]
    fn a_dry_run_asks_the_budget_and_changes_nothing() {
        let pods = builtin("", "pods");
        let order = Order { dry_run: true, ..Order::default() };
        let act = act(&pods, "p");
        let eviction = decide(&act, &order, &pod("Running", true), &[budget("b", 1)]).unwrap();
        assert_eq!(eviction, Eviction { budget: None, steps: Vec::new() });
        assert!(decide(&act, &order, &pod("Running", true), &[budget("b", 0)]).is_err());
    }

    #[test]
    fn budgets_of_other_pods_or_with_broken_selectors_have_no_say() {
        let mut other = budget("b", 0);
        other["spec"]["selector"] = json!({"matchLabels": {"a": "c"}});
        let mut broken = budget("c", 0);
        broken["spec"]["selector"] = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        let eviction = evict(&pod("Running", true), &[other, broken]).unwrap();
        assert_eq!(eviction.budget, None);
    }

    /// Upstream: integration/evictions/evictions_test.go
    /// "TestEvictionWithPrecondition: eviction enforcing wrong UID should fail".
    #[test]
    fn an_eviction_of_another_pod_is_refused() {
        let body = json!({"metadata": {"name": "q"}});
        assert_eq!(
            read("p", &body, Terms::default(), false, false).unwrap_err().message,
            "name in URL does not match name in Eviction object"
        );
        let order = Order { terms: Terms { uid: Some("x".to_owned()), ..Terms::default() }, dry_run: false };
        let pods = builtin("", "pods");
        let status = decide(&act(&pods, "p"), &order, &pod("Running", true), &[]).unwrap_err();
        assert!(
            status
                .message
                .starts_with("Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (x)")
        );
    }

    #[test]
    fn the_answer_is_a_bare_success() {
        assert_eq!(
            shown(&done()),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        );
    }
}
