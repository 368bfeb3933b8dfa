//! The one thread that writes.
//!
//! ```text
//! commit() ─┐
//! commit() ─┼─> bounded queue ─> decide a batch ─> append, durable ─> publish ─> answer ─> wake watchers
//! compact()─┘
//! ```
//! Owns the backend. While one batch is being made durable the next gathers in the queue: group commit without a timer.
//! It never publishes or answers with success what is not durable.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;

use crate::backend::{Backend, Snapshot};
use crate::batch::{Batch, Outcome};
use crate::entry::Entry;
use crate::error::{BackendError, CommitError, StoreError};
use crate::options::LedgerOptions;
use crate::replay::{Names, Replay};
use crate::revision::Revision;
use crate::state::State;
use crate::trail::Trail;
use crate::write::{Check, Write};

/// Records that one step of a compaction drops. A step is one durable commit between two batches: this bounds how long a
/// write waits for it.
const DROPS_PER_STEP: usize = 256;

/// A request to the writer.
pub(crate) enum Job {
    Commit(Commit),
    Compact { now: Duration, reply: oneshot::Sender<Result<Compaction, StoreError>> },
    Snapshot { reply: oneshot::Sender<Result<Box<dyn Snapshot>, StoreError>> },
    Size { reply: oneshot::Sender<Result<u64, StoreError>> },
    Stop,
}

/// A transaction and who waits for it.
pub(crate) struct Commit {
    pub(crate) checks: Vec<Check>,
    pub(crate) writes: Vec<Write>,
    pub(crate) bytes: usize,
    pub(crate) reply: oneshot::Sender<Result<Vec<Arc<Entry>>, CommitError>>,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The floor of history from here on.
    pub floor: Revision,
    /// Changes that are still in the log after the floor.
    pub events: usize,
}

/// The state of the writer thread.
pub(crate) struct Writer {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) state: Arc<State>,
    pub(crate) jobs: Receiver<Job>,
    pub(crate) queued_bytes: Arc<AtomicUsize>,
    pub(crate) options: LedgerOptions,
    pub(crate) names: Names,
    pub(crate) trail: Trail,
    /// Obsolete records that are still to be dropped.
    pub(crate) obsolete: VecDeque<Revision>,
    /// The floor that the next step of the compaction writes.
    pub(crate) floor: Revision,
    /// Who waits for the compaction to end.
    pub(crate) waiting: Vec<oneshot::Sender<Result<Compaction, StoreError>>>,
    /// Why the backend cannot be used at the moment.
    pub(crate) broken: Option<BackendError>,
}

/// What to do after a look into the queue.
enum Next {
    Batch(Vec<Commit>, Option<Job>),
    Idle,
    Stop,
}

impl Writer {
    /// Works until it is told to stop or nobody can ask any more; everything in the queue is answered.
    pub(crate) fn run(mut self) {
        loop {
            match self.next() {
                Next::Batch(commits, other) => {
                    if !commits.is_empty() {
                        self.commit(commits);
                    }
                    match other {
                        Some(Job::Compact { now, reply }) => self.begin_compaction(now, reply),
                        Some(Job::Snapshot { reply }) => {
                            let snapshot = self.usable().and_then(|()| self.protected(Backend::snapshot));
                            let _ = reply.send(snapshot.map_err(Into::into));
                        }
                        Some(Job::Size { reply }) => {
                            let size = self.protected(Backend::size_bytes);
                            let _ = reply.send(size.map_err(Into::into));
                        }
                        Some(Job::Stop) => self.jobs.close(),
                        Some(Job::Commit(_)) | None => {}
                    }
                }
                Next::Idle => {}
                Next::Stop => break,
            }
            self.compact_step();
        }
        for reply in self.waiting.drain(..) {
            let _ = reply.send(Err(StoreError::Closed));
        }
        // Closes the file before anyone is told, so that it can be opened again at once.
        drop(self.backend);
        self.state.close();
    }

    /// Gathers what is waiting, up to the size of a batch. Sleeps only when there is nothing left to compact.
    fn next(&mut self) -> Next {
        let mut commits = Vec::new();
        let (mut writes, mut bytes) = (0, 0);
        let idle = self.obsolete.is_empty() || self.broken.is_some();
        let mut job = if idle {
            match self.jobs.blocking_recv() {
                Some(job) => job,
                None => return Next::Stop,
            }
        } else {
            match self.jobs.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Empty) => return Next::Idle,
                Err(TryRecvError::Disconnected) => return Next::Stop,
            }
        };
        loop {
            let Job::Commit(commit) = job else { return Next::Batch(commits, Some(job)) };
            writes += commit.writes.len();
            bytes += commit.bytes;
            commits.push(commit);
            if writes >= self.options.batch_writes || bytes >= self.options.batch_bytes {
                return Next::Batch(commits, None);
            }
            match self.jobs.try_recv() {
                Ok(more) => job = more,
                Err(_) => return Next::Batch(commits, None),
            }
        }
    }

    fn commit(&mut self, commits: Vec<Commit>) {
        let bytes: usize = commits.iter().map(|commit| commit.bytes).sum();
        self.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
        if let Err(error) = self.usable() {
            return refuse(commits.into_iter().map(|commit| commit.reply), &error);
        }
        let state = Arc::clone(&self.state);
        let mut batch = Batch::new(&state, &mut self.names);
        let mut answers: Vec<(oneshot::Sender<_>, Outcome)> = Vec::with_capacity(commits.len());
        for Commit { checks, writes, reply, .. } in commits {
            let outcome = batch.add(&checks, writes);
            answers.push((reply, outcome));
        }
        let (records, events) = (batch.records, batch.events);
        if !records.is_empty()
            && let Err(error) = self.protected(|backend| backend.append(&records))
        {
            // Conflicts too: they may rest on writes of this very batch.
            self.fail(error.clone());
            return refuse(answers.into_iter().map(|(reply, _)| reply), &error);
        }
        for record in &records {
            self.trail.push(record);
        }
        let bells = self.state.publish(&events);
        for (reply, outcome) in answers {
            // Who stopped waiting does not want the answer.
            let _ = reply.send(outcome);
        }
        for bell in bells {
            bell.notify_waiters();
        }
        self.state.shrink();
        if let Some(floor) = self.trail.floor_by_size(&self.options.history) {
            self.raise(floor);
        }
    }

    fn begin_compaction(&mut self, now: Duration, reply: oneshot::Sender<Result<Compaction, StoreError>>) {
        if let Err(error) = self.usable() {
            let _ = reply.send(Err(error.into()));
            return;
        }
        let floor = self.trail.floor_by_age(now, &self.options.history);
        self.trail.mark(now, self.state.revision());
        self.names.forget_unused();
        self.waiting.push(reply);
        if let Some(floor) = floor {
            self.raise(floor);
        }
    }

    fn raise(&mut self, floor: Revision) {
        self.floor = self.floor.max(floor);
        self.trail.cut(floor, &mut self.obsolete);
        // Readers first: nobody may start to depend on what is about to go.
        self.state.raise_floor(self.floor);
    }

    /// One bounded step of the compaction under way.
    fn compact_step(&mut self) {
        if self.broken.is_some() {
            return;
        }
        if !self.obsolete.is_empty() {
            let count = self.obsolete.len().min(DROPS_PER_STEP);
            let dropped: Vec<Revision> = self.obsolete.iter().take(count).copied().collect();
            let floor = self.floor;
            if let Err(error) = self.protected(|backend| backend.compact(floor, &dropped)) {
                // What could not be dropped stays on the list; dropping twice is no error.
                self.fail(error.clone());
                for reply in self.waiting.drain(..) {
                    let _ = reply.send(Err(error.clone().into()));
                }
                return;
            }
            self.obsolete.drain(..count);
        }
        if self.obsolete.is_empty() {
            let done = Compaction { floor: self.state.floor(), events: self.trail.len() };
            for reply in self.waiting.drain(..) {
                let _ = reply.send(Ok(done));
            }
        }
    }

    /// Makes the backend usable again if it is not, by opening it anew and publishing what turns out to be durable.
    fn usable(&mut self) -> Result<(), BackendError> {
        let Some(error) = &self.broken else { return Ok(()) };
        if !error.may_pass() {
            return Err(error.clone());
        }
        self.protected(Backend::recover).inspect_err(|error| self.remember(error))?;
        let state = Arc::clone(&self.state);
        let floor = state.floor();
        let mut replay = Replay::new(&state, &mut self.names, &mut self.trail, floor, state.revision());
        let caught_up =
            catch_unwind(AssertUnwindSafe(|| replay.run(&mut *self.backend))).unwrap_or_else(|_| {
                Err(BackendError::NotSynced("the backend panicked while it was read".into()).into())
            });
        match caught_up {
            Ok(0) => {}
            Ok(_) => {
                for (_, shelf) in state.shelves() {
                    shelf.read().bells().for_each(|bell| bell.notify_waiters());
                }
            }
            Err(StoreError::Backend(error)) => {
                self.fail(error.clone());
                return Err(error);
            }
            Err(error) => {
                let error = BackendError::NotSynced(error.to_string());
                self.fail(error.clone());
                return Err(error);
            }
        }
        self.broken = None;
        state.set_trouble(None);
        Ok(())
    }

    fn fail(&mut self, error: BackendError) {
        self.remember(&error);
        self.broken = Some(error);
    }

    fn remember(&self, error: &BackendError) {
        self.state.set_trouble(Some(error.to_string().into()));
    }

    /// Uses the backend; a panic in it is a failure whose extent nobody knows.
    fn protected<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Backend) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        catch_unwind(AssertUnwindSafe(|| work(&mut *self.backend)))
            .unwrap_or_else(|_| Err(BackendError::NotSynced("the backend panicked".into())))
    }
}

fn refuse(
    replies: impl Iterator<Item = oneshot::Sender<Result<Vec<Arc<Entry>>, CommitError>>>,
    error: &BackendError,
) {
    let reason: Arc<str> = error.to_string().into();
    for reply in replies {
        let _ = reply.send(Err(CommitError::Unavailable(Arc::clone(&reason))));
    }
}
