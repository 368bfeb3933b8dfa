//! Pods that nobody will finish: deleted, but on no node or on a node without a kubelet.
//!
//! Owns the decision whether a pod's grace is worth waiting for. A kubelet renews its node's lease; a node without a fresh
//! one has none.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::resource::meta;

/// Where kubelets keep their leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";
/// How long a lease counts that does not say so itself, in seconds: the kubelet's own default.
const LEASE_SECONDS: i64 = 40;

/// Whether a pod that is being deleted is to be removed now. `lease` is its node's, if there is one.
pub(crate) fn decide(pod: &Value, lease: Option<&Value>, now: Timestamp) -> bool {
    if !meta::deleting(pod) || !meta::finalizers(pod).is_empty() {
        return false;
    }
    let node = meta::at(pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
    node.is_empty() || !lease.is_some_and(|lease| is_fresh(lease, now))
}

/// Whether somebody renewed a lease lately.
pub(crate) fn is_fresh(lease: &Value, now: Timestamp) -> bool {
    let renewed = meta::at(lease, &["spec", "renewTime"]).and_then(Value::as_str);
    let Some(renewed) = renewed.and_then(|text| text.parse::<Timestamp>().ok()) else { return false };
    let seconds =
        meta::at(lease, &["spec", "leaseDurationSeconds"]).and_then(Value::as_i64).unwrap_or(LEASE_SECONDS);
    renewed.checked_add(SignedDuration::from_secs(seconds)).is_ok_and(|until| until > now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T22:50:54Z".parse().unwrap()
    }

    fn pod(node: &str) -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-11-15T22:51:24Z"}, "spec": {"nodeName": node}})
    }

    fn lease(renewed: &str) -> Value {
        json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 40}})
    }

    #[test]
    fn a_deleted_pod_goes_at_once_where_no_kubelet_is() {
        assert!(decide(&pod(""), None, now()));
        assert!(decide(&pod("n"), None, now()));
        assert!(decide(&pod("n"), Some(&lease("2026-11-15T22:50:00.000000Z")), now()));
        assert!(decide(&pod("n"), Some(&json!({"spec": {}})), now()));
    }

    #[test]
    fn a_kubelet_finishes_its_own_pods() {
        assert!(!decide(&pod("n"), Some(&lease("2026-11-15T22:50:50.000000Z")), now()));
    }

    #[test]
    fn a_pod_that_is_not_deleted_or_held_stays() {
        assert!(!decide(&json!({"spec": {}}), None, now()));
        let mut held = pod("");
        held["metadata"]["finalizers"] = json!(["x.io/f"]);
        assert!(!decide(&held, None, now()));
    }
}
