//! What the server showed to a controller that asked, or said to one that wanted something, and what others said: told to the
//! one who asked, and kept by nobody else.

use std::sync::Arc;

use berth_engine::model::ObjectKey;
use serde_json::Value;

use crate::act::{Ask, Reply};
use crate::names::ControllerName;
use crate::review::Answer;

/// The kinds of owners that are shown with their pods: group, kind and plural.
pub(crate) const OWNERS: [(&str, &str, &str); 5] = [
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("apps", "DaemonSet", "daemonsets"),
    ("batch", "Job", "jobs"),
    ("", "ReplicationController", "replicationcontrollers"),
];

/// An answer to a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Who asked.
    pub asker: ControllerName,
    /// About which of its subjects.
    pub subject: ObjectKey,
    /// The answer.
    pub finding: Finding,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A pod, its node and its owner, whole; whatever is not there, or of no kind that is known to own pods, is `None`.
    Objects {
        /// The pod.
        pod: Box<Value>,
        /// Its node.
        node: Option<Box<Value>>,
        /// Its owner.
        owner: Option<Box<Value>>,
    },
    /// What was asked, and the answers.
    Replies(Vec<(Ask, Reply)>),
    /// A disruption budget does not allow an eviction.
    Budget(String),
    /// What somebody outside said who was asked about a pod.
    Review {
        /// The policy that asked, as the question names it.
        policy: Arc<str>,
        /// The gate that asked.
        gate: Arc<str>,
        /// What came of it.
        answer: Answer,
    },
}

/// Where the owner of a pod is, and its uid; `None` where the pod has none of the kinds that are shown.
pub fn owner_of(pod: &Value) -> Option<(String, &str)> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let [version, kind, name, uid] = ["apiVersion", "kind", "name", "uid"].map(|field| owner[field].as_str());
    let (version, kind, name, uid) = (version?, kind?, name?, uid?);
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let (_, _, plural) = OWNERS.iter().find(|(of, known, _)| *of == group && *known == kind)?;
    let root = if group.is_empty() { "api" } else { "apis" };
    let namespace = pod["metadata"]["namespace"].as_str()?;
    Some((format!("/{root}/{version}/namespaces/{namespace}/{plural}/{name}"), uid))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(version: &str, kind: &str, is_controller: bool) -> Value {
        json!({"metadata": {"namespace": "n", "name": "p", "ownerReferences": [
            {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": is_controller},
        ]}})
    }

    #[test]
    fn owners_of_kubernetes_own_kinds_are_found_and_no_others() {
        let path = |version: &str, kind: &str| owner_of(&pod(version, kind, true)).map(|(path, _)| path);
        assert_eq!(path("apps/v1", "StatefulSet").unwrap(), "/apis/apps/v1/namespaces/n/statefulsets/o");
        assert_eq!(
            path("v1", "ReplicationController").unwrap(),
            "/api/v1/namespaces/n/replicationcontrollers/o"
        );
        assert_eq!(path("example.org/v1", "StatefulSet"), None, "of the same kind in another group");
        assert_eq!(path("v1", "Node"), None);
        assert_eq!(owner_of(&pod("apps/v1", "StatefulSet", false)), None);
        assert_eq!(owner_of(&json!({"metadata": {"name": "p"}})), None);
    }
}
