//! What a reader of PlacementDecisions sees: which clusters are in which, kept by a watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use berth_api::PlacementDecision;
use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// How long anything may take to be seen.
const PATIENCE: Duration = Duration::from_mins(5);

/// The PlacementDecisions as they are now.
pub(crate) struct View {
    seen: Arc<Seen>,
    _watch: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    slices: HashMap<String, Vec<String>>,
    /// How many slices name each cluster.
    times: HashMap<String, usize>,
    /// How many slices name any.
    filled: usize,
}

impl State {
    fn put(&mut self, slice: String, clusters: Vec<String>) {
        let before = self.slices.insert(slice, clusters.clone()).unwrap_or_default();
        self.filled += usize::from(!clusters.is_empty());
        self.filled -= usize::from(!before.is_empty());
        for cluster in clusters {
            *self.times.entry(cluster).or_default() += 1;
        }
        for cluster in before {
            let times = self.times.entry(cluster).or_default();
            *times = times.saturating_sub(1);
        }
    }

    /// How many slices name a cluster at all.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Whether any slice names this cluster.
    pub(crate) fn names(&self, cluster: &str) -> bool {
        self.times.get(cluster).is_some_and(|times| *times > 0)
    }

    /// The clusters that are named, by name.
    pub(crate) fn clusters(&self) -> Vec<String> {
        let mut named: Vec<_> =
            self.times.iter().filter(|(_, times)| **times > 0).map(|(name, _)| name.clone()).collect();
        named.sort_unstable();
        named
    }
}

impl View {
    /// Begins to watch.
    pub(crate) fn new(client: Client) -> Self {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let watch = async move {
            let api: Api<PlacementDecision> = Api::all(client);
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let (object, is_gone) = match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
                    Ok(Event::Delete(object)) => (object, true),
                    Ok(Event::Init | Event::InitDone) | Err(_) => continue,
                };
                let name = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
                let entries = if is_gone { &[] } else { object.decisions() };
                let clusters = entries.iter().map(|entry| entry.cluster_name.clone()).collect();
                told.state.lock().unwrap_or_else(PoisonError::into_inner).put(name, clusters);
                told.news.notify_waiters();
            }
        };
        Self { seen, _watch: AbortOnDropHandle::new(tokio::spawn(watch)) }
    }

    /// What is seen now.
    pub(crate) fn now<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.seen.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something is seen.
    pub(crate) async fn until(&self, what: &str, mut look: impl FnMut(&State) -> bool) -> anyhow::Result<()> {
        let waiting = async {
            loop {
                let news = self.seen.news.notified();
                if self.now(&mut look) {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("never seen: {what}"))
    }
}
