//! Bindings that follow from RBAC: whom a namespace's service account `placement` may bind is bound.
//!
//! Owns the index from ClusterRoles, ClusterRoleBindings, sets and namespaces to the bindings each namespace is entitled
//! to, kept by difference: a change names the namespaces it concerns and costs what it touches. It never asks for a
//! change to a binding without our label: what was made by hand stays, also when it has the name of one we want.
//!
//! - Only ClusterRoleBindings count, and only subjects of kind ServiceAccount: sets have no namespace, so a RoleBinding
//!   grants nothing on them, and a right given to a whole group is not a wish of each of its namespaces.
//! - Only sets that exist are bound; a set that comes later is bound when it comes, and one that goes takes our
//!   binding with it.
//! - A namespace that is not there, or on its way out, is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_api::ManagedClusterSetBinding;
use berth_api::names::{PLACEMENT_SERVICE_ACCOUNT, label};
use hashbrown::{HashMap, HashSet};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};

use super::rights::Rights;

/// A ClusterRoleBinding, as far as it concerns us.
#[derive(Debug, Default, PartialEq)]
struct Grant {
    role: Arc<str>,
    /// Namespaces whose service account it names; never empty.
    namespaces: BTreeSet<Arc<str>>,
}

/// Who is entitled to which sets.
#[derive(Debug, Default)]
pub struct Grants {
    /// Roles that grant something.
    roles: HashMap<Arc<str>, Rights>,
    /// Bindings that name the service account of some namespace.
    held: HashMap<Arc<str>, Grant>,
    /// Bindings by the role they refer to, known or not.
    by_role: HashMap<Arc<str>, HashSet<Arc<str>>>,
    /// Bindings by namespace.
    by_namespace: HashMap<Arc<str>, HashSet<Arc<str>>>,
    /// Roles by a set they name, existing or not.
    by_set: HashMap<Arc<str>, HashSet<Arc<str>>>,
    /// Roles that grant all sets.
    boundless: HashSet<Arc<str>>,
    sets: BTreeSet<Arc<str>>,
    /// Namespaces that are there to stay.
    namespaces: HashSet<Arc<str>>,
}

/// What is to be done to the bindings of one namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantChanges<'b> {
    /// Bindings to create.
    pub create: Vec<ManagedClusterSetBinding>,
    /// Bindings of ours whose spec names another set than it should, with that set's name. The spec is to be put right.
    pub repair: Vec<(&'b ManagedClusterSetBinding, Arc<str>)>,
    /// Bindings of ours that nothing entitles to any more.
    pub delete: Vec<&'b ManagedClusterSetBinding>,
}

impl GrantChanges<'_> {
    /// Whether all is as it should be.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.repair.is_empty() && self.delete.is_empty()
    }
}

/// Whether a binding follows from RBAC, by our own label.
pub fn is_ours(binding: &ManagedClusterSetBinding) -> bool {
    let labels = binding.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::BOUND_BY)).is_some_and(|value| value == label::BOUND_BY_RBAC)
}

/// Namespaces, each once and in order.
type Namespaces = BTreeSet<Arc<str>>;

impl Grants {
    /// Takes in a role as it is now, or that it is gone. The namespaces whose entitlement may be another come back.
    pub fn role(&mut self, name: &str, after: Option<&ClusterRole>) -> Namespaces {
        let rights = after.map(Rights::of).unwrap_or_default();
        let before = self.roles.get(name).cloned().unwrap_or_default();
        if before == rights {
            return Namespaces::new();
        }
        let name: Arc<str> = name.into();
        match &before {
            Rights::None => {}
            Rights::Named(sets) => sets.iter().for_each(|set| detach(&mut self.by_set, set, &name)),
            Rights::All => {
                self.boundless.remove(&name);
            }
        }
        match &rights {
            Rights::None => {}
            Rights::Named(sets) => sets.iter().for_each(|set| attach(&mut self.by_set, set, &name)),
            Rights::All => {
                self.boundless.insert(name.clone());
            }
        }
        let touched = self.holders(&name);
        if rights == Rights::None {
            self.roles.remove(&name);
        } else {
            self.roles.insert(name, rights);
        }
        touched
    }

    /// Takes in a ClusterRoleBinding as it is now, or that it is gone. The namespaces whose entitlement may be another
    /// come back.
    pub fn role_binding(&mut self, name: &str, after: Option<&ClusterRoleBinding>) -> Namespaces {
        let grant = after.and_then(Grant::of);
        if self.held.get(name) == grant.as_ref() {
            return Namespaces::new();
        }
        let name: Arc<str> = name.into();
        let mut touched = Namespaces::new();
        let before = self.held.remove(&name);
        if let Some(before) = &before {
            detach(&mut self.by_role, &before.role, &name);
            before.namespaces.iter().for_each(|namespace| detach(&mut self.by_namespace, namespace, &name));
        }
        if let Some(grant) = &grant {
            attach(&mut self.by_role, &grant.role, &name);
            grant.namespaces.iter().for_each(|namespace| attach(&mut self.by_namespace, namespace, &name));
        }
        let same_role = before.as_ref().map(|grant| &grant.role) == grant.as_ref().map(|grant| &grant.role);
        for (one, other) in [(&before, &grant), (&grant, &before)] {
            let Some(one) = one.as_ref().filter(|one| self.roles.contains_key(&one.role)) else { continue };
            let kept = other.as_ref().filter(|_| same_role).map(|other| &other.namespaces);
            let moved =
                one.namespaces.iter().filter(|namespace| kept.is_none_or(|kept| !kept.contains(*namespace)));
            touched.extend(moved.cloned());
        }
        if let Some(grant) = grant {
            self.held.insert(name, grant);
        }
        touched
    }

    /// Takes in whether a set exists. The namespaces whose entitlement may be another come back.
    pub fn set(&mut self, name: &str, exists: bool) -> Namespaces {
        let name: Arc<str> = name.into();
        let changed = if exists { self.sets.insert(name.clone()) } else { self.sets.remove(&name) };
        if !changed {
            return Namespaces::new();
        }
        let roles = self.by_set.get(&name).into_iter().flatten().chain(&self.boundless);
        roles.flat_map(|role| self.holders(role)).collect()
    }

    /// Takes in a namespace as it is now, or that it is gone. Whether what it is entitled to may be another.
    pub fn namespace(&mut self, name: &str, after: Option<&Namespace>) -> bool {
        let stays = after.is_some_and(|namespace| {
            let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
            namespace.metadata.deletion_timestamp.is_none() && phase != Some("Terminating")
        });
        let changed = if stays { self.namespaces.insert(name.into()) } else { self.namespaces.remove(name) };
        changed && self.by_namespace.contains_key(name)
    }

    /// The sets a namespace is entitled to; `None` if it is to be left alone because it is not there, or not for long.
    pub fn entitled(&self, namespace: &str) -> Option<BTreeSet<Arc<str>>> {
        if !self.namespaces.contains(namespace) {
            return None;
        }
        let mut sets = BTreeSet::new();
        let grants = self.by_namespace.get(namespace).into_iter().flatten();
        for rights in grants.filter_map(|grant| self.roles.get(&self.held.get(grant)?.role)) {
            match rights {
                Rights::None => {}
                Rights::Named(names) => {
                    sets.extend(names.iter().filter(|set| self.sets.contains(*set)).cloned());
                }
                Rights::All => return Some(self.sets.clone()),
            }
        }
        Some(sets)
    }

    /// What is to be done so that a namespace with the bindings `existing` has what it is entitled to.
    pub fn changes<'b>(
        &self,
        namespace: &str,
        existing: impl IntoIterator<Item = &'b ManagedClusterSetBinding>,
    ) -> GrantChanges<'b> {
        let mut changes = GrantChanges::default();
        let Some(mut wanted) = self.entitled(namespace) else { return changes };
        for binding in existing {
            let name = binding.metadata.name.as_deref().unwrap_or_default();
            let entitled = wanted.take(name);
            // One on its way out is made anew when it is gone, if it is still wanted then.
            if !is_ours(binding) || binding.metadata.deletion_timestamp.is_some() {
                continue;
            }
            match entitled {
                None => changes.delete.push(binding),
                Some(set) if binding.cluster_set() != Some(&*set) => changes.repair.push((binding, set)),
                Some(_) => {}
            }
        }
        changes.create = wanted.iter().map(|set| new_binding(namespace, set)).collect();
        changes
    }

    /// The namespaces that a role is granted to.
    fn holders(&self, role: &str) -> Namespaces {
        let grants = self.by_role.get(role).into_iter().flatten();
        grants.filter_map(|grant| self.held.get(grant)).flat_map(|grant| &grant.namespaces).cloned().collect()
    }
}

impl Grant {
    fn of(binding: &ClusterRoleBinding) -> Option<Self> {
        let role = &binding.role_ref;
        if role.kind != "ClusterRole" {
            return None;
        }
        let subjects = binding.subjects.iter().flatten();
        let accounts = subjects.filter(|subject| {
            subject.kind == "ServiceAccount"
                && subject.name == PLACEMENT_SERVICE_ACCOUNT
                && subject.api_group.as_deref().unwrap_or_default().is_empty()
        });
        let namespaces: BTreeSet<Arc<str>> =
            accounts.filter_map(|subject| subject.namespace.as_deref()).map(Arc::from).collect();
        (!namespaces.is_empty()).then(|| Self { role: role.name.as_str().into(), namespaces })
    }
}

fn new_binding(namespace: &str, set: &Arc<str>) -> ManagedClusterSetBinding {
    let mut binding = ManagedClusterSetBinding::new(set);
    binding.metadata.namespace = Some(namespace.to_owned());
    let labels = [(label::BOUND_BY.to_owned(), label::BOUND_BY_RBAC.to_owned())];
    binding.metadata.labels = Some(BTreeMap::from(labels));
    binding.spec.get_or_insert_default().cluster_set = Some(set.to_string());
    binding
}

fn attach(index: &mut HashMap<Arc<str>, HashSet<Arc<str>>>, key: &Arc<str>, entry: &Arc<str>) {
    index.entry(key.clone()).or_default().insert(entry.clone());
}

fn detach(index: &mut HashMap<Arc<str>, HashSet<Arc<str>>>, key: &Arc<str>, entry: &Arc<str>) {
    if let Some(entries) = index.get_mut(key) {
        entries.remove(entry);
        if entries.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
