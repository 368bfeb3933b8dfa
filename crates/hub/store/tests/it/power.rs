//! A disk that fails, writes short, and loses power: what redb and the ledger make of it together.
//!
//! The disk keeps what was written since the last sync apart. When the power goes, any part of that may have reached the
//! platter: whole writes, halves of writes, in any selection.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use berth_hub_store::backend::OpenStorage;
use berth_hub_store::{
    BackendError, CommitError, Expect, JournaledBackend, Key, Ledger, LedgerOptions, RedbBackend, Revision,
    StoreError,
};
use redb::StorageBackend;

use crate::support::{key, pods, put, run, value};

/// A small generator; the seed is in the message of every assertion.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % bound
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Half of a write arrives, then it fails; the next operation works again.
    ShortWrite,
    /// The file cannot grow.
    Full,
    /// A sync fails.
    Sync,
    /// The power goes: everything fails from here on.
    Power,
}

/// The journal is so small that it is full every few writes.
const JOURNAL_BYTES: u64 = 8 * 4096;

/// The store and its journal.
const FILES: usize = 2;

#[derive(Debug, Default)]
struct Platter {
    durable: [Vec<u8>; FILES],
    live: [Vec<u8>; FILES],
    /// By file, in order.
    pending: Vec<(usize, Change)>,
    trouble: Option<(u64, Trouble)>,
    dark: bool,
}

#[derive(Debug)]
enum Change {
    Length(usize),
    Data(usize, Vec<u8>),
}

fn make(image: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(length) => image.resize(*length, 0),
        Change::Data(offset, data) => {
            if image.len() < offset + data.len() {
                image.resize(offset + data.len(), 0);
            }
            image[*offset..offset + data.len()].copy_from_slice(data);
        }
    }
}

impl Platter {
    /// Counts the operations that can fail.
    fn step(&mut self, sync: bool, grow: bool) -> Option<Trouble> {
        if self.dark {
            return Some(Trouble::Power);
        }
        let (left, trouble) = self.trouble.as_mut()?;
        let fits = match trouble {
            Trouble::Sync => sync,
            Trouble::Full => grow,
            Trouble::ShortWrite => !sync && !grow,
            Trouble::Power => true,
        };
        if !fits {
            return None;
        }
        if *left > 0 {
            *left -= 1;
            return None;
        }
        let trouble = *trouble;
        self.trouble = None;
        self.dark = trouble == Trouble::Power;
        Some(trouble)
    }
}

/// A file on a disk.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Platter>>, usize);

fn failure() -> io::Error {
    io::Error::other("injected")
}

impl Disk {
    fn open(&self) -> Result<Ledger, StoreError> {
        let open = |file: usize| -> OpenStorage {
            let disk = Self(Arc::clone(&self.0), file);
            Box::new(move || Ok(Box::new(disk.clone())))
        };
        self.format()?;
        let store = RedbBackend::with_storage(Path::new("disk"), open(0))?;
        let backend = JournaledBackend::with_storage(store, Path::new("journal"), open(1))?;
        Ledger::open(Box::new(backend), LedgerOptions::default())
    }

    /// Gives the journal its size, as opening it on a file does.
    fn format(&self) -> Result<(), StoreError> {
        let journal = Self(Arc::clone(&self.0), 1);
        let formatted = match journal.len() {
            Ok(JOURNAL_BYTES) => Ok(()),
            _ => journal.set_len(JOURNAL_BYTES).and_then(|()| journal.sync_data()),
        };
        formatted.map_err(|error| BackendError::Failed(error.to_string()).into())
    }

    fn plan(&self, good: u64, trouble: Trouble) {
        self.0.lock().unwrap().trouble = Some((good, trouble));
    }

    /// Power comes back, with some of what was not synchronised.
    fn power_up(&self, random: &mut Random) {
        let mut platter = self.0.lock().unwrap();
        let mut image = std::mem::take(&mut platter.durable);
        for (file, change) in std::mem::take(&mut platter.pending) {
            let image = &mut image[file];
            match (random.below(3), change) {
                (0, _) => {}
                (1, Change::Data(offset, mut data)) => {
                    // Sectors are written whole.
                    data.truncate(
                        (random.below(data.len() as u64 + 1) as usize).next_multiple_of(512).min(data.len()),
                    );
                    make(image, &Change::Data(offset, data));
                }
                (_, change) => make(image, &change),
            }
        }
        // The length of a file is journaled with its blocks: it is never shorter than what is in it.
        platter.live.clone_from(&image);
        platter.durable = image;
        platter.trouble = None;
        platter.dark = false;
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().live[self.1].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.0.lock().unwrap();
        let offset = offset as usize;
        if platter.dark {
            return Err(failure());
        }
        let data =
            platter.live[self.1].get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        let grow = len as usize > platter.live[self.1].len();
        if platter.step(false, grow).is_some() {
            return Err(failure());
        }
        platter.live[self.1].resize(len as usize, 0);
        platter.pending.push((self.1, Change::Length(len as usize)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        if platter.step(true, false).is_some() {
            return Err(failure());
        }
        let Platter { durable, pending, .. } = &mut *platter;
        for (file, change) in pending.extract_if(.., |(file, _)| *file == self.1) {
            make(&mut durable[file], &change);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut platter = self.0.lock().unwrap();
        let trouble = platter.step(false, false);
        if platter.dark && trouble.is_none() {
            return Err(failure());
        }
        let part = if trouble.is_some() { &data[..data.len() / 2] } else { data };
        let change = Change::Data(offset as usize, part.to_vec());
        make(&mut platter.live[self.1], &change);
        platter.pending.push((self.1, change));
        if trouble.is_some() { Err(failure()) } else { Ok(()) }
    }
}

/// Writes until the disk stops it or enough is written; adds what was acknowledged.
async fn work(
    ledger: &Ledger,
    random: &mut Random,
    acknowledged: &mut BTreeMap<Key, (Revision, u64)>,
) -> bool {
    for round in 0..40 {
        let keys: Vec<Key> =
            (0..=random.below(4)).map(|_| key("a", &format!("pod-{}", random.below(12)))).collect();
        let values: Vec<u64> = keys.iter().map(|_| random.below(1 << 30)).collect();
        let writes = keys.iter().zip(&values).map(|(key, value)| put(key, Expect::Any, *value)).collect();
        match ledger.commit(writes).await {
            Ok(entries) => {
                for (entry, value) in entries.iter().zip(values) {
                    acknowledged.insert(entry.key().clone(), (entry.revision(), value));
                }
            }
            Err(CommitError::Unavailable(_)) => return false,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    true
}

/// Everything acknowledged is there. What else became durable counts as acknowledged from here on: it was shown.
fn check(ledger: &Ledger, acknowledged: &mut BTreeMap<Key, (Revision, u64)>, seed: u64) {
    let highest = acknowledged.values().map(|(revision, _)| *revision).max().unwrap_or_default();
    assert!(ledger.revision() >= highest, "seed {seed}: revisions never go back");
    for (key, (revision, expected)) in acknowledged.iter() {
        let entry = ledger.get(key).unwrap_or_else(|| panic!("seed {seed}: {key} is lost"));
        let found = value(&entry);
        // A write that was in flight may have become durable after the last acknowledged one.
        let same = entry.revision() == *revision && found == *expected;
        assert!(
            same || entry.revision() > highest,
            "seed {seed}: {key} at {} is not at {revision}",
            entry.revision()
        );
    }
    let mut watch = ledger.watch(&pods(), None, ledger.floor()).unwrap();
    let mut last = ledger.floor();
    while let Some(event) = watch.try_next().unwrap() {
        assert_eq!(event.revision(), last.next(), "seed {seed}: no gap and no duplicate");
        acknowledged.insert(event.entry().key().clone(), (event.revision(), value(event.entry())));
        last = event.revision();
    }
    assert_eq!(last, ledger.revision(), "seed {seed}");
}

#[test]
fn every_acknowledged_write_survives_power_cuts() {
    run(async {
        for seed in 0..60 {
            let mut random = Random(seed);
            let disk = Disk::default();
            let mut acknowledged = BTreeMap::new();
            disk.open().unwrap();
            for _ in 0..4 {
                disk.plan(random.below(120), Trouble::Power);
                if let Ok(ledger) = disk.open() {
                    check(&ledger, &mut acknowledged, seed);
                    work(&ledger, &mut random, &mut acknowledged).await;
                    ledger.close().await;
                }
                disk.power_up(&mut random);
            }
            check(&disk.open().unwrap(), &mut acknowledged, seed);
        }
    });
}

#[test]
fn short_writes_and_a_full_disk_cost_one_answer_and_nothing_else() {
    run(async {
        for seed in 0..60 {
            let mut random = Random(seed);
            let disk = Disk::default();
            let mut acknowledged = BTreeMap::new();
            let ledger = disk.open().unwrap();
            for _ in 0..6 {
                let trouble = if random.below(2) == 0 { Trouble::ShortWrite } else { Trouble::Full };
                disk.plan(random.below(60), trouble);
                let mut failures = 0;
                while !work(&ledger, &mut random, &mut acknowledged).await {
                    failures += 1;
                    assert!(failures < 3, "seed {seed}: one failure was planned");
                }
                check(&ledger, &mut acknowledged, seed);
            }
            ledger.close().await;
            check(&disk.open().unwrap(), &mut acknowledged, seed);
        }
    });
}

#[test]
fn a_failed_sync_ends_writing_for_good() {
    run(async {
        for seed in 0..20 {
            let mut random = Random(seed);
            let disk = Disk::default();
            let mut acknowledged = BTreeMap::new();
            let ledger = disk.open().unwrap();
            disk.plan(random.below(30), Trouble::Sync);
            let mut rounds = 0;
            while work(&ledger, &mut random, &mut acknowledged).await {
                rounds += 1;
                assert!(rounds < 10, "seed {seed}: the sync never failed");
            }
            let refused = ledger.commit(vec![put(&key("a", "x"), Expect::Any, 1)]).await;
            assert!(
                matches!(&refused, Err(CommitError::Unavailable(reason)) if reason.contains("restart")),
                "seed {seed}: {refused:?}"
            );
            assert!(ledger.trouble().is_some());
            ledger.close().await;
            disk.power_up(&mut random);
            check(&disk.open().unwrap(), &mut acknowledged, seed);
        }
    });
}
