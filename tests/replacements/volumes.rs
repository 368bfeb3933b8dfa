//! Volumes that go with their member: one member at a time, never while anything is not known, never past a budget.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use crate::{
    gate::{Gate, Outcome},
    ground::{Turn, controller, grounds},
    scene::{SCENE, Scene, no_schedule, taints, with},
    set::Set,
};

const PODS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// Volumes that cannot leave their node go with their member.
fn local(more: serde_json::Value) -> serde_json::Value {
    with(taints(&[("*", 0)], 0), with(json!({"strategy": {"volumes": {"policy": "DeleteNodeLocal"}}}), more))
}

grounds! {
    /// Three members are due at once and the budget has room for all of them: they lose their volumes one after the other, each
    /// while all others are ready. The volumes stay behind for whoever wants to look.
    beside async fn volumes_go_one_member_at_a_time(scene: &Scene) {
        scene.hands.order(|orders| orders.reclaim = Some("Delete"));
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        scene.nodes(&["d", "e", "f"]).await;
        let spec = local(json!({
            "replacements": {"maxConcurrentReplacements": 3, "maxFaultDomainsWithTaintedProcessGroups": "100%"},
            "strategy": {"volumes": {"setReclaimPolicy": "Retain"}},
        }));
        scene.policy("p", spec).await;
        let before = scene.uids(&PODS).await;
        let volumes = format!("/api/v1/persistentvolumes?labelSelector={SCENE}%3D{}", scene.namespace);
        let old = scene.caller.get(&volumes).await.ok();
        let old: Vec<_> = old["items"].as_array().unwrap().iter().map(|it| it["metadata"]["name"].clone()).collect();
        assert_eq!(old.len(), 3);
        for pod in PODS {
            scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        }
        for pod in PODS {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&PODS);
        assert_eq!(scene.chronicle.claims_lost().len(), 3);
        for volume in old {
            let path = format!("/api/v1/persistentvolumes/{}", volume.as_str().unwrap());
            let kept = scene.caller.get(&path).await.ok();
            assert_eq!(kept["spec"]["persistentVolumeReclaimPolicy"], "Retain", "{kept}");
        }
    }

    /// While another member is not ready, or the set is being changed, no volume goes and nobody begins.
    beside async fn volumes_stay_while_a_peer_is_not_ready_or_the_set_changes(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        scene.policy("p", local(json!({}))).await;
        let before = scene.uids(&PODS).await;
        scene.hands.order(|orders| _ = orders.unready.insert("db-2".to_owned()));
        scene.caller.until(&scene.set_path("db"), "lacks one", |set| set["status"]["readyReplicas"] == 2).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.held("p", "db-0", "db-2 not ready").await;
        // Another template: its first pod does not become ready, so that this goes on for as long as it is wanted.
        let patch = |value: Option<&str>| json!({"spec": {"template": {"metadata": {"annotations": {"example.org/change": value}}}}});
        scene.caller.merge(&scene.set_path("db"), &patch(Some("1"))).await.ok();
        scene.held("p", "db-0", "being changed").await;
        scene.stays("db-0", &before["db-0"]).await;
        scene.caught_up().await;
        assert!(scene.chronicle.claims_lost().is_empty());
        scene.caller.merge(&scene.set_path("db"), &patch(None)).await.ok();
        scene
            .caller
            .until(&scene.set_path("db"), "is as it was", |set| {
                set["status"]["currentRevision"] == set["status"]["updateRevision"]
                    && set["status"]["observedGeneration"] == set["metadata"]["generation"]
            })
            .await;
        scene.hands.order(|orders| orders.unready.clear());
        scene.is_replaced("db-0", &before["db-0"]).await;
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&PODS);
    }

    /// A disruption budget that lets nobody go is asked before a claim is deleted, and not only when the pod is: a claim that is
    /// gone cannot be brought back.
    beside async fn a_disruption_budget_keeps_volumes_as_well(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        scene.disruptions("db", 0).await;
        scene.policy("p", local(json!({}))).await;
        let (before, claim) = (scene.uids(&PODS).await, scene.claim("db-1").await);
        scene.taint(&scene.home("db-1").await, &[no_schedule("example.org/broken")]).await;
        scene.replacement_is("db-1", "begun", |last| last["status"]["phase"].is_string()).await;
        scene.replacement_is("db-1", "held by the budget", |last| {
            last["status"]["message"].as_str().is_some_and(|message| message.contains("disruption budget"))
        })
        .await;
        scene.stays("db-1", &before["db-1"]).await;
        assert_eq!(scene.claim("db-1").await, claim);
        scene.caught_up().await;
        assert!(scene.chronicle.claims_lost().is_empty());
        scene.disruptions("db", 1).await;
        scene.is_replaced("db-1", &before["db-1"]).await;
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&PODS);
    }

    /// A volume that cannot leave its node and is kept ties its member to that node: nothing begins that could not end.
    beside async fn a_member_whose_volume_is_kept_has_nowhere_to_go(scene: &Scene) {
        scene.nodes(&["a", "b", "c"]).await;
        scene.set(Set::of("db", 2).with_volumes()).await;
        scene.policy("p", taints(&[("*", 0)], 0)).await;
        let before = scene.uids(&["db-0"]).await;
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        scene.held("p", "db-0", "no other node can take the successor").await;
        scene.stays("db-0", &before["db-0"]).await;
        assert!(scene.replacements("db-0").await.is_empty());
    }

    /// A successor that was put where its new volume is not can never run: it is deleted, so that it is made anew, and comes to its
    /// volume. Nothing else is lost by that, and it is the same replacement.
    beside async fn a_successor_that_can_never_run_is_made_anew(scene: &Scene) {
        scene.nodes(&["a", "b"]).await;
        scene.set(Set::of("db", 2).with_volumes()).await;
        scene.nodes(&["c", "d"]).await;
        scene.policy("p", local(json!({}))).await;
        let before = scene.uids(&["db-0", "db-1"]).await;
        // The volume is made on c, which has no pods and the smaller name.
        scene.hands.order(|orders| _ = orders.astray.insert("db-0".to_owned(), scene.name("d")));
        scene.taint(&scene.home("db-0").await, &[no_schedule("example.org/broken")]).await;
        let successor = scene.is_replaced("db-0", &before["db-0"]).await;
        assert_eq!(scene.home("db-0").await, "c");
        scene.caught_up().await;
        let came = scene.chronicle.incarnations("db-0");
        assert_eq!(came.len(), 3, "the first, the one that was stuck, and the last: {came:?}");
        let told = scene.chronicle.now();
        let stuck: Vec<_> = told.iter().filter(|entry| entry.kind == "Pod" && entry.uid() == came[1]).collect();
        let on_d = stuck.iter().any(|entry| entry.object["spec"]["nodeName"] == scene.name("d"));
        let never_ran = stuck.iter().all(|entry| entry.object["status"]["phase"] == "Pending");
        assert!(on_d && never_ran && stuck.last().is_some_and(|entry| entry.is_gone), "{stuck:?}");
        assert_eq!(successor["metadata"]["uid"], came[2].as_str());
        assert_eq!(scene.chronicle.claims_lost().len(), 1, "the claim that the stuck one had is the last one's");
        assert_eq!(scene.replacements("db-0").await.len(), 1);
        scene.stays("db-1", &before["db-1"]).await;
    }

    /// Volumes that cannot be read hold up whoever would lose one, for as long as that lasts, and nobody else.
    turn async fn volumes_stay_while_they_cannot_be_read(turn: &mut Turn<'_>) {
        let scene = &turn.scene;
        let is_dark = Arc::new(AtomicBool::new(true));
        let dark = Arc::clone(&is_dark);
        let way = Gate::open(turn.bed, move |_, path| {
            let is_asked = path.starts_with("/api/v1/persistentvolumes");
            if is_asked && dark.load(Ordering::SeqCst) { Outcome::Refuse(500) } else { Outcome::Pass }
        })
        .await;
        scene.nodes(&["a", "b", "c", "d"]).await;
        scene.set(Set::of("db", 3).with_volumes()).await;
        let Some(_controller) = controller(turn.bed, way.kubeconfig(), "blind").await else { return };
        scene.policy("p", local(json!({}))).await;
        let before = scene.uids(&PODS).await;
        scene.taint(&scene.home("db-1").await, &[no_schedule("example.org/broken")]).await;
        // For this, and for nothing that only takes a moment.
        let held = scene.held("p", "db-1", "whether the volume of data-db-1 can leave the node is not known").await;
        scene.stays("db-1", &before["db-1"]).await;
        assert!(scene.replacements("db-1").await.is_empty(), "{held}");
        scene.caught_up().await;
        assert!(scene.chronicle.claims_lost().is_empty());
        is_dark.store(false, Ordering::SeqCst);
        scene.is_replaced("db-1", &before["db-1"]).await;
        scene.caught_up().await;
        scene.chronicle.claims_went_alone(&PODS);
    }
}
