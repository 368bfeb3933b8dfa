//! The rows of all kinds whose cells are little more than their fields.

use serde_json::{Value, json};

use super::{age, created, labels_text, or_none};
use crate::access::{at, entries, flag, int, items, text};

/// How many addresses and ports are shown before the rest is counted.
const SHOWN_MAX: usize = 3;

pub(super) fn of(kind: &str, object: &Value, now: i64) -> Vec<Value> {
    let name = Value::from(text(object, &["metadata", "name"]));
    let age = Value::from(created(object, now));
    let count = |path: &[&str]| entries(object, path).count();
    let get = |path: &[&str]| Value::from(text(object, path));
    let phase = |object: &Value| {
        let deleted = at(object, &["metadata", "deletionTimestamp"]).is_some();
        Value::from(if deleted { "Terminating" } else { text(object, &["status", "phase"]) })
    };
    match kind {
        "ConfigMap" => vec![name, (count(&["data"]) + count(&["binaryData"])).into(), age],
        "Secret" => vec![name, get(&["type"]), count(&["data"]).into(), age],
        "ServiceAccount" => vec![name, age],
        "Namespace" => vec![name, get(&["status", "phase"]), age],
        "Lease" => vec![name, get(&["spec", "holderIdentity"]), age],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![name, items(object, &["webhooks"]).len().into(), age]
        }
        "Node" => node(object, name, age),
        "PersistentVolume" => vec![
            name,
            storage(object, &["spec", "capacity", "storage"]),
            access_modes(object, &["spec", "accessModes"]),
            get(&["spec", "persistentVolumeReclaimPolicy"]),
            phase(object),
            at(object, &["spec", "claimRef"]).map_or_else(
                || "".into(),
                |claim| format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"])).into(),
            ),
            class(object),
            unset(object, &["spec", "volumeAttributesClassName"]),
            get(&["status", "reason"]),
            age,
            unset(object, &["spec", "volumeMode"]),
        ],
        "PersistentVolumeClaim" => {
            let bound = !text(object, &["spec", "volumeName"]).is_empty();
            let shown = |value: Value| if bound { value } else { "".into() };
            vec![
                name,
                phase(object),
                get(&["spec", "volumeName"]),
                shown(storage(object, &["status", "capacity", "storage"])),
                shown(access_modes(object, &["status", "accessModes"])),
                class(object),
                unset(object, &["spec", "volumeAttributesClassName"]),
                age,
                unset(object, &["spec", "volumeMode"]),
            ]
        }
        "PodDisruptionBudget" => vec![
            name,
            int_or_text(object, &["spec", "minAvailable"]),
            int_or_text(object, &["spec", "maxUnavailable"]),
            int(object, &["status", "disruptionsAllowed"]).unwrap_or(0).into(),
            age,
        ],
        "PriorityClass" => vec![
            name,
            int(object, &["value"]).unwrap_or(0).into(),
            flag(object, &["globalDefault"]).into(),
            age,
            get(&["preemptionPolicy"]),
        ],
        "StorageClass" => storage_class(object, age),
        "RoleBinding" | "ClusterRoleBinding" => {
            let role =
                format!("{}/{}", text(object, &["roleRef", "kind"]), text(object, &["roleRef", "name"]));
            vec![
                name,
                role.into(),
                age,
                subjects(object, "User"),
                subjects(object, "Group"),
                subjects(object, "ServiceAccount"),
            ]
        }
        "ControllerRevision" => {
            vec![name, controller(object), int(object, &["revision"]).unwrap_or(0).into(), age]
        }
        "ResourceQuota" => {
            let (requests, limits) = quota(object);
            vec![name, requests.into(), limits.into(), age]
        }
        "Service" => vec![
            name,
            get(&["spec", "type"]),
            or_none(
                items(object, &["spec", "clusterIPs"]).first().and_then(Value::as_str).unwrap_or_default(),
            ),
            external(object).into(),
            service_ports(object),
            age,
            labels_text(object, &["spec", "selector"]),
        ],
        "Endpoints" => vec![name, endpoints(object).into(), age],
        "EndpointSlice" => {
            let ports = items(object, &["ports"]).iter().map(|port| {
                match (int(port, &["port"]), at(port, &["name"])) {
                    (Some(port), _) => port.to_string(),
                    (None, Some(name)) => name.as_str().unwrap_or_default().to_owned(),
                    _ => "*".to_owned(),
                }
            });
            let addresses =
                items(object, &["endpoints"]).iter().flat_map(|endpoint| items(endpoint, &["addresses"]));
            let addresses = addresses.map(|address| address.as_str().unwrap_or_default().to_owned());
            vec![name, get(&["addressType"]), listed(ports).into(), listed(addresses).into(), age]
        }
        _ => vec![name, at(object, &["metadata", "creationTimestamp"]).cloned().unwrap_or(Value::Null)],
    }
}

/// The row of an event, in the form it is stored.
pub(super) fn event(event: &Value, now: i64) -> Vec<Value> {
    let seen = |path: &[&str]| age(text(event, path), now);
    let first = match text(event, &["firstTimestamp"]) {
        "" => seen(&["eventTime"]),
        _ => seen(&["firstTimestamp"]),
    };
    let mut last = match text(event, &["lastTimestamp"]) {
        "" => first.clone(),
        _ => seen(&["lastTimestamp"]),
    };
    let mut count = int(event, &["count"]).unwrap_or(0).max(0);
    if at(event, &["series"]).is_some() {
        last = seen(&["series", "lastObservedTime"]);
        count = int(event, &["series", "count"]).unwrap_or(0);
    } else if count == 0 {
        count = 1;
    }
    let kind = text(event, &["involvedObject", "kind"]).to_lowercase();
    let target = match text(event, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let either = |first: &[&str], second: &[&str]| match text(event, first) {
        "" => text(event, second).to_owned(),
        found => found.to_owned(),
    };
    let component = either(&["source", "component"], &["reportingComponent"]);
    let instance = either(&["source", "host"], &["reportingInstance"]);
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    vec![
        last.into(),
        text(event, &["type"]).into(),
        text(event, &["reason"]).into(),
        target.into(),
        text(event, &["involvedObject", "fieldPath"]).into(),
        source.into(),
        text(event, &["message"]).trim().into(),
        first.into(),
        count.into(),
        text(event, &["metadata", "name"]).into(),
    ]
}

fn node(node: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready = items(node, &["status", "conditions"])
        .iter()
        .rfind(|condition| text(condition, &["type"]) == "Ready");
    let mut status = match ready.map(|condition| text(condition, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = entries(node, &["metadata", "labels"])
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let info = |field: &str| text(node, &["status", "nodeInfo", field]);
    let known = |text: &str| if text.is_empty() { "<unknown>".to_owned() } else { text.to_owned() };
    let mut kernel = known(info("kernelVersion"));
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    let address = |kind: &str| {
        let found =
            items(node, &["status", "addresses"]).iter().find(|address| text(address, &["type"]) == kind);
        found.map_or_else(|| json!("<none>"), |address| text(address, &["address"]).into())
    };
    vec![
        name,
        status.into(),
        or_none(&roles.join(",")),
        age,
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        known(info("osImage")).into(),
        kernel.into(),
        known(info("containerRuntimeVersion")).into(),
    ]
}

fn storage(object: &Value, path: &[&str]) -> Value {
    match text(object, path) {
        "" => "0".into(),
        amount => amount.into(),
    }
}

fn access_modes(object: &Value, path: &[&str]) -> Value {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes = items(object, path);
    let shown: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| modes.iter().any(|found| found == mode))
        .map(|(_, short)| *short)
        .collect();
    shown.join(",").into()
}

/// The storage class, by the old annotation or the field.
fn class(object: &Value) -> Value {
    match text(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]) {
        "" => text(object, &["spec", "storageClassName"]).into(),
        class => class.into(),
    }
}

fn unset(object: &Value, path: &[&str]) -> Value {
    at(object, path).cloned().unwrap_or_else(|| "<unset>".into())
}

fn int_or_text(object: &Value, path: &[&str]) -> Value {
    match at(object, path) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    }
}

fn storage_class(object: &Value, age: Value) -> Vec<Value> {
    let name = text(object, &["metadata", "name"]);
    let default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| text(object, &["metadata", "annotations", key]) == "true");
    let or =
        |path: &[&str], other: &str| Value::from(at(object, path).and_then(Value::as_str).unwrap_or(other));
    vec![
        if default { format!("{name} (default)").into() } else { name.into() },
        text(object, &["provisioner"]).into(),
        or(&["reclaimPolicy"], "Delete"),
        or(&["volumeBindingMode"], "Immediate"),
        flag(object, &["allowVolumeExpansion"]).into(),
        age,
    ]
}

fn subjects(object: &Value, kind: &str) -> Value {
    let all: Vec<String> = items(object, &["subjects"])
        .iter()
        .filter(|subject| text(subject, &["kind"]) == kind)
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"])),
            _ => text(subject, &["name"]).to_owned(),
        })
        .collect();
    all.join(", ").into()
}

fn controller(object: &Value) -> Value {
    let owner =
        items(object, &["metadata", "ownerReferences"]).iter().find(|owner| flag(owner, &["controller"]));
    owner.map_or_else(
        || json!("<none>"),
        |owner| {
            let group = text(owner, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
            let kind = text(owner, &["kind"]).to_lowercase();
            let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
            format!("{kind}/{}", text(owner, &["name"])).into()
        },
    )
}

fn quota(object: &Value) -> (String, String) {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in entries(object, &["status", "hard"]) {
        let used = at(object, &["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        let shown = format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"));
        if name.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    (requests.join(", "), limits.join(", "))
}

fn external(service: &Value) -> String {
    let ips: Vec<&str> = items(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    match text(service, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if ips.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => ips.join(","),
        "LoadBalancer" => {
            let mut points: Vec<&str> = items(service, &["status", "loadBalancer", "ingress"])
                .iter()
                .map(|point| match text(point, &["ip"]) {
                    "" => text(point, &["hostname"]),
                    ip => ip,
                })
                .filter(|point| !point.is_empty())
                .collect();
            points.sort_unstable();
            points.dedup();
            points.extend(ips);
            if points.is_empty() { "<pending>".to_owned() } else { points.join(",") }
        }
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_ports(service: &Value) -> Value {
    let ports: Vec<String> = items(service, &["spec", "ports"])
        .iter()
        .map(|port| {
            let (number, protocol) = (int(port, &["port"]).unwrap_or(0), text(port, &["protocol"]));
            match int(port, &["nodePort"]).unwrap_or(0) {
                node if node > 0 => format!("{number}:{node}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    or_none(&ports.join(","))
}

fn endpoints(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(object, &["subsets"]) {
        let addresses = || items(subset, &["addresses"]).iter().map(|address| text(address, &["ip"]));
        let ports = items(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            let port = int(port, &["port"]).unwrap_or(0);
            all.extend(
                addresses().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }),
            );
        }
    }
    if items(object, &["subsets"]).is_empty() {
        return "<none>".to_owned();
    }
    more(&all)
}

fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if all.is_empty() { "<unset>".to_owned() } else { more(&all) }
}

fn more(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN_MAX)].join(",");
    if all.len() > SHOWN_MAX { format!("{shown} + {} more...", all.len() - SHOWN_MAX) } else { shown }
}
