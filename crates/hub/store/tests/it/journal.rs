//! The journal in front of the store: what a crash leaves in it, and what does not belong there.

use std::fs;
use std::path::Path;

use berth_hub_store::backend::{FILE_NAME, JOURNAL_NAME};
use berth_hub_store::{
    Backend, BackendError, JournaledBackend, Key, Operation, Record, RedbBackend, ResourceKey, Revision,
};
use redb::{Database, ReadableTable as _, TableDefinition};
use tempfile::TempDir;

/// Where frames begin.
pub(crate) const BLOCK_BYTES: usize = 4096;

pub(crate) fn record(revision: u64, bytes: usize) -> Record {
    let metadata = format!("{{\"resourceVersion\":\"{revision}\"}}");
    let json = format!("{{\"metadata\":{metadata},\"x\":\"{}\"}}", "x".repeat(bytes));
    Record {
        revision: Revision(revision),
        operation: Operation::Put,
        key: Key::new(&ResourceKey::new("", "pods"), "a", &format!("pod-{revision}")),
        created: Revision(revision),
        previous: Revision::ZERO,
        metadata: 12..12 + metadata.len(),
        json: json.into(),
    }
}

pub(crate) fn revisions(backend: &mut dyn Backend) -> Vec<u64> {
    let mut revisions = Vec::new();
    let visited = backend.read(Revision::ZERO, &mut |record| {
        revisions.push(record.revision.0);
        Ok(())
    });
    visited.unwrap();
    revisions
}

/// A store that was killed after each of `frames` was acknowledged.
pub(crate) fn killed(frames: &[&[Record]]) -> TempDir {
    let (running, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut backend = JournaledBackend::open(running.path()).unwrap();
    for frame in frames {
        backend.append(frame).unwrap();
    }
    for name in [FILE_NAME, JOURNAL_NAME] {
        fs::copy(running.path().join(name), left.path().join(name)).unwrap();
    }
    left
}

pub(crate) fn edit(directory: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = directory.join(JOURNAL_NAME);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn what_is_only_in_the_journal_is_there_on_the_next_opening() {
    let left =
        killed(&[&[record(1, 10)], &[record(2, 10_000), record(3, 0)], &[record(4, 3_900)], &[record(5, 1)]]);
    let store = fs::read(left.path().join(FILE_NAME)).unwrap();
    let mut backend = JournaledBackend::open(left.path()).unwrap();
    assert_eq!(revisions(&mut backend), [1, 2, 3, 4, 5]);
    assert_ne!(fs::read(left.path().join(FILE_NAME)).unwrap(), store, "it was only in the journal");
    drop(backend);
    let mut alone = RedbBackend::open(left.path()).unwrap();
    assert_eq!(revisions(&mut alone), [1, 2, 3, 4, 5], "the store is whole by itself once it was closed");
}

#[test]
fn a_journal_that_is_full_goes_on_in_the_store_and_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = JournaledBackend::open(directory.path()).unwrap();
    let length = fs::metadata(directory.path().join(JOURNAL_NAME)).unwrap().len();
    for revision in 1..=100 {
        backend.append(&[record(revision, 90_000)]).unwrap();
    }
    backend.append(&[record(101, 3 << 20)]).unwrap();
    assert_eq!(fs::metadata(directory.path().join(JOURNAL_NAME)).unwrap().len(), length);
    assert_eq!(revisions(&mut backend), (1..=101).collect::<Vec<_>>());
}

#[test]
fn a_frame_that_was_torn_was_never_acknowledged() {
    for cut in [0, 8, 20, 40, 100, 5_000] {
        let left = killed(&[&[record(1, 10)], &[record(2, 10)], &[record(3, 9_000)]]);
        edit(left.path(), |journal| journal[3 * BLOCK_BYTES + cut..].fill(0));
        let mut backend = JournaledBackend::open(left.path()).unwrap();
        assert_eq!(revisions(&mut backend), [1, 2], "cut after {cut} bytes");
        backend.append(&[record(3, 1)]).unwrap();
        assert_eq!(revisions(&mut backend), [1, 2, 3]);
    }
}

#[test]
fn damage_before_the_end_is_told() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)], &[record(3, 10)]]);
    edit(left.path(), |journal| journal[2 * BLOCK_BYTES + 60] ^= 1);
    let refused = JournaledBackend::open(left.path()).unwrap_err();
    assert!(matches!(&refused, BackendError::Corrupted { path, .. } if path.ends_with(JOURNAL_NAME)));
    assert!(
        refused.to_string().contains("it goes on after revision 2, and the store has come to 1"),
        "{refused}"
    );
}

#[test]
fn a_journal_that_is_ahead_of_its_store_is_told_and_one_that_is_behind_is_nothing() {
    let other = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    let directory = tempfile::tempdir().unwrap();
    drop(RedbBackend::open(directory.path()).unwrap());
    // As of a store that was put back from an earlier time, and of a version whose journals had no header.
    edit(other.path(), |journal| journal.drain(..2 * BLOCK_BYTES).for_each(drop));
    fs::copy(other.path().join(JOURNAL_NAME), directory.path().join(JOURNAL_NAME)).unwrap();
    let refused = JournaledBackend::open(directory.path()).unwrap_err();
    assert!(
        refused.to_string().contains("goes to revision 2, and the store has come to 0 without it"),
        "{refused}"
    );

    let mut store = RedbBackend::open(directory.path()).unwrap();
    store.compact(Revision(1_000), &[]).unwrap();
    drop(store);
    let mut backend = JournaledBackend::open(directory.path()).unwrap();
    assert!(revisions(&mut backend).is_empty());
    backend.append(&[record(1_001, 1)]).unwrap();
    assert_eq!(revisions(&mut backend), [1_001]);
}

#[test]
fn a_store_that_is_replaced_keeps_its_journal_beside_it() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    let source = killed(&[]);
    let (_, aside) = berth_hub_store::restore_over(&source.path().join(FILE_NAME), left.path()).unwrap();
    let aside = aside.unwrap();
    assert!(revisions(&mut JournaledBackend::open(left.path()).unwrap()).is_empty());

    let again = tempfile::tempdir().unwrap();
    fs::copy(&aside, again.path().join(FILE_NAME)).unwrap();
    fs::copy(format!("{}.log", aside.display()), again.path().join(JOURNAL_NAME)).unwrap();
    assert_eq!(revisions(&mut JournaledBackend::open(again.path()).unwrap()), [1, 2]);
}

#[test]
fn a_store_of_the_first_format_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = RedbBackend::open(directory.path()).unwrap();
    store.append(&[record(1, 1)]).unwrap();
    drop(store);
    let format = |set: Option<u64>| {
        let database = Database::open(directory.path().join(FILE_NAME)).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut meta = transaction.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap();
        if let Some(format) = set {
            meta.insert("format", format).unwrap();
        }
        let found = meta.get("format").unwrap().unwrap().value();
        drop(meta);
        transaction.commit().unwrap();
        found
    };
    assert_eq!(format(Some(1)), 1);
    assert_eq!(revisions(&mut JournaledBackend::open(directory.path()).unwrap()), [1]);
    assert_eq!(format(None), 3, "a version without journals refuses it from here on");
}
