//! The placement controller at work on a real API server, beside a bare client that makes as many writes.

mod ground;
mod view;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_bed::{Bed, BedError};
use serde_json::{Value, json};

use self::ground::Ground;
use self::view::View;
use crate::figure::{Figure, grouped, median};
use crate::fleet;
use crate::report::{Report, progress};

const HEAD: &str = "\
control: the release binary (`berth run`, the placement controller alone) against kube-apiserver and etcd on this machine.
floor: a bare client that makes the same number of writes to the same server in the same run, or one write of it.";

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
    reactions: usize,
    idle: Duration,
}

const QUICK: Effort = Effort { clusters: 200, placements: 200, reactions: 20, idle: Duration::from_secs(5) };
const FULL: Effort =
    Effort { clusters: 1_000, placements: 1_000, reactions: 100, idle: Duration::from_secs(30) };

/// Changes a second that concern nobody.
const IDLE_CHANGES: u32 = 100;

/// Runs the bench.
pub(crate) fn run(quick: bool) -> anyhow::Result<Report> {
    let effort = if quick { QUICK } else { FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
        match Bed::kubernetes().await {
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
    let &Effort { clusters, placements, reactions, idle } = effort;
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
    settle(&mut ground, &view, few, placements, report).await?;
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
    for (name, share) in
        [("reaction to a taint, median", 0.5), ("reaction to a taint, 99th percentile", 0.99)]
    {
        let floor = median(trips.clone());
        report.add(name, "ms", Figure::Number(percentile(&mut took, share))).floor = Some(floor);
        report.hold(name, "ms", ROUND_TRIPS_MAX * floor, false);
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
    let percent = (ground.processor_seconds()? - used) * 100.0 / begun.elapsed().as_secs_f64();
    let rate = number as f64 / begun.elapsed().as_secs_f64();
    let name = format!("{rate:.0} changes a second that concern nobody");
    report.add(&name, "% of a processor", Figure::Number(percent));
    report.hold(&name, "% of a processor", IDLE_PERCENT_MAX, false);
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
    let took = begun.elapsed();
    quiet(ground).await?;
    let again = ground.bare_writes(new, 1).await?;
    let floor = floor.min(again);
    let name = format!("{} new placements", grouped(new as i64));
    report.add(&name, "s", Figure::Number(took.as_secs_f64())).floor = Some(floor.as_secs_f64());
    report.hold(&name, "s", OVER_FLOOR_MAX * floor.as_secs_f64(), false);
    let used = ground.processor_seconds()?;
    report.add(&name, "s of processor, until quiet", Figure::Number(used));
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

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The smallest sample that so large a share is no larger than.
fn percentile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let place = (samples.len() as f64 * share).ceil() as usize;
    samples.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_samples() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert!((percentile(&mut samples, 0.5) - 50.0).abs() < f64::EPSILON);
        assert!((percentile(&mut samples, 0.99) - 99.0).abs() < f64::EPSILON);
        assert!((percentile(&mut [7.0], 0.5) - 7.0).abs() < f64::EPSILON);
    }
}
