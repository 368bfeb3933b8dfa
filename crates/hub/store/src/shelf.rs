//! The objects of one resource and their recent changes.
//!
//! Owns the order of the objects, the window of changes and the bells that wake watchers. One lock covers all of it, so
//! that a list, a watch that starts and a change that is published see one another whole. It never talks to a backend.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::Notify;

use crate::entry::{Entry, Shelved};
use crate::event::{Event, EventKind};
use crate::key::Place;
use crate::options::HistoryOptions;
use crate::revision::Revision;
use crate::ring::{EVENTS_KEPT, Ring};

/// One resource.
#[derive(Debug)]
pub(crate) struct Shelf {
    state: RwLock<ShelfState>,
}

impl Shelf {
    pub(crate) fn new(floor: Revision) -> Self {
        Self {
            state: RwLock::new(ShelfState {
                entries: BTreeSet::new(),
                all: Topic::new(Ring::starting_at(floor)),
                namespaces: HashMap::new(),
            }),
        }
    }

    /// A panic cannot leave a shelf half changed: nothing between lock and unlock of the writer can fail.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ShelfState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, ShelfState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream of changes that watchers follow.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) ring: Ring,
    pub(crate) bell: Arc<Notify>,
    watchers: usize,
}

impl Topic {
    fn new(ring: Ring) -> Self {
        Self { ring, bell: Arc::default(), watchers: 0 }
    }
}

/// What the lock of a shelf covers.
#[derive(Debug)]
pub(crate) struct ShelfState {
    pub(crate) entries: BTreeSet<Shelved>,
    all: Topic,
    /// Only namespaces that someone watches. Each is the part of `all` that concerns it, so that the watchers of one
    /// namespace neither wake nor wade through the changes of ten thousand others.
    namespaces: HashMap<Arc<str>, Topic>,
}

impl ShelfState {
    pub(crate) fn get(&self, place: &dyn Place) -> Option<&Arc<Entry>> {
        self.entries.get(place).map(|shelved| &shelved.0)
    }

    /// All changes of the resource.
    pub(crate) fn ring(&self) -> &Ring {
        &self.all.ring
    }

    /// The changes that a watcher of `namespace` follows; it must have subscribed.
    pub(crate) fn topic(&self, namespace: Option<&str>) -> &Topic {
        namespace.and_then(|namespace| self.namespaces.get(namespace)).unwrap_or(&self.all)
    }

    pub(crate) fn watchers(&self) -> usize {
        self.all.watchers + self.namespaces.values().map(|topic| topic.watchers).sum::<usize>()
    }

    /// Makes the change visible: entries, windows. Adds the bells to ring once all locks are released.
    pub(crate) fn apply(
        &mut self,
        event: &Arc<Event>,
        limits: &HistoryOptions,
        bells: &mut Vec<Arc<Notify>>,
    ) {
        self.place(event.kind(), event.entry());
        self.all.ring.push(Arc::clone(event));
        if self.all.watchers > 0 {
            bells.push(Arc::clone(&self.all.bell));
        }
        if let Some(topic) = self.namespaces.get_mut(&event.entry().key().namespace) {
            topic.ring.push(Arc::clone(event));
            bells.push(Arc::clone(&topic.bell));
        }
        while self.all.ring.len() > limits.window_events.max(1)
            || (self.all.ring.bytes() > limits.window_bytes && self.all.ring.len() > EVENTS_KEPT)
        {
            self.forget();
        }
    }

    /// Puts or removes an entry without a change that anyone could watch.
    pub(crate) fn place(&mut self, kind: EventKind, entry: &Arc<Entry>) {
        if kind == EventKind::Deleted {
            self.entries.remove(entry.key() as &dyn Place);
        } else {
            self.entries.replace(Shelved(Arc::clone(entry)));
        }
    }

    /// Forgets the oldest change.
    pub(crate) fn forget(&mut self) {
        let Some(event) = self.all.ring.pop() else { return };
        if let Some(topic) = self.namespaces.get_mut(&event.entry().key().namespace)
            && topic.ring.front().is_some_and(|front| Arc::ptr_eq(front, &event))
        {
            topic.ring.pop();
        }
    }

    /// Forgets every change up to `floor`.
    pub(crate) fn forget_up_to(&mut self, floor: Revision) {
        while self.all.ring.front().is_some_and(|event| event.revision() <= floor) {
            self.forget();
        }
        self.all.ring.raise(floor);
        for topic in self.namespaces.values_mut() {
            topic.ring.raise(floor);
        }
    }

    /// Counts a watcher in; the bell that wakes it.
    pub(crate) fn subscribe(&mut self, namespace: Option<&Arc<str>>) -> &mut Topic {
        let topic = match namespace {
            None => &mut self.all,
            Some(namespace) => {
                let all = &self.all.ring;
                self.namespaces.entry(Arc::clone(namespace)).or_insert_with(|| {
                    let mut ring = Ring::starting_at(all.start());
                    for event in all.from(all.first()) {
                        if event.entry().key().namespace == *namespace {
                            ring.push(Arc::clone(event));
                        }
                    }
                    Topic::new(ring)
                })
            }
        };
        topic.watchers += 1;
        topic
    }

    /// Counts a watcher out.
    pub(crate) fn unsubscribe(&mut self, namespace: Option<&Arc<str>>) {
        match namespace {
            None => self.all.watchers -= 1,
            Some(namespace) => {
                let Some(topic) = self.namespaces.get_mut(namespace) else { return };
                topic.watchers -= 1;
                if topic.watchers == 0 {
                    self.namespaces.remove(namespace);
                }
            }
        }
    }

    pub(crate) fn bells(&self) -> impl Iterator<Item = &Arc<Notify>> {
        std::iter::once(&self.all.bell).chain(self.namespaces.values().map(|topic| &topic.bell))
    }
}
