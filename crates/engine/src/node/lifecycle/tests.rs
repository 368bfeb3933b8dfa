//! Nodes through their lives, on an API server small enough to hold in the hand.

use std::time::Duration;

use proptest::prelude::*;

use super::super::fixtures::{at, beating, labels, node, taint, time};
use super::super::names::{label, taint as key};
use super::*;

#[path = "tests/modes.rs"]
mod modes;

/// A cluster: its nodes as the API server has them, and what its lifecycle makes of them.
struct Cluster {
    lifecycle: Lifecycle,
    nodes: BTreeMap<Arc<str>, Node>,
    leases: BTreeMap<Arc<str>, Moment>,
    wakes: BTreeMap<Arc<str>, Moment>,
    due: Vec<Arc<str>>,
    now: i64,
    /// Who was tainted so that pods leave, and when.
    tainted: Vec<(Arc<str>, i64)>,
}

impl Cluster {
    fn new(policy: LifecyclePolicy) -> Self {
        Self {
            lifecycle: Lifecycle::new(policy),
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            wakes: BTreeMap::new(),
            due: Vec::new(),
            now: 0,
            tainted: Vec::new(),
        }
    }

    /// So many nodes of a zone that are ready.
    fn with(zones: &[(&str, usize)]) -> Self {
        let mut cluster = Self::new(LifecyclePolicy::default());
        for (zone, count) in zones {
            for index in 0..*count {
                let mut one = node(&[], &[]);
                one.status.conditions = beating("True", -10);
                one.metadata.labels = Some(labels(&[("topology.kubernetes.io/zone", zone)]));
                cluster.put(&format!("{zone}{index}"), one);
            }
        }
        cluster.settle();
        cluster
    }

    fn put(&mut self, name: &str, mut node: Node) {
        let name: Arc<str> = name.into();
        node.metadata.name = Some(name.to_string());
        self.lifecycle.seen(&name, &node);
        self.nodes.insert(Arc::clone(&name), node);
        self.due.push(name);
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let mut node = self.nodes[name].clone();
        change(&mut node);
        self.put(name, node);
    }

    /// The kubelet posts this now.
    fn says(&mut self, name: &str, ready: &str) {
        let now = self.now;
        self.change(name, |node| node.status.conditions = beating(ready, now));
    }

    fn renews(&mut self, name: &str) {
        let (name, _) = self.nodes.get_key_value(name).unwrap();
        self.leases.insert(Arc::clone(name), at(self.now));
        self.due.push(Arc::clone(name));
    }

    /// Judges and writes until nothing is due.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.due.extend(self.lifecycle.advance(at(self.now), true));
            let late: Vec<_> = self.wakes.iter().filter(|(_, wake)| **wake <= at(self.now)).collect();
            self.due.extend(late.into_iter().map(|(name, _)| Arc::clone(name)));
            let Some(name) = self.due.pop() else { return };
            let Some(node) = self.nodes.get(&name).cloned() else { continue };
            let judged = self.lifecycle.judge(&name, &node, self.leases.get(&name).copied(), at(self.now));
            match judged.wake {
                Some(wake) => self.wakes.insert(Arc::clone(&name), wake),
                None => self.wakes.remove(&name),
            };
            let mut after = node.clone();
            for condition in judged.silence.into_iter().flat_map(|silence| silence.conditions) {
                after.status.conditions.retain(|one| one.type_ != condition.type_);
                after.status.conditions.push(condition);
            }
            if let Some(taints) = judged.taints {
                after.spec.taints = taints;
            }
            after
                .metadata
                .labels
                .get_or_insert_default()
                .extend(judged.labels.into_iter().map(|(name, value)| (name.to_owned(), value)));
            if after != node {
                if executes(&after.spec.taints) && !executes(&node.spec.taints) {
                    self.tainted.push((Arc::clone(&name), self.now));
                }
                self.put(&name, after);
            }
        }
        panic!("there is always something due");
    }

    /// Lets time pass, second by second; nodes of these zones renew their leases.
    fn pass(&mut self, seconds: i64, alive: &[&str]) {
        for _ in 0..seconds {
            self.now += 1;
            let names: Vec<_> = self.nodes.keys().cloned().collect();
            for name in names.iter().filter(|name| alive.iter().any(|zone| name.starts_with(zone))) {
                self.renews(name);
            }
            self.settle();
        }
    }

    fn ready(&self, name: &str) -> Ready {
        Ready::of(&self.nodes[name])
    }

    /// The taints of a node, in short.
    fn taints(&self, name: &str) -> Vec<String> {
        let short = |one: &NodeTaint| {
            let key = one.key.strip_prefix("node.kubernetes.io/").unwrap_or(&one.key);
            format!("{key}:{}", one.effect)
        };
        self.nodes[name].spec.taints.iter().map(short).collect()
    }
}

const CLEAN: [&str; 0] = [];

#[test]
fn a_node_that_falls_silent_is_unknown_at_its_moment_and_back_when_it_speaks() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    cluster.pass(49, &["a0", "a1"]);
    assert_eq!(cluster.ready("a2"), Ready::True);
    cluster.pass(1, &["a0", "a1"]);
    assert_eq!((cluster.ready("a2"), cluster.ready("a0")), (Ready::Unknown, Ready::True));
    assert_eq!(cluster.taints("a2"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
    let added = cluster.nodes["a2"].spec.taints[1].time_added.clone();
    assert_eq!(added, Some(time(50)));
    cluster.says("a2", "False");
    cluster.settle();
    assert_eq!(cluster.taints("a2"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
    assert_eq!(cluster.nodes["a2"].spec.taints[1].time_added, added, "one clock");
    cluster.says("a2", "True");
    cluster.settle();
    assert_eq!(cluster.taints("a2"), CLEAN);
}

/// Whether there is a lease, whether it is renewed, and whether the status is fresh, old or missing.
///
/// Upstream: nodelifecycle/node_lifecycle_controller_test.go
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created recently, without status. Node lease is missing.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created recently, without status. Node lease is renewed recently.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is missing.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is renewed
/// recently.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, without status. Node lease is expired.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet exceeds grace
/// period. Node lease is renewed.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet recently. Node
/// lease is expired.",
/// "TestMonitorNodeHealthUpdateNodeAndPodStatusWithLease: Node created long time ago, with status updated by kubelet exceeds grace
/// period. Node lease is also expired.".
#[test]
fn either_a_lease_or_a_status_that_changes_keeps_a_node_known() {
    // A lease at first, one that is renewed, a status at first, one that is posted; what Ready is a minute later.
    for (lease, renews, status, posts, expected) in [
        (false, false, true, true, Ready::True),
        (false, false, true, false, Ready::Unknown),
        (true, true, true, false, Ready::True),
        (true, false, true, true, Ready::True),
        (true, false, true, false, Ready::Unknown),
        (true, true, false, false, Ready::Unsaid),
        (true, false, false, false, Ready::Unknown),
        (false, false, false, false, Ready::Unknown),
    ] {
        let mut cluster = Cluster::with(&[("other", 2)]);
        let mut one = node(&[], &[]);
        one.metadata.creation_timestamp = Some(time(0));
        if status {
            one.status.conditions = beating("True", 0);
        }
        cluster.put("n", one);
        if lease {
            cluster.renews("n");
        }
        cluster.settle();
        for _ in 0..6 {
            cluster.pass(10, &["other"]);
            if renews {
                cluster.renews("n");
            }
            if posts {
                cluster.says("n", "True");
            }
        }
        cluster.settle();
        assert_eq!(cluster.ready("n"), expected, "{lease} {renews} {status} {posts}");
        let pods_are_told = expected == Ready::Unknown;
        let node = cluster.nodes["n"].clone();
        let renewed = cluster.leases.get("n").copied();
        let judged = cluster.lifecycle.judge(&"n".into(), &node, renewed, at(cluster.now));
        assert_eq!(judged.tells_pods, pods_are_told);
    }
}

#[test]
fn nodes_of_a_zone_are_tainted_one_after_another() {
    let mut cluster = Cluster::with(&[("a", 4), ("b", 4)]);
    for name in ["a0", "a1", "b0"] {
        cluster.says(name, "False");
    }
    cluster.pass(45, &["a", "b"]);
    let mut when: Vec<i64> = cluster.tainted.iter().map(|(_, at)| *at).collect();
    when.sort_unstable();
    assert_eq!(when, [1, 1, 11]);
}

#[test]
fn a_new_process_takes_nothing_off_and_starts_no_clock_again() {
    let mut before = Cluster::with(&[("a", 4)]);
    before.says("a0", "False");
    before.pass(60, &["a1", "a2"]);
    let nodes = before.nodes.clone();
    assert_eq!(before.taints("a0"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
    let mut after = Cluster::new(LifecyclePolicy::default());
    after.now = 500;
    for (name, node) in &nodes {
        after.put(name, node.clone());
    }
    after.settle();
    assert_eq!(after.nodes, nodes);
    after.pass(49, &[]);
    assert_eq!(after.nodes, nodes, "and everybody has a whole grace");
}

#[test]
fn a_taint_that_somebody_takes_off_comes_back() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    cluster.says("a0", "False");
    cluster.pass(1, &["a"]);
    cluster.change("a0", |node| node.spec.taints.clear());
    cluster.pass(10, &["a"]);
    assert_eq!(cluster.taints("a0"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
}

#[test]
fn too_much_of_a_small_zone_stops_it_and_lets_no_turn_through() {
    let mut cluster = Cluster::with(&[("a", 5), ("b", 1)]);
    cluster.pass(200, &["a0", "a1", "b"]);
    assert_eq!(cluster.lifecycle.waiting(), 3);
    assert_eq!(cluster.tainted, [], "they fell silent as one, and nobody went first");
    cluster.says("a2", "True");
    cluster.pass(4, &["a0", "a1", "a2", "b"]);
    assert_eq!(cluster.tainted, [], "two are no longer too many, but not for long enough");
    cluster.pass(40, &["a0", "a1", "a2", "b"]);
    assert_eq!(cluster.tainted.len(), 2);
}

#[test]
fn where_everything_is_down_the_taints_go_and_every_grace_begins_anew_after_it() {
    let mut cluster = Cluster::with(&[("a", 2), ("b", 2)]);
    cluster.says("a0", "False");
    cluster.pass(1, &["a", "b"]);
    assert_eq!(cluster.taints("a0"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
    cluster.pass(60, &[]);
    assert!(cluster.lifecycle.zones().is_all_down());
    for name in ["a0", "a1", "b0", "b1"] {
        assert_eq!(cluster.taints(name), ["unreachable:NoSchedule"], "{name}");
    }
    cluster.says("a1", "True");
    cluster.pass(6, &["a1"]);
    assert!(!cluster.lifecycle.zones().is_all_down());
    assert_eq!(cluster.taints("a1"), CLEAN);
    cluster.pass(30, &["a1"]);
    assert_eq!(cluster.taints("b0"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
}

#[test]
fn where_it_is_wanted_nothing_changes_while_everything_is_down() {
    let disruption = DisruptionPolicy { when_all_down: WhenAllDown::Hold, ..DisruptionPolicy::default() };
    let mut cluster = Cluster::with(&[("a", 2)]);
    let nodes = cluster.nodes.clone();
    cluster.lifecycle = Lifecycle::new(LifecyclePolicy { disruption, ..LifecyclePolicy::default() });
    for (name, node) in &nodes {
        cluster.put(name, node.clone());
    }
    cluster.says("a0", "False");
    cluster.pass(1, &["a"]);
    cluster.pass(60, &[]);
    assert_eq!(cluster.taints("a0"), ["unreachable:NoSchedule", "unreachable:NoExecute"]);
    assert_eq!(cluster.nodes["a0"].spec.taints[1].time_added, Some(time(1)));
    assert_eq!(cluster.taints("a1"), ["unreachable:NoSchedule"]);
    let node = cluster.nodes["a1"].clone();
    assert!(!cluster.lifecycle.judge(&"a1".into(), &node, None, at(61)).tells_pods);
    assert!(cluster.lifecycle.zones().freeze().is_some());
}

/// Upstream: nodelifecycle/node_lifecycle_controller_test.go "Test_isNodeExcludedFromDisruptionChecks".
#[test]
fn a_node_that_does_not_count_is_judged_like_any_other() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    cluster.change("a0", |node| {
        node.metadata.labels.as_mut().unwrap().insert(label::EXCLUDE_DISRUPTION.into(), String::new());
    });
    cluster.says("a0", "False");
    cluster.pass(1, &["a"]);
    assert_eq!(cluster.taints("a0"), ["not-ready:NoSchedule", "not-ready:NoExecute"]);
    let counts: Vec<_> = cluster.lifecycle.zones().counts().map(|(_, counts)| counts).collect();
    assert_eq!((counts[0].ready, counts[0].not_ready), (2, 0));
}

#[test]
fn a_node_that_comes_and_goes_is_kept_from_new_pods_for_a_while() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    for _ in 0..6 {
        cluster.says("a0", "False");
        cluster.pass(5, &["a"]);
        cluster.says("a0", "True");
        cluster.settle();
    }
    assert_eq!(cluster.taints("a0"), ["not-ready:NoSchedule"], "what makes pods leave went at once");
    cluster.pass(30, &["a"]);
    assert_eq!(cluster.taints("a0"), CLEAN);
}

#[test]
fn a_node_made_again_under_its_name_is_another() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    cluster.pass(100, &["a1", "a2"]);
    cluster.change("a0", |node| {
        *node = Node::default();
        node.metadata.uid = Some("another".into());
        node.metadata.creation_timestamp = Some(time(100));
        node.spec.taints = vec![taint(key::NOT_READY, key::NO_SCHEDULE, None)];
    });
    cluster.pass(59, &["a1", "a2"]);
    assert_eq!(
        (cluster.ready("a0"), cluster.taints("a0")),
        (Ready::Unsaid, vec!["not-ready:NoSchedule".into()])
    );
    cluster.pass(1, &["a1", "a2"]);
    assert_eq!(cluster.ready("a0"), Ready::Unknown, "it has never said anything");
}

#[test]
fn a_clock_that_jumps_makes_nobody_silent_and_hides_nobody() {
    let mut cluster = Cluster::with(&[("a", 3)]);
    cluster.pass(20, &["a"]);
    cluster.now += 86_400;
    cluster.settle();
    assert_eq!(cluster.ready("a0"), Ready::True, "a day went by in which nobody looked");
    cluster.now -= 86_400;
    cluster.settle();
    cluster.pass(50, &["a0", "a1"]);
    assert_eq!((cluster.ready("a0"), cluster.ready("a2")), (Ready::True, Ready::Unknown));
}

#[derive(Clone, Debug)]
enum Happens {
    Says(usize, &'static str),
    Renews(usize),
    Untainted(usize),
    Moves(usize, &'static str),
    Time(i64),
}

fn anything() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (0..6_usize, proptest::sample::select(vec!["True", "False"]))
            .prop_map(|(n, ready)| Happens::Says(n, ready)),
        (0..6_usize).prop_map(Happens::Renews),
        (0..6_usize).prop_map(Happens::Untainted),
        (0..6_usize, proptest::sample::select(vec!["a", "b"])).prop_map(|(n, zone)| Happens::Moves(n, zone)),
        prop_oneof![4 => 0_i64..20, 1 => -4_000_i64..4_000].prop_map(Happens::Time),
    ]
}

proptest! {
    /// Whatever happens: never both taints, never more than the pace, and a cluster that is well ends without them.
    #[test]
    fn whatever_happens_a_cluster_that_is_well_ends_clean(happens in prop::collection::vec(anything(), 0..60)) {
        let mut cluster = Cluster::with(&[("a", 3), ("b", 3)]);
        let names: Vec<Arc<str>> = cluster.nodes.keys().cloned().collect();
        let mut has_gone_back = false;
        for one in happens {
            match one {
                Happens::Says(n, ready) => cluster.says(&names[n], ready),
                Happens::Renews(n) => cluster.renews(&names[n]),
                Happens::Untainted(n) => cluster.change(&names[n], |node| node.spec.taints.clear()),
                Happens::Moves(n, zone) => cluster.change(&names[n], |node| {
                    node.metadata.labels = Some(labels(&[("topology.kubernetes.io/zone", zone)]));
                }),
                Happens::Time(seconds) => {
                    has_gone_back |= seconds < 0;
                    cluster.now += seconds;
                }
            }
            cluster.settle();
            for node in cluster.nodes.values() {
                let executing = node.spec.taints.iter().filter(|one| one.effect == key::NO_EXECUTE);
                prop_assert!(executing.count() <= 1);
                let is_ready = Ready::of(node) == Ready::True;
                prop_assert!(!is_ready || !executes(&node.spec.taints));
            }
        }
        if !has_gone_back {
            // Two zones, one node each ten seconds in each of them.
            for (index, (_, at)) in cluster.tainted.iter().enumerate() {
                let later = cluster.tainted[index..].iter().filter(|(_, later)| later - at < 10);
                prop_assert!(later.count() <= 2, "{:?}", cluster.tainted);
            }
        }
        for name in &names {
            cluster.says(name, "True");
        }
        cluster.pass(40, &["a", "b"]);
        for name in &names {
            prop_assert_eq!(cluster.taints(name), CLEAN);
        }
        prop_assert_eq!(cluster.lifecycle.waiting(), 0);
    }

    /// A node that is silent for good is Unknown a grace later at the latest, whatever the clock did before.
    #[test]
    fn silence_is_found_whatever_the_clock_did(jumps in prop::collection::vec(-4_000_i64..4_000, 0..10)) {
        let mut cluster = Cluster::with(&[("a", 1), ("b", 1)]);
        for jump in jumps {
            cluster.now += jump;
            cluster.renews("b0");
            cluster.settle();
        }
        prop_assert_eq!(LifecyclePolicy::default().graces.monitor, Duration::from_secs(50));
        cluster.pass(50, &["b"]);
        prop_assert_eq!(cluster.ready("a0"), Ready::Unknown);
        prop_assert_eq!(cluster.ready("b0"), Ready::True);
    }
}
