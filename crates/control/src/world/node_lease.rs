//! What is kept of a node's lease: when its kubelet was heard of last.

use berth_engine::Moment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use super::identity::{Identity, kept};

/// The namespace of the leases that kubelets renew.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";

/// The lease of a node, of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct NodeLease {
    /// Which it is.
    pub identity: Identity,
    /// When it was renewed last, by the kubelet's clock.
    pub renewed: Option<Moment>,
}

kept!(NodeLease, of: Lease, share: |_, _| {});

#[derive(Deserialize)]
struct Wire {
    metadata: Identity,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default, deserialize_with = "berth_api::time::told")]
    renew_time: Option<Time>,
}

impl From<Wire> for NodeLease {
    fn from(Wire { metadata, spec }: Wire) -> Self {
        let renewed = spec.and_then(|spec| spec.renew_time).map(|time| Moment::from_timestamp(time.0));
        Self { identity: metadata, renewed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_makes_a_lease_unreadable() {
        for (time, renewed) in [
            ("2026-01-01T00:00:00.000042Z", "2026-01-01T00:00:00.000042Z".parse().ok()),
            ("9999-12-31T23:59:59.000000Z", Some(jiff::Timestamp::MAX)),
            ("soon", None),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"renewTime":"{time}"}}}}"#);
            let lease: NodeLease = serde_json::from_str(&text).unwrap();
            assert_eq!(lease.renewed, renewed.map(Moment::from_timestamp), "{time}");
        }
    }
}
