//! Two replicas: one acts, the other stands by and takes over, and never do both act.

use std::{path::Path, time::Instant};

use berth_bed::{Companion, or_skip};
use berth_tests::{
    caller::{condition, text},
    waiting::until,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    cluster::{Cluster, taint},
    ground::{CALM, Ground, Turn, grounds, quiet},
    handle::{Fleet, PATIENCE},
    metrics::Metrics,
    passage::Passage,
    slices::{LABEL, clusters},
    witness::{Witness, named_kubeconfig},
};

/// How long others wait for a leader that is silent, in seconds; the usual fifteen would only be more of the same, and one
/// scenario shows it.
const LEASE_SECONDS: u64 = 8;

/// The flags for it. On a busy machine, too, a leader renews in time.
const SHORT: [&str; 3] = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
];

/// A lease that nobody here can wait for.
const LONG_SECONDS: u64 = 120;

/// The flags for it.
const LONG: [&str; 3] = [
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
    "--leader-elect-retry-period=500ms",
];

/// How long others wait where no flag says it, in seconds.
const USUAL_LEASE_SECONDS: u64 = 15;

/// Room for a busy machine to see that a lease has run out, beyond that and one attempt.
const SLACK_SECONDS: u64 = 4;

/// As whom the replicas act: the API server knows them apart.
const FIRST: &str = "replica-a";
const SECOND: &str = "replica-b";

/// Two replicas that stand for one Lease, and somebody who sees what each writes.
struct Replicas {
    leader: Companion,
    standby: Companion,
    lease: String,
    witness: Witness,
}

impl Replicas {
    /// Starts both, the first of which leads.
    async fn start(turn: &Turn<'_>) -> Option<Self> {
        Self::start_by(turn, turn.bed.kubeconfig(), &SHORT).await
    }

    /// The same where the first goes another way to the API server, and time is what these flags say.
    async fn start_by(turn: &Turn<'_>, kubeconfig: &Path, timing: &[&str]) -> Option<Self> {
        let namespace = format!("--leader-elect-resource-namespace={}", turn.fleet.namespace);
        let mut flags = vec!["--leader-elect=true", "--leader-elect-resource-name=fleet", &namespace];
        flags.extend(["--metrics-bind=127.0.0.1:0", CALM].iter().chain(timing));
        let witness = Witness::call(&turn.fleet).await;
        let start = async |name: &'static str, kubeconfig: &Path| {
            let kubeconfig = named_kubeconfig(turn.bed, kubeconfig, name, &["system:masters"]);
            or_skip(Companion::berth_with(turn.bed, &kubeconfig, name, "run", &flags).await)
        };
        let leader = start(FIRST, kubeconfig).await?;
        leads(&leader).await;
        let standby = start(SECOND, turn.bed.kubeconfig()).await?;
        assert!(!Metrics::of(&standby).await.leads());
        let namespace = &turn.fleet.namespace;
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/fleet");
        Some(Self { leader, standby, lease, witness })
    }

    /// Who wrote, in the order in which the API server was asked to: each once for as long as nobody else did.
    fn terms(&self, fleet: &Fleet) -> Vec<String> {
        let mut terms = self.witness.writers(fleet);
        terms.retain(|writer| [FIRST, SECOND].contains(&writer.as_str()));
        terms.dedup();
        terms
    }

    /// Ends both, and lets go of whatever is in the way of others.
    async fn end(self, fleet: &Fleet) {
        drop((self.leader, self.standby));
        self.witness.dismiss(fleet).await;
    }
}

async fn leads(replica: &Companion) {
    until("a replica leading", PATIENCE, async || {
        if Metrics::of(replica).await.leads() { Ok(()) } else { Err("it does not".to_owned()) }
    })
    .await;
}

/// A placement of one cluster out of three.
async fn stage(fleet: &Fleet) {
    fleet.bound_set("blue").await;
    for name in ["c1", "c2", "c3"] {
        fleet.add(Cluster::named(name).of("blue")).await;
    }
    fleet.place("p", "numberOfClusters: 1").await;
    fleet.selects("p", &["c1"]).await;
}

/// What a leader wrote when it had nothing left to write: the placement, its set and its binding say what they are.
async fn written(fleet: &Fleet, leader: &Companion) -> u64 {
    fleet.set_counts("blue", 3).await;
    fleet
        .until(&fleet.binding_path("blue"), "is bound", |binding| {
            condition(binding, "Bound")["status"] == "True"
        })
        .await;
    // An answer that we have seen the effect of may still be on its way to the one who asked.
    let mut last = None;
    until("the leader resting", PATIENCE, async || {
        let metrics = Metrics::of(leader).await;
        let now = (metrics.writes(), metrics.sum("berth_waiting", &[]));
        let rests = now.0 > 0 && now.1 == 0 && last == Some(now);
        last = Some(now);
        if rests { Ok(now.0) } else { Err(format!("{now:?}")) }
    })
    .await
}

/// Makes a cluster unfit for the placement.
async fn shun(fleet: &Fleet, cluster: &str) {
    let object = fleet.caller.get(&fleet.cluster_path(cluster)).await.ok();
    let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.push(taint("shunned", "", "NoSelect", jiff::Timestamp::now()));
    fleet.taint(cluster, &taints).await;
}

/// What was selected, change by change, from here on.
async fn follow(fleet: &Fleet) -> impl AsyncFnMut() -> Vec<String> + use<> {
    let slices = fleet.slices("p").await;
    let version = text(&slices.0[0], "/metadata/resourceVersion");
    let query = format!("placementdecisions?labelSelector={LABEL}%2Fplacement%3Dp&resourceVersion={version}");
    let mut watch = fleet.caller.watch(&fleet.path("v1beta1", &query)).await;
    async move || {
        let event = watch.next().await;
        clusters(&event["object"]).into_iter().map(str::to_owned).collect()
    }
}

async fn holder(fleet: &Fleet, lease: &str) -> Value {
    fleet.caller.get(lease).await.ok()["spec"].clone()
}

/// By how much the one who leads now was later than a moment, when it took over.
fn took(since: Timestamp, lease: &Value) -> SignedDuration {
    let acquired: Timestamp = text(lease, "/acquireTime").parse().unwrap();
    acquired.duration_since(since)
}

grounds! {
    /// A leader that is killed is followed within the lease, and its successor goes on where it was.
    turn async fn a_killed_leader_is_followed_within_the_lease(turn: &mut Turn<'_>) {
        let Some(mut replicas) = Replicas::start(turn).await else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let first = holder(fleet, &replicas.lease).await;
        assert_eq!(first["leaseDurationSeconds"], LEASE_SECONDS);
        assert_eq!(Metrics::of(&replicas.standby).await.writes(), 0, "who stands by writes nothing");
        let mut selected = follow(fleet).await;

        let killed = Timestamp::now();
        replicas.leader.kill();
        shun(fleet, "c1").await;
        assert_eq!(selected().await, [fleet.name("c2")]);
        fleet.selects("p", &["c2"]).await;
        let second = holder(fleet, &replicas.lease).await;
        let took = took(killed, &second);
        assert!(took.as_secs() <= (LEASE_SECONDS + SLACK_SECONDS) as i64, "took over after {took}");
        assert_ne!(first["holderIdentity"], second["holderIdentity"]);
        assert_eq!(second["leaseTransitions"].as_u64(), first["leaseTransitions"].as_u64().map(|count| count + 1));
        assert!(Metrics::of(&replicas.standby).await.leads());

        // The one that comes back stands by.
        replicas.leader.start().await.unwrap();
        shun(fleet, "c2").await;
        assert_eq!(selected().await, [fleet.name("c3")]);
        fleet.selects("p", &["c3"]).await;
        let metrics = Metrics::of(&replicas.leader).await;
        assert!(!metrics.leads() && metrics.writes() == 0, "{metrics:?}");
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND]);
        replicas.end(fleet).await;
    }

    /// A leader that ends cleanly lets go of the lease: nobody waits for it to expire.
    turn async fn a_leader_that_ends_lets_go(turn: &mut Turn<'_>) {
        let Some(mut replicas) = Replicas::start_by(turn, turn.bed.kubeconfig(), &LONG).await else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        replicas.leader.stop().await.unwrap();
        let begun = Instant::now();
        shun(fleet, "c1").await;
        fleet.selects("p", &["c2"]).await;
        let took = begun.elapsed();
        assert!(took.as_secs() < LONG_SECONDS / 2, "took over after {took:?}");
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND]);
        replicas.end(fleet).await;
    }

    /// A leader that is cut off goes on running, and has stopped acting by the time another begins; what it had under way
    /// arrives too late to matter.
    turn async fn a_leader_that_is_cut_off_stops_before_another_begins(turn: &mut Turn<'_>) {
        let passage = Passage::open(turn.bed).await;
        let Some(replicas) = Replicas::start_by(turn, passage.kubeconfig(), &SHORT).await else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let before = written(fleet, &replicas.leader).await;
        let mut selected = follow(fleet).await;
        passage.cut();
        shun(fleet, "c1").await;
        until("another leading", PATIENCE, async || {
            // In this order: who is seen to lead after the other was has not stopped in time.
            let other = Metrics::of(&replicas.standby).await.leads();
            let cut_off = Metrics::of(&replicas.leader).await.leads();
            assert!(!(other && cut_off), "two leaders");
            if other { Ok(()) } else { Err(format!("the one that is cut off leads: {cut_off}")) }
        }).await;
        assert_eq!(selected().await, [fleet.name("c2")]);
        shun(fleet, "c2").await;
        assert_eq!(selected().await, [fleet.name("c3")]);

        passage.mend();
        // Whatever it had sent has arrived by then, and been refused.
        let sentinel = fleet.sentinel().await;
        sentinel.passes().await;
        let metrics = Metrics::of(&replicas.leader).await;
        assert!(!metrics.leads());
        assert_eq!(metrics.sum("berth_writes_total", &["result=\"ok\""]), before, "{metrics:?}");
        let slices = fleet.selects("p", &["c3"]).await;
        fleet.remove("c1").await;
        sentinel.passes().await;
        assert_eq!(fleet.slices("p").await.versions(), slices.versions());
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND]);
        replicas.end(fleet).await;
    }

    /// A leader that is paused for longer than its lease finds, when it wakes, that it leads no more, and writes nothing.
    turn async fn a_paused_leader_writes_nothing_when_it_wakes(turn: &mut Turn<'_>) {
        let Some(mut replicas) = Replicas::start(turn).await else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let before = written(fleet, &replicas.leader).await;
        let mut selected = follow(fleet).await;

        let paused = Timestamp::now();
        replicas.leader.pause().unwrap();
        // It will hear of this when it wakes, and believe for a moment that it should act.
        shun(fleet, "c1").await;
        assert_eq!(selected().await, [fleet.name("c2")]);
        let took = took(paused, &holder(fleet, &replicas.lease).await).as_secs();
        assert!(took >= 1, "the lease was not respected");
        assert!(took <= (LEASE_SECONDS + SLACK_SECONDS) as i64, "took {took} s");
        shun(fleet, "c2").await;
        assert_eq!(selected().await, [fleet.name("c3")]);
        fleet.selects("p", &["c3"]).await;

        replicas.leader.resume().unwrap();
        until("the old leader knowing", PATIENCE, async || {
            let metrics = Metrics::of(&replicas.leader).await;
            if metrics.leads() { Err("it still believes".to_owned()) } else { Ok(()) }
        }).await;
        let sentinel = fleet.sentinel().await;
        sentinel.passes().await;
        let metrics = Metrics::of(&replicas.leader).await;
        assert_eq!(metrics.writes(), before, "{metrics:?}");
        fleet.selects("p", &["c3"]).await;
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND]);

        // It is as good a standby as any.
        replicas.standby.kill();
        let mended = serde_json::json!({"spec": {"taints": null}});
        fleet.change("c1", &mended).await;
        shun(fleet, "c3").await;
        assert_eq!(selected().await, [fleet.name("c1")]);
        leads(&replicas.leader).await;
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND, FIRST]);
        replicas.end(fleet).await;
    }
}

/// Where no flag says otherwise, fifteen seconds after the leader's death another acts.
#[test]
fn by_default_a_killed_leader_is_followed_within_fifteen_seconds() {
    quiet(Ground::Kubernetes, async |turn: &mut Turn<'_>| {
        let usual = turn.bed.kubeconfig();
        let Some(mut replicas) = Replicas::start_by(turn, usual, &[]).await else { return };
        let fleet = &turn.fleet;
        stage(fleet).await;
        let first = holder(fleet, &replicas.lease).await;
        assert_eq!(first["leaseDurationSeconds"], USUAL_LEASE_SECONDS);
        let mut selected = follow(fleet).await;
        replicas.leader.kill();
        let begun = Instant::now();
        shun(fleet, "c1").await;
        assert_eq!(selected().await, [fleet.name("c2")]);
        let took = begun.elapsed();
        // The rest of a term that was renewed two seconds before, or less.
        assert!(
            took.as_secs() >= USUAL_LEASE_SECONDS - SLACK_SECONDS,
            "the lease was not respected: {took:?}"
        );
        // A standby is there at the moment at which the term ends; the rest is deciding and two writes.
        assert!(took.as_secs() <= USUAL_LEASE_SECONDS, "took over after {took:?}");
        fleet.selects("p", &["c2"]).await;
        assert_eq!(replicas.terms(fleet), [FIRST, SECOND]);
        replicas.end(fleet).await;
    });
}
