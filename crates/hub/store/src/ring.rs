//! The recent changes of one resource, or of one namespace of it, in order.
//!
//! Owns the window and the numbering that lets a watcher hold its place as one number: the ring is shared, a watcher
//! costs nothing per event. It never waits and never wakes anyone.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::Event;
use crate::revision::Revision;

/// Changes that stay in the window whatever they weigh, so that a few huge objects do not cut off every watcher.
pub(crate) const EVENTS_KEPT: usize = 16;

/// A window of changes with stable numbering.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The number of the first event that is still here.
    first: u64,
    /// Everything after this revision is here; what happened up to it may be gone.
    start: Revision,
    bytes: usize,
}

impl Ring {
    pub(crate) fn starting_at(start: Revision) -> Self {
        Self { start, ..Self::default() }
    }

    pub(crate) fn start(&self) -> Revision {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next event gets.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(crate) fn front(&self) -> Option<&Arc<Event>> {
        self.events.front()
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) {
        debug_assert!(self.events.back().is_none_or(|last| last.revision() < event.revision()));
        self.bytes += event.weight();
        self.events.push_back(event);
    }

    /// Forgets the oldest event.
    pub(crate) fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.bytes -= event.weight();
        self.first += 1;
        self.start = self.start.max(event.revision());
        Some(event)
    }

    /// Says that nothing up to `revision` is kept any more; the caller has popped what there was.
    pub(crate) fn raise(&mut self, revision: Revision) {
        self.start = self.start.max(revision);
    }

    /// The number of the first event after `revision`.
    pub(crate) fn position(&self, revision: Revision) -> u64 {
        self.first + self.events.partition_point(|event| event.revision() <= revision) as u64
    }

    /// The events from number `from` on, which must not be below [`Ring::first`].
    pub(crate) fn from(&self, from: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.range(usize::try_from(from - self.first).unwrap_or(usize::MAX).min(self.events.len())..)
    }
}
