//! The ledger against a model so simple that it is obviously right: every state of every revision, kept for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use berth_hub_store::{
    EventKind, Expect, HistoryOptions, Key, Ledger, LedgerOptions, ListError, ListQuery, Revision, Watch,
    WatchEnd,
};
use proptest::prelude::*;

use crate::support::{Disk, delete, key, pods, put, run, value};

type Place = (String, String);

#[derive(Default)]
struct Model {
    /// The objects at every revision: place to value and revision.
    states: Vec<BTreeMap<Place, (u64, u64)>>,
    /// What happened at every revision.
    events: Vec<(EventKind, Place, u64, Option<u64>)>,
}

impl Model {
    fn head(&self) -> u64 {
        self.events.len() as u64
    }

    fn state(&self, revision: u64) -> &BTreeMap<Place, (u64, u64)> {
        &self.states[revision as usize]
    }

    fn write(&mut self, writes: &[(Place, Option<u64>, Guess)]) -> bool {
        let (states, events) = (self.states.len(), self.events.len());
        for (place, value, guess) in writes {
            let mut state = self.states.last().unwrap().clone();
            let current = state.get(place).copied();
            let fits = match guess {
                Guess::Any => true,
                Guess::Absent => current.is_none(),
                Guess::Present => current.is_some(),
                Guess::At(revision) => current.is_some_and(|current| current.1 == *revision),
            };
            if !fits || (value.is_none() && current.is_none()) {
                self.states.truncate(states);
                self.events.truncate(events);
                return false;
            }
            let revision = self.head() + 1;
            let kind = match (value, current) {
                (None, _) => EventKind::Deleted,
                (Some(_), None) => EventKind::Added,
                (Some(_), Some(_)) => EventKind::Modified,
            };
            match value {
                Some(value) => state.insert(place.clone(), (*value, revision)),
                None => state.remove(place),
            };
            self.events.push((kind, place.clone(), value.unwrap_or(0), current.map(|current| current.0)));
            self.states.push(state);
        }
        true
    }
}

#[derive(Clone, Copy, Debug)]
enum Guess {
    Any,
    Absent,
    Present,
    At(u64),
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, u8, bool, u8)>),
    List { back: u64, namespace: Option<u8>, limit: usize },
    Watch { back: u64, namespace: Option<u8> },
    Read { watch: usize, events: usize },
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (0..3_u8, 0..4_u8, prop::bool::weighted(0.25), 0..8_u8);
    let step = prop_oneof![
        10 => prop::collection::vec(write, 1..4).prop_map(Step::Commit),
        4 => (0..30_u64, prop::option::of(0..3_u8), 1..5_usize)
            .prop_map(|(back, namespace, limit)| Step::List { back, namespace, limit }),
        3 => (0..30_u64, prop::option::of(0..3_u8)).prop_map(|(back, namespace)| Step::Watch { back, namespace }),
        4 => (any::<usize>(), 1..20_usize).prop_map(|(watch, events)| Step::Read { watch, events }),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..80)
}

struct Follower {
    watch: Watch,
    namespace: Option<String>,
    after: u64,
}

struct World<'a> {
    disk: &'a Disk,
    ledger: Ledger,
    model: Model,
    followers: Vec<Follower>,
    clock: Duration,
    counter: u64,
}

fn options() -> LedgerOptions {
    let history = HistoryOptions { events_min: 5, window_events: 25, ..HistoryOptions::default() };
    LedgerOptions { history, ..LedgerOptions::default() }
}

fn namespace(number: u8) -> String {
    format!("ns-{number}")
}

impl World<'_> {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Commit(writes) => self.commit(writes).await,
            Step::List { back, namespace: number, limit } => {
                self.list(back, number.map(namespace).as_deref(), limit);
            }
            Step::Watch { back, namespace: number } => {
                let from = self.model.head().saturating_sub(back);
                let namespace = number.map(namespace);
                match self.ledger.watch(&pods(), namespace.as_deref(), Revision(from)) {
                    Ok(watch) => self.followers.push(Follower { watch, namespace, after: from }),
                    Err(error) => assert!(self.may_be_gone(from), "{error}"),
                }
            }
            Step::Read { watch, events } if !self.followers.is_empty() => {
                let index = watch % self.followers.len();
                if !self.read(index, events) {
                    self.followers.swap_remove(index);
                }
            }
            Step::Read { .. } => {}
            Step::Compact => {
                self.clock += Duration::from_mins(4);
                self.ledger.compact(self.clock).await.unwrap();
                assert!(self.ledger.floor().0 <= self.model.head().saturating_sub(5));
            }
            Step::Reopen => {
                self.ledger.close().await;
                self.ledger = self.disk.open_with(options());
                let places: Vec<_> = self.followers.drain(..).map(|f| (f.namespace, f.after)).collect();
                for (namespace, after) in places {
                    if let Ok(watch) = self.ledger.watch(&pods(), namespace.as_deref(), Revision(after)) {
                        self.followers.push(Follower { watch, namespace, after });
                    } else {
                        assert!(self.may_be_gone(after));
                    }
                }
            }
        }
        assert_eq!(self.ledger.revision().0, self.model.head());
    }

    /// Whether history may have been forgotten so far: by compaction, or because the window is full.
    fn may_be_gone(&self, revision: u64) -> bool {
        revision < self.ledger.floor().0 || self.model.head() - revision > 25
    }

    async fn commit(&mut self, writes: Vec<(u8, u8, bool, u8)>) {
        let mut plan = Vec::new();
        for (space, name, remove, guess) in writes {
            self.counter += 1;
            let place = (namespace(space), format!("pod-{name}"));
            let now = self.model.states.last().unwrap().get(&place).map_or(0, |current| current.1);
            let guess = match guess {
                0 => Guess::Absent,
                1 => Guess::Present,
                2 => Guess::At(now),
                3 => Guess::At(now.saturating_sub(1)),
                _ => Guess::Any,
            };
            plan.push((place, (!remove).then_some(self.counter), guess));
        }
        let writes = plan.iter().map(|((space, name), value, guess)| {
            let expect = match guess {
                Guess::Any => Expect::Any,
                Guess::Absent => Expect::Absent,
                Guess::Present => Expect::Present,
                Guess::At(revision) => Expect::At(Revision(*revision)),
            };
            let key: Key = key(space, name);
            value.map_or_else(|| delete(&key, expect), |value| put(&key, expect, value))
        });
        let written = self.ledger.commit(writes.collect()).await;
        let before = self.model.head();
        assert_eq!(written.is_ok(), self.model.write(&plan), "{plan:?}");
        let revisions: Vec<u64> =
            written.unwrap_or_default().iter().map(|entry| entry.revision().0).collect();
        assert_eq!(revisions, (before + 1..=self.model.head()).collect::<Vec<_>>());
    }

    fn list(&self, back: u64, namespace: Option<&str>, limit: usize) {
        let at = self.model.head().saturating_sub(back);
        let expected: Vec<(Place, u64)> = self
            .model
            .state(at)
            .iter()
            .filter(|(place, _)| namespace.is_none_or(|namespace| place.0 == namespace))
            .map(|(place, (value, _))| (place.clone(), *value))
            .collect();
        let mut found: Vec<(Place, u64)> = Vec::new();
        loop {
            let last = found.last().map(|(place, _)| place.clone());
            let after = last.as_ref().map(|place| (place.0.as_str(), place.1.as_str()));
            let query = ListQuery { namespace, at: Some(Revision(at)), after, limit: Some(limit) };
            let page = match self.ledger.list(&pods(), &query) {
                Ok(page) => page,
                Err(ListError::Compacted { .. }) if self.may_be_gone(at) => return,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(page.revision, Revision(at));
            found.extend(page.entries.iter().map(|entry| {
                ((entry.key().namespace.to_string(), entry.key().name.to_string()), value(entry))
            }));
            assert_eq!(page.remaining, expected.len() - found.len());
            if !page.more() {
                break;
            }
        }
        assert_eq!(found, expected);
    }

    /// Reads some events and compares them; false when the watch has ended.
    fn read(&mut self, index: usize, count: usize) -> bool {
        let head = self.model.head();
        let may_be_gone = self.may_be_gone(self.followers[index].after);
        let follower = &mut self.followers[index];
        for _ in 0..count {
            let next = (follower.after + 1..=head).find(|revision| {
                let place = &self.model.events[*revision as usize - 1].1;
                follower.namespace.as_ref().is_none_or(|namespace| *namespace == place.0)
            });
            match follower.watch.try_next() {
                Ok(None) => {
                    assert_eq!(next, None, "a change was not told");
                    assert_eq!(follower.watch.progress().0, head);
                    return true;
                }
                Ok(Some(event)) => {
                    let place =
                        (event.entry().key().namespace.to_string(), event.entry().key().name.to_string());
                    let told =
                        (event.kind(), place, value(event.entry()), event.previous().map(|e| value(e)));
                    assert_eq!(Some(event.revision().0), next);
                    assert_eq!(told, self.model.events[event.revision().0 as usize - 1]);
                    follower.after = event.revision().0;
                }
                Err(WatchEnd::Lagged { .. }) => {
                    assert!(may_be_gone);
                    return false;
                }
                Err(end) => panic!("{end}"),
            }
        }
        true
    }
}

async fn compare(disk: &Disk, steps: Vec<Step>) {
    let model = Model { states: vec![BTreeMap::new()], events: Vec::new() };
    let ledger = disk.open_with(options());
    let mut world = World { disk, ledger, model, followers: Vec::new(), clock: Duration::ZERO, counter: 0 };
    for step in steps {
        world.step(step).await;
    }
    for index in 0..world.followers.len() {
        world.read(index, usize::MAX);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_in_memory_behaves_as_the_model(steps in steps()) {
        run(compare(&Disk::memory(), steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_on_disk_behaves_as_the_model(steps in steps()) {
        run(compare(&Disk::file(), steps));
    }
}
