//! The cluster set controller: which sets are empty, and the two sets that always exist.
//!
//! Owns the count of members, kept by difference. What the conditions say and what the standard sets should be is the
//! engine's verdict.

use std::sync::Arc;

use berth_api::ManagedClusterSet;
use berth_engine::Moment;
use berth_engine::condition::merged;
use berth_engine::model::ObjectKey;
use berth_engine::sets::{Memberships, StandardSet, StandardSetFix, empty_condition};
use serde_json::{Value, json};

use super::{Controller, Verdict};
use crate::act::{Target, Write, difference};
use crate::due::Due;
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Keeps the status of cluster sets, and the standard ones.
#[derive(Debug, Default)]
pub struct ClusterSetController {
    members: Memberships,
    /// Whether the standard sets were looked at: nothing tells of one that was never there.
    has_begun: bool,
}

impl Controller for ClusterSetController {
    fn name(&self) -> ControllerName {
        ControllerName::ClusterSet
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Cluster, Kind::Set]
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::Create(Kind::Set), Need::Patch(Kind::Set), Need::PatchPart(Kind::Set, "status")]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
        let name = &change.key.name;
        match (&change.before, &change.after) {
            (_, Some(Object::Cluster(cluster))) => {
                self.members.cluster(name, Some(cluster)).iter().for_each(|set| due.mark(&subject(set)));
            }
            (Some(Object::Cluster(_)), None) => {
                self.members.cluster(name, None).iter().for_each(|set| due.mark(&subject(set)));
            }
            (_, Some(Object::Set(set))) => {
                self.members.set(name, Some(set));
                due.mark(&change.key);
            }
            (Some(Object::Set(_)), None) => {
                self.members.set(name, None);
                due.forget(&change.key);
                if StandardSet::named(name).is_some() {
                    due.mark(&change.key);
                }
            }
            _ => {}
        }
    }

    fn advance(&mut self, _: Moment, _: &World, due: &mut Due) {
        if !std::mem::replace(&mut self.has_begun, true) {
            for set in StandardSet::ALL {
                due.mark(&subject(set.name()));
            }
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let set = world.sets.get(subject);
        let standard = StandardSet::named(&subject.name);
        match standard.and_then(|standard| standard.fix(set.map(|set| &**set))) {
            Some(StandardSetFix::Create(wanted)) => {
                return one("create", Write::Create(Object::Set(Arc::from(wanted))));
            }
            Some(StandardSetFix::Rollback(wanted)) => {
                let spec = set.and_then(|set| set.spec.as_ref());
                let selector = spec.and_then(|spec| spec.cluster_selector.clone()).unwrap_or_default();
                if let (Some(set), Some(patch)) = (set, difference(&selector, &wanted)) {
                    return one("rollback", write(set, None, json!({"spec": {"clusterSelector": patch}})));
                }
            }
            None => {}
        }
        let (Some(set), Some(count)) = (set, self.members.count(&subject.name)) else {
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let outcome = match count {
            Ok(0) => "empty",
            Ok(_) => "filled",
            Err(_) => "invalid",
        };
        let Some(condition) = empty_condition(set, count, now) else {
            return Verdict { outcome, ..Verdict::default() };
        };
        let existing =
            set.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        one(
            outcome,
            write(set, Some("status"), json!({"status": {"conditions": merged(existing, condition)}})),
        )
    }
}

/// A set as a subject.
fn subject(set: &str) -> ObjectKey {
    ObjectKey::new("", set)
}

fn one(outcome: &'static str, write: Write) -> Verdict {
    Verdict { writes: vec![write], outcome, ..Verdict::default() }
}

fn write(set: &Arc<ManagedClusterSet>, subresource: Option<&'static str>, patch: Value) -> Write {
    Write::Patch { target: Target::of(&Object::Set(Arc::clone(set))), subresource, patch }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::stage::Stage;

    const NOTHING: [&str; 0] = [];

    /// A stage on which the standard sets are as they should be.
    fn stage() -> Stage<ClusterSetController> {
        let mut stage = Stage::new(ClusterSetController::default());
        stage.settle();
        stage
    }

    fn cluster(name: &str, set: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"cluster.open-cluster-management.io/clusterset": set}}})
    }

    fn set(name: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})
    }

    fn message(stage: &Stage<ClusterSetController>, set: &str) -> String {
        let object = stage.get(Kind::Set, "", set).unwrap();
        object["status"]["conditions"][0]["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_standard_sets_are_made_and_their_status_told() {
        let mut stage = Stage::new(ClusterSetController::default());
        assert_eq!(
            stage.settle(),
            [
                "create ManagedClusterSet /default",
                "create ManagedClusterSet /global",
                "patch ManagedClusterSet /default/status",
                "patch ManagedClusterSet /global/status",
            ]
        );
        assert_eq!(message(&stage, "global"), "No ManagedCluster selected");
    }

    #[test]
    fn a_standard_set_that_was_deleted_comes_back() {
        let mut stage = stage();
        stage.remove(Kind::Set, &subject("default"));
        assert_eq!(
            stage.settle(),
            ["create ManagedClusterSet /default", "patch ManagedClusterSet /default/status"]
        );
    }

    #[test]
    fn only_the_selector_of_a_standard_set_is_rolled_back() {
        let mut stage = stage();
        let mut edited = stage.get(Kind::Set, "", "default").unwrap().clone();
        edited["metadata"]["labels"] = json!({"mine": "yes"});
        edited["spec"] = json!({
            "clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"a": "b"}}},
            "managedNamespaces": [{"name": "work"}],
        });
        stage.put(Kind::Set, edited);
        assert_eq!(stage.settle(), ["patch ManagedClusterSet /default"]);
        let now = stage.get(Kind::Set, "", "default").unwrap();
        assert_eq!(
            now["spec"],
            json!({
                "clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"},
                "managedNamespaces": [{"name": "work"}],
            })
        );
        assert_eq!(now["metadata"]["labels"]["mine"], "yes");
    }

    #[test]
    fn a_global_set_with_a_narrower_selector_has_every_cluster_again() {
        let mut stage = stage();
        let mut edited = stage.get(Kind::Set, "", "global").unwrap().clone();
        edited["spec"]["clusterSelector"]["labelSelector"] = json!({"matchLabels": {"a": "b"}});
        stage.put(Kind::Set, edited);
        assert_eq!(stage.settle(), ["patch ManagedClusterSet /global"]);
        assert_eq!(
            stage.get(Kind::Set, "", "global").unwrap()["spec"],
            json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}})
        );
    }

    #[test]
    fn a_standard_set_whose_owner_opted_out_stays_as_it_is() {
        let mut stage = stage();
        let mut edited = stage.get(Kind::Set, "", "global").unwrap().clone();
        edited["metadata"]["annotations"] = json!({"cluster.open-cluster-management.io/autoupdate": "false"});
        edited["spec"]["clusterSelector"] = json!({"selectorType": "ExclusiveClusterSetLabel"});
        stage.put(Kind::Set, edited);
        assert_eq!(stage.settle(), NOTHING);
    }

    #[test]
    fn a_cluster_that_moves_is_told_by_the_sets_it_concerns_and_no_other() {
        let mut stage = stage();
        for name in ["blue", "red", "green"] {
            stage.put(Kind::Set, set(name));
        }
        stage.put(Kind::Cluster, cluster("c1", "blue"));
        stage.settle();
        assert_eq!(message(&stage, "blue"), "1 ManagedClusters selected");
        assert_eq!(message(&stage, "global"), "1 ManagedClusters selected");
        stage.put(Kind::Cluster, cluster("c1", "red"));
        let mut writes = stage.settle();
        writes.sort();
        assert_eq!(writes, ["patch ManagedClusterSet /blue/status", "patch ManagedClusterSet /red/status"]);
        assert_eq!(message(&stage, "blue"), "No ManagedCluster selected");
        stage.remove(Kind::Cluster, &subject("c1"));
        assert_eq!(stage.settle().len(), 2);
        assert_eq!(message(&stage, "red"), "No ManagedCluster selected");
    }

    #[test]
    fn a_change_of_a_cluster_that_moves_no_member_touches_no_set() {
        let mut stage = stage();
        stage.put(Kind::Cluster, cluster("c1", "default"));
        stage.settle();
        let mut tainted = cluster("c1", "default");
        tainted["spec"] = json!({"taints": [{"key": "a", "effect": "NoSelect"}]});
        stage.put(Kind::Cluster, tainted);
        assert!(!stage.due.is_ready());
    }

    #[test]
    fn a_set_that_cannot_be_understood_says_so() {
        let mut stage = stage();
        stage.put(
            Kind::Set,
            json!({"metadata": {"name": "odd"}, "spec": {"clusterSelector": {
                "selectorType": "LabelSelector",
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
            }}}),
        );
        assert_eq!(stage.settle(), ["patch ManagedClusterSet /odd/status"]);
        let condition = &stage.get(Kind::Set, "", "odd").unwrap()["status"]["conditions"][0];
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!("ClusterSelectorInvalid"))
        );
    }

    #[test]
    fn a_new_process_writes_nothing() {
        let mut before = stage();
        before.put(Kind::Set, set("blue"));
        before.put(Kind::Cluster, cluster("c1", "blue"));
        before.settle();
        let mut after = Stage::new(ClusterSetController::default());
        for ((kind, _), object) in before.objects() {
            after.put(*kind, object.clone());
        }
        assert_eq!(after.settle(), NOTHING);
    }
}
