//! Operators that must do it themselves: they are told, and waited for.

use berth_tests::caller::{core, grouped, text};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    ground::grounds,
    scene::{Scene, no_schedule, taints, with},
    set::Set,
};

/// As much of FoundationDB's definition as its users see of it here.
pub(crate) const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foundationdbclusters.apps.foundationdb.org
spec:
  group: apps.foundationdb.org
  scope: Namespaced
  names: {kind: FoundationDBCluster, listKind: FoundationDBClusterList, plural: foundationdbclusters, singular: foundationdbcluster}
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              processGroupsToRemove: {type: array, items: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// The label by which the operator knows a pod.
const GROUP_ID: &str = "foundationdb.org/fdb-process-group-id";
const VERSION: &str = "apps.foundationdb.org/v1beta2";

/// Where clusters are.
pub(crate) fn clusters(scene: &Scene) -> String {
    grouped(VERSION, &scene.namespace, "foundationdbclusters")
}

/// A cluster of which these process groups are to go already.
pub(crate) async fn cluster(scene: &Scene, name: &str, removed: &[&str]) -> Value {
    let cluster = json!({
        "apiVersion": VERSION, "kind": "FoundationDBCluster", "metadata": {"name": name},
        "spec": {"processGroupsToRemove": removed},
    });
    // Served a moment after its definition is there.
    scene.caller.until(&clusters(scene), "is served", |list| list["items"].is_array()).await;
    scene.caller.post(&clusters(scene), &cluster).await.ok()
}

/// A process group of a cluster, as its operator makes it.
pub(crate) async fn process_group(scene: &Scene, cluster: &Value, pod: &str, id: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod,
            "labels": {"app": "fdb", "foundationdb.org/fdb-cluster-name": cluster["metadata"]["name"], GROUP_ID: id},
            "ownerReferences": [{
                "apiVersion": VERSION, "kind": "FoundationDBCluster", "name": cluster["metadata"]["name"],
                "uid": cluster["metadata"]["uid"], "controller": true,
            }],
        },
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "main", "image": "scenario"}]},
    });
    scene.caller.post(&core(&scene.namespace, "pods"), &object).await.ok();
    let is_ready = |pod: &Value| berth_tests::caller::condition(pod, "Ready")["status"] == "True";
    scene.caller.until(&scene.pod_path(pod), "is ready", is_ready).await;
}

grounds! {
    /// An operator that is told by an annotation of the pod removes it when it sees fit, and not before.
    beside async fn an_operator_is_told_by_an_annotation(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2)).await;
        let told = json!({"key": "example.org/manual-rolling-update", "value": "true"});
        let strategy = json!({"strategy": {"type": "Delegate", "delegate": {"annotatePod": told}}});
        scene.policy("p", with(taints(&[("*", 0)], 0), strategy)).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        let is_told = |pod: &Value| pod["metadata"]["annotations"]["example.org/manual-rolling-update"] == "true";
        scene.caller.until(&scene.pod_path("db-0"), "is told", is_told).await;
        let waits = scene
            .replacement_is("db-0", "waiting for the operator", |last| last["status"]["reason"] == "AwaitsOperator")
            .await;
        assert_eq!(waits["status"]["phase"], "Draining", "{waits}");
        scene.stays("db-0", &before["db-0"]).await;
        scene.caller.delete(&scene.pod_path("db-0")).await.ok();
        scene.is_replaced("db-0", &before["db-0"]).await;
        scene.stays("db-1", &before["db-1"]).await;
    }

    /// FoundationDB's operator, which may not look at nodes, is told by `spec.processGroupsToRemove` which process group is on a
    /// tainted one. It makes another in its place, excludes the old one, and removes it; what stood in the list stays.
    beside async fn foundationdb_is_told_by_its_list(scene: &Scene) {
        scene.caller.apply(DEFINITION).await;
        scene.nodes(&["a", "b", "c", "d"]).await;
        let cluster = cluster(scene, "fdb", &["log-9"]).await;
        for number in 1..=3 {
            process_group(scene, &cluster, &format!("fdb-storage-{number}"), &format!("storage-{number}")).await;
        }
        let list = json!({"list": "spec.processGroupsToRemove", "entryFromLabel": GROUP_ID});
        let spec = json!({
            "selector": {"matchLabels": {"app": "fdb"}},
            "strategy": {"type": "Delegate", "delegate": {"patchOwner": list, "doneWhen": {
                "list": "status.processGroups", "key": "processGroupID", "field": "exclusionTimestamp",
            }}},
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
        let (pod, id) = ("fdb-storage-2", "storage-2");
        let before = scene.uids(&["fdb-storage-1", pod, "fdb-storage-3"]).await;
        scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        let path = format!("{}/fdb", clusters(scene));
        let told = |cluster: &Value| cluster["spec"]["processGroupsToRemove"] == json!(["log-9", id]);
        scene.caller.until(&path, "names it", told).await;
        scene.replacement_is(pod, "waiting for the operator", |last| last["status"]["reason"] == "AwaitsOperator").await;
        scene.stays(pod, &before[pod]).await;

        // The pod dies before its data has left: another one with its name is not its successor.
        let groups = |more: Value| json!({"status": {"processGroups": [with(json!({"processGroupID": id}), more)]}});
        scene.caller.merge(&format!("{path}/status"), &groups(json!({}))).await.ok();
        scene.caller.delete(&scene.pod_path(pod)).await.ok();
        scene.caller.until_gone(&scene.pod_path(pod)).await;
        // What comes later is waited for, so that there was time for it to be taken for done.
        process_group(scene, &cluster, "fdb-storage-4", "storage-4").await;
        let waits = scene.replacement_is(pod, "waiting on", |last| last["status"]["reason"] == "AwaitsOperator").await;
        assert_eq!(waits["status"]["phase"], "Draining", "{waits}");
        let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        scene.caller.merge(&format!("{path}/status"), &groups(json!({"exclusionTimestamp": at}))).await.ok();

        let done = scene.reaches(pod, "Done").await;
        assert_eq!(done["spec"]["target"]["uid"], before[pod].as_str(), "{done}");
        let after = scene.caller.get(&path).await.ok();
        assert!(told(&after), "{after}");
        for other in ["fdb-storage-1", "fdb-storage-3"] {
            scene.stays(other, &before[other]).await;
        }
        assert_eq!(text(&scene.pod("fdb-storage-4").await, "/metadata/labels/app"), "fdb");
    }
}
