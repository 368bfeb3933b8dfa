//! Where what others add to an object counts as well.
//!
//! Elsewhere only fields that are set are compared, because servers and operators fill in a good deal that is nobody's
//! concern. In the places here one field more is one power more: a pod in its node's network, a role that gathers others', a
//! webhook that is asked about half of the namespaces. What a server fills in by itself says nothing and is known.
//!
//! Owns the list of places. Lists are no business of it: [`compare`](super::compare) wants them whole.

use serde_json::{Map, Value};

use super::compare::{Difference, below};

/// A place in objects of some kinds.
struct Place {
    kinds: &'static [&'static str],
    /// Fields from the top, `[]` for every entry of a list.
    path: &'static str,
    fields: Fields,
}

/// Which fields count there.
enum Fields {
    /// Every one.
    All,
    /// These.
    These(&'static [&'static str]),
}

const ROLES: &[&str] = &["ClusterRole", "Role"];
const BINDINGS: &[&str] = &["ClusterRoleBinding", "RoleBinding"];
const DEPLOYMENT: &[&str] = &["Deployment"];
const WEBHOOKS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

const fn all(kinds: &'static [&'static str], path: &'static str) -> Place {
    Place { kinds, path, fields: Fields::All }
}

const fn these(kinds: &'static [&'static str], path: &'static str, fields: &'static [&'static str]) -> Place {
    Place { kinds, path, fields: Fields::These(fields) }
}

const PLACES: &[Place] = &[
    // What may be done, and by whom.
    these(ROLES, "", &["aggregationRule"]),
    all(ROLES, "rules[]"),
    all(BINDINGS, "roleRef"),
    all(BINDINGS, "subjects[]"),
    // What a pod has of its node, and what runs in it beside or instead of us.
    these(
        DEPLOYMENT,
        "spec.template.spec",
        &[
            "hostAliases",
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "initContainers",
            "shareProcessNamespace",
            "volumes",
        ],
    ),
    all(DEPLOYMENT, "spec.template.spec.securityContext"),
    these(
        DEPLOYMENT,
        "spec.template.spec.containers[]",
        &["command", "env", "envFrom", "lifecycle", "volumeDevices", "volumeMounts"],
    ),
    these(DEPLOYMENT, "spec.template.spec.containers[].ports[]", &["hostIP", "hostPort"]),
    all(DEPLOYMENT, "spec.template.spec.containers[].securityContext"),
    all(DEPLOYMENT, "spec.template.spec.containers[].securityContext.capabilities"),
    // Which pods are meant: one label more means others, or none.
    all(&["Deployment", "PodDisruptionBudget"], "spec.selector"),
    all(&["Deployment", "PodDisruptionBudget"], "spec.selector.matchLabels"),
    all(&["Service"], "spec.selector"),
    // From where they are reached.
    these(&["Service"], "spec", &["externalIPs", "externalName", "type"]),
    // Which writes are not asked about, and who is asked.
    these(WEBHOOKS, "webhooks[]", &["matchConditions", "namespaceSelector", "objectSelector"]),
    these(WEBHOOKS, "webhooks[].clientConfig", &["url"]),
    // Who rewrites objects between versions.
    these(&["CustomResourceDefinition"], "spec.conversion", &["webhook"]),
];

/// What a server fills in by itself, where that is not nothing.
const USUAL: &[(&str, &str)] = &[("type", "ClusterIP"), ("procMount", "Default")];

/// Everything in these places that nobody wanted.
pub(super) fn additions(wanted: &Value, found: &Value) -> Vec<Difference> {
    let kind = wanted["kind"].as_str().unwrap_or_default();
    let mut out = Vec::new();
    for place in PLACES.iter().filter(|place| place.kinds.contains(&kind)) {
        let steps: Vec<&str> = place.path.split('.').filter(|step| !step.is_empty()).collect();
        walk(&place.fields, &steps, "", Some(wanted), found, &mut out);
    }
    out
}

/// Goes down to a place, or to all of them where lists are on the way. Recursion is as deep as the longest path above.
fn walk(
    fields: &Fields,
    steps: &[&str],
    path: &str,
    wanted: Option<&Value>,
    found: &Value,
    out: &mut Vec<Difference>,
) {
    let Some((step, rest)) = steps.split_first() else {
        if let Value::Object(there) = found {
            tell(fields, path, wanted.and_then(Value::as_object), there, out);
        }
        return;
    };
    let name = step.strip_suffix("[]");
    let child = found.get(name.unwrap_or(step));
    let ours = wanted.and_then(|wanted| wanted.get(name.unwrap_or(step)));
    match (name, child) {
        (_, None) => {}
        (None, Some(child)) => walk(fields, rest, &below(path, step), ours, child, out),
        (Some(name), Some(child)) => {
            for (at, entry) in child.as_array().into_iter().flatten().enumerate() {
                let called = entry.get("name").and_then(Value::as_str);
                let twin = ours.and_then(Value::as_array).and_then(|list| match called {
                    Some(called) => list.iter().find(|one| one["name"] == called),
                    None => list.get(at),
                });
                // An entry that nobody wanted is told as a whole, where lists are compared.
                if let Some(twin) = twin {
                    let label = called.map_or_else(|| at.to_string(), str::to_owned);
                    let path = format!("{}[{label}]", below(path, name));
                    walk(fields, rest, &path, Some(twin), entry, out);
                }
            }
        }
    }
}

fn tell(
    fields: &Fields,
    path: &str,
    wanted: Option<&Map<String, Value>>,
    found: &Map<String, Value>,
    out: &mut Vec<Difference>,
) {
    for (name, value) in found {
        let is_guarded = match fields {
            Fields::All => true,
            Fields::These(names) => names.contains(&&**name),
        };
        let is_wanted = wanted.is_some_and(|wanted| wanted.contains_key(name));
        if is_guarded && !is_wanted && !is_nothing(name, value) {
            out.push(Difference { path: below(path, name), wanted: None, found: Some(value.clone()) });
        }
    }
}

/// Whether a value says no more than a field that is not there.
fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || USUAL.contains(&(name, text)),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::install::{Installation, parts};

    /// An object of an installation as a server would show it, with something added.
    fn added(kind: &str, name: &str, pointer: &str, value: Value) -> Vec<String> {
        let objects = parts::objects(&Installation::default()).unwrap();
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let wanted = objects.iter().find(is_it).unwrap();
        let mut found = wanted.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = found.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent} in {wanted}"));
        parent[field] = value;
        additions(wanted, &found).into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn what_somebody_added_in_a_place_that_matters_is_told() {
        let pod = "/spec/template/spec";
        let container = "/spec/template/spec/containers/0";
        let controllers = ("Deployment", "berth-controllers");
        let role = ("ClusterRole", "berth:placement-controller");
        let checks = "ValidatingWebhookConfiguration";
        for ((kind, name), pointer, value, told) in [
            (controllers, format!("{pod}/hostNetwork"), json!(true), "spec.template.spec.hostNetwork"),
            (controllers, format!("{pod}/hostPID"), json!(true), "spec.template.spec.hostPID"),
            (controllers, format!("{pod}/volumes"), json!([{}]), "spec.template.spec.volumes"),
            (controllers, format!("{pod}/initContainers"), json!([{}]), "spec.template.spec.initContainers"),
            (
                controllers,
                format!("{pod}/securityContext/fsGroup"),
                json!(0),
                "spec.template.spec.securityContext.fsGroup",
            ),
            (
                controllers,
                format!("{container}/securityContext/privileged"),
                json!(true),
                "spec.template.spec.containers[berth].securityContext.privileged",
            ),
            (
                controllers,
                format!("{container}/securityContext/capabilities/add"),
                json!(["NET_ADMIN"]),
                "spec.template.spec.containers[berth].securityContext.capabilities.add",
            ),
            (
                controllers,
                format!("{container}/env"),
                json!([{"name": "KUBERNETES_SERVICE_HOST", "value": "elsewhere"}]),
                "spec.template.spec.containers[berth].env",
            ),
            (
                controllers,
                format!("{container}/ports/0/hostPort"),
                json!(8080),
                "spec.template.spec.containers[berth].ports[metrics].hostPort",
            ),
            (
                controllers,
                "/spec/selector/matchLabels/more".to_owned(),
                json!("a"),
                "spec.selector.matchLabels.more",
            ),
            (role, "/aggregationRule".to_owned(), json!({"clusterRoleSelectors": [{}]}), "aggregationRule"),
            (
                ("ClusterRoleBinding", role.1),
                "/subjects/0/apiGroup".to_owned(),
                json!("x"),
                "subjects[berth].apiGroup",
            ),
            (
                ("Service", "berth-webhook"),
                "/spec/selector/more".to_owned(),
                json!("a"),
                "spec.selector.more",
            ),
            (("Service", "berth-webhook"), "/spec/type".to_owned(), json!("LoadBalancer"), "spec.type"),
            (
                (checks, "berth-admission"),
                "/webhooks/0/namespaceSelector".to_owned(),
                json!({"matchLabels": {"a": "b"}}),
                "webhooks[managedclusters.admission.berth.dev].namespaceSelector",
            ),
            (
                ("CustomResourceDefinition", "placements.cluster.open-cluster-management.io"),
                "/spec/conversion/webhook".to_owned(),
                json!({"conversionReviewVersions": ["v1"]}),
                "spec.conversion.webhook",
            ),
        ] {
            assert_eq!(added(kind, name, &pointer, value), [told], "{kind} {name} {pointer}");
        }
    }

    #[test]
    fn what_a_server_fills_in_and_what_harms_nobody_is_not_told() {
        for (kind, name, pointer, value) in [
            ("Deployment", "berth-controllers", "/spec/template/spec/hostNetwork", json!(false)),
            ("Deployment", "berth-controllers", "/spec/template/spec/dnsPolicy", json!("ClusterFirst")),
            ("Deployment", "berth-controllers", "/spec/template/spec/tolerations", json!([{}])),
            ("Deployment", "berth-controllers", "/spec/template/spec/volumes", json!([])),
            ("Service", "berth-webhook", "/spec/type", json!("ClusterIP")),
            ("ValidatingWebhookConfiguration", "berth-admission", "/webhooks/0/objectSelector", json!({})),
        ] {
            assert_eq!(added(kind, name, pointer, value), [""; 0], "{kind} {name} {pointer}");
        }
    }

    #[test]
    fn every_place_is_of_a_kind_that_is_installed() {
        let objects = parts::objects(&Installation::default()).unwrap();
        for kind in PLACES.iter().flat_map(|place| place.kinds) {
            assert!(objects.iter().any(|object| object["kind"] == **kind), "{kind}");
        }
    }
}
