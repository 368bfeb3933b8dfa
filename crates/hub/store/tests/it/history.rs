//! Lists at earlier revisions, compaction, and a file that does not grow for ever.

use std::time::Duration;

use berth_hub_store::{
    Expect, HistoryOptions, LedgerOptions, ListError, ListQuery, ResourceKey, Revision, WatchError, restore,
    restore_over,
};

use crate::support::{Disk, forgetful, key, names, pods, put, remove, run, set, value};

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn pages_come_from_one_snapshot() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            for name in ["a", "c", "e", "g"] {
                set(&ledger, &key("ns", name), 1).await;
            }
            let first = ledger.list(&pods(), &ListQuery { limit: Some(2), ..ListQuery::default() }).unwrap();
            assert_eq!((names(&first.entries), first.remaining), (vec!["ns/a".into(), "ns/c".into()], 2));
            // Everything that could disturb the second page.
            set(&ledger, &key("ns", "d"), 1).await;
            set(&ledger, &key("ns", "e"), 2).await;
            remove(&ledger, &key("ns", "g")).await.unwrap();
            set(&ledger, &key("ns", "z"), 1).await;
            remove(&ledger, &key("ns", "a")).await.unwrap();
            let rest =
                ListQuery { at: Some(first.revision), after: Some(("ns", "c")), ..ListQuery::default() };
            let second = ledger.list(&pods(), &rest).unwrap();
            assert_eq!((names(&second.entries), second.more()), (vec!["ns/e".into(), "ns/g".into()], false));
            assert_eq!(value(&second.entries[0]), 1);
            assert_eq!(second.revision, first.revision);
        }
    });
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    run(async {
        let ledger = Disk::file().open();
        for (namespace, name) in [("a", "x"), ("aa", "x"), ("b", "x"), ("b", "y"), ("c", "x")] {
            set(&ledger, &key(namespace, name), 1).await;
        }
        let b = ListQuery { namespace: Some("b"), ..ListQuery::default() };
        assert_eq!(names(&ledger.list(&pods(), &b).unwrap().entries), ["b/x", "b/y"]);
        for (after, expected) in
            [(("b", "x"), vec!["b/y"]), (("a", "zzz"), vec!["b/x", "b/y"]), (("c", "a"), vec![])]
        {
            let query = ListQuery { after: Some(after), ..b };
            assert_eq!(names(&ledger.list(&pods(), &query).unwrap().entries), expected);
        }
    });
}

#[test]
fn the_future_and_the_forgotten_past_cannot_be_listed() {
    run(async {
        let ledger = Disk::file().open_with(forgetful());
        set(&ledger, &key("a", "x"), 1).await;
        set(&ledger, &key("a", "x"), 2).await;
        let at = |revision| ListQuery { at: Some(Revision(revision)), ..ListQuery::default() };
        let future = ListError::Future { asked: Revision(3), current: Revision(2) };
        assert_eq!(ledger.list(&pods(), &at(3)).unwrap_err(), future);
        assert_eq!(ledger.list(&ResourceKey::new("", "none"), &at(3)).unwrap_err(), future);
        ledger.compact(Duration::ZERO).await.unwrap();
        assert_eq!(ledger.compact(5 * MINUTE).await.unwrap().floor, Revision(1));
        let gone = ListError::Compacted { asked: Revision(0), oldest: Revision(1) };
        assert_eq!(ledger.list(&pods(), &at(0)).unwrap_err(), gone);
        assert_eq!(ledger.list(&ResourceKey::new("", "none"), &at(0)).unwrap_err(), gone);
        let gone = WatchError::Compacted { asked: Revision(0), oldest: Revision(1) };
        assert_eq!(ledger.watch(&pods(), None, Revision(0)).unwrap_err(), gone);
        assert_eq!(
            value(&ledger.list(&pods(), &at(1)).unwrap().entries[0]),
            1,
            "the state at the floor is kept"
        );
    });
}

#[test]
fn what_is_not_needed_leaves_the_log_and_nothing_else_does() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open_with(forgetful());
            for round in 0..20 {
                for name in ["a", "b", "c"] {
                    set(&ledger, &key("ns", name), round).await;
                }
                remove(&ledger, &key("ns", "b")).await.unwrap();
            }
            ledger.compact(Duration::ZERO).await.unwrap();
            let floor = ledger.compact(10 * MINUTE).await.unwrap().floor;
            assert_eq!(floor, Revision(79), "all but the newest change");
            ledger.close().await;
            let mut records = Vec::new();
            let mut backend = disk.backend();
            assert_eq!(backend.floor().unwrap(), floor);
            backend
                .read(Revision::ZERO, &mut |record| {
                    records.push(record.revision.0);
                    Ok(())
                })
                .unwrap();
            // Every object as of the floor, then the deletion of b after it.
            assert_eq!(records, [77, 78, 79, 80]);
            drop(backend);
            let ledger = disk.open();
            let list = ledger.list(&pods(), &ListQuery::default()).unwrap();
            assert_eq!(
                (names(&list.entries), list.revision),
                (vec!["ns/a".into(), "ns/c".into()], Revision(80))
            );
        }
    });
}

#[test]
fn compaction_that_was_interrupted_is_finished_later() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            for value in 0..5 {
                set(&ledger, &key("a", "x"), value).await;
            }
            remove(&ledger, &key("a", "x")).await.unwrap();
            set(&ledger, &key("a", "y"), 9).await;
            ledger.close().await;
            // The floor is written, the first record is gone, then the process dies.
            disk.backend().compact(Revision(7), &[Revision(1)]).unwrap();
            let ledger = disk.open_with(forgetful());
            assert_eq!((ledger.revision(), ledger.floor()), (Revision(7), Revision(7)));
            assert!(ledger.get(&key("a", "x")).is_none());
            ledger.compact(Duration::ZERO).await.unwrap();
            ledger.close().await;
            let mut records = 0;
            disk.backend()
                .read(Revision::ZERO, &mut |_| {
                    records += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(records, 1);
        }
    });
}

#[test]
fn a_log_over_its_limit_forgets_without_being_asked() {
    run(async {
        let history = HistoryOptions { log_events_max: 100, ..HistoryOptions::default() };
        let disk = Disk::file();
        let ledger = disk.open_with(LedgerOptions { history, ..LedgerOptions::default() });
        for value in 0..500 {
            set(&ledger, &key("a", "x"), value).await;
        }
        assert!(ledger.floor() >= Revision(390), "{}", ledger.floor());
        ledger.close().await;
        assert_eq!(value(&disk.open().get(&key("a", "x")).unwrap()), 499);
    });
}

#[test]
fn memory_for_history_stays_within_its_budget() {
    run(async {
        let history =
            HistoryOptions { window_bytes: 60_000, window_bytes_total: 100_000, ..HistoryOptions::default() };
        let ledger = Disk::memory().open_with(LedgerOptions { history, ..LedgerOptions::default() });
        for value in 0..300 {
            for resource in ["a", "b", "c"] {
                let key = berth_hub_store::Key::new(&ResourceKey::new("", resource), "ns", "x");
                set(&ledger, &key, value).await;
            }
            let stats = ledger.stats();
            assert!(stats.iter().all(|stats| stats.event_bytes <= 60_000), "{stats:?}");
        }
        let total: usize = ledger.stats().iter().map(|stats| stats.event_bytes).sum();
        assert!(total <= 102_000, "{total}");
    });
}

#[test]
fn the_file_does_not_grow_under_churn() {
    run(async {
        let disk = Disk::file();
        let ledger = disk.open_with(forgetful());
        let blob = "x".repeat(2000);
        let mut sizes = Vec::new();
        for round in 0_u32..12 {
            for _ in 0..5 {
                let writes = (0..100)
                    .map(|index| {
                        let key = key("ns", &format!("pod-{index}"));
                        let mut write = put(&key, Expect::Any, 1);
                        let mut object = crate::support::object(&key, u64::from(round));
                        object["spec"]["blob"] = blob.clone().into();
                        write.change =
                            berth_hub_store::Change::Put(berth_hub_store::Draft::new(&object).unwrap());
                        write
                    })
                    .collect();
                ledger.commit(writes).await.unwrap();
            }
            ledger.compact(round * 6 * MINUTE).await.unwrap();
            sizes.push(ledger.size_bytes().await.unwrap());
        }
        let (early, late) = (sizes[4], sizes[11]);
        assert!(late <= early + early / 4, "{sizes:?}");
        // 100 live objects and at most two rounds of history, 2 kB each.
        assert!(late < 12 << 20, "{sizes:?}");
    });
}

#[test]
fn a_backup_made_while_writing_restores_with_later_revisions() {
    run(async {
        let disk = Disk::file();
        let ledger = disk.open();
        for index in 0..50 {
            set(&ledger, &key("a", &format!("pod-{index}")), index).await;
        }
        remove(&ledger, &key("a", "pod-7")).await.unwrap();
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("backup");
        let (backup, ()) = tokio::join!(ledger.backup(&file), async {
            for value in 0..20 {
                set(&ledger, &key("a", "pod-0"), value).await;
            }
        });
        backup.unwrap();

        let target = place.path().join("data");
        let restored = restore(&file, &target).unwrap();
        assert_eq!(restored.objects, 49);
        assert!(restored.backup_revision >= Revision(51) && restored.backup_revision <= Revision(71));
        assert!(restore(&file, &target).unwrap_err().to_string().contains("exists already"));
        let copy = crate::support::open_at(&target);
        assert_eq!(copy.revision(), restored.revision);
        assert!(restored.revision > ledger.revision());
        assert!(copy.watch(&pods(), None, ledger.revision()).is_err(), "clients of the old store list anew");
        assert_eq!(set(&copy, &key("a", "pod-7"), 1).await, restored.revision.next());
    });
}

#[test]
fn a_store_that_is_restored_over_is_kept_under_another_name() {
    run(async {
        let disk = Disk::file();
        let ledger = disk.open();
        set(&ledger, &key("a", "saved"), 1).await;
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("backup");
        ledger.backup(&file).await.unwrap();

        let target = place.path().join("data");
        assert_eq!(restore_over(&file, &target).unwrap().1, None, "there was no store");
        let open = crate::support::open_at(&target);
        assert!(restore_over(&file, &target).unwrap_err().to_string().contains("in use"));
        open.close().await;
        drop(open);
        let held = std::fs::read(target.join("hub.redb")).unwrap();
        let mut newest = Revision::ZERO;
        for number in 1..3 {
            let (restored, aside) = restore_over(&file, &target).unwrap();
            assert!(
                restored.revision > newest,
                "no revision is given out twice, however often a backup is restored"
            );
            newest = restored.revision;
            let aside = aside.unwrap();
            assert_eq!(restored.objects, 1);
            assert!(aside.ends_with(format!("hub.redb.replaced-{number}")), "{}", aside.display());
        }
        assert!(std::fs::read(target.join("hub.redb.replaced-1")).unwrap() == held, "byte for byte");
        std::fs::write(&file, b"no store").unwrap();
        assert!(restore_over(&file, &target).is_err());
        assert!(
            crate::support::open_at(&target).get(&key("a", "saved")).is_some(),
            "a bad backup changes nothing"
        );
    });
}

#[test]
fn what_is_no_store_is_not_restored() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("backup");
    for content in [Vec::new(), b"not a store".to_vec(), vec![7; 100_000]] {
        std::fs::write(&file, &content).unwrap();
        let target = place.path().join("data");
        let refused = restore(&file, &target);
        assert!(refused.is_err(), "{refused:?}");
        assert!(!target.join("hub.redb").exists());
    }
}
