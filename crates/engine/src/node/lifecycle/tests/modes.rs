//! What becomes of a node and of its zone, case by case as Kubernetes' suite has them.

use super::*;
use crate::node::ZoneState;

/// A node's zone, and what it says of itself; nothing where it has no condition.
type Said<'c> = (&'c str, Option<&'c str>);

fn said(ready: Option<&str>, second: i64) -> Vec<NodeCondition> {
    ready.map(|ready| beating(ready, second)).unwrap_or_default()
}

/// A cluster of nodes that were made just now.
fn cluster(nodes: &[Said<'_>]) -> Cluster {
    let mut cluster = Cluster::new(LifecyclePolicy::default());
    for (number, (zone, ready)) in nodes.iter().enumerate() {
        let mut one = node(&[], &[]);
        one.metadata.creation_timestamp = Some(time(0));
        one.status.conditions = said(*ready, 0);
        if !zone.is_empty() {
            one.metadata.labels = Some(labels(&[("topology.kubernetes.io/zone", zone)]));
        }
        cluster.put(&format!("n{number}"), one);
    }
    cluster.settle();
    cluster
}

/// How each zone stands.
fn states(cluster: &Cluster) -> Vec<(&str, ZoneState)> {
    let share = DisruptionPolicy::default().unhealthy_share;
    let zones = cluster.lifecycle.zones().counts();
    zones
        .map(|(zone, counts)| (zone.zone.as_str(), ZoneState::of(counts.ready, counts.not_ready, share)))
        .collect()
}

/// One case: the nodes, what they say later, and how the zones stand before and after.
type Case<'c> =
    (&'c [Said<'c>], &'c [Option<&'c str>], &'c [(&'c str, ZoneState)], &'c [(&'c str, ZoneState)]);

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestMonitorNodeHealth: No Disruption: Node created recently without failure domain labels (happens only at cluster startup)",
/// "TestMonitorNodeHealth: No Disruption: Initially both zones down, one comes back",
/// "TestMonitorNodeHealth: Partial Disruption: Nodes created recently without status conditions (happens only at cluster startup)",
/// "TestMonitorNodeHealth: Partial Disruption: one Node failed leading to the number of healthy Nodes to exceed the configured
/// threshold",
/// "TestMonitorNodeHealth: Full Disruption: the zone has less than 2 Nodes down, the last healthy Node has failed",
/// "TestMonitorNodeHealth: Full Disruption: all the Nodes in one zone are down",
/// "TestMonitorNodeHealth: Full Disruption: all the Nodes in both the zones are down",
/// "TestMonitorNodeHealth: Full Disruption: Ready condition removed from the Node".
#[test]
fn a_zone_stands_as_its_nodes_do() {
    use ZoneState::{Full, Normal, Partial};
    const UP: Option<&str> = Some("True");
    const DOWN: Option<&str> = Some("Unknown");
    let cases: [Case<'_>; 8] = [
        (&[("", UP)], &[UP], &[("", Normal)], &[("", Normal)]),
        (
            &[("a", DOWN), ("b", DOWN)],
            &[DOWN, UP],
            &[("a", Full), ("b", Full)],
            &[("a", Full), ("b", Normal)],
        ),
        (&[("a", None); 5], &[UP, UP, DOWN, DOWN, DOWN], &[("a", Full)], &[("a", Partial)]),
        (
            &[("a", UP), ("a", UP), ("a", UP), ("a", DOWN), ("a", DOWN)],
            &[UP, UP, DOWN, DOWN, DOWN],
            &[("a", Normal)],
            &[("a", Partial)],
        ),
        (&[("a", DOWN), ("a", DOWN), ("a", UP)], &[DOWN; 3], &[("a", Normal)], &[("a", Full)]),
        (
            &[("a", DOWN), ("b", UP)],
            &[DOWN, UP],
            &[("a", Full), ("b", Normal)],
            &[("a", Full), ("b", Normal)],
        ),
        (&[("a", DOWN), ("b", DOWN)], &[DOWN; 2], &[("a", Full), ("b", Full)], &[("a", Full), ("b", Full)]),
        (&[("a", UP)], &[None], &[("a", Normal)], &[("a", Full)]),
    ];
    for (number, (nodes, later, before, after)) in cases.into_iter().enumerate() {
        let mut cluster = cluster(nodes);
        assert_eq!(states(&cluster), before, "case {number} at first");
        cluster.now += 1;
        for (node, ready) in later.iter().enumerate() {
            cluster.change(&format!("n{node}"), |node| node.status.conditions = said(*ready, 1));
        }
        cluster.settle();
        assert_eq!(states(&cluster), after, "case {number} later");
    }
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestTryUpdateNodeHealth".
#[test]
fn what_a_node_said_stands_until_its_grace_is_over_and_no_longer() {
    for (ready, kept, grace) in [
        (Some("True"), Ready::True, 50),
        (Some("False"), Ready::False, 50),
        (Some("Unknown"), Ready::Unknown, 50),
        (None, Ready::Unsaid, 60),
    ] {
        let mut cluster = cluster(&[("a", ready), ("b", Some("True"))]);
        cluster.pass(grace - 1, &["n1"]);
        assert_eq!(cluster.ready("n0"), kept, "{ready:?} before");
        cluster.pass(1, &["n1"]);
        assert_eq!(cluster.ready("n0"), Ready::Unknown, "{ready:?} after");
        assert_eq!(cluster.ready("n1"), Ready::True, "who lives is not meant");
    }
}
