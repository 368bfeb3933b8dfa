//! No flicker: a cluster that stays selected is in some slice at every revision there ever was.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use berth_tests::{
    caller::text,
    random::{Random, seed},
    waiting::until,
};
use futures::future::join_all;
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    cluster::Cluster,
    ground::{Ground, QUIET, Turn, grounds},
    handle::{Fleet, PATIENCE},
    slices::{LABEL, Slices, clusters},
};

/// How many clusters there are: ten slices of them on the hub, which is quick to fill, else enough for three.
fn size(fleet: &Fleet) -> usize {
    if fleet.ground == Ground::Hub { 1000 } else { 250 }
}

/// Every so-manyth comes and goes, so that every boundary between slices moves.
const EVERY: usize = 4;

/// How often a handful of clusters comes or goes.
const ROUNDS: usize = 30;

fn named(number: usize) -> String {
    format!("c{number:04}")
}

fn wanders(number: usize) -> bool {
    number.is_multiple_of(EVERY)
}

/// Somebody who reads as fast as they can.
struct Readers {
    /// What the watcher has seen last, and how many revisions.
    seen: watch::Receiver<(u64, BTreeSet<String>)>,
    polls: Arc<AtomicU64>,
    /// Of the comings and goings they read about; told when one fails.
    seed: u64,
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Begins to poll and to watch; both fail when one of `staying` is in no slice.
    async fn begin(fleet: &Fleet, staying: BTreeSet<String>) -> Self {
        let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3Dp");
        let path = fleet.path("v1beta1", &query);
        let list = fleet.caller.get(&path).await.ok();
        let version = text(&list, "/metadata/resourceVersion");
        let mut events = fleet.caller.watch(&format!("{path}&resourceVersion={version}")).await;
        let named = |slice: &serde_json::Value| {
            let clusters: BTreeSet<String> = clusters(slice).into_iter().map(str::to_owned).collect();
            (text(slice, "/metadata/name").to_owned(), clusters)
        };
        let mut slices: BTreeMap<String, BTreeSet<String>> = Slices::of(&list).0.iter().map(named).collect();
        let all = |slices: &BTreeMap<String, BTreeSet<String>>| -> BTreeSet<String> {
            slices.values().flatten().cloned().collect()
        };
        let (tell, seen) = watch::channel((0, all(&slices)));
        let is_over = Arc::new(AtomicBool::new(false));
        let polls = Arc::new(AtomicU64::new(0));
        let seed = seed();
        eprintln!("the comings and goings of BERTH_SEED={seed}");

        let (over, stay) = (Arc::clone(&is_over), staying.clone());
        let watcher = tokio::spawn(async move {
            let mut revisions = 0;
            while !over.load(Ordering::Relaxed) {
                let event = events.next().await;
                let (name, clusters) = named(&event["object"]);
                match event["type"].as_str() {
                    Some("DELETED") => slices.remove(&name),
                    Some("ADDED" | "MODIFIED") => slices.insert(name, clusters),
                    _ => panic!("{event}"),
                };
                revisions += 1;
                let there = all(&slices);
                let lost: Vec<_> = stay.difference(&there).collect();
                let version = text(&event["object"], "/metadata/resourceVersion");
                assert!(lost.is_empty(), "seed {seed}: at revision {version} in no slice: {lost:?}");
                let _ = tell.send((revisions, there));
            }
        });
        let (over, count, caller) = (Arc::clone(&is_over), Arc::clone(&polls), fleet.caller.clone());
        let poller = tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let list = caller.get(&path).await.ok();
                let slices = Slices::of(&list);
                let there: BTreeSet<String> = slices.clusters().into_iter().map(str::to_owned).collect();
                let lost: Vec<_> = staying.difference(&there).collect();
                let version = text(&list, "/metadata/resourceVersion");
                assert!(lost.is_empty(), "seed {seed}: at revision {version} in no slice: {lost:?}");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { seen, polls, seed, is_over, tasks: vec![watcher, poller] }
    }

    fn revisions(&self) -> u64 {
        self.seen.borrow().0
    }

    /// Fails as soon as a reader has.
    fn look(&self) {
        // The poller ends only by failing; the watcher too, until all is over.
        assert!(
            self.tasks.iter().all(|task| !task.is_finished()),
            "seed {}: a reader failed; see above",
            self.seed
        );
    }

    /// Ends the readers, and fails if one did.
    async fn end(self) {
        self.look();
        self.is_over.store(true, Ordering::Relaxed);
        let [watcher, poller] = <[_; 2]>::try_from(self.tasks).unwrap();
        poller.await.unwrap();
        // It waits for an event that will not come.
        watcher.abort();
        assert!(self.polls.load(Ordering::Relaxed) > 0);
    }
}

/// The fleet, and one placement that has all of it.
async fn stage(turn: &Turn<'_>) -> BTreeSet<String> {
    let fleet = &turn.fleet;
    fleet.bound_set("blue").await;
    let add = |number: usize| fleet.add(Cluster::named(&named(number)).of("blue"));
    let size = size(fleet);
    for chunk in (0..size).collect::<Vec<_>>().chunks(50) {
        join_all(chunk.iter().map(|number| add(*number))).await;
    }
    fleet.place("p", "{}").await;
    fleet.holds("p", size, size.div_ceil(100)).await;
    (0..size).filter(|number| !wanders(*number)).map(|number| fleet.name(&named(number))).collect()
}

/// Some clusters come and go; which are there afterwards comes back in `there`.
async fn shuffle(fleet: &Fleet, random: &mut Random, there: &mut BTreeSet<usize>) {
    let wanderers: Vec<usize> = (0..size(fleet)).filter(|number| wanders(*number)).collect();
    let chosen: BTreeSet<usize> = (0..=random.below(12)).map(|_| *random.pick(&wanderers)).collect();
    let change = async |number: usize, joins: bool| {
        let set = joins.then(|| fleet.name("blue"));
        fleet
            .change(&named(number), &json!({"metadata": {"labels": {format!("{LABEL}/clusterset"): set}}}))
            .await;
    };
    for number in &chosen {
        if !there.remove(number) {
            there.insert(*number);
        }
    }
    join_all(chosen.iter().map(|number| change(*number, there.contains(number)))).await;
}

fn names(fleet: &Fleet, numbers: &BTreeSet<usize>) -> BTreeSet<String> {
    numbers.iter().map(|number| fleet.name(&named(*number))).collect()
}

/// Waits until the decisions, and what the watcher saw of them, are exactly these.
async fn settles(fleet: &Fleet, readers: &Readers, there: &BTreeSet<usize>) {
    let wanted = names(fleet, there);
    until("everything being as it should", PATIENCE, async || {
        readers.look();
        let slices = fleet.slices("p").await;
        let now: BTreeSet<String> = slices.clusters().into_iter().map(str::to_owned).collect();
        let seen = readers.seen.borrow().1.clone();
        let missing = wanted.symmetric_difference(&now).count();
        if now == wanted && seen == wanted && slices.clusters().len() == wanted.len() {
            Ok(())
        } else {
            Err(format!("{missing} clusters are wrong; the watcher saw {} of {}", seen.len(), wanted.len()))
        }
    })
    .await;
    fleet.holds("p", wanted.len(), wanted.len().div_ceil(100)).await;
}

grounds! {
    /// While clusters come and go at random, those that stay are in some slice at every revision.
    /// Upstream: defects "2".
    turn async fn no_cluster_that_stays_is_ever_in_no_slice(turn: &mut Turn<'_>) {
        let Some(_controllers) = berth_bed::or_skip(turn.run("flicker", QUIET).await) else { return };
        let staying = stage(turn).await;
        let fleet = &turn.fleet;
        let readers = Readers::begin(fleet, staying).await;
        let mut random = Random::new(readers.seed);
        let mut there: BTreeSet<usize> = (0..size(fleet)).collect();
        for round in 0..ROUNDS {
            shuffle(fleet, &mut random, &mut there).await;
            readers.look();
            if round % 10 == 9 {
                settles(fleet, &readers, &there).await;
            }
        }
        settles(fleet, &readers, &there).await;
        assert!(readers.revisions() > 10, "too little was seen to tell");
        readers.end().await;
    }

    /// The same while the controllers are killed in the middle of their writes, and started again.
    turn async fn nor_while_the_controllers_are_killed(turn: &mut Turn<'_>) {
        let Some(mut controllers) = berth_bed::or_skip(turn.run("killed", QUIET).await) else { return };
        let staying = stage(turn).await;
        let fleet = &turn.fleet;
        let readers = Readers::begin(fleet, staying).await;
        let mut random = Random::new(readers.seed);
        let mut there: BTreeSet<usize> = (0..size(fleet)).collect();
        let (mut kills, mut round) = (0, 0);
        // On a busy machine they are killed before they have written anything, time and again: it goes on until enough was
        // seen to tell.
        while round < ROUNDS || kills == 0 || readers.revisions() <= 10 {
            assert!(round < 10 * ROUNDS, "seed {}: too little happens to tell", readers.seed);
            round += 1;
            if round % 10 == 0 {
                settles(fleet, &readers, &there).await;
            }
            let before = readers.revisions();
            shuffle(fleet, &mut random, &mut there).await;
            readers.look();
            if random.chance(40) {
                kills += 1;
                // In the middle: after so many of its writes were seen, or after none. There may be fewer: one cluster of the last
                // slice is one write.
                let writes = before + random.next() % 3;
                let wanted = names(fleet, &there);
                let mut seen = readers.seen.clone();
                let reached = seen.wait_for(|(revisions, seen)| *revisions >= writes || *seen == wanted);
                tokio::time::timeout(PATIENCE, reached).await.expect("no write was seen").unwrap();
                controllers.kill();
                controllers.launch_again().unwrap();
            }
        }
        settles(fleet, &readers, &there).await;
        readers.end().await;
    }
}

/// The readers of the scenarios above would tell: here somebody makes a gap.
#[test]
fn a_gap_is_noticed_by_both_readers() {
    crate::ground::turn(Ground::Hub, async |turn: &mut Turn<'_>| {
        let Some(controllers) = berth_bed::or_skip(turn.run("gap", QUIET).await) else { return };
        let fleet = &turn.fleet;
        fleet.bound_set("blue").await;
        fleet.add_many("blue", 2).await;
        fleet.place("p", "{}").await;
        fleet.holds("p", 2, 1).await;
        let readers = Readers::begin(fleet, BTreeSet::from([fleet.name("blue1")])).await;
        controllers.pause().unwrap();
        let gap = json!({"status": {"decisions": [{"clusterName": fleet.name("blue2"), "reason": ""}]}});
        fleet.caller.merge(&format!("{}/status", fleet.decision_path("p", 1)), &gap).await.ok();
        for reader in readers.tasks {
            let failure = tokio::time::timeout(PATIENCE, reader).await.expect("a reader noticed nothing");
            assert!(failure.unwrap_err().is_panic());
        }
    });
}
