//! A breaker: when too much of a failure domain is affected at once, the cause is not what it looks like.

use std::time::Duration;

use serde::Serialize;

use super::hold::Hold;
use crate::moment::Moment;

/// When a breaker opens, and when it closes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// It opens when so many of a hundred are affected, or more,
    pub open_percent: u8,
    /// and at least so many: of three, one is a third and says nothing.
    pub open_count: u32,
    /// It closes when fewer than so many of a hundred are affected; below `open_percent`, so that it does not flutter,
    pub close_percent: u8,
    /// and have been for so long.
    pub calm: Duration,
}

impl Thresholds {
    fn opens(&self, affected: usize, total: usize) -> bool {
        affected >= (self.open_count.max(1) as usize) && is_share(affected, total, self.open_percent)
    }

    fn closes(&self, affected: usize, total: usize) -> bool {
        !self.opens(affected, total)
            && (affected == 0 || !is_share(affected, total, self.close_percent.min(self.open_percent)))
    }
}

/// Whether `part` is at least so many of a hundred of `whole`.
fn is_share(part: usize, whole: usize, percent: u8) -> bool {
    part.saturating_mul(100) >= whole.saturating_mul(usize::from(percent))
}

/// A breaker. Closed lets pass, open holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    thresholds: Thresholds,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has counted yet. It holds: after a restart in the middle of an outage everybody would go at once.
    Uncounted,
    Closed,
    /// Too much is affected.
    Open {
        affected: usize,
        total: usize,
    },
    /// Little enough is affected since then, but not for long enough.
    Calming {
        since: Moment,
        affected: usize,
        total: usize,
    },
}

/// How a breaker stands, to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerSight {
    /// There is none any more.
    Gone,
    /// It lets pass, or has not counted yet.
    Closed,
    /// Too much is affected: what it says to whom it holds.
    Open(Hold),
}

impl Breaker {
    /// A breaker that holds until somebody has counted for the first time.
    pub fn new(thresholds: Thresholds) -> Self {
        Self { thresholds, state: State::Uncounted }
    }

    /// When it opens and closes.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Other thresholds. What is open stays open until it may close by them.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// So many of so many are affected now.
    pub fn observe(&mut self, affected: usize, total: usize, now: Moment) {
        // A calm that ended before this look has closed it.
        self.advance(now);
        self.state = match self.state {
            _ if self.thresholds.opens(affected, total) => State::Open { affected, total },
            State::Closed | State::Uncounted => State::Closed,
            _ if !self.thresholds.closes(affected, total) => State::Open { affected, total },
            State::Open { .. } => State::Calming { since: now, affected, total },
            // A clock that was set back begins the calm anew: too long is safe, and not for ever.
            State::Calming { since, .. } => State::Calming { since: since.min(now), affected, total },
        };
        self.advance(now);
    }

    /// Time has passed.
    pub fn advance(&mut self, now: Moment) {
        if let State::Calming { since, .. } = &mut self.state {
            *since = (*since).min(now);
            if since.plus(self.thresholds.calm) <= now {
                self.state = State::Closed;
            }
        }
    }

    /// Whether it holds everybody.
    pub fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// When it closes by itself, if nothing more happens.
    pub fn closes_at(&self) -> Option<Moment> {
        match self.state {
            State::Calming { since, .. } => Some(since.plus(self.thresholds.calm)),
            State::Uncounted | State::Closed | State::Open { .. } => None,
        }
    }

    /// Whether nobody has told it how many are affected.
    pub fn is_uncounted(&self) -> bool {
        self.state == State::Uncounted
    }

    /// How many of how many were affected when it was looked at last; `None` unless that was too many.
    pub fn affected(&self) -> Option<(usize, usize)> {
        match self.state {
            State::Uncounted | State::Closed => None,
            State::Open { affected, total } | State::Calming { affected, total, .. } => {
                Some((affected, total))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THRESHOLDS: Thresholds =
        Thresholds { open_percent: 55, open_count: 3, close_percent: 30, calm: Duration::from_mins(1) };

    fn at(second: i64) -> Moment {
        Moment::from_second(second)
    }

    #[test]
    fn it_opens_at_its_share_and_not_for_a_few() {
        for (affected, total, opens) in
            [(2, 2, false), (3, 5, true), (2, 5, false), (54, 100, false), (55, 100, true)]
        {
            let mut breaker = Breaker::new(THRESHOLDS);
            breaker.observe(affected, total, at(0));
            assert_eq!(breaker.is_open(), opens, "{affected} of {total}");
        }
    }

    #[test]
    fn it_holds_until_somebody_has_counted() {
        let mut breaker = Breaker::new(THRESHOLDS);
        assert!(breaker.is_open() && breaker.is_uncounted());
        breaker.observe(54, 100, at(0));
        assert!(!breaker.is_open(), "few enough, and no calm is waited for that nobody broke");
    }

    #[test]
    fn it_closes_only_after_a_time_of_calm() {
        let mut breaker = Breaker::new(THRESHOLDS);
        breaker.observe(60, 100, at(0));
        breaker.observe(40, 100, at(10));
        assert_eq!(breaker.closes_at(), None, "between the two shares nothing begins");
        breaker.observe(20, 100, at(20));
        assert_eq!(breaker.closes_at(), Some(at(80)));
        breaker.observe(35, 100, at(50));
        assert_eq!(breaker.closes_at(), None, "a flutter begins the calm anew");
        breaker.observe(0, 100, at(60));
        breaker.advance(at(119));
        assert!(breaker.is_open());
        breaker.advance(at(120));
        assert!(!breaker.is_open());
    }

    #[test]
    fn a_share_of_zero_to_close_at_still_closes_when_nothing_is_affected() {
        let mut breaker = Breaker::new(Thresholds { close_percent: 0, calm: Duration::ZERO, ..THRESHOLDS });
        breaker.observe(3, 3, at(0));
        assert!(breaker.is_open());
        breaker.observe(1, 300, at(1));
        assert!(breaker.is_open());
        breaker.observe(0, 0, at(2));
        assert!(!breaker.is_open(), "a domain that is empty holds nobody");
    }

    proptest! {
        #[test]
        fn it_never_lets_pass_at_its_share_and_never_stays_open_for_ever(
            looks in prop::collection::vec((0_usize..12, 0_usize..12, -5_i64..40), 0..40),
            open_percent in 1_u8..=100, close_percent in 0_u8..=100, open_count in 0_u32..4, calm in 0_u64..50,
        ) {
            let thresholds = Thresholds { open_percent, open_count, close_percent, calm: Duration::from_secs(calm) };
            let mut breaker = Breaker::new(thresholds);
            let mut now = 0;
            for (affected, healthy, step) in looks {
                now += step;
                let total = affected + healthy;
                breaker.observe(affected, total, at(now));
                let is_too_much = affected >= open_count.max(1) as usize
                    && affected * 100 >= total * usize::from(open_percent);
                prop_assert!(!is_too_much || breaker.is_open());
            }
            breaker.observe(0, 10, at(now));
            let end = breaker.closes_at().unwrap_or(at(now));
            breaker.advance(end.max(at(now)));
            prop_assert!(!breaker.is_open(), "the cause is gone");
        }
    }
}
