//! From records to what readers see: opening a log, and catching up with it after a failure.
//!
//! Owns the check that a log fits together: revisions ascend without a gap after the floor, and every change names the
//! state that it replaces. It never writes.

use std::collections::HashSet;
use std::sync::Arc;

use crate::backend::Backend;
use crate::entry::Entry;
use crate::error::{BackendError, StoreError};
use crate::event::{Event, EventKind};
use crate::key::{Key, ResourceKey};
use crate::meta::Meta;
use crate::record::{Operation, Record};
use crate::revision::Revision;
use crate::state::State;
use crate::trail::Trail;

/// Shares the text of keys: ten thousand objects in one namespace hold its name once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    resources: HashSet<ResourceKey>,
    namespaces: HashSet<Arc<str>>,
}

impl Names {
    pub(crate) fn share(&mut self, key: Key) -> Key {
        let Key { resource, namespace, name } = key;
        let resource = self.resources.get(&resource).cloned().unwrap_or_else(|| {
            self.resources.insert(resource.clone());
            resource
        });
        let namespace = self.namespaces.get(&namespace).cloned().unwrap_or_else(|| {
            self.namespaces.insert(Arc::clone(&namespace));
            namespace
        });
        Key { resource, namespace, name }
    }

    /// Lets go of the namespaces of which nothing is left.
    pub(crate) fn forget_unused(&mut self) {
        self.namespaces.retain(|namespace| Arc::strong_count(namespace) > 1);
    }
}

/// The change that `record` is, given the state it replaces.
pub(crate) fn event_of(record: &Record, key: Key, previous: Option<Arc<Entry>>) -> Result<Event, String> {
    let meta = Meta::read(&record.json, record.metadata.clone()).map_err(|error| {
        format!("the metadata of {key} at revision {} cannot be read: {error}", record.revision)
    })?;
    let kind = match (record.operation, &previous) {
        (Operation::Delete, _) => EventKind::Deleted,
        (Operation::Put, None) => EventKind::Added,
        (Operation::Put, Some(_)) => EventKind::Modified,
    };
    let entry =
        Entry::new(key, record.revision, record.created, record.json.clone(), record.metadata.clone(), meta);
    Ok(Event::new(kind, Arc::new(entry), previous))
}

/// Reads a log into `state` and `trail` record by record.
pub(crate) struct Replay<'a> {
    state: &'a State,
    names: &'a mut Names,
    trail: &'a mut Trail,
    floor: Revision,
    last: Revision,
    /// Records below the floor that nothing needs any more: an earlier compaction was interrupted.
    pub(crate) obsolete: Vec<Revision>,
}

impl<'a> Replay<'a> {
    /// Everything up to `last` is in `state` already.
    pub(crate) fn new(
        state: &'a State,
        names: &'a mut Names,
        trail: &'a mut Trail,
        floor: Revision,
        last: Revision,
    ) -> Self {
        Self { state, names, trail, floor, last, obsolete: Vec::new() }
    }

    /// Reads everything after the last known revision; how many records that were.
    pub(crate) fn run(&mut self, backend: &mut dyn Backend) -> Result<usize, StoreError> {
        let mut count = 0;
        let mut broken = None;
        let walked = backend.read(self.last, &mut |record| {
            count += 1;
            self.step(&record).map_err(|detail| {
                broken = Some(detail);
                BackendError::Failed("the log does not fit together".into())
            })
        });
        self.state.shrink();
        match broken {
            Some(detail) => Err(StoreError::Log(detail)),
            None => Ok(walked.map(|()| count)?),
        }
    }

    fn step(&mut self, record: &Record) -> Result<(), String> {
        let revision = record.revision;
        if revision <= self.last {
            return Err(format!("revision {revision} follows revision {}", self.last));
        }
        if revision > self.floor && revision != self.last.max(self.floor).next() {
            return Err(format!(
                "revisions between {} and {revision} are missing",
                self.last.max(self.floor)
            ));
        }
        self.last = revision;
        let current = self.state.get(&record.key.resource, &record.key.namespace, &record.key.name);
        let key = match &current {
            Some(current) => current.key().clone(),
            None => self.names.share(record.key.clone()),
        };
        let replaced = current.as_ref().map(|entry| entry.revision());
        if revision > self.floor {
            if record.previous != replaced.unwrap_or_default() {
                return Err(format!(
                    "revision {revision} of {key} replaces revision {}, which is not there",
                    record.previous
                ));
            }
            let event = Arc::new(event_of(record, key, current)?);
            self.state.publish(std::slice::from_ref(&event));
            self.trail.push(record);
        } else {
            self.obsolete.extend(replaced);
            if record.operation == Operation::Delete {
                self.obsolete.push(revision);
            }
            let event = event_of(record, key, current)?;
            self.state.place(event.kind(), event.entry(), event.previous());
        }
        Ok(())
    }
}
