//! What can be typed, and which command it runs.
//!
//! Owns the top of the command line and the meaning of every exit code. Never does a command's work.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    completions, convert, crds, demo, drain, explain, freeze, get, hub, install, man, plan,
    run as controllers, uninstall, up, version, webhook,
};
use crate::console::{Console, Outcome};

/// Where work may live in a fleet of clusters, and when it must leave.
#[derive(Debug, Parser)]
#[command(name = "berth", version, propagate_version = true)]
#[command(
    after_help = "Exit codes:\n  0  done\n  1  the input has faults, or warnings with --strict, or a check or something else failed\n  2  wrong usage\n  3  a plan moves more than --fail-on-moves allows"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Everything `berth` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decide every Placement of manifests or of a server, or show what a change would move.
    ///
    /// Decides every Placement in the given manifests, or on a server where none are given, and prints the decisions,
    /// what is not as asked, and the deadlines ahead. PlacementDecisions among them are the decisions that stand now.
    /// Nothing is written to a server.
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
    /// Show how things stand, one line each: members of stateful workloads that are to be replaced.
    Get(get::GetArgs),
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
    /// Run a hub and the fleet controllers in one process.
    ///
    /// Everything a fleet needs on one machine: the API server of `berth hub`, with the same flags and data, the
    /// definitions of the placement kinds, and the controllers that decide where work may live. It prints a line when
    /// the hub answers and one when the controllers work. Ctrl-C or SIGTERM finishes what is under way.
    Up(Box<up::UpArgs>),
    /// Run the controllers against any Kubernetes.
    ///
    /// The server is found as kubectl finds it. One that is not there yet, or does not serve the placement kinds, is
    /// waited for. When the controllers have seen everything they need it prints one line. Several processes choose a
    /// leader among them by a Lease, and only the leader acts. SIGTERM finishes what is under way and lets go of the
    /// Lease; a second signal ends the process at once.
    Run(Box<controllers::RunArgs>),
    /// Serve the admission rules of our kinds to any Kubernetes.
    ///
    /// The API server asks it about every write to clusters, sets, bindings, Placements and policies: who may bind a set, move
    /// a cluster between sets or accept one, since when a taint counts, and whether a Placement or a policy can work. Changes
    /// that make clusters leave Placements get a warning. It makes its own certificates, keeps them in a Secret and renews them
    /// without a refused request. `berth up` has the same rules built in and needs no webhook.
    Webhook(Box<webhook::WebhookArgs>),
    /// Make clusters of `berth up --demo` fail and recover.
    Demo(demo::DemoArgs),
    /// Empty nodes, by the policies and bounds of the taint-eviction-controller.
    ///
    /// Cordons the nodes and puts the taint berth.dev/drain:NoExecute on them; the taint-eviction-controller of `berth run`
    /// does the rest, and this command shows how far it has come until nobody is left that has to go. Ctrl-C ends the
    /// watching and not the drain: the same command goes on with it, and --undo takes it back. Pods of DaemonSets, static
    /// pods and those that have ended stay.
    Drain(Box<drain::DrainArgs>),
    /// Stop evictions, in an emergency or for maintenance.
    ///
    /// Makes the ConfigMap berth-freeze-evictions in the namespace of the controllers. While it is there, the
    /// taint-eviction-controller of `berth run` evicts nobody, and its replacement-controller replaces nobody.
    Freeze(freeze::FreezeArgs),
    /// Let evictions go on that `berth freeze` has stopped.
    Unfreeze(freeze::UnfreezeArgs),
    /// Print what a Kubernetes needs to run Berth, or check whether it has it.
    ///
    /// Prints manifests for `kubectl apply`: the namespace, the definitions, accounts with no more rights than they need,
    /// the controllers and the admission webhook. The same flags print the same bytes. One cluster has one installation.
    Install(Box<install::InstallArgs>),
    /// Print what to delete to take Berth off a Kubernetes again.
    ///
    /// Prints the names of what `berth install` with the same flags printed, in the order in which they should go. What
    /// users made and what the controllers wrote for them stays: ManagedClusters, Placements, PlacementDecisions, policies.
    /// A freeze of evictions goes, where one of those who heed it was installed.
    Uninstall(Box<uninstall::UninstallArgs>),
    /// Print the definitions (CRDs) of the placement kinds.
    Crds,
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all of them into a folder.
    Man(man::ManArgs),
    /// Print the version.
    Version,
}

/// What `kubectl` looks for when somebody types `kubectl berth`.
const PLUGIN: &str = "kubectl-berth";

impl Cli {
    /// Reads a command line, its first word being the program's. Usage is shown as it is typed, also for kubectl's plugin.
    pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let line: Vec<OsString> = line.into_iter().collect();
        let is_plugin =
            line.first().and_then(|program| Path::new(program).file_stem()) == Some(PLUGIN.as_ref());
        let mut command = Self::command();
        if is_plugin {
            command = command.bin_name("kubectl berth");
        }
        let matches = command.try_get_matches_from_mut(line)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
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
            let _ = writeln!(console.err, "berth: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

fn execute(cli: Cli, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    match cli.command {
        Command::Plan(args) => plan::run(&args, console),
        Command::Explain(args) => explain::run(&args, console),
        Command::Get(args) => get::run(&args, console),
        Command::Convert(args) => convert::run(&args, console),
        Command::Hub(args) => hub::run(args, console),
        Command::Up(args) => up::run(*args, console),
        Command::Run(args) => controllers::run(*args, console),
        Command::Webhook(args) => webhook::run(*args, console),
        Command::Demo(args) => demo::run(args, console),
        Command::Drain(args) => drain::run(&args, console),
        Command::Freeze(args) => freeze::freeze(args, console),
        Command::Unfreeze(args) => freeze::unfreeze(args, console),
        Command::Install(args) => install::run(*args, console),
        Command::Uninstall(args) => uninstall::run(*args, console),
        Command::Crds => crds::run(console),
        Command::Completions(args) => completions::run(&args, console),
        Command::Man(args) => man::run(&args, console),
        Command::Version => version::run(console),
    }
}

/// An error with its causes, without those that an error above them has told already.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
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

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_is_shown_as_it_is_typed() {
        let usage = |line: &str| {
            let error = Cli::read(line.split(' ').map(OsString::from)).unwrap_err();
            error.to_string().lines().find(|line| line.starts_with("Usage")).map(str::to_owned).unwrap()
        };
        assert_eq!(usage("/usr/bin/kubectl-berth --help"), "Usage: kubectl berth <COMMAND>");
        assert_eq!(usage("kubectl-berth plan --help"), "Usage: kubectl berth plan [OPTIONS]");
        assert_eq!(usage("/usr/bin/berth --help"), "Usage: berth <COMMAND>");
    }

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let cause = || anyhow::anyhow!("address in use");
        assert_eq!(
            told(&cause().context("cannot listen: address in use; give another")),
            "cannot listen: address in use; give another"
        );
        assert_eq!(told(&cause().context("cannot listen")), "cannot listen: address in use");
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
