//! Events in: one watch for each kind, told to the loop.
//!
//! Owns the only readers of the API. A lost server is waited for, and an object that cannot be read is left out with a
//! warning: neither ends anything, and what was known stays known.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use berth_api::names::CLUSTER_LEASE;
use berth_engine::model::ObjectKey;
use futures::StreamExt as _;
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use kube::{Client, Resource as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::serve::Metrics;
use crate::world::{Kind, Known, Told, Visitor};

/// The first wait after a watch failed.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// The longest wait after a watch failed: how late we may notice that the server is back.
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Objects in one page of a list.
const PAGE_OBJECTS: u32 = 500;

/// Where watches tell what they see.
#[derive(Clone)]
pub(crate) struct Watches {
    pub(crate) client: Client,
    pub(crate) told: mpsc::Sender<Told>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: CancellationToken,
}

impl Watches {
    /// Follows a kind in a task of its own until the process stops.
    pub(crate) fn follow(&self, kind: Kind) {
        kind.visit(Follow(self.clone()));
    }
}

struct Follow(Watches);

impl Visitor for Follow {
    type Output = ();

    fn visit<K: Known>(self) {
        let watches = self.0;
        tokio::spawn(async move {
            // A watch that ended by a defect begins anew with a list: one that is silently missing would be taken for
            // a world in which nothing happens.
            while !watches.stop.is_cancelled() {
                let watch = tokio::spawn(follow::<K>(watches.clone()));
                let mut watch = AbortOnDropHandle::new(watch);
                tokio::select! {
                    () = watches.stop.cancelled() => return,
                    ended = &mut watch => {
                        watches.metrics.watch_failed(K::KIND);
                        tracing::error!(kind = %K::KIND, ?ended, "the watch ended; it begins anew");
                    }
                }
                tokio::time::sleep(RETRY_MAX).await;
            }
        });
    }
}

async fn follow<K: Known>(watches: Watches) {
    let api: Api<DeserializeGuard<K>> = Api::all(watches.client);
    let mut config = watcher::Config::default().page_size(PAGE_OBJECTS);
    if K::KIND == Kind::Lease {
        // Every node and every leader election has a lease that is renewed all the time.
        config = config.fields(&format!("metadata.name={CLUSTER_LEASE}"));
    }
    let mut events = pin!(watcher(api, config));
    let mut wait = RETRY_FIRST;
    let mut is_troubled = false;
    while let Some(event) = events.next().await {
        let told = match event {
            Ok(event) => {
                if std::mem::take(&mut is_troubled) {
                    tracing::info!(kind = %K::KIND, "the watch works again");
                }
                wait = RETRY_FIRST;
                told(event)
            }
            Err(error) => {
                watches.metrics.watch_failed(K::KIND);
                // Once for each trouble, not once for each try.
                if !std::mem::replace(&mut is_troubled, true) {
                    tracing::warn!(kind = %K::KIND, error = %advice::<K>(&error), "the watch failed; trying again");
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RETRY_MAX);
                continue;
            }
        };
        if watches.told.send(told).await.is_err() {
            return;
        }
    }
}

fn told<K: Known>(event: Event<DeserializeGuard<K>>) -> Told {
    match event {
        Event::Init => Told::ListBegins(K::KIND),
        Event::InitDone => Told::ListEnds(K::KIND),
        Event::InitApply(object) | Event::Apply(object) => seen(object),
        // The end of an object that cannot be read is an end all the same.
        Event::Delete(object) => Told::Ended(K::KIND, Box::new(object.meta().clone())),
    }
}

fn seen<K: Known>(object: DeserializeGuard<K>) -> Told {
    let key = ObjectKey::of(object.meta());
    match object.0 {
        Ok(object) => Told::Seen(K::wrap(Arc::new(object))),
        Err(error) => {
            tracing::warn!(kind = %K::KIND, %key, error = %error.error, "an object cannot be read; what was known of it stays");
            Told::Unreadable(K::KIND, key)
        }
    }
}

/// What a person can do about it, where that is known.
fn advice<K: Known>(error: &watcher::Error) -> String {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    };
    match status {
        Some(404) => format!("{error}: {} is not served; apply its CustomResourceDefinition", K::KIND),
        Some(403) => format!("{error}: this identity may not list and watch {}", K::KIND.plural()),
        _ => error.to_string(),
    }
}
