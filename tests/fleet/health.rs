//! Whether clusters can be reached: leases, conditions, taints.

use berth_tests::{caller::condition, waiting::until};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, says, taint, whole},
    deadlines::punctual,
    ground::grounds,
    handle::{Fleet, PATIENCE},
};

pub(crate) const AVAILABLE: &str = "ManagedClusterConditionAvailable";
pub(crate) const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";

/// The lease of clusters that fall silent: short, and long enough for a busy machine to renew it in time.
const LEASE_SECONDS: u32 = 2;
/// Five times that.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

impl Fleet {
    pub(crate) fn lease_path(&self, cluster: &str) -> String {
        let home = self.name(cluster);
        format!("/apis/coordination.k8s.io/v1/namespaces/{home}/leases/managed-cluster-lease")
    }

    /// Waits until a cluster carries exactly these taints, and gives them.
    pub(crate) async fn carries(&self, cluster: &str, keys: &[&str]) -> Vec<Value> {
        until(&format!("cluster {cluster} with taints {keys:?}"), PATIENCE, async || {
            let object = self.caller.get(&self.cluster_path(cluster)).await.ok();
            let taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let there: Vec<&str> = taints.iter().filter_map(|taint| taint["key"].as_str()).collect();
            if there == keys { Ok(taints) } else { Err(format!("{there:?}")) }
        })
        .await
    }

    /// Replaces what the agent says of its health, keeping what the hub says.
    pub(crate) async fn agent_says(&self, cluster: &str, status: &str) {
        let object = self.caller.get(&self.cluster_path(cluster)).await.ok();
        let said = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mut conditions: Vec<Value> = said.into_iter().filter(|said| said["type"] != AVAILABLE).collect();
        conditions.push(says(AVAILABLE, status, "Scenario"));
        self.report(cluster, &json!({"conditions": conditions})).await;
    }

    /// Renews a lease, now or with another time in it.
    pub(crate) async fn renew(&self, cluster: &str, time: Timestamp) {
        let micros = Timestamp::from_microsecond(time.as_microsecond()).unwrap();
        let time = micros.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        self.caller.merge(&self.lease_path(cluster), &json!({"spec": {"renewTime": time}})).await.ok();
    }

    pub(crate) async fn is_unknown(&self, cluster: &str) -> Value {
        let object = self
            .until(&self.cluster_path(cluster), "is of unknown availability", |object| {
                condition(object, AVAILABLE)["status"] == "Unknown"
            })
            .await;
        condition(&object, AVAILABLE).clone()
    }
}

grounds! {
    /// Upstream: e2e/registration_taint_update_test.go "Should update taints automatically".
    health async fn taints_follow_the_availability_of_a_cluster(fleet: &Fleet) {
        fleet.add(Cluster::named("c1")).await;
        let [unreachable] = &fleet.carries("c1", &[UNREACHABLE]).await[..] else { unreachable!() };
        assert_eq!(unreachable["effect"], "NoSelect");
        assert!(unreachable["timeAdded"].is_string(), "limited tolerations count from then: {unreachable}");
        fleet.agent_says("c1", "True").await;
        fleet.carries("c1", &[]).await;
        fleet.agent_says("c1", "False").await;
        fleet.carries("c1", &[UNAVAILABLE]).await;
        fleet.agent_says("c1", "Unknown").await;
        fleet.carries("c1", &[UNREACHABLE]).await;
        fleet.agent_says("c1", "True").await;
        fleet.carries("c1", &[]).await;
    }

    /// A cluster that is unwell in one way and then in another has been unwell all along: tolerations do not start again.
    health async fn one_clock_runs_for_both_taints(fleet: &Fleet) {
        let before = Timestamp::now() - SignedDuration::from_secs(30);
        let turned = json!({"type": AVAILABLE, "status": "False", "reason": "Scenario", "message": "", "lastTransitionTime": whole(before)});
        let mine = taint("mine", "yes", "NoSelectIfNew", before);
        fleet.add(Cluster::named("c1").taint(&mine)).await;
        fleet.report("c1", &json!({"conditions": [turned]})).await;
        let first = fleet.carries("c1", &["mine", UNAVAILABLE]).await;
        fleet.agent_says("c1", "Unknown").await;
        let second = fleet.carries("c1", &["mine", UNREACHABLE]).await;
        assert_eq!(first[1]["timeAdded"], second[1]["timeAdded"]);
        fleet.agent_says("c1", "False").await;
        let third = fleet.carries("c1", &["mine", UNAVAILABLE]).await;
        assert_eq!(first[1]["timeAdded"], third[1]["timeAdded"]);
        assert_eq!(third[0], mine, "what others added is not touched");
        // Well again and ill again is another time.
        fleet.agent_says("c1", "True").await;
        fleet.carries("c1", &["mine"]).await;
    }

    /// A system taint that somebody removes or adds is put right.
    health async fn system_taints_that_others_edit_are_put_right(fleet: &Fleet) {
        fleet.add(Cluster::named("c1").available("False")).await;
        fleet.carries("c1", &[UNAVAILABLE]).await;
        fleet.change("c1", &json!({"spec": {"taints": null}})).await;
        fleet.carries("c1", &[UNAVAILABLE]).await;
        fleet.add(Cluster::named("c2").available("True")).await;
        fleet.taint("c2", &[taint(UNREACHABLE, "", "NoSelect", Timestamp::now())]).await;
        fleet.carries("c2", &[]).await;
    }

    /// Upstream: integration/registration/taint_add_test.go "ManagedCluster taint should be updated automatically".
    /// Upstream: integration/registration/managedcluster_lease_test.go "managed cluster lease should be updated
    /// constantly", "managed cluster available condition should be recovered after its lease update is recovered",
    /// "should use a short lease duration".
    /// Upstream: triggers "the end of a lease".
    health async fn a_cluster_that_stops_renewing_its_lease_is_unreachable(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        let joins = async |cluster: Cluster, name: &str| {
            fleet.home(name).await;
            fleet.add(cluster.accepted(LEASE_SECONDS).available("True")).await;
            let made = fleet.until(&fleet.lease_path(name), "is there to renew", |lease| lease["spec"]["renewTime"].is_string()).await;
            assert_eq!(made["metadata"]["labels"]["open-cluster-management.io/cluster-name"], fleet.name(name));
        };
        for name in ["silent", "steady"] {
            joins(Cluster::named(name).of("blue"), name).await;
        }
        fleet.place("p", "numberOfClusters: 1").await;
        until("the placement on the one that will be silent", PATIENCE, async || {
            for name in ["silent", "steady"] {
                fleet.renew(name, Timestamp::now()).await;
            }
            let slices = fleet.slices("p").await;
            if slices.clusters() == [fleet.name("silent")] { Ok(()) } else { Err(format!("{slices:?}")) }
        }).await;

        let mut said = Value::Null;
        punctual(async |number| {
            let name = if number == 1 { "silent".to_owned() } else { format!("silent{number}") };
            if number > 1 {
                joins(Cluster::named(&name), &name).await;
            }
            let renewed = Timestamp::now();
            fleet.renew(&name, renewed).await;
            let seen = until("silence being noticed", PATIENCE, async || {
                fleet.renew("steady", Timestamp::now()).await;
                let object = fleet.caller.get(&fleet.cluster_path(&name)).await.ok();
                said = condition(&object, AVAILABLE).clone();
                if said["status"] == "Unknown" { Ok(Timestamp::now()) } else { Err(said.to_string()) }
            }).await;
            assert!(seen >= renewed + GRACE, "at {seen}, although renewed at {renewed}");
            Some(seen.duration_since(renewed + GRACE))
        }).await;
        assert_eq!(said["reason"], "ManagedClusterLeaseUpdateStopped");
        assert_eq!(said["message"], "Registration agent stopped updating its lease.");
        fleet.carries("silent", &[UNREACHABLE]).await;
        fleet.selects("p", &["steady"]).await;
        let steady = fleet.caller.get(&fleet.cluster_path("steady")).await.ok();
        assert_eq!(condition(&steady, AVAILABLE)["status"], "True");
        let home = fleet.name("silent");
        let events = format!("/apis/events.k8s.io/v1/namespaces/{home}/events");
        fleet.until(&events, "has a warning", |list| {
            list["items"].as_array().is_some_and(|events| events.iter().any(|event| event["reason"] == "AvailableUnknown" && event["type"] == "Warning"))
        }).await;

        // Heard of again, it is well when it says so itself. A longer lease, so that it stays.
        fleet.change("silent", &json!({"spec": {"leaseDurationSeconds": 60}})).await;
        fleet.renew("silent", Timestamp::now()).await;
        fleet.agent_says("silent", "True").await;
        fleet.carries("silent", &[]).await;
        assert_eq!(fleet.caller.get(&fleet.cluster_path("silent")).await.ok()["status"]["conditions"].as_array().unwrap().iter().filter(|said| said["type"] == AVAILABLE).count(), 1);
    }

    /// A lease that is long enough becomes too short when its duration does: nobody waits for the old end.
    health async fn a_shorter_lease_ends_sooner(fleet: &Fleet) {
        fleet.home("c1").await;
        fleet.add(Cluster::named("c1").accepted(60).available("True")).await;
        fleet.until(&fleet.lease_path("c1"), "is there", |lease| lease["spec"]["renewTime"].is_string()).await;
        fleet.renew("c1", Timestamp::now() - SignedDuration::from_secs(10)).await;
        fleet.carries("c1", &[]).await;
        fleet.change("c1", &json!({"spec": {"leaseDurationSeconds": 1}})).await;
        fleet.is_unknown("c1").await;
        fleet.carries("c1", &[UNREACHABLE]).await;
    }

    /// A cluster whose object was lost is as well as its agent says once it is back, whatever its lease has been through.
    /// Upstream: integration/registration/managedcluster_lease_test.go "managed cluster available condition should be
    /// recovered after the cluster is restored".
    health async fn a_cluster_that_is_restored_recovers(fleet: &Fleet) {
        fleet.home("c1").await;
        fleet.add(Cluster::named("c1").accepted(1).available("True")).await;
        fleet.until(&fleet.lease_path("c1"), "is there to renew", |lease| lease["spec"]["renewTime"].is_string()).await;
        fleet.is_unknown("c1").await;
        fleet.carries("c1", &[UNREACHABLE]).await;
        fleet.remove("c1").await;
        fleet.caller.until_gone(&fleet.cluster_path("c1")).await;

        // Out of a backup, which has no status: nobody has heard of it yet.
        fleet.add(Cluster::named("c1").accepted(60)).await;
        fleet.carries("c1", &[UNREACHABLE]).await;
        fleet.until(&fleet.lease_path("c1"), "is there to renew", |lease| lease["spec"]["renewTime"].is_string()).await;
        fleet.renew("c1", Timestamp::now()).await;
        fleet.agent_says("c1", "True").await;
        fleet.carries("c1", &[]).await;
        // A cluster that is judged after it: the silence of before is not held against it.
        fleet.home("c2").await;
        fleet.add(Cluster::named("c2").accepted(1).available("True")).await;
        fleet.is_unknown("c2").await;
        let restored = fleet.caller.get(&fleet.cluster_path("c1")).await.ok();
        assert_eq!(condition(&restored, AVAILABLE)["status"], "True", "{restored}");
        fleet.carries("c1", &[]).await;
    }

    /// Nobody waits for an agent that was not let in; and a lease that is lost is made anew, and counts as renewed then.
    health async fn a_cluster_that_the_hub_never_let_in_has_no_lease(fleet: &Fleet) {
        fleet.home("stranger").await;
        fleet.home("guest").await;
        fleet.add(Cluster::named("stranger").available("True")).await;
        fleet.add(Cluster::named("guest").accepted(60).available("True")).await;
        fleet.until(&fleet.lease_path("guest"), "is there", |lease| lease["spec"].is_object()).await;
        assert_eq!(fleet.caller.get(&fleet.lease_path("stranger")).await.code, 404);
        fleet.caller.delete(&fleet.lease_path("guest")).await.ok();
        fleet.until(&fleet.lease_path("guest"), "is made anew", |lease| lease["spec"]["renewTime"].is_string()).await;
        let guest = fleet.caller.get(&fleet.cluster_path("guest")).await.ok();
        assert_eq!(condition(&guest, AVAILABLE)["status"], "True");
    }

    /// Upstream: integration/registration/managedcluster_lease_test.go "clock sync condition should work".
    health async fn a_clock_that_is_wrong_is_noticed(fleet: &Fleet) {
        const CLOCK: &str = "ManagedClusterConditionClockSynced";
        fleet.home("c1").await;
        fleet.add(Cluster::named("c1").accepted(60).available("True")).await;
        fleet.until(&fleet.lease_path("c1"), "is there", |lease| lease["spec"].is_object()).await;
        // An agent renews again and again; in the second that saw the lease made, nothing can be told from it.
        let renews = async |behind: SignedDuration, status: &str, reason: &str| {
            until(&format!("clock condition {status} {reason}"), PATIENCE, async || {
                fleet.renew("c1", Timestamp::now() - behind).await;
                let object = fleet.caller.get(&fleet.cluster_path("c1")).await.ok();
                let said = condition(&object, CLOCK);
                if said["status"] == status && said["reason"] == reason { Ok(()) } else { Err(said.to_string()) }
            }).await;
        };
        renews(SignedDuration::ZERO, "True", "ManagedClusterClockSynced").await;
        renews(SignedDuration::from_mins(20), "False", "ManagedClusterClockOutOfSync").await;
        renews(SignedDuration::ZERO, "True", "ManagedClusterClockSynced").await;
    }

    /// Stories of taints and tolerations: work leaves a cluster that is offline at once, or after a while where that is
    /// tolerated, and security settings stay.
    health async fn work_moves_when_a_cluster_goes_offline(fleet: &Fleet) {
        fleet.bound_set("blue").await;
        for name in ["c1", "c2"] {
            fleet.add(Cluster::named(name).of("blue").available("True")).await;
        }
        fleet.carries("c1", &[]).await;
        fleet.carries("c2", &[]).await;
        // Where the placements of others do not matter.
        let one = "numberOfClusters: 1\nprioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {builtIn: Steady}}]}";
        let tolerant = |rest: &str| format!("{one}\ntolerations: [{{key: {UNREACHABLE}, operator: Exists{rest}}}]");
        fleet.place("at-once", one).await;
        fleet.place("after-a-while", &tolerant(", tolerationSeconds: 3")).await;
        fleet.place("never", &tolerant("")).await;
        for name in ["at-once", "after-a-while", "never"] {
            fleet.selects(name, &["c1"]).await;
        }
        fleet.agent_says("c1", "Unknown").await;
        let taints = fleet.carries("c1", &[UNREACHABLE]).await;
        let added: Timestamp = taints[0]["timeAdded"].as_str().unwrap().parse().unwrap();
        fleet.selects("at-once", &["c2"]).await;
        fleet.selects("after-a-while", &["c2"]).await;
        let left = Timestamp::now();
        assert!(left >= added + SignedDuration::from_secs(3), "{left} {added}");
        fleet.selects("never", &["c1"]).await;
    }
}
