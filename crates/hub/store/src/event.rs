//! One change, shared by every watcher.
//!
//! Owns the change and its encodings, each made once for all watchers. It never decides who may see it: selectors are
//! the server's.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use crate::entry::Entry;
use crate::revision::Revision;

/// The most encodings besides the plain lines that one event remembers; served versions of a resource times event types
/// stay below it, and more are simply made again.
const ENCODINGS_MAX: usize = 12;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object is new (or new to the watcher's selection).
    Added,
    /// The object changed.
    Modified,
    /// The object is gone (or gone from the watcher's selection).
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    kind: EventKind,
    entry: Arc<Entry>,
    previous: Option<Arc<Entry>>,
    lines: [OnceLock<Bytes>; 3],
    encodings: Mutex<Vec<(u64, Bytes)>>,
}

impl Event {
    pub(crate) fn new(kind: EventKind, entry: Arc<Entry>, previous: Option<Arc<Entry>>) -> Self {
        Self { kind, entry, previous, lines: Default::default(), encodings: Mutex::default() }
    }

    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        self.entry.revision()
    }

    /// What happened.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// The state after the change; for a deletion the last state, with the revision of the deletion.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// The state before the change; none when the object was created.
    pub fn previous(&self) -> Option<&Arc<Entry>> {
        self.previous.as_ref()
    }

    /// The line that announces the stored object as `kind`, made once; `make` is the same for everybody who asks.
    ///
    /// `kind` is a parameter because an object that enters or leaves a selection is announced as added or deleted.
    pub fn line(&self, kind: EventKind, make: impl FnOnce(&Entry) -> Bytes) -> Bytes {
        self.lines[kind as usize].get_or_init(|| make(&self.entry)).clone()
    }

    /// Another encoding of this event, made once. `tag` says which; the caller keeps tags apart.
    pub fn encoded(&self, tag: u64, make: impl FnOnce(&Self) -> Bytes) -> Bytes {
        // Held while encoding: a thousand watchers that wake together wait for one encoding instead of making their own.
        let mut encodings = self.encodings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = encodings.iter().find(|(known, _)| *known == tag) {
            return known.clone();
        }
        let made = make(self);
        if encodings.len() < ENCODINGS_MAX {
            encodings.push((tag, made.clone()));
        }
        made
    }

    /// The bytes that keeping this event costs, roughly: its state, and the line that some watcher asks for.
    pub(crate) fn weight(&self) -> usize {
        self.entry.weight() + self.entry.json().len()
    }
}
