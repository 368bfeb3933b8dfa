//! Decision groups: which clusters go first.

use crate::{cluster::Cluster, ground::grounds, handle::Fleet};

const CANARY_FIRST: &str = "
decisionStrategy:
  groupStrategy:
    clustersPerDecisionGroup: 2
    decisionGroups:
    - groupName: canary
      groupClusterSelector: {labelSelector: {matchLabels: {vendor: openShift}}}
";

grounds! {
    /// Upstream: integration/placement/placement_test.go "Should update the decision group once clusters
    /// added/deleted".
    calm async fn groups_follow_clusters_that_come_and_go(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        let canary = |name| Cluster::named(name).of("blue").label("vendor", "openShift");
        for name in ["canary1", "canary2"] {
            fleet.add(canary(name)).await;
        }
        fleet.add_many("blue", 3).await;
        fleet.place("p", CANARY_FIRST).await;
        fleet.holds("p", 5, 3).await;
        fleet.is_satisfied("p").await;
        fleet.groups("p", &[("canary", 2), ("", 2), ("", 1)]).await;

        fleet.remove("canary1").await;
        fleet.remove("blue1").await;
        fleet.holds("p", 3, 2).await;
        fleet.groups("p", &[("canary", 1), ("", 2)]).await;

        fleet.add(canary("canary3")).await;
        fleet.holds("p", 4, 2).await;
        fleet.groups("p", &[("canary", 2), ("", 2)]).await;

        fleet.add(Cluster::named("blue4").of("blue")).await;
        fleet.holds("p", 5, 3).await;
        fleet.groups("p", &[("canary", 2), ("", 2), ("", 1)]).await;

        for name in ["canary2", "canary3", "blue2", "blue3", "blue4"] {
            fleet.remove(name).await;
        }
        fleet.holds("p", 0, 1).await;
        fleet.groups("p", &[("", 0)]).await;
    }

    /// A share of the selected clusters, rounded up, makes a group.
    calm async fn groups_by_share_of_the_selected(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 25%}}").await;
        fleet.holds("p", 3, 3).await;
        fleet.groups("p", &[("", 1), ("", 1), ("", 1)]).await;
    }
}
