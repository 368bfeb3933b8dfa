//! What can be typed, and which command it runs.
//!
//! Owns the top of the command line and the meaning of every exit code. Never does a command's work.

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{completions, convert, explain, hub, man, plan, version};
use crate::console::{Console, Outcome};

/// Where work may live in a fleet of clusters, and when it must leave.
#[derive(Debug, Parser)]
#[command(name = "berth", version, propagate_version = true)]
#[command(
    after_help = "Exit codes:\n  0  done\n  1  the input has faults, or warnings with --strict, or something failed; see standard error\n  2  wrong usage\n  3  a plan moves more than --fail-on-moves allows"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Everything `berth` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decide every Placement of a folder of manifests, or show what a change would move.
    ///
    /// Decides every Placement in the given manifests and prints the decisions, what is not as asked, and the deadlines
    /// ahead. PlacementDecisions among the manifests are the decisions that stand now.
    ///
    /// With a change (--with, --without, --taint) or when time passes (--at +10m) the difference is printed instead: who
    /// gains, who loses, why, and how many moves it takes. Before is the world as given, decided; after is the world
    /// with all changes, where the decisions of before stand. A move is one cluster leaving one Placement, whether
    /// another takes its place or not.
    ///
    /// What does not fit the schema is an error: all errors are shown, and nothing is decided. What fits and hardly
    /// works as it is meant is a warning, and the rest is decided: misconfigured placements, which keep the clusters
    /// they have, unknown fields, ManagedClusterSetBindings that do not count, sets that do not exist. With --strict
    /// any warning ends in exit code 1.
    ///
    /// The objects that -o yaml and -o json print can be fed back: with --with, or as -f in place of the files the
    /// placements came from. A Placement without a uid gives owner references that a server refuses, so export the
    /// placements from the hub first (kubectl get placements -A -o yaml) where the result is to be applied; decisions
    /// are part of the status subresource.
    Plan(plan::PlanArgs),
    /// Explain a decision: why these clusters, and why not others.
    Explain(explain::ExplainArgs),
    /// Print manifests in older forms of the placement kinds in their current form.
    ///
    /// Reads the earliest drafts of Placement and PlacementDecision (group placement.open-cluster-management.io) and
    /// the older versions and spellings in group cluster.open-cluster-management.io, and prints all manifests, with
    /// those in their current form. Everything else passes through. What was changed is told on standard error, with
    /// the line it stood on. Comments are not kept, and lists are printed as single documents.
    Convert(convert::ConvertArgs),
    /// Serve the Kubernetes API from this machine, with nothing else installed.
    ///
    /// A durable API server for the kinds a fleet needs, in this process: kubectl and programs built on kube or
    /// client-go work with it as with a cluster. When it answers it prints one line with its address, and has written a
    /// kubeconfig for its administrator. It runs until it is interrupted (Ctrl-C, SIGTERM), then lets open requests
    /// finish; a second signal ends it at once. What it has answered is on the disk.
    ///
    /// It is one machine's server: who outgrows it moves to a cluster with the same manifests.
    Hub(hub::HubArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all of them into a folder.
    Man(man::ManArgs),
    /// Print the version.
    Version,
}

/// Runs a command to its exit code.
pub fn run(cli: Cli, console: &mut Console<'_>) -> ExitCode {
    let outcome = execute(cli, console).and_then(|outcome| {
        console.out.flush()?;
        Ok(outcome)
    });
    match outcome {
        Ok(outcome) => outcome.into(),
        // Whoever read our output has seen enough (`berth plan | head`): that is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // With standard error gone too there is nobody left to tell.
            let _ = writeln!(console.err, "berth: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(cli: Cli, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Plan(args) => plan::run(&args, console),
        Command::Explain(args) => explain::run(&args, console),
        Command::Convert(args) => convert::run(&args, console),
        Command::Hub(args) => hub::run(args, console),
        Command::Completions(args) => completions::run(&args, console),
        Command::Man(args) => man::run(&args, console),
        Command::Version => version::run(console),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_reader_that_has_gone_away_is_no_failure() {
        struct Gone;
        impl io::Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut err = Vec::new();
        let mut console = Console {
            input: Box::new(io::empty()),
            out: Box::new(Gone),
            err: Box::new(&mut err),
            colour: crate::console::Colour::Off,
            warnings: 0,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let code = run(Cli { command: Command::Version }, &mut console);
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
        drop(console);
        assert!(err.is_empty());
    }
}
