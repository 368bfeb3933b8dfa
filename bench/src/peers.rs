//! Berth beside its peers: the same API server, the same fleet, the same machine, one after the other.
//!
//! ```text
//!  Arena   one kube-apiserver with etcd, a fleet from a seed, a watch on decisions
//!    └─ each round, each Contender (every second round in reverse), each Stage:
//!         clean state ─▶ load ─▶ start the contender ─▶ done? quiet? ─▶ Sheet
//!       and after Berth the floor: a bare client that makes the writes Berth made
//! ```
//!
//! There are three scales, each with contenders, stages, a floor and a table of its own: clusters with placements, nodes with
//! pods, and nodes that say they are there.
//!
//! A peer of another kind is another [`Contender`], something else to compare another [`Stage`]; the accounts of the
//! machine ([`window`]), the tables and the places in documents serve them all.

mod about;
mod arena;
mod contender;
mod document;
mod evict;
mod floor;
mod listener;
mod requests;
mod settle;
mod sheet;
mod silence;
mod stage;
mod steady;
mod table;
mod verdict;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use berth_bed::{Bed, BedError, tool};
use berth_sim::Sample;

use self::about::{about, command, preface};
use self::arena::Arena;
use self::contender::{Contender, Scale};
use self::evict::{Crowd, Evict, Restart};
use self::floor::Mix;
use self::settle::Settle;
use self::sheet::Sheet;
use self::silence::{Pace, Silence};
use self::stage::Stage;
use self::steady::Steady;
use crate::figure::Figure;
use crate::report::{Report, progress};

/// How this bench is named.
const PROGRAM: &str = "peers";
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
    /// Nodes, for contenders that are about nodes; 50 of them are tainted at once, or fall silent (of 100 at least)
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
    /// Follow the clusters and do nothing: what the bench runs to see what reading alone costs
    #[arg(long, hide = true, value_name = "KUBECONFIG")]
    listen_with: Option<PathBuf>,
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
    silence: Silence,
    restarts: bool,
    seed: u64,
    fsync: bool,
}

impl Effort {
    fn of(options: &Options, quick: bool) -> Self {
        let number = |given: Option<u32>, small: u32, full: u32| {
            given.unwrap_or(if quick { small } else { full }) as usize
        };
        let mut contenders = vec![
            Contender::Berth,
            Contender::BerthAll,
            Contender::Patched,
            Contender::Shipped,
            Contender::BerthEvict,
            Contender::Kcm,
            Contender::BerthLifecycle,
            Contender::KcmLifecycle,
        ];
        if !quick {
            contenders.extend([Contender::ShippedDefault, Contender::KcmDefault]);
        }
        if let Some(given) = &options.contenders {
            contenders.clone_from(given);
        }
        contenders.sort_unstable();
        contenders.dedup();
        let pods = number(options.pods, 5, 40);
        Self {
            clusters: number(options.clusters, 50, 1_000),
            placements: number(options.placements, 20, 1_000),
            reactions: number(options.reactions, 5, 100),
            churn: Duration::from_secs(number(options.churn, 3, 30) as u64),
            rounds: number(options.rounds, 1, 1),
            contenders,
            crowd: Crowd { nodes: number(options.nodes, 60, 500), pods, bear: None },
            silence: Silence {
                crowd: Crowd { nodes: number(options.nodes, 120, 500), pods, bear: None },
                pace: Pace::of(quick),
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
        let sized = |crowd: &Crowd| format!("{}x{}", crowd.nodes, crowd.all_pods());
        match scale {
            Scale::Fleet => format!("peers {}x{}", self.clusters, self.placements),
            Scale::Nodes => format!("peers nodes {}", sized(&self.crowd)),
            Scale::Silence => format!("peers silence {}", sized(&self.silence.crowd)),
        }
    }

    /// Fails where something is asked of contenders that they are not about.
    fn check(&self) -> anyhow::Result<()> {
        let scales = self.scales();
        ensure!(
            !self.restarts || scales.contains(&Scale::Nodes),
            "--restart-case is for contenders that are about nodes: berth-evict, kcm, kcm-default"
        );
        let (nodes, least) = (self.silence.crowd.nodes, silence::NODES_MIN);
        ensure!(
            nodes >= least as usize || !scales.contains(&Scale::Silence),
            "--nodes {nodes}: berth-lifecycle and kcm-lifecycle need {least} at least; were the 50 that fall silent \
             55 % of all, both would take it for a failure of the network and taint one in 100 seconds. Give more nodes, \
             or name others in --contenders"
        );
        Ok(())
    }
}

/// Runs the bench.
pub(crate) fn run(options: &Options, quick: bool) -> anyhow::Result<Report> {
    if let Some(kubeconfig) = &options.listen_with {
        return listener::listen(kubeconfig).map(|()| Report::default());
    }
    let effort = Effort::of(options, quick);
    effort.check()?;
    if let Some(file) = &options.write {
        for scale in effort.scales() {
            document::check(file, &effort.place(scale))?;
        }
    }
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
        let about = about(&effort, &programs, whose, &command()?)?;
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

/// The definitions that all contenders work with: the stock ones where they are at hand, beside the checkout or fetched by
/// `./dev upstream`, else ours, which contain them.
fn definitions() -> (PathBuf, &'static str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = here.join("../../shared/crds");
    if beside.is_dir() {
        return (beside, "stock");
    }
    tool("ocm-definitions")
        .map_or_else(|_| (here.join("../deploy/crds"), "Berth's"), |stock| (stock, "stock"))
}

/// Everything about one scale.
async fn compare(arena: &Arena, effort: &Effort, scale: Scale) -> anyhow::Result<Sheet> {
    progress("a warm-up of the server, which does not count");
    match scale {
        Scale::Fleet => compare_fleet(arena, effort).await,
        Scale::Nodes => compare_nodes(arena, effort).await,
        Scale::Silence => compare_silence(arena, effort).await,
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
                floor::measure(arena, effort.placements, seen, effort.churn, &mut sheet).await?;
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

async fn compare_silence(arena: &Arena, effort: &Effort) -> anyhow::Result<Sheet> {
    let silence = &effort.silence;
    let mut sheet = Sheet::default();
    silence.warm_up(arena).await?;
    for round in 0..effort.rounds {
        sheet.round = round + 1;
        for contender in effort.order(Scale::Silence, round) {
            measure(silence, arena, contender, &mut sheet).await?;
            if contender == Scale::Silence.ours() {
                silence.floor(arena, &mut sheet).await?;
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

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

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
        assert_eq!(
            usual.scales(),
            BTreeSet::from([Scale::Fleet, Scale::Nodes, Scale::Silence]),
            "one command measures everything"
        );
    }

    #[test]
    fn everybody_is_measured_unless_some_are_named_or_the_run_is_a_small_one() {
        let measured = |quick| Effort::of(&Options::default(), quick).contenders;
        assert_eq!(measured(false), Contender::value_variants());
        let left_out = [Contender::ShippedDefault, Contender::KcmDefault];
        let few: Vec<_> =
            Contender::value_variants().iter().filter(|one| !left_out.contains(one)).copied().collect();
        assert_eq!(measured(true), few, "who is told to be slow takes minutes");
    }

    #[test]
    fn nodes_fall_silent_only_where_that_is_no_failure_of_the_network() {
        let told = |nodes, contender| {
            let options = Options { nodes, contenders: Some(vec![contender]), ..Options::default() };
            let effort = Effort::of(&options, true);
            effort.check().map(|()| effort.place(contender.scale())).map_err(|error| error.to_string())
        };
        assert_eq!(told(None, Contender::KcmLifecycle).unwrap(), "peers silence 120x600");
        assert_eq!(told(Some(100), Contender::BerthLifecycle).unwrap(), "peers silence 100x500");
        assert!(told(Some(99), Contender::BerthLifecycle).unwrap_err().contains("need 100 at least"));
        assert_eq!(told(Some(99), Contender::Kcm).unwrap(), "peers nodes 99x495");
    }
}
