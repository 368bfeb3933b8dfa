//! PlacementDecisions as programs of others read them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{ground::grounds, handle::Fleet, slices::LABEL};

/// What Argo CD's cluster decision resource generator makes of a placement: one map of parameters for each cluster.
///
/// It is told a resource (`placementdecisions`), a label selector, `statusListKey: decisions` and `matchKey: clusterName`. It
/// lists by the label, passes over what has no status, and takes the list and each field of its entries for what they should
/// be: a list that is not there, or a field that is no text, ends older versions of it.
fn generated(list: &Value) -> Vec<BTreeMap<String, String>> {
    let slices = list["items"].as_array().unwrap().iter();
    let entries = slices.filter(|slice| !slice["status"].is_null()).flat_map(|slice| {
        let decisions = &slice["status"]["decisions"];
        decisions.as_array().unwrap_or_else(|| panic!("status.decisions is no list in {slice}"))
    });
    entries
        .map(|entry| {
            let fields = entry.as_object().unwrap_or_else(|| panic!("{entry} is no map"));
            let text = |(name, value): (&String, &Value)| {
                let value = value.as_str().unwrap_or_else(|| panic!("{name} is no text in {entry}"));
                (name.clone(), value.to_owned())
            };
            fields.iter().map(text).collect()
        })
        .collect()
}

impl Fleet {
    /// The clusters that the generator would make applications for, in the order of their names.
    async fn argo(&self, placement: &str) -> Vec<String> {
        let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3D{placement}");
        let list = self.caller.get(&self.path("v1beta1", &query)).await.ok();
        let mut names: Vec<String> =
            generated(&list).into_iter().map(|mut entry| entry.remove("clusterName").unwrap()).collect();
        names.sort_unstable();
        names
    }

    fn names(&self, short: &[&str]) -> Vec<String> {
        short.iter().map(|name| self.name(name)).collect()
    }
}

grounds! {
    calm async fn argo_cd_makes_an_application_for_every_cluster_of_a_placement(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "{}").await;
        fleet.selects("p", &["blue1", "blue2", "blue3"]).await;
        assert_eq!(fleet.argo("p").await, fleet.names(&["blue1", "blue2", "blue3"]));
        fleet.edit("p", "numberOfClusters: 1").await;
        fleet.holds("p", 1, 1).await;
        assert_eq!(fleet.argo("p").await.len(), 1);
    }

    /// Another placement's slices are not found by the label, also where one name begins with the other.
    calm async fn argo_cd_finds_the_slices_of_one_placement_only(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "numberOfClusters: 1").await;
        fleet.place("p-decision", "numberOfClusters: 2").await;
        fleet.holds("p", 1, 1).await;
        fleet.selects("p-decision", &["blue1", "blue2"]).await;
        assert_eq!(fleet.argo("p").await.len(), 1);
        assert_eq!(fleet.argo("p-decision").await, fleet.names(&["blue1", "blue2"]));
    }

    /// Nothing selected, from the start or later: an empty list, and no application.
    calm async fn argo_cd_makes_nothing_of_a_placement_without_clusters(fleet: &Fleet) {
        fleet.place("p", "{}").await;
        fleet.holds("p", 0, 1).await;
        assert_eq!(fleet.argo("p").await, [""; 0]);
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 1).await;
        fleet.selects("p", &["blue1"]).await;
        assert_eq!(fleet.argo("p").await, fleet.names(&["blue1"]));
        fleet.remove("blue1").await;
        fleet.selects("p", &[]).await;
        assert_eq!(fleet.argo("p").await, [""; 0]);
    }

    /// Many slices, with groups and prioritizers: still nothing but texts.
    calm async fn argo_cd_reads_every_slice_of_a_placement_with_groups(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 5).await;
        let spec = "
            prioritizerPolicy: {configurations: [{scoreCoordinate: {builtIn: Steady}, weight: 3}]}
            decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 2}}
        ";
        fleet.place("p", spec).await;
        fleet.holds("p", 5, 3).await;
        let all = fleet.names(&["blue1", "blue2", "blue3", "blue4", "blue5"]);
        assert_eq!(fleet.argo("p").await, all);
    }
}
