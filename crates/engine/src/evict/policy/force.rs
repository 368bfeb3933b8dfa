//! When a pod that does not end is deleted by force: never by time alone, unless somebody has taken the risk upon them.

use std::collections::BTreeMap;
use std::fmt;

use berth_api::core::Node;
use berth_api::names::node_taint::{OUT_OF_SERVICE, PROVIDER_SHUTDOWN};

use super::rule::{Force, Proof};
use crate::moment::Moment;

/// What is known of the node a pod is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSight<'n> {
    /// Nothing that could be relied on.
    Unknown,
    /// There is none of that name.
    Gone,
    /// It is there.
    There {
        /// Whether it says that it is ready: then somebody is there to end pods, and nothing is proven.
        is_ready: bool,
        /// Whether it has the taint `node.kubernetes.io/out-of-service`.
        is_out_of_service: bool,
        /// Whether it has the taint `node.cloudprovider.kubernetes.io/shutdown`.
        is_shut_down: bool,
        /// Its annotations.
        annotations: Option<&'n BTreeMap<String, String>>,
    },
}

impl<'n> NodeSight<'n> {
    /// What a node shows of itself that is there.
    pub fn of(node: &'n Node) -> Self {
        let has = |key: &str| node.spec.taints.iter().any(|taint| taint.key == key);
        Self::There {
            is_ready: node.is_ready(),
            is_out_of_service: has(OUT_OF_SERVICE),
            is_shut_down: has(PROVIDER_SHUTDOWN),
            annotations: node.metadata.annotations.as_ref(),
        }
    }
}

/// What a deletion by force rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Something shows that nothing runs on the node any more.
    Proven(Proof),
    /// Somebody has taken the risk upon them.
    RiskAccepted,
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven(Proof::OutOfServiceTaint) => write!(f, "its node has the taint {OUT_OF_SERVICE}"),
            Self::Proven(Proof::ProviderShutdownTaint) => {
                write!(f, "its node has the taint {PROVIDER_SHUTDOWN}")
            }
            Self::Proven(Proof::NodeGone) => f.write_str("its node is gone"),
            Self::Proven(Proof::NodeAnnotation { key, .. }) => write!(f, "its node has the annotation {key}"),
            Self::RiskAccepted => f.write_str("the policy accepts the risk"),
        }
    }
}

/// From when on a pod that was to be gone at `gone_by` is deleted by force, and what that rests on. Without a ground it never is.
pub fn force(force: &Force, gone_by: Moment, node: NodeSight<'_>) -> (Moment, Option<Ground>) {
    let at = gone_by.plus_seconds(force.after_seconds);
    let proven = force.proofs.iter().find(|proof| is_proven(proof, node));
    let ground = match proven {
        Some(proof) => Some(Ground::Proven(proof.clone())),
        None if force.accepts_risk => Some(Ground::RiskAccepted),
        None => None,
    };
    (at, ground)
}

fn is_proven(proof: &Proof, node: NodeSight<'_>) -> bool {
    match (proof, node) {
        (Proof::NodeGone, NodeSight::Gone) => true,
        (Proof::OutOfServiceTaint, NodeSight::There { is_ready: false, is_out_of_service, .. }) => {
            is_out_of_service
        }
        // Whoever starts the machine again finds the pod on its way out, and does not start it.
        (Proof::ProviderShutdownTaint, NodeSight::There { is_ready: false, is_shut_down, .. }) => {
            is_shut_down
        }
        (Proof::NodeAnnotation { key, value }, NodeSight::There { is_ready: false, annotations, .. }) => {
            let found = annotations.and_then(|all| all.get(&**key));
            found.is_some_and(|found| value.as_ref().is_none_or(|value| **value == **found))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GONE_BY: Moment = Moment::from_second(1_000);
    const SILENT: NodeSight<'static> = NodeSight::There {
        is_ready: false,
        is_out_of_service: false,
        is_shut_down: false,
        annotations: None,
    };

    /// A node with this taint that says nothing of being ready.
    fn tainted(key: &str) -> Node {
        serde_json::from_value(
            json!({"metadata": {}, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}),
        )
        .unwrap()
    }

    fn terms(proofs: &[Proof], accepts_risk: bool) -> Force {
        Force { after_seconds: 60, proofs: proofs.into(), accepts_risk }
    }

    fn annotation(value: Option<&str>) -> Proof {
        Proof::NodeAnnotation { key: "example.org/fenced".into(), value: value.map(Into::into) }
    }

    #[test]
    fn time_alone_proves_nothing() {
        let all = [Proof::OutOfServiceTaint, Proof::ProviderShutdownTaint, Proof::NodeGone, annotation(None)];
        let silent = SILENT;
        for node in [silent, NodeSight::Unknown] {
            assert_eq!(force(&terms(&all, false), GONE_BY, node), (GONE_BY.plus_seconds(60), None));
        }
        let (_, ground) = force(&terms(&[], true), GONE_BY, silent);
        assert_eq!(ground, Some(Ground::RiskAccepted), "unless somebody says that it does");
    }

    #[test]
    fn each_proof_is_about_what_it_says() {
        let fenced = BTreeMap::from([("example.org/fenced".to_owned(), "yes".to_owned())]);
        let [out, off] = [OUT_OF_SERVICE, PROVIDER_SHUTDOWN].map(tainted);
        let (out, off) = (NodeSight::of(&out), NodeSight::of(&off));
        let marked = NodeSight::There {
            is_ready: false,
            is_out_of_service: false,
            is_shut_down: false,
            annotations: Some(&fenced),
        };
        for (proof, node, holds) in [
            (Proof::OutOfServiceTaint, out, true),
            (Proof::OutOfServiceTaint, marked, false),
            (Proof::OutOfServiceTaint, NodeSight::Gone, false),
            (Proof::OutOfServiceTaint, off, false),
            (Proof::ProviderShutdownTaint, off, true),
            (Proof::ProviderShutdownTaint, out, false),
            (Proof::ProviderShutdownTaint, NodeSight::Gone, false),
            (Proof::NodeGone, NodeSight::Gone, true),
            (Proof::NodeGone, out, false),
            (Proof::NodeGone, NodeSight::Unknown, false),
            (annotation(None), marked, true),
            (annotation(Some("yes")), marked, true),
            (annotation(Some("no")), marked, false),
            (annotation(None), out, false),
        ] {
            let (_, ground) = force(&terms(std::slice::from_ref(&proof), false), GONE_BY, node);
            assert_eq!(ground.is_some(), holds, "{proof:?}");
        }
    }

    #[test]
    fn a_node_that_is_ready_is_not_fenced_whatever_is_said_of_it() {
        let fenced = BTreeMap::from([("example.org/fenced".to_owned(), "yes".to_owned())]);
        let ready = NodeSight::There {
            is_ready: true,
            is_out_of_service: true,
            is_shut_down: true,
            annotations: Some(&fenced),
        };
        let all = [Proof::OutOfServiceTaint, Proof::ProviderShutdownTaint, annotation(None)];
        assert_eq!(force(&terms(&all, false), GONE_BY, ready).1, None);
    }
}
