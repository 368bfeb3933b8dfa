//! The engine: one placement over a fleet, from scratch and after a change, with a thousand others around it.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

use crate::count::{self, Allocated, allocated, counted_call};
use crate::figure::{Figure, grouped, median};
use crate::fleet::{self, Detail};
use crate::replacement;
use crate::report::Report;
use crate::spread;
use crate::stage::{GROUPS, HELD_FROM, STEPS, Stage, Step};
use berth_engine::{Delta, Model};

const HEAD: &str = "\
engine: one placement of 10 clusters, `vendor=OpenShift, env in (prod, staging)`, one of two taints tolerated, \
default prioritizers, 1,000 other placements that hold 10 clusters each.
value: median where it is a time; allocations include growing; instructions as callgrind counts them.
peer: upstream's scheduler (Go, without one needless conversion) deciding from scratch, as recorded in another run \
on a 2-core machine.
floor: one pass over looked-up numbers, in this run.
ratio: the textbook of this run (API objects, string maps, everything counted and sorted, from scratch) divided by \
value; more is better.";

/// Upstream's recorded figures: clusters, microseconds, allocations.
const UPSTREAM: [(usize, f64, f64); 2] = [(1_000, 1_300.0, 3_008.0), (10_000, 6_370.0, 15_173.0)];

/// The size the wall time targets are about.
const TARGET_SIZE: usize = 10_000;
const AFRESH_MICROS_MAX: f64 = 100.0;
const REACTION_MICROS_MAX: f64 = 20.0;
const ALLOCATIONS_MAX: f64 = 100.0;
const MILLION_LABELS_SECONDS_MAX: f64 = 2.0;
const CLUSTER_BYTES_MAX: f64 = 2_000.0;
/// What "flat" allows while the fleet grows tenfold: maps one level deeper, bitmaps in more chunks.
const FLAT_MAX: f64 = 1.5;

/// How much is measured.
struct Effort {
    sizes: &'static [usize],
    /// How long a group of steps is repeated, and how often at least.
    time: Duration,
    least: usize,
    /// Over how many clusters placements are spread.
    spread: &'static [usize],
    indexed: usize,
}

const QUICK: Effort = Effort {
    sizes: &[1_000, 10_000],
    time: Duration::from_millis(100),
    least: 5,
    spread: &[10_000],
    indexed: 10_000,
};
const FULL: Effort = Effort {
    sizes: &[1_000, 10_000, 100_000],
    time: Duration::from_secs(1),
    least: 25,
    spread: &[10_000, 20_000],
    indexed: 50_000,
};

/// What one step costs at one size.
struct Cost {
    step: Step,
    micros: f64,
    allocated: Allocated,
    instructions: Figure,
    touched: usize,
}

/// Runs the bench. Counting instructions takes most of the time, so a quick run does it only if it is to be checked.
pub(crate) fn run(quick: bool, check: bool) -> anyhow::Result<Report> {
    let effort = if quick { QUICK } else { FULL };
    let countable = match (quick && !check, count::can_count_instructions()) {
        (true, _) => Err("not with --quick"),
        (false, false) => Err("valgrind not found"),
        (false, true) => Ok(()),
    };
    let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
    let mut all = Vec::new();
    for size in effort.sizes {
        progress(&format!("{} clusters", grouped(*size as i64)));
        let costs = measure(*size, &effort, countable)?;
        tell(&mut report, *size, &costs);
        all.push((*size, costs));
    }
    if let [.., (from, small), (to, large)] = &all[..] {
        tell_growth(&mut report, (*from, small), (*to, large));
    }
    progress("spreading");
    spread::tell(&mut report, effort.spread)?;
    progress("replacing");
    replacement::tell(&mut report)?;
    progress("indexing");
    tell_index(&mut report, effort.indexed);
    Ok(report)
}

fn progress(what: &str) {
    // Nobody may be reading; the report does not depend on it.
    let _ = writeln!(stderr(), "    measuring {what}");
}

fn measure(size: usize, effort: &Effort, countable: Result<(), &'static str>) -> anyhow::Result<Vec<Cost>> {
    let instructions = match countable {
        Ok(()) => {
            let calls = count::instructions(&["engine", "--counted", &size.to_string()], STEPS)?;
            calls.into_iter().map(|count| Figure::Number(count as f64)).collect()
        }
        Err(why) => vec![Figure::Absent(why); STEPS],
    };
    let mut instructions = instructions.into_iter();
    let mut stage = Stage::new(size)?;
    let mut costs = Vec::new();
    for (number, group) in GROUPS.iter().enumerate() {
        if number == HELD_FROM {
            stage.settle()?;
        }
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); group.len()];
        let begun = Instant::now();
        while begun.elapsed() < effort.time || times[0].len() < effort.least {
            for (step, times) in group.iter().zip(&mut times) {
                let delta = stage.delta(*step);
                let start = Instant::now();
                stage.perform(*step, delta);
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        for (step, times) in group.iter().zip(times) {
            let delta = stage.delta(*step);
            let (touched, allocated) = allocated(|| stage.perform(*step, delta));
            let instructions = instructions.next().unwrap_or(Figure::Absent("not counted"));
            costs.push(Cost { step: *step, micros: median(times), allocated, instructions, touched });
        }
    }
    Ok(costs)
}

/// Does every step once where an instruction counter sees it, after once where it does not.
pub(crate) fn counted(size: usize) -> anyhow::Result<()> {
    let mut stage = Stage::new(size)?;
    for (number, group) in GROUPS.iter().enumerate() {
        if number == HELD_FROM {
            stage.settle()?;
        }
        for step in *group {
            let delta = stage.delta(*step);
            stage.perform(*step, delta);
        }
        for step in *group {
            let mut delta = Some(stage.delta(*step));
            counted_call(&mut || {
                stage.perform(*step, delta.take().flatten());
            });
        }
    }
    Ok(())
}

fn row_name(step: Step, size: usize) -> String {
    format!("{}, {} clusters", step.name(), grouped(size as i64))
}

fn tell(report: &mut Report, size: usize, costs: &[Cost]) {
    let of = |step: Step| costs.iter().find(|cost| cost.step == step);
    let (textbook, scan) = (of(Step::Textbook), of(Step::Scan));
    let upstream = UPSTREAM.iter().find(|(clusters, ..)| *clusters == size);
    for cost in costs {
        let (step, name) = (cost.step, row_name(cost.step, size));
        let mut add = |unit, peer: Option<f64>, read: &dyn Fn(&Cost) -> Figure| {
            let value = read(cost);
            let row = report.add(name.clone(), unit, value);
            let number = |cost: Option<&Cost>| cost.and_then(|cost| read(cost).number());
            if step.decides_one() {
                row.peer = peer;
                row.ratio = number(textbook).zip(value.number()).map(|(textbook, value)| textbook / value);
            }
            if step.is_from_scratch() {
                row.floor = number(scan);
            }
        };
        add("µs", upstream.map(|(_, micros, _)| *micros), &|cost| Figure::Number(cost.micros));
        add("instructions", None, &|cost| cost.instructions);
        if step != Step::Scan {
            let times = upstream.map(|(.., times)| *times);
            add("allocations", times, &|cost| Figure::Number(cost.allocated.times as f64));
        }
        if step.is_from_scratch() || step == Step::Textbook {
            add("bytes", None, &|cost| Figure::Number(cost.allocated.bytes as f64));
        }
        if matches!(step, Step::Label | Step::AllOn | Step::AllOff) {
            add("placements touched", None, &|cost| Figure::Number(cost.touched as f64));
        }
    }
    for step in [Step::Afresh, Step::Held, Step::DecideOn, Step::DecideOff] {
        report.hold(&row_name(step, size), "allocations", ALLOCATIONS_MAX, true);
    }
    if size == TARGET_SIZE {
        for step in [Step::Afresh, Step::Held, Step::TaintOn, Step::TaintOff] {
            let most = if step.is_from_scratch() { AFRESH_MICROS_MAX } else { REACTION_MICROS_MAX };
            report.hold(&row_name(step, size), "µs", most, false);
        }
    }
    report.hold(&row_name(Step::Label, size), "placements touched", 0.0, true);
}

fn tell_growth(report: &mut Report, (from, small): (usize, &[Cost]), (to, large): (usize, &[Cost])) {
    let tenfold = to as f64 / from as f64;
    for (small, large) in small.iter().zip(large) {
        let at_most = match small.step {
            Step::Afresh | Step::Held => tenfold,
            Step::TaintOn | Step::TaintOff | Step::DecideOn | Step::DecideOff | Step::Label => FLAT_MAX,
            _ => continue,
        };
        let growth = match (small.instructions, large.instructions) {
            (Figure::Number(small), Figure::Number(large)) => Figure::Number(large / small),
            (absent, _) => absent,
        };
        let name = format!(
            "{}, growth from {} to {} clusters",
            small.step.name(),
            grouped(from as i64),
            grouped(to as i64)
        );
        report.add(name.clone(), "times the instructions", growth);
        report.hold(&name, "times the instructions", at_most, true);
        report.add(name, "times the µs", Figure::Number(large.micros / small.micros));
    }
}

fn tell_index(report: &mut Report, clusters: usize) {
    let labels = clusters * fleet::LABELS_PER_CLUSTER;
    let (seconds, bytes) = index(clusters, Detail::Facts);
    let name = format!("index {} labels of {} clusters", grouped(labels as i64), grouped(clusters as i64));
    report.add(name.clone(), "s", Figure::Number(seconds));
    report.hold(&name, "s", MILLION_LABELS_SECONDS_MAX * labels as f64 / 1e6, false);
    let name = "memory per cluster: 20 labels, 10 claims, 2 taints";
    report.add(name, "bytes", Figure::Number(bytes));
    report.hold(name, "bytes", CLUSTER_BYTES_MAX, true);
    let (_, bytes) = index(clusters, Detail::Whole);
    report.add(
        "memory per cluster: the same with conditions, capacity and version",
        "bytes",
        Figure::Number(bytes),
    );
}

/// Puts clusters into an empty model; the seconds it took and the bytes kept for each.
fn index(clusters: usize, detail: Detail) -> (f64, f64) {
    /// Objects made ahead, outside the measured time, without keeping all of them at once.
    const BATCH: usize = 1000;
    let mut spent = Duration::ZERO;
    let (model, allocated) = allocated(|| {
        let mut model = Model::new();
        for first in (0..clusters).step_by(BATCH) {
            let last = (first + BATCH).min(clusters);
            let batch: Vec<_> = (first..last)
                .map(|number| Delta::Cluster(Box::new(fleet::cluster(number, detail))))
                .collect();
            let start = Instant::now();
            for delta in batch {
                model.apply(delta);
            }
            spent += start.elapsed();
        }
        model
    });
    drop(model);
    (spent.as_secs_f64(), allocated.kept as f64 / clusters as f64)
}
