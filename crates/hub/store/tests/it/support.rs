//! Vocabulary of the tests.

use std::path::Path;
use std::sync::Arc;

use berth_hub_store::{
    Backend, Change, CommitError, Draft, Entry, Expect, HistoryOptions, JournaledBackend, Key, Ledger,
    LedgerOptions, MemoryBackend, ResourceKey, Revision, Write,
};
use serde_json::{Value, json};

/// Where a log lives, so that it can be opened again.
pub(crate) enum Disk {
    Memory(MemoryBackend),
    File(tempfile::TempDir),
}

impl Disk {
    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::file()]
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryBackend::new())
    }

    pub(crate) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    pub(crate) fn backend(&self) -> Box<dyn Backend> {
        match self {
            Self::Memory(memory) => Box::new(memory.clone()),
            Self::File(directory) => Box::new(JournaledBackend::open(directory.path()).unwrap()),
        }
    }

    pub(crate) fn open(&self) -> Ledger {
        self.open_with(LedgerOptions::default())
    }

    pub(crate) fn open_with(&self, options: LedgerOptions) -> Ledger {
        Ledger::open(self.backend(), options).unwrap()
    }
}

pub(crate) fn open_at(path: &Path) -> Ledger {
    Ledger::open(Box::new(JournaledBackend::open(path).unwrap()), LedgerOptions::default()).unwrap()
}

/// Compaction by age leaves one change, and what is needed.
pub(crate) fn forgetful() -> LedgerOptions {
    LedgerOptions {
        history: HistoryOptions { events_min: 1, ..HistoryOptions::default() },
        ..LedgerOptions::default()
    }
}

pub(crate) fn pods() -> ResourceKey {
    ResourceKey::new("", "pods")
}

pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key::new(&pods(), namespace, name)
}

pub(crate) fn object(key: &Key, value: u64) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": format!("uid-of-{}", key.name), "labels": {"app": "x"}},
        "spec": {"value": value},
    })
}

pub(crate) fn put(key: &Key, expect: Expect, value: u64) -> Write {
    Write { key: key.clone(), expect, change: Change::Put(Draft::new(&object(key, value)).unwrap()) }
}

pub(crate) fn delete(key: &Key, expect: Expect) -> Write {
    Write { key: key.clone(), expect, change: Change::Delete(Draft::new(&object(key, 0)).unwrap()) }
}

/// Writes one value and says at which revision.
pub(crate) async fn set(ledger: &Ledger, key: &Key, value: u64) -> Revision {
    ledger.commit(vec![put(key, Expect::Any, value)]).await.unwrap()[0].revision()
}

pub(crate) async fn remove(ledger: &Ledger, key: &Key) -> Result<Revision, CommitError> {
    Ok(ledger.commit(vec![delete(key, Expect::Any)]).await?[0].revision())
}

pub(crate) fn value(entry: &Entry) -> u64 {
    let object: Value = serde_json::from_slice(entry.json()).unwrap();
    assert_eq!(object["metadata"]["resourceVersion"], json!(entry.revision().to_string()), "no torn object");
    object["spec"]["value"].as_u64().unwrap()
}

pub(crate) fn names(entries: &[Arc<Entry>]) -> Vec<String> {
    entries.iter().map(|entry| format!("{}/{}", entry.key().namespace, entry.key().name)).collect()
}

/// Runs one asynchronous test body.
pub(crate) fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}
