//! A store or a journal that is gone, damaged or of another hub: nothing acknowledged goes without a word, and no revision
//! is given out twice.

use std::fs;
use std::path::{Path, PathBuf};

use berth_hub_store::backend::{FILE_NAME, JOURNAL_NAME};
use berth_hub_store::{Backend, BackendError, JournaledBackend, Revision, restore, restore_over};
use redb::{Database, TableDefinition};
use tempfile::TempDir;

use crate::journal::{BLOCK_BYTES, edit, killed, record, revisions};

/// Far above what a restored backup leaves out.
const HIGH: u64 = 7_000_000_000;

/// Damage to the bytes of a journal.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

fn refusal(directory: &Path) -> BackendError {
    JournaledBackend::open(directory).map(|_| "it was opened").unwrap_err()
}

/// A backup with one record.
fn backup() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = JournaledBackend::open(directory.path()).unwrap();
    backend.append(&[record(1, 10)]).unwrap();
    let path = directory.path().join("backup");
    backend.snapshot().unwrap().write_to(&path).unwrap();
    (directory, path)
}

/// A store that was killed at revisions that no backup knows.
fn killed_high() -> TempDir {
    let (running, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut backend = JournaledBackend::open(running.path()).unwrap();
    backend.compact(Revision(HIGH), &[]).unwrap();
    backend.append(&[record(HIGH + 1, 10)]).unwrap();
    for name in [FILE_NAME, JOURNAL_NAME] {
        fs::copy(running.path().join(name), left.path().join(name)).unwrap();
    }
    left
}

fn set_meta(directory: &Path, change: impl FnOnce(&mut redb::Table<'_, &'static str, u64>)) {
    let database = Database::open(directory.join(FILE_NAME)).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&mut transaction.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap());
    transaction.commit().unwrap();
}

/// Makes of a killed store what the second format left: no marks, and frames from the first block on.
fn as_second_format(directory: &Path) {
    set_meta(directory, |meta| {
        meta.insert("format", 2).unwrap();
        meta.remove("journal").unwrap();
        meta.remove("taken").unwrap();
    });
    edit(directory, |journal| {
        journal.drain(..BLOCK_BYTES);
        journal.extend([0; BLOCK_BYTES]);
    });
}

#[test]
fn a_restoration_where_the_store_is_lost_takes_the_old_journal_away() {
    let (_source, backup) = backup();
    let left = killed(&[&[record(1, 10)], &[record(2, 10)], &[record(3, 10)]]);
    let journal = fs::read(left.path().join(JOURNAL_NAME)).unwrap();
    fs::remove_file(left.path().join(FILE_NAME)).unwrap();
    let restored = restore(&backup, left.path()).unwrap();
    assert!(!left.path().join(JOURNAL_NAME).exists());
    assert!(fs::read(left.path().join("hub.redb.replaced-1.log")).unwrap() == journal, "it is kept");
    let mut backend = JournaledBackend::open(left.path()).unwrap();
    assert_eq!(revisions(&mut backend), [1]);
    assert_eq!(backend.floor().unwrap(), restored.revision);
}

#[test]
fn a_restoration_goes_above_the_journal_of_a_store_that_cannot_be_read() {
    let (_source, backup) = backup();
    for (replace, damage) in [(true, Some(&b"damaged"[..])), (true, Some(b"")), (true, None), (false, None)] {
        let left = killed_high();
        match damage {
            Some(bytes) => fs::write(left.path().join(FILE_NAME), bytes).unwrap(),
            None => fs::remove_file(left.path().join(FILE_NAME)).unwrap(),
        }
        let restored = if replace {
            restore_over(&backup, left.path()).unwrap().0
        } else {
            restore(&backup, left.path()).unwrap()
        };
        assert!(restored.revision > Revision(HIGH + 1), "{}", restored.revision);
        let mut backend = JournaledBackend::open(left.path()).unwrap();
        assert_eq!(revisions(&mut backend), [1]);
        backend.append(&[record(restored.revision.0 + 1, 1)]).unwrap();
    }
}

#[test]
fn a_restoration_goes_above_a_journal_to_which_nothing_was_written() {
    let (_source, backup) = backup();
    let target = tempfile::tempdir().unwrap();
    let first = restore(&backup, target.path()).unwrap();
    drop(JournaledBackend::open(target.path()).unwrap());
    fs::remove_file(target.path().join(FILE_NAME)).unwrap();
    assert!(restore(&backup, target.path()).unwrap().revision > first.revision);
}

#[test]
fn a_restoration_that_was_cut_short_is_repeated_above_what_it_had_put_aside() {
    let (_source, backup) = backup();
    let left = killed_high();
    fs::rename(left.path().join(JOURNAL_NAME), left.path().join("hub.redb.replaced-1.log")).unwrap();
    fs::remove_file(left.path().join(FILE_NAME)).unwrap();
    assert!(restore(&backup, left.path()).unwrap().revision > Revision(HIGH + 1));
}

#[test]
fn a_restoration_that_was_cut_short_leaves_the_old_store_whole() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    fs::hard_link(left.path().join(FILE_NAME), left.path().join("hub.redb.replaced-1")).unwrap();
    fs::rename(left.path().join(JOURNAL_NAME), left.path().join("hub.redb.replaced-1.log")).unwrap();
    assert_eq!(revisions(&mut JournaledBackend::open(left.path()).unwrap()), [1, 2]);
    assert!(left.path().join(JOURNAL_NAME).exists());
    assert!(
        !left.path().join("hub.redb.replaced-1.log").exists(),
        "no old copy is left to be taken for it later"
    );
}

#[test]
fn a_journal_beside_a_copy_of_its_store_is_not_taken_for_the_newest() {
    let left = killed(&[&[record(1, 10)]]);
    fs::copy(left.path().join(FILE_NAME), left.path().join("hub.redb.replaced-1")).unwrap();
    fs::rename(left.path().join(JOURNAL_NAME), left.path().join("hub.redb.replaced-1.log")).unwrap();
    let refused = refusal(left.path()).to_string();
    assert!(refused.contains("hub.log is missing"), "{refused}");
}

#[test]
fn a_restoration_that_fails_leaves_the_journal_where_it_was() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    let bad = left.path().join("bad");
    fs::write(&bad, b"redb\x1a\x0a\xa9\x0d\x0a and nothing else").unwrap();
    restore_over(&bad, left.path()).unwrap_err();
    assert_eq!(revisions(&mut JournaledBackend::open(left.path()).unwrap()), [1, 2]);
}

#[test]
fn a_journal_that_is_missing_after_a_crash_is_told() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    fs::remove_file(left.path().join(JOURNAL_NAME)).unwrap();
    for _ in 0..2 {
        let refused = refusal(left.path()).to_string();
        assert!(refused.contains("hub.log is missing"), "{refused}");
        assert!(refused.contains("after revision 0 may be lost"), "{refused}");
        assert!(refused.contains("restore a backup with `berth hub restore --replace`"), "{refused}");
        assert!(!left.path().join(JOURNAL_NAME).exists(), "a refusal makes nothing");
    }
    let (_source, backup) = backup();
    restore_over(&backup, left.path()).unwrap();
    assert_eq!(revisions(&mut JournaledBackend::open(left.path()).unwrap()), [1]);
}

#[test]
fn a_journal_whose_beginning_is_lost_is_told_after_a_crash() {
    let other = killed(&[&[record(1, 10)]]);
    let other = fs::read(other.path().join(JOURNAL_NAME)).unwrap();
    let changes: [(&str, Change<'_>); 6] = [
        ("its first bytes are overwritten", &|journal| journal[..16].fill(b'x')),
        ("its first two blocks are overwritten", &|journal| journal[..2 * BLOCK_BYTES].fill(0)),
        ("it is all zeros", &|journal| journal.fill(0)),
        ("it is empty", &Vec::clear),
        ("it is cut", &|journal| journal.truncate(2 * BLOCK_BYTES)),
        ("it is of another store", &|journal| journal.clone_from(&other)),
    ];
    for (what, change) in changes {
        let left = killed(&[&[record(1, 10)]]);
        edit(left.path(), change);
        let found = fs::read(left.path().join(JOURNAL_NAME)).unwrap();
        let refused = refusal(left.path()).to_string();
        assert!(refused.contains("hub.log"), "{what}: {refused}");
        assert!(refused.contains("restore a backup"), "{what}: {refused}");
        assert!(!refused.contains("move it away"), "{what}: {refused}");
        assert!(
            fs::read(left.path().join(JOURNAL_NAME)).unwrap() == found,
            "{what}: a refusal changes nothing"
        );
    }
}

#[test]
fn after_a_clean_stop_the_journal_is_not_needed() {
    let directory = tempfile::tempdir().unwrap();
    for round in 1..4 {
        let mut backend = JournaledBackend::open(directory.path()).unwrap();
        backend.append(&[record(round, 10)]).unwrap();
        drop(backend);
        match round {
            1 => fs::remove_file(directory.path().join(JOURNAL_NAME)).unwrap(),
            2 => edit(directory.path(), Vec::clear),
            _ => edit(directory.path(), |journal| journal[..16].fill(b'x')),
        }
    }
    assert_eq!(revisions(&mut JournaledBackend::open(directory.path()).unwrap()), [1, 2, 3]);
}

#[test]
fn a_journal_without_its_store_is_not_taken_for_a_new_hub() {
    let left = killed(&[&[record(1, 10)]]);
    fs::remove_file(left.path().join(FILE_NAME)).unwrap();
    for _ in 0..2 {
        let refused = refusal(left.path()).to_string();
        assert!(refused.contains("hub.redb is missing"), "{refused}");
        assert!(refused.contains("restore a backup"), "{refused}");
        assert!(!left.path().join(FILE_NAME).exists());
    }
}

#[test]
fn a_journal_that_a_crash_left_half_made_is_made_anew() {
    for length in [0, 10, BLOCK_BYTES, BLOCK_BYTES * 3] {
        let directory = tempfile::tempdir().unwrap();
        drop(berth_hub_store::RedbBackend::open(directory.path()).unwrap());
        // The head of a journal of which the store was not told yet, or a part of it.
        let other = killed(&[]);
        let head = fs::read(other.path().join(JOURNAL_NAME)).unwrap();
        fs::write(directory.path().join(JOURNAL_NAME), &head[..length]).unwrap();
        let mut backend = JournaledBackend::open(directory.path()).unwrap();
        backend.append(&[record(1, 10)]).unwrap();
        assert_eq!(revisions(&mut backend), [1], "{length}");
    }
}

#[test]
fn a_store_of_the_second_format_is_taken_over_with_its_journal() {
    let left = killed(&[&[record(1, 10)], &[record(2, 10)]]);
    as_second_format(left.path());
    let mut backend = JournaledBackend::open(left.path()).unwrap();
    assert_eq!(revisions(&mut backend), [1, 2]);
    backend.append(&[record(3, 10)]).unwrap();
    let again = tempfile::tempdir().unwrap();
    for name in [FILE_NAME, JOURNAL_NAME] {
        fs::copy(left.path().join(name), again.path().join(name)).unwrap();
    }
    drop(backend);
    assert_eq!(revisions(&mut JournaledBackend::open(again.path()).unwrap()), [1, 2, 3]);
}

#[test]
fn a_store_of_the_second_format_that_has_been_written_to_needs_its_journal() {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = JournaledBackend::open(directory.path()).unwrap();
    backend.append(&[record(1, 10)]).unwrap();
    drop(backend);
    as_second_format(directory.path());
    let journal = directory.path().join(JOURNAL_NAME);
    fs::rename(&journal, directory.path().join("elsewhere")).unwrap();
    let refused = refusal(directory.path()).to_string();
    assert!(refused.contains("hub.log is missing"), "{refused}");
    fs::write(&journal, b"").unwrap();
    let refused = refusal(directory.path()).to_string();
    assert!(refused.contains("hub.log is cut short"), "{refused}");
    fs::rename(directory.path().join("elsewhere"), &journal).unwrap();
    assert_eq!(revisions(&mut JournaledBackend::open(directory.path()).unwrap()), [1]);
}
