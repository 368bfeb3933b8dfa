//! The rules of containers: names, images, ports, environment, resources, probes and mounts.

use berth_schema::{Problem, names};
use serde_json::{Value, json};

use super::place::{At, Found, config_key, port_name};
use crate::quantity::Quantity;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// Resources whose requests may be below their limits, though extended resources may not.
const COMPUTE: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

/// What applies to containers of every sort.
pub(super) fn common(container: &At<'_>, volumes: &[&str], found: &mut Found) {
    let name = container.get("name");
    if name.text().is_empty() {
        found.required(&name, "");
    } else {
        found.label(&name);
    }
    if container.get("image").text().is_empty() {
        found.required(&container.get("image"), "");
    }
    found.one_of(&container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(&container.get("ports"), found);
    environment(&container.get("env"), found);
    let sources = container.get("envFrom");
    for source in sources.items() {
        environment_source(&source, &sources, found);
    }
    mounts(&container.get("volumeMounts"), volumes, found);
    found.one_of(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    resources(&container.get("resources"), found);
    security(&container.get("securityContext"), found);
}

fn ports(ports: &At<'_>, found: &mut Found) {
    let mut seen: Vec<&str> = Vec::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            let problems = port_name(name.text());
            if !problems.is_empty() {
                found.sentences(&name, problems);
            } else if seen.contains(&name.text()) {
                found.duplicate(&name);
            } else {
                seen.push(name.text());
            }
        }
        let number = port.get("containerPort");
        if number.int().unwrap_or(0) == 0 {
            found.required(&number, "");
        } else {
            found.port(&number);
        }
        if port.get("hostPort").int().unwrap_or(0) != 0 {
            found.port(&port.get("hostPort"));
        }
        found.one_of(&port.get("protocol"), &PROTOCOLS);
    }
}

/// No two containers may want the same port of the host.
pub(super) fn host_ports(containers: &[At<'_>], found: &mut Found) {
    let mut seen: Vec<String> = Vec::new();
    for port in containers.iter().flat_map(|container| container.get("ports").items()) {
        let number = port.get("hostPort").int().unwrap_or(0);
        if number == 0 {
            continue;
        }
        let wanted = format!("{}/{}/{number}", port.get("protocol").text(), port.get("hostIP").text());
        if seen.contains(&wanted) {
            found.extend(vec![Problem::duplicate(&port.get("hostPort").path, &json!(wanted))]);
        } else {
            seen.push(wanted);
        }
    }
}

fn environment(variables: &At<'_>, found: &mut Found) {
    for variable in variables.items() {
        let name = variable.get("name");
        if name.text().is_empty() {
            found.required(&name, "");
        } else if !name.text().bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let rule = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            found.invalid_text(&name, name.text(), rule);
        }
        let from = variable.get("valueFrom");
        if from.is_set() {
            value_from(&from, variable.get("value").text(), found);
        }
    }
}

fn value_from(from: &At<'_>, value: &str, found: &mut Found) {
    if from.get("fieldRef").is_set() {
        field_path(&from.get("fieldRef").get("fieldPath"), found);
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        let selector = from.get(source);
        if !selector.is_set() {
            continue;
        }
        found.subdomain(&selector.get("name"));
        let key = selector.get("key");
        if key.text().is_empty() {
            found.required(&key, "");
        } else {
            found.sentences(&key, config_key(key.text()));
        }
    }
    match from.len() {
        0 => found.invalid_text(
            from,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !value.is_empty() => found.invalid_text(from, "", "may not be specified when `value` is not empty"),
        1 => {}
        _ => found.invalid_text(from, "", "may not have more than one field specified at a time"),
    }
}

/// Fields of a pod that a variable may be taken from.
const ENVIRONMENT_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn field_path(path: &At<'_>, found: &mut Found) {
    let entry =
        ["metadata.annotations['", "metadata.labels['"].iter().any(|start| path.text().starts_with(start));
    match path.text() {
        "" => found.required(path, ""),
        "metadata.annotations" | "metadata.labels" => found.not_supported(path, &ENVIRONMENT_FIELDS),
        text if ENVIRONMENT_FIELDS.contains(&text) || (entry && text.ends_with("']")) => {}
        text => {
            found.invalid_text(
                path,
                text,
                &format!("error converting fieldPath: field label not supported: {text}"),
            );
        }
    }
}

fn environment_source(source: &At<'_>, all: &At<'_>, found: &mut Found) {
    let mut count = 0;
    for field in ["configMapRef", "secretRef"] {
        let reference = source.get(field);
        if !reference.is_set() {
            continue;
        }
        count += 1;
        if reference.get("name").text().is_empty() {
            found.required(&reference.get("name"), "");
        } else {
            found.subdomain(&reference.get("name"));
        }
    }
    match count {
        0 => found.invalid_text(all, "", "must specify one of: `configMapRef` or `secretRef`"),
        1 => {}
        _ => found.invalid_text(all, "", "may not have more than one field specified at a time"),
    }
}

fn mounts(mounts: &At<'_>, volumes: &[&str], found: &mut Found) {
    let mut seen: Vec<&str> = Vec::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        if name.text().is_empty() {
            found.required(&name, "");
        }
        if !volumes.contains(&name.text()) {
            found.extend(vec![Problem::not_found(&name.path, &json!(name.text()))]);
        }
        if path.text().is_empty() {
            found.required(&path, "");
        }
        if seen.contains(&path.text()) {
            found.invalid_text(&path, path.text(), "must be unique");
        }
        seen.push(path.text());
        for (field, text) in [("subPath", mount.get("subPath")), ("subPathExpr", mount.get("subPathExpr"))] {
            // The problem points beside the list's items, as upstream's does.
            let place = At { value: text.value, path: mounts.path.field(field) };
            descending(&place, found);
        }
        if !mount.get("subPath").text().is_empty() && !mount.get("subPathExpr").text().is_empty() {
            found.invalid(&mount.get("subPathExpr"), "subPathExpr and subPath are mutually exclusive");
        }
    }
}

/// A relative path that does not leave where it starts.
fn descending(path: &At<'_>, found: &mut Found) {
    if path.text().starts_with('/') {
        found.invalid(path, "must be a relative path");
    }
    if path.text().split('/').any(|part| part == "..") {
        found.invalid(path, "must not contain '..'");
    }
}

/// Requests and limits of a container.
pub(super) fn resources(resources: &At<'_>, found: &mut Found) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for (name, amount) in limits.entries() {
        resource_name(name, &amount, found);
        quantity(name, &amount, found);
    }
    for (name, amount) in requests.entries() {
        resource_name(name, &amount, found);
        quantity(name, &amount, found);
        let overcommit = !name.contains('/') && !name.starts_with("hugepages-");
        let (wanted, limit) = (parsed(amount.value), limits.value.get(name).and_then(parsed));
        match (wanted, limit) {
            (Some(wanted), Some(limit)) => {
                let shown = |relation: &str| format!("must be {relation} {name} limit of {}", limit.text());
                match wanted.compare(&limit) {
                    std::cmp::Ordering::Equal => {}
                    _ if !overcommit => found.invalid_text(&requests, &wanted.text(), &shown("equal to")),
                    std::cmp::Ordering::Greater => {
                        found.invalid_text(&requests, &wanted.text(), &shown("less than or equal to"));
                    }
                    std::cmp::Ordering::Less => {}
                }
            }
            (Some(_), None) if !overcommit => {
                found.required(&limits, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
}

/// What a pod needs beyond its containers. The path says `limits`, as upstream's does.
pub(super) fn overhead(overhead: &At<'_>, found: &mut Found) {
    let limits = overhead.path.field("limits");
    for (name, amount) in overhead.entries() {
        let place = At { value: amount.value, path: limits.key(name) };
        resource_name(name, &place, found);
        quantity(name, &place, found);
    }
}

fn parsed(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(|text| Quantity::parse(text).ok())
}

fn resource_name(name: &str, place: &At<'_>, found: &mut Found) {
    let problems = names::label_key(name);
    let well_formed = problems.is_empty();
    for problem in problems {
        found.invalid_text(place, name, &problem);
    }
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    if !native && (name.starts_with("requests.") || !names::label_key(&format!("requests.{name}")).is_empty())
    {
        found.invalid_text(place, name, "doesn't follow extended resource name standard");
    }
    let standard = COMPUTE.contains(&name) || name.starts_with("hugepages-");
    if !name.contains('/') && !standard {
        // Names that are a standard resource of something else pass the first of the two checks.
        let elsewhere = [
            "pods",
            "services",
            "secrets",
            "configmaps",
            "storage",
            "persistentvolumeclaims",
            "resourcequotas",
            "replicationcontrollers",
        ];
        if well_formed
            && !elsewhere.contains(&name)
            && !name.starts_with("requests.")
            && !name.starts_with("limits.")
        {
            found.invalid_text(place, name, "must be a standard resource type or fully qualified");
        }
        found.invalid_text(place, name, "must be a standard resource for containers");
    }
}

/// An amount of a resource is not negative, and whole where the resource is counted.
pub(super) fn quantity(name: &str, amount: &At<'_>, found: &mut Found) {
    let Some(value) = parsed(amount.value) else { return };
    if value.is_negative() {
        found.invalid_text(amount, amount.text(), "must be greater than or equal to 0");
    }
    let counted = name == "pods" || (name.contains('/') && !name.starts_with("kubernetes.io/"));
    if counted && !value.is_whole() {
        found.invalid_text(amount, amount.text(), "must be an integer");
    }
}

/// Users and groups are numbers of their own kind.
pub(super) fn security(context: &At<'_>, found: &mut Found) {
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        let id = context.get(field);
        if id.int().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            found.invalid(&id, "must be between 0 and 2147483647, inclusive");
        }
    }
}

/// Liveness, readiness and startup probes.
pub(super) fn probes(container: &At<'_>, found: &mut Found) {
    for (field, once) in [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)] {
        let probe = container.get(field);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, found);
        for field in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            found.not_negative(&probe.get(field));
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if grace.int().is_some_and(|seconds| seconds <= 0) {
            found.invalid(&grace, "must be greater than 0");
        }
        if once && probe.get("successThreshold").int().is_some_and(|count| count != 1) {
            found.invalid(&probe.get("successThreshold"), "must be 1");
        }
    }
}

/// Exactly one way to ask.
pub(super) fn handler(place: &At<'_>, found: &mut Found) {
    let mut count = 0;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let one = place.get(field);
        if !one.is_set() {
            continue;
        }
        count += 1;
        if count > 1 {
            found.forbidden(&one, "may not specify more than 1 handler type");
            continue;
        }
        match field {
            "exec" if one.get("command").len() == 0 => found.required(&one.get("command"), ""),
            "httpGet" => {
                if one.get("path").text().is_empty() {
                    found.required(&one.get("path"), "");
                }
                found.port_or_name(&one.get("port"));
                found.one_of_if_set(&one.get("scheme"), &["HTTP", "HTTPS"]);
            }
            "tcpSocket" => found.port_or_name(&one.get("port")),
            "grpc" => found.port(&one.get("port")),
            _ => {}
        }
    }
    if count == 0 {
        found.required(place, "must specify a handler type");
    }
}
