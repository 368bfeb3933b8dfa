//! A node from which somebody may have to leave: its taints, and from when each counts.

use std::time::Duration;

use berth_api::names::node_taint::DRAIN;

use super::departure::{Leave, counted_from, departure};
use super::policy::{Book, PodFacts, needs_time};
use crate::moment::Moment;
use crate::taint::{Lasting, NodeEffect, Policy, Taint, Toleration, lasting};

/// How far clocks of one cluster may be apart. A time that lies ahead by less moves a deadline by no more than that, and is
/// not worth a write.
const SKEW_MAX: Duration = Duration::from_secs(10);

/// The taints of a node that make pods leave, and from when each counts.
///
/// It remembers of a taint that does not say when it was added, or says so by a clock that runs ahead, when it was first
/// seen: for as long as the taint stays, looking again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tainted {
    taints: Vec<Taint<NodeEffect>>,
    /// From when each counts.
    since: Vec<Moment>,
    /// What is to be thought of the time that each has.
    claims: Vec<Claim>,
}

/// What is to be thought of the time that a taint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It can be true.
    Fair,
    /// There is none, or it lay far ahead when it was first seen: the first sighting should be written in its place.
    Untrue,
    /// The first sighting took the place of this one, which lay far ahead.
    Replaced(Moment),
    /// Somebody has written the time that lay ahead once more. We do not quarrel about it; what was seen first still counts.
    Insisted,
}

impl Claim {
    /// Of a taint that was not there before.
    fn of(added: Option<Moment>, now: Moment) -> Self {
        match added {
            Some(added) if added <= now.to_whole_second().plus(SKEW_MAX) => Self::Fair,
            _ => Self::Untrue,
        }
    }
}

impl Tainted {
    /// The node has these taints at `now`, and exists since `created`.
    pub fn observe(
        &mut self,
        taints: impl IntoIterator<Item = Taint<NodeEffect>>,
        created: Moment,
        now: Moment,
    ) {
        let before = std::mem::take(self);
        for taint in taints.into_iter().filter(|taint| taint.effect == NodeEffect::NoExecute) {
            // The API has one taint of a key and an effect.
            let known = before.taints.iter().position(|known| known.key == taint.key);
            // Without a time, another value is another taint: nobody can tell whether this one was there before.
            let known =
                known.filter(|place| taint.added.is_some() || before.taints[*place].value == taint.value);
            let known =
                known.map(|place| (before.taints[place].added, before.since[place], before.claims[place]));
            // A node that was not ready and falls silent has been away all along.
            let twin = twin(&taint.key).and_then(|twin| before.since_of(twin));
            let (since, claim) = match (known, taint.added) {
                (Some((known, since, claim)), added) if known == added => (since, claim),
                // The time that we wrote on it ourselves.
                (Some((known, since, Claim::Untrue)), Some(added)) if added == since.to_whole_second() => {
                    (since, known.map_or(Claim::Fair, Claim::Replaced))
                }
                (Some((_, since, Claim::Replaced(ahead))), Some(added)) if added == ahead => {
                    (since, Claim::Insisted)
                }
                (None, added) => {
                    let counted = counted_from(added, created, now);
                    (twin.map_or(counted, |twin| twin.min(counted)), Claim::of(added, now))
                }
                (Some(_), added) => (counted_from(added, created, now), Claim::of(added, now)),
            };
            self.taints.push(taint);
            self.since.push(since);
            self.claims.push(claim);
        }
    }

    fn since_of(&self, key: &str) -> Option<Moment> {
        let place = self.taints.iter().position(|taint| &*taint.key == key)?;
        Some(self.since[place])
    }

    /// Whether nobody has to leave.
    pub fn is_empty(&self) -> bool {
        self.taints.is_empty()
    }

    /// The taints, in the node's order.
    pub fn taints(&self) -> &[Taint<NodeEffect>] {
        &self.taints
    }

    /// From when each counts.
    pub fn since(&self) -> &[Moment] {
        &self.since
    }

    /// Whether somebody empties the node.
    pub fn is_drained(&self) -> bool {
        self.taints.iter().any(|taint| &*taint.key == DRAIN)
    }

    /// When a pod must leave that is there since `arrived`; `None` if it may stay. A pod that came to a taint has all of its
    /// time from then on: before, there was nothing to tolerate.
    pub fn leave(&self, tolerations: &[Toleration<NodeEffect>], arrived: Moment) -> Option<Leave> {
        departure(&self.taints, |index| self.since[index].max(arrived), tolerations)
    }

    /// The time to write on this taint, if it has none or one that cannot be true.
    pub fn stamp(&self, taint: &Taint<NodeEffect>) -> Option<Moment> {
        let place = self.taints.iter().position(|known| known == taint)?;
        (self.claims[place] == Claim::Untrue).then(|| self.since[place].to_whole_second())
    }

    /// The taints that do not say when they were added, or cannot have been added then.
    pub(super) fn timeless(&self) -> impl Iterator<Item = &Taint<NodeEffect>> {
        let all = self.taints.iter().zip(&self.claims);
        all.filter(|(_, claim)| **claim == Claim::Untrue).map(|(taint, _)| taint)
    }

    /// Whether there are any of these.
    pub fn has_timeless(&self) -> bool {
        self.timeless().next().is_some()
    }

    /// Whether it matters to a pod when such a taint was added, by what it tolerates and by the policies that count for it.
    pub fn needs_time_of(&self, pod: &PodFacts<'_>, book: &Book) -> bool {
        needs_time(pod, self, book)
    }

    /// Whether it matters to a pod with these tolerations when such a taint was added: it tolerates one for a while.
    pub fn needs_time(&self, tolerations: &[Toleration<NodeEffect>]) -> bool {
        self.timeless().any(|taint| {
            let lasting = lasting(taint, tolerations, Policy::FirstMatch);
            matches!(lasting, Lasting::Seconds(seconds) if seconds > 0)
        })
    }
}

/// The two taints of a node that is not well, of which one takes the other's place.
const UNWELL: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The other of the two.
pub(crate) fn twin(key: &str) -> Option<&'static str> {
    let [not_ready, unreachable] = UNWELL;
    match key {
        _ if key == not_ready => Some(unreachable),
        _ if key == unreachable => Some(not_ready),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taint::Operator;

    const CREATED: Moment = Moment::from_second(0);
    const SEEN: Moment = Moment::from_second(1_000);

    fn taint(key: &str, added: Option<i64>) -> Taint<NodeEffect> {
        let added = added.map(Moment::from_second);
        Taint { key: key.into(), value: "".into(), effect: NodeEffect::NoExecute, added }
    }

    fn tolerates(seconds: Option<i64>) -> [Toleration<NodeEffect>; 1] {
        [Toleration { key: "".into(), operator: Operator::Exists, value: "".into(), effect: None, seconds }]
    }

    fn leaves(tainted: &Tainted, seconds: i64) -> Moment {
        tainted.leave(&tolerates(Some(seconds)), Moment::PAST).unwrap().at
    }

    #[test]
    fn a_taint_without_a_time_counts_from_when_it_was_first_seen_however_often_it_is_looked_at() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", None)], CREATED, SEEN);
        tainted.observe([taint("b", None), taint("a", None)], CREATED, SEEN.plus_seconds(5));
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(60));
        assert_eq!(tainted.stamp(&taint("b", None)), Some(SEEN.plus_seconds(5)));
    }

    #[test]
    fn a_taint_without_a_time_that_gets_another_value_starts_anew() {
        let of = |value: &str, added| Taint { value: value.into(), ..taint("a", added) };
        let mut tainted = Tainted::default();
        tainted.observe([of("one", None)], CREATED, SEEN);
        tainted.observe([of("two", None)], CREATED, SEEN.plus_seconds(50));
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(110));
        assert_eq!(tainted.stamp(&of("two", None)), Some(SEEN.plus_seconds(50)));
        // Who says since when is believed, whatever the value.
        let mut tainted = Tainted::default();
        tainted.observe([of("one", Some(990))], CREATED, SEEN);
        tainted.observe([of("two", Some(990))], CREATED, SEEN.plus_seconds(50));
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(50));
    }

    #[test]
    fn the_time_we_wrote_ourselves_moves_nothing_and_is_never_too_early() {
        let mut tainted = Tainted::default();
        let seen = SEEN.plus(Duration::from_millis(1));
        tainted.observe([taint("a", None)], CREATED, seen);
        assert_eq!(tainted.stamp(&taint("a", None)), Some(SEEN.plus_seconds(1)));
        tainted.observe([taint("a", Some(1_001))], CREATED, seen);
        assert_eq!(leaves(&tainted, 60), seen.plus_seconds(60));
        assert_eq!(tainted.stamp(&taint("a", Some(1_001))), None);
        let mut after_a_restart = Tainted::default();
        after_a_restart.observe([taint("a", Some(1_001))], CREATED, SEEN.plus_seconds(30));
        assert_eq!(leaves(&after_a_restart, 60), SEEN.plus_seconds(61));
    }

    #[test]
    fn a_taint_that_was_removed_and_added_again_counts_anew() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", Some(900))], CREATED, SEEN);
        assert_eq!(leaves(&tainted, 60), Moment::from_second(960));
        tainted.observe([taint("a", None)], CREATED, SEEN.plus_seconds(7));
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(67));
        tainted.observe([], CREATED, SEEN.plus_seconds(8));
        assert!(tainted.is_empty());
        tainted.observe([taint("a", None)], CREATED, SEEN.plus_seconds(9));
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(69));
    }

    #[test]
    fn a_time_ahead_of_our_clock_counts_from_the_first_look_and_not_from_each() {
        let mut tainted = Tainted::default();
        for later in 0..5 {
            tainted.observe([taint("a", Some(9_000))], CREATED, SEEN.plus_seconds(later));
        }
        assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(60));
    }

    #[test]
    fn a_time_far_ahead_is_replaced_by_the_first_sighting_so_that_a_restart_does_not_begin_anew() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", Some(9_000))], CREATED, SEEN);
        assert!(tainted.has_timeless() && tainted.needs_time(&tolerates(Some(60))));
        assert_eq!(tainted.stamp(&taint("a", Some(9_000))), Some(SEEN));
        tainted.observe([taint("a", Some(1_000))], CREATED, SEEN.plus_seconds(1));
        assert!(!tainted.has_timeless());
        let mut after_a_restart = Tainted::default();
        after_a_restart.observe([taint("a", Some(1_000))], CREATED, SEEN.plus_seconds(30));
        for tainted in [tainted, after_a_restart] {
            assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(60));
        }
    }

    #[test]
    fn who_insists_on_a_time_far_ahead_moves_nothing_and_is_not_corrected_again() {
        let mut tainted = Tainted::default();
        for (later, added) in [(0, 9_000), (1, 1_000), (2, 9_000), (3, 9_000)] {
            tainted.observe([taint("a", Some(added))], CREATED, SEEN.plus_seconds(later));
            assert_eq!(leaves(&tainted, 60), SEEN.plus_seconds(60), "{later}");
        }
        assert!(!tainted.has_timeless());
        tainted.observe([taint("a", Some(9_001))], CREATED, SEEN.plus_seconds(4));
        assert_eq!(tainted.stamp(&taint("a", Some(9_001))), Some(SEEN.plus_seconds(4)), "another taint");
    }

    #[test]
    fn clocks_that_are_a_little_apart_are_no_reason_to_write() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", Some(1_010))], CREATED, SEEN);
        assert!(!tainted.has_timeless());
        tainted.observe([taint("b", Some(1_011))], CREATED, SEEN);
        assert!(tainted.has_timeless());
    }

    #[test]
    fn a_node_that_was_not_ready_and_falls_silent_has_been_away_all_along() {
        let [not_ready, unreachable] = UNWELL;
        let mut tainted = Tainted::default();
        tainted.observe([taint(not_ready, Some(900))], CREATED, SEEN);
        tainted.observe(
            [taint(not_ready, Some(900)), taint(unreachable, Some(1_100))],
            CREATED,
            SEEN.plus_seconds(100),
        );
        tainted.observe([taint(unreachable, Some(1_100))], CREATED, SEEN.plus_seconds(101));
        assert_eq!(leaves(&tainted, 300), Moment::from_second(1_200));
        tainted.observe([], CREATED, SEEN.plus_seconds(110));
        tainted.observe([taint(unreachable, Some(1_200))], CREATED, SEEN.plus_seconds(200));
        assert_eq!(leaves(&tainted, 300), Moment::from_second(1_500), "once it was well, it counts anew");
    }

    #[test]
    fn a_pod_that_came_to_a_taint_has_all_of_its_time() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", Some(900))], CREATED, SEEN);
        let arrived = Moment::from_second(990);
        assert_eq!(tainted.leave(&tolerates(Some(60)), arrived).unwrap().at, arrived.plus_seconds(60));
        assert_eq!(tainted.leave(&[], arrived).unwrap().at, arrived, "without leave to stay it has none");
        assert_eq!(tainted.leave(&tolerates(None), arrived), None);
    }

    #[test]
    fn a_time_is_needed_only_where_somebody_tolerates_a_timeless_taint_for_a_while() {
        let mut tainted = Tainted::default();
        tainted.observe([taint("a", None)], CREATED, SEEN);
        for (seconds, needs) in [(Some(60), true), (Some(0), false), (None, false)] {
            assert_eq!(tainted.needs_time(&tolerates(seconds)), needs, "{seconds:?}");
        }
        assert!(!tainted.needs_time(&[]));
        tainted.observe([taint("a", Some(5))], CREATED, SEEN);
        assert!(!tainted.needs_time(&tolerates(Some(60))) && !tainted.has_timeless());
    }

    #[test]
    fn taints_that_make_nobody_leave_are_not_kept() {
        let mut tainted = Tainted::default();
        tainted.observe([Taint { effect: NodeEffect::NoSchedule, ..taint("a", None) }], CREATED, SEEN);
        assert!(tainted.is_empty());
    }
}
