//! The objects of one kind that were seen, never going back in time unless the server does.
//!
//! Two streams tell of objects: the watch, in the order of revisions, and the answers to our own writes, which are
//! ahead of it. An answer is believed at once, so that nothing is written twice for want of having seen the first
//! write; what the watch then repeats is nothing new.
//!
//! A server whose storage was brought back from a copy has lost what came after. Its list says so by its revision, and what
//! was known gives way to it.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::kind::Known;
use super::pool::Pool;

/// A revision of the API server; 0 where it is not a number.
pub(crate) type Revision = u64;

/// The objects of one kind.
#[derive(Debug)]
pub struct Store<K> {
    objects: HashMap<ObjectKey, Arc<K>>,
    /// How far the watch has come: it has nothing older to tell.
    watched: Revision,
    /// Objects we deleted whose end the watch has not told of yet, by uid.
    deleted: HashMap<String, ObjectKey>,
    /// Objects whose latest state could not be read: what is known of them is from before.
    unreadable: HashSet<ObjectKey>,
    /// The list that is under way.
    listing: Option<Listing>,
    /// Whether the first list is complete.
    is_filled: bool,
    /// What the objects have in common.
    pool: Pool,
}

/// A list that is under way.
#[derive(Debug, Default)]
struct Listing {
    /// What it has named so far, and what our own writes were answered with meanwhile.
    named: HashSet<ObjectKey>,
    /// Whether it is from before what was known: what it names first counts, whatever its revision.
    goes_back: bool,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            watched: 0,
            deleted: HashMap::new(),
            unreadable: HashSet::new(),
            listing: None,
            is_filled: false,
            pool: Pool::default(),
        }
    }
}

/// What became of an object: before and after.
pub(crate) type Turn<K> = (ObjectKey, Option<Arc<K>>, Option<Arc<K>>);

impl<K: Known> Store<K> {
    /// The object of this name.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All objects, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether every object that existed when the watch began has been seen.
    pub fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// Whether the latest that was told of this object could be read. If not, what is known of it is from before, and nothing
    /// that cannot be undone should rest on it.
    pub fn is_readable(&self, key: &ObjectKey) -> bool {
        !self.unreadable.contains(key)
    }

    /// Whether the latest that was told of some object could not be read.
    pub fn has_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// A list begins: what it does not name is gone.
    pub(crate) fn begin_list(&mut self) {
        self.listing = Some(Listing::default());
    }

    /// The list that has begun is of this revision; nothing of it was told yet.
    pub(crate) fn list_of(&mut self, list: Revision) {
        let Some(listing) = &mut self.listing else { return };
        // A list is never older than what was known when it was asked for, unless the server has lost that. What was
        // answered since then may be newer.
        let mut known = self.objects.iter().filter(|(key, _)| !listing.named.contains(key));
        let goes_back = list < self.watched || known.any(|(_, object)| object.revision() > list);
        if list == 0 || !goes_back {
            return;
        }
        tracing::warn!(kind = %K::KIND, list, watched = self.watched, "the server has gone back in time; so do we");
        listing.goes_back = true;
        listing.named.clear();
        self.watched = list;
        self.deleted.clear();
    }

    /// A list is complete.
    pub(crate) fn end_list(&mut self) -> Vec<Turn<K>> {
        self.is_filled = true;
        self.deleted.clear();
        let Some(Listing { named, .. }) = self.listing.take() else { return Vec::new() };
        self.unreadable.retain(|key| named.contains(key));
        let gone: Vec<_> = self.objects.extract_if(|key, _| !named.contains(key)).collect();
        gone.into_iter().map(|(key, object)| (key, Some(object), None)).collect()
    }

    /// The watch or a list shows an object.
    pub(crate) fn seen(&mut self, object: K) -> Option<Turn<K>> {
        let key = object.key();
        let replaces = self.name(&key);
        self.unreadable.remove(&key);
        self.watched = self.watched.max(object.revision());
        let is_deleted = object.uid().is_some_and(|uid| self.deleted.contains_key(uid));
        if is_deleted { None } else { self.put(&key, object, replaces) }
    }

    /// A list or the watch shows an object that cannot be read: it is there, and what was known of it stays.
    pub(crate) fn unreadable(&mut self, key: &ObjectKey) {
        self.name(key);
        self.unreadable.insert(key.clone());
    }

    /// The watch shows the end of an object.
    pub(crate) fn ended(&mut self, end: &ObjectMeta) -> Option<Turn<K>> {
        let key = ObjectKey::of(end);
        self.unreadable.remove(&key);
        self.watched = self.watched.max(revision(end));
        if let Some(uid) = &end.uid {
            self.deleted.remove(uid);
        }
        let found = self.objects.get(&key)?;
        if found.revision() > revision(end) && found.uid() != end.uid.as_deref() {
            // A successor of the same name, known from the answer that made it.
            return None;
        }
        let before = self.objects.remove(&key);
        Some((key, before, None))
    }

    /// A write of ours was answered with this object.
    pub(crate) fn answered(&mut self, object: K) -> Option<Turn<K>> {
        if object.revision() <= self.watched {
            // The watch has told of it, or of what came after it.
            return None;
        }
        let key = object.key();
        // The list that is under way may be from before.
        let replaces = self.name(&key);
        self.put(&key, object, replaces)
    }

    /// A deletion of ours was done.
    pub(crate) fn deleted(&mut self, key: &ObjectKey, uid: &str) -> Option<Turn<K>> {
        let found = self.objects.get(key)?;
        if found.uid() != Some(uid) {
            return None;
        }
        let before = self.objects.remove(key);
        self.deleted.insert(uid.to_owned(), key.clone());
        Some((key.clone(), before, None))
    }

    /// Notes that an object is there; whether what is told of it counts even if it is older than what was known.
    fn name(&mut self, key: &ObjectKey) -> bool {
        let Some(listing) = &mut self.listing else { return false };
        listing.named.insert(key.clone()) && listing.goes_back
    }

    fn put(&mut self, key: &ObjectKey, mut object: K, replaces: bool) -> Option<Turn<K>> {
        let known = self.objects.get_key_value(key);
        let new = object.revision();
        if known.is_some_and(|(_, known)| !replaces && new != 0 && known.revision() >= new) {
            return None;
        }
        object.slim(K::KIND, &mut self.pool);
        // One copy of a name serves the store, its objects, and whoever has an index.
        let key = match known {
            Some((known, _)) => known.clone(),
            None => object.key(),
        };
        object.adopt(&key);
        let after = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&after));
        Some((key, before, Some(after)))
    }
}

fn revision(metadata: &ObjectMeta) -> Revision {
    metadata.resource_version.as_deref().map(number).unwrap_or_default()
}

/// A revision as it is written.
pub(crate) fn number(text: &str) -> Revision {
    text.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use berth_api::Placement;

    use super::*;

    fn object(uid: &str, revision: u64) -> Placement {
        let mut object = Placement::new("p");
        object.metadata.namespace = Some("n".to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(revision.to_string());
        object
    }

    fn key() -> ObjectKey {
        ObjectKey::new("n", "p")
    }

    fn revision_of(store: &Store<Placement>) -> Option<u64> {
        store.get(&key()).map(|object| revision(&object.metadata))
    }

    #[test]
    fn the_watch_repeating_our_own_write_is_no_change() {
        let mut store = Store::default();
        assert!(store.seen(object("a", 5)).is_some());
        assert!(store.answered(object("a", 6)).is_some());
        assert!(store.seen(object("a", 6)).is_none());
        assert_eq!(revision_of(&store), Some(6));
    }

    #[test]
    fn an_answer_that_comes_after_the_watch_has_passed_it_is_nothing() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        store.ended(&object("a", 7).metadata);
        assert!(store.answered(object("a", 6)).is_none());
        assert_eq!(revision_of(&store), None);
    }

    #[test]
    fn what_we_deleted_does_not_come_back_with_news_from_before() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        assert!(store.deleted(&key(), "a").is_some());
        assert!(store.seen(object("a", 6)).is_none());
        assert!(store.ended(&object("a", 7).metadata).is_none());
        assert!(store.seen(object("b", 8)).is_some());
    }

    #[test]
    fn the_end_of_a_predecessor_does_not_end_its_successor() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        store.deleted(&key(), "a");
        store.answered(object("b", 9));
        assert!(store.ended(&object("a", 8).metadata).is_none());
        assert_eq!(revision_of(&store), Some(9));
    }

    /// Upstream: cluster_event_handler_test.go "TestOnClusterDelete: tombstone".
    /// Upstream: enqueue_test.go "TestEnqueuePlacementsByClusterSet: tombstone",
    /// "TestEnqueuePlacementsByClusterSetBinding: tombstone", "TestEnqueuePlacementsByScore: tombstone".
    /// Upstream: defects "14".
    #[test]
    fn a_new_list_ends_what_it_does_not_name() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        store.answered(object("a", 9));
        store.begin_list();
        assert_eq!(store.end_list().len(), 1, "also what we wrote before it began");
        assert!(store.is_filled());
    }

    #[test]
    fn what_we_made_while_a_list_was_under_way_stays() {
        let mut store = Store::default();
        store.begin_list();
        store.answered(object("b", 9));
        assert_eq!(store.end_list().len(), 0, "the list may be from before");
        assert_eq!(revision_of(&store), Some(9));
    }

    fn named(name: &str, uid: &str, revision: u64) -> Placement {
        let mut object = object(uid, revision);
        object.metadata.name = Some(name.to_owned());
        object
    }

    #[test]
    fn a_list_of_a_server_that_has_gone_back_is_believed() {
        let mut store = Store::default();
        store.seen(named("p", "a", 90));
        store.seen(named("deleted", "d", 40));
        store.deleted(&ObjectKey::new("n", "deleted"), "d");
        store.seen(named("lost", "l", 100));
        store.begin_list();
        store.list_of(50);
        let turn = store.seen(object("a", 30)).unwrap();
        assert!(turn.1.is_some_and(|before| revision(&before.metadata) == 90));
        assert!(store.seen(named("deleted", "d", 40)).is_some(), "its deletion was lost as well");
        let gone = store.end_list();
        assert_eq!(gone.iter().map(|turn| &*turn.0.name).collect::<Vec<_>>(), ["lost"]);
        assert_eq!((store.len(), revision_of(&store)), (2, Some(30)));
        assert!(store.answered(object("a", 60)).is_some());
        assert!(store.seen(object("a", 55)).is_none(), "from then on time goes forward again");
        assert_eq!(revision_of(&store), Some(60));
    }

    #[test]
    fn an_answer_that_the_server_has_lost_does_not_stay() {
        let mut store = Store::default();
        store.seen(object("a", 30));
        store.answered(object("a", 90));
        store.begin_list();
        store.list_of(50);
        assert!(store.seen(object("a", 30)).is_some());
        assert_eq!(store.end_list().len(), 0);
        assert_eq!(revision_of(&store), Some(30));
    }

    #[test]
    fn a_list_that_is_behind_our_own_writes_does_not_go_back() {
        let mut store = Store::default();
        store.seen(object("a", 30));
        store.begin_list();
        store.answered(object("a", 60));
        store.list_of(50);
        assert!(store.seen(object("a", 30)).is_none());
        assert_eq!(store.end_list().len(), 0);
        assert_eq!(revision_of(&store), Some(60));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_one_that_is_gone() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        store.begin_list();
        store.unreadable(&key());
        assert_eq!(store.end_list().len(), 0);
        assert_eq!(revision_of(&store), Some(5), "what was known of it stays");
    }

    #[test]
    fn what_cannot_be_read_is_known_as_such_until_it_is_seen_or_ended() {
        let mut store = Store::default();
        store.seen(object("a", 5));
        assert!(store.is_readable(&key()));
        store.unreadable(&key());
        assert!(!store.is_readable(&key()));
        store.answered(object("a", 7));
        assert!(!store.is_readable(&key()), "the answer may be from before");
        assert!(store.seen(object("a", 7)).is_none());
        assert!(store.is_readable(&key()));
        store.unreadable(&key());
        store.ended(&object("a", 9).metadata);
        assert!(store.is_readable(&key()));
        store.unreadable(&key());
        store.begin_list();
        store.unreadable(&key());
        store.end_list();
        assert!(!store.is_readable(&key()), "the list has named it");
        store.begin_list();
        store.end_list();
        assert!(store.is_readable(&key()), "it is gone");
    }
}
