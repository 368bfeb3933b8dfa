//! Both clocks of a machine, read together.
//!
//! Owns reading the time for the election. The monotonic clock is not set by anybody but may stand still while the machine
//! sleeps; the wall clock goes on in sleep but may be set. Something that must have ended is ended when either says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// One look at both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic clock, since a start that means nothing outside this process.
    pub ticks: Duration,
    /// The wall clock.
    pub wall: Timestamp,
}

impl Reading {
    /// Whether `span` has passed since this reading, by either clock.
    pub fn is_past(&self, span: Duration, now: Reading) -> bool {
        let asleep_too = now.wall.duration_since(self.wall);
        now.ticks.saturating_sub(self.ticks) >= span
            || SignedDuration::try_from(span).is_ok_and(|span| asleep_too >= span)
    }
}

/// Where the election reads the time: the machine's clocks, or in tests one that can be set apart from tokio's.
#[derive(Debug, Clone)]
pub struct Clock {
    /// What `ticks` count from.
    start: Instant,
    wall: Wall,
}

#[derive(Debug, Clone)]
enum Wall {
    System,
    /// Runs with tokio's clock, which a test may pause, from `at` on, and is `ahead` by so many microseconds.
    Manual {
        at: Timestamp,
        ahead: Arc<AtomicI64>,
    },
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self { start: Instant::now(), wall: Wall::System }
    }

    /// A wall clock that begins at `at` and runs with tokio's, for tests in virtual time.
    pub fn manual(at: Timestamp) -> Self {
        Self { start: Instant::now(), wall: Wall::Manual { at, ahead: Arc::default() } }
    }

    /// Sets a manual wall clock ahead by so much, as a machine that wakes from sleep finds it; the system's is left alone.
    pub fn skip(&self, span: Duration) {
        if let Wall::Manual { ahead, .. } = &self.wall {
            ahead.fetch_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// Both clocks, now.
    pub fn now(&self) -> Reading {
        let ticks = self.start.elapsed();
        let wall = match &self.wall {
            Wall::System => Timestamp::now(),
            Wall::Manual { at, ahead } => {
                let ahead = SignedDuration::from_micros(ahead.load(Ordering::SeqCst));
                let wall = SignedDuration::try_from(ticks)
                    .map_err(|_| ())
                    .and_then(|ran| at.checked_add(ran + ahead).map_err(|_| ()));
                wall.unwrap_or(Timestamp::MAX)
            }
        };
        Reading { ticks, wall }
    }

    /// When the monotonic clock shows `ticks`, in tokio's time.
    pub fn instant(&self, ticks: Duration) -> Instant {
        /// As good as never, and far from where instants overflow: a year.
        const HORIZON: Duration = Duration::from_hours(365 * 24);
        self.start.checked_add(ticks).unwrap_or_else(|| Instant::now() + HORIZON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(10);

    fn reading(ticks: u64, wall: i64) -> Reading {
        Reading { ticks: Duration::from_secs(ticks), wall: Timestamp::from_second(1_000_000 + wall).unwrap() }
    }

    #[test]
    fn a_span_is_past_when_either_clock_says_so() {
        let start = reading(5, 0);
        assert!(!start.is_past(SPAN, reading(14, 9)));
        assert!(start.is_past(SPAN, reading(15, 9)), "the process was stopped and the wall clock set back");
        assert!(start.is_past(SPAN, reading(6, 10)), "the machine slept");
        assert!(!start.is_past(SPAN, reading(6, -3600)), "a wall clock that is set back proves nothing");
        assert!(!start.is_past(Duration::MAX, reading(1_000_000, 1_000_000)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_manual_clock_runs_with_tokios_and_can_be_set_ahead() {
        let at = Timestamp::from_second(1_000_000).unwrap();
        let clock = Clock::manual(at);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(
            clock.now(),
            Reading { ticks: Duration::from_secs(3), wall: at + SignedDuration::from_secs(3) }
        );
        clock.skip(SPAN);
        assert_eq!(
            clock.now(),
            Reading { ticks: Duration::from_secs(3), wall: at + SignedDuration::from_secs(13) }
        );
        assert_eq!(clock.instant(Duration::from_secs(3)), Instant::now());
    }
}
