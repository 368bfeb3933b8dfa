//! The task that keeps order.
//!
//! Owns the queue of chores and the clock of what is due later. Each chore leads to a look at the state as it is now, so
//! doing one twice, late, or after a restart comes to the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use berth_hub_guard::aggregate_cluster_roles;
use berth_hub_store::{Entry, Key, ListQuery, ResourceKey};
use berth_hub_wire::{LabelSelector, Status};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::garbage::{self, Fate, Owner, Reference};
use super::hand::Hand;
use super::queue::Queue;
use super::{Chore, accounts, budget, definition, ending, expiry, pods};
use crate::core::Core;
use crate::read::parse;
use crate::registry::Resource;
use crate::resource::{Propagation, Terms, meta};

/// How often events are looked through, and leases of nodes whose pods wait.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long to wait before looking again at what another write got in the way of.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    /// Whether an object's owners are still there.
    Dependent(Key),
    /// Whether an owner that is being deleted may go.
    Owner(Key),
    /// A namespace: its account, its end.
    Namespace(Arc<str>),
    /// A definition that ends.
    Definition(Arc<str>),
    /// A pod that is being deleted.
    Pod(Key),
    /// The budgets of a namespace.
    Budgets(Arc<str>),
    /// The names of definitions: one that was in the way may be gone.
    Names,
    /// Aggregated roles.
    Roles,
    /// Events.
    Events,
}

/// Keeps order.
#[derive(Debug)]
pub(crate) struct Keeper {
    core: Arc<Core>,
    work: Receiver<Chore>,
    garbage: Hand,
    namespaces: Hand,
    queue: Queue<Task>,
}

impl Keeper {
    pub(crate) fn new(core: Arc<Core>, work: Receiver<Chore>) -> Self {
        Self {
            garbage: Hand::new(Arc::clone(&core), "generic-garbage-collector"),
            namespaces: Hand::new(Arc::clone(&core), "namespace-controller"),
            core,
            work,
            queue: Queue::default(),
        }
    }

    /// Runs until told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        self.look_at_everything();
        loop {
            while let Ok(chore) = self.work.try_recv() {
                self.note(&chore);
            }
            if self.core.derived.take_overrun() {
                tracing::info!("more was written than could be followed: looking at everything");
                self.look_at_everything();
            }
            if stop.is_cancelled() {
                return;
            }
            if let Some(task) = self.queue.pop() {
                match self.perform(&task).await {
                    Ok(()) => self.queue.succeeded(&task),
                    Err(status) => {
                        if self.queue.failed(task.clone(), &status.message, Instant::now()) {
                            tracing::warn!(?task, reason = status.message, "will be tried again");
                        }
                    }
                }
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                chore = self.work.recv() => match chore {
                    Some(chore) => self.note(&chore),
                    None => return,
                },
                () = sleep_until(self.queue.next_at()) => self.queue.ripen(Instant::now()),
            }
        }
    }

    /// What a start must look at: whatever a stop may have left half done.
    fn look_at_everything(&mut self) {
        let registry = self.core.registry();
        for resource in registry.all_stored() {
            for entry in self.core.all(&resource.storage) {
                if let Some(chore) = Chore::after(&entry, false) {
                    self.note(&chore);
                }
            }
        }
        self.queue.push(Task::Roles);
        self.queue.push(Task::Events);
    }

    fn note(&mut self, chore: &Chore) {
        let key = chore.entry.key();
        let resource = key.resource.as_str();
        if chore.removed {
            for dependent in self.core.ledger.dependents(chore.entry.uid()) {
                self.queue.push(Task::Dependent(dependent));
            }
            let last = parse(chore.entry.json());
            for reference in garbage::references(&last) {
                if let Some((_, owner)) = self.owner(&key.namespace, &reference) {
                    self.queue.push(Task::Owner(owner.key().clone()));
                }
            }
            if !key.namespace.is_empty() {
                self.queue.push(Task::Namespace(Arc::clone(&key.namespace)));
            }
            self.queue.push(Task::Definition(resource.into()));
        } else {
            if chore.entry.owners().len() > 0 {
                self.queue.push(Task::Dependent(key.clone()));
            }
            if chore.entry.is_deleting() && chore.entry.has_finalizers() {
                self.queue.push(Task::Owner(key.clone()));
            }
        }
        match resource {
            "namespaces" => {
                self.queue.push(Task::Namespace(Arc::clone(&key.name)));
            }
            "pods" | "poddisruptionbudgets.policy" => {
                if resource == "pods" && !chore.removed && chore.entry.is_deleting() {
                    self.queue.push(Task::Pod(key.clone()));
                }
                self.queue.push(Task::Budgets(Arc::clone(&key.namespace)));
            }
            "customresourcedefinitions.apiextensions.k8s.io" => self.queue.push(if chore.removed {
                Task::Names
            } else {
                Task::Definition(Arc::clone(&key.name))
            }),
            "clusterroles.rbac.authorization.k8s.io" => {
                self.queue.push(Task::Roles);
            }
            _ => {}
        }
    }

    async fn perform(&mut self, task: &Task) -> Result<(), Status> {
        match task {
            Task::Dependent(key) => self.dependent(key).await,
            Task::Owner(key) => self.owner_ends(key).await,
            Task::Namespace(name) => self.namespace(name).await,
            Task::Definition(name) => self.definition(name).await,
            Task::Pod(key) => self.pod(key).await,
            Task::Budgets(namespace) => self.budgets(namespace).await,
            Task::Names => self.names().await,
            Task::Roles => self.roles().await,
            Task::Events => self.events().await,
        }
    }

    fn resource(&self, storage: &ResourceKey) -> Option<Arc<Resource>> {
        self.core.registry().stored(storage).cloned()
    }

    /// The object an owner reference means: of that kind, name and uid.
    fn owner(&self, namespace: &str, reference: &Reference<'_>) -> Option<(Arc<Resource>, Arc<Entry>)> {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        let resource = self.core.registry().of_kind(group, reference.kind).cloned()?;
        let entry =
            self.core.find(&resource, if resource.namespaced { namespace } else { "" }, reference.name)?;
        (entry.uid() == reference.uid).then_some((resource, entry))
    }

    fn standing(&self, namespace: &str, reference: &Reference<'_>) -> Owner {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        let Some(resource) = self.core.registry().of_kind(group, reference.kind).cloned() else {
            return Owner::Unknown;
        };
        if resource.namespaced && namespace.is_empty() {
            // A cluster-scoped object cannot say which namespace its owner is in.
            return Owner::Unknown;
        }
        match self.owner(namespace, reference) {
            Some((_, entry)) if garbage::waits(&parse(entry.json())) => Owner::Waiting,
            Some(_) => Owner::Present,
            None => Owner::Gone,
        }
    }

    async fn dependent(&mut self, key: &Key) -> Result<(), Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(());
        };
        let object = parse(entry.json());
        let has_dependents = !self.core.ledger.dependents(entry.uid()).is_empty();
        match garbage::decide(&object, &|reference| self.standing(&key.namespace, reference), has_dependents)
        {
            Fate::Keep => Ok(()),
            Fate::Cut(object) => self.garbage.keep(&resource, &entry, object).await,
            Fate::Delete(propagation) => {
                let terms = Terms { propagation: Some(propagation), ..Terms::default() };
                self.garbage.delete(&resource, &entry, terms).await
            }
        }
    }

    async fn owner_ends(&mut self, key: &Key) -> Result<(), Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(());
        };
        let owner = parse(entry.json());
        let dependents: Vec<Arc<Entry>> = self
            .core
            .ledger
            .dependents(entry.uid())
            .iter()
            .filter_map(|key| self.core.ledger.get(key))
            .collect();
        let values: Vec<Value> = dependents.iter().map(|dependent| parse(dependent.json())).collect();
        let ending = garbage::end(&owner, &values.iter().collect::<Vec<_>>());
        for freed in ending.freed {
            let found = dependents.iter().find(|entry| entry.uid() == meta::text(&freed, "uid"));
            if let Some(entry) = found
                && let Some(resource) = self.resource(&entry.key().resource)
            {
                self.garbage.keep(&resource, entry, freed).await?;
            }
        }
        for (position, propagation) in ending.deleted {
            let entry = &dependents[position];
            if let Some(resource) = self.resource(&entry.key().resource) {
                let terms = Terms { propagation: Some(propagation), ..Terms::default() };
                self.garbage.delete(&resource, entry, terms).await?;
            }
        }
        match ending.owner {
            // Freed dependents were committed one by one; if one of them lost a race, the owner waits for the next look.
            Some(owner) if !self.still_owned(&entry, &dependents, &owner) => {
                self.garbage.keep(&resource, &entry, owner).await
            }
            Some(_) => {
                self.queue.push_at(Task::Owner(key.clone()), Instant::now() + RETRY_AFTER);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether dependents that were to be freed still name the owner.
    fn still_owned(&self, owner: &Entry, freed: &[Arc<Entry>], after: &Value) -> bool {
        let orphans = !meta::finalizers(after).contains(&crate::resource::delete::ORPHAN)
            && meta::finalizers(&parse(owner.json())).contains(&crate::resource::delete::ORPHAN);
        orphans
            && freed.iter().any(|entry| {
                self.core
                    .ledger
                    .get(entry.key())
                    .is_some_and(|now| now.owners().any(|uid| uid == owner.uid()))
            })
    }

    async fn namespace(&mut self, name: &Arc<str>) -> Result<(), Status> {
        let Some(entry) = self.core.namespace(name) else { return Ok(()) };
        let namespace = parse(entry.json());
        let registry = self.core.registry();
        let served = |plural: &str| {
            registry
                .find("", "v1", plural)
                .cloned()
                .ok_or_else(|| Status::internal("a built-in kind is not served"))
        };
        let (namespaces, accounts_of) = (served("namespaces")?, served("serviceaccounts")?);
        let exists = self.core.find(&accounts_of, name, accounts::DEFAULT).is_some();
        if let Some(account) = accounts::decide(&namespace, exists) {
            return self.namespaces.create(&accounts_of, name, account).await;
        }
        if !meta::deleting(&namespace) {
            return Ok(());
        }
        let mut failures = Vec::new();
        for pods_only in [true, false] {
            let left = self.core.ledger.in_namespace(name);
            if pods_only != left.iter().any(|entry| entry.key().resource.as_str() == "pods") {
                continue;
            }
            for content in left
                .iter()
                .filter(|entry| !pods_only || entry.key().resource.as_str() == "pods")
                .filter(|entry| !entry.is_deleting())
            {
                let Some(resource) = self.resource(&content.key().resource) else { continue };
                let terms = Terms { propagation: Some(Propagation::Background), ..Terms::default() };
                if let Err(status) = self.namespaces.delete(&resource, content, terms).await {
                    failures.push(status.message);
                }
            }
        }
        let remains = self.remains(name);
        match ending::decide(&namespace, &remains, &failures, self.core.clock.now()) {
            ending::Next::Nothing => Ok(()),
            ending::Next::Delete { namespace, .. } => {
                if !failures.is_empty() {
                    self.queue.push_at(Task::Namespace(Arc::clone(name)), Instant::now() + RETRY_AFTER);
                }
                match namespace {
                    Some(namespace) => self.namespaces.keep(&namespaces, &entry, namespace).await,
                    None => Ok(()),
                }
            }
            ending::Next::Finish { namespace, remove: true } => {
                self.namespaces.remove(&namespaces, &entry, namespace).await
            }
            ending::Next::Finish { namespace, remove: false } => {
                self.namespaces.keep(&namespaces, &entry, namespace).await
            }
        }
    }

    fn remains(&self, namespace: &str) -> Vec<ending::Remains> {
        let mut by_resource: BTreeMap<ResourceKey, ending::Remains> = BTreeMap::new();
        for entry in self.core.ledger.in_namespace(namespace) {
            let Some(resource) = self.resource(&entry.key().resource) else { continue };
            let remains =
                by_resource.entry(entry.key().resource.clone()).or_insert_with(|| ending::Remains {
                    group: resource.group.to_string(),
                    plural: resource.plural.to_string(),
                    ..ending::Remains::default()
                });
            remains.count += 1;
            for finalizer in meta::finalizers(&parse(entry.json())) {
                *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        by_resource.into_values().collect()
    }

    /// The objects of a definition go with it. The name of a definition is how its objects are stored.
    async fn definition(&mut self, name: &Arc<str>) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(definitions) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let Some(entry) = self.core.find(definitions, "", name).filter(|entry| entry.is_deleting()) else {
            return Ok(());
        };
        let object = parse(entry.json());
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let storage = ResourceKey::new(text("/spec/group"), text("/spec/names/plural"));
        if let Some(resource) = self.resource(&storage) {
            for entry in self.core.all(&storage).iter().filter(|entry| !entry.is_deleting()) {
                self.garbage.delete(&resource, entry, Terms::default()).await?;
            }
        }
        let left = self.core.all(&storage).len();
        match definition::end(&object, left, self.core.clock.now()) {
            definition::Next::Nothing | definition::Next::Delete(None) => Ok(()),
            definition::Next::Delete(Some(object)) => self.garbage.keep(definitions, &entry, object).await,
            definition::Next::Finish { definition, remove: true } => {
                self.garbage.remove(definitions, &entry, definition).await
            }
            definition::Next::Finish { definition, remove: false } => {
                self.garbage.keep(definitions, &entry, definition).await
            }
        }
    }

    async fn names(&mut self) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(definitions) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let _alone = self.core.defining.lock().await;
        for entry in self.core.all(&definitions.storage) {
            let known = self.core.derived.definitions();
            let others: Vec<&Value> = known.iter().map(|definition| &**definition).collect();
            if let Some(object) = definition::establish(&parse(entry.json()), &others, self.core.clock.now())
            {
                self.garbage.keep(definitions, &entry, object).await?;
            }
        }
        Ok(())
    }

    async fn pod(&mut self, key: &Key) -> Result<(), Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(());
        };
        let pod = parse(entry.json());
        if !meta::deleting(&pod) {
            return Ok(());
        }
        let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        let leases = ResourceKey::new("coordination.k8s.io", "leases");
        let lease =
            self.core.ledger.find(&leases, pods::LEASE_NAMESPACE, node).map(|entry| parse(entry.json()));
        if pods::decide(&pod, lease.as_ref(), self.core.clock.now()) {
            return self.garbage.remove(&resource, &entry, pod).await;
        }
        if meta::finalizers(&pod).is_empty() {
            // A kubelet seems to be there; if it stops renewing its lease, the pod is ours to finish.
            self.queue.push_at(Task::Pod(key.clone()), Instant::now() + SWEEP_EVERY);
        }
        Ok(())
    }

    async fn budgets(&mut self, namespace: &Arc<str>) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(resource) = registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
        let query = ListQuery { namespace: Some(namespace), ..ListQuery::default() };
        let list = |storage: &ResourceKey| {
            self.core.ledger.list(storage, &query).map(|listing| listing.entries).unwrap_or_default()
        };
        let budgets = list(&resource.storage);
        if budgets.is_empty() {
            return Ok(());
        }
        let pods: Vec<Value> =
            list(&ResourceKey::new("", "pods")).iter().map(|entry| parse(entry.json())).collect();
        let now = self.core.clock.now();
        for entry in budgets {
            let object = parse(entry.json());
            let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
            let Ok(selector) = LabelSelector::from_object(selector) else { continue };
            let selected: Vec<&Value> = pods.iter().filter(|pod| selector.matches_object(pod)).collect();
            let decision =
                budget::decide(&object, &selected, &|uid| self.scale(namespace, uid, &selected), now);
            if let Some(object) = decision.budget {
                self.namespaces.keep(resource, &entry, object).await?;
            }
            if let Some(at) = decision.recheck {
                self.queue.push_at(Task::Budgets(Arc::clone(namespace)), Instant::now() + until(now, at));
            }
        }
        Ok(())
    }

    /// The replicas that the controller of this uid wants.
    fn scale(&self, namespace: &str, uid: &str, pods: &[&Value]) -> Option<i64> {
        let reference =
            pods.iter().flat_map(|pod| garbage::references(pod)).find(|reference| reference.uid == uid)?;
        let (resource, entry) = self.owner(namespace, &reference)?;
        let object = parse(entry.json());
        // A replica set speaks for the deployment above it.
        if let Some(above) = garbage::references(&object).first()
            && let Some((_, above)) = self.owner(namespace, above)
            && let Some(replicas) = parse(above.json()).pointer("/spec/replicas").and_then(Value::as_i64)
        {
            return Some(replicas);
        }
        crate::resource::scale::show(&resource, &object)
            .ok()?
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
    }

    async fn roles(&mut self) -> Result<(), Status> {
        let registry = self.core.registry();
        let Some(resource) = registry.find("rbac.authorization.k8s.io", "v1", "clusterroles") else {
            return Ok(());
        };
        let entries = self.core.all(&resource.storage);
        let roles: Vec<Value> = entries.iter().map(|entry| parse(entry.json())).collect();
        for (name, rules) in aggregate_cluster_roles(&roles) {
            let Some(position) = entries.iter().position(|entry| *entry.key().name == *name) else {
                continue;
            };
            let mut role = roles[position].clone();
            role["rules"] = rules.into();
            self.garbage.keep(resource, &entries[position], role).await?;
        }
        Ok(())
    }

    async fn events(&mut self) -> Result<(), Status> {
        self.queue.push_at(Task::Events, Instant::now() + SWEEP_EVERY);
        let Some(resource) = self.resource(&ResourceKey::new("", "events")) else { return Ok(()) };
        let now = self.core.clock.now();
        for entry in self.core.all(&resource.storage) {
            let event = parse(entry.json());
            if expiry::written(&event).is_some_and(|written| expiry::decide(written, now)) {
                self.garbage.remove(&resource, &entry, event).await?;
            }
        }
        Ok(())
    }
}

fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(at)).unwrap_or_default()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
