//! What became of every pod of a namespace, as a watch tells it: who was marked, who left, and when.
//!
//! Owns one watch that survives the API server. A pod is known by its UID, so that one who comes back under a name is another.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use http::Request;
use jiff::Timestamp;
use kube::{Client, Config, core::WatchEvent};
use serde_json::Value;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Duration, sleep, timeout},
};

use berth_tests::caller::{condition, text};

/// How long to wait before looking for an API server that is gone.
const AGAIN: Duration = Duration::from_millis(50);

/// What became of one pod.
#[derive(Debug, Clone)]
pub(crate) struct Fate {
    pub(crate) name: String,
    /// As it was seen last.
    pub(crate) pod: Value,
    /// When it was first seen to be on its way out, or gone.
    pub(crate) left: Option<Timestamp>,
    /// Whether there is no such pod any more.
    pub(crate) is_gone: bool,
}

impl Fate {
    /// What it was told about its end, or null.
    pub(crate) fn disruption(&self) -> &Value {
        condition(&self.pod, "DisruptionTarget")
    }

    /// Whether nobody did anything about it.
    pub(crate) fn is_untouched(&self) -> bool {
        self.left.is_none() && self.disruption().is_null()
    }
}

/// All that is known, by UID.
pub(crate) type Fates = BTreeMap<String, Fate>;

/// A watch over a namespace's pods.
pub(crate) struct Record {
    fates: watch::Receiver<Fates>,
    follower: JoinHandle<()>,
}

impl Record {
    pub(crate) fn of(config: Config, namespace: &str) -> Self {
        let (sender, fates) = watch::channel(Fates::new());
        let follower = tokio::spawn(follow(config, namespace.to_owned(), sender));
        Self { fates, follower }
    }

    /// All that is known now.
    pub(crate) fn now(&self) -> Fates {
        self.fates.borrow().clone()
    }

    /// Waits until what is known gives something.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&Fates) -> Option<T>,
    ) -> T {
        let mut fates = self.fates.clone();
        let mut found = None;
        let looked = fates.wait_for(|fates| {
            found = look(fates);
            found.is_some()
        });
        let ended = timeout(patience, looked).await;
        if ended.is_err() {
            let known: Vec<_> = self
                .now()
                .into_values()
                .map(|fate| (fate.name, fate.left, fate.pod["status"]["conditions"].clone()))
                .collect();
            panic!("never seen within {patience:?}: {what}; instead: {known:#?}");
        }
        drop(ended);
        found.expect("a look that ended the wait found something")
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn follow(config: Config, namespace: String, fates: watch::Sender<Fates>) {
    loop {
        // A client of its own each time: the connections of the one before may lead nowhere.
        if let Ok(client) = Client::try_from(config.clone()) {
            let _: Option<()> = follow_once(&client, &namespace, &fates).await;
        }
        sleep(AGAIN).await;
    }
}

/// Lists and watches until something ends it.
async fn follow_once(client: &Client, namespace: &str, fates: &watch::Sender<Fates>) -> Option<()> {
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let list: Value = client.request(Request::get(&path).body(Vec::new()).ok()?).await.ok()?;
    let pods = list["items"].as_array()?;
    fates.send_modify(|fates| {
        for pod in pods {
            seen(fates, pod, false);
        }
        let listed = |uid: &str| pods.iter().any(|pod| pod["metadata"]["uid"] == uid);
        for (_, fate) in fates.iter_mut().filter(|(uid, _)| !listed(uid)) {
            fate.left.get_or_insert_with(Timestamp::now);
            fate.is_gone = true;
        }
    });
    let version = list["metadata"]["resourceVersion"].as_str()?;
    let watched = format!("{path}?watch=true&resourceVersion={version}");
    let events = client.request_events::<Value>(Request::get(watched).body(Vec::new()).ok()?).await.ok()?;
    let mut events = std::pin::pin!(events);
    while let Ok(Some(event)) = events.try_next().await {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                fates.send_modify(|fates| seen(fates, &pod, false));
            }
            WatchEvent::Deleted(pod) => fates.send_modify(|fates| seen(fates, &pod, true)),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    None
}

fn seen(fates: &mut Fates, pod: &Value, is_gone: bool) {
    let name = || text(pod, "/metadata/name").to_owned();
    let uid = text(pod, "/metadata/uid").to_owned();
    let fate = fates.entry(uid).or_insert_with(|| Fate {
        name: name(),
        pod: Value::Null,
        left: None,
        is_gone: false,
    });
    fate.pod = pod.clone();
    fate.is_gone |= is_gone;
    if is_gone || !pod["metadata"]["deletionTimestamp"].is_null() {
        fate.left.get_or_insert_with(Timestamp::now);
    }
}
