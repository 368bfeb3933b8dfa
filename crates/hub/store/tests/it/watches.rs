//! Watches: no gap, no duplicate, no waiting for the slow.

use std::sync::Arc;

use berth_hub_store::{
    Event, EventKind, Expect, HistoryOptions, Key, Ledger, LedgerOptions, ResourceKey, Revision, Watch,
    WatchEnd,
};

use crate::support::{Disk, delete, forgetful, key, pods, put, remove, run, set, value};

fn drain(watch: &mut Watch) -> Vec<Arc<Event>> {
    std::iter::from_fn(|| watch.try_next().unwrap()).collect()
}

fn revisions(events: &[Arc<Event>]) -> Vec<u64> {
    events.iter().map(|event| event.revision().0).collect()
}

async fn three_changes(ledger: &Ledger) {
    set(ledger, &key("a", "x"), 1).await;
    set(ledger, &key("a", "x"), 2).await;
    remove(ledger, &key("a", "x")).await.unwrap();
}

#[test]
fn a_watch_tells_what_happened_and_what_was_before() {
    run(async {
        for disk in Disk::both() {
            let mut ledger = disk.open();
            three_changes(&ledger).await;
            // The second time the changes come from the log of an earlier process.
            for _ in 0..2 {
                let events = drain(&mut ledger.watch(&pods(), None, Revision::ZERO).unwrap());
                let kinds: Vec<_> = events.iter().map(|event| event.kind()).collect();
                assert_eq!(kinds, [EventKind::Added, EventKind::Modified, EventKind::Deleted]);
                let before: Vec<_> =
                    events.iter().map(|event| event.previous().map(|entry| value(entry))).collect();
                assert_eq!(before, [None, Some(1), Some(2)]);
                assert_eq!(
                    value(events[2].entry()),
                    0,
                    "the last state carries the revision of the deletion"
                );
                assert_eq!(events[2].entry().created(), Revision(1));
                ledger.close().await;
                ledger = disk.open();
            }
        }
    });
}

#[test]
fn a_watch_resumes_over_a_restart_without_a_gap_or_a_duplicate() {
    run(async {
        for disk in Disk::both() {
            let ledger = disk.open();
            let mut watch = ledger.watch_from_now(&pods(), None);
            for value in 0..10 {
                set(&ledger, &key("a", "x"), value).await;
            }
            let mut seen: Vec<u64> =
                (0..4).map(|_| watch.try_next().unwrap().unwrap().revision().0).collect();
            let last = Revision(*seen.last().unwrap());
            drop(watch);
            ledger.close().await;
            let ledger = disk.open();
            set(&ledger, &key("a", "x"), 10).await;
            seen.extend(revisions(&drain(&mut ledger.watch(&pods(), None, last).unwrap())));
            assert_eq!(seen, (1..=11).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_list_and_its_watch_fit_together() {
    run(async {
        let ledger = Disk::memory().open();
        set(&ledger, &key("a", "x"), 1).await;
        set(&ledger, &key("b", "y"), 1).await;
        let (list, mut watch) = ledger.list_and_watch(&pods(), Some("a"));
        assert_eq!((list.entries.len(), list.revision), (1, Revision(2)));
        set(&ledger, &key("b", "y"), 2).await;
        set(&ledger, &key("a", "x"), 2).await;
        assert_eq!(revisions(&drain(&mut watch)), [4]);
    });
}

#[test]
fn a_watch_from_the_future_is_silent_until_then() {
    run(async {
        let ledger = Disk::memory().open();
        let mut watch = ledger.watch(&pods(), None, Revision(2)).unwrap();
        assert_eq!(watch.progress(), Revision(2));
        three_changes(&ledger).await;
        assert_eq!(revisions(&drain(&mut watch)), [3]);
    });
}

#[test]
fn progress_of_a_quiet_watch_follows_the_whole_store() {
    run(async {
        let ledger = Disk::memory().open();
        let mut quiet = ledger.watch_from_now(&ResourceKey::new("", "secrets"), None);
        let mut elsewhere = ledger.watch_from_now(&pods(), Some("b"));
        let mut busy = ledger.watch_from_now(&pods(), None);
        three_changes(&ledger).await;
        assert_eq!(quiet.progress(), Revision(3));
        assert_eq!(elsewhere.progress(), Revision(3));
        assert_eq!(busy.progress(), Revision(0), "it has not seen the changes yet");
        busy.try_next().unwrap();
        assert_eq!(busy.progress(), Revision(1));
        drain(&mut busy);
        assert_eq!(busy.progress(), Revision(3));
    });
}

fn narrow(window_events: usize) -> LedgerOptions {
    LedgerOptions {
        history: HistoryOptions { window_events, ..HistoryOptions::default() },
        ..LedgerOptions::default()
    }
}

#[test]
fn a_slow_watcher_is_cut_and_nobody_waits_for_it() {
    run(async {
        let ledger = Disk::memory().open_with(narrow(10));
        let mut slow = ledger.watch_from_now(&pods(), None);
        let mut slow_in_a = ledger.watch_from_now(&pods(), Some("a"));
        for value in 0..20 {
            set(&ledger, &key("a", "x"), value).await;
        }
        let cut = WatchEnd::Lagged { seen: Revision(0), oldest: Revision(10) };
        assert_eq!(slow.next().await.unwrap_err(), cut);
        assert_eq!(slow_in_a.next().await.unwrap_err(), cut);
    });
}

#[test]
fn a_watcher_of_a_quiet_namespace_is_not_cut_by_a_busy_one() {
    run(async {
        let ledger = Disk::memory().open_with(narrow(10));
        set(&ledger, &key("quiet", "x"), 0).await;
        let mut quiet = ledger.watch_from_now(&pods(), Some("quiet"));
        for value in 0..50 {
            set(&ledger, &key("busy", "x"), value).await;
        }
        assert_eq!(quiet.try_next().unwrap().map(|event| event.revision()), None);
        set(&ledger, &key("quiet", "x"), 1).await;
        assert_eq!(quiet.next().await.unwrap().revision(), Revision(52));
        assert_eq!(quiet.progress(), Revision(52));
    });
}

#[test]
fn compaction_cuts_only_who_has_not_read_what_is_gone() {
    run(async {
        let ledger = Disk::memory().open_with(forgetful());
        let mut slow = ledger.watch_from_now(&pods(), None);
        let mut swift = ledger.watch_from_now(&pods(), None);
        three_changes(&ledger).await;
        drain(&mut swift);
        ledger.compact(std::time::Duration::ZERO).await.unwrap();
        ledger.compact(std::time::Duration::from_hours(1)).await.unwrap();
        assert!(matches!(slow.next().await, Err(WatchEnd::Lagged { .. })));
        set(&ledger, &key("a", "y"), 1).await;
        assert_eq!(swift.next().await.unwrap().revision(), Revision(4));
    });
}

#[test]
fn a_line_is_encoded_once_for_all_watchers() {
    run(async {
        let ledger = Disk::memory().open();
        let (mut one, mut two) =
            (ledger.watch_from_now(&pods(), None), ledger.watch_from_now(&pods(), Some("a")));
        set(&ledger, &key("a", "x"), 1).await;
        let (first, second) = (one.next().await.unwrap(), two.next().await.unwrap());
        let line = first.line(EventKind::Added, |entry| entry.json().slice(1..));
        let again = second.line(EventKind::Added, |_| unreachable!("it is made already"));
        assert_eq!(line.as_ptr(), again.as_ptr());
        let other = first.line(EventKind::Deleted, |entry| entry.json().clone());
        assert_eq!((&other[1..], other.len()), (&line[..], line.len() + 1));
        let mut made = 0;
        for event in [&first, &second] {
            event.encoded(7, |event| {
                made += 1;
                event.entry().metadata_json()
            });
        }
        assert_eq!(made, 1);
    });
}

#[test]
fn watchers_wake_finish_reading_and_end_when_the_ledger_closes() {
    run(async {
        let ledger = Disk::file().open();
        let mut watch = ledger.watch_from_now(&pods(), None);
        let mut idle = ledger.watch_from_now(&ResourceKey::new("", "nodes"), Some("a"));
        let reader = tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                match watch.next().await {
                    Ok(event) => seen.push(event.revision().0),
                    Err(end) => return (seen, end),
                }
            }
        });
        let waiter = tokio::spawn(async move { idle.next().await.unwrap_err() });
        let writes =
            (0..100).map(|index| put(&key("a", &format!("{index}")), Expect::Absent, index)).collect();
        ledger.commit(writes).await.unwrap();
        ledger.close().await;
        assert_eq!(reader.await.unwrap(), ((1..=100).collect(), WatchEnd::Closed));
        assert_eq!(waiter.await.unwrap(), WatchEnd::Closed);
        assert!(ledger.stats().iter().all(|stats| stats.watches == 0));
    });
}

#[test]
fn a_thousand_watchers_see_a_thousand_updates() {
    run(async {
        let ledger = Disk::memory().open();
        let readers: Vec<_> = (0..1000)
            .map(|_| {
                let mut watch = ledger.watch_from_now(&pods(), None);
                tokio::spawn(async move {
                    for expected in 1..=1000 {
                        assert_eq!(watch.next().await.unwrap().revision(), Revision(expected));
                    }
                })
            })
            .collect();
        for value in 0..1000 {
            set(&ledger, &key("a", "x"), value).await;
        }
        for reader in readers {
            reader.await.unwrap();
        }
    });
}

#[test]
fn other_resources_do_not_appear() {
    run(async {
        let ledger = Disk::memory().open();
        let mut watch = ledger.watch_from_now(&pods(), None);
        let node = Key::new(&ResourceKey::new("", "nodes"), "", "n");
        ledger
            .commit(vec![
                put(&node, Expect::Absent, 1),
                put(&key("a", "x"), Expect::Absent, 1),
                delete(&node, Expect::Any),
            ])
            .await
            .unwrap();
        assert_eq!(revisions(&drain(&mut watch)), [2]);
        assert_eq!(watch.progress(), Revision(3));
    });
}

#[test]
fn a_revision_that_is_still_to_come_can_be_awaited() {
    run(async {
        let ledger = Disk::memory().open();
        let waiter = tokio::spawn({
            let ledger = ledger.clone();
            async move { (ledger.reach(Revision(3)).await, ledger.revision() >= Revision(3)) }
        });
        three_changes(&ledger).await;
        assert_eq!(waiter.await.unwrap(), (true, true));
        let never = tokio::spawn({
            let ledger = ledger.clone();
            async move { ledger.reach(Revision(9)).await }
        });
        ledger.close().await;
        assert!(!never.await.unwrap());
    });
}

#[test]
fn handles_can_go_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Ledger>();
    check::<Watch>();
    check::<Event>();
}
