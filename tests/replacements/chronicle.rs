//! Everything that was told of a namespace's pods, claims and replacements, in the order of the API server's revisions.
//!
//! Owns the watches and the judgement of what must never have happened: a revision is the server's own order, so what was true
//! when a claim was deleted is known exactly, however late it was heard.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::TryStreamExt as _;
use http::Request;
use kube::{Client, Config, core::WatchEvent};
use serde_json::Value;
use tokio::{task::JoinHandle, time::sleep};

use berth_tests::caller::{condition, text};

/// How long to wait before looking again where a watch has ended.
const AGAIN: Duration = Duration::from_millis(50);

/// The kinds that are followed, by where they are served.
const KINDS: [(&str, &str); 3] = [
    ("Pod", "/api/v1/namespaces/{}/pods"),
    ("Claim", "/api/v1/namespaces/{}/persistentvolumeclaims"),
    ("Replacement", "/apis/berth.dev/v1alpha1/namespaces/{}/replacements"),
];

/// One thing that was told.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) revision: u64,
    pub(crate) kind: &'static str,
    pub(crate) object: Value,
    /// It is no more.
    pub(crate) is_gone: bool,
}

impl Entry {
    pub(crate) fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }

    pub(crate) fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    /// It is no more, or will not be.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_gone || self.object["metadata"]["deletionTimestamp"].is_string()
    }

    fn is_ready(&self) -> bool {
        !self.is_leaving() && condition(&self.object, "Ready")["status"] == "True"
    }

    /// How far a replacement is; one without a word has just begun.
    pub(crate) fn phase(&self) -> &str {
        self.object["status"]["phase"].as_str().unwrap_or("Gating")
    }

    fn is_under_way(&self) -> bool {
        !self.is_gone && !["Done", "Aborted", "Failed"].contains(&self.phase())
    }
}

/// The watches, until it is dropped.
pub(crate) struct Chronicle {
    entries: Arc<Mutex<Vec<Entry>>>,
    followers: Vec<JoinHandle<()>>,
}

impl Chronicle {
    pub(crate) fn of(config: &Config, namespace: &str) -> Self {
        let entries = Arc::new(Mutex::new(Vec::new()));
        let follow = |(kind, path): &(&'static str, &str)| {
            let path = path.replace("{}", namespace);
            tokio::spawn(follow(config.clone(), kind, path, Arc::clone(&entries)))
        };
        let followers = KINDS.iter().map(follow).collect();
        Self { entries, followers }
    }

    /// All that is known now, in order.
    pub(crate) fn now(&self) -> Vec<Entry> {
        let mut entries = self.entries.lock().unwrap().clone();
        entries.sort_by_key(|entry| entry.revision);
        entries
    }

    /// The revisions at which claims were told to go, with their names, in order.
    pub(crate) fn claims_lost(&self) -> Vec<(u64, String)> {
        let mut lost: BTreeMap<String, (u64, String)> = BTreeMap::new();
        for entry in self.now().into_iter().filter(|entry| entry.kind == "Claim" && entry.is_leaving()) {
            lost.entry(entry.uid().to_owned()).or_insert((entry.revision, entry.name().to_owned()));
        }
        let mut lost: Vec<_> = lost.into_values().collect();
        lost.sort();
        lost
    }

    /// The identities of pods of that name, in the order in which they came.
    pub(crate) fn incarnations(&self, pod: &str) -> Vec<String> {
        let mut seen = Vec::new();
        for entry in self.now().into_iter().filter(|entry| entry.kind == "Pod" && entry.name() == pod) {
            if !seen.iter().any(|uid| uid == entry.uid()) {
                seen.push(entry.uid().to_owned());
            }
        }
        seen
    }

    /// The phases that the replacements of a pod went through, in order, each once in a row.
    pub(crate) fn phases(&self, pod: &str) -> Vec<String> {
        let mut phases: Vec<String> = Vec::new();
        for entry in self.now().into_iter().filter(|entry| entry.kind == "Replacement") {
            let is_its = entry.object["spec"]["target"]["name"] == pod;
            if is_its && !entry.is_gone && phases.last().is_none_or(|last| last != entry.phase()) {
                phases.push(entry.phase().to_owned());
            }
        }
        phases
    }

    /// Never were more replacements under way at once.
    pub(crate) fn at_most_at_once(&self, max: usize) {
        let most = self.most(|entry| Some(entry.uid().to_owned()));
        assert!(most <= max, "{most} replacements at once");
    }

    /// Never were members in more fault domains replaced at once.
    pub(crate) fn at_most_domains_at_once(&self, max: usize) {
        let most =
            self.most(|entry| Some(entry.object["spec"]["target"]["faultDomain"].as_str()?.to_owned()));
        assert!(most <= max, "members in {most} fault domains at once");
    }

    /// The most of something that replacements under way had at once.
    pub(crate) fn most(&self, of: impl Fn(&Entry) -> Option<String>) -> usize {
        let mut under_way: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut most = 0;
        for entry in self.now().iter().filter(|entry| entry.kind == "Replacement") {
            if entry.is_under_way() {
                under_way.insert(entry.uid().to_owned(), of(entry));
            } else {
                under_way.remove(entry.uid());
            }
            most = most.max(under_way.values().collect::<BTreeSet<_>>().len());
        }
        most
    }

    /// Whenever a claim was told to go, every other of these pods was ready, and nobody else's claim was on its way out.
    pub(crate) fn claims_went_alone(&self, pods: &[&str]) {
        let entries = self.now();
        let of = |claim: &str| pods.iter().copied().find(|pod| claim.ends_with(&format!("-{pod}")));
        for (revision, claim) in self.claims_lost() {
            let owner = of(&claim).unwrap_or_else(|| panic!("{claim} belongs to nobody"));
            let before: Vec<&Entry> = entries.iter().filter(|entry| entry.revision < revision).collect();
            for pod in pods.iter().filter(|pod| **pod != owner) {
                let mut told = before.iter().filter(|entry| entry.kind == "Pod" && entry.name() == *pod);
                let last = told.next_back().unwrap_or_else(|| panic!("{pod} was never seen before {claim}"));
                assert!(
                    last.is_ready(),
                    "{claim} was deleted at {revision} while {pod} was not ready: {last:?}"
                );
            }
            let mut others: BTreeMap<&str, &Entry> = BTreeMap::new();
            for entry in
                before.iter().filter(|entry| entry.kind == "Claim" && of(entry.name()) != Some(owner))
            {
                others.insert(entry.uid(), entry);
            }
            let leaving = others.values().find(|entry| entry.is_leaving() && !entry.is_gone);
            assert!(leaving.is_none(), "{claim} was deleted at {revision} while {leaving:?} was going");
        }
    }
}

impl Drop for Chronicle {
    fn drop(&mut self) {
        self.followers.iter().for_each(JoinHandle::abort);
    }
}

async fn follow(config: Config, kind: &'static str, path: String, entries: Arc<Mutex<Vec<Entry>>>) {
    loop {
        if let Ok(client) = Client::try_from(config.clone()) {
            let _: Option<()> = follow_once(&client, kind, &path, &entries).await;
        }
        sleep(AGAIN).await;
    }
}

/// Lists and watches until something ends it.
async fn follow_once(
    client: &Client,
    kind: &'static str,
    path: &str,
    entries: &Mutex<Vec<Entry>>,
) -> Option<()> {
    let list: Value = client.request(Request::get(path).body(Vec::new()).ok()?).await.ok()?;
    for object in list["items"].as_array()? {
        note(entries, kind, object.clone(), false);
    }
    let version = list["metadata"]["resourceVersion"].as_str()?;
    let watched = format!("{path}?watch=true&resourceVersion={version}");
    let events = client.request_events::<Value>(Request::get(watched).body(Vec::new()).ok()?).await.ok()?;
    let mut events = std::pin::pin!(events);
    while let Ok(Some(event)) = events.try_next().await {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => note(entries, kind, object, false),
            WatchEvent::Deleted(object) => note(entries, kind, object, true),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    None
}

fn note(entries: &Mutex<Vec<Entry>>, kind: &'static str, object: Value, is_gone: bool) {
    let revision = text(&object, "/metadata/resourceVersion").parse().expect("revisions are numbers");
    entries.lock().unwrap().push(Entry { revision, kind, object, is_gone });
}
