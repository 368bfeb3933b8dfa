//! Many writers and readers at once: no lost update, no gap, nothing seen out of order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use berth_hub_store::{CommitError, Expect, LedgerOptions, ListQuery, Revision};

use crate::support::{Disk, key, pods, put, run, value};

const WRITERS: u64 = 16;
const INCREMENTS: u64 = 25;

#[test]
fn increments_of_many_writers_are_all_counted() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            let counter = key("a", "counter");
            ledger.commit(vec![put(&counter, Expect::Absent, 0)]).await.unwrap();
            let mut watch = ledger.watch(&pods(), None, Revision::ZERO).unwrap();
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| {
                    let (ledger, counter) = (ledger.clone(), counter.clone());
                    tokio::spawn(async move {
                        let mut done = 0;
                        while done < INCREMENTS {
                            let entry = ledger.get(&counter).unwrap();
                            let next = put(&counter, Expect::At(entry.revision()), value(&entry) + 1);
                            match ledger.commit(vec![next]).await {
                                Ok(written) => {
                                    done += 1;
                                    let seen = ledger.get(&counter).unwrap().revision();
                                    assert!(seen >= written[0].revision(), "own writes can be read");
                                }
                                Err(CommitError::Conflict { current: Some(current), .. }) => {
                                    assert!(current.revision() > entry.revision());
                                    assert!(ledger.get(&counter).unwrap().revision() >= current.revision());
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.await.unwrap();
            }
            assert_eq!(value(&ledger.get(&counter).unwrap()), WRITERS * INCREMENTS);
            for expected in 0..=WRITERS * INCREMENTS {
                let event = watch.try_next().unwrap().unwrap();
                assert_eq!((event.revision().0, value(event.entry())), (expected + 1, expected));
            }
        }
    });
}

#[test]
fn lists_and_watches_taken_during_writes_agree() {
    run(async {
        let ledger = Disk::memory().open();
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4_u64)
            .map(|writer| {
                let (ledger, stop) = (ledger.clone(), Arc::clone(&stop));
                tokio::spawn(async move {
                    for index in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        // Two objects that always change together.
                        let names = [format!("{writer}-left"), format!("{writer}-right")];
                        let writes =
                            names.iter().map(|name| put(&key("a", name), Expect::Any, index)).collect();
                        ledger.commit(writes).await.unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            let (list, mut watch) = ledger.list_and_watch(&pods(), Some("a"));
            for pair in list.entries.chunks(2) {
                assert_eq!(value(&pair[0]), value(&pair[1]), "a transaction is seen whole");
            }
            let newest = list.entries.iter().map(|entry| entry.revision()).max().unwrap_or_default();
            assert_eq!(newest, list.revision);
            assert_eq!(watch.next().await.unwrap().revision(), list.revision.next());
            let again = ListQuery { at: Some(list.revision), ..ListQuery::default() };
            assert_eq!(ledger.list(&pods(), &again).unwrap().entries, list.entries);
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[test]
fn a_full_queue_pushes_back() {
    run(async {
        let options = LedgerOptions { queue_transactions: 2, ..LedgerOptions::default() };
        let ledger = Disk::file().open_with(options);
        let commits: Vec<_> = (0..200)
            .map(|index| {
                let ledger = ledger.clone();
                let pod = key("a", &format!("{index}"));
                async move { ledger.commit(vec![put(&pod, Expect::Absent, 1)]).await }
            })
            .collect();
        let mut tasks = tokio::task::JoinSet::new();
        for commit in commits {
            tasks.spawn(commit);
        }
        let (mut done, mut full) = (0, 0);
        while let Some(outcome) = tasks.join_next().await {
            match outcome.unwrap() {
                Ok(_) => done += 1,
                Err(CommitError::Full) => full += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(ledger.list(&pods(), &ListQuery::default()).unwrap().entries.len(), done);
        assert!(full > 0 && done > 0, "{done} done, {full} refused");
    });
}

#[test]
fn dropping_the_last_handle_finishes_what_is_waiting() {
    run(async {
        let disk = Disk::file();
        let ledger = disk.open();
        let tasks: Vec<_> = (0..50)
            .map(|index| {
                let ledger = ledger.clone();
                tokio::spawn(async move {
                    ledger
                        .commit(vec![put(&key("a", &format!("{index}")), Expect::Absent, 1)])
                        .await
                        .unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        drop(ledger);
        assert_eq!(disk.open().revision(), Revision(50));
    });
}
