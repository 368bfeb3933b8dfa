//! Taints of clusters and what placements tolerate.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    cluster::{Cluster, taint},
    ground::grounds,
    handle::Fleet,
};

grounds! {
    /// Upstream: integration/placement/toleration_test.go "Should schedule successfully when taint/toleration matches".
    calm async fn tainted_clusters_are_selected_where_that_is_tolerated(fleet: &Fleet) {
        let now = Timestamp::now();
        fleet.bound_set("blue").await;
        for (name, key, value) in [("c1", "key1", "value1"), ("c2", "key2", "value2"), ("c3", "key2", "value3")] {
            fleet.add(Cluster::named(name).of("blue").taint(&taint(key, value, "NoSelect", now))).await;
        }
        fleet.place("p", "
            numberOfClusters: 3
            tolerations: [{key: key1, operator: Exists}, {key: key2, operator: Equal, value: value2}]
        ").await;
        fleet.selects("p", &["c1", "c2"]).await;
        fleet.misses("p", 1).await;
    }

    /// Upstream: integration/placement/toleration_test.go "Should schedule when taint/toleration effect matches".
    calm async fn effects_matter(fleet: &Fleet) {
        let now = Timestamp::now();
        fleet.bound_set("blue").await;
        for (name, key, effect) in
            [("c1", "key1", "NoSelect"), ("c2", "key2", "NoSelectIfNew"), ("c3", "key3", "PreferNoSelect")]
        {
            fleet.add(Cluster::named(name).of("blue").taint(&taint(key, "", effect, now))).await;
        }
        fleet.add(Cluster::named("c4").of("blue")).await;
        fleet.place("p", "
            numberOfClusters: 4
            tolerations:
            - {key: key1, operator: Exists, effect: PreferNoSelect}
            - {key: key2, operator: Exists, effect: NoSelect}
            - {key: key3, operator: Exists, effect: NoSelect}
            - {key: key4, operator: Exists, effect: NoSelect}
        ").await;
        let before = fleet.selects("p", &["c3", "c4"]).await;
        // What is selected already is not new.
        let sentinel = fleet.sentinel().await;
        fleet.taint("c4", &[taint("key4", "value4", "NoSelectIfNew", now)]).await;
        sentinel.passes().await;
        assert_eq!(fleet.slices("p").await.versions(), before.versions());
        // Once it has left it is.
        fleet.taint("c4", &[taint("key5", "", "NoSelect", now)]).await;
        fleet.selects("p", &["c3"]).await;
        fleet.taint("c4", &[taint("key4", "value4", "NoSelectIfNew", now)]).await;
        sentinel.passes().await;
        fleet.selects("p", &["c3"]).await;
    }

    /// Upstream: integration/placement/toleration_test.go "Should reschedule when expire TolerationSeconds".
    calm async fn limited_tolerations_end_one_after_another(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        for name in ["c1", "c2", "c3", "c4"] {
            fleet.add(Cluster::named(name).of("blue")).await;
        }
        let now = Timestamp::now();
        let long_ago = now - SignedDuration::from_mins(1);
        for (name, key, added) in [("c1", "key1", now), ("c2", "key2", now), ("c3", "key2", long_ago)] {
            fleet.taint(name, &[taint(key, "", "NoSelect", added)]).await;
        }
        fleet.place("p", "
            numberOfClusters: 4
            tolerations:
            - {key: key1, operator: Exists, tolerationSeconds: 10}
            - {key: key2, operator: Exists, tolerationSeconds: 20}
        ").await;
        fleet.selects("p", &["c1", "c2", "c4"]).await;
        fleet.selects("p", &["c2", "c4"]).await;
        fleet.selects("p", &["c4"]).await;
        fleet.taint("c4", &[taint("key3", "", "NoSelect", long_ago)]).await;
        fleet.selects("p", &[]).await;
    }

    /// A taint that only asks to stay away moves a choice and not a need.
    calm async fn a_cluster_to_be_avoided_is_the_last_choice(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 3).await;
        fleet.place("p", "numberOfClusters: 1").await;
        fleet.selects("p", &["blue1"]).await;
        fleet.taint("blue1", &[taint("noisy", "", "PreferNoSelect", Timestamp::now())]).await;
        fleet.selects("p", &["blue2"]).await;
        fleet.edit("p", "numberOfClusters: 3").await;
        fleet.selects("p", &["blue1", "blue2", "blue3"]).await;
        fleet.change("blue1", &json!({"spec": {"taints": null}})).await;
        fleet.is_satisfied("p").await;
    }
}
