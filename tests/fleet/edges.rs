//! Where it gets narrow: names, numbers, haste, and neighbours in trouble.

use berth_tests::{caller::text, waiting::until};
use futures::future::join_all;
use serde_json::json;

use crate::{
    cluster::Cluster,
    ground::grounds,
    handle::{Fleet, GROUP, PATIENCE},
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
        let stuck = Stuck::make(fleet, 5).await;
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1"]).await;
        fleet.add(Cluster::named("blue2").of("blue")).await;
        fleet.selects("p", &["blue1", "blue2"]).await;
        stuck.free(fleet).await;
    }
}

/// Placements in a namespace of their own in which no slice can be made: whoever tries is sent to somebody who does not
/// answer.
pub(crate) struct Stuck {
    namespace: String,
    obstacle: String,
    count: usize,
}

impl Stuck {
    pub(crate) async fn make(fleet: &Fleet, count: usize) -> Self {
        let namespace = fleet.name("stuck");
        let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let stuck = Self { obstacle: format!("{configurations}/{namespace}"), namespace, count };
        let labels = json!({"stuck": stuck.namespace});
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stuck.namespace, "labels": labels},
        });
        fleet.caller.post("/api/v1/namespaces", &object).await.ok();
        let obstacle = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": stuck.namespace},
            "webhooks": [{
                // Nobody listens on that port.
                "name": "stuck.berth.dev", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
                "rules": [{
                    "apiGroups": [GROUP.trim_start_matches("/apis/")], "apiVersions": ["*"],
                    "operations": ["CREATE"], "resources": ["placementdecisions"], "scope": "Namespaced",
                }],
                "namespaceSelector": {"matchLabels": labels},
            }],
        });
        fleet.caller.post(configurations, &obstacle).await.ok();
        let probe = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": "probe"},
        });
        let slices = format!("{}?dryRun=All", stuck.path("placementdecisions"));
        until("no slice can be made", PATIENCE, async || {
            let answer = fleet.caller.post(&slices, &probe).await;
            if answer.code == 500 { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
        for number in 0..count {
            let placement = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
                "metadata": {"name": format!("stuck{number}")}, "spec": {},
            });
            fleet.caller.post(&stuck.path("placements"), &placement).await.ok();
        }
        stuck
    }

    fn path(&self, plural: &str) -> String {
        format!("{GROUP}/v1beta1/namespaces/{}/{plural}", self.namespace)
    }

    /// Clears the way, on which they had not given up.
    pub(crate) async fn free(self, fleet: &Fleet) {
        let list = fleet.caller.get(&self.path("placementdecisions")).await.ok();
        assert_eq!(list["items"], json!([]), "none could be made");
        fleet.caller.delete(&self.obstacle).await.ok();
        for number in 0..self.count {
            let slice = format!("{}/stuck{number}-decision-1", self.path("placementdecisions"));
            fleet.until(&slice, "is made", |slice| slice["metadata"]["uid"].is_string()).await;
        }
        fleet.caller.delete(&format!("/api/v1/namespaces/{}", self.namespace)).await.ok();
    }
}
