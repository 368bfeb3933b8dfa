//! Whose turn it is to get a taint that makes pods leave.
//!
//! Owns the order in each zone: who has waited the longest, at the zone's pace. A turn that came stays until it is used or
//! no longer needed, however often the write fails, and is called back when the zone is stopped. Who waits is told anew with
//! every judgement, so nobody is forgotten because it was there before, and nobody who got well is left in line.

use std::collections::HashMap;
use std::sync::Arc;

use berth_api::core::Zone;

use crate::evict::{Bounds, Domain, Marshal, Rate};
use crate::moment::Moment;

/// The line in each zone.
#[derive(Debug, Default)]
pub struct Turns {
    marshal: Marshal<Arc<str>>,
    /// Everybody who waits or has its turn.
    entered: HashMap<Arc<str>, Entered>,
    clock: Option<Moment>,
}

#[derive(Debug)]
struct Entered {
    /// Since when it has waited.
    since: Moment,
    zone: Zone,
    has_turn: bool,
}

impl Turns {
    /// `node` of that zone needs a turn. Who is in line already keeps its place, also in another zone.
    pub fn want(&mut self, node: &Arc<str>, zone: &Zone, now: Moment) {
        let entered = self.entered.entry(Arc::clone(node)).or_insert_with(|| Entered {
            since: now,
            zone: zone.clone(),
            has_turn: false,
        });
        entered.zone = zone.clone();
        if !entered.has_turn {
            self.marshal.want(node, entered.since, &route(zone));
        }
    }

    /// `node` needs no turn, because it has used it or is well.
    pub fn leave(&mut self, node: &str) {
        let Some((node, entered)) = self.entered.remove_entry(node) else { return };
        if entered.has_turn {
            self.marshal.ended(&node);
        } else {
            self.marshal.withdraw(&node);
        }
    }

    /// Whether it is this node's turn.
    pub fn is_turn_of(&self, node: &str) -> bool {
        self.entered.get(node).is_some_and(|entered| entered.has_turn)
    }

    /// Those whose turn has come since the last time.
    pub fn next(&mut self, now: Moment) -> Vec<Arc<str>> {
        if self.clock.replace(now).is_some_and(|clock| now < clock) {
            // Nobody entered later than now.
            for (node, entered) in self.entered.iter_mut().filter(|(_, entered)| entered.since > now) {
                entered.since = now;
                if !entered.has_turn {
                    self.marshal.want(node, now, &route(&entered.zone));
                }
            }
        }
        let mut turns = Vec::new();
        while let Some(node) = self.marshal.next(now) {
            if let Some(entered) = self.entered.get_mut(&node) {
                entered.has_turn = true;
            }
            turns.push(node);
        }
        turns
    }

    /// Sets the pace of a zone. Where it is stopped, turns that were not used go back into line.
    pub fn pace(&mut self, zone: &Zone, rate: Rate, now: Moment) {
        self.marshal.bound(&domain(zone), Bounds { rate, ..Bounds::default() }, now);
        if rate != Rate::Stopped {
            return;
        }
        for (node, entered) in self.entered.iter_mut().filter(|(_, entered)| entered.zone == *zone) {
            if std::mem::take(&mut entered.has_turn) {
                self.marshal.ended(node);
                self.marshal.want(node, entered.since, &route(zone));
            }
        }
    }

    /// A zone is no more.
    pub fn forget(&mut self, zone: &Zone, now: Moment) {
        self.marshal.forget(&domain(zone), now);
    }

    /// When the next turn may come.
    pub fn wake(&self) -> Option<Moment> {
        self.marshal.wake()
    }

    /// How many wait for their turn.
    pub fn waiting(&self) -> usize {
        self.marshal.waiting()
    }
}

fn domain(zone: &Zone) -> Domain {
    Domain::Zone(zone.to_string().into())
}

fn route(zone: &Zone) -> Arc<[Domain]> {
    Arc::new([domain(zone)])
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, zone};
    use super::*;

    /// A line in zone `a` with the normal pace.
    fn turns() -> Turns {
        let mut turns = Turns::default();
        turns.pace(&zone("a"), Rate::per_second(0.1, 1), at(0));
        turns
    }

    fn want(turns: &mut Turns, node: &str, now: i64) {
        turns.want(&node.into(), &zone("a"), at(now));
    }

    fn next(turns: &mut Turns, now: i64) -> Vec<String> {
        turns.next(at(now)).iter().map(ToString::to_string).collect()
    }

    const NOBODY: [&str; 0] = [];

    /// Upstream: nodelifecycle/scheduler/rate_limited_queue_test.go "TestUniqueQueueGet", "TestAddNode", "TestTry".
    #[test]
    fn one_after_another_at_the_pace_of_the_zone_and_the_longest_waiting_first() {
        let mut turns = turns();
        want(&mut turns, "z", 0);
        want(&mut turns, "b", 1);
        want(&mut turns, "a", 2);
        assert_eq!(next(&mut turns, 2), ["z"]);
        assert_eq!(turns.wake(), Some(at(12)));
        assert_eq!(next(&mut turns, 11), NOBODY);
        want(&mut turns, "b", 11);
        assert_eq!(next(&mut turns, 12), ["b"], "who asks again keeps its place");
        assert_eq!(next(&mut turns, 22), ["a"]);
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestApplyNoExecuteTaintsToNodesEnqueueTwice".
    /// Upstream: nodelifecycle/scheduler/rate_limited_queue_test.go "TestTryRemovingWhileTry".
    #[test]
    fn who_left_the_line_may_enter_it_again() {
        let mut turns = turns();
        want(&mut turns, "n", 0);
        assert_eq!(next(&mut turns, 0), ["n"]);
        assert!(turns.is_turn_of("n"));
        turns.leave("n");
        assert!(!turns.is_turn_of("n"));
        want(&mut turns, "n", 5);
        assert_eq!((next(&mut turns, 9), next(&mut turns, 10)), (vec![], vec!["n".to_owned()]));
    }

    /// Upstream: nodelifecycle/scheduler/rate_limited_queue_test.go "TestAddAfterTry".
    #[test]
    fn a_turn_stays_until_it_is_used() {
        let mut turns = turns();
        want(&mut turns, "n", 0);
        assert_eq!(next(&mut turns, 0), ["n"]);
        want(&mut turns, "n", 60);
        assert!(turns.is_turn_of("n"), "the write failed, and nothing is waited for again");
        assert_eq!(next(&mut turns, 60), NOBODY);
    }

    /// Upstream: nodelifecycle/scheduler/rate_limited_queue_test.go "TestDelNode".
    #[test]
    fn who_got_well_takes_nobodys_turn() {
        let mut turns = turns();
        want(&mut turns, "a", 0);
        want(&mut turns, "b", 1);
        turns.leave("a");
        assert_eq!(next(&mut turns, 1), ["b"]);
    }

    /// Upstream: nodelifecycle/scheduler/rate_limited_queue_test.go "TestSwapLimiter".
    #[test]
    fn a_stop_calls_back_who_has_not_gone() {
        let mut turns = turns();
        want(&mut turns, "a", 0);
        assert_eq!(next(&mut turns, 0), ["a"]);
        turns.pace(&zone("a"), Rate::Stopped, at(1));
        assert!(!turns.is_turn_of("a"));
        assert_eq!((next(&mut turns, 1_000), turns.wake(), turns.waiting()), (vec![], None, 1));
        turns.pace(&zone("a"), Rate::per_second(0.1, 1), at(1_000));
        assert_eq!(next(&mut turns, 1_000), NOBODY, "who was stopped begins with an empty bucket");
        assert_eq!(next(&mut turns, 1_010), ["a"]);
    }

    #[test]
    fn zones_do_not_wait_for_each_other() {
        let mut turns = turns();
        turns.pace(&zone("b"), Rate::Stopped, at(0));
        turns.want(&"held".into(), &zone("b"), at(0));
        want(&mut turns, "n", 1);
        assert_eq!(next(&mut turns, 1), ["n"]);
        turns.want(&"held".into(), &zone("a"), at(2));
        assert_eq!(next(&mut turns, 11), ["held"], "a node that moved is in the other line");
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nobody_waiting_for_as_long() {
        let mut turns = turns();
        want(&mut turns, "a", 3_600);
        want(&mut turns, "b", 3_601);
        assert_eq!(next(&mut turns, 3_601), ["a"]);
        assert_eq!(next(&mut turns, 0), NOBODY);
        assert_eq!(next(&mut turns, 10), ["b"]);
    }
}
