//! Waiting for something that a watch will tell.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Notify;

/// Looks whenever there is news, until what is awaited is seen or patience ends.
pub(crate) async fn until(
    news: &Notify,
    patience: Duration,
    what: &str,
    mut look: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let waiting = async {
        loop {
            // Asked for before the look: news that come in between are not missed.
            let next = news.notified();
            if look() {
                return;
            }
            next.await;
        }
    };
    tokio::time::timeout(patience, waiting).await.with_context(|| format!("never seen: {what}"))
}
