//! Clients at work: writers that each own a few names, and readers that look at everything.

use http::Method;
use kube::Client;
use serde_json::json;
use tokio::sync::watch;

use crate::server::{Answer, JSON, revision, send};
use crate::vessel::{Collection, Sighting, is_the_hubs, parity};
use crate::witness::{Attempt, Witness};
use berth_tests::random::Random;

/// Names of one writer: few, so that objects are changed and made anew again and again.
const NAMES: usize = 5;

/// The object that is written last, when followers are waited for.
const MARKER: &str = "marker";

/// How a writer takes an error of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// There is no reason for one.
    Never,
    /// The storage is made to fail: whether the write was carried out is unknown.
    Expected,
}

/// One client that writes.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) client: Client,
    pub(crate) witness: Witness,
    pub(crate) random: Random,
    pub(crate) number: usize,
    pub(crate) errors: Errors,
    /// Counts acknowledgements of all writers.
    pub(crate) counter: watch::Sender<u64>,
}

impl Writer {
    fn collection(&self) -> Collection {
        Collection::ALL[self.number % Collection::ALL.len()]
    }

    /// Writes until the server falls silent or fails, or `count` writes are acknowledged.
    pub(crate) async fn run(&mut self, count: usize) {
        for _ in 0..count {
            if !self.write().await {
                return;
            }
            self.counter.send_modify(|count| *count += 1);
        }
    }

    /// One write; false when its outcome is unknown.
    async fn write(&mut self) -> bool {
        let collection = self.collection();
        let name = format!("w{}-{}", self.number, self.random.below(NAMES));
        let known = self.witness.known(collection, &name);
        // Unique over all writers, and of either parity.
        let sequence = self.random.next() >> 8;
        let (attempt, answer) = match &known {
            None => {
                let attempt = Attempt::Put { sequence };
                self.witness.attempt(collection, &name, attempt);
                let body = collection.object(&name, sequence, None);
                (attempt, send(&self.client, Method::POST, collection.path(), Some((JSON, &body))).await)
            }
            Some(_) if self.random.chance(15) => {
                self.witness.attempt(collection, &name, Attempt::Delete);
                (Attempt::Delete, send(&self.client, Method::DELETE, &collection.item(&name), None).await)
            }
            Some(known) => {
                let attempt = Attempt::Put { sequence };
                self.witness.attempt(collection, &name, attempt);
                (attempt, self.change(collection, &name, sequence, known.revision).await)
            }
        };
        match answer {
            Answer::Told { code: 200 | 201, body } => {
                let object = match attempt {
                    Attempt::Put { .. } => {
                        Some(Sighting::read(&body).unwrap_or_else(|torn| panic!("{name}: {torn}")))
                    }
                    Attempt::Delete => None,
                };
                self.witness.acknowledged(collection, &name, object);
                true
            }
            Answer::Told { code: 429, .. } => {
                self.witness.refused(collection, &name);
                true
            }
            Answer::Told { code: 500.., .. } if self.errors == Errors::Expected => {
                self.witness.unanswered();
                false
            }
            Answer::Told { code, body } => {
                panic!("{name}: {attempt:?} on {known:?} was answered with {code}: {body}")
            }
            Answer::Silence => {
                self.witness.unanswered();
                false
            }
        }
    }

    /// A change, in one of the ways there are.
    async fn change(&mut self, collection: Collection, name: &str, sequence: u64, at: u64) -> Answer {
        let item = collection.item(name);
        match self.random.below(3) {
            0 => {
                let body = collection.object(name, sequence, Some(at));
                send(&self.client, Method::PUT, &item, Some((JSON, &body))).await
            }
            1 => {
                let whole = collection.object(name, sequence, None);
                let body =
                    json!({"metadata": {"labels": {"parity": parity(sequence)}}, "data": whole["data"]});
                send(&self.client, Method::PATCH, &item, Some(("application/merge-patch+json", &body))).await
            }
            _ => {
                let body = collection.object(name, sequence, None);
                let target = format!("{item}?fieldManager=crash&force=true");
                send(&self.client, Method::PATCH, &target, Some(("application/apply-patch+yaml", &body)))
                    .await
            }
        }
    }
}

/// Writes an object that every follower of its collection sees, and gives its revision.
pub(crate) async fn mark(
    client: &Client,
    witness: &Witness,
    collection: Collection,
    random: &mut Random,
) -> u64 {
    let known = witness.known(collection, MARKER);
    let sequence = match collection {
        Collection::Maps => (random.next() >> 8) & !1,
        Collection::Vessels => (random.next() >> 8) | 1,
    };
    witness.attempt(collection, MARKER, Attempt::Put { sequence });
    let body = collection.object(MARKER, sequence, known.as_ref().map(|known| known.revision));
    let answer = match known {
        None => send(client, Method::POST, collection.path(), Some((JSON, &body))).await,
        Some(_) => send(client, Method::PUT, &collection.item(MARKER), Some((JSON, &body))).await,
    };
    let Answer::Told { code: 200 | 201, body } = answer else { panic!("no marker was written: {answer:?}") };
    let sighting = Sighting::read(&body).unwrap_or_else(|torn| panic!("{torn}"));
    let revision = sighting.revision;
    witness.acknowledged(collection, MARKER, Some(sighting));
    revision
}

/// One client that reads, until the server falls silent or the load is over.
pub(crate) async fn read(
    client: Client,
    witness: Witness,
    mut random: Random,
    mut over: watch::Receiver<bool>,
) {
    while !*over.borrow_and_update() {
        let collection = *random.pick(&Collection::ALL);
        let before = witness.facts().highest;
        let Answer::Told { code, body } = send(&client, Method::GET, collection.path(), None).await else {
            return;
        };
        assert_eq!(code, 200, "a list is answered whatever the storage does: {body}");
        let at = revision(&body);
        assert!(at >= before, "a list at {at} came after {before} was told");
        witness.reached(at);
        let items = body["items"].as_array().expect("a list has items");
        for item in items.iter().filter(|item| !is_the_hubs(item)) {
            let sighting = Sighting::read(item).unwrap_or_else(|torn| panic!("{torn}"));
            witness.shown(collection, &sighting);
        }
    }
}
