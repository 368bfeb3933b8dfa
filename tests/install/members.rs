//! A member of a stateful workload, through everything that the replacement-controller may do.
//!
//! Kubernetes' own controllers make its pods and bind its claims, from here on only: those of other scenarios are made by hand.
//! The scheduler and the kubelets are those of the scenarios about replacements.

use berth_bed::{Companion, tool};
use berth_tests::caller::{core, grouped, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    ground::Ground,
    proof::owners,
    scene::{Scene, no_schedule, taints, with},
    set::Set,
};

const CONTROLLERS: &str = "--controllers=statefulset-controller,persistentvolume-binder-controller,\
                           persistentvolumeclaim-protection-controller";

fn manager(ground: &Ground) -> Companion {
    let kubeconfig = format!("--kubeconfig={}", ground.bed.kubeconfig().display());
    let arguments = [&*kubeconfig, CONTROLLERS, "--leader-elect=false", "--secure-port=0"];
    let program = tool("kube-controller-manager").unwrap();
    Companion::launch(&ground.bed, "workloads", program, arguments.map(str::to_owned).into()).unwrap()
}

/// A replacement that was over the day before yesterday: nobody needs it once there is another.
async fn history(scene: &Scene) -> String {
    let works = grouped("berth.dev/v1alpha1", &scene.namespace, "replacements");
    let work = json!({
        "apiVersion": "berth.dev/v1alpha1", "kind": "Replacement", "metadata": {"name": "p-before"},
        "spec": {"policy": "p", "target": {"name": "db-0", "uid": "another"}},
    });
    scene.caller.post(&works, &work).await.ok();
    let path = format!("{works}/p-before");
    let then = (Timestamp::now() - SignedDuration::from_hours(48)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = json!({"status": {"phase": "Done", "startedAt": then, "endedAt": then}});
    scene.caller.merge(&format!("{path}/status"), &status).await.ok();
    path
}

/// Pods of all other kinds of workloads, on a node with the same trouble, under a policy that is on trial.
async fn company(ground: &Ground, scene: &Scene) {
    scene.nodes(&["e"]).await;
    for (kind, reference) in owners(ground, &scene.namespace).await {
        if kind == "statefulset" {
            continue;
        }
        let pod = json!({
            "metadata": {"name": kind, "labels": {"app": "owned"}, "ownerReferences": [reference]},
            "spec": {"nodeName": scene.name("e"), "containers": [{"name": "c", "image": "i"}]},
        });
        scene.caller.post(&core(&scene.namespace, "pods"), &pod).await.ok();
    }
    scene.taint("e", &[no_schedule("example.org/broken")]).await;
    let spec = json!({"selector": {"matchLabels": {"app": "owned"}}, "mode": "DryRun"});
    scene.policy("trial", with(taints(&[("*", 0)], 0), spec)).await;
}

/// Told that it is to go, it loses its volume and goes; its successor is put where it can never run, and is made anew.
pub(crate) async fn replacements(ground: &Ground) {
    let _manager = manager(ground);
    let scene = Scene::new(&ground.bed).await;
    scene.hands.order(|orders| orders.reclaim = Some("Delete"));
    scene.nodes(&["a", "b"]).await;
    scene.set(Set::of("db", 2).with_volumes()).await;
    scene.nodes(&["c", "d"]).await;
    company(ground, &scene).await;
    let past = history(&scene).await;
    let (uid, claim) = (scene.uid("db-0").await, scene.claim("db-0").await);
    let spec = json!({
        "strategy": {"volumes": {"policy": "DeleteNodeLocal", "setReclaimPolicy": "Retain"}},
        "gates": [{"name": "drained", "annotation": {"key": "example.org/drained", "value": "yes"}}],
    });
    scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
    scene.hands.order(|orders| _ = orders.astray.insert("db-0".to_owned(), scene.name("d")));
    scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
    let is_told = |pod: &Value| pod["metadata"]["annotations"]["berth.dev/replacing"] == "true";
    scene.caller.until(&scene.pod_path("db-0"), "is told", is_told).await;
    scene.caller.until_gone(&past).await;
    scene.annotate("db-0", "example.org/drained", Some("yes")).await;
    let successor = scene.is_replaced("db-0", &uid).await;
    assert_eq!(text(&successor, "/spec/nodeName"), scene.name("c"));
    let volume = ground.caller.get(&format!("/api/v1/persistentvolumes/v-{claim}")).await.ok();
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain", "{volume}");
    scene.clear().await;
}
