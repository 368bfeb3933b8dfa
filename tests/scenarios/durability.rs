//! The hub's data: it outlives the process, and its backup is of one moment. For the hub alone: etcd is not ours to prove.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use berth_bed::{Bed, or_skip};
use futures::future::join;
use serde_json::{Value, json};

use crate::caller::{Caller, core, map, text};

/// Everything that is stored of some kinds, as a client sees it.
async fn everything(caller: &Caller) -> Value {
    let mut all = json!({});
    for path in [
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/api/v1/secrets",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ] {
        let mut items = caller.get(path).await.ok()["items"].clone();
        // It tells of the authority in the data directory, and that is not in a backup.
        let objects = items.as_array_mut().expect("a list");
        objects.retain(|object| object["metadata"]["name"] != "kube-root-ca.crt");
        all[path] = items;
    }
    all
}

/// Runs `berth` to its end off the runtime's threads and gives back what it printed.
async fn berth(program: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_there_after_a_kill() {
    let Some(mut bed) = or_skip(Bed::hub().await) else { return };
    let (caller, namespace) = (Caller::admin(&bed), bed.namespace("kept").await);
    for number in 0..20 {
        caller.post(&core(&namespace, "configmaps"), &map(&format!("m{number}"), "x")).await.ok();
    }
    caller.delete(&core(&namespace, "configmaps/m7")).await.ok();
    caller.merge(&core(&namespace, "configmaps/m8"), &json!({"data": {"value": "y"}})).await.ok();
    let before = everything(&caller).await;
    let token = json!({"spec": {}});
    let token = caller.post(&core(&namespace, "serviceaccounts/default/token"), &token).await.ok();

    bed.kill();
    bed.start().await.unwrap();
    let caller = Caller::admin(&bed);
    assert_eq!(everything(&caller).await, before);
    caller.get(&core(&namespace, "configmaps/m7")).await.refused(404);
    // Keys live as long as data: tokens that were given out go on working.
    Caller::with_token(&bed, text(&token, "/status/token")).get("/version").await.ok();
    let next = caller.post(&core(&namespace, "configmaps"), &map("next", "")).await.ok();
    let last = before["/api/v1/configmaps"].as_array().unwrap().iter();
    let last = last.map(|object| text(object, "/metadata/resourceVersion").parse::<u64>().unwrap()).max();
    assert!(text(&next, "/metadata/resourceVersion").parse::<u64>().unwrap() > last.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_of_one_moment_and_restores_into_a_new_folder() {
    let Some(bed) = or_skip(Bed::hub().await) else { return };
    let (caller, namespace) = (Caller::admin(&bed), bed.namespace("copied").await);
    let maps = core(&namespace, "configmaps");
    caller.post(&maps, &map("steady", "x")).await.ok();
    let steady = caller.get(&format!("{maps}/steady")).await.ok();
    let folder = tempfile::tempdir().unwrap();
    let (copy, data) = (folder.path().join("hub.backup"), folder.path().join("data"));

    // One writes a, then b = a, over and over: in any one moment b is a, or one behind.
    for name in ["a", "b"] {
        caller.post(&maps, &map(name, "0")).await.ok();
    }
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let writing = async {
        while !done.load(Ordering::Relaxed) || rounds.load(Ordering::Relaxed) < 3 {
            let round = rounds.fetch_add(1, Ordering::Relaxed) + 1;
            for name in ["a", "b"] {
                caller
                    .merge(&format!("{maps}/{name}"), &json!({"data": {"value": round.to_string()}}))
                    .await
                    .ok();
            }
        }
    };
    let kubeconfig = bed.kubeconfig().to_str().unwrap();
    let copying = async {
        let said =
            berth(bed.program(), &["hub", "backup", "--kubeconfig", kubeconfig, copy.to_str().unwrap()])
                .await;
        done.store(true, Ordering::Relaxed);
        said
    };
    let ((), said) = join(writing, copying).await;
    assert!(said.contains("hub.backup"), "{said}");
    assert!(rounds.load(Ordering::Relaxed) >= 3);
    let version = text(&steady, "/metadata/resourceVersion").to_owned();

    berth(bed.program(), &["hub", "restore", "--data", data.to_str().unwrap(), copy.to_str().unwrap()]).await;
    let restored = or_skip(Bed::hub().data(&data).await).expect("the hub that just ran");
    let theirs = Caller::admin(&restored);
    assert_eq!(theirs.get(&format!("{maps}/steady")).await.ok(), steady);
    let value = async |name: &str| -> u64 {
        text(&theirs.get(&format!("{maps}/{name}")).await.ok(), "/data/value").parse().unwrap()
    };
    let (a, b) = (value("a").await, value("b").await);
    assert!(a == b || a == b + 1, "a = {a}, b = {b}: not of one moment");

    // Whoever watched the old hub is told to look anew.
    let mut watch = theirs.watch(&format!("{maps}?resourceVersion={version}")).await;
    let told = watch.next().await;
    assert_eq!((&told["type"], &told["object"]["code"]), (&json!("ERROR"), &json!(410)), "{told}");
    theirs.post(&maps, &map("new", "")).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_quiet_hub_restores_to_the_same_objects() {
    let Some(bed) = or_skip(Bed::hub().await) else { return };
    let (caller, namespace) = (Caller::admin(&bed), bed.namespace("quiet").await);
    for number in 0..10 {
        caller.post(&core(&namespace, "configmaps"), &map(&format!("m{number}"), "x")).await.ok();
    }
    let account = core(&namespace, "serviceaccounts/default");
    caller.until(&account, "appears", |object| object["metadata"]["uid"].is_string()).await;
    let before = everything(&caller).await;
    let folder = tempfile::tempdir().unwrap();
    let (copy, data) = (folder.path().join("hub.backup"), folder.path().join("data"));
    let kubeconfig = bed.kubeconfig().to_str().unwrap();
    berth(bed.program(), &["hub", "backup", "--kubeconfig", kubeconfig, copy.to_str().unwrap()]).await;
    // What comes after the backup is not in it.
    caller.post(&core(&namespace, "configmaps"), &map("late", "")).await.ok();
    berth(bed.program(), &["hub", "restore", "--data", data.to_str().unwrap(), copy.to_str().unwrap()]).await;
    let restored = or_skip(Bed::hub().data(&data).await).expect("the hub that just ran");
    assert_eq!(everything(&Caller::admin(&restored)).await, before);
}
