//! Objects whose owners are gone, and owners that wait for their dependents.

use std::sync::Arc;

use berth_hub_store::{Entry, Key};
use berth_hub_wire::Status;
use serde_json::Value;

use super::{Again, RETRY_AFTER, Worker};
use crate::core::Core;
use crate::keep::garbage::{self, Fate, Owner, Reference};
use crate::read::parse;
use crate::registry::Resource;
use crate::resource::delete::ORPHAN;
use crate::resource::{Terms, meta};

impl Worker {
    pub(super) async fn dependent(&self, key: &Key) -> Result<(), Status> {
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

    pub(super) async fn owner_ends(&self, key: &Key) -> Result<Again, Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(None);
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
            Some(owner) if !self.still_owned(&entry, &dependents, &owner) => {
                self.garbage.keep(&resource, &entry, owner).await.map(|()| None)
            }
            // Freed dependents were committed one by one; if one of them lost a race, the owner waits for the next look.
            Some(_) => Ok(Some(RETRY_AFTER)),
            None => Ok(None),
        }
    }

    /// Whether dependents that were to be freed still name the owner.
    fn still_owned(&self, owner: &Entry, freed: &[Arc<Entry>], after: &Value) -> bool {
        let orphans = !meta::finalizers(after).contains(&ORPHAN)
            && meta::finalizers(&parse(owner.json())).contains(&ORPHAN);
        orphans
            && freed.iter().any(|entry| {
                self.core
                    .ledger
                    .get(entry.key())
                    .is_some_and(|now| now.owners().any(|uid| uid == owner.uid()))
            })
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
        match owner(&self.core, namespace, reference) {
            Some((_, entry)) if garbage::waits(&parse(entry.json())) => Owner::Waiting,
            Some(_) => Owner::Present,
            None => Owner::Gone,
        }
    }
}

/// The object an owner reference means: of that kind, name and uid.
pub(in crate::keep) fn owner(
    core: &Core,
    namespace: &str,
    reference: &Reference<'_>,
) -> Option<(Arc<Resource>, Arc<Entry>)> {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    let resource = core.registry().of_kind(group, reference.kind).cloned()?;
    let entry = core.find(&resource, if resource.namespaced { namespace } else { "" }, reference.name)?;
    (entry.uid() == reference.uid).then_some((resource, entry))
}
