//! PlacementDecisions as programs of others read them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{cluster::Cluster, ground::grounds, handle::Fleet, slices::LABEL};

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

/// As OCM writes them: each decision has two fields and no third, each slice is labelled with its placement and its group.
fn is_as_ocm_writes_it(list: &Value, placement: &str) {
    for entry in generated(list) {
        let fields: BTreeSet<&str> = entry.keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["clusterName", "reason"]), "{entry:?}");
    }
    for slice in list["items"].as_array().unwrap() {
        let labels = &slice["metadata"]["labels"];
        assert_eq!(labels[format!("{LABEL}/placement")], placement, "{slice}");
        let index = labels[format!("{LABEL}/decision-group-index")].as_str();
        assert!(index.is_some_and(|index| index.parse::<usize>().is_ok()), "{slice}");
        assert!(labels[format!("{LABEL}/decision-group-name")].is_string(), "{slice}");
    }
}

impl Fleet {
    /// The clusters that the generator would make applications for, in the order of their names.
    async fn argo(&self, placement: &str) -> Vec<String> {
        self.argo_with(placement, "").await
    }

    /// The same where its selector asks for more than the placement.
    async fn argo_with(&self, placement: &str, more: &str) -> Vec<String> {
        let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3D{placement}{more}");
        let list = self.caller.get(&self.path("v1beta1", &query)).await.ok();
        is_as_ocm_writes_it(&list, placement);
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

    /// A group at a time, by the labels of its slices: by its number, and by its name where it has one.
    calm async fn argo_cd_reads_one_group_by_its_labels(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        for name in ["early1", "early2"] {
            fleet.add(Cluster::named(name).of("blue").label("stage", "canary")).await;
        }
        let spec = "
            decisionStrategy: {groupStrategy: {decisionGroups: [
              {groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}},
            ]}}
        ";
        fleet.place("p", spec).await;
        fleet.holds("p", 4, 2).await;
        fleet.groups("p", &[("canary", 2), ("", 2)]).await;
        let canary = fleet.names(&["early1", "early2"]);
        let by = |label: &str, value: &str| format!("%2C{LABEL}%2Fdecision-group-{label}%3D{value}");
        assert_eq!(fleet.argo_with("p", &by("name", "canary")).await, canary);
        assert_eq!(fleet.argo_with("p", &by("index", "0")).await, canary);
        assert_eq!(fleet.argo_with("p", &by("index", "1")).await, fleet.names(&["blue1", "blue2"]));
    }
}
