//! The hub beside a real kube-apiserver with its etcd: the same requests by the same client, in one run.
//!
//! Every stage is done on one server and then on the other, several times, and the best counts: what else the machine
//! does hits both. Both keep what they acknowledge on the disk, with `fsync`.

mod client;
mod fan;
mod objects;
mod side;

use std::time::Instant;

use anyhow::{Context as _, ensure};
use berth_bed::{Bed, BedError};

use self::objects::Kind;
use self::side::Side;
use crate::figure::{Figure, grouped};
use crate::process::{berth, own_processor_seconds};
use crate::report::{Report, progress};

const HEAD: &str = "\
hub: the release binary on a data directory, everything durable before it is acknowledged.
peer: kube-apiserver and etcd (fsync on), in the same run on the same machine; one client for both, HTTP/2 over TLS, \
which takes its share of the processors. Each figure is the best of several rounds in turn.
ratio: how many times ahead of the peer the hub is; more is better.";

/// How far ahead of the pair the hub must be.
const AHEAD_MIN: f64 = 3.0;
/// How many times less memory it must need than the pair.
const LEANER_MIN: f64 = 5.0;
/// A quick run moves so few objects that start-up costs, the client's share and other people's work on the machine are
/// a good part of each figure: it guards against a collapse, the full run against a loss.
const AHEAD_MIN_QUICK: f64 = 1.5;
/// The most a start may take until the hub is ready, in milliseconds, with [`Effort::objects`] in its data.
const START_MILLIS_MAX: f64 = 200.0;

/// How much is measured.
struct Effort {
    rounds: usize,
    /// Creates one after the other, of each kind, in all rounds together.
    serial: usize,
    /// Creates with 32 in flight, of each kind, in all rounds together.
    parallel: usize,
    serial_gets: usize,
    parallel_gets: usize,
    lists: usize,
    watchers: usize,
    updates: usize,
}

const QUICK: Effort = Effort {
    rounds: 3,
    serial: 150,
    parallel: 450,
    serial_gets: 200,
    parallel_gets: 1_000,
    lists: 3,
    watchers: 100,
    updates: 50,
};

const FULL: Effort = Effort {
    rounds: 5,
    serial: 1_000,
    parallel: 4_000,
    serial_gets: 1_000,
    parallel_gets: 5_000,
    lists: 9,
    watchers: 1_000,
    updates: 1_000,
};

/// Requests under way at once where it is not one.
const IN_FLIGHT: usize = 32;

impl Effort {
    /// Objects of each kind by the time they are listed.
    fn objects(&self) -> usize {
        self.serial + self.parallel
    }
}

/// One kind of figure: how it is measured on a side, and which way is better.
struct Stage<'a> {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    rounds: usize,
    /// Whether it makes what the others read.
    creates: bool,
    measure: Box<dyn Fn(&'a Side, usize) -> anyhow::Result<f64> + 'a>,
}

/// Runs the bench, or the stages that have `only` in their name.
pub(crate) fn run(quick: bool, only: Option<&str>) -> anyhow::Result<Report> {
    let effort = if quick { QUICK } else { FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut hub = Side::new(&runtime, runtime.block_on(Bed::hub().program(berth()?).into_future())?)?;
    let mut pair = match runtime.block_on(Bed::kubernetes().into_future()) {
        Ok(bed) => Some(Side::new(&runtime, bed)?),
        Err(absent @ BedError::Absent { .. }) => {
            progress(&format!("no peer: {absent}"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
    let ahead = if quick { AHEAD_MIN_QUICK } else { AHEAD_MIN };
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    let memory = "peak memory";
    let start = format!("start with {} objects, to ready", grouped(2 * effort.objects() as i64));
    let stages = stages(&effort);
    // What is read must have been made.
    let reads =
        wanted(memory) || wanted(&start) || stages.iter().any(|stage| !stage.creates && wanted(&stage.name));
    for stage in stages.into_iter().filter(|stage| wanted(&stage.name) || (reads && stage.creates)) {
        progress(&stage.name);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..stage.rounds {
            ours.push(measured(&stage, &hub, round)?);
            if let Some(pair) = &pair {
                theirs.push(measured(&stage, pair, round)?);
            }
        }
        let best = |figures: &[f64]| {
            let better = if stage.more_is_better { f64::max } else { f64::min };
            figures.iter().copied().reduce(better)
        };
        let (ours, theirs) = (best(&ours).unwrap_or(f64::NAN), best(&theirs));
        let row = report.add(&stage.name, stage.unit, Figure::Number(ours));
        row.peer = theirs;
        row.ratio = theirs.map(|theirs| if stage.more_is_better { ours / theirs } else { theirs / ours });
        report.hold_ratio(&stage.name, stage.unit, ahead);
    }

    if wanted(memory) {
        let (ours, theirs) = (hub.peak_megabytes()?, pair.as_ref().map(Side::peak_megabytes).transpose()?);
        let row = report.add(memory, "MB", Figure::Number(ours));
        row.peer = theirs;
        row.ratio = theirs.map(|theirs| theirs / ours);
        report.hold_ratio(memory, "MB", LEANER_MIN);
    }
    if wanted(&start) {
        progress(&start);
        let ours = hub.restart_hub(effort.rounds)?;
        let theirs = match &mut pair {
            Some(pair) => Some(pair.restart_millis()?),
            None => None,
        };
        let row = report.add(&start, "ms", Figure::Number(ours));
        row.peer = theirs;
        row.ratio = theirs.map(|theirs| theirs / ours);
        report.hold(&start, "ms", START_MILLIS_MAX, true);
    }
    ensure!(
        !report.rows.is_empty(),
        "nothing that is measured has {:?} in its name",
        only.unwrap_or_default()
    );
    Ok(report)
}

fn stages<'a>(effort: &Effort) -> Vec<Stage<'a>> {
    let &Effort { rounds, serial, parallel, serial_gets, parallel_gets, lists, watchers, updates } = effort;
    let mut stages: Vec<Stage<'a>> = Vec::new();
    let mut add =
        |name: String, unit, more_is_better, rounds, measure: Box<dyn Fn(&'a Side, usize) -> _ + 'a>| {
            let creates = name.starts_with("creates");
            stages.push(Stage { name, unit, more_is_better, rounds, creates, measure });
        };
    for kind in [Kind::ConfigMap, Kind::ManagedCluster] {
        for (in_flight, count) in [(1, serial / rounds), (IN_FLIGHT, parallel / rounds)] {
            let name = format!("creates of {kind}, {in_flight} in flight");
            let create = move |side: &'a Side, round| {
                let prefix = format!("f{in_flight}-r{round}");
                per_second(count, || side.create(kind, &prefix, count, in_flight))
            };
            add(name, "per second", true, rounds, Box::new(create));
        }
    }
    let object = || Kind::ManagedCluster.path("f1-r0-0");
    let serial = move |side: &'a Side, _| {
        let begun = Instant::now();
        side.get(&object(), serial_gets, 1)?;
        Ok(begun.elapsed().as_secs_f64() * 1e6 / serial_gets as f64)
    };
    add("get of a ManagedCluster".into(), "µs", false, rounds, Box::new(serial));
    let parallel =
        move |side: &'a Side, _| per_second(parallel_gets, || side.get(&object(), parallel_gets, IN_FLIGHT));
    add(
        format!("gets of a ManagedCluster, {IN_FLIGHT} in flight"),
        "per second",
        true,
        rounds,
        Box::new(parallel),
    );

    let listed = rounds * (effort.serial / rounds + effort.parallel / rounds);
    let list = move |side: &'a Side, _| side.list(Kind::ManagedCluster, listed);
    let name = format!("list of {} ManagedClusters", grouped(listed as i64));
    add(name, "ms", false, lists, Box::new(list));

    let fan_out = move |side: &'a Side, round| side.fan_out(watchers, updates, round);
    let name = format!("{} updates to {} watchers", grouped(updates as i64), grouped(watchers as i64));
    add(name, "events per second", true, rounds.min(2), Box::new(fan_out));
    stages
}

/// One round on one side. Where its time went is told as it goes: on a busy machine the processors say more than the
/// clock.
fn measured<'a>(stage: &Stage<'a>, side: &'a Side, round: usize) -> anyhow::Result<f64> {
    let (begun, server, client) = (Instant::now(), side.processor_seconds()?, own_processor_seconds()?);
    let figure = (stage.measure)(side, round).with_context(|| format!("{}, {}", stage.name, side.kind()))?;
    let (server, client) = (side.processor_seconds()? - server, own_processor_seconds()? - client);
    let wall = begun.elapsed().as_secs_f64();
    progress(&format!(
        "  {:.2} s on {}; of processors: it {server:.2} s, the client {client:.2} s",
        wall,
        side.kind()
    ));
    Ok(figure)
}

fn per_second(count: usize, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}
