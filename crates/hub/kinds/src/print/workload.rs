//! The rows of what runs pods: deployments, sets and jobs.

use serde_json::Value;

use super::{age, created, human, labels_text, selector_text};
use crate::{
    access::{at, int, items, text},
    instant,
};

pub(super) fn cells(kind: &str, object: &Value, now: i64) -> Vec<Value> {
    let status = |field: &str| Value::from(int(object, &["status", field]).unwrap_or(0));
    let name = Value::from(text(object, &["metadata", "name"]));
    let desired = int(object, &["spec", "replicas"]).unwrap_or(0);
    let ready =
        || Value::from(format!("{}/{desired}", int(object, &["status", "readyReplicas"]).unwrap_or(0)));
    let created = Value::from(created(object, now));
    let (containers, images) = (joined(object, "name"), joined(object, "image"));
    let selector = selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null));
    let shown = Value::from(if selector.is_empty() { "<none>".to_owned() } else { selector.clone() });
    match kind {
        "Deployment" => {
            let selector = if selector == "<error>" { "<invalid>".to_owned() } else { selector };
            vec![
                name,
                ready(),
                status("updatedReplicas"),
                status("availableReplicas"),
                created,
                containers,
                images,
                selector.into(),
            ]
        }
        "StatefulSet" => vec![name, ready(), created, containers, images],
        "ReplicaSet" => {
            vec![
                name,
                desired.into(),
                status("replicas"),
                status("readyReplicas"),
                created,
                containers,
                images,
                shown,
            ]
        }
        "DaemonSet" => vec![
            name,
            status("desiredNumberScheduled"),
            status("currentNumberScheduled"),
            status("numberReady"),
            status("updatedNumberScheduled"),
            status("numberAvailable"),
            labels_text(object, &["spec", "template", "spec", "nodeSelector"]),
            created,
            containers,
            images,
            shown,
        ],
        _ => vec![
            name,
            job_status(object).into(),
            completions(object).into(),
            duration(object, now).into(),
            created,
            containers,
            images,
            shown,
        ],
    }
}

fn joined(object: &Value, field: &str) -> Value {
    let containers = items(object, &["spec", "template", "spec", "containers"]);
    containers.iter().map(|container| text(container, &[field])).collect::<Vec<_>>().join(",").into()
}

fn job_status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let found =
            items(job, &["status", "conditions"]).iter().find(|condition| text(condition, &["type"]) == kind);
        found.is_some_and(|condition| text(condition, &["status"]) == "True")
    };
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if at(job, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let succeeded = int(job, &["status", "succeeded"]).unwrap_or(0);
    match (int(job, &["spec", "completions"]), int(job, &["spec", "parallelism"]).unwrap_or(0)) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value, now: i64) -> String {
    let (start, end) = (text(job, &["status", "startTime"]), text(job, &["status", "completionTime"]));
    match (instant::read_seconds(start), instant::read_seconds(end)) {
        (None, _) => String::new(),
        (Some(_), None) => age(start, now),
        (Some(start), Some(end)) => human(end - start),
    }
}
