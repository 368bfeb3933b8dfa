//! Watches: the current state if asked for, then every change, until somebody ends it.
//!
//! Owns one stream of lines per watcher. Changes are encoded once for all watchers of a form; a watcher that is too
//! slow falls out of the history and is told so, and never holds up a writer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use berth_hub_store::{Entry, Event, EventKind, Revision, Watch, WatchEnd, WatchError};
use berth_hub_wire::options::parse_resource_version;
use berth_hub_wire::{Answer, ListOptions, Shape, Status, TableOptions, WatchKind, envelope};
use bytes::{Bytes, BytesMut};
use futures::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::present::{parse, present};
use super::{Selection, Shaper};
use crate::core::Core;
use crate::registry::Resource;
use crate::reply::{self, Reply};

/// Lines that are ready together leave together, up to this many bytes.
const CHUNK_BYTES: usize = 32 * 1024;
/// A bookmark shortly before the end lets the client come back without reading anything twice.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// What one watch is about.
pub(crate) struct Watching {
    pub(crate) core: Arc<Core>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) selection: Selection,
    pub(crate) answer: Answer,
    pub(crate) table: TableOptions,
}

/// Begins a watch.
pub(crate) fn watch(
    watching: Watching,
    options: &ListOptions,
    permit: OwnedSemaphorePermit,
    end: Duration,
) -> Result<Reply, Status> {
    let core = Arc::clone(&watching.core);
    let storage = &watching.resource.storage;
    let namespace = watching.namespace.as_deref();
    let asked = parse_resource_version(&options.resource_version)
        .map_err(|cause| Status::unexplained(format!("{}: {}", cause.field, cause.message)))?;
    // Asked for, or the older habit of a watch from nowhere in particular.
    let initial = options.send_initial_events.unwrap_or(asked == 0);
    let (snapshot, changes) = if initial {
        let (listing, changes) = core.ledger.list_and_watch(storage, namespace);
        (Some(listing), Ok(changes))
    } else if asked == 0 {
        (None, Ok(core.ledger.watch_from_now(storage, namespace)))
    } else {
        (None, core.ledger.watch(storage, namespace, Revision(asked)))
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(WatchError::Compacted { asked, oldest }) => {
            let line = envelope::watch_error(&Status::too_old_resource_version(asked.0, oldest.0));
            return Ok(streamed(&watching, Body::from(line)));
        }
    };
    let mut pending = VecDeque::new();
    let mut initial_end = None;
    if let Some(listing) = snapshot {
        pending.extend(listing.entries.into_iter().filter(|entry| watching.selection.matches(entry)));
        if options.is_streaming_list() {
            initial_end = Some(listing.revision);
        }
    }
    let reply_head = streamed(&watching, Body::empty());
    let mut bookmarks = tokio::time::interval(core.limits.bookmark);
    bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    bookmarks.reset();
    let state = Stream {
        registry: core.registry_changes(),
        bookmarks: options.allow_watch_bookmarks.then_some(bookmarks),
        ends: Instant::now() + end,
        last_bookmark: false,
        first: true,
        done: false,
        pending,
        initial_end,
        changes,
        watching,
        _permit: permit,
    };
    state.watching.core.metrics.watch_began();
    let lines = stream::unfold(state, |mut state| async move {
        let chunk = state.chunk().await?;
        Some((Ok::<_, Infallible>(chunk), state))
    });
    Ok(reply_head.map(|_| Body::from_stream(lines)))
}

fn streamed(watching: &Watching, body: Body) -> Reply {
    reply::stream(watching.answer.content_type(), body)
}

struct Stream {
    watching: Watching,
    changes: Watch,
    /// Objects of the initial state that were not sent yet.
    pending: VecDeque<Arc<Entry>>,
    /// The revision of the initial state, until its end was marked.
    initial_end: Option<Revision>,
    bookmarks: Option<Interval>,
    registry: tokio::sync::watch::Receiver<()>,
    ends: Instant,
    last_bookmark: bool,
    /// Whether no event was sent yet: only the first table names its columns.
    first: bool,
    done: bool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.watching.core.metrics.watch_ended();
    }
}

impl Stream {
    /// The next lines, or the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let mut lines = Lines::default();
        self.initial(&mut lines);
        if !lines.is_empty() {
            return Some(lines.take(&self.watching.core));
        }
        loop {
            match self.changes.try_next() {
                Ok(Some(event)) => {
                    self.push(&event, &mut lines);
                    if lines.bytes < CHUNK_BYTES {
                        continue;
                    }
                }
                Ok(None) => {}
                Err(end) => {
                    self.finish(end, &mut lines);
                }
            }
            if self.done || !lines.is_empty() {
                return (!lines.is_empty()).then(|| lines.take(&self.watching.core));
            }
            self.wait(&mut lines).await;
        }
    }

    /// Waits until there is something to send or a reason to end.
    async fn wait(&mut self, lines: &mut Lines) {
        let core = Arc::clone(&self.watching.core);
        let warn_at = if self.last_bookmark || self.bookmarks.is_none() {
            self.ends
        } else {
            self.ends - LAST_BOOKMARK.min(self.ends - Instant::now())
        };
        tokio::select! {
            biased;
            () = core.stopping.cancelled() => self.done = true,
            () = tokio::time::sleep_until(warn_at) => {
                if warn_at >= self.ends {
                    self.done = true;
                } else {
                    self.last_bookmark = true;
                    self.bookmark(lines);
                }
            }
            changed = self.registry.changed() => {
                if changed.is_err() || !self.still_served() {
                    self.done = true;
                }
            }
            () = tick(&mut self.bookmarks) => self.bookmark(lines),
            next = self.changes.next() => match next {
                Ok(event) => self.push(&event, lines),
                Err(end) => self.finish(end, lines),
            },
        }
    }

    fn still_served(&self) -> bool {
        let ours = &self.watching.resource;
        let registry = self.watching.core.registry();
        registry.find(&ours.group, &ours.version, &ours.plural).is_some_and(|now| {
            // With another schema objects look different: the client begins anew.
            now.custom().map(|version| (&version.definition_uid, version.since))
                == ours.custom().map(|version| (&version.definition_uid, version.since))
        })
    }

    fn initial(&mut self, lines: &mut Lines) {
        while lines.bytes < CHUNK_BYTES {
            let Some(entry) = self.pending.pop_front() else { break };
            let json = present(&self.watching.resource, &entry);
            let object = self.shaper().event_object(&json, self.first);
            self.first = false;
            lines.push(envelope::watch_line(WatchKind::Added, &object));
        }
        if self.pending.is_empty()
            && let Some(revision) = self.initial_end.take()
        {
            self.mark(&revision.to_string(), true, lines);
        }
    }

    fn bookmark(&mut self, lines: &mut Lines) {
        let revision = self.changes.progress().to_string();
        self.mark(&revision, false, lines);
    }

    /// A bookmark, which says where the watch is, and at the end of the initial events that they are over.
    fn mark(&mut self, revision: &str, initial_end: bool, lines: &mut Lines) {
        let resource = Arc::clone(&self.watching.resource);
        if self.watching.answer.shape == Shape::Plain {
            lines.push(envelope::bookmark(&resource.api_version(), &resource.kind, revision, initial_end));
            return;
        }
        // Bookmarks of other forms wear that form, as every object of such a watch does.
        let object =
            envelope::bookmark_object(&resource.api_version(), &resource.kind, revision, initial_end);
        let shaped = self.shaper().event_object(&object, self.first);
        self.first = false;
        lines.push(envelope::watch_line(WatchKind::Bookmark, &shaped));
    }

    fn finish(&mut self, end: WatchEnd, lines: &mut Lines) {
        if let WatchEnd::Lagged { seen, oldest } = end {
            self.watching.core.metrics.watch_cut();
            lines.push(envelope::watch_error(&Status::too_old_resource_version(seen.0, oldest.0)));
        }
        self.done = true;
    }

    fn shaper(&self) -> Shaper<'_> {
        Shaper {
            resource: &self.watching.resource,
            answer: self.watching.answer,
            table: self.watching.table,
            now: self.watching.core.clock.now(),
        }
    }

    /// What one change is to this watcher: objects come and go as they begin and cease to be selected.
    fn push(&mut self, event: &Event, lines: &mut Lines) {
        let selection = &self.watching.selection;
        let (kind, last_seen) = if selection.is_everything() {
            (event.kind(), false)
        } else {
            let before = event.previous().is_some_and(|previous| selection.matches(previous));
            let after = event.kind() != EventKind::Deleted && selection.matches(event.entry());
            match (before, after) {
                (false, true) => (EventKind::Added, false),
                (true, true) => (EventKind::Modified, false),
                (true, false) => (EventKind::Deleted, event.kind() != EventKind::Deleted),
                (false, false) => return,
            }
        };
        let line = self.line(event, kind, last_seen);
        self.first = false;
        lines.push(line);
    }

    fn line(&self, event: &Event, kind: EventKind, last_seen: bool) -> Bytes {
        let resource = &self.watching.resource;
        let plain = self.watching.answer.shape == Shape::Plain;
        if plain && !last_seen && resource.is_storage_form() && resource.builtin().is_some() {
            return event.line(kind, |entry| envelope::watch_line(announced(kind), entry.json()));
        }
        let make = |event: &Event| {
            let json = match event.previous() {
                // An object that is no longer selected is shown as it was last seen, at the revision it left.
                Some(previous) if last_seen => {
                    let mut object = parse(&present(resource, previous));
                    object["metadata"]["resourceVersion"] = event.revision().to_string().into();
                    serde_json::to_vec(&object).expect("a value of JSON is JSON").into()
                }
                _ => present(resource, event.entry()),
            };
            envelope::watch_line(announced(kind), &self.shaper().event_object(&json, self.first))
        };
        let tabular = matches!(self.watching.answer.shape, Shape::Table(_));
        if tabular && self.first {
            return make(event);
        }
        event.encoded(self.tag(kind, last_seen), make)
    }

    /// Watchers with equal tags are sent equal lines.
    fn tag(&self, kind: EventKind, last_seen: bool) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        let resource = &self.watching.resource;
        let schema = resource.custom().map(|version| version.since.0);
        (
            &resource.group,
            &resource.version,
            schema,
            kind,
            last_seen,
            self.watching.answer.shape,
            self.watching.table,
        )
            .hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Default)]
struct Lines {
    lines: Vec<Bytes>,
    bytes: usize,
}

impl Lines {
    fn push(&mut self, line: Bytes) {
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn take(self, core: &Core) -> Bytes {
        core.metrics.events_sent(self.lines.len());
        if self.lines.len() == 1 {
            return self.lines.into_iter().next().expect("there is one line");
        }
        let mut chunk = BytesMut::with_capacity(self.bytes);
        self.lines.iter().for_each(|line| chunk.extend_from_slice(line));
        chunk.freeze()
    }
}

/// A change in the words of the watch protocol.
fn announced(kind: EventKind) -> WatchKind {
    match kind {
        EventKind::Added => WatchKind::Added,
        EventKind::Modified => WatchKind::Modified,
        EventKind::Deleted => WatchKind::Deleted,
    }
}

async fn tick(bookmarks: &mut Option<Interval>) {
    match bookmarks {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}
