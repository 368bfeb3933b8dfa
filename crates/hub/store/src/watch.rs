//! Following the changes of a resource.
//!
//! A watch owns a place in a shared window of changes and nothing else: it has no buffer that the writer would fill. A
//! watcher that is too slow finds that its place has left the window and is told so; the writer never waits for it.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::error::WatchEnd;
use crate::event::Event;
use crate::revision::Revision;
use crate::shelf::Shelf;
use crate::state::State;

/// Events taken under one lock. Few enough that a watcher which stops reading pins little memory.
const READ_AHEAD: usize = 32;

/// A stream of changes after some revision.
#[derive(Debug)]
pub struct Watch {
    state: Arc<State>,
    shelf: Arc<Shelf>,
    namespace: Option<Arc<str>>,
    bell: Arc<Notify>,
    /// The number of the next event in the ring.
    next: u64,
    /// Events up to here are not for this watcher: it asked for a revision that is still to come.
    after: Revision,
    /// Everything up to here was handed out.
    seen: Revision,
    ready: VecDeque<Arc<Event>>,
}

impl Watch {
    pub(crate) fn new(
        state: Arc<State>,
        shelf: Arc<Shelf>,
        namespace: Option<Arc<str>>,
        bell: Arc<Notify>,
        next: u64,
        after: Revision,
    ) -> Self {
        Self { state, shelf, namespace, bell, next, after, seen: after, ready: VecDeque::new() }
    }

    /// The next change, when there is one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchEnd> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            let bell = Arc::clone(&self.bell);
            let mut rung = pin!(bell.notified());
            // Listens before it looks again, so that a change published in between is not missed.
            rung.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            rung.await;
        }
    }

    /// The next change if it is here already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, WatchEnd> {
        if self.ready.is_empty() {
            self.refill()?;
        }
        let Some(event) = self.ready.pop_front() else { return Ok(None) };
        self.seen = event.revision();
        Ok(Some(event))
    }

    /// The revision up to which this watcher has been handed every change: what a bookmark may say.
    pub fn progress(&mut self) -> Revision {
        if self.ready.is_empty() {
            let shelf = self.shelf.read();
            // Under the lock of the shelf no publication for this resource is under way, so the revision is one whose
            // changes here are all in the ring.
            if self.next == shelf.topic(self.namespace.as_deref()).ring.end() {
                self.seen = self.seen.max(self.state.revision());
            }
        }
        self.seen
    }

    fn refill(&mut self) -> Result<(), WatchEnd> {
        let shelf = self.shelf.read();
        let ring = &shelf.topic(self.namespace.as_deref()).ring;
        if self.next < ring.first() {
            return Err(WatchEnd::Lagged { seen: self.seen, oldest: shelf.ring().start() });
        }
        // Read before the ring: a ledger closes after its last publication.
        let closed = self.state.is_closed();
        for event in ring.from(self.next) {
            self.next += 1;
            if event.revision() > self.after {
                self.ready.push_back(Arc::clone(event));
                if self.ready.len() == READ_AHEAD {
                    break;
                }
            }
        }
        if closed && self.ready.is_empty() { Err(WatchEnd::Closed) } else { Ok(()) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shelf.write().unsubscribe(self.namespace.as_ref());
    }
}
