//! Where it gets narrow: names, numbers, haste, and neighbours in trouble.

use berth_tests::caller::text;
use futures::future::join_all;
use serde_json::json;

use crate::{
    cluster::Cluster,
    ground::grounds,
    handle::{Fleet, GROUP},
    slices::LABEL,
};

grounds! {
    /// Asked for none, a placement has none.
    calm async fn none_are_selected_when_none_are_asked_for(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "numberOfClusters: 2").await;
        fleet.holds("p", 2, 1).await;
        fleet.edit("p", "numberOfClusters: 0").await;
        fleet.holds("p", 0, 1).await;
        fleet.says("p", "PlacementSatisfied", "False", "NoManagedClusterMatched").await;
    }

    /// A name too long for the label that decisions carry is a misconfiguration that is told.
    /// Upstream: defects "12".
    calm async fn a_name_that_no_label_can_hold_is_told(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        let name = "p".repeat(64);
        let answer = fleet.try_place(&name, &json!({})).await;
        if answer.code == 201 {
            let said = fleet.says(&name, "PlacementMisconfigured", "True", "Misconfigured").await;
            assert!(text(&said, "/message").contains("63"), "{said}");
        } else {
            answer.refused(422);
        }
        // One that just fits works.
        let name = "p".repeat(63);
        fleet.place(&name, "{}").await;
        fleet.selects(&name, &["blue1"]).await;
    }

    /// Placements whose names look like each other's slices do not take them for theirs.
    calm async fn names_like_those_of_slices_are_kept_apart(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p-decision-1", "numberOfClusters: 1").await;
        fleet.place("p", "{}").await;
        fleet.holds("p-decision-1", 1, 1).await;
        fleet.holds("p", 2, 1).await;
        fleet.caller.delete(&fleet.placement_path("p")).await.ok();
        fleet.caller.until_gone(&fleet.decision_path("p", 1)).await;
        fleet.holds("p-decision-1", 1, 1).await;
    }

    /// A group of more than a hundred clusters takes several slices, with one number of the group in all of them.
    calm async fn a_large_group_takes_several_slices(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        let add = |number: usize| {
            let cluster = Cluster::named(&format!("c{number:03}")).of("blue");
            fleet.add(if number < 120 { cluster.label("tier", "first") } else { cluster })
        };
        join_all((0..150).map(add)).await;
        fleet.place("p", "
            decisionStrategy:
              groupStrategy:
                decisionGroups: [{groupName: first, groupClusterSelector: {labelSelector: {matchLabels: {tier: first}}}}]
        ").await;
        let slices = fleet.holds("p", 150, 3).await;
        fleet.groups("p", &[("first", 120), ("", 30)]).await;
        let index = format!("{LABEL}/decision-group-index");
        let indexes: Vec<_> = slices.0.iter().map(|slice| slice["metadata"]["labels"][&index].clone()).collect();
        assert_eq!(indexes, ["0", "0", "1"]);
    }

    /// Whatever happens in haste, it ends as the objects say.
    calm async fn haste_ends_in_what_the_objects_say(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 4).await;
        fleet.place("p", "{}").await;
        for round in 0..10 {
            let label = |set: Option<String>| json!({"metadata": {"labels": {format!("{LABEL}/clusterset"): set}}});
            fleet.change("blue1", &label(None)).await;
            fleet.edit("p", &format!("numberOfClusters: {}", 1 + round % 3)).await;
            fleet.change("blue1", &label(Some(fleet.name("blue")))).await;
            fleet.remove("blue4").await;
            fleet.add(Cluster::named("blue4").of("blue")).await;
        }
        fleet.edit("p", "numberOfClusters: null").await;
        fleet.selects("p", &["blue1", "blue2", "blue3", "blue4"]).await;
        fleet.is_satisfied("p").await;
    }

    /// A placement that cannot be written does not hold up another.
    calm async fn a_placement_that_cannot_be_written_holds_up_nobody(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        // A namespace on its way out takes no new objects, and this one stays on its way.
        let leaving = fleet.name("leaving");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": leaving}});
        fleet.caller.post("/api/v1/namespaces", &namespace).await.ok();
        let placements = format!("{GROUP}/v1beta1/namespaces/{leaving}/placements");
        let placement = |name: &str| json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {
                "name": name, "finalizers": ["berth.dev/hold"],
                "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"},
            },
            "spec": {},
        });
        for number in 0..5 {
            fleet.caller.post(&placements, &placement(&format!("stuck{number}"))).await.ok();
        }
        let path = format!("/api/v1/namespaces/{leaving}");
        fleet.caller.delete(&path).await.ok();
        fleet.until(&path, "is on its way out", |namespace| namespace["status"]["phase"] == "Terminating").await;
        for number in 0..5 {
            let enabled = json!({"metadata": {"annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": null}}});
            fleet.caller.merge(&format!("{placements}/stuck{number}"), &enabled).await.ok();
        }
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1"]).await;
        fleet.add(Cluster::named("blue2").of("blue")).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        for number in 0..5 {
            let free = json!({"metadata": {"finalizers": null}});
            fleet.caller.merge(&format!("{placements}/stuck{number}"), &free).await.ok();
        }
        fleet.caller.until_gone(&path).await;
    }
}
