//! Something to look at, and what is done about it.
//!
//! Each file does one kind of task: it reads the state as it is now, asks a pure function what is due, and writes through
//! the same stage as everybody else. So doing a task twice, late, or beside others comes to the same: a write that another
//! got in the way of is left to the task that the other write asks for.

mod budgets;
mod definition;
mod events;
mod garbage;
mod namespace;
mod pod;
mod roles;
mod secret;

use std::sync::Arc;
use std::time::Duration;

use berth_hub_store::{Entry, Key, ResourceKey};
use berth_hub_wire::Status;
use futures::StreamExt as _;
use futures::stream::FuturesOrdered;

use super::hand::Hand;
use crate::core::Core;
use crate::registry::Resource;
use crate::resource::Terms;

pub(super) use garbage::owner;

/// How often events are looked through, and leases of nodes whose pods wait.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long to wait before looking again at what another write got in the way of.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Objects that one task deletes at once: they share a flush of the log, and a webhook gets no more calls than that.
const DELETIONS_AT_ONCE: usize = 16;

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Task {
    /// Whether an object's owners are still there.
    Dependent(Key),
    /// Whether an owner that is being deleted may go.
    Owner(Key),
    /// A namespace: what every one has, its end.
    Namespace(Arc<str>),
    /// A Secret that may be for the token of a service account.
    Secret(Key),
    /// The Secrets of a namespace that lost a service account.
    Secrets(Arc<str>),
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

impl Task {
    /// Whether it deletes objects as a client would, and so may wait for webhooks.
    pub(super) fn may_wait(&self) -> bool {
        matches!(
            self,
            Self::Dependent(_)
                | Self::Owner(_)
                | Self::Namespace(_)
                | Self::Definition(_)
                | Self::Secret(_)
                | Self::Secrets(_)
        )
    }
}

/// When a task is to be done again, if it is known already.
type Again = Option<Duration>;

/// Who does the tasks.
#[derive(Debug)]
pub(super) struct Worker {
    core: Arc<Core>,
    garbage: Hand,
    namespaces: Hand,
    tokens: Hand,
    trust: Hand,
}

impl Worker {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self {
            garbage: Hand::new(Arc::clone(&core), "generic-garbage-collector"),
            namespaces: Hand::new(Arc::clone(&core), "namespace-controller"),
            tokens: Hand::new(Arc::clone(&core), "tokens-controller"),
            trust: Hand::new(Arc::clone(&core), "root-ca-cert-publisher"),
            core,
        }
    }

    /// Does a task; says when to do it again.
    pub(super) async fn perform(&self, task: &Task) -> Result<Again, Status> {
        match task {
            Task::Dependent(key) => self.dependent(key).await.map(|()| None),
            Task::Owner(key) => self.owner_ends(key).await,
            Task::Namespace(name) => self.namespace(name).await,
            Task::Secret(key) => self.secret(key).await.map(|()| None),
            Task::Secrets(namespace) => self.secrets(namespace).await.map(|()| None),
            Task::Definition(name) => self.definition(name).await.map(|()| None),
            Task::Pod(key) => self.pod(key).await,
            Task::Budgets(namespace) => self.budgets(namespace).await,
            Task::Names => self.names().await.map(|()| None),
            Task::Roles => self.roles().await.map(|()| None),
            Task::Events => self.events().await.map(|()| Some(SWEEP_EVERY)),
        }
    }

    /// Deletes objects as a client would, several at once; what went wrong, in the order of the objects.
    async fn delete_all(&self, hand: &Hand, entries: &[Arc<Entry>], terms: &Terms) -> Vec<Status> {
        let (mut failures, mut running, mut rest) = (Vec::new(), FuturesOrdered::new(), entries.iter());
        loop {
            while running.len() < DELETIONS_AT_ONCE
                && let Some(entry) = rest.next()
            {
                if let Some(resource) = self.resource(&entry.key().resource) {
                    running
                        .push_back(async move { hand.delete(&resource, entry, terms.clone()).await.err() });
                }
            }
            match running.next().await {
                Some(failure) => failures.extend(failure),
                None => return failures,
            }
        }
    }

    fn resource(&self, storage: &ResourceKey) -> Option<Arc<Resource>> {
        self.core.registry().stored(storage).cloned()
    }
}
