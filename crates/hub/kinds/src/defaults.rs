//! What is filled in where a built-in object says nothing.
//!
//! Owns the defaults of types: most belong to a type wherever it occurs (a probe, a volume), so one walk along the table applies
//! them and a new kind with a pod template needs no line here. Runs before field ownership is recorded; what admission adds
//! afterwards is in [`crate::admission`]. Never overwrites what is set, and expects objects that have been conformed.

use serde_json::{Map, Value, json};

use crate::{
    quantity::Quantity,
    registry::{Builtin, Builtins},
    types::{Kind, TypeId, Types},
};

/// Defaults that depend on nothing else: type, field, value as JSON.
const PLAIN: &[(&str, &str, &str)] = &[
    ("admissionregistration.v1.MutatingWebhook", "failurePolicy", r#""Fail""#),
    ("admissionregistration.v1.MutatingWebhook", "matchPolicy", r#""Equivalent""#),
    ("admissionregistration.v1.MutatingWebhook", "namespaceSelector", "{}"),
    ("admissionregistration.v1.MutatingWebhook", "objectSelector", "{}"),
    ("admissionregistration.v1.MutatingWebhook", "reinvocationPolicy", r#""Never""#),
    ("admissionregistration.v1.MutatingWebhook", "timeoutSeconds", "10"),
    ("admissionregistration.v1.RuleWithOperations", "scope", r#""*""#),
    ("admissionregistration.v1.ServiceReference", "port", "443"),
    ("admissionregistration.v1.ValidatingWebhook", "failurePolicy", r#""Fail""#),
    ("admissionregistration.v1.ValidatingWebhook", "matchPolicy", r#""Equivalent""#),
    ("admissionregistration.v1.ValidatingWebhook", "namespaceSelector", "{}"),
    ("admissionregistration.v1.ValidatingWebhook", "objectSelector", "{}"),
    ("admissionregistration.v1.ValidatingWebhook", "timeoutSeconds", "10"),
    ("apiextensions.v1.CustomResourceDefinitionSpec", "conversion", r#"{"strategy":"None"}"#),
    ("apiextensions.v1.ServiceReference", "port", "443"),
    ("apps.v1.DaemonSetSpec", "revisionHistoryLimit", "10"),
    ("apps.v1.DaemonSetUpdateStrategy", "type", r#""RollingUpdate""#),
    ("apps.v1.DeploymentSpec", "progressDeadlineSeconds", "600"),
    ("apps.v1.DeploymentSpec", "replicas", "1"),
    ("apps.v1.DeploymentSpec", "revisionHistoryLimit", "10"),
    ("apps.v1.DeploymentStrategy", "type", r#""RollingUpdate""#),
    ("apps.v1.ReplicaSetSpec", "replicas", "1"),
    ("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted", r#""Retain""#),
    ("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled", r#""Retain""#),
    ("apps.v1.StatefulSetSpec", "persistentVolumeClaimRetentionPolicy", "{}"),
    ("apps.v1.StatefulSetSpec", "podManagementPolicy", r#""OrderedReady""#),
    ("apps.v1.StatefulSetSpec", "replicas", "1"),
    ("apps.v1.StatefulSetSpec", "revisionHistoryLimit", "10"),
    ("authentication.v1.TokenRequestSpec", "expirationSeconds", "3600"),
    ("batch.v1.JobSpec", "completionMode", r#""NonIndexed""#),
    ("batch.v1.JobSpec", "manualSelector", "false"),
    ("batch.v1.JobSpec", "suspend", "false"),
    ("batch.v1.PodFailurePolicyOnPodConditionsPattern", "status", r#""True""#),
    ("core.v1.AzureDiskVolumeSource", "cachingMode", r#""ReadWrite""#),
    ("core.v1.AzureDiskVolumeSource", "fsType", r#""ext4""#),
    ("core.v1.AzureDiskVolumeSource", "kind", r#""Shared""#),
    ("core.v1.AzureDiskVolumeSource", "readOnly", "false"),
    ("core.v1.ConfigMapVolumeSource", "defaultMode", "420"),
    ("core.v1.DownwardAPIVolumeSource", "defaultMode", "420"),
    ("core.v1.EndpointPort", "protocol", r#""TCP""#),
    ("core.v1.GRPCAction", "service", r#""""#),
    ("core.v1.HTTPGetAction", "path", r#""/""#),
    ("core.v1.HTTPGetAction", "scheme", r#""HTTP""#),
    ("core.v1.HostPathVolumeSource", "type", r#""""#),
    ("core.v1.ISCSIPersistentVolumeSource", "iscsiInterface", r#""default""#),
    ("core.v1.ISCSIVolumeSource", "iscsiInterface", r#""default""#),
    ("core.v1.NamespaceStatus", "phase", r#""Active""#),
    ("core.v1.ObjectFieldSelector", "apiVersion", r#""v1""#),
    ("core.v1.PersistentVolumeClaimSpec", "volumeMode", r#""Filesystem""#),
    ("core.v1.PersistentVolumeClaimStatus", "phase", r#""Pending""#),
    ("core.v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy", r#""Retain""#),
    ("core.v1.PersistentVolumeSpec", "volumeMode", r#""Filesystem""#),
    ("core.v1.PersistentVolumeStatus", "phase", r#""Pending""#),
    ("core.v1.PodSpec", "dnsPolicy", r#""ClusterFirst""#),
    ("core.v1.PodSpec", "restartPolicy", r#""Always""#),
    ("core.v1.PodSpec", "schedulerName", r#""default-scheduler""#),
    ("core.v1.PodSpec", "securityContext", "{}"),
    ("core.v1.PodSpec", "terminationGracePeriodSeconds", "30"),
    ("core.v1.Probe", "failureThreshold", "3"),
    ("core.v1.Probe", "periodSeconds", "10"),
    ("core.v1.Probe", "successThreshold", "1"),
    ("core.v1.Probe", "timeoutSeconds", "1"),
    ("core.v1.ProjectedVolumeSource", "defaultMode", "420"),
    ("core.v1.RBDPersistentVolumeSource", "keyring", r#""/etc/ceph/keyring""#),
    ("core.v1.RBDPersistentVolumeSource", "pool", r#""rbd""#),
    ("core.v1.RBDPersistentVolumeSource", "user", r#""admin""#),
    ("core.v1.RBDVolumeSource", "keyring", r#""/etc/ceph/keyring""#),
    ("core.v1.RBDVolumeSource", "pool", r#""rbd""#),
    ("core.v1.RBDVolumeSource", "user", r#""admin""#),
    ("core.v1.ScaleIOPersistentVolumeSource", "fsType", r#""xfs""#),
    ("core.v1.ScaleIOPersistentVolumeSource", "storageMode", r#""ThinProvisioned""#),
    ("core.v1.ScaleIOVolumeSource", "fsType", r#""xfs""#),
    ("core.v1.ScaleIOVolumeSource", "storageMode", r#""ThinProvisioned""#),
    ("core.v1.Secret", "type", r#""Opaque""#),
    ("core.v1.SecretVolumeSource", "defaultMode", "420"),
    ("core.v1.ServiceAccountTokenProjection", "expirationSeconds", "3600"),
    ("core.v1.ServiceSpec", "sessionAffinity", r#""None""#),
    ("core.v1.ServiceSpec", "type", r#""ClusterIP""#),
    ("discovery.v1.EndpointPort", "name", r#""""#),
    ("discovery.v1.EndpointPort", "protocol", r#""TCP""#),
    ("rbac.v1.RoleRef", "apiGroup", r#""rbac.authorization.k8s.io""#),
    ("scheduling.v1.PriorityClass", "preemptionPolicy", r#""PreemptLowerPriority""#),
    ("storage.v1.StorageClass", "reclaimPolicy", r#""Delete""#),
    ("storage.v1.StorageClass", "volumeBindingMode", r#""Immediate""#),
];

/// Fills in the defaults of an object of a kind.
pub fn apply(kind: &Builtin, object: &mut Value) {
    apply_type(kind.type_id, object);
    if kind.kind == "DaemonSet" && object.is_object() {
        // Upstream's internal form has a number here, which is written out whenever an object leaves it.
        let path = ["metadata", "annotations", crate::strategy::TEMPLATE_GENERATION];
        if crate::access::at(object, &path).is_none() {
            crate::access::put(object, &path, Some("0".into()));
        }
    }
}

/// Fills in the defaults of an object that is only a body of a request, such as a `TokenRequest`.
pub fn apply_type(id: TypeId, object: &mut Value) {
    if let Value::Object(map) = object {
        record(&Builtins::load().types, id, map);
    }
}

/// The defaults of a record, then those of what is in it. Objects come here conformed, which bounds their depth.
fn record(types: &Types, id: TypeId, map: &mut Map<String, Value>) {
    let found = types.get(id);
    special(&found.short, map);
    let start = PLAIN.partition_point(|(name, ..)| **name < *found.short);
    for (_, field, value) in PLAIN[start..].iter().take_while(|(name, ..)| **name == *found.short) {
        if unset(map, field) {
            map.insert((*field).to_owned(), serde_json::from_str(value).expect("defaults are JSON"));
        }
    }
    dependent(&found.short, map);
    for field in &found.fields {
        if let Some(default) = &field.default
            && unset(map, &field.name)
        {
            map.insert(field.name.to_string(), default.clone());
        }
        let Some(value) = map.get_mut(&*field.name) else { continue };
        if field.go.as_deref() == Some("v1.ResourceList") {
            round_to_milli(value);
        } else {
            descend(types, &field.kind, value);
        }
    }
}

fn descend(types: &Types, kind: &Kind, value: &mut Value) {
    match (kind, value) {
        (Kind::Struct(id), Value::Object(map)) => record(types, *id, map),
        (Kind::List(item), Value::Array(items)) => {
            for value in items {
                descend(types, item, value);
            }
        }
        (Kind::Map(item), Value::Object(map)) => {
            for value in map.values_mut() {
                descend(types, item, value);
            }
        }
        _ => {}
    }
}

/// Absent, null or an empty text: Go does not tell these apart in the fields that have defaults.
fn unset(map: &Map<String, Value>, field: &str) -> bool {
    map.get(field).is_none_or(|value| value.is_null() || value == "")
}

fn fill(map: &mut Map<String, Value>, field: &str, value: Value) {
    if unset(map, field) {
        map.insert(field.to_owned(), value);
    }
}

fn is(map: &Map<String, Value>, field: &str, text: &str) -> bool {
    map.get(field).is_some_and(|value| value == text)
}

/// Amounts finer than a thousandth are rounded up to one.
fn round_to_milli(list: &mut Value) {
    for value in list.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(quantity) = value.as_str().and_then(|text| Quantity::parse(text).ok()) {
            *value = quantity.rounded_up_to_milli().text().into();
        }
    }
}

/// Defaults that must see what was sent, before the plain ones of the type.
fn special(name: &str, map: &mut Map<String, Value>) {
    match name {
        "core.v1.Pod" => pod(map),
        "core.v1.PodSpec" => mirror_service_account(map),
        "core.v1.Container" | "core.v1.EphemeralContainer" => container(map),
        "core.v1.Volume" => {
            if map.keys().all(|key| key == "name") {
                map.insert("emptyDir".into(), json!({}));
            }
            if let Some(Value::Object(image)) = map.get_mut("image") {
                let latest = image.get("reference").and_then(Value::as_str).is_some_and(is_latest);
                fill(image, "pullPolicy", if latest { "Always" } else { "IfNotPresent" }.into());
            }
        }
        "core.v1.Namespace" => namespace(map),
        "core.v1.Secret" => fold_string_data(map),
        "core.v1.NodeSpec" => {
            // The first of the ranges is said twice; where the two differ, the single one counts.
            let single = map.get("podCIDR").filter(|range| *range != "" && !range.is_null()).cloned();
            let first = map.get("podCIDRs").and_then(|ranges| ranges.get(0)).cloned();
            match (single, first) {
                (Some(single), first) if first.as_ref() != Some(&single) => {
                    map.insert("podCIDRs".into(), json!([single]));
                }
                (None, Some(first)) => {
                    map.insert("podCIDR".into(), first);
                }
                _ => {}
            }
        }
        "core.v1.NodeStatus" => {
            if let (false, Some(capacity)) = (map.contains_key("allocatable"), map.get("capacity").cloned()) {
                map.insert("allocatable".into(), capacity);
            }
        }
        "core.v1.ServicePort" => {
            let port = map.get("port").cloned().unwrap_or(Value::Null);
            if map.get("targetPort").is_none_or(|target| *target == 0 || *target == "") {
                map.insert("targetPort".into(), port);
            }
        }
        "core.v1.LimitRangeItem" => limit_range(map),
        "apps.v1.StatefulSetUpdateStrategy" if unset(map, "type") => {
            map.insert("type".into(), "RollingUpdate".into());
            fill(map, "rollingUpdate", json!({}));
        }
        "apps.v1.StatefulSetSpec" => {
            // Claims within a set say what they are, so that appliers who leave it out do not fight over it.
            for claim in
                map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let Value::Object(claim) = claim {
                    claim.insert("apiVersion".into(), "v1".into());
                    claim.insert("kind".into(), "PersistentVolumeClaim".into());
                }
            }
        }
        "batch.v1.Job" => job(map),
        "rbac.v1.Subject" if (is(map, "kind", "User") || is(map, "kind", "Group")) => {
            fill(map, "apiGroup", "rbac.authorization.k8s.io".into());
        }
        "apiextensions.v1.CustomResourceDefinitionNames" => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            if !kind.is_empty() {
                fill(map, "singular", kind.to_lowercase().into());
                fill(map, "listKind", format!("{kind}List").into());
            }
        }
        "apiextensions.v1.CustomResourceDefinition" => stored_versions(map),
        _ => {}
    }
}

/// Defaults that depend on the plain ones of the type.
fn dependent(name: &str, map: &mut Map<String, Value>) {
    let rolling = is(map, "type", "RollingUpdate");
    match name {
        "apps.v1.DeploymentStrategy" if rolling => {
            fill(map, "rollingUpdate", json!({}));
            if let Some(Value::Object(rolling)) = map.get_mut("rollingUpdate") {
                fill_unless_set(rolling, "maxUnavailable", "25%".into());
                fill_unless_set(rolling, "maxSurge", "25%".into());
            }
        }
        "apps.v1.DaemonSetUpdateStrategy" if rolling => {
            fill(map, "rollingUpdate", json!({}));
            if let Some(Value::Object(rolling)) = map.get_mut("rollingUpdate") {
                fill_unless_set(rolling, "maxUnavailable", 1.into());
                fill_unless_set(rolling, "maxSurge", 0.into());
            }
        }
        // Inside, Kubernetes keeps plain numbers: bounds that nothing asks for are there all the same.
        "apps.v1.DaemonSetUpdateStrategy" => {
            if let Some(Value::Object(rolling)) = map.get_mut("rollingUpdate") {
                fill_unless_set(rolling, "maxUnavailable", 0.into());
                fill_unless_set(rolling, "maxSurge", 0.into());
            }
        }
        "apps.v1.StatefulSetUpdateStrategy" if rolling => {
            if let Some(Value::Object(rolling)) = map.get_mut("rollingUpdate") {
                fill(rolling, "partition", 0.into());
            }
        }
        "core.v1.ServiceSpec" => service(map),
        _ => {}
    }
}

/// `stringData` is how people write secrets; what is kept, and owned, is `data`.
fn fold_string_data(secret: &mut Map<String, Value>) {
    use base64::Engine as _;
    let Some(Value::Object(written)) = secret.remove("stringData") else { return };
    if written.is_empty() {
        return;
    }
    let data = secret.entry("data").or_insert_with(|| json!({}));
    if !data.is_object() {
        *data = json!({});
    }
    for (key, value) in written {
        let bytes = value.as_str().unwrap_or_default().as_bytes();
        data[key] = base64::engine::general_purpose::STANDARD.encode(bytes).into();
    }
}

/// As [`fill`], for fields where an empty text is a value.
fn fill_unless_set(map: &mut Map<String, Value>, field: &str, value: Value) {
    if map.get(field).is_none_or(Value::is_null) {
        map.insert(field.to_owned(), value);
    }
}

fn pod(map: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = map.get_mut("spec") else { return };
    fill(spec, "enableServiceLinks", true.into());
    let host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers {
            if let Some(Value::Object(resources)) = container.get_mut("resources") {
                requests_from_limits(resources);
            }
            if !host {
                continue;
            }
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                let number = port.get("containerPort").cloned().unwrap_or(Value::Null);
                if let Value::Object(port) = port
                    && port.get("hostPort").is_none_or(|host| *host == 0)
                {
                    port.insert("hostPort".into(), number);
                }
            }
        }
    }
}

fn requests_from_limits(resources: &mut Map<String, Value>) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    let Value::Object(requests) = requests else { return };
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// `serviceAccount` is an old name of `serviceAccountName`; both are always written.
fn mirror_service_account(map: &mut Map<String, Value>) {
    let name = ["serviceAccountName", "serviceAccount"].into_iter().find(|field| !unset(map, field));
    if let Some(name) = name.and_then(|field| map.get(field).cloned()) {
        map.insert("serviceAccountName".into(), name.clone());
        map.insert("serviceAccount".into(), name);
    } else {
        map.remove("serviceAccountName");
        map.remove("serviceAccount");
    }
}

fn container(map: &mut Map<String, Value>) {
    let latest = map.get("image").and_then(Value::as_str).is_some_and(is_latest);
    fill(map, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" }.into());
    fill(map, "terminationMessagePath", "/dev/termination-log".into());
    fill(map, "terminationMessagePolicy", "File".into());
}

/// Whether a well-formed image reference means the tag `latest`: it names that tag, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    if image.is_empty() || image.contains('@') {
        return false;
    }
    let (repository, tag) = match name.split_once(':') {
        Some((repository, tag)) => (&image[..image.len() - name.len() + repository.len()], tag),
        None => (image, "latest"),
    };
    let path = match repository.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => repository,
    };
    let well_formed = path.split('/').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
            && part.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && part.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric())
    });
    well_formed && tag == "latest"
}

fn namespace(map: &mut Map<String, Value>) {
    let Some(Value::Object(metadata)) = map.get_mut("metadata") else { return };
    let Some(name) = metadata.get("name").filter(|name| **name != "").cloned() else { return };
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Value::Object(labels) = labels {
        labels.insert("kubernetes.io/metadata.name".into(), name);
    }
}

fn service(map: &mut Map<String, Value>) {
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if is(map, "sessionAffinity", "None") {
        map.remove("sessionAffinityConfig");
    } else if is(map, "sessionAffinity", "ClientIP") {
        let timeout =
            map.get("sessionAffinityConfig").and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
        if timeout.is_none_or(Value::is_null) {
            map.insert("sessionAffinityConfig".into(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
    }
    let external = map.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if kind == "NodePort" || kind == "LoadBalancer" || (kind == "ClusterIP" && external) {
        fill(map, "externalTrafficPolicy", "Cluster".into());
    }
    if ["NodePort", "LoadBalancer", "ClusterIP"].contains(&&*kind) {
        fill(map, "internalTrafficPolicy", "Cluster".into());
    }
    if kind == "LoadBalancer" {
        fill_unless_set(map, "allocateLoadBalancerNodePorts", true.into());
    }
}

fn limit_range(map: &mut Map<String, Value>) {
    if !is(map, "type", "Container") {
        return;
    }
    let amounts = |map: &Map<String, Value>, field: &str| {
        map.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (mut defaults, mut requests) = (amounts(map, "default"), amounts(map, "defaultRequest"));
    for (name, amount) in amounts(map, "max") {
        defaults.entry(name).or_insert(amount);
    }
    for (name, amount) in defaults.clone().into_iter().chain(amounts(map, "min")) {
        requests.entry(name).or_insert(amount);
    }
    for (field, amounts) in [("default", defaults), ("defaultRequest", requests)] {
        if !amounts.is_empty() {
            map.insert(field.into(), Value::Object(amounts));
        }
    }
}

fn job(map: &mut Map<String, Value>) {
    let template = map.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let (Some(labels), Some(Value::Object(metadata))) = (template, map.get_mut("metadata")) {
        metadata.entry("labels").or_insert(labels);
    }
    let Some(Value::Object(spec)) = map.get_mut("spec") else { return };
    if unset(spec, "completions") && unset(spec, "parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    fill(spec, "parallelism", 1.into());
    let limit = if unset(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    fill(spec, "backoffLimit", limit.into());
    let replacement = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    fill(spec, "podReplacementPolicy", replacement.into());
}

fn stored_versions(map: &mut Map<String, Value>) {
    let versions = map.get("spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let stored =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = stored.and_then(|version| version.get("name")).cloned() else { return };
    let Some(Value::Object(status)) = map.get_mut("status") else { return };
    if status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        status.insert("storedVersions".into(), json!([name]));
    }
}

#[cfg(test)]
mod tests;
