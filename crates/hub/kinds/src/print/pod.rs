//! The row of a pod: what its containers' states add up to in one word.

use serde_json::{Value, json};

use super::{age, created, or_none};
use crate::access::{at, flag, int, items, text};

/// Restarts seen so far and the time of the last.
#[derive(Default, Clone, Copy)]
struct Restarts<'a> {
    count: i64,
    last: &'a str,
}

impl<'a> Restarts<'a> {
    fn add(&mut self, status: &'a Value) {
        self.count += int(status, &["restartCount"]).unwrap_or(0);
        let finished = text(status, &["lastState", "terminated", "finishedAt"]);
        // Times are written alike, so the later one is the greater text.
        if finished > self.last {
            self.last = finished;
        }
    }
}

pub(super) fn cells(pod: &Value, now: i64) -> Vec<Value> {
    let summary = summarise(pod);
    let restarts = match summary.restarts {
        Restarts { count, last } if count != 0 && !last.is_empty() => {
            format!("{count} ({} ago)", age(last, now))
        }
        Restarts { count, .. } => count.to_string(),
    };
    let addresses = items(pod, &["status", "podIPs"]);
    vec![
        text(pod, &["metadata", "name"]).into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        created(pod, now).into(),
        or_none(addresses.first().map_or("", |address| text(address, &["ip"]))),
        or_none(text(pod, &["spec", "nodeName"])),
        or_none(text(pod, &["status", "nominatedNodeName"])),
        readiness_gates(pod),
    ]
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = items(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return json!("<none>");
    }
    let open = gates.iter().filter(|gate| has_condition(pod, text(gate, &["conditionType"]))).count();
    format!("{open}/{}", gates.len()).into()
}

fn has_condition(pod: &Value, kind: &str) -> bool {
    let conditions = items(pod, &["status", "conditions"]);
    let found = conditions.iter().find(|condition| text(condition, &["type"]) == kind);
    found.is_some_and(|condition| text(condition, &["status"]) == "True")
}

struct Summary<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: Restarts<'a>,
}

fn summarise(pod: &Value) -> Summary<'_> {
    let phase = text(pod, &["status", "phase"]);
    let stated = text(pod, &["status", "reason"]);
    let mut reason = if stated.is_empty() { phase } else { stated }.to_owned();
    let gated = items(pod, &["status", "conditions"]).iter().any(|condition| {
        text(condition, &["type"]) == "PodScheduled" && text(condition, &["reason"]) == "SchedulingGated"
    });
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    let inits = items(pod, &["spec", "initContainers"]);
    let stays = |name: &str| {
        inits.iter().any(|init| text(init, &["name"]) == name && text(init, &["restartPolicy"]) == "Always")
    };
    let total = items(pod, &["spec", "containers"]).len()
        + inits.iter().filter(|init| text(init, &["restartPolicy"]) == "Always").count();

    let mut summary = Summary { ready: 0, total, reason, restarts: Restarts::default() };
    let mut staying = Restarts::default();
    let mut initializing = false;
    for (place, status) in items(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
        summary.restarts.add(status);
        let restartable = stays(text(status, &["name"]));
        if restartable {
            staying.add(status);
        }
        let terminated = at(status, &["state", "terminated"]);
        let waiting = text(status, &["state", "waiting", "reason"]);
        if terminated.is_some_and(|state| int(state, &["exitCode"]).unwrap_or(0) == 0) {
            continue;
        }
        if restartable && flag(status, &["started"]) {
            summary.ready += usize::from(flag(status, &["ready"]));
            continue;
        }
        summary.reason = if let Some(state) = terminated {
            format!("Init:{}", ending(state))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{place}/{}", inits.len())
        };
        initializing = true;
        break;
    }
    if !initializing || has_condition(pod, "Initialized") {
        summary.restarts = staying;
        running(pod, &mut summary);
    }
    if at(pod, &["metadata", "deletionTimestamp"]).is_some() {
        if stated == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if phase != "Succeeded" && phase != "Failed" {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

fn running<'a>(pod: &'a Value, summary: &mut Summary<'a>) {
    let mut has_running = false;
    let mut error = String::new();
    for status in items(pod, &["status", "containerStatuses"]).iter().rev() {
        summary.restarts.add(status);
        let waiting = text(status, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if let Some(state) = at(status, &["state", "terminated"]) {
            summary.reason = ending(state);
            if int(state, &["exitCode"]).unwrap_or(0) != 0 {
                error.clone_from(&summary.reason);
            }
        } else if flag(status, &["ready"]) && at(status, &["state", "running"]).is_some() {
            has_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if has_running && has_condition(pod, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if !error.is_empty() {
            summary.reason = error;
        } else if has_running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

fn ending(state: &Value) -> String {
    let signal = int(state, &["signal"]).unwrap_or(0);
    match text(state, &["reason"]) {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", int(state, &["exitCode"]).unwrap_or(0)),
        reason => reason.to_owned(),
    }
}
