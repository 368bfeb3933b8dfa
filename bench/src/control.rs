//! The placement controller at work on a real API server, beside a bare client that makes as many writes.

mod ground;
mod inward;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_bed::{Bed, BedError};
use berth_sim::View;
use serde_json::{Value, json};

use self::ground::Ground;
pub(crate) use self::inward::counted;
use crate::figure::{Figure, grouped, median, millis, percentile};
use crate::fleet;
use crate::report::{Report, progress};

const HEAD: &str = "\
control: the release binary (`berth run`, the placement controller alone) against kube-apiserver and etcd on this machine.
etcd does not wait for the disk: what waits for one says nothing of us.
floor: a bare client that makes the same number of writes to the same server in the same run; for a reaction, one that
reads every cluster and answers a change with one write, at the same percentile.";

/// How much slower than a bare client the controller may be: what it decides must not be seen.
const OVER_FLOOR_MAX: f64 = 1.3;
/// How many round trips of a write a reaction may take.
const ROUND_TRIPS_MAX: f64 = 3.0;
/// Requests for a new placement, events included; the peer makes six.
const REQUESTS_MAX: f64 = 5.5;
/// The share of a processor that changes which concern nobody may take, in percent.
const IDLE_PERCENT_MAX: f64 = 1.0;

/// How much is measured.
struct Effort {
    clusters: usize,
    placements: usize,
    /// Clusters while placements are new: a large fleet, or no more than before.
    clusters_at_last: usize,
    reactions: usize,
    idle: Duration,
}

const QUICK: Effort = Effort {
    clusters: 200,
    placements: 200,
    clusters_at_last: 200,
    reactions: 20,
    idle: Duration::from_secs(5),
};
const FULL: Effort = Effort {
    clusters: 1_000,
    placements: 1_000,
    clusters_at_last: 5_000,
    reactions: 100,
    idle: Duration::from_secs(30),
};

/// Changes a second that concern nobody.
const IDLE_CHANGES: u32 = 100;

/// Runs the bench.
pub(crate) fn run(quick: bool) -> anyhow::Result<Report> {
    let effort = if quick { QUICK } else { FULL };
    let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
    progress("changes that concern nobody, without sockets");
    inward::tell(effort.clusters, &mut report)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match Bed::kubernetes().without_fsync().await {
            Ok(bed) => measure(bed, &effort, &mut report).await?,
            Err(absent @ BedError::Absent { .. }) => {
                progress(&format!("nothing to measure on: {absent}"));
                report.add("placements", "s", Figure::Absent("no kube-apiserver"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(report)
    })
}

async fn measure(bed: Bed, effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let &Effort { clusters, placements, clusters_at_last, reactions, idle } = effort;
    progress(&format!("a fleet of {clusters} clusters"));
    let mut ground = Ground::new(bed, clusters).await?;
    let view = View::new(ground.client.clone());

    let few = placements / 10;
    ground.place(fleet::others().take(few)).await?;
    ground.start().await?;
    view.until("the first placements are decided", |state| state.filled() >= few).await?;
    quiet(&ground).await?;
    react(&ground, &view, reactions, report).await?;
    stay_calm(&ground, clusters, idle, report).await?;
    if clusters_at_last > clusters {
        progress(&format!("a fleet of {clusters_at_last} clusters"));
        ground.controllers.as_mut().context("they run")?.stop().await?;
        ground.add_clusters(clusters..clusters_at_last).await?;
        ground.start().await?;
    }
    settle(&mut ground, &view, few, placements, clusters_at_last, report).await?;
    restart(&mut ground, report).await
}

/// A taint on a selected cluster, until no decision names it.
async fn react(ground: &Ground, view: &View, reactions: usize, report: &mut Report) -> anyhow::Result<()> {
    progress("reactions to a taint");
    let taint = json!({"spec": {"taints": [{"key": "bench.berth.dev/down", "effect": "NoSelect"}]}});
    let (mut took, mut trips) = (Vec::new(), Vec::new());
    let used = ground.processor_seconds()?;
    for _ in 0..reactions {
        let cluster =
            view.now(|state| state.clusters().first().cloned()).context("no cluster is selected")?;
        trips.push(millis(ground.change(&cluster, taint.clone()).await?));
        let begun = Instant::now();
        view.until("the cluster is left", |state| !state.names(&cluster)).await?;
        took.push(millis(begun.elapsed()));
        ground.change(&cluster, json!({"spec": {"taints": Value::Null}})).await?;
    }
    let used = ground.processor_seconds()? - used;
    progress("reactions of a bare client");
    let mut bare: Vec<f64> = ground.bare_reactions(view, reactions).await?.into_iter().map(millis).collect();
    let trip = median(trips.clone());
    for (percent, share) in [("median", 0.5), ("90th percentile", 0.9), ("99th percentile", 0.99)] {
        let name = format!("reaction to a taint, {percent}");
        report.add(&name, "ms", Figure::Number(percentile(&mut took, share))).floor =
            Some(percentile(&mut bare, share));
        report.hold(&name, "ms", ROUND_TRIPS_MAX * trip, false);
    }
    for (percent, share) in [("median", 0.5), ("99th percentile", 0.99)] {
        report.add(format!("one bare write, {percent}"), "ms", Figure::Number(percentile(&mut trips, share)));
    }
    // Each cluster is tainted and freed.
    let name = "processor for one taint and its end";
    report.add(name, "ms", Figure::Number(used * 1e3 / reactions as f64));
    report.hold(name, "ms", 2.0, false);
    Ok(())
}

/// Labels that no placement looks at.
async fn stay_calm(
    ground: &Ground,
    clusters: usize,
    idle: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    progress("changes that concern nobody");
    quiet(ground).await?;
    let (used, (writes, _)) = (ground.processor_seconds()?, ground.requests().await?);
    let begun = Instant::now();
    let mut pulse = tokio::time::interval(Duration::from_secs(1) / IDLE_CHANGES);
    let mut number = 0_usize;
    while begun.elapsed() < idle {
        pulse.tick().await;
        let label = json!({"metadata": {"labels": {"bench.berth.dev/beat": number.to_string()}}});
        ground.change(&fleet::name(number % clusters), label).await?;
        number += 1;
    }
    let (used, took) = (ground.processor_seconds()? - used, begun.elapsed().as_secs_f64());
    let (percent, rate) = (used * 100.0 / took, number as f64 / took);
    let name = format!("{rate:.0} changes a second that concern nobody");
    report.add(&name, "% of a processor", Figure::Number(percent));
    report.hold(&name, "% of a processor", IDLE_PERCENT_MAX * rate / f64::from(IDLE_CHANGES), false);
    report.add(&name, "µs of processor each", Figure::Number(used * 1e6 / number as f64));
    let (after, _) = ground.requests().await?;
    report.add(&name, "writes", Figure::Number(after - writes));
    report.hold(&name, "writes", 0.0, true);
    Ok(())
}

/// Many new placements, found at the start, until each has its decision and its status.
async fn settle(
    ground: &mut Ground,
    view: &View,
    few: usize,
    placements: usize,
    clusters: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let new = placements - few;
    progress(&format!("{new} bare placements' worth of writes"));
    let floor = ground.bare_writes(new, 0).await?;
    ground.controllers.as_mut().context("they run")?.stop().await?;
    ground.place(fleet::others().skip(few).take(new)).await?;
    progress(&format!("{new} new placements"));
    let started = ground.start().await?;
    let begun = Instant::now();
    view.until("every placement is decided", |state| state.filled() >= placements + new).await?;
    let (took, used) = (begun.elapsed(), ground.processor_seconds()?);
    quiet(ground).await?;
    let used_until_quiet = ground.processor_seconds()?;
    let again = ground.bare_writes(new, 1).await?;
    let floor = floor.min(again);
    let name = format!("{} new placements, {} clusters", grouped(new as i64), grouped(clusters as i64));
    report.add(&name, "s", Figure::Number(took.as_secs_f64())).floor = Some(floor.as_secs_f64());
    report.hold(&name, "s", OVER_FLOOR_MAX * floor.as_secs_f64(), false);
    // From the start of the process: it reads the fleet, too.
    report.add(&name, "s of processor, until done", Figure::Number(used));
    report.add(&name, "s of processor, until quiet", Figure::Number(used_until_quiet));
    report.add(&name, "MB at most", Figure::Number(ground.peak_megabytes()?));
    let (writes, events) = ground.requests().await?;
    report.add(&name, "requests each", Figure::Number((writes + events) / new as f64));
    report.hold(&name, "requests each", REQUESTS_MAX, true);
    report.add("start until the caches are filled", "ms", Figure::Number(millis(started)));
    Ok(())
}

/// A start with nothing to do.
async fn restart(ground: &mut Ground, report: &mut Report) -> anyhow::Result<()> {
    progress("a restart with nothing changed");
    ground.controllers.as_mut().context("they run")?.stop().await?;
    let took = ground.start().await?;
    quiet(ground).await?;
    let (writes, events) = ground.requests().await?;
    let name = "restart with nothing changed";
    report.add(name, "ms until ready", Figure::Number(millis(took)));
    report.hold(name, "ms until ready", 1_000.0, false);
    report.add(name, "writes", Figure::Number(writes + events));
    report.hold(name, "writes", 0.0, true);
    Ok(())
}

/// Waits until the controllers have rested for a second.
async fn quiet(ground: &Ground) -> anyhow::Result<()> {
    let mut before = ground.processor_seconds()?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = ground.processor_seconds()?;
        if now - before < 0.02 {
            return Ok(());
        }
        before = now;
    }
}
