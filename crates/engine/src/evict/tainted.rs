//! A node from which somebody may have to leave: its taints, and from when each counts.

use super::departure::{Leave, counted_from, departure};
use crate::moment::Moment;
use crate::taint::{Lasting, NodeEffect, Policy, Taint, Toleration, lasting};

/// The taints of a node that make pods leave, and from when each counts.
///
/// It remembers of a taint that does not say when it was added, or says so by a clock that runs ahead, when it was first
/// seen: for as long as the taint stays, looking again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tainted {
    taints: Vec<Taint<NodeEffect>>,
    /// From when each counts.
    since: Vec<Moment>,
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
            let known = before.taints.iter().zip(&before.since).find(|(known, _)| known.key == taint.key);
            // A node that was not ready and falls silent has been away all along.
            let twin = twin(&taint.key).and_then(|twin| before.since_of(twin));
            let since = match (known, taint.added) {
                // The same taint still, or the time that we wrote on it ourselves.
                (Some((known, since)), added) if known.added == added => *since,
                (Some((known, since)), Some(added))
                    if known.added.is_none() && added == since.to_whole_second() =>
                {
                    *since
                }
                (None, added) => {
                    let counted = counted_from(added, created, now);
                    twin.map_or(counted, |twin| twin.min(counted))
                }
                (Some(_), added) => counted_from(added, created, now),
            };
            self.taints.push(taint);
            self.since.push(since);
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

    /// When a pod must leave that is there since `arrived`; `None` if it may stay. A pod that came to a taint has all of its
    /// time from then on: before, there was nothing to tolerate.
    pub fn leave(&self, tolerations: &[Toleration<NodeEffect>], arrived: Moment) -> Option<Leave> {
        departure(&self.taints, |index| self.since[index].max(arrived), tolerations)
    }

    /// The time to write on a taint of this key that has none.
    pub fn stamp(&self, key: &str) -> Option<Moment> {
        let mut taints = self.taints.iter().zip(&self.since);
        let (_, since) = taints.find(|(taint, _)| &*taint.key == key && taint.added.is_none())?;
        Some(since.to_whole_second())
    }

    /// Whether some taint does not say when it was added.
    pub fn has_timeless(&self) -> bool {
        self.taints.iter().any(|taint| taint.added.is_none())
    }

    /// Whether it matters to a pod with these tolerations when such a taint was added: it tolerates one for a while.
    pub fn needs_time(&self, tolerations: &[Toleration<NodeEffect>]) -> bool {
        self.taints.iter().filter(|taint| taint.added.is_none()).any(|taint| {
            let lasting = lasting(taint, tolerations, Policy::FirstMatch);
            matches!(lasting, Lasting::Seconds(seconds) if seconds > 0)
        })
    }
}

/// The two taints of a node that is not well, of which one takes the other's place.
const UNWELL: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The other of the two.
fn twin(key: &str) -> Option<&'static str> {
    let [not_ready, unreachable] = UNWELL;
    match key {
        _ if key == not_ready => Some(unreachable),
        _ if key == unreachable => Some(not_ready),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(tainted.stamp("b"), Some(SEEN.plus_seconds(5)));
    }

    #[test]
    fn the_time_we_wrote_ourselves_moves_nothing_and_is_never_too_early() {
        let mut tainted = Tainted::default();
        let seen = SEEN.plus(Duration::from_millis(1));
        tainted.observe([taint("a", None)], CREATED, seen);
        assert_eq!(tainted.stamp("a"), Some(SEEN.plus_seconds(1)));
        tainted.observe([taint("a", Some(1_001))], CREATED, seen);
        assert_eq!(leaves(&tainted, 60), seen.plus_seconds(60));
        assert_eq!(tainted.stamp("a"), None);
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
