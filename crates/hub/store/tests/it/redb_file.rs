//! The file itself: who may open it, which versions, and what damage looks like.

use std::fs;

use berth_hub_store::backend::{FILE_NAME, FORMAT_VERSION};
use berth_hub_store::{Backend as _, BackendError, Ledger, LedgerOptions, RedbBackend, StoreError};
use redb::{Database, TableDefinition};

use crate::support::{key, open_at, run, set, value};

#[test]
fn a_second_opening_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let first = RedbBackend::open(directory.path()).unwrap();
    let refused = RedbBackend::open(directory.path()).unwrap_err();
    assert!(matches!(refused, BackendError::InUse { .. }), "{refused:?}");
    assert!(refused.to_string().contains("stop that process"), "{refused}");
    assert!(berth_hub_store::restore(&directory.path().join("x"), directory.path()).is_err());
    drop(first);
    RedbBackend::open(directory.path()).unwrap();
}

#[test]
fn whoever_is_about_to_end_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let first = RedbBackend::open(directory.path()).unwrap();
    let (begins, begun) = std::sync::mpsc::channel();
    let path = directory.path().to_owned();
    let second = std::thread::spawn(move || {
        begins.send(()).unwrap();
        RedbBackend::open(&path).map(drop)
    });
    begun.recv().unwrap();
    drop(first);
    second.join().unwrap().unwrap();
}

#[test]
fn a_newer_format_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    drop(RedbBackend::open(directory.path()).unwrap());
    let database = Database::open(directory.path().join(FILE_NAME)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(TableDefinition::<&str, u64>::new("meta"))
        .unwrap()
        .insert("format", FORMAT_VERSION + 1)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = RedbBackend::open(directory.path()).unwrap_err();
    assert!(matches!(refused, BackendError::Newer { found: 4, known: 3, .. }), "{refused:?}");
    assert!(refused.to_string().contains("run the newer version"), "{refused}");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::create(directory.path().join(FILE_NAME)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, u64>::new("theirs")).unwrap().insert(1, 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = RedbBackend::open(directory.path()).unwrap_err();
    assert!(refused.to_string().contains("another program"), "{refused}");
}

#[test]
fn an_interrupted_creation_does_not_stand_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("hub.redb.partial"), b"half a file").unwrap();
    RedbBackend::open(directory.path()).unwrap();
}

#[test]
fn an_emptied_store_is_damaged_and_not_new() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    drop(RedbBackend::open(directory.path()).unwrap());
    fs::write(&path, b"").unwrap();
    let refused = RedbBackend::open(directory.path()).unwrap_err();
    assert!(matches!(refused, BackendError::Corrupted { .. }), "{refused:?}");
    assert!(refused.to_string().contains("it is empty"), "{refused}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "nothing is written over it");
}

#[test]
fn a_store_that_is_emptied_while_it_is_open_is_not_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = RedbBackend::open(directory.path()).unwrap();
    fs::write(directory.path().join(FILE_NAME), b"").unwrap();
    let refused = backend.recover().unwrap_err();
    assert!(refused.to_string().contains("empty") || refused.to_string().contains("damaged"), "{refused}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let ledger = open_at(directory.path());
        ledger.backup(&directory.path().join("backup")).await.unwrap();
        for name in [FILE_NAME, "hub.lock", "backup"] {
            let mode = fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    });
}

/// Flips bytes all over a store: it opens with the right content, or says that it is damaged. It never panics, and never
/// shows an object that was not written.
#[test]
fn damage_is_told_and_never_shown() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        let ledger = open_at(directory.path());
        for index in 0..40 {
            set(&ledger, &key("a", &format!("pod-{index}")), index).await;
        }
        ledger.close().await;
        let whole = fs::read(&path).unwrap();
        let mut told = 0;
        for round in 0..120_usize {
            let mut bytes = whole.clone();
            if round % 10 == 0 {
                bytes.truncate(whole.len() * (round + 1) / 130);
            } else {
                let length = bytes.len();
                for byte in &mut bytes[round * length / 120..][..64] {
                    *byte ^= 0x5a;
                }
            }
            fs::write(&path, &bytes).unwrap();
            let opened = RedbBackend::open(directory.path())
                .map_err(StoreError::from)
                .and_then(|backend| Ledger::open(Box::new(backend), LedgerOptions::default()));
            match opened {
                Ok(ledger) => {
                    for index in 0..40 {
                        if let Some(entry) = ledger.get(&key("a", &format!("pod-{index}"))) {
                            assert_eq!(value(&entry), index);
                        }
                    }
                }
                Err(error) => {
                    told += 1;
                    assert!(error.to_string().contains("backup"), "{error}");
                }
            }
        }
        assert!(told > 10, "{told}");
    });
}
