//! The stories of the documents this began with, told with the objects in them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, taint},
    ground::grounds,
    handle::Fleet,
};

/// A predicate in the flat form of the first design where the definitions have it, else in the present one.
fn predicate(fleet: &Fleet, selector: Value) -> Value {
    if fleet.ground.is_ours() { selector } else { json!({"requiredClusterSelector": selector}) }
}

async fn clouds(fleet: &Fleet) {
    fleet.bound_set("clusterset1").await;
    let clusters = [
        ("aws1", "OpenShift", "Amazon", "4.5.8", "us-east-1", "prod"),
        ("aws2", "OpenShift", "Amazon", "4.6.1", "us-east-1", "dev"),
        ("gcp1", "OpenShift", "Google", "4.5.8", "europe-west4", "prod"),
        ("gcp2", "GKE", "Google", "1.20", "europe-west4", "dev"),
        ("vs1", "OpenShift", "VSphere", "4.5.8", "cellar", "prod"),
    ];
    for (name, vendor, cloud, version, region, purpose) in clusters {
        let cluster =
            Cluster::named(name).of("clusterset1").label("vendor", vendor).label("purpose", purpose);
        let cluster = cluster.label("region", region).claim("platform.open-cluster-management.io", cloud);
        fleet.add(cluster.claim("version.openshift.io", version)).await;
    }
}

async fn selects(fleet: &Fleet, name: &str, spec: Value, wanted: &[&str]) {
    fleet.try_place(name, &spec).await.ok();
    fleet.selects(name, wanted).await;
}

grounds! {
    /// Placement APIs, stories 1, 3 and 4: all clusters, clusters by what they are, and so many of them.
    calm async fn a_user_selects_clusters_by_what_they_are(fleet: &Fleet) {
        clouds(fleet).await;
        let labels = |labels: Value| predicate(fleet, json!({"labelSelector": {"matchLabels": labels}}));
        let claim = |operator: &str, key: &str, values: Value| {
            predicate(fleet, json!({"claimSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}}))
        };
        let platform = "platform.open-cluster-management.io";
        selects(fleet, "all", json!({}), &["aws1", "aws2", "gcp1", "gcp2", "vs1"]).await;
        let openshift = json!({"predicates": [labels(json!({"vendor": "OpenShift"}))]});
        selects(fleet, "openshift", openshift, &["aws1", "aws2", "gcp1", "vs1"]).await;
        let either = json!({"predicates": [claim("In", platform, json!(["Amazon"])), claim("In", platform, json!(["Google"]))]});
        selects(fleet, "either", either, &["aws1", "aws2", "gcp1", "gcp2"]).await;
        let not = json!({"predicates": [claim("NotIn", platform, json!(["VSphere"]))]});
        selects(fleet, "not", not, &["aws1", "aws2", "gcp1", "gcp2"]).await;
        let version = json!({"predicates": [claim("In", "version.openshift.io", json!(["4.5.8"]))]});
        selects(fleet, "version", version, &["aws1", "gcp1", "vs1"]).await;
        let prod = json!({"predicates": [labels(json!({"purpose": "prod"}))]});
        selects(fleet, "prod", prod, &["aws1", "gcp1", "vs1"]).await;
        let three = json!({"numberOfClusters": 3, "predicates": [labels(json!({"vendor": "OpenShift"}))]});
        fleet.try_place("three", &three).await.ok();
        fleet.holds("three", 3, 1).await;
        let five = json!({"numberOfClusters": 5, "predicates": [claim("In", platform, json!(["Amazon"]))]});
        fleet.try_place("five", &five).await.ok();
        fleet.holds("five", 2, 1).await;
        fleet.misses("five", 3).await;
    }

    /// Placement APIs, story 6: clusters across different regions.
    calm async fn a_user_selects_clusters_across_regions(fleet: &Fleet) {
        clouds(fleet).await;
        let spread = json!({"spreadConstraints": [{"topologyKey": "region", "topologyKeyType": "Label", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]});
        selects(fleet, "spread", json!({"numberOfClusters": 3, "spreadPolicy": spread}), &["aws1", "gcp1", "vs1"]).await;
        if fleet.ground.is_ours() {
            let apart = json!({"numberOfClusters": 3, "antiAffinity": {"topologyKey": "region", "topologyKeyType": "Label"}});
            // Not those that the other placement has, where there is a choice.
            selects(fleet, "apart", apart, &["aws2", "gcp2", "vs1"]).await;
        }
    }

    /// Placement APIs, the first scenario, with the objects in the version of that time where it is served.
    calm async fn a_user_binds_a_set_and_places(fleet: &Fleet) {
        clouds(fleet).await;
        let version = if fleet.ground.is_ours() { "v1alpha1" } else { "v1beta1" };
        let predicate = if fleet.ground.is_ours() {
            "- labelSelector: {matchLabels: {vendor: OpenShift}}\n    claimSelector: {matchExpressions: [{key: version.openshift.io, operator: In, values: [4.5.8]}]}"
        } else {
            "- requiredClusterSelector:\n      labelSelector: {matchLabels: {vendor: OpenShift}}\n      claimSelector: {matchExpressions: [{key: version.openshift.io, operator: In, values: [4.5.8]}]}"
        };
        let namespace = &fleet.namespace;
        fleet.caller.apply(&format!("
apiVersion: cluster.open-cluster-management.io/{version}
kind: Placement
metadata:
  name: placement1
  namespace: {namespace}
spec:
  predicates:
  {predicate}
")).await;
        let slices = fleet.selects("placement1", &["aws1", "gcp1", "vs1"]).await;
        assert_eq!(slices.0[0]["metadata"]["name"], "placement1-decision-1");
    }

    /// Taints and tolerations: a cluster under maintenance, clusters for certain work, and both kinds of leaving.
    calm async fn clusters_are_kept_for_maintenance_and_for_certain_work(fleet: &Fleet) {
        let then = Timestamp::now() - SignedDuration::from_hours(1);
        fleet.bound_set("clusterset1").await;
        fleet.add(Cluster::named("cluster1").of("clusterset1")).await;
        fleet.add(Cluster::named("cluster2").of("clusterset1")).await;
        fleet.add(Cluster::named("gpu").of("clusterset1").taint(&taint("gpu", "true", "NoSelectIfNew", then))).await;
        fleet.place("plain", "{}").await;
        fleet.place("learning", "{tolerations: [{key: gpu, value: 'true', operator: Equal}]}").await;
        fleet.place("security", "{tolerations: [{operator: Exists}]}").await;
        fleet.selects("plain", &["cluster1", "cluster2"]).await;
        fleet.selects("learning", &["cluster1", "cluster2", "gpu"]).await;
        fleet.taint("cluster1", &[taint("maintaining", "true", "NoSelect", Timestamp::now())]).await;
        fleet.selects("plain", &["cluster2"]).await;
        fleet.selects("learning", &["cluster2", "gpu"]).await;
        fleet.selects("security", &["cluster1", "cluster2", "gpu"]).await;
        // Immediate, and after a while.
        fleet.place("patient", "{tolerations: [{key: gpu, value: 'true'}, {key: unreachable, operator: Exists, tolerationSeconds: 3}]}").await;
        fleet.selects("patient", &["cluster2", "gpu"]).await;
        let now = Timestamp::now();
        fleet.taint("gpu", &[taint("gpu", "true", "NoSelectIfNew", then), taint("unreachable", "", "NoSelect", now)]).await;
        fleet.selects("learning", &["cluster2"]).await;
        fleet.selects("patient", &["cluster2"]).await;
        assert!(Timestamp::now().as_second() >= now.as_second() + 3);
    }

    /// Extensible scheduling, story 3: work moves from the primary cluster to the backup when the primary is down; and the
    /// best and the worst cluster by one score.
    calm async fn work_moves_to_the_backup_cluster(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        fleet.add(Cluster::named("backup").of("blue")).await;
        fleet.add(Cluster::named("primary").of("blue")).await;
        fleet.score("primary", 100, None).await;
        fleet.score("backup", 50, None).await;
        let by_score = |weight: i32| json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [{
            "scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "demo"}}, "weight": weight,
        }]}});
        selects(fleet, "workload", by_score(1), &["primary"]).await;
        selects(fleet, "worst", by_score(-1), &["backup"]).await;
        let down = taint("cluster.open-cluster-management.io/unavailable", "", "NoSelect", Timestamp::now());
        fleet.taint("primary", &[down]).await;
        fleet.selects("workload", &["backup"]).await;
        fleet.taint("primary", &[]).await;
        fleet.selects("workload", &["primary"]).await;
    }
}
