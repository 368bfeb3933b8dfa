//! How a keeper acts: through the same stage as a request, as a user of its own.

use std::sync::Arc;

use berth_hub_guard::User;
use berth_hub_store::Entry;
use berth_hub_wire::{Query, Status};
use serde_json::Value;

use crate::core::Core;
use crate::registry::{Registry, Resource};
use crate::resource::{Outcome, Step, Terms, delete};
use crate::write::{self, Author, Lost};

/// A keeper's way to write.
#[derive(Debug, Clone)]
pub(crate) struct Hand {
    core: Arc<Core>,
    user: Arc<User>,
    /// Keepers say nothing beside what they write.
    query: Query,
}

impl Hand {
    /// The hand of the controller of this name, as Kubernetes calls it.
    pub(crate) fn new(core: Arc<Core>, controller: &str) -> Self {
        let mut user = User::service_account("kube-system", controller, "");
        // Keepers are the hub itself; the name is for webhooks that look at who acts.
        user.groups.push("system:masters".to_owned());
        Self::as_user(core, user)
    }

    /// The hand of this user.
    pub(crate) fn as_user(core: Arc<Core>, user: User) -> Self {
        Self { core, user: Arc::new(user), query: Query::default() }
    }

    fn author<'a>(&'a self, registry: &'a Registry) -> Author<'a> {
        Author {
            core: &self.core,
            registry,
            user: &self.user,
            query: &self.query,
            now: self.core.clock.now(),
        }
    }

    /// Deletes an object as a request would. One that is gone already is fine.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        entry: &Entry,
        terms: Terms,
    ) -> Result<(), Status> {
        let registry = self.core.registry();
        let author = self.author(&registry);
        let terms = Terms { uid: Some(entry.uid().to_owned()), ..terms };
        let act = author.act(resource, &entry.key().namespace, &entry.key().name);
        match write::remove(&author, &act, &terms, &mut Vec::new()).await {
            Err(status) if !matches!(status.code(), 404 | 409) => Err(status),
            _ => Ok(()),
        }
    }

    /// Keeps an object in this state, or removes it when that completes its deletion. A race that is lost is no failure:
    /// whoever won left a chore of its own.
    pub(crate) async fn keep(
        &self,
        resource: &Resource,
        entry: &Arc<Entry>,
        object: Value,
    ) -> Result<(), Status> {
        let live = crate::read::parse(entry.json());
        let step = if delete::completes(resource, &object, &live) {
            Step::Remove(object)
        } else {
            Step::Update(object)
        };
        self.step(resource, entry, step).await
    }

    /// Removes an object in this last state.
    pub(crate) async fn remove(
        &self,
        resource: &Resource,
        entry: &Arc<Entry>,
        last: Value,
    ) -> Result<(), Status> {
        self.step(resource, entry, Step::Remove(last)).await
    }

    async fn step(&self, resource: &Resource, entry: &Arc<Entry>, step: Step) -> Result<(), Status> {
        let registry = self.core.registry();
        let author = self.author(&registry);
        let act = author.act(resource, &entry.key().namespace, &entry.key().name);
        let outcome = Outcome::written(step, Vec::new());
        match write::commit(&author, &act, &outcome, Some(entry), Vec::new()).await {
            Ok(_) | Err(Lost::Race(_) | Lost::Grounds) => Ok(()),
            Err(Lost::Refused(status)) => Err(status),
        }
    }

    /// Makes an object. One of that name is fine.
    pub(crate) async fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Value,
    ) -> Result<(), Status> {
        let registry = self.core.registry();
        match write::make(&self.author(&registry), resource, namespace, object).await {
            Err(status) if status.code() != 409 => Err(status),
            _ => Ok(()),
        }
    }
}
