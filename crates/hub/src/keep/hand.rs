//! How a keeper acts: through the same functions as a request, as a user of its own.

use std::sync::Arc;

use berth_hub_guard::User;
use berth_hub_store::Entry;
use berth_hub_wire::{Query, Status};
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::core::Core;
use crate::registry::Resource;
use crate::request::{Call, Lost, commit, deletion_act, make, remove};
use crate::resource::{Outcome, Step, Terms, delete};

/// A keeper's way to write.
#[derive(Debug, Clone)]
pub(crate) struct Hand {
    core: Arc<Core>,
    user: Arc<User>,
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
        Self { core, user: Arc::new(user) }
    }

    fn call(&self) -> Call {
        Call {
            registry: self.core.registry(),
            now: self.core.clock.now(),
            core: Arc::clone(&self.core),
            user: Arc::clone(&self.user),
            method: Method::POST,
            path: String::new(),
            headers: HeaderMap::new(),
            query: Query::default(),
            pretty: false,
        }
    }

    /// Deletes an object as a request would. One that is gone already is fine.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        entry: &Entry,
        terms: Terms,
    ) -> Result<(), Status> {
        let call = self.call();
        let key = entry.key();
        let terms = Terms { uid: Some(entry.uid().to_owned()), ..terms };
        let act = deletion_act(&call, resource, &key.namespace, &key.name, false);
        match remove(&call, &act, &terms, &mut Vec::new()).await {
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
        let call = self.call();
        let act = deletion_act(&call, resource, &entry.key().namespace, &entry.key().name, false);
        match commit(&call, &act, &Outcome::written(step, Vec::new()), Some(entry), Vec::new()).await {
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
        match make(&self.call(), resource, namespace, object).await {
            Err(status) if status.code() != 409 => Err(status),
            _ => Ok(()),
        }
    }
}
