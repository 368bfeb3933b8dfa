//! The set binding controller: whether each binding has its set.
//!
//! Owns the index from sets to the bindings that name them. What the condition says is the engine's verdict.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::condition::merged;
use berth_engine::model::ObjectKey;
use berth_engine::sets::bound_condition;
use serde_json::json;

use super::{Controller, Verdict};
use crate::act::{Target, Write};
use crate::due::Due;
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Keeps the status of bindings.
#[derive(Debug, Default)]
pub struct SetBindingController {
    /// Bindings by the set they name, existing or not.
    by_set: HashMap<Arc<str>, BTreeSet<ObjectKey>>,
}

impl SetBindingController {
    fn index(&mut self, change: &Change) {
        let set = |object: &Option<Object>| match object {
            Some(Object::Binding(binding)) => binding.cluster_set().map(Arc::<str>::from),
            _ => None,
        };
        let (before, after) = (set(&change.before), set(&change.after));
        if before == after {
            return;
        }
        if let Some(before) = before
            && let Some(bindings) = self.by_set.get_mut(&before)
        {
            bindings.remove(&change.key);
            if bindings.is_empty() {
                self.by_set.remove(&before);
            }
        }
        if let Some(after) = after {
            self.by_set.entry(after).or_default().insert(change.key.clone());
        }
    }
}

impl Controller for SetBindingController {
    fn name(&self) -> ControllerName {
        ControllerName::ClusterSetBinding
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Set, Kind::Binding]
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::PatchPart(Kind::Binding, "status")]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
        match change.kind() {
            Kind::Binding => {
                self.index(change);
                if change.after.is_some() {
                    due.mark(&change.key);
                } else {
                    due.forget(&change.key);
                }
            }
            // Only that it is there matters.
            Kind::Set if change.before.is_none() || change.after.is_none() => {
                self.by_set.get(&change.key.name).into_iter().flatten().for_each(|binding| due.mark(binding));
            }
            _ => {}
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, now: Moment) -> Verdict {
        let Some(binding) = world.bindings.get(subject) else {
            return Verdict { outcome: "gone", ..Verdict::default() };
        };
        let exists =
            binding.cluster_set().is_some_and(|set| world.sets.get(&ObjectKey::new("", set)).is_some());
        let existing =
            binding.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let writes = bound_condition(binding, exists, now).map(|condition| Write::Patch {
            target: Target::of(&Object::Binding(Arc::clone(binding))),
            subresource: Some("status"),
            patch: json!({"status": {"conditions": merged(existing, condition)}}),
        });
        let outcome = if exists { "bound" } else { "unbound" };
        Verdict { writes: writes.into_iter().collect(), outcome, ..Verdict::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::controllers::stage::Stage;

    const NOTHING: [&str; 0] = [];

    fn binding(namespace: &str, set: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": set}, "spec": {"clusterSet": set}})
    }

    fn set(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn reason(stage: &Stage<SetBindingController>, namespace: &str, name: &str) -> String {
        let object = stage.get(Kind::Binding, namespace, name).unwrap();
        object["status"]["conditions"][0]["reason"].as_str().unwrap().to_owned()
    }

    /// Upstream: hub/managedclustersetbinding/controller_test.go "TestEnqueue".
    #[test]
    fn a_binding_is_bound_while_its_set_exists() {
        let mut stage = Stage::new(SetBindingController::default());
        stage.put(Kind::Binding, binding("n1", "blue"));
        stage.put(Kind::Binding, binding("n2", "blue"));
        stage.put(Kind::Binding, binding("n1", "red"));
        stage.settle();
        assert_eq!(reason(&stage, "n1", "blue"), "ClusterSetNotFound");
        stage.put(Kind::Set, set("blue"));
        assert_eq!(
            stage.settle(),
            [
                "patch ManagedClusterSetBinding n1/blue/status",
                "patch ManagedClusterSetBinding n2/blue/status",
            ]
        );
        assert_eq!(reason(&stage, "n1", "blue"), "ClusterSetBound");
        assert_eq!(reason(&stage, "n1", "red"), "ClusterSetNotFound");
        stage.remove(Kind::Set, &ObjectKey::new("", "blue"));
        assert_eq!(stage.settle().len(), 2);
        assert_eq!(reason(&stage, "n2", "blue"), "ClusterSetNotFound");
    }

    #[test]
    fn a_set_whose_content_changes_concerns_no_binding() {
        let mut stage = Stage::new(SetBindingController::default());
        stage.put(Kind::Set, set("blue"));
        stage.put(Kind::Binding, binding("n1", "blue"));
        stage.settle();
        let mut edited = set("blue");
        edited["metadata"]["labels"] = json!({"a": "b"});
        stage.put(Kind::Set, edited);
        assert!(!stage.due.is_ready());
    }

    /// Upstream: hub/managedclustersetbinding/controller_test.go "TestSync: wrong clustersetbinding".
    #[test]
    fn a_binding_that_is_gone_is_forgotten() {
        let mut stage = Stage::new(SetBindingController::default());
        stage.put(Kind::Binding, binding("n1", "blue"));
        stage.settle();
        stage.remove(Kind::Binding, &ObjectKey::new("n1", "blue"));
        stage.put(Kind::Set, set("blue"));
        assert_eq!(stage.settle(), NOTHING);
        assert!(stage.controller.by_set.is_empty());
    }

    #[test]
    fn a_new_process_writes_nothing() {
        let mut before = Stage::new(SetBindingController::default());
        before.put(Kind::Set, set("blue"));
        before.put(Kind::Binding, binding("n1", "blue"));
        before.put(Kind::Binding, binding("n1", "red"));
        before.settle();
        let mut after = Stage::new(SetBindingController::default());
        for ((kind, _), object) in before.objects() {
            after.put(*kind, object.clone());
        }
        assert_eq!(after.settle(), NOTHING);
    }
}
