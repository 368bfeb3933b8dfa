//! How fast: a token bucket with an explicit clock.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::moment::Moment;

/// The fastest rate that is kept; what is faster than this is none. Steps of a microsecond keep it within two percent.
const PER_SECOND_MAX: f64 = 20_000.0;
/// How much of being late is made up for, at most: a timer rings a little after its moment, each time, and a rate without a burst
/// would lose all of that.
const LATE_CREDIT_MAX: Duration = Duration::from_millis(25);
/// Who comes later than this after its moment was not waiting for it: it was a rest, and a burst is all that a rest saves up.
const LATE_MAX: Duration = Duration::from_millis(250);
/// The slowest rate that is not a stop: one in about three years.
const PER_SECOND_MIN: f64 = 1e-8;

/// How many may go in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Rate {
    /// As many as come.
    #[default]
    Unlimited,
    /// One in each interval, and up to `burst` after a rest.
    Every {
        /// The interval.
        interval: Duration,
        /// How many a rest saves up; at least one.
        burst: u32,
    },
    /// None.
    Stopped,
}

impl Rate {
    /// So many a second, and up to `burst` after a rest. Zero, below and what is no number is a stop.
    pub fn per_second(rate: f64, burst: u32) -> Self {
        if rate.is_nan() || rate < PER_SECOND_MIN {
            return Self::Stopped;
        }
        if rate > PER_SECOND_MAX {
            return Self::Unlimited;
        }
        let micros = (1e6 / rate).round();
        Self::Every { interval: Duration::from_micros(micros as u64), burst: burst.max(1) }
    }

    /// Whether it lets more go in the long run than another.
    pub fn lets_more_go_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::Stopped, _) | (_, Self::Unlimited) => false,
            (Self::Unlimited, _) | (_, Self::Stopped) => true,
            (Self::Every { interval, .. }, Self::Every { interval: others, .. }) => interval < others,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Every { interval, .. } => write!(f, "one every {interval:?}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// A rate and what has been used of it.
///
/// Kept as the moment at which the bucket would be full again, so that nothing has to be refilled by a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    /// When nothing of the burst is spent any more.
    full_at: Moment,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { rate: Rate::Unlimited, full_at: Moment::PAST }
    }
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate) -> Self {
        Self { rate, full_at: Moment::PAST }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Another rate from now on. What was spent stays spent, and who was stopped starts with an empty bucket: a change of
    /// rate never lets a burst through.
    pub fn set_rate(&mut self, rate: Rate, now: Moment) {
        if rate == self.rate {
            return;
        }
        let spent = match self.rate {
            Rate::Unlimited => 0.0,
            Rate::Every { interval, .. } => {
                now.until(self.full_at).as_secs_f64() / interval.as_secs_f64().max(1e-6)
            }
            Rate::Stopped => f64::INFINITY,
        };
        self.rate = rate;
        self.full_at = match rate {
            Rate::Every { interval, burst } => now.plus(interval.mul_f64(spent.min(f64::from(burst)))),
            Rate::Unlimited | Rate::Stopped => Moment::PAST,
        };
    }

    /// From when on one may go.
    pub fn ready_at(&self, now: Moment) -> Moment {
        match self.rate {
            Rate::Unlimited => Moment::PAST,
            Rate::Stopped => Moment::NEVER,
            Rate::Every { interval, burst } => {
                let owed = now.until(self.full_at);
                let saved = interval.saturating_mul(burst - 1);
                match owed.saturating_sub(saved) {
                    Duration::ZERO => Moment::PAST,
                    wait => now.plus(wait),
                }
            }
        }
    }

    /// Lets one go; the caller has asked whether it may. Who comes a little after its moment is counted from that moment, so that
    /// timers which are always late do not make the rate a lower one.
    pub fn take(&mut self, now: Moment) {
        if let Rate::Every { interval, .. } = self.rate {
            let late = self.full_at.until(now);
            let credit = if late <= LATE_MAX { late.min(late_credit(interval)) } else { Duration::ZERO };
            self.full_at = self.full_at.max(now.minus(credit)).plus(interval);
        }
    }

    /// Gives one back: who was let go has not gone. The bucket is as if it had never been taken.
    pub fn give_back(&mut self) {
        if let Rate::Every { interval, .. } = self.rate {
            self.full_at = self.full_at.minus(interval);
        }
    }

    /// The clock was set back to `now`: more than the whole burst cannot be owed.
    pub fn set_back(&mut self, now: Moment) {
        if let Rate::Every { interval, burst } = self.rate {
            self.full_at = self.full_at.min(now.plus(interval.saturating_mul(burst)));
        }
    }
}

/// How much of being late is made up for at this pace.
fn late_credit(interval: Duration) -> Duration {
    interval.min(LATE_CREDIT_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Moment = Moment::from_second(1_000);

    fn after(millis: u64) -> Moment {
        START.plus(Duration::from_millis(millis))
    }

    fn goes(bucket: &mut Bucket, now: Moment) -> bool {
        let ready = bucket.ready_at(now) <= now;
        if ready {
            bucket.take(now);
        }
        ready
    }

    #[test]
    fn a_rest_saves_up_a_burst_and_no_more() {
        let mut bucket = Bucket::new(Rate::per_second(10.0, 3));
        assert_eq!((0..5).filter(|_| goes(&mut bucket, START)).count(), 3);
        assert_eq!(bucket.ready_at(START), after(100));
        assert!(goes(&mut bucket, after(100)) && !goes(&mut bucket, after(100)));
        assert_eq!((0..9).filter(|_| goes(&mut bucket, after(60_000))).count(), 3);
    }

    #[test]
    fn a_rest_is_no_lateness() {
        let mut bucket = Bucket::new(Rate::per_second(10.0, 1));
        assert!(goes(&mut bucket, START) && goes(&mut bucket, after(120)));
        assert_eq!(bucket.ready_at(after(120)), after(200), "20 ms late, made up for");
        assert!(goes(&mut bucket, after(260)));
        assert_eq!(bucket.ready_at(after(260)), after(335), "60 ms late, of which 25 are");
        assert!(goes(&mut bucket, after(60_000)));
        assert_eq!(bucket.ready_at(after(60_000)), after(60_100));
    }

    #[test]
    fn stopped_is_never_and_unlimited_always() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(Rate::per_second(rate, 1), Rate::Stopped);
        }
        assert_eq!(Bucket::new(Rate::Stopped).ready_at(START), Moment::NEVER);
        assert_eq!(Rate::per_second(f64::INFINITY, 1), Rate::Unlimited);
        assert_eq!(Bucket::new(Rate::Unlimited).ready_at(START), Moment::PAST);
    }

    #[test]
    fn rates_are_compared_by_what_they_let_go_in_the_long_run() {
        let rates = [Rate::Stopped, Rate::per_second(0.01, 9), Rate::per_second(0.1, 1), Rate::Unlimited];
        for (index, rate) in rates.into_iter().enumerate() {
            for (other, slower) in rates.into_iter().enumerate() {
                assert_eq!(rate.lets_more_go_than(slower), index > other, "{rate} and {slower}");
            }
        }
    }

    #[test]
    fn a_change_of_rate_lets_no_burst_through() {
        let mut bucket = Bucket::new(Rate::Stopped);
        bucket.set_rate(Rate::per_second(1.0, 5), START);
        assert!(!goes(&mut bucket, START), "who was stopped begins with an empty bucket");
        assert!(goes(&mut bucket, after(1_000)));
        let mut bucket = Bucket::new(Rate::per_second(1.0, 1));
        assert!(goes(&mut bucket, START));
        bucket.set_rate(Rate::per_second(10.0, 1), START);
        assert_eq!(bucket.ready_at(START), after(100), "the debt is one, at the new pace");
    }

    #[test]
    fn a_clock_that_is_set_back_never_holds_up_for_longer_than_the_burst() {
        let mut bucket = Bucket::new(Rate::per_second(1.0, 2));
        assert!(goes(&mut bucket, after(3_600_000)) && goes(&mut bucket, after(3_600_000)));
        bucket.set_back(START);
        assert_eq!(bucket.ready_at(START), after(1_000), "an hour earlier");
        assert!(goes(&mut bucket, after(1_000)));
    }

    proptest! {
        /// However requests come, no window has more than its share and the burst, but for what somebody before was late with.
        #[test]
        fn no_window_sees_more_than_the_rate(
            steps in prop::collection::vec(prop_oneof![0_u64..3_000, 0_u64..60], 1..80),
            per_second in 0.2_f64..50.0,
            burst in 1_u32..5,
        ) {
            let rate = Rate::per_second(per_second, burst);
            let Rate::Every { interval, .. } = rate else { unreachable!() };
            let mut bucket = Bucket::new(rate);
            let mut went = Vec::new();
            let mut now = START;
            for step in steps {
                now = now.plus(Duration::from_millis(step));
                while goes(&mut bucket, now) {
                    went.push(now);
                }
                // What is promised holds.
                let ready = bucket.ready_at(now);
                prop_assert!(ready > now && bucket.ready_at(ready) <= ready);
            }
            for (first, begun) in went.iter().enumerate() {
                for (last, end) in went.iter().enumerate().skip(first) {
                    let window = (begun.until(*end) + late_credit(interval)).as_secs_f64();
                    let most = window / interval.as_secs_f64() + f64::from(burst);
                    prop_assert!(((last - first + 1) as f64) <= most + 1e-6);
                }
            }
        }

        /// Timers that ring late, each time, cost nothing of the rate.
        #[test]
        fn who_is_woken_late_each_time_gets_the_whole_rate(
            per_second in 1.0_f64..100.0,
            burst in 1_u32..3,
            lateness in prop::collection::vec(0_u64..8, 200),
        ) {
            let mut bucket = Bucket::new(Rate::per_second(per_second, burst));
            let mut now = START;
            for late in &lateness {
                let ready = bucket.ready_at(now);
                if ready > now {
                    now = ready.plus(Duration::from_millis(*late));
                }
                prop_assert!(goes(&mut bucket, now));
            }
            let paced = lateness.len() as f64 - f64::from(burst);
            let most = paced / per_second * 1.002 + 0.010;
            let took = START.until(now).as_secs_f64();
            prop_assert!(took <= most, "{took} s for {paced} at {per_second}, {most} at most");
        }

        /// Who always wants gets what the rate says, to the microsecond.
        #[test]
        fn who_waits_for_each_turn_gets_the_whole_rate(per_second in 0.01_f64..2_000.0) {
            let mut bucket = Bucket::new(Rate::per_second(per_second, 1));
            let mut now = START;
            for _ in 0..100 {
                now = now.max(bucket.ready_at(now));
                prop_assert!(goes(&mut bucket, now));
            }
            let took = START.until(now).as_secs_f64();
            prop_assert!((took * per_second / 99.0 - 1.0).abs() < 0.02, "{took} s for 99 at {per_second}");
        }
    }
}
