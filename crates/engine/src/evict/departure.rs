//! When something must leave the node it is on.

use serde::Serialize;

use crate::moment::Moment;
use crate::taint::{NodeEffect, Taint, Toleration};

/// That a pod must leave, when, and because of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Leave {
    /// From when on.
    pub at: Moment,
    /// The taint, by its place in the node's list.
    pub taint: usize,
    /// The toleration that ends, by its place in the pod's list; `None` where none speaks of the taint.
    pub by: Option<usize>,
}

/// When a taint counts from: since it was added, as far as that can be believed.
///
/// A time that nobody wrote is the first sighting. One that lies ahead of the first sighting was written by a clock that
/// runs ahead, and one from before the node existed by one that runs behind, or by somebody who wants the pods gone at
/// once: neither can have been true.
pub fn counted_from(added: Option<Moment>, node_created: Moment, first_seen: Moment) -> Moment {
    match added {
        None => first_seen,
        // Objects hold whole seconds, and whoever wrote this one may have rounded up.
        Some(added) => added.max(node_created).min(first_seen.to_whole_second()),
    }
}

/// When a pod must leave a node with these taints; `None` if it may stay. `since` says from when each taint counts.
///
/// Only `NoExecute` makes anybody leave. Of several tolerations that speak of a taint the first decides, and the earliest
/// of all ends: that is Kubernetes' rule, except that each toleration runs from its own taint and not from the moment
/// somebody looked. The result depends on nothing but its arguments, so a restart or a later change cannot move it.
pub fn departure(
    taints: &[Taint<NodeEffect>],
    since: impl Fn(usize) -> Moment,
    tolerations: &[Toleration<NodeEffect>],
) -> Option<Leave> {
    let barred = taints.iter().enumerate().filter(|(_, taint)| taint.effect == NodeEffect::NoExecute);
    barred
        .filter_map(|(index, taint)| {
            let by = tolerations.iter().position(|toleration| toleration.matches(taint));
            let at = match by.map(|by| tolerations[by].seconds) {
                Some(None) => return None,
                None => since(index),
                Some(Some(seconds)) => since(index).plus_seconds(seconds.max(0)),
            };
            // A toleration that outlasts all of time is one for ever.
            (at < Moment::NEVER).then_some(Leave { at, taint: index, by })
        })
        .min_by_key(|leave| leave.at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::taint::Operator;

    const ADDED: i64 = 1_000;

    fn taint(key: &str, effect: &str) -> Taint<NodeEffect> {
        let added = Some(Moment::from_second(ADDED));
        Taint { key: key.into(), value: "".into(), effect: NodeEffect::parse(effect), added }
    }

    fn tolerates(key: &str, seconds: Option<i64>) -> Toleration<NodeEffect> {
        Toleration { key: key.into(), operator: Operator::Exists, value: "".into(), effect: None, seconds }
    }

    fn leaves(taints: &[Taint<NodeEffect>], tolerations: &[Toleration<NodeEffect>]) -> Option<i64> {
        let since = |index: usize| taints[index].added.unwrap();
        departure(taints, since, tolerations).map(|leave| leave.at.seconds_since(Moment::from_second(ADDED)))
    }

    #[test]
    fn only_no_execute_makes_anybody_leave() {
        let harmless = ["NoSchedule", "PreferNoSchedule", "Surprise"].map(|effect| taint("a", effect));
        assert_eq!(leaves(&harmless, &[]), None);
        assert_eq!(leaves(&[taint("a", "NoExecute")], &[]), Some(0));
    }

    #[test]
    fn the_earliest_end_of_the_tolerations_that_are_used_counts() {
        let both = [taint("a", "NoExecute"), taint("b", "NoExecute")];
        assert_eq!(leaves(&both, &[tolerates("a", Some(60)), tolerates("b", Some(5))]), Some(5));
        assert_eq!(leaves(&both, &[tolerates("a", None), tolerates("b", Some(60))]), Some(60));
        assert_eq!(leaves(&both, &[tolerates("", None)]), None);
        assert_eq!(leaves(&both, &[tolerates("a", None)]), Some(0), "nothing speaks of b");
    }

    #[test]
    fn zero_and_below_are_at_once() {
        for seconds in [0, -1, i64::MIN] {
            assert_eq!(leaves(&[taint("a", "NoExecute")], &[tolerates("a", Some(seconds))]), Some(0));
        }
        assert_eq!(leaves(&[taint("a", "NoExecute")], &[tolerates("a", Some(i64::MAX))]), None);
    }

    #[test]
    fn the_first_toleration_that_matches_decides_also_where_a_later_one_is_longer() {
        let list = [tolerates("a", Some(10)), tolerates("", None)];
        assert_eq!(leaves(&[taint("a", "NoExecute")], &list), Some(10));
    }

    #[test]
    fn each_toleration_runs_from_its_own_taint() {
        let late = Taint { added: Some(Moment::from_second(ADDED + 100)), ..taint("b", "NoExecute") };
        let taints = [taint("a", "NoExecute"), late];
        let tolerations = [tolerates("a", Some(200)), tolerates("b", Some(50))];
        let since = |index: usize| taints[index].added.unwrap();
        let leave = departure(&taints, since, &tolerations).unwrap();
        assert_eq!((leave.at, leave.taint, leave.by), (Moment::from_second(ADDED + 150), 1, Some(1)));
    }

    #[test]
    fn a_time_that_cannot_be_true_is_bounded_by_what_is_known() {
        let [created, seen] = [100, 200].map(Moment::from_second);
        let counted = |added| counted_from(added, created, seen);
        assert_eq!(counted(None), seen);
        assert_eq!(counted(Some(Moment::from_second(150))), Moment::from_second(150));
        assert_eq!(counted(Some(Moment::from_second(999))), seen, "a clock that runs ahead");
        assert_eq!(counted(Some(Moment::PAST)), created, "nobody was on the node before it was there");
        let within = Moment::from_second(200).plus(std::time::Duration::from_millis(300));
        let rounded = Moment::from_second(201);
        assert_eq!(
            counted_from(Some(rounded), created, within),
            rounded,
            "a second that was rounded up to is believed"
        );
        let unseen = Moment::from_second(50);
        assert_eq!(counted_from(Some(created), created, unseen), unseen, "our own clock may run behind");
    }

    fn any_toleration() -> impl Strategy<Value = Toleration<NodeEffect>> {
        let effects = select(vec![None, Some(NodeEffect::NoExecute), Some(NodeEffect::NoSchedule)]);
        let seconds = select(vec![None, Some(-5), Some(0), Some(7), Some(60), Some(i64::MAX)]);
        (select(vec!["", "a", "b"]), effects, seconds)
            .prop_map(|(key, effect, seconds)| Toleration { effect, ..tolerates(key, seconds) })
    }

    proptest! {
        /// The rule as Kubernetes writes it down: unmatched means now, else the smallest number of seconds that is used.
        #[test]
        fn with_one_clock_the_answer_is_kubernetes_own(
            taints in prop::collection::vec((select(vec!["a", "b", "c"]), select(vec!["NoExecute", "NoSchedule"])), 0..4),
            tolerations in prop::collection::vec(any_toleration(), 0..4),
        ) {
            let taints: Vec<_> = taints.iter().map(|(key, effect)| taint(key, effect)).collect();
            let used: Vec<Option<&Toleration<NodeEffect>>> = taints
                .iter()
                .filter(|taint| taint.effect == NodeEffect::NoExecute)
                .map(|taint| tolerations.iter().find(|toleration| toleration.matches(taint)))
                .collect();
            let naive = if used.iter().any(Option::is_none) {
                Some(0)
            } else {
                used.iter().flatten().filter_map(|used| used.seconds).map(|seconds| seconds.max(0)).min()
            };
            prop_assert_eq!(leaves(&taints, &tolerations), naive.filter(|seconds| *seconds < i64::MAX));
        }
    }
}
