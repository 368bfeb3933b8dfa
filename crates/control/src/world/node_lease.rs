//! What is kept of a node's lease: when its kubelet was heard of last.

use berth_engine::Moment;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
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
    #[serde(default)]
    renew_time: Option<Timestamp>,
}

impl From<Wire> for NodeLease {
    fn from(Wire { metadata, spec }: Wire) -> Self {
        let renewed = spec.and_then(|spec| spec.renew_time).map(Moment::from_timestamp);
        Self { identity: metadata, renewed }
    }
}
