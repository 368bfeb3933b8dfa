//! Effects out: the writes of one subject, one after another.
//!
//! Owns how a write is sent: with the identity and revision it was decided on, within a time, and only while we lead.
//! It retries nothing itself: what failed is decided again, because the world may have moved.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use berth_engine::model::ObjectKey;
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::events::Events;
use super::request::request;
use super::write::{Note, Target, Write};
use crate::answer::{budget_message, is_another, is_budget, is_missing, retry_after, still_ends};
use crate::lead::{Fence, Term};
use crate::review::Reviewer;
use crate::serve::Metrics;
use crate::world::{Finding, Found, Kind, Object, Told};

/// How long a write may take, also where nobody else can lead.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The writes of one subject.
#[derive(Debug)]
pub(crate) struct Job {
    /// The term it was decided in; what is left of it when that ends is not written.
    pub(crate) term: Term,
    pub(crate) writes: Vec<Write>,
    pub(crate) notes: Vec<Note>,
}

impl Job {
    /// Whether it is more than questions.
    pub(crate) fn changes_something(&self) -> bool {
        !self.writes.iter().all(Write::only_asks)
    }
}

/// What became of a job whose writes all went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// All of it was written.
    All,
    /// What was to be taken away had gone by another's hand.
    Gone,
}

/// What came of one write.
#[derive(Default)]
struct Reply {
    told: Option<Told>,
    /// Whether what was to be taken away had gone already.
    is_gone: bool,
}

impl From<Told> for Reply {
    fn from(told: Told) -> Self {
        Self { told: Some(told), is_gone: false }
    }
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
    #[error("{write}: a disruption budget does not allow it: {message}")]
    Budget { write: String, message: String, after: Duration },
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
            Self::Budget { .. } => "budget",
            Self::TimedOut { .. } | Self::Unanswered { .. } => "timeout",
            Self::Refused { .. } => "refused",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// For how long the server wants to be left alone, if it is the server that has said no: then it was not done. Whoever gets no
    /// answer, or one that tells of a defect, cannot know.
    pub(crate) fn refused_for(&self) -> Option<Duration> {
        match self {
            Self::Stale { .. } => Some(Duration::ZERO),
            Self::Refused { source: kube::Error::Api(status), .. } => {
                let after = retry_after(status);
                let is_no = (400..500).contains(&status.code) || (status.code == 503 && after.is_some());
                is_no.then(|| after.unwrap_or_default())
            }
            _ => None,
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
    pub(crate) reviewer: Arc<Reviewer>,
}

impl Writer {
    /// Does the writes of a job in order, up to the first that fails. Answers are told before it ends.
    pub(crate) async fn run(self, job: Job) -> Result<Wrote, WriteError> {
        // Whoever asks a service may wait for half a minute, and no event waits for that.
        let under_way = job.changes_something().then(|| self.events.writing());
        let wrote = self.all(job.term, job.writes).await?;
        drop(under_way);
        // What another has done is his to tell.
        if wrote == Wrote::All {
            job.notes.into_iter().for_each(|note| self.events.record(job.term, note));
        }
        Ok(wrote)
    }

    async fn all(&self, term: Term, writes: Vec<Write>) -> Result<Wrote, WriteError> {
        let mut wrote = Wrote::All;
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
                Write::Unchanged(target) => self.unchanged(target).await.map(|()| Reply::default()),
                Write::Look { target, node, with_owner, asker } => {
                    self.look(target, node, *with_owner, *asker).await.map(Reply::from)
                }
                Write::Review { target, address, question, asker } => {
                    self.review(term, target, address, question, *asker).await.map(Reply::from)
                }
                Write::Ask { target, asks, asker } => Ok(self.ask(target, asks, *asker).await.into()),
                write => self.one(term, write).await,
            };
            if !matches!(write, Write::Review { .. }) {
                let result = result.as_ref().map_or_else(WriteError::result, |_| "ok");
                self.metrics.wrote(kind, write.verb(), result);
            }
            let Reply { told, is_gone } = result?;
            if is_gone {
                wrote = Wrote::Gone;
            }
            let Some(told) = told else { continue };
            if let Told::Answered(object) = &told {
                let identity = (object.uid().map(str::to_owned), object.resource_version());
                written.insert(write.subject(), identity);
            }
            // The loop ends before its channel only when the process does.
            let _ = self.told.send(told).await;
        }
        Ok(wrote)
    }

    async fn one(&self, term: Term, write: &Write) -> Result<Reply, WriteError> {
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
            (Ok(Ok(text)), Write::Delete(target) | Write::Destroy(target)) if !still_ends(&text) => {
                Ok(deleted(target).into())
            }
            // The answer is a word of thanks; what becomes of the pod is for the watch to tell. Nobody keeps what is foreign.
            (Ok(Ok(_)), Write::Evict { .. } | Write::Foreign { .. }) => Ok(Reply::default()),
            (Ok(Ok(text)), _) => {
                let object: Object = write
                    .subject()
                    .0
                    .read(&text)
                    .map_err(|source| WriteError::Unreadable { write: named(), source })?;
                Ok(Told::Answered(object).into())
            }
            (
                Ok(Err(kube::Error::Api(status))),
                Write::Delete(target) | Write::Destroy(target) | Write::Evict { target, .. },
            ) if is_missing(&status) => Ok(Reply { told: Some(deleted(target)), is_gone: true }),
            (Ok(Err(kube::Error::Api(status))), Write::Evict { target, asker }) if is_budget(&status) => {
                let found = Found {
                    asker: *asker,
                    subject: target.key.clone(),
                    finding: Finding::Budget(budget_message(&status)),
                };
                let _ = self.told.send(Told::Found(Box::new(found))).await;
                let after = retry_after(&status).unwrap_or_default();
                Err(WriteError::Budget { write: named(), message: status.message.clone(), after })
            }
            (
                Ok(Err(kube::Error::Api(status))),
                Write::Delete(target) | Write::Destroy(target) | Write::Evict { target, .. },
            ) if is_another(&status) => {
                // Whoever has the name now is somebody else: the one that was meant is gone.
                Ok(Reply { told: Some(deleted(target)), is_gone: true })
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
}

pub(super) fn deleted(target: &Target) -> Told {
    Told::Deleted { kind: target.kind, key: target.key.clone(), uid: target.uid.clone().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use super::super::fixtures::{ending, pod, run, writer};
    use super::*;
    use crate::names::ControllerName;

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
    async fn a_pod_that_has_time_to_end_is_not_gone_yet() {
        let time = "2026-01-01T00:00:00Z";
        for (metadata, is_there) in [
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 30}), true),
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 0, "finalizers": ["f"]}), true),
            (json!({"deletionTimestamp": time, "deletionGracePeriodSeconds": 0}), false),
            (json!({}), false),
        ] {
            let (writer, asked, mut told) = writer(200, ending(&metadata));
            assert_eq!(run(writer, vec![Write::Delete(pod())]).await.unwrap(), Wrote::All);
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
            let wrote = run(writer, vec![Write::Delete(pod())]).await.unwrap();
            assert_eq!(wrote, Wrote::Gone, "{code}: it was not us");
            assert!(matches!(told.recv().await, Some(Told::Deleted { uid, .. }) if uid == "u"), "{code}");
        }
        let status = json!({"kind": "Status", "status": "Failure", "code": 409, "message": "try again"});
        let (writer, ..) = writer(409, status);
        let refused = run(writer, vec![Write::Delete(pod())]).await;
        assert!(matches!(refused, Err(WriteError::Stale { .. })), "any other conflict is one");
    }

    /// A server that has too much to do says 429, too; no budget was asked then, and nothing is told of one.
    #[tokio::test]
    async fn only_a_budget_that_was_asked_keeps_a_pod() {
        let status = |code: u16, message: &str, causes: Value| {
            json!({
                "kind": "Status", "status": "Failure", "code": code, "message": message,
                "details": {"retryAfterSeconds": 10, "causes": causes},
            })
        };
        let full = "The disruption budget b needs 2 healthy pods and has 2 currently";
        let cause = json!([{"reason": "DisruptionBudget", "message": full}]);
        let asker = ControllerName::TaintEviction;
        let violated = "Cannot evict pod as it would violate the pod's disruption budget.";
        let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        for (answer, says) in [
            (status(429, violated, cause), Some(format!("{violated} {full}"))),
            // One that counts below nothing, or has too much on its books.
            (
                status(403, violated, json!([{"reason": "DisruptionBudget", "message": full}])),
                Some(format!("{violated} {full}")),
            ),
            (status(403, "pods \"p\" is forbidden", json!([])), None),
            (status(500, several, json!([])), Some(several.to_owned())),
            (status(429, "Too many requests, please try again later.", json!([])), None),
            (json!({"kind": "Status", "status": "Failure", "code": 429, "message": "later"}), None),
            (status(500, "it broke", json!([])), None),
        ] {
            let code = answer["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap();
            let (writer, _, mut told) = writer(code, answer.clone());
            let ended = run(writer, vec![Write::Evict { target: pod(), asker }]).await;
            let found = told.try_recv().ok().map(|told| match told {
                Told::Found(found) => found.finding,
                other => panic!("{other:?}"),
            });
            if let Some(says) = says {
                let asks = Duration::from_secs(10);
                assert!(
                    matches!(ended, Err(WriteError::Budget { after, .. }) if after == asks),
                    "{answer}: {ended:?}"
                );
                assert!(matches!(&found, Some(Finding::Budget(told)) if *told == says), "{found:?}");
            } else {
                assert!(matches!(ended, Err(WriteError::Refused { .. })), "{answer}: {ended:?}");
                assert!(found.is_none(), "{answer}: {found:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_says_no_may_say_for_how_long() {
        let seconds = Duration::from_secs;
        for (code, asks, refused_for) in [
            (429, 7, Some(seconds(7))),
            (429, 0, Some(Duration::ZERO)),
            (403, 0, Some(Duration::ZERO)),
            (503, 3, Some(seconds(3))),
            // Whether it was done nobody knows.
            (503, 0, None),
            (500, 0, None),
        ] {
            let status = json!({
                "kind": "Status", "status": "Failure", "code": code, "message": "no",
                "details": {"retryAfterSeconds": asks},
            });
            let (writer, ..) = writer(code, status);
            let refused = run(writer, vec![Write::Delete(pod())]).await.unwrap_err();
            assert_eq!(refused.refused_for(), refused_for, "{code} and {asks}: {refused}");
        }
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
