//! Waiting for something to become true, with an end to patience.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, interval, timeout};

/// How long anything may take to come true. It takes moments; a busy machine, or a controller that backs off, takes more.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Looks until there is something to give back.
///
/// # Panics
/// When patience ends, saying what was waited for.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pulse = interval(POLL);
    let begun = Instant::now();
    loop {
        pulse.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never seen within {PATIENCE:?}: {what}");
    }
}

/// Awaits something that must end by itself.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never ended within {PATIENCE:?}: {what}"))
}

/// Looks until it is as it should be; until then, `look` tells how it is instead.
///
/// # Panics
/// When patience ends, saying what was waited for and what was there instead.
pub async fn until<T>(what: &str, patience: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let mut pulse = interval(POLL);
    let begun = Instant::now();
    loop {
        pulse.tick().await;
        match look().await {
            Ok(found) => return found,
            Err(instead) => {
                assert!(
                    begun.elapsed() < patience,
                    "never seen within {patience:?}: {what}; instead: {instead}"
                );
            }
        }
    }
}
