//! Events, recorded behind the writes.
//!
//! Owns the queue between the controllers and the events of the API. Events tell people what was done; nothing waits for
//! them, and where they come faster than the server takes them, they are dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::write::{Note, Target};
use crate::serve::Metrics;

/// Events that may wait to be recorded.
const WAITING_MAX: usize = 8_192;
/// Events recorded at a time: few, so that writes go first.
const AT_ONCE: usize = 4;
/// How long recording one may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest note the API takes, in bytes.
const NOTE_BYTES_MAX: usize = 1_024;

/// Where events are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::Sender<Note>,
    metrics: Arc<Metrics>,
}

impl Events {
    /// Records as `identity` in a task of its own, which ends when everybody who could hand one in has gone.
    pub(crate) fn start(client: Client, identity: String, metrics: Arc<Metrics>) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let counted = Arc::clone(&metrics);
        let recorder = tokio::spawn(async move {
            let waiting = futures::stream::unfold(waiting, async |mut waiting: mpsc::Receiver<Note>| {
                let note = waiting.recv().await?;
                Some((note, waiting))
            });
            let recording = waiting.for_each_concurrent(AT_ONCE, |note: Note| {
                let (client, identity, metrics) = (client.clone(), identity.clone(), Arc::clone(&counted));
                async move {
                    let namespace = note.namespace.clone();
                    let events: Api<Event> = Api::namespaced(client, &namespace);
                    let event = event(note, &identity);
                    let recorded =
                        tokio::time::timeout(TIMEOUT, events.create(&PostParams::default(), &event)).await;
                    match recorded {
                        Ok(Ok(_)) => metrics.event("ok"),
                        Ok(Err(error)) => {
                            metrics.event("refused");
                            tracing::debug!(%error, "an event could not be recorded");
                        }
                        Err(_) => metrics.event("timeout"),
                    }
                }
            });
            recording.await;
        });
        (Self { queue, metrics }, recorder)
    }

    /// Hands in an event; it is dropped if too many wait.
    pub(crate) fn record(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            self.metrics.event("dropped");
        }
    }
}

fn event(note: Note, identity: &str) -> Event {
    let now = jiff::Timestamp::now();
    let suffix = now.as_nanosecond();
    let mut text = note.note;
    while text.len() > NOTE_BYTES_MAX {
        text.pop();
    }
    Event {
        metadata: ObjectMeta {
            // Unique as client-go makes it: the object's name and the nanoseconds.
            name: Some(format!("{}.{suffix:x}", note.regarding.key.name)),
            namespace: Some(note.namespace),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        type_: Some(if note.is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(note.reason.to_owned()),
        action: Some(note.action.to_owned()),
        note: Some(text),
        regarding: Some(reference(note.regarding)),
        related: note.related.map(reference),
        reporting_controller: Some(note.reporter.to_owned()),
        reporting_instance: Some(identity.to_owned()),
        ..Event::default()
    }
}

fn reference(target: Target) -> ObjectReference {
    ObjectReference {
        api_version: Some(target.kind.api_version()),
        kind: Some(target.kind.name()),
        namespace: (!target.key.namespace.is_empty()).then(|| target.key.namespace.to_string()),
        name: Some(target.key.name.to_string()),
        uid: target.uid,
        resource_version: target.resource_version,
        ..ObjectReference::default()
    }
}
