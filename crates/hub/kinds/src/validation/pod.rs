//! The rules of pods and of the templates others make pods from.

use berth_schema::{Problem, names};
use serde_json::{Value, json};

use super::{
    config::preemption_policy,
    container, metadata_labels,
    place::{At, Found},
    selector,
    volume::volumes,
};

/// What may change in the spec of a pod, as the refusal of anything else says it.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    pod_spec(&spec, found);
    if spec.get("serviceAccountName").text().is_empty() {
        for source in
            spec.get("volumes").items().flat_map(|volume| volume.get("projected").get("sources").items())
        {
            let token = source.get("serviceAccountToken");
            if token.is_set() {
                found.forbidden(&token, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}

/// What only a new pod may not have.
pub(super) fn pod_create(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    if spec.get("ephemeralContainers").len() > 0 {
        found.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.get("nodeName").text().is_empty() && spec.get("schedulingGates").len() > 0 {
        found.forbidden(&spec.get("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

/// A template within another kind.
pub(super) fn template(template: &At<'_>, found: &mut Found) {
    metadata_labels(&template.get("metadata"), &template.path, found);
    pod_spec(&template.get("spec"), found);
    let ephemeral = template.get("spec").get("ephemeralContainers");
    if ephemeral.len() > 0 {
        found.forbidden(&ephemeral, "ephemeral containers not allowed in pod template");
    }
}

fn pod_spec(spec: &At<'_>, found: &mut Found) {
    if !spec.get("terminationGracePeriodSeconds").is_set() {
        found.required(&spec.get("terminationGracePeriodSeconds"), "");
    }
    let volumes = volumes(&spec.get("volumes"), found);
    containers(spec, &volumes, found);
    if spec.get("hostNetwork").value == &json!(true) {
        for port in spec.get("containers").items().flat_map(|container| container.get("ports").items()) {
            if port.get("hostPort").value != port.get("containerPort").value {
                found.invalid(&port.get("hostPort"), "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
    found.one_of(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    found.one_of(&spec.get("dnsPolicy"), &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    found.labels(&spec.get("nodeSelector"));
    container::security(&spec.get("securityContext"), found);
    affinity(&spec.get("affinity"), found);
    let dns = spec.get("dnsConfig");
    if spec.get("dnsPolicy").text() == "None" {
        if !dns.is_set() {
            found.required(&dns, "must provide `dnsConfig` when `dnsPolicy` is None");
        } else if dns.get("nameservers").len() == 0 {
            found.required(
                &dns.get("nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
        }
    }
    for gate in spec.get("readinessGates").items() {
        found.label_name(&gate.get("conditionType"));
    }
    gates(&spec.get("schedulingGates"), found);
    spread(&spec.get("topologySpreadConstraints"), found);
    for field in ["serviceAccountName", "nodeName"] {
        if !spec.get(field).text().is_empty() {
            found.subdomain(&spec.get(field));
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.int().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        found.invalid(&deadline, "must be between 1 and 2147483647, inclusive");
    }
    for field in ["hostname", "subdomain"] {
        if !spec.get(field).text().is_empty() {
            found.label(&spec.get(field));
        }
    }
    tolerations(&spec.get("tolerations"), found);
    for field in ["priorityClassName", "runtimeClassName"] {
        if !spec.get(field).text().is_empty() {
            found.subdomain(&spec.get(field));
        }
    }
    preemption_policy(&spec.get("preemptionPolicy"), found);
    container::overhead(&spec.get("overhead"), found);
}

fn containers(spec: &At<'_>, volumes: &[&str], found: &mut Found) {
    let list = spec.get("containers");
    let containers: Vec<At<'_>> = list.items().collect();
    if containers.is_empty() {
        found.required(&list, "");
    }
    let mut seen: Vec<&str> = Vec::new();
    for one in &containers {
        container::common(one, volumes, found);
        if seen.contains(&one.get("name").text()) {
            found.duplicate(&one.get("name"));
        }
        seen.push(one.get("name").text());
        lifecycle(one, found);
        container::probes(one, found);
    }
    container::host_ports(&containers, found);

    for one in spec.get("initContainers").items() {
        container::common(&one, volumes, found);
        let always = one.get("restartPolicy").text() == "Always";
        let name = one.get("name");
        if seen.contains(&name.text()) {
            found.duplicate(&name);
        } else if !name.text().is_empty() {
            seen.push(name.text());
        }
        if always {
            lifecycle(&one, found);
            container::probes(&one, found);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if one.get(field).is_set() {
                found.forbidden(
                    &one.get(field),
                    "may not be set for init containers without restartPolicy=Always",
                );
            }
        }
    }
}

fn lifecycle(one: &At<'_>, found: &mut Found) {
    for hook in ["postStart", "preStop"] {
        let hook = one.get("lifecycle").get(hook);
        if hook.is_set() {
            container::handler(&hook, found);
        }
    }
}

fn affinity(affinity: &At<'_>, found: &mut Found) {
    let node = affinity.get("nodeAffinity");
    let required = node.get("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() {
        let terms = required.get("nodeSelectorTerms");
        if terms.len() == 0 {
            found.required(&terms, "must have at least one node selector term");
        }
        for term in terms.items() {
            selector::check_node_term(&term, found);
        }
    }
    for preferred in node.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        weight(&preferred, found);
        selector::check_node_term(&preferred.get("preference"), found);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(kind);
        for term in pods.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            pod_term(&term, found);
        }
        for preferred in pods.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(&preferred, found);
            pod_term(&preferred.get("podAffinityTerm"), found);
        }
    }
}

fn weight(preferred: &At<'_>, found: &mut Found) {
    let weight = preferred.get("weight");
    if !weight.int().is_some_and(|weight| (1..=100).contains(&weight)) {
        found.invalid(&weight, "must be in the range 1-100");
    }
}

fn pod_term(term: &At<'_>, found: &mut Found) {
    selector::check(&term.get("labelSelector"), found);
    selector::check(&term.get("namespaceSelector"), found);
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        found.required(&key, "can not be empty");
    }
    found.label_name(&key);
}

fn gates(gates: &At<'_>, found: &mut Found) {
    let mut seen: Vec<&str> = Vec::new();
    for gate in gates.items() {
        found.sentences(
            &At { value: gate.get("name").value, path: gate.path.clone() },
            names::label_key(gate.get("name").text()),
        );
        if seen.contains(&gate.get("name").text()) {
            found.extend(vec![Problem::duplicate(&gate.path, gate.get("name").value)]);
        }
        seen.push(gate.get("name").text());
    }
}

fn spread(constraints: &At<'_>, found: &mut Found) {
    for one in constraints.items() {
        let skew = one.get("maxSkew");
        if skew.int().unwrap_or(0) <= 0 {
            found.invalid(&skew, "must be greater than zero");
        }
        if one.get("topologyKey").text().is_empty() {
            found.required(&one.get("topologyKey"), "can not be empty");
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&one.get("whenUnsatisfiable").text()) {
            found.not_supported(&one.get("whenUnsatisfiable"), &["DoNotSchedule", "ScheduleAnyway"]);
        }
        selector::check(&one.get("labelSelector"), found);
    }
}

fn tolerations(tolerations: &At<'_>, found: &mut Found) {
    for toleration in tolerations.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| toleration.get(field));
        if !key.text().is_empty() {
            found.label_name(&key);
        }
        if key.text().is_empty() && operator.text() != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            found.invalid_text(&operator, operator.text(), detail);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            found.invalid_text(
                &effect,
                effect.text(),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator.text() {
            "" | "Equal" => {
                let problems = names::label_value(value.text());
                if !problems.is_empty() {
                    found.invalid_text(&operator, value.text(), &problems.join(";"));
                }
            }
            "Exists" if !value.text().is_empty() => {
                found.invalid_text(
                    &operator,
                    value.text(),
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            "Lt" | "Gt" => found.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
            _ => found.not_supported(&operator, &["Equal", "Exists"]),
        }
        if !effect.text().is_empty() {
            found.one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// What an update of a pod may not do.
pub(super) fn pod_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    for list in ["containers", "initContainers"] {
        if spec.get(list).len() != before.get(list).len() {
            return found.forbidden(&spec.get(list), "pod updates may not add or remove containers");
        }
    }
    let (deadline, old_deadline) = (spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"));
    match (deadline.int(), old_deadline.int()) {
        (Some(new), Some(old)) if new > old => {
            return found.invalid(&deadline, "must be less than or equal to previous value");
        }
        (None, Some(_)) => found.invalid(&deadline, "must not update from a positive integer to nil value"),
        _ => {}
    }
    only_added_tolerations(&spec.get("tolerations"), &before.get("tolerations"), found);
    let gates = spec.get("schedulingGates");
    for gate in gates.items() {
        if !before.get("schedulingGates").items().any(|earlier| earlier.value == gate.value) {
            let name = gate.get("name").text();
            found.forbidden(
                &gate,
                &format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            );
        }
    }
    let changed = changed_fields(spec.value, before.value);
    if !changed.is_empty() {
        let detail =
            format!("pod updates may not change fields other than {UPDATABLE}\n{}", changed.join("\n"));
        found.forbidden(&spec, &detail);
    }
}

fn only_added_tolerations(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    let same = |left: &Value, right: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| left.get(field) == right.get(field))
    };
    let kept = old.items().all(|earlier| new.items().any(|later| same(later.value, earlier.value)));
    if !kept {
        found.forbidden(new, "existing toleration can not be modified except its tolerationSeconds");
    }
    // Upstream looks at the new ones once more here.
    tolerations(new, found);
}

/// The fields of the spec that differ though they may not, each with what it was and is.
fn changed_fields(new: &Value, old: &Value) -> Vec<String> {
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> =
            crate::access::items(old, &[list]).iter().map(|container| container["image"].clone()).collect();
        for (container, image) in
            munged.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().zip(images)
        {
            if let Value::Object(container) = container {
                container.insert("image".into(), image);
            }
        }
    }
    let negative =
        old.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0);
    let grace = negative && new.get("terminationGracePeriodSeconds") == Some(&json!(1));
    let gated = !crate::access::items(old, &["schedulingGates"]).is_empty();
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if grace {
        free.push("terminationGracePeriodSeconds");
    }
    if gated {
        // While gated, where a pod may go can still be narrowed.
        free.extend(["nodeSelector", "affinity"]);
    }
    let (Some(new), Some(old)) = (munged.as_object(), old.as_object()) else { return Vec::new() };
    let names: std::collections::BTreeSet<&String> = new.keys().chain(old.keys()).collect();
    names
        .into_iter()
        .filter(|name| !free.contains(&name.as_str()) && new.get(*name) != old.get(*name))
        .map(|name| {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            format!("  {name}: was {}, is {}", shown(old.get(name)), shown(new.get(name)))
        })
        .collect()
}
