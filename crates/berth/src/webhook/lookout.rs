//! The fleet, kept in sight so that somebody can tell what a change would move.
//!
//! Owns a loop of the controllers that only looks: its fence never opens, so it writes nothing. It is begun anew when a
//! defect ends it; until it has seen everything again, writes are judged without a warning. Nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use berth_control::lead::{Fence, HOME};
use berth_control::serve::{Health, Metrics};
use berth_control::{ControllerName, Dialect, EvictionLimits, Inquirer, Inquiries, Options, Pace, inquiries};
use berth_engine::node::LifecyclePolicy;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::fleet::controllers::identity;

/// The wait before it begins anew: what ended it would end it again at once, more often than not.
const REST: Duration = Duration::from_secs(5);

/// Whoever keeps the fleet in sight.
#[derive(Debug)]
pub(crate) struct Lookout {
    /// How to ask the loop that runs now.
    current: watch::Receiver<Inquirer>,
    _keeping: AbortOnDropHandle<()>,
}

impl Lookout {
    /// Keeps looking until `stop`.
    pub(crate) fn keep(client: Client, metrics: Arc<Metrics>, stop: CancellationToken) -> Self {
        Self::of(stop, move |inquiries, stop| {
            let controllers = ControllerName::Placement
                .as_str()
                .parse()
                .expect("the name of a controller is a list of one");
            let options = Options {
                controllers,
                identity: identity(),
                home: HOME.to_owned(),
                dialect: Dialect::OURS,
                evictions: EvictionLimits::default(),
                lifecycle: LifecyclePolicy::default(),
                fence: Fence::closed(),
                // A webhook that has not seen the fleet yet answers all the same, without warnings.
                health: Health::default(),
                metrics: Arc::clone(&metrics),
                inquiries,
                // Others work in its threads.
                pace: Pace::default(),
            };
            berth_control::run(client.clone(), options, stop)
        })
    }

    /// Runs what `begin` gives, and again whenever it ends before `stop`.
    fn of<F>(
        stop: CancellationToken,
        begin: impl Fn(Inquiries, CancellationToken) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (inquirer, first) = inquiries();
        let (tell, current) = watch::channel(inquirer);
        let keeping = tokio::spawn(async move {
            let mut asked = first;
            loop {
                // What it has begun ends with it.
                let own = stop.child_token();
                let _end = own.clone().drop_guard();
                let running = AbortOnDropHandle::new(tokio::spawn(begin(asked, own)));
                let ended = running.await;
                if stop.is_cancelled() {
                    return;
                }
                tracing::error!(
                    ?ended,
                    "nobody looks at the fleet any more; beginning anew, without warnings until then"
                );
                if stop.run_until_cancelled(tokio::time::sleep(REST)).await.is_none() {
                    return;
                }
                let (inquirer, next) = inquiries();
                asked = next;
                tell.send_replace(inquirer);
            }
        });
        Self { current, _keeping: AbortOnDropHandle::new(keeping) }
    }

    /// How to ask about the fleet now.
    pub(crate) fn inquirer(&self) -> Inquirer {
        self.current.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use berth_control::Unanswered;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_a_defect_ends_is_begun_anew() {
        let stop = CancellationToken::new();
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let lookout = Lookout::of(stop.clone(), move |inquiries, stop| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            async move {
                assert!(number > 0, "a defect");
                stop.cancelled().await;
                drop(inquiries);
            }
        });
        let ask = async || lookout.inquirer().ask(|_| ()).await;
        assert_eq!(ask().await, Err(Unanswered::Stopped), "the first has ended");
        tokio::time::sleep(REST * 2).await;
        assert_eq!(ask().await, Err(Unanswered::Busy), "somebody is there again, who has seen nothing yet");
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        stop.cancel();
        tokio::time::sleep(REST * 2).await;
        assert_eq!(ask().await, Err(Unanswered::Stopped));
        assert_eq!(begun.load(Ordering::Relaxed), 2, "not after the end");
    }
}
