//! Events, recorded behind the writes.
//!
//! Owns the queue between the controllers and the events of the API. Events tell people what was done; nothing waits for
//! them, they wait for the writes that are under way, and where they come faster than the server takes them, they are
//! dropped and counted. One that found no server, or a busy one, is tried again: its name makes sure that it is told once.
//!
//! What somebody waits for, such as that a stop was heard, has a way of its own: it waits for no write and for no other event, and
//! is told again and again until it was taken.
//!
//! ```text
//!   record ---> 16,384 places --> no write is under way, or 5 s ---> 32 at a time, 5 attempts
//!   confirm --> 32 places ---------------------------------------> 2 at a time, for a minute
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
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
use tokio::time::{Instant, sleep, timeout};

use super::write::{Note, Target};
use crate::lead::{Fence, Term};
use crate::pace::Pace;
use crate::serve::Metrics;

/// Events that may wait to be recorded.
const WAITING_MAX: usize = 16_384;
/// Events recorded at a time, once no write is under way.
const AT_ONCE: usize = 32;
/// How long no write is under way before events are recorded, where many were at once: more may follow, and what is to be seen of
/// a write is not kept waiting by telling of others.
const LULL: Duration = Duration::from_millis(50);
/// So many writes at once are many. What fewer have done is told as soon as they are done, while all that takes is still at hand.
const MANY: usize = 8;
/// How long those whose turn it is wait for writes at most. So while writes never end, a few events are told now and then, and
/// their storm is over sooner than if all were.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// How long recording one may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often one is tried to be recorded.
const ATTEMPTS_MAX: u32 = 5;
/// The pause before the second attempt; each later one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// Events that somebody waits for: how many may wait, and how many are recorded at a time.
const CONFIRMING_MAX: usize = 32;
const CONFIRMING_AT_ONCE: usize = 2;
/// How long one attempt at them may take, the pause before the next, and for how long they are tried: whoever waits does so for
/// seconds, and whoever looks later should find it, too.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(1);
const CONFIRM_PAUSE: Duration = Duration::from_millis(250);
const CONFIRM_MAX: Duration = Duration::from_mins(1);
/// The longest answer that is read: an event comes back as it was sent.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The longest note the API takes, in bytes.
const NOTE_BYTES_MAX: usize = 1_024;

/// Where events are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::Sender<Handed>,
    /// Those that somebody waits for.
    confirming: mpsc::Sender<Handed>,
    writes: Arc<watch::Sender<Writes>>,
    /// The nanosecond that the last event was named after. A clock may tell two readers the same one.
    named_after: Arc<AtomicI64>,
    metrics: Arc<Metrics>,
}

/// An event that was handed in.
#[derive(Debug)]
struct Handed {
    note: Note,
    at: Timestamp,
    /// What no other event of this process has in its name.
    suffix: i64,
    /// The term it tells of; nothing is written when that is over.
    term: Term,
}

/// How many writes are under way.
#[derive(Clone, Copy, Debug, Default)]
struct Writes {
    count: usize,
    /// How many there were at once since none was.
    peak: usize,
}

/// Writes under way. Events are recorded when none are.
pub(crate) struct UnderWay(Arc<watch::Sender<Writes>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_if_modified(|writes| {
            writes.count -= 1;
            writes.count == 0
        });
    }
}

impl Events {
    /// Records as `identity` in a task of its own, which ends when everybody who could hand one in has gone.
    pub(crate) fn start(
        client: Client,
        fence: Fence,
        identity: String,
        metrics: Arc<Metrics>,
        pace: Pace,
    ) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let (writes, quiet) = watch::channel(Writes::default());
        let (confirming, to_confirm) = mpsc::channel(CONFIRMING_MAX);
        let recorder = Arc::new(Recorder { client, fence, identity, metrics: Arc::clone(&metrics), pace });
        let recorder = tokio::spawn(async move {
            let recording = stream(waiting).for_each_concurrent(AT_ONCE, |handed| {
                let (recorder, quiet) = (Arc::clone(&recorder), quiet.clone());
                async move {
                    let _ = timeout(HOLD_MAX, lull(quiet)).await;
                    recorder.record(handed).await;
                }
            });
            let confirming = stream(to_confirm).for_each_concurrent(CONFIRMING_AT_ONCE, |handed| {
                let recorder = Arc::clone(&recorder);
                async move { recorder.confirm(handed).await }
            });
            futures::join!(recording, confirming);
        });
        let named_after = Arc::new(AtomicI64::new(0));
        (Self { queue, confirming, writes: Arc::new(writes), named_after, metrics }, recorder)
    }

    /// Writes begin; they are under way until what comes back is dropped.
    pub(crate) fn writing(&self) -> UnderWay {
        // Nobody waits for writes to begin.
        self.writes.send_if_modified(|writes| {
            let before = if writes.count == 0 { 0 } else { writes.peak };
            writes.count += 1;
            writes.peak = before.max(writes.count);
            false
        });
        UnderWay(Arc::clone(&self.writes))
    }

    /// The nanosecond, or the next that no event has been named after.
    fn suffix(&self, at: Timestamp) -> i64 {
        let now = i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX);
        let next = |last: i64| Some(now.max(last.saturating_add(1)));
        let last = self.named_after.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now.max(last.unwrap_or_default().saturating_add(1))
    }

    /// Hands in an event of a term; it is dropped if too many wait.
    pub(crate) fn record(&self, term: Term, note: Note) {
        self.hand_in(&self.queue, term, note);
    }

    /// Hands in an event of a term that somebody waits for.
    pub(crate) fn confirm(&self, term: Term, note: Note) {
        self.hand_in(&self.confirming, term, note);
    }

    fn hand_in(&self, queue: &mpsc::Sender<Handed>, term: Term, note: Note) {
        let at = Timestamp::now();
        let suffix = self.suffix(at);
        let handed = Handed { note, at, suffix, term };
        if queue.try_send(handed).is_err() {
            self.metrics.event("dropped");
        }
    }
}

fn stream(queue: mpsc::Receiver<Handed>) -> impl Stream<Item = Handed> {
    futures::stream::unfold(queue, async |mut queue: mpsc::Receiver<Handed>| {
        let handed = queue.recv().await?;
        Some((handed, queue))
    })
}

/// Waits until no write is under way, after many of them for a moment, or until nobody writes any more.
async fn lull(mut quiet: watch::Receiver<Writes>) {
    while let Ok(peak) = quiet.wait_for(|writes| writes.count == 0).await.map(|writes| writes.peak) {
        if peak < MANY {
            return;
        }
        sleep(LULL).await;
        if quiet.borrow().count == 0 {
            return;
        }
    }
}

/// Who records events.
struct Recorder {
    client: Client,
    fence: Fence,
    identity: String,
    metrics: Arc<Metrics>,
    pace: Pace,
}

impl Recorder {
    /// Records an event, however often that takes within reason.
    async fn record(&self, handed: Handed) {
        let (term, event) = (handed.term, event(handed, &self.identity));
        let mut attempt = 1;
        let recorded = loop {
            let telling = self.pace.telling();
            let attempted = self.attempt(term, &event, TIMEOUT, attempt == 1).await;
            drop(telling);
            match attempted {
                Err(error) if attempt < ATTEMPTS_MAX && error.may_pass() => {
                    sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
                    attempt += 1;
                }
                done => break done,
            }
        };
        self.tell(recorded);
    }

    /// Records an event that somebody waits for: at once, and again and again. What is refused now may be allowed when somebody
    /// has mended it.
    async fn confirm(&self, handed: Handed) {
        let (term, event) = (handed.term, event(handed, &self.identity));
        let end = Instant::now() + CONFIRM_MAX;
        let mut is_first = true;
        let recorded = loop {
            match self.attempt(term, &event, CONFIRM_TIMEOUT, is_first).await {
                Err(error) if !matches!(error, Unrecorded::Fenced) && Instant::now() < end => {
                    tracing::debug!(%error, "not confirmed yet");
                    is_first = false;
                    sleep(CONFIRM_PAUSE).await;
                }
                done => break done,
            }
        };
        self.tell(recorded);
    }

    /// One attempt, while we lead.
    async fn attempt(
        &self,
        term: Term,
        event: &Event,
        within: Duration,
        is_first: bool,
    ) -> Result<(), Unrecorded> {
        if !self.fence.holds_in(term) {
            return Err(Unrecorded::Fenced);
        }
        match timeout(within, post(&self.client, event)).await.unwrap_or(Err(Unrecorded::TimedOut)) {
            // An attempt before this one got through, and its answer did not.
            Err(Unrecorded::Refused(StatusCode::CONFLICT, _)) if !is_first => Ok(()),
            done => done,
        }
    }

    fn tell(&self, recorded: Result<(), Unrecorded>) {
        match recorded {
            Ok(()) => self.metrics.event("ok"),
            Err(error) => {
                self.metrics.event(error.result());
                tracing::debug!(%error, "an event could not be recorded");
            }
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
    #[error("no answer in time")]
    TimedOut,
    #[error("the lead was lost")]
    Fenced,
}

impl Unrecorded {
    /// A word for metrics.
    fn result(&self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Fenced => "fenced",
            Self::Request(_) | Self::Unwritable(_) | Self::Refused(..) => "refused",
        }
    }

    /// Whether another attempt may come to more.
    fn may_pass(&self) -> bool {
        match self {
            Self::Request(_) | Self::TimedOut => true,
            Self::Refused(code, _) => code.is_server_error() || *code == StatusCode::TOO_MANY_REQUESTS,
            Self::Unwritable(_) | Self::Fenced => false,
        }
    }
}

fn event(handed: Handed, identity: &str) -> Event {
    let Handed { note, at, suffix, .. } = handed;
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
    use std::sync::atomic::AtomicUsize;

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

    /// Where events go, and the paths they were sent to. Its server says these codes in turn, and the last of them for ever.
    fn events(codes: &[u16]) -> (Events, Arc<Metrics>, mpsc::UnboundedReceiver<String>) {
        let (log, sent) = mpsc::unbounded_channel();
        let codes = codes.to_vec();
        let asked = Arc::new(AtomicUsize::new(0));
        let server = tower::service_fn(move |request: Request<Body>| {
            log.send(request.uri().path().to_owned()).unwrap();
            let turn = asked.fetch_add(1, Ordering::Relaxed).min(codes.len() - 1);
            let answer = Response::builder().status(codes[turn]).body(Body::empty()).unwrap();
            std::future::ready(Ok::<_, Infallible>(answer))
        });
        let metrics = Arc::new(Metrics::default());
        let (events, _) = Events::start(
            Client::new(server, "default"),
            Fence::open(),
            "me".to_owned(),
            Arc::clone(&metrics),
            Pace::default(),
        );
        (events, metrics, sent)
    }

    /// Hands in an event of a term that does not end.
    fn record(events: &Events) {
        events.record(Fence::open().term().unwrap(), note());
    }

    fn confirm(events: &Events, note: Note) {
        events.confirm(Fence::open().term().unwrap(), note);
    }

    async fn counted(metrics: &Metrics, result: &str) {
        let line = format!("berth_events_total{{result=\"{result}\"}} 1");
        while !metrics.text().lines().any(|told| told == line) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_waits_for_the_writes_that_are_under_way() {
        let (events, metrics, mut sent) = events(&[201]);
        let one = events.writing();
        let other = events.writing();
        record(&events);
        drop(one);
        tokio::time::sleep(HOLD_MAX / 2).await;
        assert!(sent.try_recv().is_err());
        drop(other);
        let next = events.writing();
        tokio::time::sleep(2 * LULL).await;
        assert!(sent.try_recv().is_err(), "the next write began at once");
        let begun = Instant::now();
        drop(next);
        assert_eq!(sent.recv().await.unwrap(), "/apis/events.k8s.io/v1/namespaces/n/events");
        assert!(begun.elapsed() < LULL, "after a few nothing more is waited for: {:?}", begun.elapsed());
        counted(&metrics, "ok").await;
    }

    #[tokio::test(start_paused = true)]
    async fn after_many_writes_an_event_waits_whether_more_follow() {
        let (events, metrics, mut sent) = events(&[201]);
        let mut many: Vec<UnderWay> = (0..MANY).map(|_| events.writing()).collect();
        record(&events);
        many.drain(1..);
        tokio::time::sleep(LULL).await;
        let begun = Instant::now();
        many.clear();
        tokio::time::sleep(LULL / 2).await;
        assert!(sent.try_recv().is_err());
        sent.recv().await.unwrap();
        assert!(begun.elapsed() >= LULL, "{:?}", begun.elapsed());
        counted(&metrics, "ok").await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_waits_for_waits_for_no_write_and_no_other_event() {
        let (events, metrics, mut sent) = events(&[201]);
        let _under_way = events.writing();
        for _ in 0..=WAITING_MAX {
            record(&events);
        }
        counted(&metrics, "dropped").await;
        let begun = Instant::now();
        confirm(&events, Note { namespace: "home".to_owned(), ..note() });
        assert_eq!(sent.recv().await.unwrap(), "/apis/events.k8s.io/v1/namespaces/home/events");
        assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_waits_for_is_told_again_until_it_was_taken() {
        let (events, metrics, mut sent) = events(&[503, 403, 429, 500, 503, 503, 503, 201]);
        let begun = Instant::now();
        confirm(&events, note());
        counted(&metrics, "ok").await;
        assert!(begun.elapsed() < Duration::from_secs(3), "while somebody waits: {:?}", begun.elapsed());
        assert_eq!(std::iter::from_fn(|| sent.try_recv().ok()).count(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_does_not_wait_for_ever() {
        let (events, _, mut sent) = events(&[201]);
        let _under_way = events.writing();
        record(&events);
        let begun = Instant::now();
        sent.recv().await.unwrap();
        assert!(begun.elapsed() >= HOLD_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn while_writes_never_end_a_few_events_are_told_now_and_then() {
        let (events, _, mut sent) = events(&[201]);
        let _under_way = events.writing();
        (0..3 * AT_ONCE).for_each(|_| record(&events));
        tokio::time::sleep(HOLD_MAX + LULL).await;
        assert_eq!(std::iter::from_fn(|| sent.try_recv().ok()).count(), AT_ONCE);
        tokio::time::sleep(HOLD_MAX).await;
        assert_eq!(std::iter::from_fn(|| sent.try_recv().ok()).count(), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_no_longer_leads_tells_nothing() {
        let (log, mut sent) = mpsc::unbounded_channel();
        let server = tower::service_fn(move |_: Request<Body>| {
            log.send(()).unwrap();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::empty())))
        });
        let metrics = Arc::new(Metrics::default());
        let client = Client::new(server, "default");
        let (events, _) =
            Events::start(client, Fence::closed(), "me".to_owned(), Arc::clone(&metrics), Pace::default());
        record(&events);
        counted(&metrics, "fenced").await;
        assert!(sent.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_refused_is_counted() {
        let (events, metrics, mut sent) = events(&[403]);
        record(&events);
        counted(&metrics, "refused").await;
        sent.recv().await.unwrap();
        assert!(sent.try_recv().is_err(), "asked once");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_a_busy_server_turns_away_is_told_later() {
        for codes in [&[429, 500, 503, 201][..], &[500, 409][..]] {
            let (events, metrics, _sent) = events(codes);
            record(&events);
            counted(&metrics, "ok").await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_turned_away_for_ever_is_given_up() {
        let (events, metrics, mut sent) = events(&[503]);
        record(&events);
        counted(&metrics, "refused").await;
        let attempts = std::iter::from_fn(|| sent.try_recv().ok()).count();
        assert_eq!(attempts, ATTEMPTS_MAX as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn no_two_events_have_one_name() {
        let (events, ..) = events(&[201]);
        let at = Timestamp::now();
        let earlier = at - jiff::SignedDuration::from_secs(1);
        let suffixes = [events.suffix(at), events.suffix(at), events.suffix(earlier)];
        assert!(suffixes.is_sorted_by(|one, next| one < next), "{suffixes:?}");
    }
}
