//! Nodes that are emptied by one command: `berth drain`.

use std::process::Output;

use berth_bed::{Bed, Companion, or_skip};
use berth_tests::caller::Caller;
use serde_json::{Value, json};

use crate::{
    ground::{Turn, grounds},
    pod::Pod,
    record::Fate,
    scene::{PATIENCE, Scene},
    taint::forever,
};

const DRAIN: &str = "berth.dev/drain";

/// How long a command that is not to succeed may watch, in its words: longer than it takes to be told what is in the way.
const A_WHILE: &str = "12s";

/// What a command said, in words, and whether it did what it was asked.
#[derive(Debug)]
struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

/// `berth drain` with the namespace of the scene's controllers.
fn drain(bed: &Bed, scene: &Scene, nodes: &[&str], flags: &[&str]) -> Said {
    let names = nodes.iter().map(|node| scene.name(node));
    let mut command = or_skip(bed.berth()).expect("the berth that runs");
    command.arg("drain").args(names).args(flags).args(["--namespace", &scene.namespace]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&format!("{}-", scene.namespace), "");
    Said { out: text(stdout), err: text(stderr), code: status.code() }
}

/// The controllers, choosing a leader by a Lease in the scene's namespace.
async fn controllers(turn: &Turn<'_>) -> Option<Companion> {
    let home = format!("--leader-elect-resource-namespace={}", turn.scene.namespace);
    let flags = [
        "--controllers=taint-eviction-controller",
        "--leader-elect=true",
        &home,
        "--metrics-bind=127.0.0.1:0",
    ];
    or_skip(Companion::berth_with(turn.bed, turn.bed.kubeconfig(), "draining", "run", &flags).await)
}

async fn node(caller: &Caller, scene: &Scene, name: &str) -> Value {
    caller.get(&scene.node_path(name)).await.ok()
}

fn is_gone(scene: &Scene, pod: &str) -> bool {
    scene.fate(pod).is_some_and(|Fate { is_gone, .. }| is_gone)
}

grounds! {
    /// One command empties a node: nothing without a controller that does it; then all who have to go have gone when it ends,
    /// nobody else has, and undoing it brings the node back as it was.
    ours turn async fn a_node_is_emptied_by_one_command(turn: &mut Turn<'_>) {
        const PODS: usize = 20;
        let scene = &turn.scene;
        for name in ["n", "other"] {
            scene.node(name).await;
        }
        scene.pods((0..PODS).map(|number| Pod::named(&format!("p{number:02}")).on("n"))).await;
        scene.pods([
            Pod::named("static").on("n").mirror(),
            Pod::named("tolerant").on("n").tolerating([forever(DRAIN)]),
            Pod::named("ended").on("n"),
            Pod::named("elsewhere").on("other"),
        ]).await;
        scene.report("ended", &json!({"phase": "Succeeded"})).await;

        let refused = drain(turn.bed, scene, &["n"], &[]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.starts_with("berth: nothing was changed: no Lease in the namespace"), "{refused:?}");
        let unknown = drain(turn.bed, scene, &["n", "nn"], &["--unconfirmed"]);
        assert!(unknown.err.contains("there is no node nn at"), "{unknown:?}");
        let shown = drain(turn.bed, scene, &["n"], &["--dry-run"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let told = |pod: &str| {
            let line = shown.out.lines().find(|line| line.contains(&format!("/{pod} "))).unwrap_or_default();
            line.split_once(&format!("/{pod} ")).map(|(_, rest)| rest.trim().to_owned()).unwrap_or_default()
        };
        assert_eq!(told("p00"), "go", "{shown:?}");
        assert_eq!(told("static"), "stay: static: its kubelet has it from a file");
        assert_eq!(told("tolerant"), "stay: tolerates the drain for ever");
        assert_eq!(told("ended"), "stay: has run to its end");
        assert!(scene.taints("n").await.is_empty(), "none of these may change anything");

        let Some(_controllers) = controllers(turn).await else { return };
        let done = drain(turn.bed, scene, &["n"], &["--reason", "kernel-update", "--timeout", "1m"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let last = done.out.lines().last().unwrap_or_default();
        assert_eq!(last, format!("n is empty: {PODS} gone; stay: 1 static, 1 ended, 1 tolerating it"), "{done:?}");
        let drained = node(&scene.caller, scene, "n").await;
        assert_eq!(drained["spec"]["unschedulable"], true);
        assert_eq!(drained["spec"]["taints"][0]["value"], "kernel-update", "{drained:#}");
        for number in 0..PODS {
            scene.leaves_within(&format!("p{number:02}"), PATIENCE).await;
        }
        scene.stay(&["static", "tolerant", "ended", "elsewhere"]);

        let undone = drain(turn.bed, scene, &["n", "other"], &["--undo"]);
        assert_eq!(undone.out, "n is not drained any more, and takes pods again\nother is not drained\n", "{undone:?}");
        let back = node(&scene.caller, scene, "n").await;
        assert!(back["spec"]["taints"].is_null() && back["spec"]["unschedulable"].is_null(), "{back:#}");
        scene.pod(Pod::named("newcomer").on("n")).await;
        scene.passes().await;
        scene.stay(&["newcomer"]);
    }

    /// A drain outlives the command that began it: who stops watching is told how to go on; the same command does, with its
    /// time as it was; and what is in the way is shown.
    ours turn async fn a_drain_goes_on_without_its_command(turn: &mut Turn<'_>) {
        let Some(_controllers) = controllers(turn).await else { return };
        let scene = &turn.scene;
        scene.node("n").await;
        scene.caller.merge(&scene.node_path("n"), &json!({"spec": {"unschedulable": true}})).await.ok();
        scene.pods([Pod::named("quick").on("n"), Pod::named("slow").on("n").held()]).await;
        let freeze = |word: &str, flags: &[&str]| {
            let mut command = or_skip(turn.bed.berth()).expect("the berth that runs");
            let said = command.args([word, "evictions", "--namespace", &scene.namespace]).args(flags).output().unwrap();
            assert!(said.status.success(), "{said:?}");
        };
        freeze("freeze", &["--reason", "a storm"]);
        let frozen = drain(turn.bed, scene, &["n"], &["--timeout", A_WHILE]);
        assert_eq!(frozen.code, Some(1), "{frozen:?}");
        assert!(frozen.out.contains("n: 2 to go, 0 leaving, 0 gone\n"), "{frozen:?}");
        assert!(frozen.out.contains("  evictions are frozen: a storm; "), "{frozen:?}");
        assert!(frozen.err.contains("not empty after 12s: n (2 to go, 0 leaving, 0 gone). The drain goes on"), "{frozen:?}");
        assert!(frozen.err.contains("`berth drain n --undo` takes it back"), "{frozen:?}");
        scene.stay(&["quick", "slow"]);
        let since = node(&scene.caller, scene, "n").await["spec"]["taints"].clone();

        freeze("unfreeze", &[]);
        let slow = drain(turn.bed, scene, &["n"], &["--timeout", A_WHILE]);
        assert_eq!(slow.code, Some(1), "{slow:?}");
        assert!(slow.out.starts_with("n is drained since "), "{slow:?}");
        assert!(slow.err.contains("n (0 to go, 1 leaving, "), "{slow:?}");
        assert!(is_gone(scene, "quick"));
        assert_eq!(node(&scene.caller, scene, "n").await["spec"]["taints"], since, "its time stays");

        scene.caller.merge(&scene.pod_path("slow"), &json!({"metadata": {"finalizers": null}})).await.ok();
        let done = drain(turn.bed, scene, &["n"], &["--timeout", "1m"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let undone = drain(turn.bed, scene, &["n"], &["--undo"]);
        assert_eq!(undone.out, "n is not drained any more; it stays cordoned, as it was before\n", "{undone:?}");
        assert_eq!(node(&scene.caller, scene, "n").await["spec"]["unschedulable"], true);
    }
}
