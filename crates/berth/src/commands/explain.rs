//! `berth explain`: why a placement has the clusters it has, and why not others; why a pod must leave its node; how far the
//! replacement of a member is.

mod bars;
mod pod;
mod replacement;

use std::fmt;
use std::str::FromStr;

use berth_engine::PlacementKey;
use berth_engine::explain::{
    Account, ClusterAccount, Verdict, Weight, cluster_sentences, sentences, table as rows,
};
use berth_engine::select::{Complaint, compile};
use clap::{Args, Subcommand};

pub use self::pod::ExplainPodArgs;
pub use self::replacement::ExplainReplacementArgs;
use super::{OutputFormat, WhatIfArgs, WorldArgs};
use crate::console::{Console, Outcome};
use crate::manifest::{one_line, printable, write_json_document, write_yaml_document};
use crate::plan::{Planner, Reasons};
use crate::table::{Cell, Table, Tone};
use crate::world::{NAMESPACE_BY_DEFAULT, World, near};

/// Clusters listed in a table unless all are asked for: the selected ones and those nearest to it come first.
const CLUSTERS_SHOWN_MAX: usize = 50;

/// Where the engine's table of clusters says what became of each.
const VERDICT_COLUMN: usize = 1;

/// Arguments of `berth explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What to explain.
    #[command(subcommand)]
    pub subject: Subject,
}

/// What can be explained.
#[derive(Debug, Subcommand)]
pub enum Subject {
    /// Explain the decisions of one Placement, cluster by cluster.
    ///
    /// What does not fit the schema is an error: all errors are shown, and nothing is explained. What fits and hardly
    /// works as it is meant is a warning: a misconfigured placement, which keeps the clusters it has, unknown fields,
    /// ManagedClusterSetBindings that do not count, sets that do not exist.
    Placement(ExplainPlacementArgs),
    /// Explain whether a pod must leave its node, when, because of which taint, and whether evictions are frozen.
    ///
    /// Asks a server, for the pod, its node and the freeze, and judges as the taint-eviction-controller does. What only that
    /// knows, as when it first saw a taint that does not say since when, or what its rates hold, is not told; what its breakers
    /// and bounds hold is told of pods with an EvictionPolicy, by the status of that.
    Pod(ExplainPodArgs),
    /// Explain why a member of a stateful workload is to be replaced, how far that is, and what holds it.
    ///
    /// Tells what the replacement-controller has written into the status of ReplacementPolicies and into Replacements: the
    /// clock of each cause, what the gates say, and until when it can be called off.
    Replacement(ExplainReplacementArgs),
}

/// Arguments of `berth explain placement`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth explain placement ns1/web\n  berth explain placement ns1/web -f fleet/\n  berth explain placement ns1/web -f fleet/ --cluster cluster1\n  berth explain placement ns1/web -f fleet/ --cluster cluster1 --taint cluster1=maintenance:NoSelect\n  berth explain placement ns1/web -f fleet/ -o json"
)]
pub struct ExplainPlacementArgs {
    /// The placement; without a namespace it is looked for in `default`.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub name: PlacementName,

    /// The world to explain it in.
    #[command(flatten)]
    pub input: WorldArgs,

    /// Explain this cluster only.
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// What is to be different.
    #[command(flatten)]
    pub what_if: WhatIfArgs,

    /// How to print: wide adds what each prioritizer gave, json and yaml are the whole account.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

/// Explains.
pub fn run(args: &ExplainArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    match &args.subject {
        Subject::Placement(args) => placement(args, console),
        Subject::Pod(args) => pod::run(args, console),
        Subject::Replacement(args) => replacement::run(args, console),
    }
}

fn placement(args: &ExplainPlacementArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let times = args.what_if.times(None, console.now)?;
    let Some(scene) = args.what_if.scene(&args.input, times, console)? else { return Ok(Outcome::Faulty) };
    let key = PlacementKey::new(&args.name.namespace, &args.name.name);
    let Some(item) = scene.world.placements.get(&key) else {
        let names: Vec<String> = scene.world.placements.keys().map(ToString::to_string).collect();
        anyhow::bail!(
            "there is no Placement {key} {}{}",
            args.input.place(),
            near(&key.to_string(), names.iter().map(String::as_str))
        );
    };
    if let Some(cluster) = &args.cluster {
        check_cluster(&scene.world, cluster, args.input.place())?;
    }
    let complaints = compile(&item.object).map_or_else(|complaints| complaints, |rule| rule.hints.into_vec());
    let warning = |complaint: &Complaint| {
        item.warning(&complaint.path, format!("{} (Placement {key})", one_line(&complaint.message)))
    };
    console.warn(complaints.iter().map(warning).collect())?;
    let planner = Planner::new(&scene.world, times.at(), Reasons::None);
    let Some(account) = planner.account(&key, args.cluster.as_deref()) else {
        let why = if item.object.is_deleting() {
            "it is being deleted".to_owned()
        } else {
            format!("its annotation {} is \"true\"", berth_api::names::annotation::SCHEDULING_DISABLED)
        };
        let message = format!("Placement {key} is left as it is: {why}");
        // Whoever asked for data must not be given prose.
        anyhow::ensure!(matches!(args.output, OutputFormat::Table | OutputFormat::Wide), message);
        writeln!(console.out, "{message}.")?;
        return args.what_if.judge(Outcome::Done, console);
    };
    match args.output {
        OutputFormat::Json => write_json_document(&mut console.out, &serde_json::to_value(&account)?)?,
        OutputFormat::Yaml => write_yaml_document(&mut console.out, &serde_json::to_value(&account)?, true)?,
        OutputFormat::Table | OutputFormat::Wide => write_account(args, &account, console)?,
    }
    args.what_if.judge(Outcome::Done, console)
}

/// A cluster may be explained if it exists, or if a decision still names it.
fn check_cluster(world: &World, cluster: &str, place: &str) -> anyhow::Result<()> {
    let named = world.decisions.values().flat_map(|item| item.object.decisions());
    let known =
        world.clusters.contains_key(cluster) || named.into_iter().any(|entry| entry.cluster_name == cluster);
    if !known {
        anyhow::bail!(
            "there is no ManagedCluster {cluster} {place}{}",
            near(cluster, world.clusters.keys().map(String::as_str))
        );
    }
    Ok(())
}

fn write_account(
    args: &ExplainPlacementArgs,
    account: &Account,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    let wide = args.output == OutputFormat::Wide;
    let out = &mut console.out;
    writeln!(out, "Placement {} at {}", account.placement, account.at)?;
    for sentence in sentences(account) {
        writeln!(out, "  {}", printable(&sentence))?;
    }
    if args.cluster.is_some() {
        for cluster in &account.clusters {
            writeln!(out, "\nCluster {}", printable(&cluster.cluster))?;
            for sentence in cluster_sentences(account, cluster) {
                writeln!(out, "  {}", printable(&sentence))?;
            }
        }
        if !wide {
            return Ok(());
        }
    }
    if account.clusters.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let shown = if wide { account.clusters.len() } else { account.clusters.len().min(CLUSTERS_SHOWN_MAX) };
    clusters(account, shown, wide).write(out, console.colour)?;
    let more = account.clusters.len() - shown;
    if more > 0 {
        writeln!(out, "and {more} more, all shown with -o wide")?;
    }
    Ok(())
}

/// One line a cluster; in the wide form what each prioritizer gave stands before the reason.
fn clusters(account: &Account, shown: usize, wide: bool) -> Table {
    let (header, rows) = rows(account);
    let mut header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let before_why = header.len() - 1;
    let score_of = |cluster: &ClusterAccount, name: &str| {
        cluster.scores.iter().find(|score| score.prioritizer == name).map(|score| score.value)
    };
    // A prioritizer that had nothing to say about anybody takes no column.
    let used = account.prioritizers.iter().filter(|entry| {
        wide && account.clusters.iter().any(|cluster| score_of(cluster, &entry.prioritizer).is_some())
    });
    let used: Vec<&Weight> = used.collect();
    let titles = used.iter().map(|Weight { prioritizer, weight }| format!("{prioritizer} x{weight}"));
    header.splice(before_why..before_why, titles);
    let mut table = Table::with_header(header);
    for (cluster, mut row) in account.clusters.iter().zip(rows).take(shown) {
        let scores = used.iter().map(|entry| {
            score_of(cluster, &entry.prioritizer).map_or_else(|| "-".to_owned(), |value| value.to_string())
        });
        row.splice(before_why..before_why, scores);
        let tone = match &cluster.verdict {
            Verdict::Selected | Verdict::Kept => Tone::Good,
            Verdict::Barred | Verdict::Missing | Verdict::Deleting => Tone::Bad,
            _ => Tone::Dim,
        };
        table.row(row.into_iter().enumerate().map(|(column, text)| {
            if column == VERDICT_COLUMN { Cell::toned(text, tone) } else { text.into() }
        }));
    }
    table
}

/// The name of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementName {
    /// Its namespace.
    pub namespace: String,
    /// Its name in the namespace.
    pub name: String,
}

/// Why a text names no placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a placement: allowed are NAMESPACE/NAME and NAME")]
pub struct PlacementNameError;

impl FromStr for PlacementName {
    type Err = PlacementNameError;

    fn from_str(text: &str) -> Result<Self, PlacementNameError> {
        let (namespace, name) = text.split_once('/').unwrap_or((NAMESPACE_BY_DEFAULT, text));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(PlacementNameError);
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for PlacementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_named_with_or_without_its_namespace() {
        let shown = |text: &str| text.parse::<PlacementName>().map(|name| name.to_string());
        assert_eq!(shown("ns1/web").unwrap(), "ns1/web");
        assert_eq!(shown("web").unwrap(), "default/web");
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            assert!(shown(text).is_err(), "{text}");
        }
    }
}
