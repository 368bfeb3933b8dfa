//! Lists, now and at revisions that have passed.
//!
//! Owns paging and the undoing of changes. All pages of one list are taken at one revision: the changes since then are
//! undone in an overlay, the shelf itself is never copied. It never filters by selectors.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::ListError;
use crate::key::{Place, Spot, order_of_namespaces};
use crate::revision::Revision;
use crate::shelf::ShelfState;

/// What to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListQuery<'a> {
    /// Only this namespace.
    pub namespace: Option<&'a str>,
    /// The state at this revision; none for the latest.
    pub at: Option<Revision>,
    /// Only what comes after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// At most this many entries.
    pub limit: Option<usize>,
}

/// A list, or a page of one.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The revision that the list shows.
    pub revision: Revision,
    /// The objects, ordered by namespace and name.
    pub entries: Vec<Arc<Entry>>,
    /// Objects behind the last one of this page.
    pub remaining: usize,
}

impl Listing {
    /// Whether another page follows.
    pub fn more(&self) -> bool {
        self.remaining > 0
    }
}

/// The list that `query` asks for; `now` is the revision that `shelf` shows.
pub(crate) fn list(shelf: &ShelfState, now: Revision, query: &ListQuery<'_>) -> Result<Listing, ListError> {
    let revision = check(shelf.ring().start(), now, query)?;
    let spot = |(namespace, name)| Spot { namespace, name };
    let lower = match (query.namespace, query.after) {
        // A place before the namespace: nothing of the namespace was listed yet.
        (Some(namespace), Some(after)) if order_of_namespaces(after.0, namespace).is_lt() => {
            Bound::Included(spot((namespace, "")))
        }
        (_, Some(after)) => Bound::Excluded(spot(after)),
        (Some(namespace), None) => Bound::Included(spot((namespace, ""))),
        (None, None) => Bound::Unbounded,
    };
    let inside = |place: Spot<'_>| query.namespace.is_none_or(|namespace| place.namespace == namespace);
    let current = shelf
        .entries
        .range::<dyn Place, _>((lower.as_ref().map(|place| place as &dyn Place), Bound::Unbounded))
        .take_while(|shelved| inside(shelved.place()))
        .map(|shelved| &shelved.0);

    let mut page = Page { entries: Vec::new(), limit: query.limit.unwrap_or(usize::MAX), remaining: 0 };
    if revision == now || shelf.ring().position(revision) == shelf.ring().end() {
        current.for_each(|entry| page.take(entry));
    } else {
        let past = undone(shelf, revision);
        let mut restored = past
            .range((lower, Bound::Unbounded))
            .take_while(|(place, _)| inside(**place))
            .filter_map(|(_, state)| *state)
            .peekable();
        for entry in current.filter(|entry| !past.contains_key(&entry.key().place())) {
            while let Some(earlier) = restored.next_if(|earlier| earlier.key() < entry.key()) {
                page.take(earlier);
            }
            page.take(entry);
        }
        restored.for_each(|entry| page.take(entry));
    }
    Ok(Listing { revision, entries: page.entries, remaining: page.remaining })
}

/// The revision to list at, if it can be had.
pub(crate) fn check(start: Revision, now: Revision, query: &ListQuery<'_>) -> Result<Revision, ListError> {
    match query.at {
        None => Ok(now),
        Some(asked) if asked > now => Err(ListError::Future { asked, current: now }),
        Some(asked) if asked < start => Err(ListError::Compacted { asked, oldest: start }),
        Some(asked) => Ok(asked),
    }
}

/// For every object that changed after `revision`, the state that it had then.
fn undone(shelf: &ShelfState, revision: Revision) -> BTreeMap<Spot<'_>, Option<&Arc<Entry>>> {
    let mut past = BTreeMap::new();
    for event in shelf.ring().from(shelf.ring().position(revision)) {
        // The first change after the revision knows what was before it; later ones do not matter.
        past.entry(event.entry().key().place()).or_insert(event.previous());
    }
    past
}

struct Page {
    entries: Vec<Arc<Entry>>,
    limit: usize,
    remaining: usize,
}

impl Page {
    fn take(&mut self, entry: &Arc<Entry>) {
        if self.entries.len() < self.limit {
            self.entries.push(Arc::clone(entry));
        } else {
            self.remaining += 1;
        }
    }
}
