//! One state of one object, shared by everyone who reads it.
//!
//! Owns the JSON bytes and what was read from its metadata. It never changes after it was made, except that one derived
//! value may be remembered in it.

use std::any::Any;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::key::{Key, Place, Spot};
use crate::meta::Meta;
use crate::revision::Revision;

/// One state of an object.
pub struct Entry {
    key: Key,
    revision: Revision,
    created: Revision,
    json: Bytes,
    metadata: (u32, u32),
    meta: Meta,
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Entry {
    pub(crate) fn new(
        key: Key,
        revision: Revision,
        created: Revision,
        json: Bytes,
        metadata: Range<usize>,
        meta: Meta,
    ) -> Self {
        let metadata = (metadata.start as u32, metadata.end as u32);
        Self { key, revision, created, json, metadata, meta, derived: OnceLock::new() }
    }

    /// What the object is stored under.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The revision of this state; the same number as `metadata.resourceVersion` in [`Entry::json`].
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The revision of the write that created the object.
    pub fn created(&self) -> Revision {
        self.created
    }

    /// The complete object as compact JSON. Cloning shares the bytes.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The `metadata` member of the object as compact JSON, without the rest.
    pub fn metadata_json(&self) -> Bytes {
        self.json.slice(self.metadata_range())
    }

    pub(crate) fn metadata_range(&self) -> Range<usize> {
        self.metadata.0 as usize..self.metadata.1 as usize
    }

    /// `metadata.uid`, empty when the object has none.
    pub fn uid(&self) -> &str {
        self.meta.uid.get(&self.json)
    }

    /// The labels, sorted by key.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + '_ {
        self.meta.labels.iter().map(|(key, value)| (key.get(&self.json), value.get(&self.json)))
    }

    /// The value of the label `key`.
    pub fn label(&self, key: &str) -> Option<&str> {
        let index = self.meta.labels.binary_search_by(|(name, _)| name.get(&self.json).cmp(key)).ok()?;
        Some(self.meta.labels[index].1.get(&self.json))
    }

    /// The uids of the objects that own this one, in the order of `metadata.ownerReferences`.
    pub fn owners(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        self.meta.owners.iter().map(|uid| uid.get(&self.json))
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        self.meta.deleting
    }

    /// Whether `metadata.finalizers` names any.
    pub fn has_finalizers(&self) -> bool {
        self.meta.finalizing
    }

    /// A value computed from this entry, remembered for the next one who asks.
    ///
    /// One value is remembered per entry: the first type asked for wins, another type is computed each time.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        if let Some(known) = self.derived.get() {
            return match Arc::clone(known).downcast::<T>() {
                Ok(known) => known,
                Err(_) => Arc::new(make(self)),
            };
        }
        let made = Arc::new(make(self));
        // Losing the race to another thread only means that two equal values lived for a moment.
        let _ = self.derived.set(made.clone());
        made
    }

    /// The bytes that one more retained state costs, roughly.
    pub(crate) fn weight(&self) -> usize {
        /// Entry, event, map slot and allocator overhead; see the memory test.
        const FIXED_BYTES: usize = 384;
        self.json.len() + FIXED_BYTES
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &format_args!("{}", self.key))
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

/// Two entries are equal when they are the same state of the same object.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.revision == other.revision && self.json == other.json
    }
}

impl Eq for Entry {}

/// An entry in the ordered set of its resource, found by namespace and name.
///
/// A set of pointers and not a map from keys: the key is in the entry already.
#[derive(Clone, Debug)]
pub(crate) struct Shelved(pub(crate) Arc<Entry>);

impl Place for Shelved {
    fn place(&self) -> Spot<'_> {
        self.0.key.place()
    }
}

impl<'a> Borrow<dyn Place + 'a> for Shelved {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl PartialEq for Shelved {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Shelved {}

impl PartialOrd for Shelved {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shelved {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}
