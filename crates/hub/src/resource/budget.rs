//! The status of a disruption budget: how many of its pods are healthy, how many must be, how many may go.
//!
//! ```text
//! pods by selector ─► expected (their controllers' scale) ─► desired healthy ─┐
//!                └──► healthy now ────────────────────────────────────────────┴─► disruptions allowed
//! ```
//! Owns the arithmetic. Finding the pods and controllers, and writing the status, is the caller's.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::resource::{condition, meta};

/// How long an eviction may take before the pod counts as staying, in seconds.
pub(crate) const DELETION_TIMEOUT_SECONDS: i64 = 2 * 60;

/// The desired scale of the controller that an owner reference names, by the controller's uid: `None` when there is no such
/// controller.
pub(crate) type ScaleOf<'a> = dyn Fn(&str) -> Option<i64> + 'a;

/// What a budget's status should be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    /// The budget with its new status; `None` when it stands as it is.
    pub budget: Option<Value>,
    /// When to look again, because an eviction may have come to nothing by then.
    pub recheck: Option<Timestamp>,
}

/// What the status of a budget should be, given the pods its selector matches in its namespace.
pub(crate) fn decide(budget: &Value, pods: &[&Value], scale_of: &ScaleOf<'_>, now: Timestamp) -> Decision {
    match counts(budget, pods, scale_of, now) {
        Ok(counts) => {
            let recheck = counts.recheck;
            Decision { budget: apply(budget, counts, now), recheck }
        }
        Err(why) => Decision { budget: fail_safe(budget, &why, now), recheck: None },
    }
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    condition::is_true(pod, "Ready")
}

/// Says in a budget's conditions whether it allows a disruption, as its numbers stand.
pub(crate) fn set_allowed_condition(budget: &mut Value, now: Timestamp) {
    let allowed =
        meta::at(budget, &["status", "disruptionsAllowed"]).and_then(Value::as_i64).unwrap_or(0) > 0;
    let (status, reason) = if allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let observed = meta::at(budget, &["status", "observedGeneration"]).and_then(Value::as_i64).unwrap_or(0);
    set_condition(budget, status, reason, "", observed, now);
}

struct Counts {
    expected: i64,
    desired: i64,
    healthy: i64,
    disrupted: BTreeMap<String, Value>,
    recheck: Option<Timestamp>,
}

fn counts(budget: &Value, pods: &[&Value], scale_of: &ScaleOf<'_>, now: Timestamp) -> Result<Counts, String> {
    let (expected, desired) = expectation(budget, pods, scale_of)?;
    let known = meta::at(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    let mut disrupted = BTreeMap::new();
    let mut recheck: Option<Timestamp> = None;
    let mut healthy = 0;
    for pod in pods.iter().filter(|pod| !meta::deleting(pod)) {
        let name = meta::text(pod, "name");
        let since = known.and_then(|known| known.get(name));
        let until = since
            .and_then(Value::as_str)
            .and_then(|since| since.parse::<Timestamp>().ok())
            .and_then(|since| since.checked_add(SignedDuration::from_secs(DELETION_TIMEOUT_SECONDS)).ok());
        if let (Some(since), Some(until)) = (since, until)
            && until >= now
        {
            disrupted.insert(name.to_owned(), since.clone());
            recheck = Some(recheck.map_or(until, |recheck| recheck.min(until)));
            if until > now {
                continue;
            }
        }
        if is_ready(pod) {
            healthy += 1;
        }
    }
    Ok(Counts { expected, desired, healthy, disrupted, recheck })
}

/// How many pods there should be, and how many of them must be healthy.
fn expectation(budget: &Value, pods: &[&Value], scale_of: &ScaleOf<'_>) -> Result<(i64, i64), String> {
    if let Some(bound) = meta::at(budget, &["spec", "maxUnavailable"]).filter(|bound| !bound.is_null()) {
        let expected = expected_scale(pods, scale_of)?;
        return Ok((expected, (expected - scaled(bound, expected)?).max(0)));
    }
    match meta::at(budget, &["spec", "minAvailable"]) {
        Some(bound) if bound.is_i64() => Ok((pods.len() as i64, bound.as_i64().unwrap_or(0))),
        Some(bound) if bound.is_string() => {
            let expected = expected_scale(pods, scale_of)?;
            Ok((expected, scaled(bound, expected)?))
        }
        _ => Ok((0, 0)),
    }
}

/// The sum of the scales of all controllers of the pods. Pods without a controller count for nothing.
fn expected_scale(pods: &[&Value], scale_of: &ScaleOf<'_>) -> Result<i64, String> {
    let mut scales: BTreeMap<&str, i64> = BTreeMap::new();
    for pod in pods {
        let Some(uid) = controller_uid(pod) else { continue };
        if scales.contains_key(uid) {
            continue;
        }
        let scale = scale_of(uid)
            .ok_or_else(|| format!("found no controllers for pod {:?}", meta::text(pod, "name")))?;
        scales.insert(uid, scale);
    }
    Ok(scales.values().fold(0, |sum: i64, scale| sum.saturating_add(*scale)))
}

fn controller_uid(pod: &Value) -> Option<&str> {
    let owners = meta::at(pod, &["metadata", "ownerReferences"])?.as_array()?;
    owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?.get("uid")?.as_str()
}

/// A number, or a percentage of a total, rounded up.
fn scaled(bound: &Value, total: i64) -> Result<i64, String> {
    if let Some(number) = bound.as_i64() {
        return Ok(number);
    }
    let text = bound.as_str().unwrap_or_default();
    let wrong = || "invalid value for IntOrString: invalid type: string is not a percentage".to_owned();
    let percent: i64 = text.strip_suffix('%').ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
    let parts = i128::from(percent) * i128::from(total);
    Ok(i64::try_from((parts + 99).div_euclid(100)).unwrap_or(i64::MAX))
}

fn apply(budget: &Value, counts: Counts, now: Timestamp) -> Option<Value> {
    let allowed = if counts.expected <= 0 { 0 } else { (counts.healthy - counts.desired).max(0) };
    let mut status = json!({
        "currentHealthy": counts.healthy,
        "desiredHealthy": counts.desired,
        "expectedPods": counts.expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": meta::number(budget, "generation").unwrap_or(0),
    });
    let fields = meta::map(&mut status);
    if !counts.disrupted.is_empty() {
        fields.insert("disruptedPods".to_owned(), counts.disrupted.into_iter().collect::<Value>());
    }
    if let Some(conditions) = meta::at(budget, &["status", "conditions"]) {
        fields.insert("conditions".to_owned(), conditions.clone());
    }
    let mut updated = budget.clone();
    meta::map(&mut updated).insert("status".to_owned(), status);
    set_allowed_condition(&mut updated, now);
    (updated != *budget).then_some(updated)
}

/// When the numbers cannot be had, nothing may go.
fn fail_safe(budget: &Value, why: &str, now: Timestamp) -> Option<Value> {
    let mut updated = budget.clone();
    let status = meta::child(meta::map(&mut updated), "status");
    status.insert("disruptionsAllowed".to_owned(), 0.into());
    for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
        status.entry(field).or_insert_with(|| 0.into());
    }
    let observed = status.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    set_condition(&mut updated, "False", "SyncFailed", why, observed, now);
    (updated != *budget).then_some(updated)
}

fn set_condition(
    budget: &mut Value,
    status: &str,
    reason: &str,
    message: &str,
    observed: i64,
    now: Timestamp,
) {
    let mut condition = json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
    });
    if observed != 0 {
        meta::map(&mut condition).insert("observedGeneration".to_owned(), observed.into());
    }
    condition::set(budget, condition, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T22:50:54Z".parse().unwrap()
    }

    fn pod(name: &str, ready: bool) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "default",
                "ownerReferences": [{"uid": "rs", "controller": true}]},
            "status": {"phase": "Running",
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        })
    }

    fn budget(spec: Value) -> Value {
        let mut budget = json!({"metadata": {"name": "b", "generation": 2}});
        budget["spec"] = spec;
        budget
    }

    fn status(spec: Value, pods: &[Value], scale: i64) -> Value {
        let pods: Vec<&Value> = pods.iter().collect();
        decide(&budget(spec), &pods, &|uid| (uid == "rs").then_some(scale), now()).budget.unwrap()["status"]
            .clone()
    }

    #[test]
    fn a_number_that_must_be_available_is_taken_as_it_is() {
        let pods = [pod("a", true), pod("b", true), pod("c", false)];
        let status = status(json!({"minAvailable": 1}), &pods, 9);
        assert_eq!(status["expectedPods"], 3);
        assert_eq!(status["currentHealthy"], 2);
        assert_eq!(status["desiredHealthy"], 1);
        assert_eq!(status["disruptionsAllowed"], 1);
        assert_eq!(status["observedGeneration"], 2);
        assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    }

    #[test]
    fn percentages_are_of_the_controllers_scale_and_round_up() {
        let pods = [pod("a", true), pod("b", true), pod("c", true)];
        let available = status(json!({"minAvailable": "50%"}), &pods, 5);
        assert_eq!((&available["expectedPods"], &available["desiredHealthy"]), (&json!(5), &json!(3)));
        assert_eq!(available["conditions"][0]["reason"], "InsufficientPods");
        let unavailable = status(json!({"maxUnavailable": "50%"}), &pods, 5);
        assert_eq!(unavailable["desiredHealthy"], 2);
        assert_eq!(unavailable["disruptionsAllowed"], 1);
        assert_eq!(status(json!({"maxUnavailable": 9}), &pods, 5)["desiredHealthy"], 0);
    }

    #[test]
    fn a_budget_without_pods_allows_nothing() {
        let status = status(json!({"minAvailable": 0}), &[], 0);
        assert_eq!(status["disruptionsAllowed"], 0);
    }

    #[test]
    fn a_pod_whose_controller_is_unknown_stops_all_disruptions() {
        let pods = [pod("a", true)];
        let pods: Vec<&Value> = pods.iter().collect();
        let decided = decide(&budget(json!({"maxUnavailable": 1})), &pods, &|_| None, now()).budget.unwrap();
        assert_eq!(decided["status"]["disruptionsAllowed"], 0);
        assert_eq!(decided["status"]["conditions"][0]["reason"], "SyncFailed");
        assert_eq!(decided["status"]["conditions"][0]["message"], "found no controllers for pod \"a\"");
    }

    #[test]
    fn an_eviction_under_way_counts_as_gone_until_it_took_too_long() {
        let pods = [pod("a", true), pod("b", true)];
        let pods: Vec<&Value> = pods.iter().collect();
        let mut budget = budget(json!({"minAvailable": 1}));
        budget["status"] =
            json!({"disruptedPods": {"a": "2026-11-15T22:50:00Z", "gone": "2026-11-15T22:50:00Z"}});
        let decision = decide(&budget, &pods, &|_| None, now());
        let status = &decision.budget.unwrap()["status"];
        assert_eq!(status["currentHealthy"], 1);
        assert_eq!(status["disruptedPods"], json!({"a": "2026-11-15T22:50:00Z"}));
        assert_eq!(decision.recheck, Some("2026-11-15T22:52:00Z".parse().unwrap()));
        let later = "2026-11-15T22:52:01Z".parse().unwrap();
        let status = &decide(&budget, &pods, &|_| None, later).budget.unwrap()["status"];
        assert_eq!(status["currentHealthy"], 2);
        assert_eq!(status.get("disruptedPods"), None);
    }

    #[test]
    fn a_status_that_is_right_is_left_alone() {
        let pods = [pod("a", true)];
        let pods: Vec<&Value> = pods.iter().collect();
        let once = decide(&budget(json!({"minAvailable": 1})), &pods, &|_| None, now()).budget.unwrap();
        let later = "2026-11-15T23:00:00Z".parse().unwrap();
        assert_eq!(decide(&once, &pods, &|_| None, later).budget, None);
    }
}
