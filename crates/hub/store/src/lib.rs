//! The hub's store: an append-only log with one revision per write, the objects that follow from it, and its watchers.
//!
//! ```text
//!  commit ──> queue ──> writer thread ──> Backend (redb file | memory)      durable first,
//!                            │                                              then visible,
//!                            v                                              then answered
//!  get, list, watch <── State: one shelf per resource (objects in order, window of recent changes)
//! ```
//!
//! It owns revisions, optimistic concurrency, atomic transactions, lists at earlier revisions, watches, compaction and
//! backup. It never knows kinds, schemas, selectors or users, it never reads a clock, and it never shows or acknowledges
//! what is not durable.

mod aside;
pub mod backend;
pub mod error;

mod backup;
mod batch;
mod draft;
mod entry;
mod event;
mod file;
mod key;
mod ledger;
mod listing;
mod meta;
mod options;
mod record;
mod replay;
mod revision;
mod ring;
mod shelf;
mod state;
mod trail;
mod watch;
mod write;
mod writer;

pub use backend::{Backend, JournaledBackend, MemoryBackend, RedbBackend, Snapshot};
pub use backup::{RESTORE_GAP, Restored, restore, restore_over};
pub use draft::{Draft, DraftError, OBJECT_BYTES_MAX, OBJECT_DEPTH_MAX};
pub use entry::Entry;
pub use error::{BackendError, CommitError, ListError, StoreError, WatchEnd, WatchError};
pub use event::{Event, EventKind};
pub use key::{Key, ResourceKey};
pub use ledger::{Ledger, ResourceStats, TRANSACTION_WRITES_MAX};
pub use listing::{ListQuery, Listing};
pub use options::{HistoryOptions, LedgerOptions};
pub use record::{Operation, Record};
pub use revision::Revision;
pub use watch::Watch;
pub use write::{Change, Check, Expect, Write};
pub use writer::Compaction;
