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
            Self::TimedOut { .. } => "timeout",
            Self::Refused { .. } => "refused",
            Self::Unreadable { .. } => "unreadable",
        }
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
                let metadata = object.metadata();
                written.insert(write.subject(), (metadata.uid.clone(), metadata.resource_version.clone()));
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
            (Ok(Ok(_)), Write::Delete(target)) => Ok(Some(deleted(target))),
            (Ok(Ok(text)), _) => {
                let object: Object = write
                    .subject()
                    .0
                    .read(&text)
                    .map_err(|source| WriteError::Unreadable { write: named(), source })?;
                Ok(Some(Told::Answered(object)))
            }
            (Ok(Err(kube::Error::Api(status))), Write::Delete(target)) if status.code == 404 => {
                Ok(Some(deleted(target)))
            }
            (Ok(Err(kube::Error::Api(status))), Write::Patch { target, .. }) if status.code == 404 => {
                // It is gone, whether or not the watch has told us: what is decided next must know.
                let _ = self.told.send(deleted(target)).await;
                Err(WriteError::Stale { write: named(), message: status.message.clone() })
            }
            (Ok(Err(kube::Error::Api(status))), _) if matches!(status.code, 404 | 409) => {
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
            Err(_) => return Err(WriteError::TimedOut { write: named() }),
            Ok(Ok(text)) => {
                target.kind.read(&text).map_err(|source| WriteError::Unreadable { write: named(), source })?
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                let _ = self.told.send(deleted(target)).await;
                return Err(WriteError::Stale { write: named(), message: status.message.clone() });
            }
            Ok(Err(source)) => return Err(WriteError::Refused { write: named(), source }),
        };
        if object.metadata().resource_version == target.resource_version {
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
        Write::Patch { target, subresource, patch } => {
            let mut path = kind.path(&key);
            if let Some(subresource) = subresource {
                path = format!("{path}/{subresource}");
            }
            let body = serde_json::to_vec(&preconditioned(patch, target))?;
            (Method::PATCH, path, "application/merge-patch+json", body)
        }
        Write::Unchanged(_) => (Method::GET, kind.path(&key), "application/json", Vec::new()),
        Write::Delete(target) => {
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": target.uid, "resourceVersion": target.resource_version},
            });
            (Method::DELETE, kind.path(&key), "application/json", serde_json::to_vec(&options)?)
        }
    };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content);
    Ok(request.body(body).expect("names of objects are made of what a path may hold"))
}

/// The patch, to be refused if the object is another or has changed.
fn preconditioned(patch: &Value, target: &Target) -> Value {
    let mut patch = patch.clone();
    patch["metadata"]["uid"] = json!(target.uid);
    patch["metadata"]["resourceVersion"] = json!(target.resource_version);
    patch
}
