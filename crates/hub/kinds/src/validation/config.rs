//! The rules of config maps, secrets, namespaces, nodes, leases and priority classes.

use base64::Engine as _;
use berth_schema::{FieldPath, Problem, ProblemKind, names};
use serde_json::{Value, json};

use super::place::{At, Found, config_key, internal};

/// The most a config map or secret may hold, in bytes.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// The highest priority people may give.
const PRIORITY_MAX: i64 = 1_000_000_000;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(object: &At<'_>, found: &mut Found) {
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        for sentence in config_key(key) {
            found.invalid_text(&value, key, &sentence);
        }
        if binary.value.get(key).is_some() {
            found.invalid_text(&value, key, "duplicate of key present in binaryData");
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        for sentence in config_key(key) {
            found.invalid_text(&value, key, &sentence);
        }
        size += decoded_length(value.text());
    }
    if size > DATA_BYTES_MAX {
        found.extend(vec![Problem::too_long(&FieldPath::from("[]"), DATA_BYTES_MAX as u64)]);
    }
}

pub(super) fn config_map_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    immutable_data(new, old, &["data", "binaryData"], found);
}

fn immutable_data(new: &At<'_>, old: &At<'_>, fields: &[&str], found: &mut Found) {
    if old.get("immutable").value != &json!(true) {
        return;
    }
    if new.get("immutable").value != &json!(true) {
        found.forbidden(&new.get("immutable"), IMMUTABLE);
    }
    for field in fields {
        if new.get(field).value != old.get(field).value {
            found.forbidden(&new.get(field), IMMUTABLE);
        }
    }
}

fn decoded_length(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn secret(object: &At<'_>, found: &mut Found) {
    let data = object.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        for sentence in config_key(key) {
            found.invalid_text(&value, key, &sentence);
        }
        size += decoded_length(value.text());
    }
    if size > DATA_BYTES_MAX {
        found.extend(vec![Problem::too_long(&data.path, DATA_BYTES_MAX as u64)]);
    }
    let has = |key: &str| data.value.get(key).is_some();
    let mut need = |key: &str| found.extend(vec![Problem::required(&data.path.key(key), "")]);
    match object.get("type").text() {
        "kubernetes.io/service-account-token" => {
            const NAME: &str = "kubernetes.io/service-account.name";
            let annotations = object.get("metadata").get("annotations");
            if annotations.get(NAME).text().is_empty() {
                found.extend(vec![Problem::required(&annotations.path.key(NAME), "")]);
            }
        }
        "kubernetes.io/dockercfg" => docker(&data, ".dockercfg", found),
        "kubernetes.io/dockerconfigjson" => docker(&data, ".dockerconfigjson", found),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").text().is_empty() => need("ssh-privatekey"),
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    need(key);
                }
            }
        }
        _ => {}
    }
}

fn docker(data: &At<'_>, key: &str, found: &mut Found) {
    let path = data.path.key(key);
    let Some(text) = data.value.get(key).and_then(Value::as_str) else {
        return found.extend(vec![Problem::required(&path, "")]);
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let problem = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(_) => "the content is not a JSON object".to_owned(),
        Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(_) => "the content is not JSON".to_owned(),
    };
    found.extend(vec![Problem::invalid_text(&path, "<secret contents redacted>", &problem)]);
}

pub(super) fn secret_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    found.immutable(&new.get("type"), &old.get("type"));
    immutable_data(new, old, &["data"], found);
}

pub(super) fn namespace(object: &At<'_>, found: &mut Found) {
    let finalizers = object.get("spec").get("finalizers");
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        for sentence in names::label_key(name) {
            found.invalid_text(&finalizers, name, &sentence);
        }
        super::finalizer_name(&At { value: finalizer.value, path: finalizers.path.clone() }, found);
    }
}

pub(super) fn node(object: &At<'_>, found: &mut Found) {
    taints(object, found);
    node_resources(object, found);
    for cidr in object.get("spec").get("podCIDRs").items() {
        if !is_cidr(cidr.text()) {
            found.invalid(&cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
    }
}

/// An address and the length of its prefix.
fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    match (address.parse::<std::net::IpAddr>(), length.parse::<u8>()) {
        (Ok(address), Ok(length)) => length <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    }
}

/// Problems of taints point below `metadata`: upstream has it so, and clients show what it says.
fn taints(object: &At<'_>, found: &mut Found) {
    let taints = object.get("spec").get("taints");
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in taints.items().enumerate() {
        let place =
            At { value: taint.value, path: object.path.field("metadata").field("taints").index(index) };
        found.label_name(&place.get("key"));
        let value = place.get("value");
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            found.invalid_text(&value, value.text(), &problems.join(";"));
        }
        found.one_of(&place.get("effect"), &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        let pair = (place.get("key").text(), place.get("effect").text());
        if seen.contains(&pair) {
            let time = place.get("timeAdded");
            let shown = internal(&[
                ("Key", place.get("key").value),
                ("Value", &json!(value.text())),
                ("Effect", place.get("effect").value),
                ("TimeAdded", time.value),
            ]);
            let message = format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            found.extend(vec![Problem { path: place.path.clone(), kind: ProblemKind::Duplicate, message }]);
        }
        seen.push(pair);
    }
}

fn node_resources(object: &At<'_>, found: &mut Found) {
    for list in ["capacity", "allocatable"] {
        let amounts = object.get("status").get(list);
        for (name, amount) in amounts.entries() {
            let place = At { value: amount.value, path: amounts.path.field(name) };
            super::container::quantity(name, &place, found);
        }
    }
}

pub(super) fn node_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    node_resources(new, found);
    let addresses = new.get("status").get("addresses");
    let all: Vec<At<'_>> = addresses.items().collect();
    for (index, address) in all.iter().enumerate() {
        if all[..index].iter().any(|earlier| earlier.value == address.value) {
            let shown =
                internal(&[("Type", address.get("type").value), ("Address", address.get("address").value)]);
            let message = format!("Duplicate value: {shown}");
            found.extend(vec![Problem { path: address.path.clone(), kind: ProblemKind::Duplicate, message }]);
        }
    }
    let (cidrs, old_cidrs) = (new.get("spec").get("podCIDRs"), old.get("spec").get("podCIDRs"));
    if old_cidrs.len() > 0 && cidrs.value != old_cidrs.value {
        found.forbidden(&cidrs, "node updates may not change podCIDR except from \"\" to valid");
    }
    let (provider, old_provider) = (new.get("spec").get("providerID"), old.get("spec").get("providerID"));
    if !old_provider.text().is_empty() && provider.text() != old_provider.text() {
        found.forbidden(&provider, "node updates may not change providerID except from \"\" to valid");
    }
    taints(new, found);
}

pub(super) fn lease(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        found.invalid(&duration, "must be greater than 0");
    }
    found.not_negative(&spec.get("leaseTransitions"));
    if !spec.get("preferredHolder").text().is_empty() && spec.get("strategy").text().is_empty() {
        found.forbidden(&spec.get("preferredHolder"), "may only be specified if `strategy` is defined");
    }
}

/// The classes that come with the server: name and value.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

pub(super) fn priority_class(object: &At<'_>, found: &mut Found) {
    let name = object.get("metadata").get("name");
    let value = object.get("value");
    if name.text().starts_with("system-") {
        let problem = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name.text()) {
            None => Some(format!("{} is not a known system priority class", name.text())),
            Some((_, known)) if value.int() != Some(*known) => {
                Some(format!("value of {} PriorityClass must be {known}", name.text()))
            }
            Some(_) if object.get("globalDefault").value == &json!(true) => {
                Some(format!("globalDefault of {} PriorityClass must be false", name.text()))
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            found.forbidden(&name, &detail);
        }
    } else if value.int().unwrap_or(0) > PRIORITY_MAX {
        found.forbidden(
            &value,
            &format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}"),
        );
    }
    preemption_policy(&object.get("preemptionPolicy"), found);
}

pub(super) fn preemption_policy(policy: &At<'_>, found: &mut Found) {
    if policy.is_set() {
        found.one_of(policy, &["PreemptLowerPriority", "Never"]);
    }
}

pub(super) fn priority_class_update(new: &At<'_>, old: &At<'_>, found: &mut Found) {
    if new.get("value").value != old.get("value").value {
        found.forbidden(&new.get("value"), "may not be changed in an update.");
    }
    found.immutable(&new.get("preemptionPolicy"), &old.get("preemptionPolicy"));
}
