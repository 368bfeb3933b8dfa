//! The store as its users see it.
//!
//! Owns the queue to the writer thread and the thread's life. Reads are answered from memory; writes wait until they are
//! durable. It never blocks an asynchronous task on storage.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::backend::{Backend, Snapshot};
use crate::entry::Entry;
use crate::error::{CommitError, ListError, StoreError, WatchError};
use crate::event::Event;
use crate::key::{Key, ResourceKey};
use crate::listing::{ListQuery, Listing};
use crate::options::LedgerOptions;
use crate::replay::{Names, Replay};
use crate::revision::Revision;
use crate::state::{Observer, State};
use crate::trail::Trail;
use crate::watch::Watch;
use crate::write::{Check, Write};
use crate::writer::{Commit, Compaction, Job, Writer};

/// Writes and checks of one transaction; more is a mistake of the caller and not load.
pub const TRANSACTION_WRITES_MAX: usize = 10_000;

/// What one write costs in the queue besides its text, in bytes.
const WRITE_OVERHEAD_BYTES: usize = 256;

/// A handle to the store; clones share it. The store closes when the last handle is dropped, or by [`Ledger::close`].
#[derive(Clone, Debug)]
pub struct Ledger {
    state: Arc<State>,
    hand: Arc<Hand>,
}

/// The way to the writer thread.
#[derive(Debug)]
struct Hand {
    /// None once the ledger is being dropped.
    jobs: Option<mpsc::Sender<Job>>,
    queued_bytes: Arc<AtomicUsize>,
    queue_bytes: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Hand {
    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The writer catches what its backend throws; if it died all the same, its queue is closed and says so.
            let _ = thread.join();
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.jobs = None;
        self.join();
    }
}

/// How much a ledger holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceStats {
    /// The resource.
    pub resource: ResourceKey,
    /// Objects.
    pub objects: usize,
    /// Watches.
    pub watches: usize,
    /// Changes held in memory.
    pub events: usize,
    /// Bytes that these take, roughly.
    pub event_bytes: usize,
}

impl Ledger {
    /// Reads the log of `backend` and starts to serve it. Blocks while it reads.
    pub fn open(mut backend: Box<dyn Backend>, options: LedgerOptions) -> Result<Self, StoreError> {
        let floor = backend.floor()?;
        let state = Arc::new(State::new(floor, options.history.clone()));
        let (mut names, mut trail) = (Names::default(), Trail::default());
        let mut replay = Replay::new(&state, &mut names, &mut trail, floor, Revision::ZERO);
        replay.run(&mut *backend)?;
        let obsolete = replay.obsolete.into();

        let (jobs, queue) = mpsc::channel(options.queue_transactions.max(1));
        let queued_bytes = Arc::<AtomicUsize>::default();
        let queue_bytes = options.queue_bytes;
        let writer = Writer {
            backend,
            state: Arc::clone(&state),
            jobs: queue,
            queued_bytes: Arc::clone(&queued_bytes),
            options,
            names,
            trail,
            obsolete,
            floor,
            waiting: Vec::new(),
            broken: None,
        };
        let thread = std::thread::Builder::new()
            .name("hub-writer".into())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Thread(error.to_string()))?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { state, hand: Arc::new(Hand { jobs: Some(jobs), queued_bytes, queue_bytes, thread }) })
    }

    /// Has `observer` called with every change from now on, in the order of revisions: after it is durable and visible,
    /// and before anybody is answered, so that what is derived from the log is never older than an answer. It runs in
    /// the writer thread and holds up writes while it does. False when there is one already.
    pub fn observe(&self, observer: impl Fn(&[Arc<Event>]) + Send + Sync + 'static) -> bool {
        self.state.observe(Observer(Box::new(observer)))
    }

    /// The revision of the newest published write.
    pub fn revision(&self) -> Revision {
        self.state.revision()
    }

    /// The revision up to which history is forgotten. One resource may have forgotten more, never less.
    pub fn floor(&self) -> Revision {
        self.state.floor()
    }

    /// Waits until `revision` is published: a client may name one that another client was just told. False when the
    /// ledger closes before; how long to wait is the caller's to say.
    pub async fn reach(&self, revision: Revision) -> bool {
        self.state.reach(revision).await
    }

    /// Why writes are refused at the moment; none while storage works.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.state.trouble()
    }

    /// The current state of an object.
    pub fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.state.get(&key.resource, &key.namespace, &key.name)
    }

    /// The current state of an object, by borrowed names.
    pub fn find(&self, resource: &ResourceKey, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        self.state.get(resource, namespace, name)
    }

    /// A list, or a page of one.
    pub fn list(&self, resource: &ResourceKey, query: &ListQuery<'_>) -> Result<Listing, ListError> {
        self.state.list(resource, query)
    }

    /// The keys of the objects whose owner references name `uid`.
    pub fn dependents(&self, uid: &str) -> Vec<Key> {
        self.state.dependents(uid)
    }

    /// The objects in `namespace`, of every resource.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<Entry>> {
        self.state.in_namespace(namespace)
    }

    /// The changes of a resource after `from`; a revision that is still to come is allowed and stays silent until then.
    pub fn watch(
        &self,
        resource: &ResourceKey,
        namespace: Option<&str>,
        from: Revision,
    ) -> Result<Watch, WatchError> {
        Ok(self.state.watch(resource, namespace, Some(from), false)?.1)
    }

    /// The changes of a resource from now on.
    pub fn watch_from_now(&self, resource: &ResourceKey, namespace: Option<&str>) -> Watch {
        self.watch_with_snapshot(resource, namespace, false).1
    }

    /// What is there now and every change after it, without a gap or an overlap.
    pub fn list_and_watch(&self, resource: &ResourceKey, namespace: Option<&str>) -> (Listing, Watch) {
        self.watch_with_snapshot(resource, namespace, true)
    }

    fn watch_with_snapshot(
        &self,
        resource: &ResourceKey,
        namespace: Option<&str>,
        list: bool,
    ) -> (Listing, Watch) {
        self.state.watch(resource, namespace, None, list).expect("the current revision is never compacted")
    }

    /// Writes atomically: all of `writes`, each with a revision of its own, or none. Answers with the new entries in
    /// order once they are durable and published. Dropping the future does not undo the writes.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Arc<Entry>>, CommitError> {
        self.commit_if(Vec::new(), writes).await
    }

    /// As [`Ledger::commit`], on the condition that every one of `checks` holds too.
    pub async fn commit_if(
        &self,
        checks: Vec<Check>,
        writes: Vec<Write>,
    ) -> Result<Vec<Arc<Entry>>, CommitError> {
        let count = checks.len() + writes.len();
        let bytes: usize = writes.iter().map(|write| write.change.draft().size()).sum::<usize>()
            + count * WRITE_OVERHEAD_BYTES;
        if count > TRANSACTION_WRITES_MAX || bytes > self.hand.queue_bytes {
            return Err(CommitError::TooLarge { writes: count, bytes });
        }
        let jobs = self.jobs().ok_or(CommitError::Closed)?;
        let permit = match jobs.try_reserve() {
            Ok(permit) => permit,
            Err(TrySendError::Full(())) => return Err(CommitError::Full),
            Err(TrySendError::Closed(())) => return Err(CommitError::Closed),
        };
        let queued = self.hand.queued_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if queued > self.hand.queue_bytes {
            self.hand.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(CommitError::Full);
        }
        let (reply, answer) = oneshot::channel();
        permit.send(Job::Commit(Commit { checks, writes, bytes, reply }));
        answer.await.unwrap_or(Err(CommitError::Closed))
    }

    /// Forgets history that is old by the clock of the caller, who gives `now` on any clock that does not go back, and
    /// calls this regularly: a change is as old as the first call after it. Answers when the log is compacted.
    pub async fn compact(&self, now: Duration) -> Result<Compaction, StoreError> {
        self.ask(|reply| Job::Compact { now, reply }).await
    }

    /// A picture of the log as it is now, to be written to a file by [`Snapshot::write_to`] on a thread that may block.
    pub async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.ask(|reply| Job::Snapshot { reply }).await
    }

    /// Writes a backup to the new file `path` while the ledger goes on. The file is a store of its own.
    pub async fn backup(&self, path: &Path) -> Result<(), StoreError> {
        let snapshot = self.snapshot().await?;
        let path = path.to_owned();
        let written = tokio::task::spawn_blocking(move || snapshot.write_to(&path)).await;
        match written {
            Ok(written) => Ok(written?),
            Err(error) => Err(StoreError::Thread(error.to_string())),
        }
    }

    /// The bytes that the log takes where it lives.
    pub async fn size_bytes(&self) -> Result<u64, StoreError> {
        self.ask(|reply| Job::Size { reply }).await
    }

    /// What is held, by resource.
    pub fn stats(&self) -> Vec<ResourceStats> {
        let shelves = self.state.shelves().into_iter();
        shelves
            .map(|(resource, shelf)| {
                let shelf = shelf.read();
                ResourceStats {
                    resource,
                    objects: shelf.entries.len(),
                    watches: shelf.watchers(),
                    events: shelf.ring().len(),
                    event_bytes: shelf.ring().bytes(),
                }
            })
            .collect()
    }

    /// Answers everything that is waiting, closes the log and ends every watch. Later writes are refused.
    pub async fn close(&self) {
        if let Some(jobs) = self.jobs()
            && jobs.send(Job::Stop).await.is_ok()
        {
            jobs.closed().await;
        }
        let hand = Arc::clone(&self.hand);
        // The queue is closed, so the thread has only what it holds to finish.
        let _ = tokio::task::spawn_blocking(move || hand.join()).await;
    }

    fn jobs(&self) -> Option<&mpsc::Sender<Job>> {
        self.hand.jobs.as_ref()
    }

    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs().ok_or(StoreError::Closed)?;
        jobs.send(job(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }
}
