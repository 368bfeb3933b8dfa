//! What can go wrong, by the step that failed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::Entry;
use crate::revision::Revision;

/// A backend could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// Another process has the store open.
    #[error(
        "the store {path} is in use by another process; stop that process, or give this one a data directory of its own"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The store was written by a newer version.
    #[error(
        "the store {path} has format {found}, this version reads up to format {known}; run the newer version, or restore \
         a backup made with this one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The store is damaged.
    #[error(
        "the store {path} is damaged: {detail}; restore a backup with `berth hub restore --replace`, which keeps what is \
         there under another name"
    )]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The newest writes were in a journal that is lost.
    #[error(
        "the journal {journal} {detail}, and the store {store} was not closed after its last writes: what was written \
         after revision {revision} may be lost; put the journal back as it was, or restore a backup with `berth hub \
         restore --replace`"
    )]
    JournalLost {
        /// The journal.
        journal: PathBuf,
        /// What was found in its place.
        detail: &'static str,
        /// The store.
        store: PathBuf,
        /// The last revision that is in the store.
        revision: Revision,
    },
    /// There is a journal with writes, but not the store that it belongs to.
    #[error(
        "the store {store} is missing, but its journal {journal} is there; put the store back, or restore a backup with \
         `berth hub restore`"
    )]
    StoreLost {
        /// The store.
        store: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// What is to be restored was not made by a backup.
    #[error("{path} is no backup: {detail}; name a file that `berth hub backup` wrote")]
    NoBackup {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Reading or writing failed in a way that may pass, such as a full disk. The store must be re-opened.
    #[error("storage failed: {0}")]
    Failed(String),
    /// The operating system could not confirm that data reached the disk. What it did with it cannot be known, so this
    /// process must not write again.
    #[error("storage could not be synchronised: {0}; check the disk, then restart")]
    NotSynced(String),
    /// A file that is to be written exists already.
    #[error("{path} exists already; choose another place, or move it away first")]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

impl BackendError {
    /// Whether re-opening the store may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// The ledger could not be opened, compacted or backed up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The log does not fit together.
    #[error("the log is damaged: {0}; restore a backup")]
    Log(String),
    /// The writer thread could not be started.
    #[error("the writer thread could not be started: {0}")]
    Thread(String),
    /// The ledger is closed.
    #[error("the store is closed")]
    Closed,
}

/// A transaction was not committed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The object of check or write number `index` (checks first) is not in the expected state. Nothing was written.
    #[error("the object is not in the expected state")]
    Conflict {
        /// Position among the checks and writes, checks first.
        index: usize,
        /// The state it is in; none when it does not exist.
        current: Option<Arc<Entry>>,
    },
    /// Storage does not take writes. Whether this transaction was written cannot be told; it was not published.
    #[error("storage does not take writes: {0}")]
    Unavailable(Arc<str>),
    /// Too many writes are waiting. Nothing was written; try again after a moment.
    #[error("too many writes are waiting; try again")]
    Full,
    /// The transaction is larger than one transaction may be. Nothing was written.
    #[error("a transaction of {writes} writes with {bytes} bytes is too large")]
    TooLarge {
        /// Its writes.
        writes: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// The ledger is closed. Nothing was written.
    #[error("the store is closed")]
    Closed,
}

/// A list cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The revision is older than the history that is kept.
    #[error("revision {asked} is compacted; the oldest that can be listed is {oldest}")]
    Compacted {
        /// The revision asked for.
        asked: Revision,
        /// The oldest that can be answered.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("revision {asked} is ahead of the current revision {current}")]
    Future {
        /// The revision asked for.
        asked: Revision,
        /// The current one.
        current: Revision,
    },
}

/// A watch cannot start where it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The revision is older than the history that is kept.
    #[error("revision {asked} is compacted; the oldest to watch from is {oldest}")]
    Compacted {
        /// The revision asked for.
        asked: Revision,
        /// The oldest that can be answered.
        oldest: Revision,
    },
}

/// Why a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// The watcher was too slow: events it had not seen yet have left the history.
    #[error("the watcher fell behind the history that is kept")]
    Lagged {
        /// The last revision up to which it had seen everything.
        seen: Revision,
        /// The oldest revision to watch from now.
        oldest: Revision,
    },
    /// The ledger is closed.
    #[error("the store is closed")]
    Closed,
}
