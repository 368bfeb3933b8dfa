//! The rules of deployments, sets, jobs and disruption budgets.

use berth_schema::{Problem, ProblemKind, gotext, names};
use serde_json::{Value, json};

use super::{
    place::{At, Found, internal},
    pod, selector,
    volume::claim_spec,
};

pub(super) fn deployment(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    found.not_negative(&spec.get("replicas"));
    selected_template(&spec, "deployment", found);
    strategy(&spec.get("strategy"), found);
    found.not_negative(&spec.get("minReadySeconds"));
    found.not_negative(&spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    found.not_negative(&deadline);
    if deadline.int().is_some_and(|seconds| seconds <= spec.get("minReadySeconds").int().unwrap_or(0)) {
        found.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

pub(super) fn replica_set(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    found.not_negative(&spec.get("replicas"));
    found.not_negative(&spec.get("minReadySeconds"));
    selected_template(&spec, "deployment", found);
}

/// The selector has to select the pods of the template, or a set would never find its own.
fn selected_template(spec: &At<'_>, word: &str, found: &mut Found) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    check_selector(&selector, word, found);
    match_labels(&selector, &template, found);
    pod::template(&template, found);
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        found.not_supported(&policy, &["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        found.forbidden(&deadline, "activeDeadlineSeconds in ReplicaSet is not Supported");
    }
}

fn check_selector(selector: &At<'_>, word: &str, found: &mut Found) {
    if !selector.is_set() {
        return found.required(selector, "");
    }
    selector::check(selector, found);
    if selector.get("matchLabels").len() + selector.get("matchExpressions").len() == 0 {
        found.invalid(selector, &format!("empty selector is invalid for {word}"));
    }
}

fn match_labels(selector: &At<'_>, template: &At<'_>, found: &mut Found) {
    let labels = template.get("metadata").get("labels");
    let empty = selector.get("matchLabels").len() + selector.get("matchExpressions").len() == 0;
    if empty && selector.is_set() {
        return;
    }
    if !selector.is_set() || selector::matches(selector.value, labels.value) == Some(false) {
        let shown = if labels.is_set() { labels.value.clone() } else { Value::Null };
        found.invalid_shown(&labels.path, &shown, "`selector` does not match template `labels`");
    }
}

fn strategy(strategy: &At<'_>, found: &mut Found) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" if rolling.is_set() => {
            found.forbidden(&rolling, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(&unavailable, found);
            int_or_percent(&surge, found);
            if share(unavailable.value) == 0 && share(surge.value) == 0 {
                found.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&unavailable, found);
        }
        _ => {
            let message = format!(
                "Unsupported value: {}: supported values: \"Recreate\", \"RollingUpdate\"",
                internal_strategy(strategy, &BOUNDS)
            );
            found.extend(vec![Problem {
                path: strategy.path.clone(),
                kind: ProblemKind::NotSupported,
                message,
            }]);
        }
    }
}

/// The bounds of a rolling update, by their names in objects and in Kubernetes' internal form, in the order of the latter.
const BOUNDS: [(&str, &str); 2] = [("maxUnavailable", "MaxUnavailable"), ("maxSurge", "MaxSurge")];
const SET_BOUNDS: [(&str, &str); 2] = [("partition", "Partition"), ("maxUnavailable", "MaxUnavailable")];

/// A strategy as messages show it.
fn internal_strategy(strategy: &At<'_>, bounds: &[(&str, &str)]) -> String {
    let rolling = strategy.get("rollingUpdate");
    let shown = if rolling.is_set() {
        let fields: Vec<At<'_>> = bounds.iter().map(|(name, _)| rolling.get(name)).collect();
        let fields: Vec<(&str, &Value)> =
            bounds.iter().zip(&fields).map(|((_, shown), field)| (*shown, field.value)).collect();
        internal(&fields)
    } else {
        "null".to_owned()
    };
    format!("{{\"Type\":{},\"RollingUpdate\":{shown}}}", gotext::quote(strategy.get("type").text()))
}

/// A count or a share in percent.
fn int_or_percent(at: &At<'_>, found: &mut Found) {
    match at.value {
        Value::String(text) => {
            let digits = text
                .strip_suffix('%')
                .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
            if !digits {
                let rule = "a valid percent string must be a numeric string followed by an ending '%'";
                found.invalid(at, &names::regex_error(rule, "[0-9]+%", &["1%", "93%"]));
            }
        }
        _ => found.not_negative(at),
    }
}

fn percent(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

fn share(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or(0)
}

fn at_most_all(at: &At<'_>, found: &mut Found) {
    if percent(at.value).is_some_and(|share| share > 100) {
        found.invalid(at, "must not be greater than 100%");
    }
}

pub(super) fn daemon_set(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selector.is_set() {
        selector::check(&selector, found);
    }
    match_labels(&selector, &template, found);
    if selector.is_set() && selector.get("matchLabels").len() + selector.get("matchExpressions").len() == 0 {
        found.invalid(&selector, "empty selector is invalid for daemonset");
    }
    pod::template(&template, found);
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        found.not_supported(&policy, &["Always"]);
    }
    if template.get("spec").get("activeDeadlineSeconds").is_set() {
        found.forbidden(
            &template.get("spec").get("activeDeadlineSeconds"),
            "activeDeadlineSeconds in DaemonSet is not Supported",
        );
    }
    found.not_negative(&spec.get("minReadySeconds"));
    let strategy = spec.get("updateStrategy");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate");
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(&unavailable, found);
            at_most_all(&unavailable, found);
            int_or_percent(&surge, found);
            at_most_all(&surge, found);
            match (share(unavailable.value) != 0, share(surge.value) != 0) {
                (true, true) => found.invalid(&surge, "may not be set when maxUnavailable is non-zero"),
                (false, false) => found.required(&unavailable, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            let message = format!(
                "Unsupported value: {}: supported values: \"RollingUpdate\", \"OnDelete\"",
                internal_strategy(&strategy, &BOUNDS)
            );
            found.extend(vec![Problem {
                path: strategy.path.clone(),
                kind: ProblemKind::NotSupported,
                message,
            }]);
        }
    }
    found.not_negative(&spec.get("revisionHistoryLimit"));
}

pub(super) fn stateful_set(object: &At<'_>, new: bool, found: &mut Found) {
    let spec = object.get("spec");
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => found.required(&policy, ""),
        "OrderedReady" | "Parallel" => {}
        _ => found.invalid(&policy, "must be 'OrderedReady' or 'Parallel'"),
    }
    let update = spec.get("updateStrategy");
    match update.get("type").text() {
        "" => found.required(&update, ""),
        "OnDelete" if update.get("rollingUpdate").is_set() => {
            found.invalid(&update.get("rollingUpdate"), "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => found.not_negative(&update.get("rollingUpdate").get("partition")),
        _ => {
            let message = format!(
                "Invalid value: {}: must be 'RollingUpdate' or 'OnDelete'",
                internal_strategy(&update, &SET_BOUNDS)
            );
            found.extend(vec![Problem { path: update.path.clone(), kind: ProblemKind::Invalid, message }]);
        }
    }
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        found.one_of_if_set(&retention.get(field), &["Retain", "Delete"]);
    }
    if new {
        for claim in spec.get("volumeClaimTemplates").items() {
            claim_spec(&claim.get("spec"), found);
        }
    }
    found.not_negative(&spec.get("replicas"));
    found.not_negative(&spec.get("minReadySeconds"));
    let service = spec.get("serviceName");
    if new && !service.text().is_empty() {
        found.label(&service);
    }
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    check_selector(&selector, "statefulset", found);
    match_labels(&selector, &template, found);
    // Pods may mount the claims that are made for them. Their names and their domain are given to them, whatever the
    // template says.
    let mut with_claims = template.value.clone();
    if let Some(pod) = with_claims.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("hostname");
        pod.remove("subdomain");
    }
    let claims: Vec<Value> = spec
        .get("volumeClaimTemplates")
        .items()
        .map(|claim| claim.get("metadata").get("name").value.clone())
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    if let Some(pod) = with_claims.get_mut("spec").and_then(Value::as_object_mut)
        && !claims.is_empty()
    {
        let named = |volume: &Value| claims.iter().any(|claim| claim["name"] == volume["name"]);
        let others = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        let others: Vec<Value> = others.filter(|volume| !named(volume)).cloned().collect();
        let all: Vec<Value> = claims.iter().cloned().chain(others).collect();
        pod.insert("volumes".into(), all.into());
    }
    pod::template(&At { value: &with_claims, path: template.path.clone() }, found);
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        found.not_supported(&policy, &["Always"]);
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        found.forbidden(&deadline, "activeDeadlineSeconds in StatefulSet is not Supported");
    }
}

pub(super) fn stateful_set_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |at: &At<'_>| {
        let spec = at.get("spec").value.as_object().cloned().unwrap_or_default();
        spec.into_iter().filter(|(name, _)| !FREE.contains(&name.as_str())).collect::<Vec<_>>()
    };
    if fixed(new) != fixed(old) {
        found.forbidden(
            &new.get("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

pub(super) fn selector_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    found.immutable(&new.get("spec").get("selector"), &old.get("spec").get("selector"));
}

pub(super) fn controller_revision(object: &At<'_>, new: bool, found: &mut Found) {
    found.not_negative(&object.get("revision"));
    let data = object.get("data");
    if new && !data.is_set() {
        found.required(&data, "data is mandatory");
    } else if new && !data.value.is_object() {
        found.required(&data, "data must be a valid JSON object");
    }
}

pub(super) fn controller_revision_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    found.immutable(&new.get("data"), &old.get("data"));
}

pub(super) fn job(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    for field in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        found.not_negative(&spec.get(field));
    }
    pod::template(&spec.get("template"), found);
    let policy = spec.get("template").get("spec").get("restartPolicy");
    if policy.text() == "Always" {
        let message = "Required value: valid values: \"OnFailure\", \"Never\"".to_owned();
        found.extend(vec![Problem { path: policy.path, kind: ProblemKind::Required, message }]);
    } else if !["OnFailure", "Never"].contains(&policy.text()) {
        found.not_supported(&policy, &["OnFailure", "Never"]);
    }
}

pub(super) fn disruption_budget(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    let (minimum, maximum) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if minimum.is_set() && maximum.is_set() {
        let shown = internal(&[
            ("MinAvailable", minimum.value),
            ("Selector", spec.get("selector").value),
            ("MaxUnavailable", maximum.value),
            ("UnhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy").value),
        ]);
        let message = format!("Invalid value: {shown}: minAvailable and maxUnavailable cannot be both set");
        found.extend(vec![Problem { path: spec.path.clone(), kind: ProblemKind::Invalid, message }]);
    }
    for bound in [minimum, maximum] {
        int_or_percent(&bound, found);
        at_most_all(&bound, found);
    }
    selector::check(&spec.get("selector"), found);
    found.one_of_if_set(&spec.get("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
}

/// Counts in a status are not negative, and parts are not more than the whole.
pub(super) fn replicas_status(object: &At<'_>, parts: &[&str], found: &mut Found) {
    let status = object.get("status");
    let total = status.get("replicas").int().unwrap_or(0);
    found.not_negative(&status.get("replicas"));
    for part in parts {
        found.not_negative(&status.get(part));
    }
    for part in parts {
        if status.get(part).int().unwrap_or(0) > total {
            found.invalid(&status.get(part), "cannot be greater than status.replicas");
        }
    }
    let (available, ready) = (status.get("availableReplicas"), status.get("readyReplicas"));
    if available.int().unwrap_or(0) > ready.int().unwrap_or(0) {
        found.invalid(&available, "cannot be greater than readyReplicas");
    }
}
