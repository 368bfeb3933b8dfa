//! What each of many does once in every round.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until};

/// How many are at it at once.
const IN_FLIGHT: usize = 64;

/// So many, each at a point of the round that is always the same: what is late is made up for, and nobody loses a turn.
#[derive(Debug)]
pub struct Rounds {
    count: usize,
    round: Duration,
    behind_max: Duration,
    silent: AtomicUsize,
    done: AtomicUsize,
}

impl Rounds {
    /// As many as `count` in every `round`, none of them later than it may be.
    pub fn new(count: usize, round: Duration, behind_max: Duration) -> Self {
        let (silent, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { count, round, behind_max, silent, done }
    }

    /// From now on the first so many are left out.
    pub fn leave_out(&self, first: usize) {
        self.silent.store(first, Ordering::Relaxed);
    }

    /// How often it was done so far, by all together.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Goes round and round; it ends only where somebody fails, or is later than may be.
    pub async fn go(&self, work: impl AsyncFn(usize) -> anyhow::Result<()>) -> anyhow::Result<Infallible> {
        let begun = Instant::now();
        let mut under_way = FuturesUnordered::new();
        let mut turn = 0_usize;
        loop {
            let due = begun + self.round.mul_f64(turn as f64 / self.count as f64);
            tokio::select! {
                () = sleep_until(due), if under_way.len() < IN_FLIGHT => {
                    let behind = due.elapsed();
                    ensure!(
                        behind <= self.behind_max,
                        "{:.1} s behind with what is due every {} s: this machine has no time for it",
                        behind.as_secs_f64(),
                        self.round.as_secs_f64(),
                    );
                    let number = turn % self.count;
                    turn += 1;
                    if number >= self.silent.load(Ordering::Relaxed) {
                        under_way.push(work(number));
                    }
                }
                Some(done) = under_way.next(), if !under_way.is_empty() => {
                    done?;
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn each_has_its_turn_in_every_round_until_it_is_left_out() {
        let rounds = Rounds::new(4, Duration::from_millis(20), LONG);
        let turns = Mutex::new(Vec::new());
        let going = rounds.go(async |number| {
            let mut turns = turns.lock().unwrap();
            turns.push(number);
            if turns.len() == 9 {
                rounds.leave_out(2);
            }
            ensure!(turns.len() < 15, "enough");
            Ok(())
        });
        assert!(going.await.is_err());
        assert_eq!(turns.into_inner().unwrap(), [0, 1, 2, 3, 0, 1, 2, 3, 0, 2, 3, 2, 3, 2, 3]);
        assert_eq!(rounds.done(), 14);
    }

    #[tokio::test]
    async fn what_is_late_is_made_up_for() {
        let rounds = Rounds::new(10, Duration::from_millis(100), LONG);
        let work = async |number| {
            if number == 0 && rounds.done() == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
            Ok(())
        };
        let _ = tokio::time::timeout(Duration::from_millis(205), rounds.go(work)).await;
        assert!(rounds.done() >= 20, "two rounds should have been done: {}", rounds.done());
    }

    #[tokio::test]
    async fn to_be_later_than_one_may_be_is_an_end() {
        let rounds = Rounds::new(10, Duration::from_millis(100), Duration::from_millis(50));
        let work = async |_| {
            std::thread::sleep(Duration::from_millis(100));
            Ok(())
        };
        let ended = tokio::time::timeout(LONG, rounds.go(work)).await.expect("it ends");
        assert!(ended.unwrap_err().to_string().contains("behind"));
    }
}
