//! What is read before a write: whether something is still as it was seen, and what is around a pod that is about to go.
//!
//! Whatever a server shows is told like the answer to a write. That it says nothing is an error of its own
//! ([`WriteError::Unanswered`]): of an object nobody speaks about nothing is known.

use berth_engine::model::ObjectKey;
use futures::future::join_all;
use http::Request;
use serde_json::Value;

use super::ask::{Ask, ask};
use super::write::Target;
use super::writer::{WRITE_TIMEOUT, WriteError, Writer, deleted};
use crate::answer::is_missing;
use crate::names::ControllerName;
use crate::world::{Finding, Found, Kind, Told, owner_of};

/// How many members are read at once.
const READ_SIDE_BY_SIDE: usize = 8;

impl Writer {
    /// Reads what is asked for, as it is now.
    pub(super) async fn ask(&self, target: &Target, asks: &[Ask], asker: ControllerName) -> Told {
        let mut replies = Vec::with_capacity(asks.len());
        // Members are read side by side; whatever was to be known before them is.
        let is_member = |one: &Ask| matches!(one, Ask::Member { .. });
        let groups = asks.chunk_by(|one, next| is_member(one) && is_member(next));
        for group in groups.flat_map(|group| group.chunks(READ_SIDE_BY_SIDE)) {
            let mut asking = Vec::with_capacity(group.len());
            for one in group {
                asking.push(ask(&self.client, one));
            }
            replies.extend(group.iter().cloned().zip(join_all(asking).await));
        }
        let finding = Finding::Replies(replies);
        Told::Found(Box::new(Found { asker, subject: target.key.clone(), finding }))
    }

    /// Asks the server for a pod and what is around it; the answer is told to who asks, and the pod to everybody.
    pub(super) async fn look(
        &self,
        target: &Target,
        node: &str,
        with_owner: bool,
        asker: ControllerName,
    ) -> Result<Told, WriteError> {
        let named = || format!("get {} {}", target.kind, target.key);
        let path = target.kind.path(&target.key);
        let Some(text) = self.get(&path, named).await? else {
            let _ = self.told.send(deleted(target)).await;
            return Err(WriteError::Stale { write: named(), message: "it is gone".to_owned() });
        };
        let unreadable = |source| WriteError::Unreadable { write: named(), source };
        let pod: Value = serde_json::from_str(&text).map_err(unreadable)?;
        let object = target.kind.read(&text).map_err(unreadable)?;
        let is_another = object.uid() != target.uid.as_deref();
        let _ = self.told.send(Told::Answered(object)).await;
        if is_another {
            return Err(WriteError::Stale { write: named(), message: "it is another one".to_owned() });
        }
        let read = |text: Option<String>| {
            text.map(|text| serde_json::from_str(&text).map(Box::new).map_err(unreadable)).transpose()
        };
        let path = Kind::Node.path(&ObjectKey::new("", node));
        let text = self.get(&path, || format!("get Node {node}")).await?;
        if let Some(Ok(object)) = text.as_ref().map(|text| Kind::Node.read(text)) {
            let _ = self.told.send(Told::Answered(object)).await;
        }
        let node: Option<Box<Value>> = read(text)?;
        let owner: Option<Box<Value>> = match owner_of(&pod).filter(|_| with_owner) {
            Some((path, uid)) => {
                let owner: Option<Box<Value>> = read(self.get(&path, || format!("get {path}")).await?)?;
                // A successor of the same name keeps other pods.
                owner.filter(|owner| owner["metadata"]["uid"] == uid)
            }
            None => None,
        };
        let finding = Finding::Objects { pod: Box::new(pod), node, owner };
        Ok(Told::Found(Box::new(Found { asker, subject: target.key.clone(), finding })))
    }

    /// The object at a path as text; `None` where the server says that there is none.
    async fn get(&self, path: &str, named: impl Fn() -> String) -> Result<Option<String>, WriteError> {
        let request = Request::get(path).body(Vec::new());
        let request = request.expect("names of objects are made of what a path may hold");
        match tokio::time::timeout(WRITE_TIMEOUT, self.client.request_text(request)).await {
            Err(_) => Err(WriteError::Unanswered { write: named(), why: "no answer in time".to_owned() }),
            Ok(Ok(text)) => Ok(Some(text)),
            Ok(Err(kube::Error::Api(status))) if is_missing(&status) => Ok(None),
            Ok(Err(source @ kube::Error::Api(_))) => Err(WriteError::Refused { write: named(), source }),
            Ok(Err(error)) => Err(WriteError::Unanswered { write: named(), why: error.to_string() }),
        }
    }

    /// Asks the server whether an object is still as it was seen; what it is instead is told.
    pub(super) async fn unchanged(&self, target: &Target) -> Result<(), WriteError> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{run, writer};
    use super::super::write::Write;
    use super::*;

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
}
