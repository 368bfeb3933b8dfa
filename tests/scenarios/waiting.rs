//! Waiting for something to become true, with an end to patience.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, interval, timeout};

/// How long anything may take to come true. It takes moments; a busy machine, or a controller that backs off, takes more.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(50);

/// Looks until there is something to give back.
///
/// # Panics
/// When patience ends, saying what was waited for.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
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
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never ended within {PATIENCE:?}: {what}"))
}
