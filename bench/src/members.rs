//! The replacement-controller over many policies, without a server: everybody from scratch, and again after an event of one node.

mod stage;

use std::time::Duration;

use anyhow::ensure;

use self::stage::{Size, Spent, Stage};
use crate::figure::{Figure, grouped, median, percentile};
use crate::report::{Report, progress};

const HEAD: &str = "\
replacements: the replacement-controller in this process, with a world and answers in the hand; no sockets, nothing written.
Each policy has ten members with a local volume each; four members are on a node. Policies are on trial, so that everything is
decided, read and told, and nobody goes. Counted is the controller alone: what it observes, decides, hears and writes down, until
nothing is left to decide. What reading JSON from a server costs is the world's, and the same for every controller.
value: median where it is a time.";

/// Of the time of one core, for everybody.
const AFRESH_MILLIS_MAX: f64 = 100.0;
/// Of the time of one core, for one event of one node.
const EVENT_MICROS_MAX: f64 = 200.0;
/// What one event takes today, with some room: four policies decide, read one member each, and write down what that comes to.
const EVENT_ALLOCATIONS_MAX: f64 = 10_000.0;
/// What a member takes today while everybody is decided from scratch, with some room.
const MEMBER_ALLOCATIONS_MAX: f64 = 200.0;

const FULL: Size = Size { policies: 1_000, nodes: 2_500, tainted: 500 };
const QUICK: Size = Size { policies: 100, nodes: 250, tainted: 50 };
/// How often everybody is decided from scratch.
const ROUNDS: usize = 5;

/// Runs the bench.
pub(crate) fn run(quick: bool) -> anyhow::Result<Report> {
    let size = if quick { QUICK } else { FULL };
    let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
    let members = size.policies * stage::MEMBERS_PER_POLICY;
    let shape = format!(
        "{} members, {} policies, {} of {} nodes tainted",
        grouped(members as i64),
        grouped(size.policies as i64),
        size.tainted,
        grouped(size.nodes as i64)
    );
    progress(&shape);
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let mut stage = Stage::new(size)?;
        let heard = stage.hear_everything()?;
        let decided = stage.settle()?;
        stage.prove()?;
        all.push((heard, decided));
    }
    let of = |part: fn(&(Spent, Spent)) -> f64| median(all.iter().map(part).collect());
    report.add(format!("hear of {shape}"), "ms", Figure::Number(of(|(heard, _)| millis(heard.time))));
    let name = format!("decide everybody from scratch, {shape}");
    report.add(&name, "ms", Figure::Number(of(|(_, decided)| millis(decided.time))));
    // The target is of that size, and time is of this machine.
    report.hold(&name, "ms", AFRESH_MILLIS_MAX, false);
    report.add(&name, "decisions", Figure::Number(of(|(_, decided)| decided.decisions as f64)));
    let per_member = of(|(_, decided)| decided.allocations as f64) / members as f64;
    report.add(&name, "allocations per member", Figure::Number(per_member));
    report.hold(&name, "allocations per member", MEMBER_ALLOCATIONS_MAX, true);

    let mut stage = Stage::new(size)?;
    stage.hear_everything()?;
    stage.settle()?;
    let mut events = Vec::new();
    for number in 0..size.nodes {
        // Every node changes once: what is tainted gets well, what is well is tainted.
        events.push(stage.event(number, number >= size.tainted)?);
    }
    let decisions: usize = events.iter().map(|event| event.decisions).sum();
    ensure!(
        decisions >= 4 * size.nodes,
        "{decisions} decisions: an event that concerns nobody measures nothing"
    );
    let mut times: Vec<f64> = events.iter().map(|event| event.time.as_secs_f64() * 1e6).collect();
    let name = format!("an event of one node, {shape}");
    report.add(&name, "µs", Figure::Number(median(times.clone())));
    report.hold(&name, "µs", EVENT_MICROS_MAX, false);
    report.add(format!("{name}, 99 of 100 within"), "µs", Figure::Number(percentile(&mut times, 0.99)));
    report.add(&name, "decisions", Figure::Number(decisions as f64 / size.nodes as f64));
    let allocations = median(events.iter().map(|event| event.allocations as f64).collect());
    report.add(&name, "allocations", Figure::Number(allocations));
    report.hold(&name, "allocations", EVENT_ALLOCATIONS_MAX, true);
    Ok(report)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
