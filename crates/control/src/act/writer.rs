//! Effects out: the writes of one subject, one after another.
//!
//! Owns how a write is sent: with the identity and revision it was decided on, within a time, and only while we lead.
//! It retries nothing itself: what failed is decided again, because the world may have moved.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use berth_engine::model::ObjectKey;
use http::{Method, Request, header};
use kube::Client;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::Events;
use super::write::{Note, Target, Write};
use crate::lead::{Fence, Term};
use crate::serve::Metrics;
use crate::world::{Kind, Object, Told};

/// How long a write may take, also where nobody else can lead.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The two kinds of patches.
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";
/// What an API server gives as its reason where there is no such object.
const NOT_FOUND: &str = "NotFound";
/// What an API server says where an object is not the one that was meant.
const OTHER_UID: &str = "UID in precondition";

/// The writes of one subject.
#[derive(Debug)]
pub(crate) struct Job {
    /// The term it was decided in; what is left of it when that ends is not written.
    pub(crate) term: Term,
    pub(crate) writes: Vec<Write>,
    pub(crate) notes: Vec<Note>,
}

/// Why a write was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("the lead was lost")]
    Fenced,
    #[error("a defect ended the job")]
    Broken,
    #[error("{write}: the object is not the one that was seen: {message}")]
    Stale { write: String, message: String },
    #[error("{write}: no answer in time")]
    TimedOut { write: String },
    #[error("{write}: whether it is as it was seen cannot be found out: {why}")]
    Unanswered { write: String, why: String },
    #[error("{write}: {source}")]
    Refused {
        write: String,
        #[source]
        source: kube::Error,
    },
    #[error("{write}: the answer cannot be read: {source}")]
    Unreadable {
        write: String,
        #[source]
        source: serde_json::Error,
    },
}

impl WriteError {
    /// A word for metrics.
    pub(crate) fn result(&self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Broken => "broken",
            Self::Stale { .. } => "conflict",
            Self::TimedOut { .. } | Self::Unanswered { .. } => "timeout",
            Self::Refused { .. } => "refused",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// Whether somebody wanted to make sure of something and the server said nothing at all: it is silent, or nobody gets
    /// through to it.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

/// Sends writes.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) client: Client,
    pub(crate) fence: Fence,
    pub(crate) told: mpsc::Sender<Told>,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
}

impl Writer {
    /// Does the writes of a job in order, up to the first that fails. Answers are told before it ends.
    pub(crate) async fn run(self, job: Job) -> Result<(), WriteError> {
        let under_way = self.events.writing();
        self.all(job.term, job.writes).await?;
        drop(under_way);
        job.notes.into_iter().for_each(|note| self.events.record(note));
        Ok(())
    }

    async fn all(&self, term: Term, writes: Vec<Write>) -> Result<(), WriteError> {
        // What this job has written so far, as it was answered.
        let mut written: HashMap<(Kind, ObjectKey), (Option<String>, Option<String>)> = HashMap::new();
        for mut write in writes {
            if let Write::Patch { target, .. } | Write::Delete(target) = &mut write
                && (target.uid.is_none() || target.resource_version.is_some())
                && let Some((uid, revision)) = written.get(&(target.kind, target.key.clone()))
            {
                target.uid.clone_from(uid);
                target.resource_version.clone_from(revision);
            }
            let kind = write.subject().0;
            let result = match &write {
                Write::Unchanged(target) => self.unchanged(target).await.map(|()| None),
                write => self.one(term, write).await,
            };
            self.metrics.wrote(kind, write.verb(), result.as_ref().map_or_else(WriteError::result, |_| "ok"));
            let Some(told) = result? else { continue };
            if let Told::Answered(object) = &told {
                let identity = (object.uid().map(str::to_owned), object.resource_version());
                written.insert(write.subject(), identity);
            }
            // The loop ends before its channel only when the process does.
            let _ = self.told.send(told).await;
        }
        Ok(())
    }

    async fn one(&self, term: Term, write: &Write) -> Result<Option<Told>, WriteError> {
        if !self.fence.holds_in(term) {
            return Err(WriteError::Fenced);
        }
        // Given up before anybody else may lead.
        let end = Instant::now() + WRITE_TIMEOUT;
        let end = self.fence.expiry().map_or(end, |expiry| expiry.min(end));
        let request =
            request(write).map_err(|source| WriteError::Unreadable { write: write.to_string(), source })?;
        let answer = tokio::time::timeout_at(end, self.client.request_text(request)).await;
        let named = || write.to_string();
        match (answer, write) {
            (Err(_), _) => Err(WriteError::TimedOut { write: named() }),
            (Ok(Ok(text)), Write::Delete(target)) if !still_ends(&text) => Ok(Some(deleted(target))),
            (Ok(Ok(text)), _) => {
                let object: Object = write
                    .subject()
                    .0
                    .read(&text)
                    .map_err(|source| WriteError::Unreadable { write: named(), source })?;
                Ok(Some(Told::Answered(object)))
            }
            (Ok(Err(kube::Error::Api(status))), Write::Delete(target)) if is_missing(&status) => {
                Ok(Some(deleted(target)))
            }
            (Ok(Err(kube::Error::Api(status))), Write::Delete(target)) if is_another(&status) => {
                // Whoever has the name now is somebody else: the one that was meant is gone.
                Ok(Some(deleted(target)))
            }
            (
                Ok(Err(kube::Error::Api(status))),
                Write::Patch { target, .. } | Write::Strategic { target, .. },
            ) if is_missing(&status) => {
                // It is gone, whether or not the watch has told us: what is decided next must know.
                let _ = self.told.send(deleted(target)).await;
                Err(WriteError::Stale { write: named(), message: status.message.clone() })
            }
            (Ok(Err(kube::Error::Api(status))), _) if is_missing(&status) || status.code == 409 => {
                Err(WriteError::Stale { write: named(), message: status.message.clone() })
            }
            (Ok(Err(source)), _) => Err(WriteError::Refused { write: named(), source }),
        }
    }

    /// Asks the server whether an object is still as it was seen; what it is instead is told.
    async fn unchanged(&self, target: &Target) -> Result<(), WriteError> {
        let named = || format!("get {} {}", target.kind, target.key);
        let request = Request::get(target.kind.path(&target.key)).body(Vec::new());
        let request = request.expect("names of objects are made of what a path may hold");
        let answer = tokio::time::timeout(WRITE_TIMEOUT, self.client.request_text(request)).await;
        let object = match answer {
            Err(_) => {
                return Err(WriteError::Unanswered { write: named(), why: "no answer in time".to_owned() });
            }
            Ok(Ok(text)) => {
                target.kind.read(&text).map_err(|source| WriteError::Unreadable { write: named(), source })?
            }
            // What was not there still is not.
            Ok(Err(kube::Error::Api(status))) if is_missing(&status) && target.uid.is_none() => return Ok(()),
            Ok(Err(kube::Error::Api(status))) if is_missing(&status) => {
                let _ = self.told.send(deleted(target)).await;
                return Err(WriteError::Stale { write: named(), message: status.message.clone() });
            }
            Ok(Err(source @ kube::Error::Api(_))) => {
                return Err(WriteError::Refused { write: named(), source });
            }
            Ok(Err(error)) => {
                return Err(WriteError::Unanswered { write: named(), why: error.to_string() });
            }
        };
        if object.resource_version() == target.resource_version {
            return Ok(());
        }
        let _ = self.told.send(Told::Answered(object)).await;
        Err(WriteError::Stale { write: named(), message: "it has changed since it was seen".to_owned() })
    }
}

fn deleted(target: &Target) -> Told {
    Told::Deleted { kind: target.kind, key: target.key.clone(), uid: target.uid.clone().unwrap_or_default() }
}

fn request(write: &Write) -> serde_json::Result<Request<Vec<u8>>> {
    let (kind, key) = write.subject();
    let (method, path, content, body) = match write {
        Write::Create(object) => {
            let collection = ObjectKey { name: "".into(), ..key };
            (Method::POST, kind.path(&collection), "application/json", object.to_vec()?)
        }
        Write::Patch { target, subresource, patch } | Write::Strategic { target, subresource, patch } => {
            let mut path = kind.path(&key);
            if let Some(subresource) = subresource {
                path = format!("{path}/{subresource}");
            }
            let body = serde_json::to_vec(&preconditioned(patch, target))?;
            let is_strategic = matches!(write, Write::Strategic { .. });
            (Method::PATCH, path, if is_strategic { STRATEGIC_MERGE } else { MERGE }, body)
        }
        Write::Unchanged(_) => (Method::GET, kind.path(&key), "application/json", Vec::new()),
        Write::Delete(target) => {
            let mut options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": target.uid},
            });
            if let Some(revision) = &target.resource_version {
                options["preconditions"]["resourceVersion"] = json!(revision);
            }
            (Method::DELETE, kind.path(&key), "application/json", serde_json::to_vec(&options)?)
        }
    };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content);
    Ok(request.body(body).expect("names of objects are made of what a path may hold"))
}

/// The patch, to be refused if the object is another or, unless any revision will do, has changed.
fn preconditioned(patch: &Value, target: &Target) -> Value {
    let mut patch = patch.clone();
    patch["metadata"]["uid"] = json!(target.uid);
    if let Some(revision) = &target.resource_version {
        patch["metadata"]["resourceVersion"] = json!(revision);
    }
    patch
}

/// Whether the answer to a deletion shows an object that is still there: it has time to end, or somebody holds it.
fn still_ends(answer: &str) -> bool {
    serde_json::from_str::<Ending>(answer).is_ok_and(|Ending { metadata }| {
        metadata.deletion_timestamp.is_some()
            && (metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
                || metadata.finalizers.is_some_and(|holders| !holders.is_empty()))
    })
}

/// An object on its way out.
#[derive(Deserialize)]
struct Ending {
    metadata: EndingMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndingMetadata {
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<IgnoredAny>>,
}

/// Whether the API server says that there is no such object. Whoever stands before it says 404 as well, when it has lost the way;
/// then nothing is known of the object.
fn is_missing(status: &kube::core::Status) -> bool {
    status.code == 404 && status.reason == NOT_FOUND
}

/// Whether a deletion was refused because the object of that name has another identity.
fn is_another(status: &kube::core::Status) -> bool {
    status.code == 409 && status.message.contains(OTHER_UID)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use http::Response;
    use http_body_util::BodyExt as _;
    use kube::client::Body;

    use super::*;

    /// What a server was asked: the method, the path, the kind of body, and the body.
    type Asked = Arc<Mutex<Vec<(Method, String, String, Value)>>>;

    /// A writer to a server that always gives this answer; what it was asked, and what the loop is told.
    fn writer(code: u16, answer: Value) -> (Writer, Asked, mpsc::Receiver<Told>) {
        let asked = Asked::default();
        let log = Arc::clone(&asked);
        let server = tower::service_fn(move |request: Request<Body>| {
            let (log, answer) = (Arc::clone(&log), answer.to_string());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let content =
                    parts.headers.get(header::CONTENT_TYPE).map(|text| text.to_str().unwrap().to_owned());
                let body = serde_json::from_slice(&body).unwrap_or_default();
                log.lock().unwrap().push((
                    parts.method,
                    parts.uri.path().to_owned(),
                    content.unwrap_or_default(),
                    body,
                ));
                Ok::<_, Infallible>(
                    Response::builder().status(code).body(Body::from(answer.into_bytes())).unwrap(),
                )
            }
        });
        let client = Client::new(server, "default");
        let (told, hearing) = mpsc::channel(8);
        let metrics = Arc::new(Metrics::default());
        let (events, _) = Events::start(client.clone(), "me".to_owned(), Arc::clone(&metrics));
        (Writer { client, fence: Fence::open(), told, events, metrics }, asked, hearing)
    }

    async fn run(writer: Writer, writes: Vec<Write>) -> Result<(), WriteError> {
        let term = writer.fence.term().expect("nobody else can lead");
        writer.run(Job { term, writes, notes: Vec::new() }).await
    }

    fn pod() -> Target {
        let uid = Some("u".to_owned());
        Target { kind: Kind::Pod, key: ObjectKey::new("n", "p"), uid, resource_version: None }
    }

    fn ending(metadata: &Value) -> Value {
        let mut pod =
            json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "9"}});
        for (name, value) in metadata.as_object().unwrap() {
            pod["metadata"][name] = value.clone();
        }
        pod
    }

    #[tokio::test]
    async fn a_condition_is_patched_alone_and_only_on_the_pod_that_was_meant() {
        let (writer, asked, mut told) = writer(200, ending(&json!({})));
        let patch = json!({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}});
        let write = Write::Strategic { target: pod(), subresource: Some("status"), patch };
        run(writer, vec![write]).await.unwrap();
        let (method, path, content, body) = asked.lock().unwrap().pop().unwrap();
        assert_eq!((method, &*path), (Method::PATCH, "/api/v1/namespaces/n/pods/p/status"));
        assert_eq!(content, "application/strategic-merge-patch+json");
        assert_eq!(body["metadata"], json!({"uid": "u"}), "any revision will do");
        assert!(matches!(told.recv().await, Some(Told::Answered(_))));
    }

    #[tokio::test]
    async fn a_job_goes_on_only_while_what_it_was_decided_on_is_still_so() {
        let lease = json!({"metadata": {"name": "n1", "namespace": "kube-node-lease", "uid": "l", "resourceVersion": "7"}});
        let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"});
        let key = ObjectKey::new("kube-node-lease", "n1");
        let seen = |revision: &str| Target {
            kind: Kind::NodeLease,
            key: key.clone(),
            uid: Some("l".to_owned()),
            resource_version: Some(revision.to_owned()),
        };
        let unseen = Target::to_come(Kind::NodeLease, key.clone());
        for (code, answer, target, goes_on, is_told) in [
            (200, &lease, seen("7"), true, false),
            (200, &lease, seen("6"), false, true),
            (404, &missing, seen("7"), false, true),
            (404, &missing, unseen.clone(), true, false),
            (200, &lease, unseen.clone(), false, true),
        ] {
            let (writer, asked, mut told) = writer(code, answer.clone());
            let ended = run(writer, vec![Write::Unchanged(target.clone())]).await;
            assert_eq!(ended.is_ok(), goes_on, "{code} {target:?}");
            assert!(ended.is_ok() || matches!(ended, Err(WriteError::Stale { .. })));
            assert_eq!(told.try_recv().is_ok(), is_told, "{code} {target:?}");
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
            assert_eq!(asked.lock().unwrap()[0].1, path);
        }
    }

    #[tokio::test]
    async fn a_pod_that_has_time_to_end_is_not_gone_yet() {
        let time = "2026-01-01T00:00:00Z";
        for (metadata, is_there) in [
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 30}), true),
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 0, "finalizers": ["f"]}), true),
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 0}), false),
            (json!({}), false),
        ] {
            let (writer, asked, mut told) = writer(200, ending(&metadata));
            run(writer, vec![Write::Delete(pod())]).await.unwrap();
            let (method, _, _, body) = asked.lock().unwrap().pop().unwrap();
            assert_eq!((method, &body["preconditions"]), (Method::DELETE, &json!({"uid": "u"})));
            match told.recv().await.unwrap() {
                Told::Answered(object) => assert!(is_there && object.uid() == Some("u"), "{metadata}"),
                Told::Deleted { uid, .. } => assert!(!is_there && uid == "u", "{metadata}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_pod_that_is_gone_or_another_needs_no_deletion_any_more() {
        let another = "Operation cannot be fulfilled on pods \"p\": Precondition failed: UID in precondition: u, UID in object meta: v";
        for (code, reason, message) in [(404, "NotFound", "not found"), (409, "Conflict", another)] {
            let status = json!({
                "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
            });
            let (writer, _, mut told) = writer(code, status);
            run(writer, vec![Write::Delete(pod())]).await.unwrap();
            assert!(matches!(told.recv().await, Some(Told::Deleted { uid, .. }) if uid == "u"), "{code}");
        }
        let status = json!({"kind": "Status", "status": "Failure", "code": 409, "message": "try again"});
        let (writer, ..) = writer(409, status);
        let refused = run(writer, vec![Write::Delete(pod())]).await;
        assert!(matches!(refused, Err(WriteError::Stale { .. })), "any other conflict is one");
    }

    /// What a load balancer says that has lost the way does not end an object.
    #[tokio::test]
    async fn only_the_api_server_can_say_that_an_object_is_gone() {
        let patch = json!({"status": {"phase": "Failed"}});
        let unseen = Target::to_come(Kind::Pod, ObjectKey::new("n", "p"));
        for answer in [
            json!("404 page not found"),
            json!({"error": "no such route", "code": 404}),
            json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "", "message": "lost"}),
        ] {
            for write in [
                Write::Delete(pod()),
                Write::Patch { target: pod(), subresource: None, patch: patch.clone() },
                Write::Strategic { target: pod(), subresource: Some("status"), patch: patch.clone() },
                Write::Unchanged(pod()),
                Write::Unchanged(unseen.clone()),
            ] {
                let (writer, _, mut told) = writer(404, answer.clone());
                let ended = run(writer, vec![write.clone()]).await;
                assert!(matches!(ended, Err(WriteError::Refused { .. })), "{write}, {answer}: {ended:?}");
                assert!(told.try_recv().is_err(), "{write}, {answer}");
            }
        }
    }
}
