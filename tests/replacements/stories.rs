//! The examples in `examples/replacements`, applied as they are written but for how long they wait, with what their readers type.

use std::{fs, path::Path};

use berth_tests::{
    caller::{condition, documents, text},
    waiting::until,
};
use http::Method;
use serde_json::{Value, json};

use crate::{
    delegates::{DEFINITION, cluster, clusters, process_group},
    ground::{Turn, grounds},
    scene::{PATIENCE, Scene, no_schedule, now},
};

/// The text of an example.
fn example(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/replacements").join(path))
        .unwrap()
}

/// Puts `more` over `base`, field by field and place by place.
fn over(base: &mut Value, more: &Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(base), Value::Array(more)) => {
            for (base, more) in base.iter_mut().zip(more) {
                over(base, more);
            }
        }
        (base, more) => *base = more.clone(),
    }
}

/// Applies the policy of an example as it is written, but for how long it waits: nobody has that much time here.
async fn impatient(story: &Scene, file: &str, waits: &Value) {
    for mut document in documents(&example(file)) {
        if document["kind"] == "ReplacementPolicy" {
            over(&mut document["spec"], waits);
        }
        story.caller.apply(&document.to_string()).await;
    }
}

/// Waits until a policy is accepted.
async fn accepted(story: &Scene, policy: &str) {
    story.policy_is(policy, "accepted", |policy| condition(policy, "Accepted")["status"] == "True").await;
}

/// What `berth` prints for somebody who may see everything.
fn berth(turn: &Turn<'_>, arguments: &[&str]) -> String {
    let mut command = turn.bed.berth().unwrap();
    let output = command.args(arguments).arg("--kubeconfig").arg(turn.bed.kubeconfig()).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {told}{}", String::from_utf8_lossy(&output.stderr));
    told
}

grounds! {
    /// The first one: on trial a policy says what it would do, enforced it does it, and both can be seen.
    turn async fn on_trial_first_and_then_enforced(turn: &mut Turn<'_>) {
        let Some(_controller) = turn.controller("stories").await else { return };
        // Before there are pods: the first node would get them all.
        let story = Scene::within(turn.bed, "cache".to_owned()).await;
        story.nodes(&["a", "b", "c", "d"]).await;
        for file in ["dry-run/members.yaml", "dry-run/policy.yaml"] {
            story.caller.apply(&example(file)).await;
        }
        accepted(&story, "session").await;
        story.set_is_ready("session").await;
        let before = story.uids(&["session-0", "session-1", "session-2"]).await;
        story.taint(&story.home("session-1").await, &[no_schedule("example.org/maintenance")]).await;
        story.held("session", "session-1", "on trial (mode DryRun)").await;
        let shown = berth(turn, &["get", "replacements", "--namespace", "cache"]);
        let line = shown.lines().find(|line| line.contains("session-1")).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains("Queued") && line.contains("taint example.org/maintenance:NoSchedule"), "{shown}");
        let told = berth(turn, &["explain", "replacement", "cache/session-1"]);
        assert!(told.contains("It is due, and held up: would begin now, but the policy is on trial"), "{told}");
        assert!(told.contains("by replacements.taintReplacementOptions[0]"), "{told}");
        story.stays("session-1", &before["session-1"]).await;

        let patch = json!({"spec": {"mode": "Enforce", "strategy": {"ready": {"minReadySeconds": 0}}}});
        story.caller.merge(&story.policy_path("session"), &patch).await.ok();
        story.is_replaced("session-1", &before["session-1"]).await;
        let shown = berth(turn, &["get", "replacements", "--namespace", "cache"]);
        assert!(shown.lines().any(|line| line.contains("session-1") && line.contains("Done")), "{shown}");
        let told = berth(turn, &["explain", "replacement", "cache/session-1"]);
        assert!(told.contains("It has been replaced: the successor is ready."), "{told}");
        for pod in ["session-0", "session-2"] {
            story.stays(pod, &before[pod]).await;
        }
        story.clear().await;
    }

    /// A database on local volumes: it is told, it says that its data is elsewhere, and only then its member loses its volume and
    /// goes. A node that comes back loses nobody.
    turn async fn a_database_on_local_volumes_goes_data_first(turn: &mut Turn<'_>) {
        let Some(_controller) = turn.controller("volumes").await else { return };
        let story = Scene::within(turn.bed, "store".to_owned()).await;
        story.nodes(&["a", "b", "c", "d"]).await;
        story.caller.apply(&example("local-volumes/members.yaml")).await;
        let quick = json!({
            "triggers": {"taints": [{"durationSeconds": 1}]},
            "strategy": {"ready": {"minReadySeconds": 1}}, "budget": {"cooldownSeconds": 0},
        });
        impatient(&story, "local-volumes/policy.yaml", &quick).await;
        accepted(&story, "db").await;
        story.set_is_ready("db").await;
        let pods = ["db-0", "db-1", "db-2"];
        let (before, claim) = (story.uids(&pods).await, story.claim("db-1").await);
        let reboot = no_schedule("example.org/reboot");
        story.taint(&story.home("db-0").await, &[reboot]).await;
        story.taint(&story.home("db-1").await, &[no_schedule("example.org/decommission")]).await;
        let told = |pod: &Value| pod["metadata"]["annotations"]["berth.dev/replacing"] == "true";
        story.caller.until(&story.pod_path("db-1"), "is told", told).await;
        story.replacement_is("db-1", "at its gate", |last| last["status"]["reason"] == "GateShut").await;
        story.stays("db-1", &before["db-1"]).await;
        assert_eq!(story.claim("db-1").await, claim);

        // The database has copied what is on the volume, and says so of this pod.
        let condition = json!({"type": "example.org/Replicated", "status": "True", "lastTransitionTime": now()});
        let patch = json!({"metadata": {"uid": before["db-1"]}, "status": {"conditions": [condition]}});
        let headers = [("content-type", "application/strategic-merge-patch+json")];
        let path = format!("{}/status", story.pod_path("db-1"));
        story.caller.send(Method::PATCH, &path, &headers, Some(patch.to_string())).await.ok();
        let successor = story.is_replaced("db-1", &before["db-1"]).await;
        assert_ne!(story.claim("db-1").await, claim);
        assert_ne!(text(&successor, "/spec/nodeName"), "", "{successor}");
        let shown = berth(turn, &["get", "replacements", "--namespace", "store"]);
        assert!(shown.lines().any(|line| line.contains("db-1") && line.contains("Done")), "{shown}");
        for pod in ["db-0", "db-2"] {
            story.stays(pod, &before[pod]).await;
        }
        story.caught_up().await;
        story.chronicle.claims_went_alone(&pods);
        assert_eq!(story.chronicle.claims_lost().len(), 1);
        story.clear().await;
    }

    /// A database whose operator does it itself: it is told by its list, excludes the process group, makes another and removes the
    /// pod; and whoever has the rights of the example may tell it.
    turn async fn an_operator_is_told_and_does_it_itself(turn: &mut Turn<'_>) {
        let Some(_controller) = turn.controller("operator").await else { return };
        let story = Scene::within(turn.bed, "fdb".to_owned()).await;
        story.caller.apply(DEFINITION).await;
        story.nodes(&["a", "b", "c", "d"]).await;
        let quick = json!({
            "replacements": {
                "taintReplacementOptions": [{}, {"durationInSeconds": 1}], "taintReplacementTimeSeconds": 0,
            },
            "strategy": {"ready": {"minReadySeconds": 1}},
        });
        impatient(&story, "operator/policy.yaml", &quick).await;
        story.caller.apply(&example("operator/rights.yaml")).await;
        accepted(&story, "sample").await;
        for verb in ["get", "patch"] {
            let attributes = json!({
                "namespace": "fdb", "verb": verb, "group": "apps.foundationdb.org", "resource": "foundationdbclusters",
            });
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "system:serviceaccount:berth-system:berth", "resourceAttributes": attributes},
            });
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            // What is granted counts a moment later.
            until(&format!("the right to {verb} clusters"), PATIENCE, async || {
                let answer = story.caller.post(path, &review).await.ok();
                if answer["status"]["allowed"] == true { Ok(()) } else { Err(answer.to_string()) }
            })
            .await;
        }
        let cluster = cluster(&story, "sample", &[]).await;
        let pods = ["sample-storage-1", "sample-storage-2", "sample-storage-3"];
        for (number, pod) in (1..).zip(pods) {
            process_group(&story, &cluster, pod, &format!("storage-{number}")).await;
        }
        story.policy_is("sample", "with all members", |policy| policy["status"]["counts"]["matched"] == 3).await;
        let before = story.uids(&pods).await;
        let (pod, id) = (pods[1], "storage-2");
        story.taint(&story.home(pod).await, &[no_schedule("example.org/disconnected")]).await;
        let path = format!("{}/sample", clusters(&story));
        let named = |cluster: &Value| cluster["spec"]["processGroupsToRemove"] == json!([id]);
        story.caller.until(&path, "names it", named).await;
        story.replacement_is(pod, "waiting for the operator", |last| last["status"]["reason"] == "AwaitsOperator").await;
        story.stays(pod, &before[pod]).await;

        // The operator's part, as it does it.
        process_group(&story, &cluster, "sample-storage-4", "storage-4").await;
        let excluded = json!({"status": {"processGroups": [{"processGroupID": id, "exclusionTimestamp": now()}]}});
        story.caller.merge(&format!("{path}/status"), &excluded).await.ok();
        story.caller.delete(&story.pod_path(pod)).await.ok();
        let done = story.reaches(pod, "Done").await;
        assert_eq!(done["spec"]["target"]["uid"], before[pod].as_str(), "{done}");
        for other in [pods[0], pods[2]] {
            story.stays(other, &before[other]).await;
        }
        story.caller.delete(&clusters(&story)).await.ok();
        story.clear().await;
    }
}
