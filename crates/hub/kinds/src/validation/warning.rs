//! What is allowed and yet probably not meant: the warnings a write is answered with.
//!
//! Owns those about pods and their templates, the ones people see, and the deprecation of `Endpoints`.

use berth_schema::names;
use serde_json::Value;

use super::place::At;
use crate::{quantity::Quantity, registry::Builtin};

/// Labels of nodes that were renamed.
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];
/// Sources of volumes that are gone or going.
const OLD_VOLUMES: [(&str, &str); 8] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
];

/// The warnings about a new object.
pub fn create_warnings(kind: &Builtin, object: &Value) -> Vec<String> {
    let root = At::root(object);
    let mut out = Vec::new();
    let used = match kind.kind {
        "Pod" => Some("the Pod's hostname"),
        "Deployment" | "ReplicaSet" | "Job" => Some("Pod names and hostnames"),
        _ => None,
    };
    if let Some(used) = used {
        let problems = names::dns_label(root.get("metadata").get("name").text());
        if !problems.is_empty() {
            let problems = problems.join(" ");
            out.push(format!(
                "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{problems}]"
            ));
        }
    }
    out.extend(common(kind, &root));
    out
}

/// The warnings about an object that replaces another: nothing new, nothing to warn about.
pub fn update_warnings(kind: &Builtin, new: &Value, old: &Value) -> Vec<String> {
    let (at, before) = (At::root(new), At::root(old));
    let same = match kind.kind {
        "Pod" => true,
        "DaemonSet" => at.get("spec").get("template").value == before.get("spec").get("template").value,
        "Deployment" | "ReplicaSet" | "StatefulSet" | "Job" => {
            at.get("metadata").get("generation").value == before.get("metadata").get("generation").value
        }
        _ => false,
    };
    if same { Vec::new() } else { common(kind, &at) }
}

fn common(kind: &Builtin, root: &At<'_>) -> Vec<String> {
    match kind.kind {
        "Pod" => pod(root),
        "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet" | "Job" => {
            pod(&root.get("spec").get("template"))
        }
        "Endpoints" => {
            vec!["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()]
        }
        _ => Vec::new(),
    }
}

fn pod(owner: &At<'_>) -> Vec<String> {
    let spec = owner.get("spec");
    let mut out = Vec::new();
    let old_label = |key: &str| OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, words)| *words);
    for (key, value) in spec.get("nodeSelector").entries() {
        if let Some(words) = old_label(key) {
            out.push(format!("{}: {words}", value.path));
        }
    }
    for one in spec.get("topologySpreadConstraints").items() {
        let key = one.get("topologyKey");
        if let Some(words) = old_label(key.text()) {
            out.push(format!("{}: {} is {words}", key.path, key.text()));
        }
        if !one.get("labelSelector").is_set() {
            out.push(format!(
                "{}: a null labelSelector results in matching no pod",
                one.get("labelSelector").path
            ));
        }
    }
    for volume in spec.get("volumes").items() {
        for (source, words) in OLD_VOLUMES.iter().filter(|(source, _)| volume.get(source).is_set()) {
            out.push(format!("{}: {words}", volume.get(source).path));
        }
    }
    duplicates(&spec.get("hostAliases"), "ip", &mut out);
    duplicates(&spec.get("imagePullSecrets"), "name", &mut out);
    for secret in spec.get("imagePullSecrets").items().filter(|secret| secret.get("name").text().is_empty()) {
        out.push(format!("{}: invalid empty name \"\"", secret.get("name").path));
    }
    let containers: Vec<At<'_>> =
        ["initContainers", "containers"].iter().flat_map(|list| spec.get(list).items()).collect();
    for container in &containers {
        fractions(&container.get("resources"), &mut out);
        hidden_variables(&container.get("env"), &mut out);
    }
    ports(&containers, &mut out);
    if spec.get("terminationGracePeriodSeconds").int().is_some_and(|seconds| seconds < 0) {
        let path = spec.get("terminationGracePeriodSeconds").path;
        out.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    out
}

fn duplicates(list: &At<'_>, field: &str, out: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for item in list.items() {
        let value = item.get(field);
        if seen.contains(&value.text()) {
            out.push(format!("{}: duplicate {field} {:?}", value.path, value.text()));
        }
        seen.push(value.text());
    }
}

/// There is no part of a byte.
fn fractions(resources: &At<'_>, out: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let amounts = resources.get(list);
            let Some(amount) = amounts.value.get(name).and_then(Value::as_str) else { continue };
            if Quantity::parse(amount).is_ok_and(|amount| !amount.is_whole()) {
                let path = amounts.path.key(name);
                out.push(format!("{path}: fractional byte value {amount:?} is invalid, must be an integer"));
            }
        }
    }
}

fn hidden_variables(variables: &At<'_>, out: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for variable in variables.items() {
        let (name, value) = (variable.get("name").text(), variable.get("value").text());
        let reference = format!("$({name})");
        let extends = value.contains(&reference) && value != reference && !variable.get("valueFrom").is_set();
        if seen.contains(&name) && !extends {
            out.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                variable.path
            ));
        }
        seen.push(name);
    }
}

fn ports(containers: &[At<'_>], out: &mut Vec<String>) {
    let all: Vec<At<'_>> = containers.iter().flat_map(|container| container.get("ports").items()).collect();
    let number = |port: &At<'_>, field: &str| port.get(field).int().unwrap_or(0);
    for (index, port) in all.iter().enumerate() {
        for other in &all[..index] {
            let same = |field: &str| port.get(field).value == other.get(field).value;
            if !same("containerPort") || !same("protocol") {
                continue;
            }
            let (mine, theirs) = (number(port, "hostPort"), number(other, "hostPort"));
            let relation = if same("hostIP") && mine == theirs {
                "duplicate"
            } else if mine == 0 || theirs == 0 {
                "overlapping"
            } else if mine == theirs && port.get("hostIP").is_set() != other.get("hostIP").is_set() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            out.push(format!("{}: {relation} port definition with {}", port.path, other.path));
        }
    }
    for (index, port) in all.iter().enumerate() {
        let name = port.get("name");
        let first = all[..index]
            .iter()
            .find(|other| !name.text().is_empty() && other.get("name").text() == name.text());
        if let Some(first) = first {
            out.push(format!(
                "{}: duplicate port name {:?} with {first}, services and probes that select ports by name will use {first}",
                port.path,
                name.text(),
                first = first.path
            ));
        }
    }
}
