//! Measures how long a store takes to open and what it holds in memory: `store_open DIRECTORY`. Run with `--release`.
#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be taken ends here")]

use std::path::PathBuf;
use std::time::Instant;

use berth_hub_store::{Ledger, LedgerOptions, RedbBackend};

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("0");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[tokio::main]
async fn main() {
    let directory: PathBuf = std::env::args().nth(1).expect("usage: store_open DIRECTORY").into();
    let before = resident_kib();
    let start = Instant::now();
    let backend = RedbBackend::open(&directory).unwrap();
    let opened = start.elapsed();
    let ledger = Ledger::open(Box::new(backend), LedgerOptions::default()).unwrap();
    let loaded = start.elapsed();
    let objects: usize = ledger.stats().iter().map(|stats| stats.objects).sum();
    let open = resident_kib();
    println!("file opened in {opened:?}, {objects} objects loaded in {loaded:?}");
    ledger.close().await;
    println!("resident: {before} KiB before, {open} KiB open, {} KiB with the file closed", resident_kib());
}
