//! Nodes that come and go.
//!
//! A node that falls again and again draws new pods each time it is ready, and loses them when it falls. So one that has
//! fallen too often of late is kept from *new* pods for a while after it is ready again: its `NoSchedule` taint is taken off
//! later. That is all: what makes pods leave goes at once, because a node that says it is well is never emptied, and the
//! wait is bounded and never longer for more falls. It is kept in memory only; a restart forgives.

use std::collections::VecDeque;
use std::time::Duration;

use crate::moment::Moment;

/// When a node counts as one that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlapPolicy {
    /// When it fell more often than this; `None` for never.
    pub falls: Option<u32>,
    /// In this time.
    pub window: Duration,
    /// For how long it is kept from new pods after it is ready again.
    pub hold: Duration,
}

impl FlapPolicy {
    /// The most falls that are counted, which is what is kept of each node.
    pub const FALLS_MAX: u32 = 100;
    /// The longest a node that is well may be kept from new pods.
    pub const HOLD_MAX: Duration = Duration::from_mins(10);
}

impl Default for FlapPolicy {
    fn default() -> Self {
        Self { falls: Some(5), window: Duration::from_mins(10), hold: Duration::from_secs(30) }
    }
}

/// When a node fell of late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Falls {
    /// Whether it was ready when it was seen last; `None` if it has not been seen.
    was_ready: Option<bool>,
    fell: VecDeque<Moment>,
    /// When it was ready again.
    rose: Option<Moment>,
}

impl Falls {
    /// Sees whether the node is ready.
    pub fn look(&mut self, is_ready: bool, policy: FlapPolicy, now: Moment) {
        // A clock that was set back must not make the wait longer.
        self.rose = self.rose.map(|rose| rose.min(now));
        match (self.was_ready.replace(is_ready), is_ready) {
            (Some(true), false) => {
                self.rose = None;
                self.fell.push_back(now);
                let most = policy.falls.unwrap_or_default().min(FlapPolicy::FALLS_MAX) as usize + 1;
                self.fell.drain(..self.fell.len().saturating_sub(most));
            }
            (Some(false), true) => self.rose = Some(now),
            _ => {}
        }
    }

    /// Until when the node is kept from new pods; `None` if it is not.
    pub fn barred_until(&self, policy: FlapPolicy, now: Moment) -> Option<Moment> {
        let rose = self.rose?;
        let often = policy.falls? as usize;
        let recent = self.fell.iter().filter(|fell| fell.until(rose) <= policy.window).count();
        let until = rose.plus(policy.hold.min(FlapPolicy::HOLD_MAX));
        (recent > often && now < until).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::at;
    use super::*;

    const POLICY: FlapPolicy =
        FlapPolicy { falls: Some(2), window: Duration::from_mins(10), hold: Duration::from_secs(30) };

    /// A node that falls and rises every so many seconds, so many times; it is ready at the end.
    fn flaps(times: i64, seconds: i64) -> (Falls, i64) {
        let mut falls = Falls::default();
        falls.look(true, POLICY, at(0));
        for time in 0..times {
            falls.look(false, POLICY, at((2 * time + 1) * seconds));
            falls.look(true, POLICY, at((2 * time + 2) * seconds));
        }
        (falls, 2 * times * seconds)
    }

    #[test]
    fn a_node_that_falls_now_and_then_is_welcome_at_once() {
        for (times, seconds) in [(0, 1), (1, 1), (2, 1), (20, 200)] {
            let (falls, now) = flaps(times, seconds);
            assert_eq!(falls.barred_until(POLICY, at(now)), None, "{times} times, {seconds} s apart");
        }
    }

    #[test]
    fn a_node_that_falls_too_often_waits_and_no_longer_for_more_falls() {
        for times in [3, 4, 50] {
            let (falls, now) = flaps(times, 5);
            assert_eq!(falls.barred_until(POLICY, at(now)), Some(at(now + 30)));
            assert_eq!(falls.barred_until(POLICY, at(now + 30)), None);
            assert!(falls.fell.len() <= 3, "what is kept is bounded");
        }
    }

    #[test]
    fn it_can_be_switched_off() {
        let (falls, now) = flaps(50, 5);
        assert_eq!(falls.barred_until(FlapPolicy { falls: None, ..POLICY }, at(now)), None);
    }

    proptest! {
        #[test]
        fn a_node_that_stays_well_is_not_barred_for_longer_than_the_bound_whatever_the_clock_does(
            steps in prop::collection::vec((any::<bool>(), -500_i64..500), 0..60), after in 0_i64..100,
        ) {
            let mut falls = Falls::default();
            let mut now = 0;
            for (is_ready, step) in steps {
                now += step;
                falls.look(is_ready, POLICY, at(now));
                let until = falls.barred_until(POLICY, at(now));
                prop_assert!(until.is_none_or(|until| is_ready && until <= at(now + 30)));
            }
            falls.look(true, POLICY, at(now));
            let until = falls.barred_until(POLICY, at(now + after)).unwrap_or(at(now + after));
            prop_assert!(until <= at(now + after + 30));
            prop_assert_eq!(falls.barred_until(POLICY, until), None);
        }
    }
}
