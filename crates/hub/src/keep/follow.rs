//! Which tasks follow from a chore.

use std::sync::Arc;

use super::garbage;
use super::task::{Task, owner};
use super::trust;
use crate::chore::Chore;
use crate::core::Core;
use crate::read::parse;

/// Asks for what may be due because an object was written or removed.
pub(super) fn follow(core: &Core, chore: &Chore, mut ask: impl FnMut(Task)) {
    let key = chore.entry.key();
    let resource = key.resource.as_str();
    if chore.removed {
        for dependent in core.ledger.dependents(chore.entry.uid()) {
            ask(Task::Dependent(dependent));
        }
        let last = parse(chore.entry.json());
        for reference in garbage::references(&last) {
            if let Some((_, owner)) = owner(core, &key.namespace, &reference) {
                ask(Task::Owner(owner.key().clone()));
            }
        }
        if !key.namespace.is_empty() {
            ask(Task::Namespace(Arc::clone(&key.namespace)));
        }
        if core
            .ledger
            .find(&core.definitions, "", resource)
            .is_some_and(|definition| definition.is_deleting())
        {
            ask(Task::Definition(resource.into()));
        }
    } else {
        if chore.entry.owners().len() > 0 {
            ask(Task::Dependent(key.clone()));
        }
        if chore.entry.is_deleting() && chore.entry.has_finalizers() {
            ask(Task::Owner(key.clone()));
        }
    }
    match resource {
        "namespaces" => {
            ask(Task::Namespace(Arc::clone(&key.name)));
        }
        "secrets" if !chore.removed => {
            ask(Task::Secret(key.clone()));
        }
        "serviceaccounts" if chore.removed => {
            ask(Task::Secrets(Arc::clone(&key.namespace)));
        }
        "configmaps" if *key.name == *trust::NAME => {
            ask(Task::Namespace(Arc::clone(&key.namespace)));
        }
        "pods" | "poddisruptionbudgets.policy" => {
            if resource == "pods" && !chore.removed && chore.entry.is_deleting() {
                ask(Task::Pod(key.clone()));
            }
            ask(Task::Budgets(Arc::clone(&key.namespace)));
        }
        "customresourcedefinitions.apiextensions.k8s.io" => {
            ask(if chore.removed { Task::Names } else { Task::Definition(Arc::clone(&key.name)) });
        }
        "clusterroles.rbac.authorization.k8s.io" => {
            ask(Task::Roles);
        }
        _ => {}
    }
}
