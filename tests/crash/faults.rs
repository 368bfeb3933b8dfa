//! Storage that fails under a hub in this process, while clients are at work.

use std::path::PathBuf;

use berth_hub::{Clock, Hub, HubOptions};
use berth_hub_guard::Authority;
use berth_hub_store::backend::{Fault, FaultPlan, FaultyBackend};
use berth_hub_store::{Backend, JournaledBackend};
use http::Method;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::disk::{Disk, Trouble};
use crate::follower::{Follower, followers, settle};
use crate::load::{self, Errors, Writer};
use crate::seed;
use crate::server::{self, Answer, JSON, health, send};
use crate::vessel::Collection;
use crate::witness::Witness;
use berth_tests::random::Random;

const WRITERS: usize = 4;

/// Writes of one writer in one round of load, unless it is refused before.
const WRITES: usize = 12;

async fn open(backend: Box<dyn Backend>) -> Result<Hub, berth_hub::HubError> {
    let authority = Authority::in_memory(Clock::system().now()).expect("keys can be made");
    Hub::with_backend(HubOptions::default(), backend, authority).await
}

/// A hub that can be opened again, and everybody who was told something by it.
struct Story {
    seed: u64,
    random: Random,
    witness: Witness,
    hub: Hub,
    door: watch::Sender<Client>,
    followers: Vec<Follower>,
    round: usize,
}

impl Story {
    async fn begin(name: &str, backend: Box<dyn Backend>) -> Self {
        let seed = seed();
        eprintln!("{name}: seed {seed}");
        let hub = open(backend).await.expect("nothing fails yet");
        let witness = Witness::default();
        server::define(&hub.client()).await;
        let from = server::revision(&server::list(&hub.client(), Collection::Vessels).await);
        let (door, inside) = watch::channel(hub.client());
        let followers = followers(&inside, from, &witness);
        Self { seed, random: Random::new(seed), witness, hub, door, followers, round: 0 }
    }

    fn when(&self) -> String {
        format!("seed {}, round {}", self.seed, self.round)
    }

    fn client(&self) -> Client {
        self.hub.client()
    }

    /// Writers at work, each until it is refused or has done its share, and a reader that nothing stops.
    async fn load(&mut self) {
        self.round += 1;
        let (counter, _) = watch::channel(0);
        let (over, load_over) = watch::channel(false);
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            let (client, witness, random) =
                (self.client(), self.witness.clone(), Random::new(self.random.next()));
            let errors = Errors::Expected;
            let mut writer = Writer { client, witness, random, number, errors, counter: counter.clone() };
            writers.spawn(async move { writer.run(WRITES).await });
        }
        let random = Random::new(self.random.next());
        let reader = tokio::spawn(load::read(self.client(), self.witness.clone(), random, load_over));
        writers.join_all().await; // fails with a writer that met what must not be
        let _ = over.send(true);
        reader.await.expect("the reader met nothing that must not be");
    }

    /// All that was told is true and seen. The marker that is written for it must be taken.
    async fn check(&mut self) {
        let (client, when) = (self.client(), self.when());
        assert_eq!(health(&client, "/readyz").await, (200, "ok".to_owned()), "{when}");
        self.witness.inspect(&client, &when).await;
        settle(&client, &mut self.followers, &self.witness, &mut self.random, &when).await;
    }

    /// Writes until the hub has recovered: the first write after a failure that passes opens the storage anew.
    async fn recover(&mut self) {
        let made = self.probe("probe").await;
        assert!(matches!(made, Answer::Told { code: 201, .. }), "{}: not recovered: {made:?}", self.when());
    }

    /// A write beside those of the witness.
    async fn probe(&mut self, prefix: &str) -> Answer {
        let name = format!("{prefix}-{}", self.random.next());
        let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        send(&self.client(), Method::POST, "/api/v1/namespaces/kube-system/configmaps", Some((JSON, &body)))
            .await
    }

    /// The hub refuses a write and says why, and reads go on.
    async fn is_read_only(&mut self, why: &str) {
        let refused = self.probe("refused").await;
        self.was_refused(&refused, why).await;
    }

    async fn was_refused(&mut self, refused: &Answer, why: &str) {
        let (client, when) = (self.client(), self.when());
        let Answer::Told { code: 503, body } = refused else { panic!("{when}: {refused:?}") };
        assert_eq!(
            (&body["kind"], &body["reason"]),
            (&Value::from("Status"), &Value::from("ServiceUnavailable"))
        );
        assert!(body["message"].as_str().is_some_and(|message| message.contains(why)), "{when}: {body}");
        let (code, text) = health(&client, "/readyz").await;
        assert_eq!(code, 500, "{when}: {text}");
        assert!(text.contains("[-]storage failed") && text.contains(why), "{when}: {text}");
        assert_eq!(health(&client, "/livez").await.0, 200, "{when}: a hub that can be read is alive");
        for collection in Collection::ALL {
            let list = server::list(&client, collection).await;
            assert!(server::revision(&list) >= self.witness.facts().highest, "{when}");
        }
    }

    /// Closes the hub and opens it on the same data.
    async fn reopen(&mut self, backend: impl AsyncFn(&mut Random) -> Box<dyn Backend>) {
        self.hub.begin_close();
        self.hub.close().await;
        // A plan that was not met by the load may be met by the start.
        let mut attempts = 0;
        self.hub = loop {
            match open(backend(&mut self.random).await).await {
                Ok(hub) => break hub,
                Err(error) => assert!(attempts < 3, "{}: {error}", self.when()),
            }
            attempts += 1;
        };
        self.door.send_replace(self.hub.client());
    }

    async fn end(mut self) {
        self.check().await;
        let (acknowledged, unanswered, carried_out) = self.witness.account();
        eprintln!(
            "{} rounds: {acknowledged} writes acknowledged, {unanswered} without an answer of which {carried_out} were \
             carried out",
            self.round
        );
        assert!(acknowledged > 0 && unanswered > 0);
        self.hub.begin_close();
        self.hub.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_that_refuses_or_loses_its_answer_costs_clients_an_error_and_no_data() {
    let data = tempfile::tempdir().unwrap();
    let plan = FaultPlan::default();
    let backend = Box::new(FaultyBackend::new(JournaledBackend::open(data.path()).unwrap(), plan.clone()));
    let mut story = Story::begin("refusing backend", backend).await;
    for round in 0..30 {
        let fault = if round % 2 == 0 { Fault::Refused } else { Fault::Unanswered };
        plan.fail_append(story.random.below(25) as u64, fault);
        plan.fail_recoveries(story.random.below(2) as u64);
        story.load().await;
        plan.fail_append(0, Fault::Refused);
        story.is_read_only("no space left on device").await;
        // The probe may have been refused for the failure before it.
        plan.fail_append(u64::MAX, Fault::Refused);
        plan.fail_recoveries(0);
        story.recover().await;
        story.check().await;
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_that_panics_or_cannot_sync_makes_the_hub_read_only_until_it_is_opened_again() {
    let data = tempfile::tempdir().unwrap();
    let plan = FaultPlan::default();
    let path: PathBuf = data.path().to_owned();
    let faulty = || {
        Box::new(FaultyBackend::new(JournaledBackend::open(&path).unwrap(), plan.clone())) as Box<dyn Backend>
    };
    let mut story = Story::begin("backend without sync", faulty()).await;
    for round in 0..12 {
        let fault = if round % 2 == 0 { Fault::NotSynced } else { Fault::Panic };
        plan.fail_append(story.random.below(12) as u64, fault);
        story.load().await;
        story.is_read_only("restart").await;
        story.reopen(async |_| faulty()).await;
        story.check().await;
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_writes_short_or_refuses_is_recovered_from_in_place() {
    let disk = Disk::default();
    let mut story = Story::begin("short writes", disk.backend().unwrap()).await;
    let mut struck = 0;
    for round in 0..40 {
        let trouble = [Trouble::ShortWrite, Trouble::Refused, Trouble::Full][round % 3];
        disk.plan(story.random.below(60) as u64, trouble);
        story.load().await;
        struck += usize::from(!disk.is_planned());
        disk.plan(u64::MAX, trouble);
        story.recover().await;
        story.check().await;
    }
    assert!(struck >= 20, "seed {}: only {struck} of the planned failures struck", story.seed);
    let reopened = disk.clone();
    story.reopen(async |_| reopened.backend().unwrap()).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_until_there_is_room_again() {
    let disk = Disk::default();
    let mut story = Story::begin("full disk", disk.backend().unwrap()).await;
    for _ in 0..3 {
        disk.limit(Some(0));
        // The store has free pages in its file: they are used up before the disk is asked for more, and after a large
        // write was refused there may still be room for a small one.
        let mut rounds = 0;
        loop {
            story.load().await;
            let probe = story.probe("probe").await;
            if !matches!(probe, Answer::Told { code: 201, .. }) {
                story.was_refused(&probe, "storage failed").await;
                break;
            }
            // The storage is open again: what became of writes without an answer can be seen.
            story.witness.inspect(&story.client(), &story.when()).await;
            rounds += 1;
            assert!(rounds < 500, "{}: the file never grew", story.when());
        }
        disk.limit(None);
        story.recover().await;
        story.check().await;
    }
    let reopened = disk.clone();
    story.reopen(async |_| reopened.backend().unwrap()).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_or_a_failed_sync_loses_nothing_that_was_acknowledged() {
    let disk = Disk::default();
    let mut story = Story::begin("power cuts", disk.backend().unwrap()).await;
    for round in 0..30 {
        let trouble = if round % 3 == 0 { Trouble::Sync } else { Trouble::Power };
        let good = if trouble == Trouble::Sync { 20 } else { 150 };
        disk.plan(story.random.below(good) as u64, trouble);
        story.load().await;
        let up = disk.clone();
        story
            .reopen(async |random| {
                up.power_up(random);
                up.backend().expect("a store that lost power opens")
            })
            .await;
        story.check().await;
    }
    story.end().await;
}
