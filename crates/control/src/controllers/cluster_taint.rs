//! The cluster taint controller: the availability of clusters in, their system taints out.
//!
//! Owns nothing but the wiring: which taints a cluster should carry, and since when, is the engine's verdict.

use std::sync::Arc;

use berth_api::names::DEFAULT_CLUSTER_SET;
use berth_engine::Moment;
use berth_engine::health::{Health, wanted_taints};
use berth_engine::model::ObjectKey;
use serde_json::{Value, json};

use super::{Controller, Verdict};
use crate::act::{Target, Write};
use crate::due::Due;
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Taints clusters that are not well.
#[derive(Debug, Default)]
pub struct ClusterTaintController;

impl Controller for ClusterTaintController {
    fn name(&self) -> ControllerName {
        ControllerName::ClusterTaint
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Cluster]
    }

    fn needs(&self) -> &'static [Need] {
        &[
            // Taints are part of a cluster's spec.
            Need::Patch(Kind::Cluster),
            // The taints that follow a cluster's health, and since when they count.
            Need::Might { verb: "update", kind: Kind::Cluster, part: "systemtaints", names: &[] },
            // A cluster from before the rules goes into the default set with the first write to it, which may be ours.
            Need::Might { verb: "create", kind: Kind::Set, part: "join", names: &[DEFAULT_CLUSTER_SET] },
        ]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
        if change.after.is_some() {
            due.mark(&change.key);
        } else {
            due.forget(&change.key);
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(cluster) = world.clusters.get(subject) else {
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let outcome = match Health::of(cluster) {
            _ if cluster.is_deleting() => "deleting",
            Some(Health::Available) => "available",
            Some(Health::Unavailable) => "unavailable",
            Some(Health::Unreachable) => "unreachable",
            None => "unclear",
        };
        let writes = wanted_taints(cluster, now).map(|taints| Write::Patch {
            target: Target::of(&Object::Cluster(Arc::clone(cluster))),
            subresource: None,
            // A list of nothing is no list.
            patch: json!({"spec": {"taints": if taints.is_empty() { Value::Null } else { json!(taints) }}}),
        });
        Verdict { writes: writes.into_iter().collect(), outcome, ..Verdict::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::stage::Stage;

    const NOTHING: [&str; 0] = [];
    const ONE_PATCH: [&str; 1] = ["patch ManagedCluster /c1"];

    /// Puts the cluster on the stage as it is, with another availability.
    fn put(stage: &mut Stage<ClusterTaintController>, available: &str, turned: Moment) {
        let known = stage.get(Kind::Cluster, "", "c1").cloned();
        let mut cluster = known.unwrap_or_else(|| json!({"metadata": {"name": "c1"}}));
        cluster["status"]["conditions"] = json!([{
            "type": "ManagedClusterConditionAvailable", "status": available, "reason": "Told", "message": "",
            "lastTransitionTime": turned.to_string(),
        }]);
        stage.put(Kind::Cluster, cluster);
    }

    fn taints(stage: &Stage<ClusterTaintController>) -> Vec<String> {
        let taints = &stage.get(Kind::Cluster, "", "c1").unwrap()["spec"]["taints"];
        let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
        let list = taints.as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|taint| {
                let key = text(taint, "key").replace("cluster.open-cluster-management.io/", "");
                format!("{key}:{} {}", text(taint, "effect"), text(taint, "timeAdded"))
            })
            .collect()
    }

    #[test]
    fn exactly_one_taint_follows_the_condition_through_all_its_turns() {
        let mut stage = Stage::new(ClusterTaintController);
        stage.put(Kind::Cluster, json!({"metadata": {"name": "c1"}}));
        assert_eq!(stage.settle(), ONE_PATCH);
        assert_eq!(taints(&stage), [format!("unreachable:NoSelect {}", stage.now)]);
        let now = stage.now;
        put(&mut stage, "True", now);
        assert_eq!(stage.settle(), ONE_PATCH);
        assert_eq!(taints(&stage), NOTHING);
        stage.now = now.plus_seconds(100);
        put(&mut stage, "False", now.plus_seconds(90));
        assert_eq!(stage.settle(), ONE_PATCH);
        assert_eq!(taints(&stage), [format!("unavailable:NoSelect {}", now.plus_seconds(90))]);
    }

    #[test]
    fn the_clock_does_not_restart_when_an_unavailable_cluster_falls_silent() {
        let mut stage = Stage::new(ClusterTaintController);
        let began = stage.now;
        put(&mut stage, "False", began);
        stage.settle();
        stage.now = began.plus_seconds(300);
        put(&mut stage, "Unknown", began.plus_seconds(300));
        assert_eq!(stage.settle(), ONE_PATCH);
        assert_eq!(taints(&stage), [format!("unreachable:NoSelect {began}")]);
    }

    #[test]
    fn a_system_taint_removed_by_somebody_comes_back() {
        let mut stage = Stage::new(ClusterTaintController);
        let now = stage.now;
        put(&mut stage, "False", now);
        stage.settle();
        let with = taints(&stage);
        let mut bare = stage.get(Kind::Cluster, "", "c1").unwrap().clone();
        bare["spec"]["taints"] = json!([]);
        stage.put(Kind::Cluster, bare);
        assert_eq!(stage.settle(), ONE_PATCH);
        assert_eq!(taints(&stage), with);
    }

    #[test]
    fn other_fields_of_the_spec_and_other_taints_stay() {
        let mut stage = Stage::new(ClusterTaintController);
        let mine = json!({"key": "mine", "value": "v", "effect": "NoSelectIfNew", "timeAdded": "2023-01-01T00:00:00Z"});
        stage.put(
            Kind::Cluster,
            json!({"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": true, "taints": [mine]}}),
        );
        assert_eq!(stage.settle(), ONE_PATCH);
        let spec = &stage.get(Kind::Cluster, "", "c1").unwrap()["spec"];
        assert_eq!(spec["hubAcceptsClient"], true);
        assert_eq!(spec["taints"][0], mine);
        assert_eq!(spec["taints"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_cluster_on_its_way_out_is_left_alone() {
        let mut stage = Stage::new(ClusterTaintController);
        stage.put(
            Kind::Cluster,
            json!({"metadata": {"name": "c1", "deletionTimestamp": "2023-01-01T00:00:00Z"}}),
        );
        assert_eq!(stage.settle(), NOTHING);
    }

    #[test]
    fn a_new_process_writes_nothing() {
        let mut before = Stage::new(ClusterTaintController);
        let now = before.now;
        put(&mut before, "False", now);
        before.settle();
        let mut after = Stage::new(ClusterTaintController);
        after.now = now.plus_seconds(5_000);
        for ((kind, _), object) in before.objects() {
            after.put(*kind, object.clone());
        }
        assert_eq!(after.settle(), NOTHING);
    }
}
