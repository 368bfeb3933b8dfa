//! Everything that is published: what readers see.
//!
//! Owns the shelves, the current revision, the floor of history and the index of owners. Only the writer thread changes
//! it; everyone reads it without waiting for storage. It never holds what is not durable yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::entry::Entry;
use crate::error::{ListError, WatchError};
use crate::event::{Event, EventKind};
use crate::key::{Key, ResourceKey, Spot};
use crate::listing::{self, ListQuery, Listing};
use crate::options::HistoryOptions;
use crate::revision::Revision;
use crate::ring::EVENTS_KEPT;
use crate::shelf::Shelf;
use crate::watch::Watch;

/// What is published.
#[derive(Debug)]
pub(crate) struct State {
    shelves: RwLock<BTreeMap<ResourceKey, Arc<Shelf>>>,
    /// Stored while the shelves of a publication are locked, so that under the lock of a shelf it is exact.
    revision: AtomicU64,
    floor: AtomicU64,
    owners: RwLock<HashMap<Box<str>, BTreeSet<Key>>>,
    closed: AtomicBool,
    trouble: Mutex<Option<Arc<str>>>,
    /// Rung after every publication, for those who wait for a revision.
    published: Notify,
    observer: OnceLock<Observer>,
    limits: HistoryOptions,
}

/// What an observer does with a publication.
type Observe = Box<dyn Fn(&[Arc<Event>]) + Send + Sync>;

/// Who is told of every publication, in order, before anybody is answered.
pub(crate) struct Observer(pub(crate) Observe);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl State {
    pub(crate) fn new(floor: Revision, limits: HistoryOptions) -> Self {
        Self {
            shelves: RwLock::default(),
            revision: AtomicU64::new(floor.0),
            floor: AtomicU64::new(floor.0),
            owners: RwLock::default(),
            closed: AtomicBool::new(false),
            trouble: Mutex::default(),
            published: Notify::new(),
            observer: OnceLock::new(),
            limits,
        }
    }

    /// Sets the observer, once.
    pub(crate) fn observe(&self, observer: Observer) -> bool {
        self.observer.set(observer).is_ok()
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.revision.load(Ordering::Acquire))
    }

    pub(crate) fn floor(&self) -> Revision {
        Revision(self.floor.load(Ordering::Acquire))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Why writes are refused at the moment.
    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_trouble(&self, trouble: Option<Arc<str>>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(crate) fn shelf(&self, resource: &str) -> Option<Arc<Shelf>> {
        self.shelves.read().unwrap_or_else(PoisonError::into_inner).get(resource).cloned()
    }

    pub(crate) fn shelf_or_new(&self, resource: &ResourceKey) -> Arc<Shelf> {
        if let Some(shelf) = self.shelf(resource.as_str()) {
            return shelf;
        }
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(shelves.entry(resource.clone()).or_insert_with(|| Arc::new(Shelf::new(self.floor()))))
    }

    pub(crate) fn shelves(&self) -> Vec<(ResourceKey, Arc<Shelf>)> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        shelves.iter().map(|(resource, shelf)| (resource.clone(), Arc::clone(shelf))).collect()
    }

    pub(crate) fn get(&self, resource: &ResourceKey, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        self.shelf(resource.as_str())?.read().get(&Spot { namespace, name }).cloned()
    }

    pub(crate) fn list(&self, resource: &ResourceKey, query: &ListQuery<'_>) -> Result<Listing, ListError> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(resource).cloned() {
            drop(shelves);
            let shelf = shelf.read();
            return listing::list(&shelf, self.revision(), query);
        }
        // Shelves are made before they are published to, and this map is locked: nothing of this resource is published.
        let revision = listing::check(self.floor(), self.revision(), query)?;
        Ok(Listing { revision, ..Listing::default() })
    }

    /// Starts a watch after `from`, or after the current revision, together with the list that it continues.
    pub(crate) fn watch(
        self: &Arc<Self>,
        resource: &ResourceKey,
        namespace: Option<&str>,
        from: Option<Revision>,
        snapshot: bool,
    ) -> Result<(Listing, Watch), WatchError> {
        let shelf = self.shelf_or_new(resource);
        let namespace: Option<Arc<str>> = namespace.map(Arc::from);
        let mut guard = shelf.write();
        let now = self.revision();
        let from = from.unwrap_or(now);
        let oldest = guard.ring().start();
        if from < oldest {
            return Err(WatchError::Compacted { asked: from, oldest });
        }
        let listing = if snapshot {
            let query = ListQuery { namespace: namespace.as_deref(), ..ListQuery::default() };
            listing::list(&guard, now, &query).unwrap_or_default()
        } else {
            Listing { revision: now, ..Listing::default() }
        };
        let topic = guard.subscribe(namespace.as_ref());
        let next = topic.ring.position(from);
        let bell = Arc::clone(&topic.bell);
        drop(guard);
        Ok((listing, Watch::new(Arc::clone(self), shelf, namespace, bell, next, from)))
    }

    /// Makes durable changes visible, all at once; the bells to ring afterwards.
    pub(crate) fn publish(&self, events: &[Arc<Event>]) -> Vec<Arc<Notify>> {
        let mut bells = Vec::new();
        let Some(last) = events.last() else { return bells };
        let mut names: Vec<&ResourceKey> = events.iter().map(|event| &event.entry().key().resource).collect();
        names.sort_unstable();
        names.dedup();
        let shelves: Vec<Arc<Shelf>> = names.iter().map(|resource| self.shelf_or_new(resource)).collect();
        // Always in the order of names; readers lock one shelf at a time.
        let mut guards: Vec<_> = shelves.iter().map(|shelf| shelf.write()).collect();
        for event in events {
            let index =
                names.binary_search(&&event.entry().key().resource).expect("every resource was collected");
            guards[index].apply(event, &self.limits, &mut bells);
        }
        self.index_owners(events);
        self.revision.store(last.revision().0, Ordering::Release);
        drop(guards);
        if let Some(observer) = self.observer.get() {
            (observer.0)(events);
        }
        bells.sort_unstable_by_key(|bell| Arc::as_ptr(bell).addr());
        bells.dedup_by(|a, b| Arc::ptr_eq(a, b));
        self.published.notify_waiters();
        bells
    }

    /// Waits until `revision` is published; false when the ledger closes before.
    pub(crate) async fn reach(&self, revision: Revision) -> bool {
        loop {
            let mut published = pin!(self.published.notified());
            published.as_mut().enable();
            if self.revision() >= revision {
                return true;
            }
            if self.is_closed() {
                return false;
            }
            published.await;
        }
    }

    /// Places what was there before history begins, while the ledger opens.
    pub(crate) fn place(&self, kind: EventKind, entry: &Arc<Entry>, previous: Option<&Arc<Entry>>) {
        self.shelf_or_new(&entry.key().resource).write().place(kind, entry);
        self.index(kind, entry, previous);
        self.revision.fetch_max(entry.revision().0, Ordering::AcqRel);
    }

    /// Forgets history up to `floor`.
    pub(crate) fn raise_floor(&self, floor: Revision) {
        self.floor.fetch_max(floor.0, Ordering::AcqRel);
        for (_, shelf) in self.shelves() {
            shelf.write().forget_up_to(floor);
        }
    }

    /// Ends every watch once it has read what is there.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.published.notify_waiters();
        for (_, shelf) in self.shelves() {
            shelf.read().bells().for_each(|bell| bell.notify_waiters());
        }
    }

    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Key> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.get(uid).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// The objects in `namespace`, of every resource.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Entry>> {
        let query = ListQuery { namespace: Some(namespace), ..ListQuery::default() };
        let lists = self.shelves().into_iter().filter_map(|(_, shelf)| {
            let shelf = shelf.read();
            listing::list(&shelf, self.revision(), &query).ok()
        });
        lists.flat_map(|list| list.entries).collect()
    }

    fn index_owners(&self, events: &[Arc<Event>]) {
        for event in events {
            self.index(event.kind(), event.entry(), event.previous());
        }
    }

    fn index(&self, kind: EventKind, entry: &Arc<Entry>, previous: Option<&Arc<Entry>>) {
        let before = previous.map(|previous| previous.owners()).into_iter().flatten();
        let after = (kind != EventKind::Deleted).then(|| entry.owners()).into_iter().flatten();
        if previous.is_none_or(|previous| previous.owners().len() == 0) && entry.owners().len() == 0 {
            return;
        }
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        for uid in before {
            if let Some(keys) = owners.get_mut(uid) {
                keys.remove(entry.key());
                if keys.is_empty() {
                    owners.remove(uid);
                }
            }
        }
        for uid in after {
            match owners.get_mut(uid) {
                Some(keys) => {
                    keys.insert(entry.key().clone());
                }
                None => {
                    owners.insert(uid.into(), BTreeSet::from([entry.key().clone()]));
                }
            }
        }
    }

    /// Keeps all windows together within their budget by cutting the heaviest.
    pub(crate) fn shrink(&self) {
        let shelves = self.shelves();
        let mut weights: Vec<usize> = shelves.iter().map(|(_, shelf)| shelf.read().ring().bytes()).collect();
        let mut total: usize = weights.iter().sum();
        while total > self.limits.window_bytes_total {
            let Some(index) = (0..weights.len()).max_by_key(|index| weights[*index]) else { return };
            let mut shelf = shelves[index].1.write();
            let before = shelf.ring().bytes();
            // A tenth at a time, so that the next publication does not cut again.
            while shelf.ring().bytes() > before - before / 10 && shelf.ring().len() > EVENTS_KEPT {
                shelf.forget();
            }
            let after = shelf.ring().bytes();
            if after == before {
                return;
            }
            total -= before - after;
            weights[index] = after;
        }
    }
}
