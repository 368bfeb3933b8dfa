//! What is wrong with an object of a built-in kind, in Kubernetes' words.
//!
//! Owns the rules people meet: names, required fields, duplicates, values out of range, what may not change. Objects come
//! conformed and defaulted. Definitions of custom resources have their own rules in [`berth_schema`], and whether something that
//! is referred to exists is asked by the pipeline. Never changes an object.

mod access;
mod config;
mod container;
mod event;
mod place;
mod pod;
mod selector;
mod service;
mod volume;
mod warning;
mod webhook;
mod workload;

use berth_schema::{
    FieldPath, MetadataRules, NameRule, Problem, names, validate_metadata, validate_metadata_update,
};
use serde_json::Value;

use crate::registry::Builtin;
use place::{At, Found};
pub use warning::{create_warnings, update_warnings};

/// The problems of a new object. Its name is generated and its namespace filled in by now.
pub fn create(kind: &Builtin, object: &Value) -> Vec<Problem> {
    let mut found = Found::default();
    let root = At::root(object);
    if checks_metadata(kind) {
        found.extend(metadata(kind, object));
    }
    specific(kind, &root, true, &mut found);
    if kind.kind == "Pod" {
        pod::pod_create(&root, &mut found);
    }
    // Whatever the kind let pass is held to the rules that every object has.
    if found.0.is_empty() {
        found.extend(validate_metadata(object, &MetadataRules::new(kind.namespaced, NameRule::PathSegment)));
    }
    found.0
}

/// The problems of an object that replaces another, itself or through a subresource. What every object is held to comes
/// before, by the caller. Some rules are asked twice, in places where upstream does so and names the problem twice.
pub fn update(kind: &Builtin, subresource: Option<&str>, new: &Value, old: &Value) -> Vec<Problem> {
    match subresource {
        Some(subresource) => update_subresource(kind, subresource, new, old),
        None => update_whole(kind, new, old),
    }
}

fn update_whole(kind: &Builtin, new: &Value, old: &Value) -> Vec<Problem> {
    let mut found = Found::default();
    let (at, before) = (At::root(new), At::root(old));
    let whole = |found: &mut Found| {
        found.extend(metadata(kind, new));
        specific(kind, &at, false, found);
    };
    match kind.kind {
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {
            whole(&mut found);
            found.extend(metadata_update(kind, new, old));
            if kind.kind.ends_with("Binding") {
                access::binding_update(&at, &before, &mut found);
            }
        }
        "ConfigMap" => {
            found.extend(metadata_update(kind, new, old));
            config::config_map_update(&at, &before, &mut found);
            whole(&mut found);
        }
        "Secret" => {
            found.extend(metadata_update(kind, new, old));
            config::secret_update(&at, &before, &mut found);
            whole(&mut found);
        }
        "Pod" => {
            found.extend(metadata_update(kind, new, old));
            whole(&mut found);
            pod::pod_update(&at, &before, &mut found);
        }
        "Node" => {
            whole(&mut found);
            found.extend(metadata_update(kind, new, old));
            config::node_update(&at, &before, &mut found);
        }
        "Namespace" => {
            whole(&mut found);
            found.extend(metadata_update(kind, new, old));
        }
        "ServiceAccount" => {
            found.extend(metadata_update(kind, new, old));
            whole(&mut found);
        }
        "PersistentVolume" => {
            whole(&mut found);
            whole(&mut found);
            volume::persistent_volume_update(&at, &before, &mut found);
        }
        "PersistentVolumeClaim" => {
            found.extend(metadata_update(kind, new, old));
            whole(&mut found);
            volume::claim_update(&at, &before, &mut found);
        }
        "ControllerRevision" => {
            found.extend(metadata_update(kind, new, old));
            whole(&mut found);
            workload::controller_revision_update(&at, &before, &mut found);
        }
        "PriorityClass" => {
            found.extend(metadata_update(kind, new, old));
            config::priority_class_update(&at, &before, &mut found);
        }
        "StorageClass" => {
            whole(&mut found);
            found.extend(metadata_update(kind, new, old));
            volume::storage_class_update(&at, &before, &mut found);
        }
        "Deployment" | "ReplicaSet" => {
            found.extend(metadata_update(kind, new, old));
            specific(kind, &at, false, &mut found);
            workload::selector_update(&at, &before, &mut found);
        }
        "DaemonSet" => {
            found.extend(metadata_update(kind, new, old));
            workload::selector_update(&at, &before, &mut found);
            specific(kind, &at, false, &mut found);
        }
        "StatefulSet" => {
            found.extend(metadata_update(kind, new, old));
            specific(kind, &at, false, &mut found);
            workload::stateful_set_update(&at, &before, &mut found);
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => whole(&mut found),
        "PodDisruptionBudget" => specific(kind, &at, false, &mut found),
        "Event" => {
            specific(kind, &at, false, &mut found);
            if !kind.group.is_empty() {
                found.extend(metadata_update(kind, new, old));
                event::event_update(&at, &before, &mut found);
            }
        }
        _ => {
            found.extend(metadata_update(kind, new, old));
            specific(kind, &at, false, &mut found);
        }
    }
    found.0
}

fn update_subresource(kind: &Builtin, subresource: &str, new: &Value, old: &Value) -> Vec<Problem> {
    let mut found = Found::default();
    let at = At::root(new);
    if kind.kind == "PodDisruptionBudget" {
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            found.not_negative(&at.get("status").get(field));
        }
        return found.0;
    }
    if kind.kind != "StatefulSet" {
        found.extend(metadata_update(kind, new, old));
    }
    match (kind.kind, subresource) {
        ("Deployment", "status") => {
            workload::replicas_status(
                &at,
                &["updatedReplicas", "readyReplicas", "availableReplicas"],
                &mut found,
            );
        }
        ("ReplicaSet", "status") => {
            workload::replicas_status(
                &at,
                &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
                &mut found,
            );
        }
        ("StatefulSet", "status") => {
            workload::replicas_status(
                &at,
                &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
                &mut found,
            );
            found.extend(metadata_update(kind, new, old));
        }
        ("Namespace", "finalize") => config::namespace(&at, &mut found),
        ("Node", "status") => config::node_update(&at, &At::root(old), &mut found),
        _ => {}
    }
    found.0
}

/// Whether the kind looks at metadata first. Disruption budgets are only held to the rules every object has, and events have
/// an order of their own.
fn checks_metadata(kind: &Builtin) -> bool {
    !matches!(kind.kind, "PodDisruptionBudget" | "Event")
}

/// Whether finalizers are held to the stricter rule of Kubernetes' own kinds: those of the API machinery and of its
/// extensions are not.
fn strict_finalizers(kind: &Builtin) -> bool {
    !matches!(kind.group, "admissionregistration.k8s.io" | "apiextensions.k8s.io" | "coordination.k8s.io")
}

fn metadata(kind: &Builtin, object: &Value) -> Vec<Problem> {
    let mut problems = validate_metadata(object, &MetadataRules::new(kind.namespaced, name_rule(kind)));
    if strict_finalizers(kind) {
        problems.extend(finalizers(object));
    }
    problems
}

fn metadata_update(kind: &Builtin, new: &Value, old: &Value) -> Vec<Problem> {
    let mut problems = validate_metadata_update(new, old);
    if strict_finalizers(kind) {
        problems.extend(finalizers(new));
    }
    problems
}

/// Finalizers that are neither the system's nor say whose they are.
fn finalizers(object: &Value) -> Vec<Problem> {
    let mut found = Found::default();
    for finalizer in At::root(object).get("metadata").get("finalizers").items() {
        finalizer_name(&finalizer, &mut found);
    }
    found.0
}

fn finalizer_name(finalizer: &At<'_>, found: &mut Found) {
    let name = finalizer.text();
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        found.invalid_text(
            finalizer,
            name,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

/// What names of a kind look like.
pub fn name_rule(kind: &Builtin) -> NameRule {
    match kind.kind {
        "Namespace" | "Service" | "StatefulSet" => NameRule::DnsLabel,
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" | "PodDisruptionBudget" => {
            NameRule::PathSegment
        }
        _ => NameRule::DnsSubdomain,
    }
}

fn specific(kind: &Builtin, object: &At<'_>, new: bool, found: &mut Found) {
    match kind.kind {
        "ClusterRole" | "Role" => access::role(object, kind.namespaced, found),
        "ClusterRoleBinding" | "RoleBinding" => access::binding(object, kind.namespaced, found),
        "ConfigMap" => config::config_map(object, found),
        "ControllerRevision" => workload::controller_revision(object, new, found),
        "DaemonSet" => workload::daemon_set(object, found),
        "Deployment" => workload::deployment(object, found),
        "Event" => event::event(kind, object, new, found),
        "Job" => workload::job(object, found),
        "Lease" => config::lease(object, found),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            webhook::configuration(object, found);
        }
        "Namespace" => config::namespace(object, found),
        "Node" => config::node(object, found),
        "PersistentVolume" => volume::persistent_volume(object, found),
        "PersistentVolumeClaim" => volume::claim_spec(&object.get("spec"), found),
        "Pod" => pod::pod(object, found),
        "PodDisruptionBudget" => workload::disruption_budget(object, found),
        "PriorityClass" => config::priority_class(object, found),
        "ReplicaSet" => workload::replica_set(object, found),
        "Secret" => config::secret(object, found),
        "Service" => service::service(object, found),
        "StatefulSet" => workload::stateful_set(object, new, found),
        "StorageClass" => volume::storage_class(object, found),
        _ => {}
    }
}

/// The labels of metadata within an object. Upstream's paths leave out `metadata`, and so do these.
fn metadata_labels(metadata: &At<'_>, owner: &FieldPath, found: &mut Found) {
    found.labels(&At { value: metadata.get("labels").value, path: owner.field("labels") });
    let annotations = At { value: metadata.get("annotations").value, path: owner.field("annotations") };
    for (key, _) in annotations.entries() {
        for sentence in names::label_key(&key.to_lowercase()) {
            found.invalid_text(&annotations, key, &sentence);
        }
    }
}

#[cfg(test)]
mod tests;
