//! Where the log lives.
//!
//! ```text
//! Ledger ── writer thread ── dyn Backend ── MemoryBackend
//!                                        ├─ RedbBackend ── one file
//!                                        ├─ JournaledBackend ── the same, and a journal in front of it
//!                                        └─ FaultyBackend (tests: fails when told to)
//! ```
//! A backend owns durability and nothing else: it never looks into objects, never checks preconditions, and is only ever
//! used by one thread. What all of them promise is written down in the conformance tests.

use std::path::Path;

pub use faulty::{Fault, FaultPlan, FaultyBackend};
pub(crate) use journal::highest_revision;
pub use journal::{JOURNAL_NAME, JournaledBackend};
pub use memory::MemoryBackend;
pub use redb::{FILE_NAME, FORMAT_VERSION, OpenStorage, RedbBackend};

pub(crate) use redb::Link;

use crate::error::BackendError;
use crate::record::Record;
use crate::revision::Revision;

mod faulty;
mod journal;
mod memory;
mod redb;

/// A durable, ordered log of [`Record`]s.
pub trait Backend: Send + 'static {
    /// The revision up to which the log was compacted. Zero in a new log.
    fn floor(&mut self) -> Result<Revision, BackendError>;

    /// Visits every record after `after` in the order of revisions. An error of `visit` is passed on and ends the walk.
    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError>;

    /// Adds `records`, whose revisions are ascending and above all others. They are durable when this returns, and
    /// either all or none of them are there after a crash or an error.
    fn append(&mut self, records: &[Record]) -> Result<(), BackendError>;

    /// Raises the floor to `floor` and forgets `dropped`, atomically. Dropping what is not there is no error.
    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError>;

    /// Makes the backend usable after an error by opening it anew. Everything that was acknowledged is there afterwards;
    /// what was in flight is there completely or not at all.
    fn recover(&mut self) -> Result<(), BackendError>;

    /// A picture of the log as it is now, to be written out elsewhere while the log goes on.
    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError>;

    /// The bytes that the log takes where it lives.
    fn size_bytes(&mut self) -> Result<u64, BackendError>;
}

/// A picture of the log at one moment.
pub trait Snapshot: Send {
    /// Writes a store to the new file `path`, durable when this returns. The file appears complete or not at all.
    fn write_to(self: Box<Self>, path: &Path) -> Result<(), BackendError>;
}

impl Backend for Box<dyn Backend> {
    fn floor(&mut self) -> Result<Revision, BackendError> {
        (**self).floor()
    }

    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        (**self).read(after, visit)
    }

    fn append(&mut self, records: &[Record]) -> Result<(), BackendError> {
        (**self).append(records)
    }

    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError> {
        (**self).compact(floor, dropped)
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        (**self).recover()
    }

    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError> {
        (**self).snapshot()
    }

    fn size_bytes(&mut self) -> Result<u64, BackendError> {
        (**self).size_bytes()
    }
}
