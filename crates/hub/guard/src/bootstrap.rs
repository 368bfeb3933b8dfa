//! Bootstrap policy: the roles and bindings every cluster starts with, as far as the hub serves what they speak of.
//!
//! Owns the table. Never writes an object: the hub creates what is missing, and adds missing rules and subjects to
//! what is there unless its owner switched that off by the annotation.

use serde_json::{Value, json};

use crate::policy::RBAC_GROUP;
use crate::shape::{object_at, set};

/// The label every bootstrap object carries.
pub const BOOTSTRAP_LABEL: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
/// The annotation that lets the server add what is missing at every start; `"false"` switches it off.
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const GET: &[&str] = &["get"];
const CORE: &[&str] = &[""];
const EVENT_GROUPS: &[&str] = &["", "events.k8s.io"];
const RBAC: &[&str] = &[RBAC_GROUP];
const AUTHENTICATION: &[&str] = &["authentication.k8s.io"];
const AUTHORIZATION: &[&str] = &["authorization.k8s.io"];
const LEASES: &[&str] = &["coordination.k8s.io"];

/// One rule: on resources or on paths.
enum Line {
    On(&'static [&'static str], &'static [&'static str], &'static [&'static str]),
    Named(&'static [&'static str], &'static [&'static str], &'static [&'static str], &'static [&'static str]),
    Paths(&'static [&'static str], &'static [&'static str]),
}
use Line::{Named, On, Paths};

/// A cluster role: its own rules, the role it is collected into, the roles it collects.
struct Role {
    name: &'static str,
    joins: Option<&'static str>,
    collects: Option<&'static str>,
    rules: &'static [Line],
}

const fn role(name: &'static str, rules: &'static [Line]) -> Role {
    Role { name, joins: None, collects: None, rules }
}

const VIEW: &[Line] = &[
    On(
        READ,
        CORE,
        &["configmaps", "persistentvolumeclaims", "persistentvolumeclaims/status", "pods", "serviceaccounts"],
    ),
    On(READ, CORE, &["bindings", "namespaces/status", "pods/log", "pods/status"]),
    On(READ, CORE, &["namespaces"]),
    On(READ, EVENT_GROUPS, &["events"]),
    On(
        READ,
        &["apps"],
        &[
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    On(READ, &["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
];

const EDIT: &[Line] = &[
    // Reading these is as good as acting with them, so viewers may not.
    On(READ, CORE, &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets"]),
    On(&["impersonate"], CORE, &["serviceaccounts"]),
    On(WRITE, CORE, &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"]),
    On(CREATE, CORE, &["pods/eviction"]),
    On(WRITE, CORE, &["configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts"]),
    On(CREATE, CORE, &["serviceaccounts/token"]),
    On(WRITE, EVENT_GROUPS, &["events"]),
    On(
        WRITE,
        &["apps"],
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    On(WRITE, &["policy"], &["poddisruptionbudgets"]),
    On(READ_WRITE, LEASES, &["leases"]),
];

const NODE: &[Line] = &[
    On(CREATE, AUTHENTICATION, &["tokenreviews"]),
    On(CREATE, AUTHORIZATION, &["localsubjectaccessreviews", "subjectaccessreviews"]),
    On(&["create", "get", "list", "watch"], CORE, &["nodes"]),
    On(&["patch", "update"], CORE, &["nodes/status"]),
    On(&["patch", "update"], CORE, &["nodes"]),
    On(&["create", "patch", "update"], EVENT_GROUPS, &["events"]),
    On(READ, CORE, &["pods"]),
    On(&["create", "delete"], CORE, &["pods"]),
    On(&["patch", "update"], CORE, &["pods/status"]),
    On(CREATE, CORE, &["pods/eviction"]),
    On(READ, CORE, &["configmaps", "secrets"]),
    On(GET, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
    On(&["create", "delete", "get", "patch", "update"], LEASES, &["leases"]),
    On(CREATE, CORE, &["serviceaccounts/token"]),
    On(&["get", "patch", "update"], CORE, &["persistentvolumeclaims/status"]),
    On(GET, CORE, &["serviceaccounts"]),
];

const CONTROLLER_MANAGER: &[Line] = &[
    On(&["create", "patch", "update"], EVENT_GROUPS, &["events"]),
    On(CREATE, LEASES, &["leases"]),
    Named(&["get", "update"], LEASES, &["leases"], &["kube-controller-manager"]),
    On(CREATE, CORE, &["secrets", "serviceaccounts"]),
    On(&["delete"], CORE, &["secrets"]),
    On(GET, CORE, &["configmaps", "namespaces", "secrets", "serviceaccounts"]),
    On(&["update"], CORE, &["secrets", "serviceaccounts"]),
    On(CREATE, AUTHENTICATION, &["tokenreviews"]),
    On(CREATE, AUTHORIZATION, &["subjectaccessreviews"]),
    On(&["list", "watch"], &["*"], &["*"]),
    On(CREATE, CORE, &["serviceaccounts/token"]),
];

const HEALTH: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

const ROLES: &[Role] = &[
    role("cluster-admin", &[On(&["*"], &["*"], &["*"]), Paths(&["*"], &["*"])]),
    role(
        "system:discovery",
        &[Paths(
            GET,
            &[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ],
        )],
    ),
    role(
        "system:monitoring",
        &[Paths(
            GET,
            &[
                "/healthz",
                "/healthz/*",
                "/livez",
                "/livez/*",
                "/metrics",
                "/metrics/slis",
                "/readyz",
                "/readyz/*",
            ],
        )],
    ),
    role(
        "system:basic-user",
        &[
            On(CREATE, AUTHORIZATION, &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
            On(CREATE, AUTHENTICATION, &["selfsubjectreviews"]),
        ],
    ),
    role("system:public-info-viewer", &[Paths(GET, HEALTH)]),
    Role { name: "admin", joins: None, collects: Some("admin"), rules: &[] },
    Role { name: "edit", joins: Some("admin"), collects: Some("edit"), rules: &[] },
    Role { name: "view", joins: Some("edit"), collects: Some("view"), rules: &[] },
    Role {
        name: "system:aggregate-to-admin",
        joins: Some("admin"),
        collects: None,
        rules: &[
            On(CREATE, AUTHORIZATION, &["localsubjectaccessreviews"]),
            On(READ_WRITE, RBAC, &["rolebindings", "roles"]),
        ],
    },
    Role { name: "system:aggregate-to-edit", joins: Some("edit"), collects: None, rules: EDIT },
    Role { name: "system:aggregate-to-view", joins: Some("view"), collects: None, rules: VIEW },
    role("system:node", NODE),
    role(
        "system:auth-delegator",
        &[
            On(CREATE, AUTHENTICATION, &["tokenreviews"]),
            On(CREATE, AUTHORIZATION, &["subjectaccessreviews"]),
        ],
    ),
    role("system:kube-controller-manager", CONTROLLER_MANAGER),
    role(
        "system:service-account-issuer-discovery",
        &[Paths(
            GET,
            &[
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ],
        )],
    ),
];

/// Role, kind of subject, subjects. The node role is bound to nobody, as upstream leaves it.
const BINDINGS: &[(&str, &str, &[&str])] = &[
    ("cluster-admin", "Group", &["system:masters"]),
    ("system:monitoring", "Group", &["system:monitoring"]),
    ("system:discovery", "Group", &["system:authenticated"]),
    ("system:basic-user", "Group", &["system:authenticated"]),
    // Upstream opens it to everybody. Here health needs no grant, and the version is for those who are known.
    ("system:public-info-viewer", "Group", &["system:authenticated"]),
    ("system:kube-controller-manager", "User", &["system:kube-controller-manager"]),
    ("system:node", "User", &[]),
    ("system:service-account-issuer-discovery", "Group", &["system:serviceaccounts"]),
];

/// The ClusterRoles to start with. Aggregated ones come without rules; `aggregate_cluster_roles` fills them.
pub fn cluster_roles() -> Vec<Value> {
    ROLES.iter().map(render_role).collect()
}

/// The ClusterRoleBindings to start with.
pub fn cluster_role_bindings() -> Vec<Value> {
    BINDINGS.iter().map(|(role, kind, subjects)| render_binding(role, kind, subjects)).collect()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {BOOTSTRAP_LABEL.0: BOOTSTRAP_LABEL.1},
        "annotations": {AUTO_UPDATE: "true"},
    })
}

fn render_role(role: &Role) -> Value {
    let mut out = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata(role.name),
    });
    let label = |target: &str| format!("rbac.authorization.k8s.io/aggregate-to-{target}");
    if let Some(target) = role.joins {
        out["metadata"]["labels"][label(target)] = json!("true");
    }
    if let Some(target) = role.collects {
        out["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label(target): "true"}}]});
    }
    let rules: Vec<Value> = role
        .rules
        .iter()
        .map(|line| match line {
            On(verbs, groups, resources) => {
                json!({"verbs": verbs, "apiGroups": groups, "resources": resources})
            }
            Named(verbs, groups, resources, names) => {
                json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
            }
            Paths(verbs, urls) => json!({"verbs": verbs, "nonResourceURLs": urls}),
        })
        .collect();
    out["rules"] = if role.collects.is_some() { Value::Null } else { Value::Array(rules) };
    out
}

fn render_binding(role: &str, kind: &str, subjects: &[&str]) -> Value {
    let mut out = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata(role),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
    });
    if !subjects.is_empty() {
        let list =
            subjects.iter().map(|name| json!({"apiGroup": RBAC_GROUP, "kind": kind, "name": name})).collect();
        out["subjects"] = Value::Array(list);
    }
    out
}

/// What a start must write for one bootstrap object: `None` when `existing` needs nothing.
///
/// Missing objects are created. Existing ones get missing rules and subjects added, never anything removed, unless
/// their annotation says `"false"`. Aggregated roles keep their collected rules.
pub fn reconcile(wanted: &Value, existing: Option<&Value>) -> Option<Value> {
    let Some(existing) = existing else { return Some(wanted.clone()) };
    if existing["metadata"]["annotations"][AUTO_UPDATE].as_str() == Some("false") {
        return None;
    }
    let mut merged = existing.clone();
    for key in ["labels", "annotations"] {
        for (name, value) in wanted["metadata"][key].as_object().into_iter().flatten() {
            // What people set themselves stays theirs.
            object_at(&mut merged, &["metadata", key]).entry(name).or_insert_with(|| value.clone());
        }
    }
    for key in ["rules", "subjects"] {
        let missing: Vec<Value> = wanted[key].as_array().into_iter().flatten().cloned().collect();
        add_missing(&mut merged, key, missing);
    }
    if merged.get("aggregationRule").is_none_or(Value::is_null)
        && let Some(rule) = wanted.get("aggregationRule")
    {
        set(&mut merged, &["aggregationRule"], rule.clone());
    }
    (merged != *existing).then_some(merged)
}

fn add_missing(object: &mut Value, key: &str, wanted: Vec<Value>) {
    use crate::cover::covers;
    use crate::rule::PolicyRule;
    let held: Vec<Value> = object[key].as_array().cloned().unwrap_or_default();
    let rules: Vec<PolicyRule> = held.iter().map(PolicyRule::read).collect();
    let lacking: Vec<Value> = wanted
        .into_iter()
        .filter(|one| match key {
            "rules" => covers(&rules, &[PolicyRule::read(one)]).is_err(),
            _ => !held.contains(one),
        })
        .collect();
    if !lacking.is_empty() {
        set(object, &[key], Value::Array(held.into_iter().chain(lacking).collect()));
    }
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
