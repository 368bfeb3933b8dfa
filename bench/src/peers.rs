//! Berth beside its peers: the same API server, the same fleet, the same machine, one after the other.
//!
//! ```text
//!  Arena   one kube-apiserver with etcd, a fleet from a seed, a watch on decisions
//!    └─ each round, each Contender (every second round in reverse), each Stage:
//!         clean state ─▶ load ─▶ start the contender ─▶ done? quiet? ─▶ Sheet
//!       and after Berth the floor: a bare client that makes the writes Berth made
//! ```
//!
//! There are two scales, each with contenders, stages, a floor and a table of its own: clusters with placements, and nodes
//! with pods.
//!
//! A peer of another kind is another [`Contender`], something else to compare another [`Stage`]; the accounts of the
//! machine ([`window`]), the tables and the places in documents serve them all.

mod arena;
mod contender;
mod document;
mod evict;
mod floor;
mod requests;
mod settle;
mod sheet;
mod stage;
mod steady;
mod table;
mod verdict;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, ensure};
use berth_bed::{Bed, BedError, tool};
use berth_sim::Sample;
use serde_json::{Value, json};

use self::arena::Arena;
use self::contender::{Contender, Scale};
use self::evict::{Crowd, Evict, Restart};
use self::floor::Mix;
use self::settle::Settle;
use self::sheet::Sheet;
use self::stage::Stage;
use self::steady::Steady;
use crate::figure::{Figure, grouped};
use crate::report::{Report, progress};

/// Set to `1` where the peers must be there.
const REQUIRED: &str = "BERTH_REQUIRE_PEERS";
/// Placements of the stages in which nothing new is decided.
const STEADY_PLACEMENTS: usize = 100;

/// What can be said about a run.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Only for peers")]
pub(crate) struct Options {
    /// Clusters in the fleet
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clusters: Option<u32>,
    /// New placements
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    placements: Option<u32>,
    /// Taints to react to
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reactions: Option<u32>,
    /// Seconds of changes that concern nobody
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    churn: Option<u32>,
    /// How often everything is measured; every second time in reverse order. The median counts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Who is measured
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    contenders: Option<Vec<Contender>>,
    /// Nodes, for contenders that are about nodes; 50 of them are tainted at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(evict::NODES_MIN)..=5_000))]
    nodes: Option<u32>,
    /// Pods on each node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=110))]
    pods: Option<u32>,
    /// Also: pods that bear a taint for 60 seconds, and a restart after 30; takes 100 seconds for each that is about nodes
    #[arg(long)]
    restart_case: bool,
    /// The fleet's seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let etcd wait for the disk, which says more of the disk than of the contenders
    #[arg(long)]
    fsync: bool,
    /// Put the table into this document, between the markers for its size
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// How much is measured.
struct Effort {
    clusters: usize,
    placements: usize,
    reactions: usize,
    churn: Duration,
    rounds: usize,
    contenders: Vec<Contender>,
    crowd: Crowd,
    restarts: bool,
    seed: u64,
    fsync: bool,
}

impl Effort {
    fn of(options: &Options, quick: bool) -> Self {
        let number = |given: Option<u32>, small: u32, full: u32| {
            given.unwrap_or(if quick { small } else { full }) as usize
        };
        let mut contenders =
            vec![Contender::Berth, Contender::BerthAll, Contender::Patched, Contender::Shipped];
        if !quick {
            contenders.push(Contender::ShippedDefault);
        }
        if let Some(given) = &options.contenders {
            contenders.clone_from(given);
            contenders.sort_unstable();
            contenders.dedup();
        }
        Self {
            clusters: number(options.clusters, 50, 1_000),
            placements: number(options.placements, 20, 1_000),
            reactions: number(options.reactions, 5, 30),
            churn: Duration::from_secs(number(options.churn, 3, 30) as u64),
            rounds: number(options.rounds, 1, 1),
            contenders,
            crowd: Crowd {
                nodes: number(options.nodes, 60, 500),
                pods: number(options.pods, 5, 40),
                bear: None,
            },
            restarts: options.restart_case,
            seed: options.seed.unwrap_or(1),
            fsync: options.fsync,
        }
    }

    /// What its contenders are about, each once.
    fn scales(&self) -> BTreeSet<Scale> {
        self.contenders.iter().map(|contender| contender.scale()).collect()
    }

    /// The contenders of one round, every second time in reverse.
    fn order(&self, scale: Scale, round: usize) -> Vec<Contender> {
        let mut order = self.contenders.clone();
        order.retain(|contender| contender.scale() == scale);
        if round % 2 == 1 {
            order.reverse();
        }
        order
    }

    /// The name of the place in a document for a table.
    fn place(&self, scale: Scale) -> String {
        match scale {
            Scale::Fleet => format!("peers {}x{}", self.clusters, self.placements),
            Scale::Nodes => format!("peers nodes {}x{}", self.crowd.nodes, self.crowd.all_pods()),
        }
    }
}

/// Runs the bench.
pub(crate) fn run(options: &Options, quick: bool) -> anyhow::Result<Report> {
    let effort = Effort::of(options, quick);
    if let Some(file) = &options.write {
        for scale in effort.scales() {
            document::check(file, &effort.place(scale))?;
        }
    }
    ensure!(
        !effort.restarts || effort.scales().contains(&Scale::Nodes),
        "--restart-case is for contenders that are about nodes: berth-evict, kcm, kcm-default"
    );
    let mut report = Report::default();
    let programs = match programs(&effort.contenders) {
        Ok(programs) => programs,
        Err(error) if is_absent(&error) && !is_required() => {
            progress(&format!("skipped: {error:#}"));
            report.head = format!("peers: skipped, {error:#}");
            report.add("peers", "", Figure::Absent("not there"));
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let bed = Bed::kubernetes().api_server(&API_SERVER);
        let bed = if effort.fsync { bed } else { bed.without_fsync() };
        let bed = match bed.await {
            Ok(bed) => bed,
            Err(absent @ BedError::Absent { .. }) if !is_required() => {
                progress(&format!("skipped: {absent}"));
                report.head = format!("peers: skipped, {absent}");
                report.add("peers", "", Figure::Absent("no kube-apiserver"));
                return Ok(report);
            }
            Err(error) => return Err(error.into()),
        };
        let (definitions, whose) = definitions();
        let about = about(&effort, &programs, whose)?;
        let sample = Sample::new(effort.seed);
        let clusters = if effort.scales().contains(&Scale::Fleet) { effort.clusters } else { 0 };
        let arena = Arena::new(bed, &definitions, sample, clusters, programs).await?;
        let mut tables = Vec::new();
        let mut sheets = Vec::new();
        for scale in effort.scales() {
            let sheet = compare(&arena, &effort, scale).await?;
            let table = format!("{}\n\n{}", preface(&effort, scale, &about), table::markdown(&sheet, scale));
            let mut verdicts = Report::default();
            verdict::tell(&sheet, scale, &mut verdicts);
            if let Some(file) = &options.write {
                document::fill(file, &effort.place(scale), &format!("{table}\n{}", verdicts.verdicts()))?;
            }
            report.rows.append(&mut verdicts.rows);
            report.targets.append(&mut verdicts.targets);
            tables.push(table);
            sheets.push(sheet);
        }
        report.details = Some(table::json(&sheets, &about));
        let peers: Vec<_> = effort.scales().into_iter().map(|scale| scale.peer().title()).collect();
        report.head = format!(
            "{}\nWhat Berth has to show; the peer is {}.",
            tables.join("\n"),
            peers.join(", and of nodes ")
        );
        Ok(report)
    })
}

/// Room for everybody's requests at once, the same for all.
const API_SERVER: [&str; 2] = ["--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"];

/// Every contender's program.
fn programs(contenders: &[Contender]) -> anyhow::Result<BTreeMap<Contender, PathBuf>> {
    // Berth last: it is compiled for it, which is for nothing when there is no peer.
    let (peers, ours): (Vec<_>, Vec<_>) = contenders.iter().partition(|contender| contender.is_peer());
    let mut programs = BTreeMap::new();
    let mut berth = None;
    for contender in peers.into_iter().chain(ours).copied() {
        let program = match (&berth, contender.is_peer()) {
            (Some(known), false) => PathBuf::clone(known),
            _ => contender.program()?,
        };
        if !contender.is_peer() {
            berth = Some(program.clone());
        }
        programs.insert(contender, program);
    }
    Ok(programs)
}

fn is_absent(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(BedError::Absent { .. }))
}

fn is_required() -> bool {
    env::var_os(REQUIRED).is_some_and(|value| value == "1")
}

/// The definitions that all contenders work with: the stock ones where they are at hand, else ours, which contain them.
fn definitions() -> (PathBuf, &'static str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stock = here.join("../../shared/crds");
    if stock.is_dir() { (stock, "stock") } else { (here.join("../deploy/crds"), "Berth's") }
}

/// Everything about one scale.
async fn compare(arena: &Arena, effort: &Effort, scale: Scale) -> anyhow::Result<Sheet> {
    progress("a warm-up of the server, which does not count");
    match scale {
        Scale::Fleet => compare_fleet(arena, effort).await,
        Scale::Nodes => compare_nodes(arena, effort).await,
    }
}

async fn compare_fleet(arena: &Arena, effort: &Effort) -> anyhow::Result<Sheet> {
    let settle = Settle { placements: effort.placements };
    let steady = Steady {
        placements: effort.placements.min(STEADY_PLACEMENTS),
        reactions: effort.reactions,
        churn: effort.churn,
    };
    let mut sheet = Sheet::default();
    floor::warm_up(arena, effort.placements).await?;
    for round in 0..effort.rounds {
        sheet.round = round + 1;
        for contender in effort.order(Scale::Fleet, round) {
            measure(&settle, arena, contender, &mut sheet).await?;
            if contender == Scale::Fleet.ours() {
                let seen = sheet.records.iter().rev().find(|record| record.stage == settle::FIRST.stage);
                let seen = Mix::of(&seen.context("Berth was measured just now")?.spent.requests);
                progress("as many writes by a bare client");
                floor::measure(arena, effort.placements, seen, &mut sheet).await?;
            }
            measure(&steady, arena, contender, &mut sheet).await?;
        }
    }
    arena.clear().await?;
    Ok(sheet)
}

async fn compare_nodes(arena: &Arena, effort: &Effort) -> anyhow::Result<Sheet> {
    let evict = Evict(effort.crowd);
    let mut sheet = Sheet::default();
    evict.warm_up(arena).await?;
    for round in 0..effort.rounds {
        sheet.round = round + 1;
        for contender in effort.order(Scale::Nodes, round) {
            measure(&evict, arena, contender, &mut sheet).await?;
            if contender == Scale::Nodes.ours() {
                evict.floor(arena, &mut sheet).await?;
            }
            if effort.restarts {
                measure(&Restart, arena, contender, &mut sheet).await?;
            }
        }
    }
    Ok(sheet)
}

async fn measure(
    stage: &impl Stage,
    arena: &Arena,
    contender: Contender,
    sheet: &mut Sheet,
) -> anyhow::Result<()> {
    let title = stage.title();
    progress(&format!("{}: {title}", contender.title()));
    stage.measure(arena, contender, sheet).await.with_context(|| format!("{}: {title}", contender.title()))
}

/// What was measured, of what, on what.
fn about(
    effort: &Effort,
    programs: &BTreeMap<Contender, PathBuf>,
    definitions: &str,
) -> anyhow::Result<Value> {
    let berth = match programs.iter().find(|(contender, _)| !contender.is_peer()) {
        Some((_, berth)) => {
            let said = Command::new(berth).arg("--version").output().context("cannot run berth")?;
            ensure!(said.status.success(), "berth does not tell its version");
            Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
        }
        None => None,
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(json!({
        "clusters": effort.clusters,
        "placements": effort.placements,
        "placements_when_steady": effort.placements.min(STEADY_PLACEMENTS),
        "reactions": effort.reactions,
        "churn_seconds": effort.churn.as_secs(),
        "rounds": effort.rounds,
        "nodes": effort.crowd.nodes,
        "pods_on_each": effort.crowd.pods,
        "seed": effort.seed,
        "etcd_fsync": effort.fsync,
        "definitions": definitions,
        "api_server_flags": API_SERVER,
        "berth": berth,
        "kubernetes": version("kube-apiserver"),
        "etcd": version("etcd"),
        "ocm": version("ocm-placement"),
        "processors": processors,
        "processor": line("/proc/cpuinfo", "model name"),
        "memory": line("/proc/meminfo", "MemTotal"),
    }))
}

/// The version of an upstream tool, from where it is kept.
fn version(name: &str) -> Option<String> {
    let path = tool(name).ok()?;
    let folder = path.parent()?.parent()?.file_name()?.to_str()?;
    folder.split_once('-').map(|(_, version)| version.to_owned())
}

/// What a file of the system says under a key.
fn line(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'));
    value.map(|(_, value)| value.trim().to_owned())
}

/// What a table is about, in a few sentences before it.
fn preface(effort: &Effort, scale: Scale, about: &Value) -> String {
    let text = |key: &str| about[key].as_str().unwrap_or("?").to_owned();
    let (load, limits) = match scale {
        Scale::Fleet => (
            format!(
                "{} clusters, {} placements ({} in \"one taint\" and \"churn\"), seed {}, ",
                grouped(effort.clusters as i64),
                grouped(effort.placements as i64),
                effort.placements.min(STEADY_PLACEMENTS),
                effort.seed,
            ),
            format!("OCM {}, {} definitions, ", text("ocm"), text("definitions")),
        ),
        Scale::Nodes => (
            format!(
                "{} nodes with {} pods each, ",
                grouped(effort.crowd.nodes as i64),
                grouped(effort.crowd.pods as i64)
            ),
            String::new(),
        ),
    };
    let whose = match scale {
        Scale::Fleet => "OCM's",
        Scale::Nodes => "kube-controller-manager's",
    };
    format!(
        "{load}{} round{}; {limits}Kubernetes {}, etcd {} ({} fsync); {} × {}, {}. Everybody runs without leader election; \
         {whose} client limits are 5,000 requests a second (burst 10,000) unless it says default. (×N) is N times Berth's \
         figure, or behind Berth's N times the bare client's.",
        effort.rounds,
        if effort.rounds == 1 { "" } else { "s" },
        text("kubernetes"),
        text("etcd"),
        if effort.fsync { "with" } else { "without" },
        about["processors"],
        text("processor"),
        text("memory"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scale_has_its_own_contenders_and_its_own_place_in_a_document() {
        let options = Options {
            contenders: Some(vec![
                Contender::Kcm,
                Contender::Patched,
                Contender::BerthEvict,
                Contender::Berth,
            ]),
            ..Options::default()
        };
        let effort = Effort::of(&options, false);
        assert_eq!(effort.order(Scale::Fleet, 0), [Contender::Berth, Contender::Patched]);
        assert_eq!(effort.order(Scale::Nodes, 1), [Contender::Kcm, Contender::BerthEvict]);
        let places: Vec<_> = effort.scales().into_iter().map(|scale| effort.place(scale)).collect();
        assert_eq!(places, ["peers 1000x1000", "peers nodes 500x20000"]);
        let usual = Effort::of(&Options::default(), true);
        assert_eq!(usual.scales(), BTreeSet::from([Scale::Fleet]), "nodes are measured when they are named");
    }
}
