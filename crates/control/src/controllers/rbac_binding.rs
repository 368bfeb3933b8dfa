//! The RBAC binding controller: grants to a namespace's service account `placement` in, bindings out.
//!
//! Owns the index of bindings by namespace beside the engine's index of grants. Who is entitled to what is the engine's
//! verdict; bindings without our label are never written.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use berth_api::ManagedClusterSetBinding;
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::sets::Grants;
use serde_json::json;

use super::{Controller, Verdict};
use crate::act::{Target, Write};
use crate::due::Due;
use crate::names::ControllerName;
use crate::rights::Need;
use crate::world::{Change, Kind, Object, World};

/// Turns grants into bindings. Its subjects are namespaces.
#[derive(Debug, Default)]
pub struct RbacBindingController {
    grants: Grants,
    /// The names of all bindings of a namespace, ours or not.
    bindings: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl RbacBindingController {
    fn index(&mut self, change: &Change) {
        let ObjectKey { namespace, name } = &change.key;
        if change.after.is_some() {
            self.bindings.entry(namespace.clone()).or_default().insert(name.clone());
        } else if let Some(names) = self.bindings.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                self.bindings.remove(namespace);
            }
        }
    }

    /// The bindings of a namespace, in the order of their names.
    fn existing<'w>(&self, namespace: &Arc<str>, world: &'w World) -> Vec<&'w Arc<ManagedClusterSetBinding>> {
        let names = self.bindings.get(namespace).into_iter().flatten();
        let keys = names.map(|name| ObjectKey { namespace: namespace.clone(), name: name.clone() });
        keys.filter_map(|key| world.bindings.get(&key)).collect()
    }
}

impl Controller for RbacBindingController {
    fn name(&self) -> ControllerName {
        ControllerName::RbacBinding
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::ClusterRole, Kind::ClusterRoleBinding, Kind::Set, Kind::Binding, Kind::Namespace]
    }

    fn needs(&self) -> &'static [Need] {
        &[
            Need::Create(Kind::Binding),
            Need::Patch(Kind::Binding),
            Need::Delete(Kind::Binding),
            // A namespace's service account that may bind a set gets its binding from us: so we must be able to bind any.
            Need::Might { verb: "create", kind: Kind::Set, part: "bind", names: &[] },
        ]
    }

    fn observe(&mut self, change: &Change, _: &World, due: &mut Due) {
        let name = &change.key.name;
        let touched = match (change.kind(), &change.after) {
            (Kind::ClusterRole, Some(Object::ClusterRole(role))) => self.grants.role(name, Some(role)),
            (Kind::ClusterRole, _) => self.grants.role(name, None),
            (Kind::ClusterRoleBinding, Some(Object::ClusterRoleBinding(binding))) => {
                self.grants.role_binding(name, Some(binding))
            }
            (Kind::ClusterRoleBinding, _) => self.grants.role_binding(name, None),
            (Kind::Set, after) => self.grants.set(name, after.is_some()),
            (Kind::Binding, _) => {
                self.index(change);
                BTreeSet::from([change.key.namespace.clone()])
            }
            (Kind::Namespace, after) => {
                let namespace = match after {
                    Some(Object::Namespace(namespace)) => Some(&**namespace),
                    _ => None,
                };
                // Bindings may have been seen before their namespace; what a grant no longer covers goes then, too.
                let is_touched = self.grants.namespace(name, namespace) || self.bindings.contains_key(name);
                if after.is_none() {
                    due.forget(&change.key);
                }
                is_touched.then(|| name.clone()).into_iter().collect()
            }
            _ => return,
        };
        for namespace in &touched {
            due.mark(&ObjectKey::new("", namespace));
        }
    }

    fn decide(&mut self, subject: &ObjectKey, world: &World, _: Moment) -> Verdict {
        let existing = self.existing(&subject.name, world);
        let changes = self.grants.changes(&subject.name, existing.iter().map(|binding| &***binding));
        if changes.is_empty() {
            return Verdict { outcome: "unchanged", ..Verdict::default() };
        }
        let target = |binding: &ManagedClusterSetBinding| Target {
            kind: Kind::Binding,
            key: ObjectKey::of(&binding.metadata),
            uid: binding.metadata.uid.clone(),
            resource_version: binding.metadata.resource_version.clone(),
        };
        let repaired = changes.repair.iter().map(|(binding, set)| Write::Patch {
            target: target(binding),
            subresource: None,
            patch: json!({"spec": {"clusterSet": **set}}),
        });
        let deleted = changes.delete.iter().map(|binding| Write::Delete(target(binding)));
        let written = repaired.chain(deleted).collect::<Vec<_>>();
        let created =
            changes.create.into_iter().map(|binding| Write::Create(Object::Binding(Arc::new(binding))));
        Verdict { writes: created.chain(written).collect(), outcome: "changed", ..Verdict::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::controllers::stage::Stage;

    const NOTHING: [&str; 0] = [];

    fn role(sets: &[&str]) -> Value {
        json!({"metadata": {"name": "binder"}, "rules": [{
            "verbs": ["create"], "apiGroups": ["cluster.open-cluster-management.io"],
            "resources": ["managedclustersets/bind"], "resourceNames": sets,
        }]})
    }

    fn grant(namespace: &str) -> Value {
        json!({
            "metadata": {"name": format!("bind-{namespace}")},
            "subjects": [{"kind": "ServiceAccount", "name": "placement", "namespace": namespace}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "binder"},
        })
    }

    fn by_hand(set: &str) -> Value {
        json!({"metadata": {"namespace": "ns1", "name": set}, "spec": {"clusterSet": set}})
    }

    /// Sets blue and red, namespaces ns1 and ns2, and a role for blue.
    fn stage() -> Stage<RbacBindingController> {
        let mut stage = Stage::new(RbacBindingController::default());
        for namespace in ["ns1", "ns2"] {
            stage.put(
                Kind::Namespace,
                json!({"metadata": {"name": namespace}, "status": {"phase": "Active"}}),
            );
        }
        for set in ["blue", "red"] {
            stage.put(Kind::Set, json!({"metadata": {"name": set}}));
        }
        stage.put(Kind::ClusterRole, role(&["blue"]));
        stage
    }

    #[test]
    fn a_grant_becomes_a_binding_and_goes_with_it() {
        let mut stage = stage();
        assert_eq!(stage.settle(), NOTHING);
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        assert_eq!(stage.settle(), ["create ManagedClusterSetBinding ns1/blue"]);
        let made = stage.get(Kind::Binding, "ns1", "blue").unwrap();
        assert_eq!(made["metadata"]["labels"], json!({"berth.dev/bound-by": "rbac"}));
        assert_eq!(made["spec"], json!({"clusterSet": "blue"}));
        stage.remove(Kind::ClusterRoleBinding, &ObjectKey::new("", "bind-ns1"));
        assert_eq!(stage.settle(), ["delete ManagedClusterSetBinding ns1/blue"]);
    }

    #[test]
    fn a_role_that_changes_moves_the_bindings_of_all_who_hold_it() {
        let mut stage = stage();
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        stage.put(Kind::ClusterRoleBinding, grant("ns2"));
        stage.settle();
        stage.put(Kind::ClusterRole, role(&["red"]));
        stage.settle();
        assert_eq!(stage.names(Kind::Binding), ["ns1/red", "ns2/red"]);
        stage.put(Kind::ClusterRole, role(&[]));
        stage.settle();
        assert_eq!(stage.names(Kind::Binding), ["ns1/blue", "ns1/red", "ns2/blue", "ns2/red"]);
        stage.put(Kind::Set, json!({"metadata": {"name": "green"}}));
        assert_eq!(
            stage.settle(),
            ["create ManagedClusterSetBinding ns1/green", "create ManagedClusterSetBinding ns2/green"]
        );
    }

    #[test]
    fn a_binding_of_ours_that_somebody_deleted_comes_back() {
        let mut stage = stage();
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        stage.settle();
        stage.remove(Kind::Binding, &ObjectKey::new("ns1", "blue"));
        assert_eq!(stage.settle(), ["create ManagedClusterSetBinding ns1/blue"]);
    }

    #[test]
    fn a_binding_made_by_hand_is_never_written() {
        let mut stage = stage();
        stage.put(Kind::Binding, by_hand("blue"));
        stage.put(Kind::Binding, by_hand("red"));
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        assert_eq!(stage.settle(), NOTHING);
        stage.remove(Kind::ClusterRoleBinding, &ObjectKey::new("", "bind-ns1"));
        assert_eq!(stage.settle(), NOTHING);
        // When its maker takes it away, the grant makes one of ours.
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        stage.remove(Kind::Binding, &ObjectKey::new("ns1", "blue"));
        assert_eq!(stage.settle(), ["create ManagedClusterSetBinding ns1/blue"]);
    }

    #[test]
    fn a_binding_of_ours_that_was_bent_is_put_right() {
        let mut stage = stage();
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        stage.settle();
        let mut bent = stage.get(Kind::Binding, "ns1", "blue").unwrap().clone();
        bent["spec"]["clusterSet"] = json!("red");
        stage.put(Kind::Binding, bent);
        assert_eq!(stage.settle(), ["patch ManagedClusterSetBinding ns1/blue"]);
        assert_eq!(stage.get(Kind::Binding, "ns1", "blue").unwrap()["spec"]["clusterSet"], "blue");
    }

    #[test]
    fn a_grant_withdrawn_while_nobody_looked_is_withdrawn_by_a_new_process() {
        let mut before = stage();
        before.put(Kind::ClusterRoleBinding, grant("ns1"));
        before.settle();
        // The bindings of the namespace are seen before it, or after.
        for first in [Kind::Namespace, Kind::Binding] {
            let mut after = Stage::new(RbacBindingController::default());
            let objects = before.objects().iter().filter(|((kind, _), _)| *kind != Kind::ClusterRoleBinding);
            let mut objects: Vec<_> = objects.collect();
            objects.sort_by_key(|((kind, _), _)| *kind != first);
            for ((kind, _), object) in objects {
                after.put(*kind, object.clone());
            }
            assert_eq!(after.settle(), ["delete ManagedClusterSetBinding ns1/blue"]);
        }
    }

    #[test]
    fn a_new_process_writes_nothing() {
        let mut before = stage();
        before.put(Kind::ClusterRoleBinding, grant("ns1"));
        before.put(Kind::Binding, by_hand("red"));
        before.settle();
        let mut after = Stage::new(RbacBindingController::default());
        for ((kind, _), object) in before.objects() {
            after.put(*kind, object.clone());
        }
        assert_eq!(after.settle(), NOTHING);
    }

    #[test]
    fn nothing_is_made_in_a_namespace_on_its_way_out() {
        let mut stage = stage();
        stage.put(Kind::Namespace, json!({"metadata": {"name": "ns1"}, "status": {"phase": "Terminating"}}));
        stage.put(Kind::ClusterRoleBinding, grant("ns1"));
        assert_eq!(stage.settle(), NOTHING);
    }
}
