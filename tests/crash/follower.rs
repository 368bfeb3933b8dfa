//! Watchers that outlive the server: each goes on where it was, and must end up with exactly what a list shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::load;
use crate::server;
use crate::vessel::{Collection, Sighting, is_the_hubs, parity};
use crate::witness::Witness;
use berth_tests::random::Random;

/// How long a follower may take to see what was written: forever, on a machine that works at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a follower waits before it knocks again at a server that is away.
const KNOCK: Duration = Duration::from_millis(10);

/// The way to the server: another one after it was opened anew in this process.
pub(crate) type Door = watch::Receiver<Client>;

/// How a follower asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Plain HTTP.
    Raw,
    /// Through the client library's watch.
    Library,
    /// Plain HTTP, only objects with this parity.
    Parity(&'static str),
}

/// What a follower has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The state that its events add up to.
    objects: BTreeMap<String, Sighting>,
    /// The object of each event's revision.
    events: BTreeMap<u64, String>,
    last: u64,
    /// How often the watch was begun.
    begun: usize,
}

/// One watcher.
#[derive(Debug)]
pub(crate) struct Follower {
    collection: Collection,
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
    progress: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    /// Begins to follow a collection that is empty at `from`.
    fn start(door: Door, collection: Collection, manner: Manner, from: u64, witness: Witness) -> Self {
        let (sender, progress) = watch::channel(from);
        let seen = Arc::new(Mutex::new(Seen { last: from, ..Seen::default() }));
        let following = Following { door, collection, manner, seen: Arc::clone(&seen), sender, witness };
        Self { collection, manner, seen, progress, task: tokio::spawn(following.run()) }
    }

    /// Waits until the follower has seen `revision`, and compares what it has seen with the list of then.
    async fn settle(&mut self, revision: u64, list: &Value, witness: &Witness, when: &str) {
        let reached = {
            let wait = self.progress.wait_for(|progress| *progress >= revision);
            matches!(timeout(PATIENCE, wait).await, Ok(Ok(_)))
        };
        let at = *self.progress.borrow();
        let who = format!("{when}: the follower of {:?}, {:?}", self.collection, self.manner);
        if !reached {
            let end = if self.task.is_finished() { "ended" } else { "saw nothing more" };
            panic!("{who} {end} at {at}, before {revision}");
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let listed: BTreeMap<String, Sighting> = list["items"]
            .as_array()
            .expect("a list has items")
            .iter()
            .filter_map(|item| Sighting::read(item).ok())
            .filter(|sighting| self.manner.selects(sighting))
            .map(|sighting| (sighting.name.clone(), sighting))
            .collect();
        assert_eq!(seen.objects, listed, "{who}: what it saw does not add up to what is there");
        if !matches!(self.manner, Manner::Parity(_)) {
            for (told, name) in witness.facts().revisions_of(self.collection) {
                assert_eq!(
                    seen.events.get(&told).map(String::as_str),
                    Some(name),
                    "{who}: revision {told} is missing"
                );
            }
        }
    }

    /// How many events it saw, and how often it began.
    pub(crate) fn account(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.events.len(), seen.begun)
    }
}

/// Followers of every manner and collection, which are empty at `from`.
pub(crate) fn followers(door: &Door, from: u64, witness: &Witness) -> Vec<Follower> {
    let maps =
        [Manner::Raw, Manner::Library, Manner::Parity("even")].map(|manner| (Collection::Maps, manner));
    let vessels =
        [Manner::Raw, Manner::Library, Manner::Parity("odd")].map(|manner| (Collection::Vessels, manner));
    let all = maps.into_iter().chain(vessels);
    all.map(|(collection, manner)| Follower::start(door.clone(), collection, manner, from, witness.clone()))
        .collect()
}

/// Everything that was told is true, and every follower has seen all of it. Nobody writes meanwhile.
pub(crate) async fn settle(
    client: &Client,
    followers: &mut [Follower],
    witness: &Witness,
    random: &mut Random,
    when: &str,
) {
    for collection in Collection::ALL {
        let marked = load::mark(client, witness, collection, random).await;
        let list = server::list(client, collection).await;
        for follower in followers.iter_mut().filter(|follower| follower.collection == collection) {
            follower.settle(marked, &list, witness, when).await;
        }
    }
}

impl Manner {
    fn selects(self, sighting: &Sighting) -> bool {
        match self {
            Self::Parity(wanted) => parity(sighting.sequence) == wanted,
            Self::Raw | Self::Library => true,
        }
    }
}

struct Following {
    door: Door,
    collection: Collection,
    manner: Manner,
    seen: Arc<Mutex<Seen>>,
    sender: watch::Sender<u64>,
    witness: Witness,
}

impl Following {
    async fn run(self) {
        loop {
            let from = {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.begun += 1;
                seen.last
            };
            let client = self.door.borrow().clone();
            match self.manner {
                Manner::Library => self.through_the_library(client, from).await,
                Manner::Raw | Manner::Parity(_) => self.by_hand(&client, from).await,
            }
            tokio::time::sleep(KNOCK).await;
        }
    }

    /// One watch, until it breaks.
    async fn by_hand(&self, client: &Client, from: u64) {
        let selector = match self.manner {
            Manner::Parity(parity) => format!("&labelSelector=parity%3D{parity}"),
            Manner::Raw | Manner::Library => String::new(),
        };
        let target = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={from}{selector}",
            self.collection.path()
        );
        let request = Request::get(target).body(Body::empty()).expect("a well-formed request");
        let Ok(response) = client.send(request).await else { return };
        assert_eq!(response.status(), 200, "a watch from {from} begins");
        let mut body = response.into_body();
        let mut pending = Vec::new();
        // A line that the crash cut off is forgotten with the connection.
        while let Some(Ok(frame)) = body.frame().await {
            pending.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).expect("a line is an event");
                self.see(event["type"].as_str().unwrap_or_default(), &event["object"]);
            }
        }
    }

    async fn through_the_library(&self, client: Client, from: u64) {
        let (group, version, kind, plural) = match self.collection {
            Collection::Maps => ("", "v1", "ConfigMap", "configmaps"),
            Collection::Vessels => ("test.berth.dev", "v1", "Vessel", "vessels"),
        };
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = match self.collection {
            Collection::Maps => Api::namespaced_with(client, "default", &resource),
            Collection::Vessels => Api::all_with(client, &resource),
        };
        let Ok(events) = api.watch(&WatchParams::default(), &from.to_string()).await else { return };
        let mut events = events.boxed();
        loop {
            let (kind, object) = match events.try_next().await {
                Ok(Some(WatchEvent::Added(object))) => ("ADDED", object),
                Ok(Some(WatchEvent::Modified(object))) => ("MODIFIED", object),
                Ok(Some(WatchEvent::Deleted(object))) => ("DELETED", object),
                Ok(Some(WatchEvent::Bookmark(_))) => continue,
                Ok(Some(WatchEvent::Error(status))) => panic!("a watch from {from} failed: {status:?}"),
                Ok(None) | Err(Error::ReadEvents(_) | Error::HyperError(_) | Error::Service(_)) => return,
                Err(other) => panic!("a watch from {from} broke: {other}"),
            };
            self.see(kind, &serde_json::to_value(object).expect("an object is JSON"));
        }
    }

    /// Takes one event in: it must be newer than all before, and must fit to what they added up to.
    fn see(&self, kind: &str, object: &Value) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = server::revision(object);
        let who = format!("{:?} {:?}", self.collection, self.manner);
        if kind == "BOOKMARK" {
            assert!(revision >= seen.last, "{who}: a bookmark at {revision} after {}", seen.last);
            seen.last = revision;
            return;
        }
        if is_the_hubs(object) {
            return;
        }
        let sighting = Sighting::read(object).unwrap_or_else(|torn| panic!("{who}: {kind}: {torn}"));
        assert!(revision > seen.last, "{who}: {kind} at {revision} after {}", seen.last);
        let name = sighting.name.clone();
        let before = seen.objects.get(&name);
        match kind {
            "ADDED" => assert!(before.is_none(), "{who}: {name} was added twice"),
            "MODIFIED" => {
                let same = before.is_some_and(|before| before.uid == sighting.uid);
                assert!(same, "{who}: {name} was modified and is not the object that was there: {before:?}");
            }
            "DELETED" => assert!(before.is_some(), "{who}: {name} was deleted and was not there"),
            other => panic!("{who}: {other} {object}"),
        }
        if kind == "DELETED" {
            seen.objects.remove(&name);
        } else {
            // A deletion shows the last state at the revision of the deletion: no write's revision.
            self.witness.shown(self.collection, &sighting);
            seen.objects.insert(name.clone(), sighting);
        }
        seen.events.insert(revision, name);
        seen.last = revision;
        self.sender.send_replace(revision);
    }
}
