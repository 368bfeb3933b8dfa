//! What clients were told, and whether it is still true.
//!
//! Every name belongs to one writer, so what its object may be is known: what the last acknowledged write made it, or
//! what the one attempt without an answer made it. Everything shown to anybody counts as told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use serde_json::Value;

use crate::server;
use crate::vessel::{Collection, Sighting, is_the_hubs};

/// Shared by everybody who is told something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Witness(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// What each revision was said to be: an object's name, and the number of the write that made it so. Deletions are
    /// only shown to watchers.
    revisions: BTreeMap<u64, (Collection, String, u64)>,
    objects: BTreeMap<(Collection, String), Belief>,
    /// The highest revision that anybody was told.
    pub(crate) highest: u64,
    acknowledged: u64,
    unanswered: u64,
    /// Attempts without an answer that turned out to have been carried out.
    carried_out: u64,
}

#[derive(Debug, Clone, Default)]
struct Belief {
    /// What the last acknowledged write left there.
    known: Option<Sighting>,
    attempt: Option<Attempt>,
    /// A revision at which the object was known to be there; a later state has a higher one.
    at_least: u64,
}

/// A write that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Put { sequence: u64 },
    Delete,
}

impl Witness {
    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a writer may take an object to be before it writes.
    pub(crate) fn known(&self, collection: Collection, name: &str) -> Option<Sighting> {
        self.facts().objects.get(&(collection, name.to_owned())).and_then(|belief| belief.known.clone())
    }

    /// A write is about to be sent.
    pub(crate) fn attempt(&self, collection: Collection, name: &str, attempt: Attempt) {
        let mut facts = self.facts();
        let belief = facts.objects.entry((collection, name.to_owned())).or_default();
        assert_eq!(belief.attempt, None, "{name}: a writer awaits one answer at a time");
        belief.attempt = Some(attempt);
    }

    /// The write was refused: nothing was done.
    pub(crate) fn refused(&self, collection: Collection, name: &str) {
        let mut facts = self.facts();
        if let Some(belief) = facts.objects.get_mut(&(collection, name.to_owned())) {
            belief.attempt = None;
        }
    }

    /// No answer came.
    pub(crate) fn unanswered(&self) {
        self.facts().unanswered += 1;
    }

    /// The write was acknowledged, with the object it made unless it was a deletion.
    pub(crate) fn acknowledged(&self, collection: Collection, name: &str, object: Option<Sighting>) {
        let mut facts = self.facts();
        facts.acknowledged += 1;
        if let Some(sighting) = &object {
            facts.told(collection, sighting);
        }
        let belief = facts.objects.entry((collection, name.to_owned())).or_default();
        match (belief.attempt.take(), &object) {
            (Some(Attempt::Put { sequence }), Some(sighting)) => {
                assert_eq!(sighting.sequence, sequence, "{name}: the answer is another write's");
                assert!(
                    sighting.revision > belief.at_least,
                    "{name}: revision {} was here before",
                    sighting.revision
                );
                belief.at_least = sighting.revision;
            }
            (Some(Attempt::Delete), None) => {}
            (attempt, _) => panic!("{name}: {attempt:?} was answered with {object:?}"),
        }
        belief.known = object;
    }

    /// An object was shown to a reader or a watcher.
    pub(crate) fn shown(&self, collection: Collection, sighting: &Sighting) {
        self.facts().told(collection, sighting);
    }

    /// Somebody was told that the server is at this revision.
    pub(crate) fn reached(&self, revision: u64) {
        let mut facts = self.facts();
        facts.highest = facts.highest.max(revision);
    }

    /// How many writes were acknowledged, how many were without an answer, and how many of those were carried out.
    pub(crate) fn account(&self) -> (u64, u64, u64) {
        let facts = self.facts();
        (facts.acknowledged, facts.unanswered, facts.carried_out)
    }

    /// Lists everything and compares it with what was told. Attempts without an answer are settled by what is found.
    pub(crate) async fn inspect(&self, client: &Client, when: &str) {
        for collection in Collection::ALL {
            let list = server::list(client, collection).await;
            self.compare(collection, &list, when);
        }
    }

    fn compare(&self, collection: Collection, list: &Value, when: &str) {
        let at = server::revision(list);
        let mut facts = self.facts();
        assert!(
            at >= facts.highest,
            "{when}: {collection:?} is at {at}, and {} was told before",
            facts.highest
        );
        facts.highest = at;
        let mut found: BTreeMap<String, Sighting> = BTreeMap::new();
        let items = list["items"].as_array().expect("a list has items");
        for item in items.iter().filter(|item| !is_the_hubs(item)) {
            let sighting = Sighting::read(item).unwrap_or_else(|torn| panic!("{when}: {torn}"));
            assert!(sighting.revision <= at, "{when}: {} is ahead of its list at {at}", sighting.name);
            facts.told(collection, &sighting);
            found.insert(sighting.name.clone(), sighting);
        }
        let names: Vec<String> =
            facts.objects.keys().filter(|(of, _)| *of == collection).map(|(_, name)| name.clone()).collect();
        for name in names {
            let now = found.remove(&name);
            let belief = facts.objects.get_mut(&(collection, name.clone())).expect("listed just above");
            let as_acknowledged = now == belief.known;
            let as_attempted = match (belief.attempt, &now) {
                (Some(Attempt::Put { sequence }), Some(now)) => {
                    let same_object = belief.known.as_ref().is_none_or(|known| known.uid == now.uid);
                    now.sequence == sequence && now.revision > belief.at_least && same_object
                }
                (Some(Attempt::Delete), None) => true,
                _ => false,
            };
            assert!(
                as_acknowledged || as_attempted,
                "{when}: {collection:?} {name} is {now:?}; acknowledged was {:?}, then {:?} was attempted",
                belief.known,
                belief.attempt,
            );
            belief.at_least = belief.at_least.max(now.as_ref().map_or(0, |now| now.revision));
            belief.known = now;
            belief.attempt = None;
            facts.carried_out += u64::from(as_attempted && !as_acknowledged);
        }
        assert!(found.is_empty(), "{when}: nobody wrote {:?}", found.keys());
    }
}

impl Facts {
    /// A revision belongs to one write for ever.
    fn told(&mut self, collection: Collection, sighting: &Sighting) {
        let Sighting { name, revision, sequence, .. } = sighting;
        let told = (collection, name.clone(), *sequence);
        let before = self.revisions.entry(*revision).or_insert_with(|| told.clone());
        assert_eq!(*before, told, "revision {revision} was used twice");
        self.highest = self.highest.max(*revision);
    }

    /// The revisions of a collection that somebody was told of, with the object of each.
    pub(crate) fn revisions_of(&self, collection: Collection) -> impl Iterator<Item = (u64, &str)> {
        let ours = self.revisions.iter().filter(move |(_, (of, ..))| *of == collection);
        ours.map(|(revision, (_, name, _))| (*revision, name.as_str()))
    }
}
