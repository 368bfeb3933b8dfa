//! Whether a node can take the successor of a pod.
//!
//! Owns the rules by which Kubernetes' scheduler leaves nodes out: cordons, taints, selectors and affinity to nodes, the reach of
//! volumes, neighbours, spread, and room. What is not known is no yes, and says what is missing.
//!
//! Not looked at are whom else the scheduler would put there first, pods that would have to make way, what neighbours have against
//! the newcomer, ports of the host, devices that are claimed, and how many volumes a node can have. Where one of these matters the
//! successor waits, and the policy's `ready.timeoutSeconds` ends that.

mod near;
mod nodes;
mod reach;
mod room;
mod spread;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use berth_api::core::Node;
use serde::Serialize;
use serde_json::Value;

use self::near::Nearness;
pub use self::near::{Neighbour, looks_abroad};
pub use self::reach::{is_bound_to_a_node, is_within_reach};
use self::room::Lack;
pub use self::room::{Amounts, Container, Used, requests};
use self::spread::Spread;
use crate::taint::{NodeEffect, Taint, Toleration};

/// Why a node cannot take a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Misfit {
    /// It is cordoned.
    Cordoned,
    /// It is not ready.
    NotReady,
    /// It has a taint that the pod does not tolerate.
    Taint,
    /// The pod asks for other nodes.
    Labels,
    /// A volume that stays cannot be used there.
    Volume,
    /// Somebody is there whom the pod must keep away from.
    KeepsApart,
    /// Nobody is there whom the pod must be near.
    NotNear,
    /// Too many of its like are there.
    Spread {
        /// The label by which places are told apart.
        key: Box<str>,
    },
    /// There is too little of something.
    Room {
        /// Of what.
        resource: Box<str>,
    },
}

/// What would have to be known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Missing {
    /// Nobody has looked yet.
    #[default]
    Look,
    /// The nodes.
    Nodes,
    /// The pods on them.
    Pods,
    /// The pod itself.
    Pod,
    /// What the pod asks for.
    Requests,
    /// Its claims, or one of their volumes.
    Volumes,
    /// Whom a rule of the pod about its neighbours speaks of.
    Rule,
    /// What a node has room for.
    Allocatable {
        /// Which.
        node: Box<str>,
    },
    /// What the pods on a node ask for.
    Used {
        /// Which.
        node: Box<str>,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => f.write_str("cordoned"),
            Self::NotReady => f.write_str("not ready"),
            Self::Taint => f.write_str("a taint that it does not tolerate"),
            Self::Labels => f.write_str("not a node that it asks for"),
            Self::Volume => f.write_str("out of reach of a volume that stays"),
            Self::KeepsApart => f.write_str("a pod there that it keeps apart from"),
            Self::NotNear => f.write_str("no pod there that it has to be near"),
            Self::Spread { key } => write!(f, "too many of its like in the same {key}"),
            Self::Room { resource } => write!(f, "too little room ({resource})"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look => f.write_str("nobody has looked yet"),
            Self::Nodes => f.write_str("the nodes cannot be read"),
            Self::Pods => f.write_str("the pods on the nodes cannot be read"),
            Self::Pod => f.write_str("the pod cannot be read"),
            Self::Requests => f.write_str("what the pod asks for cannot be understood"),
            Self::Volumes => f.write_str("its claims and their volumes cannot be read"),
            Self::Rule => f.write_str("whom its affinity or its spread speaks of cannot be told"),
            Self::Allocatable { node } => write!(f, "node {node} does not say what it has room for"),
            Self::Used { node } => write!(f, "what a pod on node {node} asks for cannot be understood"),
        }
    }
}

/// Whether one node can take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Takes,
    /// It cannot.
    Refuses(Misfit),
    /// Nobody knows.
    Unknown(Missing),
}

/// Whether any other node can take a member's successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feasibility {
    /// One can.
    Yes,
    /// None can: what speaks against them.
    No(BTreeSet<Misfit>),
    /// Nobody knows, for want of this.
    Unknown(Missing),
}

impl Default for Feasibility {
    fn default() -> Self {
        Self::Unknown(Missing::default())
    }
}

impl From<Fit> for Feasibility {
    fn from(fit: Fit) -> Self {
        match fit {
            Fit::Takes => Self::Yes,
            Fit::Refuses(misfit) => Self::No(BTreeSet::from([misfit])),
            Fit::Unknown(missing) => Self::Unknown(missing),
        }
    }
}

/// The first node that can take a pod, or why there is none. Nodes after it are not looked at: in a large cluster, where most
/// could, that would be most of the work.
///
/// # Errors
/// What speaks against all of them, or what is not known of those that might.
pub fn first_that_takes<'n>(
    fits: impl IntoIterator<Item = (&'n Arc<str>, Fit)>,
) -> Result<Arc<str>, Feasibility> {
    let mut misfits = BTreeSet::new();
    let mut missing: Option<Missing> = None;
    for (name, fit) in fits {
        match fit {
            Fit::Takes => return Ok(Arc::clone(name)),
            Fit::Refuses(misfit) => {
                misfits.insert(misfit);
            }
            // The same is named each time, in whatever order they come.
            Fit::Unknown(what) => missing = Some(missing.map_or(what.clone(), |before| before.min(what))),
        }
    }
    Err(missing.map_or(Feasibility::No(misfits), Feasibility::Unknown))
}

/// A pod that needs a place: what it asks of a node.
pub struct Newcomer<'s> {
    spec: &'s Value,
    tolerations: &'s [Toleration<NodeEffect>],
    volumes: &'s [&'s Value],
    nearness: Nearness<'s>,
    spread: Spread<'s>,
    requests: Option<Amounts>,
}

impl<'s> Newcomer<'s> {
    /// A pod like this one (a whole object), whose volumes are these (whole objects). `neighbours` are the other pods that are on
    /// a node, those of its namespace and, if it [looks abroad](looks_abroad), all; `nodes` are all nodes.
    pub fn new(
        pod: &'s Value,
        tolerations: &'s [Toleration<NodeEffect>],
        volumes: &'s [&'s Value],
        neighbours: &[Neighbour<'s>],
        nodes: impl Iterator<Item = &'s Node>,
    ) -> Self {
        Self {
            spec: &pod["spec"],
            tolerations,
            volumes,
            nearness: Nearness::read(pod, neighbours),
            spread: Spread::read(pod, neighbours, nodes, |node| is_tolerated(node, tolerations)),
            requests: room::requests_of(&pod["spec"]),
        }
    }

    /// Whether a node can take it, of which so much is taken. What speaks against it for sure goes before what is not known.
    pub fn on(&self, node: &Node, used: &Used) -> Fit {
        let refuses = Fit::Refuses;
        if node.spec.unschedulable {
            return refuses(Misfit::Cordoned);
        }
        if !node.is_ready() {
            return refuses(Misfit::NotReady);
        }
        if !is_tolerated(node, self.tolerations) {
            return refuses(Misfit::Taint);
        }
        if !nodes::is_asked_for(node, self.spec) {
            return refuses(Misfit::Labels);
        }
        if !self.volumes.iter().all(|volume| is_within_reach(volume, node)) {
            return refuses(Misfit::Volume);
        }
        let mut all = [self.nearness.on(node), self.spread.on(node), self.room_on(node, used)];
        // A no is one whatever else is not known.
        all.sort_by_key(|fit| match fit {
            Fit::Refuses(_) => 0,
            Fit::Unknown(_) => 1,
            Fit::Takes => 2,
        });
        let [worst, ..] = all;
        worst
    }

    fn room_on(&self, node: &Node, used: &Used) -> Fit {
        let Some(requests) = &self.requests else { return Fit::Unknown(Missing::Requests) };
        let name = || node.metadata.name.as_deref().unwrap_or_default().into();
        match room::lack(&node.status.allocatable, used, requests) {
            None => Fit::Takes,
            Some(Lack::Of(resource)) => Fit::Refuses(Misfit::Room { resource: resource.into() }),
            Some(Lack::Allocatable) => Fit::Unknown(Missing::Allocatable { node: name() }),
            Some(Lack::Requests) => Fit::Unknown(Missing::Used { node: name() }),
        }
    }
}

fn is_tolerated(node: &Node, tolerations: &[Toleration<NodeEffect>]) -> bool {
    node.spec.taints.iter().map(Taint::from).all(|taint: Taint<NodeEffect>| {
        !matches!(taint.effect, NodeEffect::NoSchedule | NodeEffect::NoExecute)
            || tolerations.iter().any(|toleration| toleration.matches(&taint))
    })
}

#[cfg(test)]
mod fixtures {
    use serde_json::json;

    use super::*;

    /// A node that is well and has room, with these fields in place of its own.
    pub(super) fn node(name: &str, more: &Value) -> Node {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": "a", "size": "8"}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4", "pods": "10"},
            },
        });
        for (field, value) in more.as_object().unwrap() {
            node[field] = value.clone();
        }
        serde_json::from_value(node).unwrap()
    }

    pub(super) fn volume_on(name: &str) -> Value {
        json!({"spec": {"csi": {}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]},
        ]}]}}}})
    }

    pub(super) fn labels(pairs: &[(&str, &str)]) -> Vec<(Arc<str>, Arc<str>)> {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    pub(super) fn neighbour<'n>(
        namespace: &'n str,
        labels: &'n [(Arc<str>, Arc<str>)],
        node: &'n Node,
    ) -> Neighbour<'n> {
        Neighbour { namespace, labels, is_leaving: false, node }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixtures::{node, volume_on};
    use super::*;

    fn fit(node: &Node, spec: &Value, volumes: &[&Value]) -> Fit {
        let pod = json!({"metadata": {"namespace": "ns"}, "spec": spec});
        Newcomer::new(&pod, &[], volumes, &[], std::iter::once(node)).on(node, &Used::default())
    }

    fn takes(node: &Node, spec: &Value) -> bool {
        fit(node, spec, &[]) == Fit::Takes
    }

    #[test]
    fn a_node_is_left_out_for_what_a_scheduler_leaves_it_out_for() {
        let plain = node("n1", &json!({}));
        assert!(takes(&plain, &json!({})));
        assert!(!takes(&node("n1", &json!({"spec": {"unschedulable": true}})), &json!({})));
        assert!(!takes(&node("n1", &json!({"status": {}})), &json!({})), "it is not ready");
        let tainted =
            |effect: &str| node("n1", &json!({"spec": {"taints": [{"key": "k", "effect": effect}]}}));
        assert!(!takes(&tainted("NoSchedule"), &json!({})) && !takes(&tainted("NoExecute"), &json!({})));
        assert!(takes(&tainted("PreferNoSchedule"), &json!({})));
        for (spec, is_taken) in [
            (json!({"nodeSelector": {"zone": "a"}}), true),
            (json!({"nodeSelector": {"zone": "b"}}), false),
            (json!({"nodeSelector": {"other": ""}}), false),
        ] {
            assert_eq!(takes(&plain, &spec), is_taken, "{spec}");
        }
    }

    #[test]
    fn affinity_to_nodes_is_read_as_kubernetes_reads_it() {
        let plain = node("n1", &json!({}));
        let term = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (terms, is_taken) in [
            (json!([term("zone", "In", json!(["b", "a"]))]), true),
            (json!([term("zone", "NotIn", json!(["a"]))]), false),
            (json!([term("zone", "NotIn", json!(["a"])), term("size", "Gt", json!(["4"]))]), true),
            (json!([term("size", "Lt", json!(["8"]))]), false),
            (json!([term("zone", "Exists", Value::Null)]), true),
            (json!([term("zone", "DoesNotExist", Value::Null)]), false),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]), true),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]), false),
            (json!([{}]), false),
            (json!([]), false),
            (json!([term("zone", "Near", json!(["a"]))]), false),
        ] {
            let spec = json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            }}});
            assert_eq!(takes(&plain, &spec), is_taken, "{terms}");
        }
    }

    #[test]
    fn a_volume_that_stays_keeps_the_pod_within_its_reach() {
        let (one, two) = (node("n1", &json!({})), node("n2", &json!({})));
        let volume = volume_on("n1");
        assert!(fit(&one, &json!({}), &[&volume]) == Fit::Takes);
        assert!(fit(&two, &json!({}), &[&volume]) == Fit::Refuses(Misfit::Volume));
    }

    #[test]
    fn who_cannot_be_placed_is_told_why_and_a_no_goes_before_what_is_not_known() {
        let silent = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let asks = |cpu: &str| json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        assert_eq!(fit(&node("n1", &json!({})), &asks("4"), &[]), Fit::Takes);
        let too_little = Fit::Refuses(Misfit::Room { resource: "cpu".into() });
        assert_eq!(fit(&node("n1", &json!({})), &asks("5"), &[]), too_little);
        let unknown = Fit::Unknown(Missing::Allocatable { node: "n1".into() });
        assert_eq!(fit(&node("n1", &silent), &asks("1"), &[]), unknown);
        assert_eq!(fit(&node("n1", &json!({})), &asks("?"), &[]), Fit::Unknown(Missing::Requests));
        let mut near = asks("1");
        near["affinity"] = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}},
        ]}});
        assert_eq!(fit(&node("n1", &silent), &near, &[]), Fit::Refuses(Misfit::NotNear));
    }

    #[test]
    fn one_node_that_can_is_enough_and_one_that_might_is_not() {
        let names: [Arc<str>; 3] = ["n2".into(), "n1".into(), "n3".into()];
        let over = |fits: [Fit; 3]| first_that_takes(names.iter().zip(fits));
        let no = || Fit::Refuses(Misfit::Cordoned);
        let unknown = || Fit::Unknown(Missing::Rule);
        assert_eq!(over([Fit::Takes, Fit::Takes, unknown()]), Ok("n2".into()));
        assert_eq!(over([unknown(), no(), Fit::Takes]), Ok("n3".into()));
        let looked_at = std::cell::Cell::new(0);
        let counted = names.iter().map(|name| {
            looked_at.set(looked_at.get() + 1);
            (name, Fit::Takes)
        });
        assert_eq!(
            (first_that_takes(counted), looked_at.get()),
            (Ok("n2".into()), 1),
            "and no other is looked at"
        );
        assert_eq!(over([no(), unknown(), no()]), Err(Feasibility::Unknown(Missing::Rule)));
        let both = BTreeSet::from([Misfit::Cordoned, Misfit::Taint]);
        assert_eq!(over([no(), Fit::Refuses(Misfit::Taint), no()]), Err(Feasibility::No(both)));
    }
}
