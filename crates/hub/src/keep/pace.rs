//! How often to do what costs more the more there is.
//!
//! Owns two waits: a short one, so that what comes in a burst is dealt with in one go, and a rest in proportion to what it
//! took last time, so that a steady stream cannot keep a core busy.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How long to gather changes: longer than the writes of a burst are apart, shorter than anybody waits for a status.
const GATHER: Duration = Duration::from_millis(20);
/// How many times as long as it took to rest: a tenth of the time at most goes into it.
const REST: u32 = 9;

/// When tasks may be done next.
#[derive(Debug)]
pub(super) struct Pace<T> {
    rested: HashMap<T, Instant>,
}

impl<T> Default for Pace<T> {
    fn default() -> Self {
        Self { rested: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Pace<T> {
    /// When to do a task that is asked for now.
    pub(super) fn next(&self, task: &T, now: Instant) -> Instant {
        let gathered = now + GATHER;
        self.rested.get(task).map_or(gathered, |rested| gathered.max(*rested))
    }

    /// A task was done and took this long.
    pub(super) fn done(&mut self, task: &T, now: Instant, took: Duration) {
        let rest = took.saturating_mul(REST);
        if rest > GATHER {
            self.rested.insert(task.clone(), now + rest);
        } else {
            self.rested.remove(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_rests_long_and_what_is_quick_only_gathers() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.next(&"a", now), now + GATHER);
        pace.done(&"a", now, Duration::from_millis(100));
        assert_eq!(pace.next(&"a", now), now + Duration::from_millis(900));
        assert_eq!(pace.next(&"b", now), now + GATHER);
        let later = now + Duration::from_secs(2);
        assert_eq!(pace.next(&"a", later), later + GATHER);
        pace.done(&"a", later, Duration::from_micros(10));
        assert!(pace.rested.is_empty());
    }
}
