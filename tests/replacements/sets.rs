//! The little of Kubernetes' StatefulSet controller and volume binder that scenarios need, for the hub, which has neither.
//!
//! Owns making the pods of a set and their claims by ordinal, each when those before it are ready unless the set says
//! otherwise, telling in its status how it stands, and binding a claim to the volume that was made for it. It never deletes
//! anything: a change of the template waits for its pods to go, as with `OnDelete`, and a set never shrinks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use http::Method;
use serde_json::{Value, json};

use crate::hands::{Sight, Tools, is_leaving, is_ready, name, uid};

/// Does what is missing.
pub(crate) async fn tend(tools: &Tools, sight: &Sight) {
    for volume in &sight.volumes {
        bind(tools, sight, volume).await;
    }
    for set in sight.sets.iter().filter(|set| !is_leaving(set)) {
        keep(tools, sight, set).await;
    }
}

/// A claim and the volume that names it are told of one another.
async fn bind(tools: &Tools, sight: &Sight, volume: &Value) {
    let wanted = &volume["spec"]["claimRef"]["uid"];
    let unbound =
        |claim: &&Value| *wanted == uid(claim) && claim["status"]["phase"] != "Bound" && !is_leaving(claim);
    let Some(claim) = sight.claims.iter().find(unbound) else { return };
    let path = tools.path(&format!("persistentvolumeclaims/{}", name(claim)));
    tools.write(Method::PATCH, &path, &json!({"spec": {"volumeName": name(volume)}})).await;
    let capacity = &volume["spec"]["capacity"];
    let status = json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": capacity});
    tools.write(Method::PATCH, &format!("{path}/status"), &json!({"status": status})).await;
    let path = format!("/api/v1/persistentvolumes/{}/status", name(volume));
    tools.write(Method::PATCH, &path, &json!({"status": {"phase": "Bound"}})).await;
}

async fn keep(tools: &Tools, sight: &Sight, set: &Value) {
    let replicas = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let is_ordered = set["spec"]["podManagementPolicy"] != "Parallel";
    let revision = revision(set);
    let is_ours = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == uid(set);
    let pods: Vec<&Value> = sight.pods.iter().filter(is_ours).collect();
    for ordinal in 0..replicas {
        let pod = format!("{}-{ordinal}", name(set));
        let there = pods.iter().find(|there| name(there) == pod);
        let waits = there.is_none_or(|there| there["spec"]["nodeName"].is_null());
        if waits && claims(tools, sight, set, &pod).await && there.is_none() {
            tools.write(Method::POST, &tools.path("pods"), &member(set, &pod, ordinal, &revision)).await;
        }
        if is_ordered && !there.is_some_and(|there| is_ready(there)) {
            break;
        }
    }
    tell(tools, set, &pods, &revision).await;
}

/// Makes the claims of a member that are missing; whether all are there to stay.
async fn claims(tools: &Tools, sight: &Sight, set: &Value, pod: &str) -> bool {
    let mut are_there = true;
    for template in set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let claim = format!("{}-{pod}", name(template));
        if let Some(there) = sight.claims.iter().find(|there| name(there) == claim) {
            are_there &= !is_leaving(there);
            continue;
        }
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "labels": set["spec"]["selector"]["matchLabels"]},
            "spec": template["spec"],
        });
        let made = tools.write(Method::POST, &tools.path("persistentvolumeclaims"), &claim).await;
        are_there &= made.is_some();
    }
    are_there
}

/// A member as the set describes it.
fn member(set: &Value, pod: &str, ordinal: u64, revision: &str) -> Value {
    let mut object = set["spec"]["template"].clone();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Pod");
    object["metadata"]["name"] = json!(pod);
    object["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
    object["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod);
    object["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": name(set), "uid": uid(set),
        "controller": true, "blockOwnerDeletion": true,
    }]);
    object["spec"]["hostname"] = json!(pod);
    object["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
    let templates = set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    let volumes: Vec<Value> = templates
        .map(|template| {
            let claim = format!("{}-{pod}", name(template));
            json!({"name": name(template), "persistentVolumeClaim": {"claimName": claim}})
        })
        .collect();
    object["spec"]["volumes"] = json!(volumes);
    object
}

/// What a template is called: another one, another name.
fn revision(set: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    set["spec"]["template"].to_string().hash(&mut hasher);
    format!("{}-{:x}", name(set), hasher.finish() & 0xffff_ffff)
}

/// How the set stands.
async fn tell(tools: &Tools, set: &Value, pods: &[&Value], revision: &str) {
    let is_new = |pod: &&&Value| pod["metadata"]["labels"]["controller-revision-hash"] == revision;
    let (ready, updated) =
        (pods.iter().filter(|pod| is_ready(pod)).count(), pods.iter().filter(is_new).count());
    let before = set["status"]["currentRevision"].as_str();
    let current = if updated == pods.len() { revision } else { before.unwrap_or(revision) };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "currentRevision": current, "updateRevision": revision,
        "updatedReplicas": updated, "currentReplicas": if current == revision { updated } else { pods.len() - updated },
    });
    // A number that is none is left out of what is stored.
    let is_told = |(key, value): (&String, &Value)| {
        set["status"][key] == *value || (set["status"][key].is_null() && *value == 0)
    };
    let told = status.as_object().expect("a status").iter().all(is_told);
    if !told {
        let path = format!("/apis/apps/v1/namespaces/{}/statefulsets/{}/status", tools.namespace, name(set));
        tools.write(Method::PATCH, &path, &json!({"status": status})).await;
    }
}
