//! Berth's benchmarks: `./dev bench NAME [--quick] [--check] [--only TEXT] [--json FILE]`.
//!
//! Owns the command line. Each bench prints one Markdown table and says whether its targets are met. `--check` holds a
//! build to what is the same on every machine: counts of allocations, bytes and instructions, how these grow, and how
//! far ahead of a peer we are that ran beside us. Other wall time is reported and decides nothing.

mod control;
mod count;
mod engine;
mod figure;
mod hub;
mod inside;
mod members;
mod nodes;
mod peer;
mod peers;
mod process;
mod replacement;
mod report;
mod spread;
mod stage;
mod world;

use berth_sim::fleet;

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, ValueEnum};

#[derive(Parser)]
#[command(name = "berth-bench", about = "Berth's benchmarks")]
struct Arguments {
    /// The bench to run; without one they are listed
    name: Option<Bench>,
    /// Small sizes and few repetitions
    #[arg(long)]
    quick: bool,
    /// Fail if a target that does not depend on the machine is missed, or nothing was measured
    #[arg(long)]
    check: bool,
    /// Measure only what has TEXT in its name; `creates` or `1 in flight`, say (hub)
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Write the rows there too, as a JSON array; of peers, all that was measured
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    peers: peers::Options,
    /// Do every step once, for an instruction counter that watches this process
    #[arg(long, hide = true, value_name = "CLUSTERS")]
    counted: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Bench {
    /// Deciding a placement over 1,000 to 100,000 clusters, and again after a change
    Engine,
    /// The placement controller on a real kube-apiserver, beside a bare client that makes as many writes
    Control,
    /// The hub beside a real kube-apiserver and etcd: creates, gets, lists, watches, memory, start
    Hub,
    /// The taint-eviction-controller over 5,000 nodes and 150,000 pods, without a server: a change of taints, and memory
    Nodes,
    /// The replacement-controller over 1,000 policies with 10,000 members, without a server: from scratch, and an event of a node
    Replacements,
    /// Berth beside OCM's placement controller or kube-controller-manager: the same server, the same load, one run
    Peers,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut out = stdout().lock();
    let Some(bench) = arguments.name else {
        for bench in Bench::value_variants() {
            let value = bench.to_possible_value().expect("no bench is hidden");
            writeln!(out, "{:<10} {}", value.get_name(), value.get_help().cloned().unwrap_or_default())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(clusters) = arguments.counted {
        match bench {
            Bench::Engine => engine::counted(clusters)?,
            Bench::Control => control::counted(clusters)?,
            Bench::Nodes => nodes::counted(clusters)?,
            Bench::Hub | Bench::Replacements | Bench::Peers => {
                anyhow::bail!("only instructions of the engine and of the controllers are counted")
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !matches!(bench, Bench::Peers) && arguments.peers != peers::Options::default() {
        anyhow::bail!("sizes, contenders and --write are for peers")
    }
    if let Some(file) = &arguments.json {
        writable(file)?;
    }
    let report = match bench {
        Bench::Engine | Bench::Control | Bench::Nodes | Bench::Replacements | Bench::Peers
            if arguments.only.is_some() =>
        {
            anyhow::bail!("these steps build on one another; --only is for the hub")
        }
        Bench::Control => control::run(arguments.quick)?,
        Bench::Engine => engine::run(arguments.quick, arguments.check)?,
        Bench::Nodes => nodes::run(arguments.quick)?,
        Bench::Replacements => members::run(arguments.quick)?,
        Bench::Hub => hub::run(arguments.quick, arguments.only.as_deref())?,
        Bench::Peers => peers::run(&arguments.peers, arguments.quick)?,
    };
    write!(out, "{report}")?;
    if let Some(file) = arguments.json {
        let rows = match &report.details {
            Some(details) => serde_json::to_string_pretty(details)?,
            None => serde_json::to_string_pretty(&report.rows)?,
        };
        fs::write(&file, rows + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    let is_good = report.has_measured() && !report.misses_a_binding_target();
    Ok(if arguments.check && !is_good { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Fails where a file cannot be written: better told before the run than after it. What is in it stays, and where there is none,
/// none is left.
fn writable(file: &Path) -> anyhow::Result<()> {
    let is_there = file.exists();
    let opened = fs::OpenOptions::new().append(true).create(true).open(file);
    opened.with_context(|| format!("cannot write {}", file.display()))?;
    if !is_there {
        fs::remove_file(file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_the_run_and_no_other_is_touched() {
        let folder = std::env::temp_dir().join(format!("berth-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (fresh, old) = (folder.join("fresh.json"), folder.join("old.json"));
        fs::write(&old, "kept").unwrap();
        writable(&fresh).unwrap();
        writable(&old).unwrap();
        assert!(!fresh.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        let told = |file: &Path| writable(file).unwrap_err().to_string();
        assert!(told(&folder).starts_with("cannot write "));
        assert!(told(&folder.join("no such folder/x.json")).starts_with("cannot write "));
        fs::remove_dir_all(&folder).unwrap();
    }
}
