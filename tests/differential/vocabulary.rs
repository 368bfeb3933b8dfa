//! What scripts talk about: kinds, bodies of them, and what may be wrong with those.

mod cluster;
mod core;
mod custom;
mod spoil;
mod workload;

use serde_json::{Value, json};

use self::cluster::{cluster_role, priority_class, role_binding, storage_class, webhooks};
use self::core::{
    claim, claim_status, config_map, core_event, event, lease, node, node_status, pod, pod_status, secret,
    service_account, volume,
};
use self::custom::{definition, gadget, gadget_definition, widget, widget_definition, widget_status};
use self::workload::{
    daemon_set, deployment, deployment_status, disruption_budget, replica_set, replica_set_status,
    stateful_set,
};
use crate::exchange::{Server, get, post};
use berth_tests::random::Random;

pub(crate) use self::spoil::spoil;

/// A kind that scripts use.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The path up to the version.
    pub(crate) root: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    /// Custom resources are validated by their schema and cannot be patched strategically.
    pub(crate) custom: bool,
    pub(crate) status: bool,
    /// Everything below apiVersion, kind and metadata.
    pub(crate) body: fn(&mut Random) -> Value,
    /// What a status may hold.
    pub(crate) status_body: fn(&mut Random) -> Value,
}

impl Kind {
    /// Whether it has the subresource `scale`.
    pub(crate) fn scales(&self) -> bool {
        matches!(self.kind, "Widget" | "Deployment" | "StatefulSet" | "ReplicaSet")
    }

    /// Whether requests may only try what they would do: something else would go on to write to the object. The real server
    /// says when it serves a definition, the hub when a budget allows disruptions.
    pub(crate) fn only_tried(&self) -> bool {
        matches!(self.kind, "CustomResourceDefinition" | "PodDisruptionBudget")
    }

    /// A selector that leaves out what a script did not make.
    pub(crate) fn own(&self, script: usize) -> String {
        match (self.kind, self.namespaced) {
            // The hub gives every namespace an account and the certificate of its authority.
            ("ServiceAccount", _) => "&fieldSelector=metadata.name%21%3Ddefault".into(),
            ("ConfigMap", _) => "&fieldSelector=metadata.name%21%3Dkube-root-ca.crt".into(),
            (_, true) => String::new(),
            _ => format!("&fieldSelector=metadata.name%3Da-s{script}"),
        }
    }

    pub(crate) fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
        } else {
            format!("{}/{}", self.root, self.plural)
        }
    }
}

macro_rules! kind {
    ($api:literal, $kind:literal, $root:literal, $plural:literal, ns: $ns:literal, custom: $custom:literal, status: $status:literal, $body:expr, $status_body:expr) => {
        Kind {
            api_version: $api,
            kind: $kind,
            root: $root,
            plural: $plural,
            namespaced: $ns,
            custom: $custom,
            status: $status,
            body: $body,
            status_body: $status_body,
        }
    };
}

/// Every kind.
pub(crate) const KINDS: &[Kind] = &[
    kind!("tests.berth.dev/v1", "Widget", "/apis/tests.berth.dev/v1", "widgets", ns: true, custom: true, status: true, widget, widget_status),
    kind!("tests.berth.dev/v1", "Gadget", "/apis/tests.berth.dev/v1", "gadgets", ns: false, custom: true, status: false, gadget, nothing),
    kind!("v1", "ConfigMap", "/api/v1", "configmaps", ns: true, custom: false, status: false, config_map, nothing),
    kind!("v1", "Secret", "/api/v1", "secrets", ns: true, custom: false, status: false, secret, nothing),
    kind!("v1", "Pod", "/api/v1", "pods", ns: true, custom: false, status: true, pod, pod_status),
    kind!("v1", "Node", "/api/v1", "nodes", ns: false, custom: false, status: true, node, node_status),
    kind!("apps/v1", "Deployment", "/apis/apps/v1", "deployments", ns: true, custom: false, status: true, deployment, deployment_status),
    kind!("apps/v1", "StatefulSet", "/apis/apps/v1", "statefulsets", ns: true, custom: false, status: true, stateful_set, nothing),
    kind!("coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1", "leases", ns: true, custom: false, status: false, lease, nothing),
    kind!("rbac.authorization.k8s.io/v1", "ClusterRole", "/apis/rbac.authorization.k8s.io/v1", "clusterroles", ns: false, custom: false, status: false, cluster_role, nothing),
    kind!("scheduling.k8s.io/v1", "PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses", ns: false, custom: false, status: false, priority_class, nothing),
    kind!("storage.k8s.io/v1", "StorageClass", "/apis/storage.k8s.io/v1", "storageclasses", ns: false, custom: false, status: false, storage_class, nothing),
    kind!("v1", "ServiceAccount", "/api/v1", "serviceaccounts", ns: true, custom: false, status: false, service_account, nothing),
    kind!("v1", "PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", ns: true, custom: false, status: true, claim, claim_status),
    kind!("v1", "PersistentVolume", "/api/v1", "persistentvolumes", ns: false, custom: false, status: false, volume, nothing),
    kind!("v1", "Event", "/api/v1", "events", ns: true, custom: false, status: false, core_event, nothing),
    kind!("events.k8s.io/v1", "Event", "/apis/events.k8s.io/v1", "events", ns: true, custom: false, status: false, event, nothing),
    kind!("apps/v1", "ReplicaSet", "/apis/apps/v1", "replicasets", ns: true, custom: false, status: true, replica_set, replica_set_status),
    kind!("apps/v1", "DaemonSet", "/apis/apps/v1", "daemonsets", ns: true, custom: false, status: true, daemon_set, nothing),
    kind!("policy/v1", "PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets", ns: true, custom: false, status: true, disruption_budget, nothing),
    kind!("rbac.authorization.k8s.io/v1", "Role", "/apis/rbac.authorization.k8s.io/v1", "roles", ns: true, custom: false, status: false, cluster_role, nothing),
    kind!("rbac.authorization.k8s.io/v1", "RoleBinding", "/apis/rbac.authorization.k8s.io/v1", "rolebindings", ns: true, custom: false, status: false, role_binding, nothing),
    kind!("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", ns: false, custom: false, status: false, role_binding, nothing),
    kind!("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", ns: false, custom: false, status: false, webhooks, nothing),
    kind!("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", ns: false, custom: false, status: false, webhooks, nothing),
    kind!("apiextensions.k8s.io/v1", "CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", ns: false, custom: false, status: false, definition, nothing),
];

/// Gives a server what scripts take for granted: the two definitions, served.
pub(crate) async fn prepare(server: &Server) {
    for definition in [widget_definition(), gadget_definition()] {
        server.must(&post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)).await;
    }
    for plural in ["widgets", "gadgets"] {
        for _ in 0..200 {
            if server.send(&get(format!("/apis/tests.berth.dev/v1/{plural}"))).await.code == 200 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

pub(crate) fn words(random: &mut Random) -> &'static str {
    *random.pick::<&str>(&["red", "green", "blue", "", "x-y.z", "0"])
}

fn maybe(
    random: &mut Random,
    percent: u64,
    into: &mut Value,
    key: &str,
    value: impl FnOnce(&mut Random) -> Value,
) {
    if random.chance(percent) {
        let value = value(random);
        into[key] = value;
    }
}

fn nothing(_: &mut Random) -> Value {
    json!({})
}
