//! A backend that fails: nothing is shown that is not durable, nothing acknowledged is lost, and the reason is told.

use std::collections::BTreeMap;
use std::time::Duration;

use berth_hub_store::backend::{Fault, FaultPlan, FaultyBackend};
use berth_hub_store::{
    Backend, CommitError, Expect, Key, Ledger, LedgerOptions, ListQuery, Revision, StoreError,
};
use proptest::prelude::*;

use crate::support::{Disk, forgetful, key, pods, put, run, set, value};

fn faulty(disk: &Disk, options: LedgerOptions) -> (Ledger, FaultPlan) {
    let plan = FaultPlan::default();
    let backend: Box<dyn Backend> = Box::new(FaultyBackend::new(disk.backend(), plan.clone()));
    (Ledger::open(backend, options).unwrap(), plan)
}

async fn refused(ledger: &Ledger, pod: &Key, value: u64) -> String {
    match ledger.commit(vec![put(pod, Expect::Any, value)]).await {
        Err(CommitError::Unavailable(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refused_append_is_not_published_and_the_next_one_works() {
    run(async {
        for disk in Disk::both() {
            let (ledger, plan) = faulty(&disk, LedgerOptions::default());
            let pod = key("a", "x");
            set(&ledger, &pod, 1).await;
            let mut watch = ledger.watch_from_now(&pods(), None);
            plan.fail_append(0, Fault::Refused);
            assert!(refused(&ledger, &pod, 2).await.contains("no space left"));
            assert!(ledger.trouble().unwrap().contains("no space left"));
            assert_eq!((value(&ledger.get(&pod).unwrap()), ledger.revision()), (1, Revision(1)));
            assert!(watch.try_next().unwrap().is_none());
            assert_eq!(set(&ledger, &pod, 3).await, Revision(2));
            assert_eq!(ledger.trouble(), None);
            assert_eq!(value(watch.next().await.unwrap().entry()), 3);
            ledger.close().await;
            assert_eq!(value(&disk.open().get(&pod).unwrap()), 3);
        }
    });
}

#[test]
fn a_write_whose_answer_was_lost_shows_up_before_any_later_one() {
    run(async {
        for disk in Disk::both() {
            let (ledger, plan) = faulty(&disk, LedgerOptions::default());
            let pod = key("a", "x");
            let mut watch = ledger.watch_from_now(&pods(), None);
            plan.fail_append(0, Fault::Unanswered);
            refused(&ledger, &pod, 1).await;
            assert!(ledger.get(&pod).is_none(), "not published while nobody knows");
            // A writer that believes the object absent must not win over the durable one.
            let conflict = ledger.commit(vec![put(&pod, Expect::Absent, 2)]).await;
            assert!(matches!(conflict, Err(CommitError::Conflict { current: Some(_), .. })), "{conflict:?}");
            let event = watch.next().await.unwrap();
            assert_eq!((event.revision(), value(event.entry())), (Revision(1), 1));
            assert_eq!(set(&ledger, &pod, 3).await, Revision(2));
        }
    });
}

#[test]
fn after_a_failed_sync_or_a_panic_nothing_is_written_until_a_restart() {
    run(async {
        for fault in [Fault::NotSynced, Fault::Panic] {
            for disk in Disk::both() {
                let (ledger, plan) = faulty(&disk, LedgerOptions::default());
                let pod = key("a", "x");
                set(&ledger, &pod, 1).await;
                plan.fail_append(0, fault);
                for attempt in 2..5 {
                    assert!(refused(&ledger, &pod, attempt).await.contains("restart"));
                }
                assert_eq!(value(&ledger.get(&pod).unwrap()), 1, "reads go on");
                assert!(matches!(ledger.compact(Duration::ZERO).await, Err(StoreError::Backend(_))));
                assert!(ledger.snapshot().await.is_err());
                ledger.close().await;
                let ledger = disk.open();
                assert!(value(&ledger.get(&pod).unwrap()) <= 2);
                set(&ledger, &pod, 9).await;
            }
        }
    });
}

#[test]
fn writes_are_refused_until_recovery_works() {
    run(async {
        let disk = Disk::file();
        let (ledger, plan) = faulty(&disk, LedgerOptions::default());
        let pod = key("a", "x");
        plan.fail_append(0, Fault::Refused);
        plan.fail_recoveries(2);
        for attempt in 0..3 {
            refused(&ledger, &pod, attempt).await;
        }
        assert_eq!(set(&ledger, &pod, 5).await, Revision(1));
    });
}

#[test]
fn a_failed_compaction_is_told_and_taken_up_again() {
    run(async {
        for disk in Disk::both() {
            let (ledger, plan) = faulty(&disk, forgetful());
            let pod = key("a", "x");
            for value in 0..10 {
                set(&ledger, &pod, value).await;
            }
            ledger.compact(Duration::ZERO).await.unwrap();
            plan.fail_compaction(0, Fault::Refused);
            assert!(ledger.compact(Duration::from_hours(1)).await.is_err());
            assert_eq!(set(&ledger, &pod, 10).await, Revision(11));
            ledger.compact(Duration::from_hours(1)).await.unwrap();
            ledger.close().await;
            let mut records = 0;
            let count = &mut |_| {
                records += 1;
                Ok(())
            };
            disk.backend().read(Revision::ZERO, count).unwrap();
            assert_eq!(records, 2, "the state at the floor and the change after it");
        }
    });
}

#[derive(Clone, Debug)]
enum Step {
    Write { names: Vec<u8> },
    Fault { good: u64, fault: Fault, recoveries: u64 },
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fault = prop_oneof![4 => Just(Fault::Refused), 4 => Just(Fault::Unanswered), 1 => Just(Fault::NotSynced), 1 => Just(Fault::Panic)];
    let step = prop_oneof![
        12 => prop::collection::vec(0..6_u8, 1..4).prop_map(|names| Step::Write { names }),
        3 => (0..3_u64, fault, 0..2_u64).prop_map(|(good, fault, recoveries)| Step::Fault { good, fault, recoveries }),
        2 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

/// Runs the steps and checks after each of them that every acknowledged write is there.
async fn survive(disk: &Disk, steps: Vec<Step>) {
    let (mut ledger, mut plan) = faulty(disk, forgetful());
    let mut acknowledged: BTreeMap<Key, Revision> = BTreeMap::new();
    let mut highest = Revision::ZERO;
    let (mut counter, mut clock) = (0, Duration::ZERO);
    for step in steps {
        match step {
            Step::Write { names } => {
                counter += 1;
                let keys: Vec<Key> = names.iter().map(|name| key("a", &name.to_string())).collect();
                let writes = keys.iter().map(|key| put(key, Expect::Any, counter)).collect();
                if let Ok(entries) = ledger.commit(writes).await {
                    for entry in entries {
                        assert!(entry.revision() > highest, "revisions never go back");
                        highest = entry.revision();
                        acknowledged.insert(entry.key().clone(), entry.revision());
                    }
                }
            }
            Step::Fault { good, fault, recoveries } => {
                plan.fail_append(good, fault);
                plan.fail_compaction(good, fault);
                plan.fail_recoveries(recoveries);
            }
            Step::Compact => {
                clock += Duration::from_hours(1);
                let _ = ledger.compact(clock).await;
            }
            Step::Reopen => {
                ledger.close().await;
                drop(ledger);
                (ledger, plan) = faulty(disk, forgetful());
            }
        }
        for (key, revision) in &acknowledged {
            let entry = ledger.get(key).expect("an acknowledged object is there");
            value(&entry);
            assert!(entry.revision() >= *revision);
        }
        assert!(ledger.revision() >= highest);
    }
    ledger.close().await;
    let ledger = disk.open();
    let list = ledger.list(&pods(), &ListQuery::default()).unwrap();
    for (key, revision) in &acknowledged {
        assert!(list.entries.iter().any(|entry| entry.key() == key && entry.revision() >= *revision));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_acknowledged_write_is_lost_whatever_fails(steps in steps(), file in any::<bool>()) {
        let disk = if file { Disk::file() } else { Disk::memory() };
        run(survive(&disk, steps));
    }
}
