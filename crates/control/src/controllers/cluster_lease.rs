//! The cluster lease controller: leases in, the availability of clusters out.
//!
//! Owns the note of when a renewal from the future was first seen. When a lease ends and what follows is the engine's
//! verdict; that a cluster is available again only its own agent says.

use berth_api::core::Lease;
use std::collections::HashMap;
use std::sync::Arc;

use berth_api::ManagedCluster;
use berth_api::names::CLUSTER_LEASE;
use berth_engine::Moment;
use berth_engine::condition::merged;
use berth_engine::health::{LeaseVerdict, check_lease, clock_condition};
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use serde_json::json;

use super::{Controller, Verdict};
use crate::act::{Note, Target, Write};
use crate::due::Due;
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Judges clusters by their leases.
#[derive(Debug, Default)]
pub struct ClusterLeaseController {
    /// Renewals that were ahead of our clock, and when each was first seen. Empty where clocks agree.
    ahead: HashMap<Arc<str>, (MicroTime, Moment)>,
}

impl ClusterLeaseController {
    /// When the lease was first seen as it is, as far as that matters: a renewal that is not ahead of our clock speaks for
    /// itself.
    fn first_seen(&mut self, cluster: &Arc<str>, lease: Option<&Lease>, now: Moment) -> Moment {
        let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
        let Some(renewed) = renewed.filter(|time| Moment::from_timestamp(time.0) > now) else {
            self.ahead.remove(cluster);
            return now;
        };
        match self.ahead.get(cluster) {
            Some((known, seen)) if *known == renewed => *seen,
            _ => {
                self.ahead.insert(cluster.clone(), (renewed, now));
                now
            }
        }
    }
}

impl Controller for ClusterLeaseController {
    fn name(&self) -> ControllerName {
        ControllerName::ClusterLease
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Cluster, Kind::Lease, Kind::Namespace]
    }

    fn needs(&self) -> &'static [Need] {
        &[
            Need::Create(Kind::Lease),
            Need::Get(Kind::Lease),
            Need::PatchPart(Kind::Cluster, "status"),
            Need::Record,
        ]
    }

    fn observe(&mut self, change: &Change, world: &World, due: &mut Due) {
        let is_there = |cluster: &ObjectKey| world.clusters.get(cluster).is_some();
        match change.kind() {
            Kind::Cluster if change.after.is_none() => {
                self.ahead.remove(&change.key.name);
                due.forget(&change.key);
            }
            Kind::Cluster => due.mark(&change.key),
            Kind::Lease if *change.key.name == *CLUSTER_LEASE => {
                let cluster = subject(&change.key.namespace);
                if is_there(&cluster) {
                    due.mark(&cluster);
                }
            }
            // A lease can be made once its namespace is there.
            Kind::Namespace if change.before.is_none() && is_there(&subject(&change.key.name)) => {
                due.mark(&subject(&change.key.name));
            }
            _ => {}
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(cluster) = world.clusters.get(subject) else {
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let lease = world.leases.get(&ObjectKey::new(&subject.name, CLUSTER_LEASE));
        let seen = self.first_seen(&subject.name, lease.map(|lease| &**lease), now);
        let has_namespace = world.namespaces.get(&ObjectKey::new("", &subject.name)).is_some();
        verdict(cluster, lease.map(|lease| &**lease), has_namespace, seen, now)
    }
}

/// A cluster as a subject.
fn subject(cluster: &str) -> ObjectKey {
    ObjectKey::new("", cluster)
}

fn verdict(
    cluster: &Arc<ManagedCluster>,
    lease: Option<&Lease>,
    has_namespace: bool,
    seen: Moment,
    now: Moment,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut conditions: Vec<Condition> = Vec::new();
    match check_lease(cluster, lease, seen, now) {
        LeaseVerdict::NotManaged => verdict.outcome = "unmanaged",
        LeaseVerdict::Missing { .. } if !has_namespace => verdict.outcome = "no-namespace",
        LeaseVerdict::Missing { wanted } => {
            verdict.outcome = "missing";
            verdict.writes.push(Write::Create(Object::Lease(Arc::from(wanted))));
        }
        LeaseVerdict::Fresh { until } => {
            verdict.outcome = "fresh";
            verdict.wake = Some(until);
        }
        LeaseVerdict::Stopped { condition, .. } => {
            verdict.outcome = "stopped";
            if condition.is_some() {
                verdict.notes.push(unknown_note(cluster));
                // That nothing was heard of the lease may be the watch's fault.
                let lease = lease.map(|lease| Target::of(&Object::Lease(Arc::new(lease.clone()))));
                verdict.writes.extend(lease.map(Write::Unchanged));
            }
            conditions.extend(condition);
        }
    }
    // Only the API server's own note of when it wrote the lease can be compared with the time in it: a controller that was
    // not leading has seen renewals it cannot date.
    conditions.extend(lease.and_then(|lease| clock_condition(cluster, lease, None, now)));
    if !conditions.is_empty() {
        let existing =
            cluster.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let all = conditions.into_iter().fold(existing, |all, condition| merged(&all, condition));
        verdict.writes.push(Write::Patch {
            target: Target::of(&Object::Cluster(Arc::clone(cluster))),
            subresource: Some("status"),
            patch: json!({"status": {"conditions": all}}),
        });
    }
    verdict
}

/// The event about a cluster that is no longer heard of, in the cluster's own namespace.
fn unknown_note(cluster: &Arc<ManagedCluster>) -> Note {
    let mut regarding = Target::of(&Object::Cluster(Arc::clone(cluster)));
    let name = regarding.key.name.clone();
    // The API takes an event about an object without a namespace in `default` only.
    regarding.key.namespace = name.clone();
    Note {
        regarding,
        related: None,
        is_warning: true,
        reason: "AvailableUnknown",
        action: "AvailableUnknown",
        note: format!(
            "The {name} is successfully imported. However, the connection check from the managed cluster to the hub \
             cluster has failed"
        ),
        reporter: ControllerName::ClusterLease.as_str(),
        namespace: name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::controllers::stage::Stage;

    fn cluster(name: &str) -> Value {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": "Told", "message": "",
                "lastTransitionTime": "2023-11-14T00:00:00Z",
            })
        };
        json!({
            "metadata": {"name": name},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
            "status": {"conditions": [
                condition("HubAcceptedManagedCluster"), condition("ManagedClusterConditionAvailable"),
            ]},
        })
    }

    fn lease(cluster: &str, renewed: Moment) -> Value {
        json!({
            "metadata": {"namespace": cluster, "name": "managed-cluster-lease"},
            "spec": {"holderIdentity": "managed-cluster-lease", "renewTime": MicroTime(renewed.timestamp().unwrap())},
        })
    }

    fn stage() -> Stage<ClusterLeaseController> {
        let mut stage = Stage::new(ClusterLeaseController::default());
        stage.put(Kind::Namespace, json!({"metadata": {"name": "c1"}}));
        stage.put(Kind::Cluster, cluster("c1"));
        stage
    }

    fn available(stage: &Stage<ClusterLeaseController>) -> &str {
        let conditions =
            stage.get(Kind::Cluster, "", "c1").unwrap()["status"]["conditions"].as_array().unwrap();
        let found =
            conditions.iter().find(|condition| condition["type"] == "ManagedClusterConditionAvailable");
        found.unwrap()["status"].as_str().unwrap()
    }

    fn put_available(stage: &mut Stage<ClusterLeaseController>, status: &str) {
        let mut object = stage.get(Kind::Cluster, "", "c1").unwrap().clone();
        object["status"]["conditions"][1]["status"] = json!(status);
        stage.put(Kind::Cluster, object);
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_cluster_without_a_lease_gets_one_and_is_unknown_a_grace_later() {
        let mut stage = stage();
        assert_eq!(stage.settle(), ["create Lease c1/managed-cluster-lease"]);
        assert_eq!(stage.due.next(), Some(stage.now.plus_seconds(300)));
        assert_eq!(stage.after_seconds(299), NOTHING);
        assert_eq!(available(&stage), "True");
        assert_eq!(stage.after_seconds(1), ["patch ManagedCluster /c1/status"]);
        assert_eq!(available(&stage), "Unknown");
    }

    #[test]
    fn the_end_of_a_lease_is_told_once_as_an_event_in_the_clusters_namespace() {
        let mut stage = stage();
        stage.settle();
        stage.after_seconds(300);
        assert_eq!(stage.after_seconds(3600), NOTHING);
        let [note] = &stage.notes[..] else { panic!("{:?}", stage.notes) };
        assert_eq!((note.reason, &*note.namespace, note.is_warning), ("AvailableUnknown", "c1", true));
        assert_eq!(note.regarding.key.to_string(), "c1/c1");
        assert_eq!(
            note.note,
            "The c1 is successfully imported. However, the connection check from the managed cluster to the hub cluster \
             has failed"
        );
    }

    #[test]
    fn a_lease_that_is_renewed_moves_the_deadline_and_writes_nothing() {
        let mut stage = stage();
        stage.put(Kind::Lease, lease("c1", stage.now));
        assert_eq!(stage.settle(), NOTHING);
        for _ in 0..10 {
            stage.now = stage.now.plus_seconds(60);
            stage.put(Kind::Lease, lease("c1", stage.now));
            assert_eq!(stage.settle(), NOTHING);
            assert_eq!(stage.due.next(), Some(stage.now.plus_seconds(300)));
        }
    }

    /// Upstream: hub/lease/controller_test.go "TestRequeueTime: requeue for expired lease - recovery detected via
    /// watch, use grace period".
    #[test]
    fn a_cluster_that_comes_back_is_watched_again() {
        let mut stage = stage();
        stage.settle();
        stage.after_seconds(300);
        stage.put(Kind::Lease, lease("c1", stage.now));
        put_available(&mut stage, "True");
        assert_eq!(stage.settle(), NOTHING);
        assert_eq!(available(&stage), "True");
        assert_eq!(stage.after_seconds(300), ["patch ManagedCluster /c1/status"]);
    }

    #[test]
    fn a_cluster_that_claims_to_be_well_without_renewing_is_unknown_again() {
        let mut stage = stage();
        stage.settle();
        stage.after_seconds(300);
        put_available(&mut stage, "True");
        assert_eq!(stage.settle(), ["patch ManagedCluster /c1/status"]);
    }

    #[test]
    fn a_shorter_lease_duration_counts_at_once() {
        let mut stage = stage();
        stage.put(Kind::Lease, lease("c1", stage.now));
        stage.settle();
        stage.now = stage.now.plus_seconds(10);
        let mut object = stage.get(Kind::Cluster, "", "c1").unwrap().clone();
        object["spec"]["leaseDurationSeconds"] = json!(1);
        stage.put(Kind::Cluster, object);
        assert_eq!(stage.settle(), ["patch ManagedCluster /c1/status"]);
    }

    #[test]
    fn a_clock_that_runs_ahead_does_not_hide_a_dead_agent() {
        let mut stage = stage();
        stage.put(Kind::Lease, lease("c1", stage.now.plus_seconds(86_400)));
        assert_eq!(stage.settle(), NOTHING);
        assert_eq!(stage.after_seconds(299), NOTHING);
        assert_eq!(stage.after_seconds(1), ["patch ManagedCluster /c1/status"]);
        // Another renewal, from as far ahead, counts from when it was seen.
        stage.put(Kind::Lease, lease("c1", stage.now.plus_seconds(86_400)));
        put_available(&mut stage, "True");
        assert_eq!(stage.settle(), NOTHING);
        assert_eq!(stage.due.next(), Some(stage.now.plus_seconds(300)));
    }

    #[test]
    fn nothing_is_made_in_a_namespace_that_is_not_there() {
        let mut stage = Stage::new(ClusterLeaseController::default());
        stage.put(Kind::Cluster, cluster("c1"));
        assert_eq!(stage.settle(), NOTHING);
        stage.put(Kind::Namespace, json!({"metadata": {"name": "c1"}}));
        assert_eq!(stage.settle(), ["create Lease c1/managed-cluster-lease"]);
    }

    #[test]
    fn leases_of_others_and_clusters_never_accepted_are_nobodys_business() {
        let mut stage = stage();
        stage.settle();
        let mut other = lease("c1", stage.now.plus_seconds(-9_000));
        other["metadata"]["name"] = json!("some-leader");
        stage.put(Kind::Lease, other);
        assert!(!stage.due.is_ready());
        stage.put(Kind::Cluster, json!({"metadata": {"name": "c2"}}));
        stage.put(Kind::Lease, lease("c2", stage.now.plus_seconds(-9_000)));
        assert_eq!(stage.settle(), NOTHING);
    }

    #[test]
    fn a_cluster_that_is_gone_is_forgotten() {
        let mut stage = stage();
        stage.put(Kind::Lease, lease("c1", stage.now.plus_seconds(86_400)));
        stage.settle();
        stage.remove(Kind::Cluster, &subject("c1"));
        assert_eq!(stage.settle(), NOTHING);
        assert_eq!(stage.due.next(), None);
        assert!(stage.controller.ahead.is_empty());
    }

    #[test]
    fn a_new_process_writes_nothing_and_keeps_the_deadline() {
        let mut before = stage();
        before.settle();
        let deadline = before.due.next();
        let mut after = Stage::new(ClusterLeaseController::default());
        after.now = before.now.plus_seconds(100);
        for ((kind, _), object) in before.objects() {
            after.put(*kind, object.clone());
        }
        assert_eq!(after.settle(), NOTHING);
        assert_eq!(after.due.next(), deadline);
    }

    #[test]
    fn clocks_that_disagree_and_a_lease_that_ended_are_told_in_one_write() {
        let now = Moment::from_second(1_700_000_000);
        let time = |seconds: i64| now.plus_seconds(seconds).timestamp().unwrap().to_string();
        let mut lease = lease("c1", now.plus_seconds(-3600));
        lease["metadata"]["managedFields"] =
            json!([{"manager": "agent", "operation": "Update", "time": time(-1)}]);
        let lease: Lease = serde_json::from_value(lease).unwrap();
        let cluster: Arc<ManagedCluster> = Arc::new(serde_json::from_value(cluster("c1")).unwrap());
        let verdict = verdict(&cluster, Some(&lease), true, now, now);
        let [Write::Unchanged(_), Write::Patch { subresource: Some("status"), patch, .. }] =
            &verdict.writes[..]
        else {
            panic!("{:?}", verdict.writes);
        };
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let told: Vec<_> = conditions
            .iter()
            .map(|one| (one["type"].as_str().unwrap(), one["status"].as_str().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("HubAcceptedManagedCluster", "True"),
                ("ManagedClusterConditionAvailable", "Unknown"),
                ("ManagedClusterConditionClockSynced", "False"),
            ]
        );
    }
}
