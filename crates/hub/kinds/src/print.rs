//! What kubectl prints of built-in kinds: columns, and the cells of an object.
//!
//! Owns both for every kind with columns of its own; others show name and time of creation. All columns are always given,
//! those of `-o wide` with a priority of 1. Ages need the time it is, which is handed in. Never builds a `Table` around them.

mod cells;
mod pod;
mod workload;

use serde_json::{Value, json};

use crate::{access::text, events, instant, openapi_prose::prose, registry::Builtin};

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// `name` for the column that names the object, or else empty.
    pub format: &'static str,
    /// 0, or 1 for columns that are only shown when asked for.
    pub priority: i32,
}

impl Column {
    /// What the column is about, where it is a field that is described.
    pub fn description(&self) -> &'static str {
        let field = match self.name {
            "Name" => "name",
            "Age" | "Created At" => "creationTimestamp",
            _ => return "",
        };
        prose().field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", field).unwrap_or_default()
    }
}

const NAME: Column = Column { name: "Name", kind: "string", format: "name", priority: 0 };
const AGE: Column = text_column("Age");

const fn text_column(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}
const fn number(name: &'static str) -> Column {
    Column { name, kind: "integer", format: "", priority: 0 }
}
const fn wide(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 1 }
}

/// The columns of kinds that have their own, by kind.
static COLUMNS: &[(&str, &[Column])] = &[
    ("ConfigMap", &[NAME, text_column("Data"), AGE]),
    ("ControllerRevision", &[NAME, text_column("Controller"), text_column("Revision"), AGE]),
    (
        "DaemonSet",
        &[
            NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            number("Up-to-date"),
            number("Available"),
            text_column("Node Selector"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    (
        "Deployment",
        &[
            NAME,
            text_column("Ready"),
            text_column("Up-to-date"),
            text_column("Available"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    (
        "EndpointSlice",
        &[NAME, text_column("AddressType"), text_column("Ports"), text_column("Endpoints"), AGE],
    ),
    ("Endpoints", &[NAME, text_column("Endpoints"), AGE]),
    (
        "Event",
        &[
            text_column("Last Seen"),
            text_column("Type"),
            text_column("Reason"),
            text_column("Object"),
            wide("Subobject"),
            wide("Source"),
            text_column("Message"),
            wide("First Seen"),
            wide("Count"),
            Column { priority: 1, ..NAME },
        ],
    ),
    (
        "Job",
        &[
            NAME,
            text_column("Status"),
            text_column("Completions"),
            text_column("Duration"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    ("Lease", &[NAME, text_column("Holder"), AGE]),
    ("MutatingWebhookConfiguration", &[NAME, number("Webhooks"), AGE]),
    ("ValidatingWebhookConfiguration", &[NAME, number("Webhooks"), AGE]),
    ("Namespace", &[NAME, text_column("Status"), AGE]),
    (
        "Node",
        &[
            NAME,
            text_column("Status"),
            text_column("Roles"),
            AGE,
            text_column("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ],
    ),
    (
        "PersistentVolume",
        &[
            NAME,
            text_column("Capacity"),
            text_column("Access Modes"),
            text_column("Reclaim Policy"),
            text_column("Status"),
            text_column("Claim"),
            text_column("StorageClass"),
            text_column("VolumeAttributesClass"),
            text_column("Reason"),
            AGE,
            wide("VolumeMode"),
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            NAME,
            text_column("Status"),
            text_column("Volume"),
            text_column("Capacity"),
            text_column("Access Modes"),
            text_column("StorageClass"),
            text_column("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ],
    ),
    (
        "Pod",
        &[
            NAME,
            text_column("Ready"),
            text_column("Status"),
            text_column("Restarts"),
            AGE,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ],
    ),
    (
        "PodDisruptionBudget",
        &[
            NAME,
            text_column("Min Available"),
            text_column("Max Unavailable"),
            number("Allowed Disruptions"),
            AGE,
        ],
    ),
    (
        "PriorityClass",
        &[
            NAME,
            number("Value"),
            Column { name: "Global-Default", kind: "boolean", format: "", priority: 0 },
            AGE,
            text_column("PreemptionPolicy"),
        ],
    ),
    (
        "ReplicaSet",
        &[
            NAME,
            number("Desired"),
            number("Current"),
            number("Ready"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ],
    ),
    ("ResourceQuota", &[NAME, text_column("Request"), text_column("Limit"), AGE]),
    (
        "RoleBinding",
        &[NAME, text_column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")],
    ),
    (
        "ClusterRoleBinding",
        &[NAME, text_column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")],
    ),
    ("Secret", &[NAME, text_column("Type"), text_column("Data"), AGE]),
    (
        "Service",
        &[
            NAME,
            text_column("Type"),
            text_column("Cluster-IP"),
            text_column("External-IP"),
            text_column("Port(s)"),
            AGE,
            wide("Selector"),
        ],
    ),
    ("ServiceAccount", &[NAME, AGE]),
    ("StatefulSet", &[NAME, text_column("Ready"), AGE, wide("Containers"), wide("Images")]),
    (
        "StorageClass",
        &[
            NAME,
            text_column("Provisioner"),
            text_column("ReclaimPolicy"),
            text_column("VolumeBindingMode"),
            text_column("AllowVolumeExpansion"),
            AGE,
        ],
    ),
];

/// The columns of all others.
static PLAIN: &[Column] = &[NAME, Column { name: "Created At", kind: "date", format: "", priority: 0 }];

/// The columns of a kind.
pub fn columns(kind: &Builtin) -> &'static [Column] {
    COLUMNS.iter().find(|(name, _)| *name == kind.kind).map_or(PLAIN, |(_, columns)| columns)
}

/// The cells of an object, one for each of [`columns`]. `now` is in seconds since 1970.
pub fn cells(kind: &Builtin, object: &Value, now: i64) -> Vec<Value> {
    match kind.kind {
        "Event" => {
            let stored = events::to_stored(kind, object.clone());
            cells::event(&stored, now)
        }
        "Pod" => pod::cells(object, now),
        "DaemonSet" | "Deployment" | "Job" | "ReplicaSet" | "StatefulSet" => {
            workload::cells(kind.kind, object, now)
        }
        other => cells::of(other, object, now),
    }
}

/// The conditions of a row: a pod that has ended says so.
pub fn row_conditions(kind: &Builtin, object: &Value) -> Option<Value> {
    let phase = text(object, &["status", "phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    (kind.kind == "Pod")
        .then(|| json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// How long ago a time was, `<unknown>` when there is none.
fn age(time: &str, now: i64) -> String {
    instant::read_seconds(time).map_or_else(|| "<unknown>".to_owned(), |then| human(now - then))
}

fn created(object: &Value, now: i64) -> String {
    age(text(object, &["metadata", "creationTimestamp"]), now)
}

fn or_none(text: &str) -> Value {
    if text.is_empty() { "<none>".into() } else { text.into() }
}

/// A span of seconds in at most two units, coarser the longer it is.
fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let two = |first: i64, unit: char, second: i64, smaller: char| match second {
        0 => format!("{first}{unit}"),
        second => format!("{first}{unit}{second}{smaller}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => two(hours / 24, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        _ => format!("{}y", hours / 24 / 365),
    }
}

/// A label selector as text, sorted by key.
fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in crate::access::entries(selector, &["matchLabels"]) {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in crate::access::items(selector, &["matchExpressions"]) {
        let key = text(expression, &["key"]);
        let mut values: Vec<&str> =
            crate::access::items(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key.to_owned(),
            match text(expression, &["operator"]) {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return "<error>".to_owned(),
            },
        ));
    }
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// Labels as text.
fn labels_text(object: &Value, path: &[&str]) -> Value {
    let all: Vec<String> = crate::access::entries(object, path)
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(&all.join(","))
}

#[cfg(test)]
mod tests;
