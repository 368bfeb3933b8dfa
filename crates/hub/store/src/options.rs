//! The limits of a ledger.

use std::time::Duration;

/// Limits of a ledger; the defaults fit a hub for ten thousand objects on a small machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// How much of the past is kept.
    pub history: HistoryOptions,
    /// Transactions that may wait for the writer. One more is refused as [`crate::CommitError::Full`].
    pub queue_transactions: usize,
    /// Bytes of objects that may wait for the writer.
    pub queue_bytes: usize,
    /// Writes that one durable commit takes together. Bounds how long the first of them waits for the last.
    pub batch_writes: usize,
    /// Bytes of objects that one durable commit takes together.
    pub batch_bytes: usize,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self {
            history: HistoryOptions::default(),
            queue_transactions: 4096,
            queue_bytes: 64 << 20,
            batch_writes: 512,
            batch_bytes: 4 << 20,
        }
    }
}

/// How much of the past is kept, in the log and in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// How old a change becomes before compaction may forget it.
    pub keep: Duration,
    /// The newest changes that compaction by age leaves alone, however old they are.
    pub events_min: usize,
    /// Changes in the log beyond which the oldest are forgotten, however young they are.
    pub log_events_max: usize,
    /// Bytes of changes in the log beyond which the oldest are forgotten, however young they are.
    pub log_bytes_max: u64,
    /// Changes of one resource that are held in memory for watchers and for lists at older revisions.
    pub window_events: usize,
    /// Bytes that these may take for one resource.
    pub window_bytes: usize,
    /// Bytes that these may take for all resources together.
    pub window_bytes_total: usize,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            // As long as etcd's history lives under a Kubernetes API server.
            keep: Duration::from_mins(5),
            events_min: 1_000,
            log_events_max: 100_000,
            log_bytes_max: 256 << 20,
            window_events: 10_000,
            window_bytes: 16 << 20,
            window_bytes_total: 32 << 20,
        }
    }
}
