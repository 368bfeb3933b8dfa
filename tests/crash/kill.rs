//! SIGKILL under load, again and again.

use std::time::Duration;

use berth_bed::{Bed, or_skip};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::follower::{followers, settle};
use crate::load::{self, Errors, Writer};
use crate::vessel::Collection;
use crate::witness::Witness;
use crate::{seed, server};
use berth_tests::random::Random;

const KILLS: usize = 52;
const WRITERS: usize = 6;
const READERS: usize = 2;

/// Acknowledged writes after which the process is killed, at most.
const LOAD_MAX: usize = 120;

/// Up to this long after the last of them, so that every moment of a write is met, in microseconds.
const MOMENT_MAX: usize = 6_000;

/// How far a start may get before it is killed, in milliseconds.
const START_MAX: usize = 300;

fn client(bed: &Bed) -> Client {
    let mut config = bed.config();
    // A request that is sent twice would be counted once.
    config.default_retry = false;
    Client::try_from(config).expect("a configuration that the bed uses itself")
}

/// Puts the hub under load until enough writes are acknowledged, kills it, and waits until every client noticed.
async fn load_and_kill(bed: &mut Bed, witness: &Witness, random: &mut Random) {
    let (counter, mut count) = watch::channel(0);
    let (over, load_over) = watch::channel(false);
    let mut clients = JoinSet::new();
    for number in 0..WRITERS {
        let (client, witness, random) = (client(bed), witness.clone(), Random::new(random.next()));
        let errors = Errors::Never;
        let mut writer = Writer { client, witness, random, number, errors, counter: counter.clone() };
        clients.spawn(async move { writer.run(usize::MAX).await });
    }
    for _ in 0..READERS {
        let random = Random::new(random.next());
        clients.spawn(load::read(client(bed), witness.clone(), random, load_over.clone()));
    }
    let enough = random.below(LOAD_MAX) as u64;
    let moment = Duration::from_micros(random.below(MOMENT_MAX) as u64);
    tokio::select! {
        reached = count.wait_for(|count| *count >= enough) => drop(reached.expect("the counter is still held")),
        Some(ended) = clients.join_next() => panic!("a client ended before the hub was killed: {ended:?}"),
    }
    tokio::time::sleep(moment).await;
    bed.kill();
    let _ = over.send(true);
    clients.join_all().await; // fails with a client that met what must not be
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_killed_under_load_keeps_every_acknowledged_write_and_its_watchers_resume() {
    let Some(mut bed) = or_skip(Bed::hub().await) else { return };
    let seed = seed();
    let mut random = Random::new(seed);
    let witness = Witness::default();
    server::define(&client(&bed)).await;
    let from = server::revision(&server::list(&client(&bed), Collection::Vessels).await);
    let (_door, door) = watch::channel(client(&bed));
    let mut followers = followers(&door, from, &witness);

    let mut killed_at_start = 0;
    for kill in 0..KILLS {
        load_and_kill(&mut bed, &witness, &mut random).await;
        if random.chance(15) {
            let moment = Duration::from_millis(random.below(START_MAX) as u64);
            // Dropping the start kills the process.
            let _ = timeout(moment, bed.start())
                .await
                .map(|started| started.expect("it starts, or is killed before"));
            bed.kill();
            killed_at_start += 1;
        }
        bed.start().await.expect("the hub starts on what the crash left");
        let (client, when) = (client(&bed), format!("seed {seed}, kill {kill}"));
        witness.inspect(&client, &when).await;
        settle(&client, &mut followers, &witness, &mut random, &when).await;
    }

    let (acknowledged, unanswered, carried_out) = witness.account();
    let (events, begun) = followers.iter().fold((0, 0), |(events, begun), follower| {
        let (more_events, more_begun) = follower.account();
        (events + more_events, begun + more_begun)
    });
    eprintln!(
        "seed {seed}: {KILLS} kills under load and {killed_at_start} while starting; {acknowledged} writes acknowledged, \
         {unanswered} without an answer of which {carried_out} were carried out; {} followers began {begun} times and saw \
         {events} events",
        followers.len(),
    );
    assert!(acknowledged > KILLS as u64 * 10, "the hub was under load");
    assert!(unanswered >= KILLS as u64, "it was killed while it worked");
    assert!(begun > KILLS * followers.len(), "the followers met every crash");
}
