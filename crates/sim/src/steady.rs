//! Changes at a steady rate.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::time::{MissedTickBehavior, interval};

/// Changes under way at once; one more than that waits, and the rate that was reached says so.
const IN_FLIGHT: usize = 32;

/// Does something `rate` times a second for as long as `during`; how often it was done and in what time come back.
pub async fn steadily(
    rate: u32,
    during: Duration,
    change: impl AsyncFn(usize) -> anyhow::Result<()>,
) -> anyhow::Result<(usize, Duration)> {
    let begun = Instant::now();
    let mut pulse = interval(Duration::from_secs(1) / rate);
    // What was late is not made up for in one burst.
    pulse.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut under_way = FuturesUnordered::new();
    let mut number = 0;
    while begun.elapsed() < during {
        tokio::select! {
            _ = pulse.tick(), if under_way.len() < IN_FLIGHT => {
                under_way.push(change(number));
                number += 1;
            }
            Some(done) = under_way.next(), if !under_way.is_empty() => done?,
        }
    }
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok((number, begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn every_change_is_counted_and_numbered_once() {
        let sum = AtomicUsize::new(0);
        let add = async |number| {
            sum.fetch_add(number, Ordering::Relaxed);
            Ok(())
        };
        let (count, _) = steadily(1_000, Duration::from_millis(50), add).await.unwrap();
        assert!(count > 0);
        assert_eq!(sum.into_inner(), count * (count - 1) / 2);
    }

    #[tokio::test]
    async fn a_change_that_fails_ends_it() {
        let fail = async |_| anyhow::bail!("no");
        assert!(steadily(1_000, Duration::from_mins(10), fail).await.is_err());
    }
}
