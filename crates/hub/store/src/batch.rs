//! Deciding a group of transactions before any of them is durable.
//!
//! Pure: it reads what is published, holds what is pending over it, and says what to append and what to answer. It never
//! appends, publishes or answers itself.

use std::collections::HashMap;
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::CommitError;
use crate::event::{Event, EventKind};
use crate::key::Key;
use crate::record::{Operation, Record};
use crate::replay::Names;
use crate::revision::Revision;
use crate::state::State;
use crate::write::{Change, Check, Write};

/// The outcome of one transaction, given that the batch becomes durable.
pub(crate) type Outcome = Result<Vec<Arc<Entry>>, CommitError>;

/// Transactions that become durable together.
pub(crate) struct Batch<'a> {
    state: &'a State,
    names: &'a mut Names,
    head: Revision,
    /// The state of what the batch has touched so far; none for what it deleted.
    pending: HashMap<Key, Option<Arc<Entry>>>,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<Arc<Event>>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(state: &'a State, names: &'a mut Names) -> Self {
        let head = state.revision();
        Self { state, names, head, pending: HashMap::new(), records: Vec::new(), events: Vec::new() }
    }

    /// Decides one transaction on top of those before it: all of its writes, or none.
    pub(crate) fn add(&mut self, checks: &[Check], writes: Vec<Write>) -> Outcome {
        for (index, check) in checks.iter().enumerate() {
            let current = self.current(&check.key, &[]);
            if !check.expect.holds(current.as_deref()) {
                return Err(CommitError::Conflict { index, current });
            }
        }
        let mut steps: Vec<(Record, Arc<Event>)> = Vec::with_capacity(writes.len());
        for (index, Write { key, expect, change }) in writes.into_iter().enumerate() {
            let current = self.current(&key, &steps);
            let possible = matches!(change, Change::Put(_)) || current.is_some();
            if !possible || !expect.holds(current.as_deref()) {
                return Err(CommitError::Conflict { index: checks.len() + index, current });
            }
            let revision = Revision(self.head.0 + steps.len() as u64 + 1);
            steps.push(self.step(key, revision, change, current));
        }
        self.head = Revision(self.head.0 + steps.len() as u64);
        let mut entries = Vec::with_capacity(steps.len());
        for (record, event) in steps {
            let left = (event.kind() != EventKind::Deleted).then(|| Arc::clone(event.entry()));
            self.pending.insert(event.entry().key().clone(), left);
            entries.push(Arc::clone(event.entry()));
            self.records.push(record);
            self.events.push(event);
        }
        Ok(entries)
    }

    fn step(
        &mut self,
        key: Key,
        revision: Revision,
        change: Change,
        current: Option<Arc<Entry>>,
    ) -> (Record, Arc<Event>) {
        let (operation, draft) = match change {
            Change::Put(draft) => (Operation::Put, draft),
            Change::Delete(draft) => (Operation::Delete, draft),
        };
        let kind = match (operation, &current) {
            (Operation::Delete, _) => EventKind::Deleted,
            (Operation::Put, Some(_)) => EventKind::Modified,
            (Operation::Put, None) => EventKind::Added,
        };
        let key = match &current {
            Some(current) => current.key().clone(),
            None => self.names.share(key),
        };
        let created = current.as_ref().map_or(revision, |current| current.created());
        let (json, metadata, meta) = draft.finish(revision);
        let record = Record {
            revision,
            operation,
            key: key.clone(),
            created,
            previous: current.as_ref().map_or(Revision::ZERO, |current| current.revision()),
            metadata: metadata.clone(),
            json: json.clone(),
        };
        let entry = Arc::new(Entry::new(key, revision, created, json, metadata, meta));
        (record, Arc::new(Event::new(kind, entry, current)))
    }

    /// The state of `key` after everything decided so far, `steps` of the transaction at hand included.
    fn current(&self, key: &Key, steps: &[(Record, Arc<Event>)]) -> Option<Arc<Entry>> {
        if let Some((_, event)) = steps.iter().rev().find(|(_, event)| event.entry().key() == key) {
            return (event.kind() != EventKind::Deleted).then(|| Arc::clone(event.entry()));
        }
        match self.pending.get(key) {
            Some(pending) => pending.clone(),
            None => self.state.get(&key.resource, &key.namespace, &key.name),
        }
    }
}
