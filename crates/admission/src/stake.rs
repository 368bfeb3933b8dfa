//! What is at stake: the change a write would be to the fleet, where clusters might leave placements because of it.
//!
//! Owns which writes are worth the question. Never answers it: that needs the live fleet, and is the engine's.

use berth_api::{ManagedCluster, Object};
use berth_engine::Delta;
use berth_engine::model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::attempt::{Attempt, Operation, text};

/// What of a cluster decides where work may be, as far as its own write can change it.
const OF_CLUSTER: [&str; 2] = ["/metadata/labels", "/spec/taints"];
/// What of every other kind does.
const OF_OTHERS: [&str; 1] = ["/spec"];

/// The change, or none where nothing leaves because of it alone: a write that keeps everything placements go by does not, and
/// what is made anew only takes places that better clusters would take anyway.
pub fn stake(attempt: &Attempt<'_>, object: Option<&Value>) -> Option<Delta> {
    let old = attempt.old?;
    match attempt.operation {
        Operation::Create => None,
        Operation::Delete => gone(attempt, old),
        Operation::Update => {
            let new = object?;
            let parts: &[&str] = if attempt.resource == "managedclusters" { &OF_CLUSTER } else { &OF_OTHERS };
            if parts.iter().all(|part| old.pointer(part) == new.pointer(part)) {
                return None;
            }
            // What does not fit the schema is the schema's to refuse.
            match Object::read(new.clone()).ok()?.object {
                Object::ManagedCluster(cluster) => Some(Delta::Cluster(cluster)),
                Object::ManagedClusterSet(set) => Some(Delta::Set(set)),
                Object::ManagedClusterSetBinding(binding) => Some(Delta::Binding(binding)),
                Object::Placement(placement) => Some(Delta::Placement(placement)),
                _ => None,
            }
        }
    }
}

fn gone(attempt: &Attempt<'_>, old: &Value) -> Option<Delta> {
    let name = || attempt.name.to_owned();
    let key = || ObjectKey::new(text(Some(old), "/metadata/namespace"), attempt.name);
    Some(match attempt.resource {
        // A cluster that is being deleted is selected no more, long before it is gone.
        "managedclusters" => {
            let mut cluster = serde_json::from_value::<ManagedCluster>(old.clone()).ok()?;
            if cluster.is_deleting() {
                return None;
            }
            cluster.metadata.deletion_timestamp = Some(Time(attempt.now));
            Delta::Cluster(Box::new(cluster))
        }
        "managedclustersets" => Delta::SetGone(name()),
        "managedclustersetbindings" => Delta::BindingGone(key()),
        "placements" => Delta::PlacementGone(key()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempt<'a>(operation: Operation, resource: &'a str, old: &'a Value) -> Attempt<'a> {
        Attempt {
            operation,
            resource,
            name: "one",
            user: "me",
            old: Some(old),
            now: jiff::Timestamp::UNIX_EPOCH,
            time_added: crate::TimeAdded::Server,
        }
    }

    fn cluster(labels: &Value, spec: &Value) -> Value {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "one", "labels": labels}, "spec": spec,
        })
    }

    #[test]
    fn only_labels_and_taints_of_a_cluster_are_worth_a_question() {
        let old = cluster(&json!({"a": "b"}), &json!({"leaseDurationSeconds": 60}));
        let asks =
            |new: &Value| stake(&attempt(Operation::Update, "managedclusters", &old), Some(new)).is_some();
        assert!(!asks(&cluster(&json!({"a": "b"}), &json!({"leaseDurationSeconds": 30}))));
        assert!(asks(&cluster(&json!({"a": "c"}), &json!({"leaseDurationSeconds": 60}))));
        let taints = json!({"taints": [{"key": "k", "effect": "NoSelect"}]});
        assert!(asks(&cluster(&json!({"a": "b"}), &taints)));
    }

    #[test]
    fn what_is_made_anew_is_not_asked_about() {
        let new = cluster(&json!({}), &json!({}));
        let create = Attempt { old: None, ..attempt(Operation::Create, "managedclusters", &new) };
        assert!(stake(&create, Some(&new)).is_none());
    }

    #[test]
    fn every_end_is_worth_a_question_except_of_what_ends_already() {
        let old = json!({"metadata": {"name": "one", "namespace": "ns"}, "spec": {}});
        let gone = |resource: &str| stake(&attempt(Operation::Delete, resource, &old), None);
        let key = ObjectKey::new("ns", "one");
        assert!(matches!(gone("placements"), Some(Delta::PlacementGone(found)) if found == key));
        assert!(matches!(gone("managedclustersetbindings"), Some(Delta::BindingGone(found)) if found == key));
        assert!(matches!(gone("managedclustersets"), Some(Delta::SetGone(name)) if name == "one"));
        assert!(matches!(gone("managedclusters"), Some(Delta::Cluster(cluster)) if cluster.is_deleting()));
        assert!(gone("namespaces").is_none());
        let ending =
            json!({"metadata": {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}});
        assert!(stake(&attempt(Operation::Delete, "managedclusters", &ending), None).is_none());
    }
}
