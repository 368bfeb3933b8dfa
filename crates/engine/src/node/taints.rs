//! The taints that follow from a node's conditions.
//!
//! Owns which taints a node should carry, and since when. `NoSchedule` follows the conditions at once. `NoExecute`, which
//! makes pods leave, is one of two: the node says it is not ready, or it has not been heard of. A node gets the first of
//! them when it is its turn ([`super::Turns`]); from then on one is swapped for the other at once and keeps its time, so that
//! no toleration starts again: the node has been unwell all along.
//!
//! Taints are told apart by key and effect, as the API does. Whatever is not one of these is somebody else's and stays.
//! Nothing here depends on what was done before: a taint that somebody takes off comes back, and a new process finds the
//! taints of the one before and leaves them, with their times.
//!
//! # Without a Ready condition
//!
//! Nothing is concluded from what a node has not said. The `not-ready:NoSchedule` that the API server gives to new nodes
//! stays until the kubelet says that the node is ready; Kubernetes' own controller would take it off a node without any
//! condition.

use berth_api::core::{Node, NodeTaint};
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::names::{condition, taint};
use super::ready::Ready;
use crate::condition::whole_second;
use crate::moment::Moment;

/// What may be done about `NoExecute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execute {
    /// It is the node's turn: it may get one.
    Granted,
    /// It is not: what is there is kept, swapped or taken off, and nothing is put on.
    Waiting,
    /// Everything is down, so it is not the nodes: what is there is taken off.
    Lifted,
}

/// What is wanted of a node's taints.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedTaints {
    /// The whole list to write; `None` if the node carries it already.
    pub write: Option<Vec<NodeTaint>>,
    /// Whether it waits for its turn to get a `NoExecute` taint.
    pub awaits_turn: bool,
}

/// The taints a node should carry. `keeps_barred` is whether a node that is ready again is kept from new pods for a while
/// ([`super::Falls`]).
pub fn wanted_taints(node: &Node, execute: Execute, keeps_barred: bool, now: Moment) -> WantedTaints {
    let ready = Ready::of(node);
    let barring = barring(node);
    let execute_key = match ready {
        _ if execute == Execute::Lifted => None,
        Ready::False => Some(taint::NOT_READY),
        Ready::Unknown => Some(taint::UNREACHABLE),
        Ready::True | Ready::Unsaid => None,
    };
    let since = execute_since(&node.spec.taints, execute_key, now);
    let is_kept = |one: &NodeTaint| match Ours::of(one) {
        None => true,
        Some(Ours::Bars) if barring.contains(&one.key.as_str()) => true,
        Some(Ours::Bars) => {
            let is_about_readiness = [taint::NOT_READY, taint::UNREACHABLE].contains(&one.key.as_str());
            is_about_readiness && (ready == Ready::Unsaid || (ready == Ready::True && keeps_barred))
        }
        Some(Ours::Executes) => {
            execute_key == Some(one.key.as_str()) || (ready == Ready::Unsaid && execute != Execute::Lifted)
        }
    };
    let mut taints: Vec<NodeTaint> = node.spec.taints.iter().filter(|one| is_kept(one)).cloned().collect();
    for key in barring {
        if !carries(&taints, key, taint::NO_SCHEDULE) {
            taints.push(new(key, taint::NO_SCHEDULE, whole_second(now)));
        }
    }
    // Not before now, so that nobody leaves early by it.
    let from = || whole_second(now.to_whole_second());
    let mut awaits_turn = false;
    if let Some(key) = execute_key {
        let kept = taints.iter_mut().find(|one| Ours::of(one) == Some(Ours::Executes));
        match (kept, since) {
            // Without a time nobody knows when a toleration ends.
            (Some(kept), since) => {
                kept.time_added.get_or_insert_with(|| since.unwrap_or_else(from));
            }
            (None, Some(since)) => taints.push(new(key, taint::NO_EXECUTE, since)),
            (None, None) if execute == Execute::Granted => {
                taints.push(new(key, taint::NO_EXECUTE, from()));
            }
            (None, None) => awaits_turn = true,
        }
    }
    WantedTaints { write: (taints != node.spec.taints).then_some(taints), awaits_turn }
}

/// Whether the node carries a taint of ours that makes pods leave.
pub fn executes(taints: &[NodeTaint]) -> bool {
    taints.iter().any(|one| Ours::of(one) == Some(Ours::Executes))
}

/// What kind of ours a taint is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// It keeps new pods away.
    Bars,
    /// It makes pods leave.
    Executes,
}

impl Ours {
    fn of(one: &NodeTaint) -> Option<Self> {
        match (one.effect.as_str(), one.key.as_str()) {
            (taint::NO_SCHEDULE, key) if taint::ALL.contains(&key) => Some(Self::Bars),
            (taint::NO_EXECUTE, taint::NOT_READY | taint::UNREACHABLE) => Some(Self::Executes),
            _ => None,
        }
    }
}

/// Keys of the `NoSchedule` taints that its conditions ask for.
fn barring(node: &Node) -> Vec<&'static str> {
    let key = |one: &NodeCondition| match (one.type_.as_str(), one.status.as_str()) {
        (condition::READY, "False") => Some(taint::NOT_READY),
        (condition::READY, "Unknown") => Some(taint::UNREACHABLE),
        (condition::MEMORY_PRESSURE, "True") => Some(taint::MEMORY_PRESSURE),
        (condition::DISK_PRESSURE, "True") => Some(taint::DISK_PRESSURE),
        (condition::PID_PRESSURE, "True") => Some(taint::PID_PRESSURE),
        (condition::NETWORK_UNAVAILABLE, "True") => Some(taint::NETWORK_UNAVAILABLE),
        _ => None,
    };
    let mut keys: Vec<&str> = node.status.conditions.iter().filter_map(key).collect();
    keys.extend(node.spec.unschedulable.then_some(taint::UNSCHEDULABLE));
    keys
}

/// The time of the taint that is swapped for the one with `key`, if there is such a one.
fn execute_since(taints: &[NodeTaint], key: Option<&str>, now: Moment) -> Option<Time> {
    let mut swapped = taints
        .iter()
        .filter(|one| Ours::of(one) == Some(Ours::Executes) && Some(one.key.as_str()) != key)
        .peekable();
    swapped.peek()?;
    // One from the future was written by a clock that runs ahead.
    let since = swapped.filter_map(|one| one.time_added.as_ref()).map(|time| Moment::from_timestamp(time.0));
    Some(whole_second(since.min().unwrap_or(now).min(now)))
}

fn carries(taints: &[NodeTaint], key: &str, effect: &str) -> bool {
    taints.iter().any(|one| one.key == key && one.effect == effect)
}

fn new(key: &str, effect: &str, since: Time) -> NodeTaint {
    NodeTaint { key: key.to_owned(), effect: effect.to_owned(), value: None, time_added: Some(since) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::fixtures::{at, conditions, node, taint as tainted};
    use super::*;

    const NOT_READY: &str = taint::NOT_READY;
    const UNREACHABLE: &str = taint::UNREACHABLE;

    /// Carries what is wanted from now on; says whether the node waits for its turn.
    fn settle(node: &mut Node, execute: Execute, now: i64) -> bool {
        let wanted = wanted_taints(node, execute, false, at(now));
        if let Some(taints) = wanted.write {
            node.spec.taints = taints;
        }
        wanted.awaits_turn
    }

    fn ready(status: &str, taints: &[NodeTaint]) -> Node {
        node(&[("Ready", status)], taints)
    }

    fn bars(key: &str) -> NodeTaint {
        tainted(key, "NoSchedule", Some(0))
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestTaintsNodeByCondition".
    #[test]
    fn no_schedule_follows_the_conditions_at_once() {
        let network = "node.kubernetes.io/network-unavailable";
        for (said, keys) in [
            (vec![("Ready", "True"), ("NetworkUnavailable", "True")], vec![network]),
            (vec![("NetworkUnavailable", "True"), ("Ready", "False")], vec![network, NOT_READY]),
            (vec![("Ready", "False")], vec![NOT_READY]),
            (vec![("Ready", "Unknown")], vec![UNREACHABLE]),
            (
                vec![
                    ("Ready", "True"),
                    ("MemoryPressure", "True"),
                    ("DiskPressure", "True"),
                    ("PIDPressure", "True"),
                ],
                vec![
                    "node.kubernetes.io/memory-pressure",
                    "node.kubernetes.io/disk-pressure",
                    "node.kubernetes.io/pid-pressure",
                ],
            ),
            (vec![("Ready", "True"), ("MemoryPressure", "Unknown"), ("DiskPressure", "False")], vec![]),
        ] {
            let mut it = node(&said, &[]);
            settle(&mut it, Execute::Waiting, 0);
            let expected: Vec<NodeTaint> = keys.into_iter().map(bars).collect();
            assert_eq!(it.spec.taints, expected, "{said:?}");
        }
    }

    #[test]
    fn a_cordoned_node_says_so_by_a_taint() {
        let mut it = ready("True", &[]);
        it.spec.unschedulable = true;
        settle(&mut it, Execute::Waiting, 0);
        assert_eq!(it.spec.taints, [bars("node.kubernetes.io/unschedulable")]);
        it.spec.unschedulable = false;
        settle(&mut it, Execute::Waiting, 1);
        assert_eq!(it.spec.taints, []);
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestApplyNoExecuteTaints",
    /// "TestApplyNoExecuteTaintsToUnreachableNode".
    #[test]
    fn no_execute_waits_for_its_turn_and_goes_when_the_node_is_ready() {
        for (status, key) in [("False", NOT_READY), ("Unknown", UNREACHABLE)] {
            let mut it = ready(status, &[]);
            assert!(settle(&mut it, Execute::Waiting, 0), "it waits");
            assert_eq!(it.spec.taints, [bars(key)]);
            assert!(!settle(&mut it, Execute::Granted, 7));
            assert_eq!(it.spec.taints, [bars(key), tainted(key, "NoExecute", Some(7))]);
            assert!(!settle(&mut it, Execute::Waiting, 9), "it has what it waited for");
            it.status.conditions = conditions(&[("Ready", "True")]);
            settle(&mut it, Execute::Waiting, 10);
            assert_eq!(it.spec.taints, []);
        }
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestSwapUnreachableNotReadyTaints".
    #[test]
    fn one_taint_is_swapped_for_the_other_at_once_and_keeps_its_time() {
        let mut it = ready("Unknown", &[]);
        settle(&mut it, Execute::Granted, 0);
        it.status.conditions = conditions(&[("Ready", "False")]);
        assert!(!settle(&mut it, Execute::Waiting, 100));
        let not_ready = tainted(NOT_READY, "NoExecute", Some(0));
        assert_eq!(it.spec.taints, [tainted(NOT_READY, "NoSchedule", Some(100)), not_ready]);
    }

    #[test]
    fn of_both_at_once_the_right_one_stays_as_it_is() {
        let both = [tainted(NOT_READY, "NoExecute", Some(-30)), tainted(UNREACHABLE, "NoExecute", Some(-5))];
        let mut it = ready("Unknown", &both);
        settle(&mut it, Execute::Waiting, 0);
        assert_eq!(it.spec.taints, [both[1].clone(), bars(UNREACHABLE)]);
    }

    #[test]
    fn a_taint_without_a_time_is_given_one() {
        let mut it = ready("False", &[tainted(NOT_READY, "NoExecute", None)]);
        settle(&mut it, Execute::Waiting, 5);
        assert_eq!(it.spec.taints[0], tainted(NOT_READY, "NoExecute", Some(5)));
        let mut swapped = ready("Unknown", &[tainted(NOT_READY, "NoExecute", None)]);
        settle(&mut swapped, Execute::Waiting, 5);
        assert_eq!(swapped.spec.taints.last(), Some(&tainted(UNREACHABLE, "NoExecute", Some(5))));
    }

    #[test]
    fn a_time_from_the_future_does_not_outlive_a_swap() {
        let mut it = ready("Unknown", &[tainted(NOT_READY, "NoExecute", Some(9_999))]);
        settle(&mut it, Execute::Waiting, 5);
        assert_eq!(it.spec.taints.last(), Some(&tainted(UNREACHABLE, "NoExecute", Some(5))));
    }

    #[test]
    fn where_everything_is_down_nobody_is_made_to_leave() {
        let mut it = ready("Unknown", &[tainted(UNREACHABLE, "NoExecute", Some(-30))]);
        assert!(!settle(&mut it, Execute::Lifted, 0));
        assert_eq!(it.spec.taints, [bars(UNREACHABLE)], "new pods are kept away all the same");
    }

    #[test]
    fn a_node_that_has_not_said_anything_keeps_what_the_api_server_gave_it() {
        let given = [NodeTaint { time_added: None, ..bars(NOT_READY) }];
        let mut it = node(&[], &given);
        assert!(!settle(&mut it, Execute::Granted, 0));
        assert_eq!(it.spec.taints, given);
        it.status.conditions = conditions(&[("Ready", "True")]);
        settle(&mut it, Execute::Waiting, 1);
        assert_eq!(it.spec.taints, []);
    }

    #[test]
    fn a_node_that_is_kept_barred_keeps_new_pods_away_and_makes_nobody_leave() {
        let fell = [bars(NOT_READY), tainted(NOT_READY, "NoExecute", Some(0))];
        let it = ready("True", &fell);
        let wanted = wanted_taints(&it, Execute::Waiting, true, at(9));
        assert_eq!(wanted.write, Some(vec![bars(NOT_READY)]));
        let clean = ready("True", &[]);
        assert_eq!(wanted_taints(&clean, Execute::Waiting, true, at(9)).write, None, "never put on");
    }

    fn any_taint() -> impl Strategy<Value = NodeTaint> {
        let keys = taint::ALL.into_iter().chain(["example.com/mine"]).collect::<Vec<_>>();
        let effects = vec!["NoSchedule", "NoExecute", "PreferNoSchedule"];
        (select(keys), select(effects), proptest::option::of(-90_i64..90), any::<bool>()).prop_map(
            |(key, effect, added, has_value)| NodeTaint {
                value: has_value.then(|| "v".to_owned()),
                ..tainted(key, effect, added)
            },
        )
    }

    /// Taints as the API takes them: no key and effect twice.
    fn any_taints() -> impl Strategy<Value = Vec<NodeTaint>> {
        prop::collection::vec(any_taint(), 0..8).prop_map(|mut taints| {
            let mut seen = std::collections::HashSet::new();
            taints.retain(|one| seen.insert((one.key.clone(), one.effect.clone())));
            taints
        })
    }

    type Step = (Vec<(&'static str, &'static str)>, Execute);

    fn any_steps() -> impl Strategy<Value = Vec<Step>> {
        let status = || select(vec!["True", "False", "Unknown", "Odd"]);
        let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
        let said = (proptest::option::of(status()), select(kinds.to_vec()), status()).prop_map(
            |(ready, kind, status)| {
                ready.map(|ready| ("Ready", ready)).into_iter().chain([(kind, status)]).collect::<Vec<_>>()
            },
        );
        let execute = select(vec![Execute::Granted, Execute::Waiting, Execute::Lifted]);
        prop::collection::vec((said, execute), 1..8)
    }

    proptest! {
        #[test]
        fn never_both_never_anybody_elses_and_nothing_is_left_on_a_node_that_is_well(
            taints in any_taints(), steps in any_steps(),
        ) {
            let foreign = |taints: &[NodeTaint]| -> Vec<NodeTaint> {
                taints.iter().filter(|one| Ours::of(one).is_none()).cloned().collect()
            };
            let mut it = node(&[], &taints);
            for (second, (said, execute)) in (0_i64..).zip(steps) {
                it.status.conditions = conditions(&said);
                settle(&mut it, execute, second);
                prop_assert_eq!(foreign(&it.spec.taints), foreign(&taints));
                let again = wanted_taints(&it, execute, false, at(second + 60));
                prop_assert_eq!(again.write, None, "what is wanted once is wanted for good");
                let executing = it.spec.taints.iter().filter(|one| Ours::of(one) == Some(Ours::Executes));
                let most = if Ready::of(&it) == Ready::Unsaid { 2 } else { 1 };
                prop_assert!(executing.count() <= most);
                let mut pairs: Vec<_> = it.spec.taints.iter().map(|one| (&one.key, &one.effect)).collect();
                pairs.sort();
                pairs.dedup();
                prop_assert_eq!(pairs.len(), it.spec.taints.len(), "the API takes none twice");
            }
            it.status.conditions = conditions(&[("Ready", "True")]);
            settle(&mut it, Execute::Waiting, 100);
            prop_assert_eq!(&it.spec.taints, &foreign(&taints));
        }
    }
}
