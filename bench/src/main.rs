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
mod peer;
mod peers;
mod process;
mod report;
mod spread;
mod stage;
mod world;

use berth_sim::fleet;

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
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
    /// Fail if a target that does not depend on the machine is missed
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
            Bench::Hub | Bench::Peers => {
                anyhow::bail!("only instructions of the engine and of the controllers are counted")
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !matches!(bench, Bench::Peers) && arguments.peers != peers::Options::default() {
        anyhow::bail!("sizes, contenders and --write are for peers")
    }
    let report = match bench {
        Bench::Engine | Bench::Control | Bench::Peers if arguments.only.is_some() => {
            anyhow::bail!("these steps build on one another; --only is for the hub")
        }
        Bench::Control => control::run(arguments.quick)?,
        Bench::Engine => engine::run(arguments.quick, arguments.check)?,
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
    Ok(if arguments.check && report.misses_a_binding_target() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
