//! Events, recorded behind the writes.
//!
//! Owns the queue between the controllers and the events of the API. Events tell people what was done; nothing waits for
//! them, they wait for the writes that are under way, and where they come faster than the server takes them, they are
//! dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Limited};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::client::Body;
use kube::{Client, Resource as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::write::{Note, Target};
use crate::serve::Metrics;

/// Events that may wait to be recorded.
const WAITING_MAX: usize = 8_192;
/// Events recorded at a time: few, so that writes go first.
const AT_ONCE: usize = 4;
/// How long one waits for writes at most: long enough for a storm of them, too short for a person to wonder.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// How long recording one may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read: an event comes back as it was sent.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The longest note the API takes, in bytes.
const NOTE_BYTES_MAX: usize = 1_024;

/// Where events are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::Sender<Handed>,
    writes: Arc<watch::Sender<usize>>,
    metrics: Arc<Metrics>,
}

/// An event that was handed in.
#[derive(Debug)]
struct Handed {
    note: Note,
    at: Timestamp,
    /// When it is recorded even though writes are under way.
    until: Instant,
}

/// Writes under way. Events are recorded when none are.
pub(crate) struct UnderWay(Arc<watch::Sender<usize>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_if_modified(|count| {
            *count -= 1;
            *count == 0
        });
    }
}

impl Events {
    /// Records as `identity` in a task of its own, which ends when everybody who could hand one in has gone.
    pub(crate) fn start(client: Client, identity: String, metrics: Arc<Metrics>) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let (writes, quiet) = watch::channel(0);
        let counted = Arc::clone(&metrics);
        let recorder = tokio::spawn(async move {
            let waiting = futures::stream::unfold(waiting, async |mut waiting: mpsc::Receiver<Handed>| {
                let handed = waiting.recv().await?;
                Some((handed, waiting))
            });
            let recording = waiting.for_each_concurrent(AT_ONCE, |handed: Handed| {
                let (client, identity, metrics) = (client.clone(), identity.clone(), Arc::clone(&counted));
                let mut quiet = quiet.clone();
                async move {
                    // Nobody writes any more if the count has gone.
                    let _ = timeout_at(handed.until, quiet.wait_for(|count| *count == 0)).await;
                    let event = event(handed.note, handed.at, &identity);
                    match timeout(TIMEOUT, post(&client, &event)).await {
                        Ok(Ok(())) => metrics.event("ok"),
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
        (Self { queue, writes: Arc::new(writes), metrics }, recorder)
    }

    /// Writes begin; they are under way until what comes back is dropped.
    pub(crate) fn writing(&self) -> UnderWay {
        // Nobody waits for writes to begin.
        self.writes.send_if_modified(|count| {
            *count += 1;
            false
        });
        UnderWay(Arc::clone(&self.writes))
    }

    /// Hands in an event; it is dropped if too many wait.
    pub(crate) fn record(&self, note: Note) {
        let handed = Handed { note, at: Timestamp::now(), until: Instant::now() + HOLD_MAX };
        if self.queue.try_send(handed).is_err() {
            self.metrics.event("dropped");
        }
    }
}

/// Sends an event. What the server makes of it is of no interest, and read only so that the connection can be used again.
async fn post(client: &Client, event: &Event) -> Result<(), Unrecorded> {
    let path = Event::url_path(&(), event.metadata.namespace.as_deref());
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(serde_json::to_vec(event)?));
    let response = client.send(request.expect("namespaces are made of what a path may hold")).await?;
    let code = response.status();
    let answer = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    if code.is_success() {
        return Ok(());
    }
    let answer = answer.map(Collected::to_bytes).unwrap_or_default();
    Err(Unrecorded::Refused(code, String::from_utf8_lossy(&answer).into_owned()))
}

/// Why an event was not recorded.
#[derive(Debug, thiserror::Error)]
enum Unrecorded {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error(transparent)]
    Unwritable(#[from] serde_json::Error),
    #[error("{0}: {1}")]
    Refused(StatusCode, String),
}

fn event(note: Note, at: Timestamp, identity: &str) -> Event {
    let suffix = at.as_nanosecond();
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
        event_time: Some(MicroTime(at)),
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use berth_engine::model::ObjectKey;
    use http::Response;
    use kube::client::Body;

    use super::*;
    use crate::world::Kind;

    fn note() -> Note {
        Note {
            regarding: Target::to_come(Kind::Placement, ObjectKey::new("n", "p")),
            related: None,
            is_warning: false,
            reason: "R",
            action: "A",
            note: "sentence".to_owned(),
            reporter: "berth",
            namespace: "n".to_owned(),
        }
    }

    /// Where events go, and the paths they were sent to.
    fn events(code: u16) -> (Events, Arc<Metrics>, mpsc::UnboundedReceiver<String>) {
        let (log, sent) = mpsc::unbounded_channel();
        let server = tower::service_fn(move |request: Request<Body>| {
            log.send(request.uri().path().to_owned()).unwrap();
            let answer = Response::builder().status(code).body(Body::empty()).unwrap();
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        let metrics = Arc::new(Metrics::default());
        let (events, _) =
            Events::start(Client::new(server, "default"), "me".to_owned(), Arc::clone(&metrics));
        (events, metrics, sent)
    }

    async fn counted(metrics: &Metrics, result: &str) {
        let line = format!("berth_events_total{{result=\"{result}\"}} 1");
        while !metrics.text().lines().any(|told| told == line) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_waits_for_the_writes_that_are_under_way() {
        let (events, metrics, mut sent) = events(201);
        let one = events.writing();
        let other = events.writing();
        events.record(note());
        drop(one);
        tokio::time::sleep(HOLD_MAX / 2).await;
        assert!(sent.try_recv().is_err());
        drop(other);
        assert_eq!(sent.recv().await.unwrap(), "/apis/events.k8s.io/v1/namespaces/n/events");
        counted(&metrics, "ok").await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_does_not_wait_for_ever() {
        let (events, _, mut sent) = events(201);
        let _under_way = events.writing();
        events.record(note());
        let begun = Instant::now();
        sent.recv().await.unwrap();
        assert!(begun.elapsed() >= HOLD_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_refused_is_counted() {
        let (events, metrics, _sent) = events(403);
        events.record(note());
        counted(&metrics, "refused").await;
    }
}
