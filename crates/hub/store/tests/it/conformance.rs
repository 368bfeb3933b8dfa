//! What every backend promises, run for each of them.

use berth_hub_store::{
    Backend, BackendError, Check, CommitError, Expect, Key, Ledger, LedgerOptions, ListQuery, MemoryBackend,
    Operation, Record, ResourceKey, Revision,
};

use crate::support::{Disk, delete, key, names, object, open_at, pods, put, run, set, value};

fn record(revision: u64, previous: u64, operation: Operation) -> Record {
    let json = format!("{{\"metadata\":{{\"resourceVersion\":\"{revision}\"}}}}");
    Record {
        revision: Revision(revision),
        operation,
        key: Key::new(&ResourceKey::new("apps", "deployments"), "ns", "name"),
        created: Revision(1),
        previous: Revision(previous),
        metadata: 12..json.len() - 1,
        json: json.into(),
    }
}

fn all(backend: &mut dyn Backend, after: u64) -> Vec<Record> {
    let mut records = Vec::new();
    backend
        .read(Revision(after), &mut |record| {
            records.push(record);
            Ok(())
        })
        .unwrap();
    records
}

#[test]
fn a_new_log_is_empty() {
    for disk in Disk::both() {
        let mut backend = disk.backend();
        assert_eq!(backend.floor().unwrap(), Revision::ZERO);
        assert!(all(&mut *backend, 0).is_empty());
    }
}

#[test]
fn records_read_back_in_order_also_after_opening_again() {
    for disk in Disk::both() {
        let records =
            [record(1, 0, Operation::Put), record(2, 1, Operation::Put), record(3, 2, Operation::Delete)];
        let mut backend = disk.backend();
        backend.append(&records[..2]).unwrap();
        backend.append(&records[2..]).unwrap();
        assert_eq!(all(&mut *backend, 0), records);
        assert_eq!(all(&mut *backend, 2), records[2..]);
        drop(backend);
        let mut backend = disk.backend();
        assert_eq!(all(&mut *backend, 0), records);
        backend.recover().unwrap();
        assert_eq!(all(&mut *backend, 1), records[1..]);
    }
}

#[test]
fn a_visitor_that_fails_ends_the_walk() {
    for disk in Disk::both() {
        let mut backend = disk.backend();
        backend.append(&[record(1, 0, Operation::Put), record(2, 1, Operation::Put)]).unwrap();
        let mut seen = 0;
        let error = backend.read(Revision::ZERO, &mut |_| {
            seen += 1;
            Err(BackendError::Failed("enough".into()))
        });
        assert_eq!((error, seen), (Err(BackendError::Failed("enough".into())), 1));
    }
}

#[test]
fn compaction_raises_the_floor_and_drops_what_it_is_told() {
    for disk in Disk::both() {
        let mut backend = disk.backend();
        backend.append(&[record(1, 0, Operation::Put), record(2, 1, Operation::Put)]).unwrap();
        backend.compact(Revision(2), &[Revision(1), Revision(77)]).unwrap();
        backend.compact(Revision(1), &[]).unwrap();
        drop(backend);
        let mut backend = disk.backend();
        assert_eq!(backend.floor().unwrap(), Revision(2), "the floor never goes back");
        assert_eq!(all(&mut *backend, 0), [record(2, 1, Operation::Put)]);
    }
}

#[test]
fn a_snapshot_is_the_log_of_its_moment_and_a_store_of_its_own() {
    for disk in Disk::both() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hub.redb");
        let mut backend = disk.backend();
        backend.append(&[record(1, 0, Operation::Put), record(2, 1, Operation::Put)]).unwrap();
        let snapshot = backend.snapshot().unwrap();
        backend.append(&[record(3, 2, Operation::Put)]).unwrap();
        snapshot.write_to(&path).unwrap();
        let again = backend.snapshot().unwrap().write_to(&path);
        assert!(matches!(again, Err(BackendError::Exists { .. })), "{again:?}");
        assert_eq!(open_at(directory.path()).revision(), Revision(2));
    }
}

#[test]
fn an_answered_write_can_be_read_and_survives() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            let pod = key("a", "one");
            assert_eq!(set(&ledger, &pod, 7).await, Revision(1));
            assert_eq!(value(&ledger.get(&pod).unwrap()), 7);
            assert_eq!(set(&ledger, &pod, 8).await, Revision(2));
            ledger.close().await;
            let ledger = disk.open();
            let entry = ledger.get(&pod).unwrap();
            assert_eq!((value(&entry), entry.revision(), entry.created()), (8, Revision(2), Revision(1)));
            assert_eq!(entry.uid(), "uid-of-one");
            assert_eq!(entry.label("app"), Some("x"));
            assert_eq!(ledger.revision(), Revision(2));
            assert_eq!(set(&ledger, &pod, 9).await, Revision(3));
        }
    });
}

#[test]
fn a_write_happens_only_in_the_expected_state() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            let pod = key("a", "one");
            for expect in [Expect::Present, Expect::At(Revision(1))] {
                let refused = ledger.commit(vec![put(&pod, expect, 1)]).await;
                assert!(
                    matches!(refused, Err(CommitError::Conflict { index: 0, current: None })),
                    "{refused:?}"
                );
            }
            for expect in [Expect::Any, Expect::Present, Expect::Absent] {
                let refused = ledger.commit(vec![delete(&pod, expect)]).await;
                assert!(
                    matches!(refused, Err(CommitError::Conflict { index: 0, current: None })),
                    "{refused:?}"
                );
            }
            ledger.commit(vec![put(&pod, Expect::Absent, 1)]).await.unwrap();
            for expect in [Expect::Absent, Expect::At(Revision(9))] {
                match ledger.commit(vec![put(&pod, expect, 2)]).await {
                    Err(CommitError::Conflict { index: 0, current: Some(current) }) => {
                        assert_eq!(value(&current), 1);
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(ledger.revision(), Revision(1), "a conflict takes no revision");
            ledger.commit(vec![put(&pod, Expect::At(Revision(1)), 3)]).await.unwrap();
            ledger.commit(vec![delete(&pod, Expect::At(Revision(2)))]).await.unwrap();
            assert!(ledger.get(&pod).is_none());
            ledger.commit(vec![put(&pod, Expect::Absent, 4)]).await.unwrap();
            assert_eq!(ledger.get(&pod).unwrap().created(), Revision(4));
        }
    });
}

#[test]
fn a_transaction_is_written_whole_or_not_at_all() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            let (one, two, three) = (key("a", "one"), key("a", "two"), key("b", "three"));
            let entries = ledger
                .commit(vec![
                    put(&one, Expect::Absent, 1),
                    put(&two, Expect::Absent, 2),
                    put(&one, Expect::Present, 3),
                    delete(&two, Expect::At(Revision(2))),
                ])
                .await
                .unwrap();
            assert_eq!(entries.iter().map(|entry| entry.revision().0).collect::<Vec<_>>(), [1, 2, 3, 4]);
            let refused =
                ledger.commit(vec![put(&three, Expect::Absent, 1), put(&one, Expect::Absent, 9)]).await;
            assert!(
                matches!(refused, Err(CommitError::Conflict { index: 1, current: Some(_) })),
                "{refused:?}"
            );
            let check = |expect| vec![Check { key: two.clone(), expect }];
            let refused =
                ledger.commit_if(check(Expect::Present), vec![put(&three, Expect::Absent, 1)]).await;
            assert!(matches!(refused, Err(CommitError::Conflict { index: 0, current: None })), "{refused:?}");
            assert!(ledger.get(&three).is_none());
            ledger.commit_if(check(Expect::Absent), vec![put(&three, Expect::Absent, 1)]).await.unwrap();
            ledger.close().await;
            let ledger = disk.open();
            let list = ledger.list(&pods(), &ListQuery::default()).unwrap();
            assert_eq!(names(&list.entries), ["a/one", "b/three"]);
            assert_eq!(value(&list.entries[0]), 3);
        }
    });
}

#[test]
fn a_closed_ledger_refuses_writes_and_still_reads() {
    run(async {
        let ledger = Disk::file().open();
        set(&ledger, &key("a", "one"), 1).await;
        ledger.close().await;
        let refused = ledger.commit(vec![put(&key("a", "two"), Expect::Any, 1)]).await;
        assert!(matches!(refused, Err(CommitError::Closed)), "{refused:?}");
        assert!(ledger.get(&key("a", "one")).is_some());
        ledger.close().await;
    });
}

#[test]
fn owners_and_namespaces_are_indexed_through_changes_and_openings() {
    run(async {
        for disk in Disk::both() {
            let mut ledger = disk.open();
            let owned = |name: &str, owners: &[&str]| {
                let key = key("a", name);
                let mut object = object(&key, 1);
                let owners: Vec<_> =
                    owners.iter().map(|uid| serde_json::json!({"uid": uid, "name": "o"})).collect();
                object["metadata"]["ownerReferences"] = owners.into();
                let draft = berth_hub_store::Draft::new(&object).unwrap();
                berth_hub_store::Write {
                    key,
                    expect: Expect::Any,
                    change: berth_hub_store::Change::Put(draft),
                }
            };
            ledger.commit(vec![owned("x", &["u1", "u2"]), owned("y", &["u1"])]).await.unwrap();
            ledger.commit(vec![owned("x", &["u2"]), put(&key("b", "z"), Expect::Any, 1)]).await.unwrap();
            for _ in 0..2 {
                assert_eq!(ledger.dependents("u1"), [key("a", "y")]);
                assert_eq!(ledger.dependents("u2"), [key("a", "x")]);
                assert_eq!(names(&ledger.in_namespace("a")), ["a/x", "a/y"]);
                ledger.close().await;
                ledger = disk.open();
            }
            ledger.commit(vec![delete(&key("a", "x"), Expect::Any)]).await.unwrap();
            assert!(ledger.dependents("u2").is_empty());
        }
    });
}

#[test]
fn too_much_at_once_is_refused_and_not_queued() {
    run(async {
        let options = LedgerOptions { queue_bytes: 4096, ..LedgerOptions::default() };
        let ledger = Ledger::open(Box::new(MemoryBackend::new()), options).unwrap();
        let pod = key("a", "one");
        let many = (0..20).map(|_| put(&pod, Expect::Any, 1)).collect();
        assert!(matches!(ledger.commit(many).await, Err(CommitError::TooLarge { writes: 20, .. })));
        set(&ledger, &pod, 1).await;
    });
}
