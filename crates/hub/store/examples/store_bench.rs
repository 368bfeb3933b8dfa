//! Measures a store in a directory: `store_bench [DIRECTORY]`. Run with `--release`.
#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be taken ends here")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_hub_store::{
    Change, Draft, Expect, Key, Ledger, LedgerOptions, ListQuery, RedbBackend, ResourceKey, Write,
};
use serde_json::json;

const OBJECTS: usize = 10_000;

fn write(key: Key, value: usize) -> Write {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "uid": format!("00000000-0000-0000-0000-{value:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
            "labels": {"app": "bench", "tier": "a", "region": "eu"},
        },
        "spec": {"value": value, "blob": "x".repeat(1700)},
    });
    Write { key, expect: Expect::Any, change: Change::Put(Draft::new(&object).unwrap()) }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("0");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn open(directory: &Path) -> Ledger {
    Ledger::open(Box::new(RedbBackend::open(directory).unwrap()), LedgerOptions::default()).unwrap()
}

async fn creates(ledger: &Ledger, resource: &ResourceKey, count: usize, flight: usize) -> Duration {
    let start = Instant::now();
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tasks: Vec<_> = (0..flight)
        .map(|_| {
            let (ledger, resource, next) = (ledger.clone(), resource.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let key = Key::new(&resource, "bench", &format!("thing-{index:06}"));
                    ledger.commit(vec![write(key, index)]).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed()
}

#[tokio::main]
async fn main() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = std::env::args().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into);
    let ledger = open(&directory);
    for (flight, count) in [(1, 3_000), (8, 6_000), (32, 20_000), (128, 20_000)] {
        let resource = ResourceKey::new("bench", &format!("flight{flight}"));
        let took = creates(&ledger, &resource, count, flight).await;
        println!("creates, {flight:3} in flight: {:8.0}/s", count as f64 / took.as_secs_f64());
    }
    // 49,000 creations lose their history while one writer goes on.
    let things = ResourceKey::new("bench", "churned");
    let key = Key::new(&things, "bench", "one");
    for round in 0..40 {
        let writes = (0..1_000).map(|index| write(key.clone(), round * index)).collect();
        ledger.commit(writes).await.unwrap();
    }
    ledger.compact(Duration::ZERO).await.unwrap();
    let start = Instant::now();
    let compaction = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.compact(Duration::from_hours(1)).await.unwrap() }
    });
    let mut slowest = Duration::ZERO;
    let mut writes = 0;
    while !compaction.is_finished() {
        let start = Instant::now();
        ledger.commit(vec![write(key.clone(), 1)]).await.unwrap();
        slowest = slowest.max(start.elapsed());
        writes += 1;
    }
    println!(
        "compaction of 40,000 changes: {:?}, {writes} writes meanwhile, slowest {slowest:?}",
        start.elapsed()
    );
    ledger.close().await;
    drop(ledger);
    std::fs::remove_file(directory.join("hub.redb")).unwrap();

    let ledger = open(&directory);
    let things = ResourceKey::new("bench", "things");
    creates(&ledger, &things, OBJECTS, 64).await;
    // Lets go of history, so that the next start loads objects and not changes.
    ledger.compact(Duration::ZERO).await.unwrap();
    let start = Instant::now();
    ledger.compact(Duration::from_hours(1)).await.unwrap();
    println!("compaction: {:?}, file {} MiB", start.elapsed(), ledger.size_bytes().await.unwrap() >> 20);
    let start = Instant::now();
    ledger.backup(&directory.join("backup")).await.unwrap();
    println!("backup of {OBJECTS} objects: {:?}", start.elapsed());
    // What a killed process leaves behind.
    let killed = tempfile::tempdir().unwrap();
    std::fs::copy(directory.join("hub.redb"), killed.path().join("hub.redb")).unwrap();
    let start = Instant::now();
    open(killed.path());
    println!("open after a kill, with {OBJECTS} objects: {:?}", start.elapsed());
    ledger.close().await;
    drop(ledger);

    let before = resident_kib();
    let start = Instant::now();
    let ledger = open(&directory);
    println!(
        "open with {OBJECTS} objects: {:?}, resident {before} -> {} KiB",
        start.elapsed(),
        resident_kib()
    );

    let start = Instant::now();
    for index in 0..100_000 {
        let name = format!("thing-{:06}", index * 7919 % OBJECTS);
        assert!(ledger.find(&things, "bench", &name).is_some());
    }
    println!("get: {:?}", start.elapsed() / 100_000);
    let start = Instant::now();
    for _ in 0..20 {
        let query = ListQuery { limit: Some(5_000), ..ListQuery::default() };
        assert_eq!(ledger.list(&things, &query).unwrap().entries.len(), 5_000);
    }
    println!("list of 5,000: {:?}", start.elapsed() / 20);

    let watchers: Vec<_> = (0..1_000)
        .map(|_| {
            let mut watch = ledger.watch_from_now(&things, None);
            tokio::spawn(async move {
                let mut bytes = 0;
                for _ in 0..1_000 {
                    let event = watch.next().await.unwrap();
                    bytes += event.line(event.kind(), |entry| entry.json().clone()).len();
                }
                bytes
            })
        })
        .collect();
    let start = Instant::now();
    for index in 0..1_000 {
        let key = Key::new(&things, "bench", &format!("thing-{index:06}"));
        ledger.commit(vec![write(key, index)]).await.unwrap();
    }
    let written = start.elapsed();
    for watcher in watchers {
        watcher.await.unwrap();
    }
    println!(
        "1,000 serial updates to 1,000 watchers: written in {written:?}, seen by all in {:?}",
        start.elapsed()
    );
    println!("resident {} KiB", resident_kib());
}
