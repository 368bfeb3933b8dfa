//! What a reader of PlacementDecisions sees: which clusters are in which, kept by a watch.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use berth_api::PlacementDecision;
use berth_api::names::label;
use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

use crate::news::until;

/// How long anything may take to be seen, unless another patience is given.
const PATIENCE: Duration = Duration::from_mins(5);

/// The PlacementDecisions as they are now.
pub struct View {
    seen: Arc<Seen>,
    patience: Duration,
    _watch: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    news: Notify,
}

/// Who is in which slice.
#[derive(Debug, Default)]
pub struct State {
    slices: HashMap<String, Slice>,
    /// How many slices name each cluster.
    times: HashMap<String, usize>,
    /// How many slices name any.
    filled: usize,
    /// How many clusters each placement has.
    selected: HashMap<String, usize>,
    /// How many clusters each placement is to have.
    wanted: HashMap<String, usize>,
    /// How many placements have fewer than that.
    lacking: usize,
    /// When each placement came to have them, in that order.
    completed: Vec<Instant>,
}

#[derive(Debug, Default)]
struct Slice {
    /// Its namespace and its placement's name.
    placement: String,
    clusters: Vec<String>,
}

impl State {
    fn put(&mut self, name: String, slice: Slice) {
        let before = self.slices.remove(&name).unwrap_or_default();
        self.filled += usize::from(!slice.clusters.is_empty());
        self.filled -= usize::from(!before.clusters.is_empty());
        for cluster in &slice.clusters {
            *self.times.entry(cluster.clone()).or_default() += 1;
        }
        for cluster in &before.clusters {
            let times = self.times.entry(cluster.clone()).or_default();
            *times = times.saturating_sub(1);
        }
        self.select(&before.placement, |selected| selected.saturating_sub(before.clusters.len()));
        self.select(&slice.placement, |selected| selected + slice.clusters.len());
        if !slice.clusters.is_empty() {
            self.slices.insert(name, slice);
        }
    }

    fn select(&mut self, placement: &str, change: impl FnOnce(usize) -> usize) {
        let selected = self.selected.entry(placement.to_owned()).or_default();
        let before = *selected;
        *selected = change(before);
        let Some(wanted) = self.wanted.get(placement) else { return };
        match (before >= *wanted, *selected >= *wanted) {
            (false, true) => {
                self.lacking -= 1;
                self.completed.push(Instant::now());
            }
            (true, false) => self.lacking += 1,
            _ => {}
        }
    }

    /// How many slices name a cluster at all.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// How many placements have fewer clusters than [`View::want`] asked for.
    pub fn lacking(&self) -> usize {
        self.lacking
    }

    /// When each of the placements that were asked for had its clusters, in that order. One that lost some and got others
    /// is there twice.
    pub fn completed(&self) -> &[Instant] {
        &self.completed
    }

    /// Whether any slice names this cluster.
    pub fn names(&self, cluster: &str) -> bool {
        self.times.get(cluster).is_some_and(|times| *times > 0)
    }

    /// The clusters that are named, by name.
    pub fn clusters(&self) -> Vec<String> {
        let mut named: Vec<_> =
            self.times.iter().filter(|(_, times)| **times > 0).map(|(name, _)| name.clone()).collect();
        named.sort_unstable();
        named
    }
}

impl View {
    /// Begins to watch.
    pub fn new(client: Client) -> Self {
        let seen = Arc::new(Seen::default());
        let told = Arc::clone(&seen);
        let watch = async move {
            let api: Api<PlacementDecision> = Api::all(client);
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            // What a new list does not name is gone.
            let mut listed = HashSet::new();
            while let Some(event) = events.next().await {
                let mut state = told.state.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Apply(object)) => state.put(name(&object), slice(&object)),
                    Ok(Event::Delete(object)) => state.put(name(&object), Slice::default()),
                    Ok(Event::Init) => listed.clear(),
                    Ok(Event::InitApply(object)) => {
                        listed.insert(name(&object));
                        state.put(name(&object), slice(&object));
                    }
                    Ok(Event::InitDone) => {
                        let gone: Vec<_> =
                            state.slices.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                        for name in gone {
                            state.put(name, Slice::default());
                        }
                    }
                    Err(_) => {} // the watcher begins again by itself, after a while
                }
                drop(state);
                told.news.notify_waiters();
            }
        };
        Self { seen, patience: PATIENCE, _watch: AbortOnDropHandle::new(tokio::spawn(watch)) }
    }

    /// Waits longer for what it waits for, or not so long.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// From now on counts the placements, by namespace and name, that have fewer clusters than this.
    pub fn want(&self, wanted: HashMap<String, usize>) {
        let mut state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |state: &State, placement: &str| state.selected.get(placement).copied().unwrap_or_default();
        state.lacking = wanted.iter().filter(|(placement, count)| has(&state, placement) < **count).count();
        state.wanted = wanted;
        state.completed.clear();
    }

    /// What is seen now.
    pub fn now<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.seen.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something is seen.
    pub async fn until(&self, what: &str, mut look: impl FnMut(&State) -> bool) -> anyhow::Result<()> {
        until(&self.seen.news, self.patience, what, || self.now(&mut look)).await
    }
}

fn name(object: &PlacementDecision) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn slice(object: &PlacementDecision) -> Slice {
    let owner = object.labels().get(label::PLACEMENT).map(String::as_str).unwrap_or_default();
    Slice {
        placement: format!("{}/{owner}", object.namespace().unwrap_or_default()),
        clusters: object.decisions().iter().map(|entry| entry.cluster_name.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(placement: &str, clusters: &[&str]) -> Slice {
        let clusters = clusters.iter().map(ToString::to_string).collect();
        Slice { placement: placement.to_owned(), clusters }
    }

    /// A client whose way to the server ended with the runtime it was made in, as at the end of a program: it fails at once,
    /// without ever waiting.
    fn cut_off() -> Client {
        let gone = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        gone.block_on(async {
            Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
        })
    }

    #[test]
    fn watches_that_fail_at_once_leave_the_thread_to_others() {
        let (told, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let client = cut_off();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let _view = View::new(client.clone());
                let _departures = crate::nodes::Departures::new(client, "pods");
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                told.send(()).unwrap();
            });
        });
        heard.recv_timeout(Duration::from_secs(10)).expect("others had their turn");
    }

    #[test]
    fn a_placement_is_complete_when_its_slices_together_have_what_is_wanted() {
        let mut state = State { wanted: [("a/x".to_owned(), 3)].into(), lacking: 1, ..State::default() };
        state.put("a/x-1".into(), slice("a/x", &["one", "two"]));
        assert_eq!((state.lacking(), state.completed().len(), state.filled()), (1, 0, 1));
        state.put("a/x-2".into(), slice("a/x", &["three"]));
        assert_eq!((state.lacking(), state.completed().len(), state.filled()), (0, 1, 2));
        state.put("a/x-1".into(), slice("a/x", &["two"]));
        assert_eq!((state.lacking(), state.names("one"), state.names("two")), (1, false, true));
        state.put("a/x-1".into(), Slice::default());
        state.put("a/x-2".into(), Slice::default());
        assert_eq!((state.filled(), state.clusters().len(), state.slices.len()), (0, 0, 0));
    }
}
