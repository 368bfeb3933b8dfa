//! `berth uninstall`: what to delete again, for `kubectl delete`.

use clap::{Arg, Args};

use super::ManifestFormat;
use crate::console::{Console, Outcome};
use crate::install::{Extent, Installation, InstallationArgs, removal};

/// Arguments of `berth uninstall`.
#[derive(Debug, Args)]
#[command(
    mut_args(in_hindsight),
    after_help = "Examples:\n  berth uninstall | kubectl delete --ignore-not-found -f -\n  berth uninstall --namespace fleet --with-namespace | kubectl delete --ignore-not-found -f -"
)]
pub struct UninstallArgs {
    /// What was installed.
    #[command(flatten)]
    pub installation: InstallationArgs,

    /// Delete the definitions (CRDs) too, and with them EVERY ManagedCluster, Placement and other object of theirs.
    #[arg(long, conflicts_with = "without_crds")]
    pub with_crds: bool,

    /// Delete the namespace too, and with it whatever else is in it.
    #[arg(long)]
    pub with_namespace: bool,

    /// How to print the manifests.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ManifestFormat,
}

/// The flags of `berth install`, in words for what was done with them.
fn in_hindsight(arg: Arg) -> Arg {
    let help = match arg.get_id().as_str() {
        "namespace" => "The namespace it was installed into",
        "controllers" => "The controllers it was installed with; roles of others are not named",
        "without_webhooks" => "It was installed without the admission webhook",
        "without_crds" => "It was installed without the definitions (CRDs): they are not its to delete",
        "service_monitor" => "It was installed with a ServiceMonitor",
        "debugger" => "It was installed with a debugger",
        // Taken so that the line of `berth install` can be given as it was, and of no consequence.
        "replicas" | "image" => return arg.hide(true),
        _ => return arg,
    };
    arg.help(help)
}

/// Prints what to delete.
pub fn run(args: UninstallArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let installation = match Installation::try_from(args.installation) {
        Ok(installation) => installation,
        Err(message) => {
            writeln!(console.err, "berth: {message}")?;
            return Ok(Outcome::Misused);
        }
    };
    let extent = Extent { definitions: args.with_crds, namespace: args.with_namespace };
    if extent.definitions {
        writeln!(
            console.err,
            "WARNING: --with-crds deletes the definitions, and the server then deletes EVERY ManagedCluster, \
             ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision, AddOnPlacementScore and \
             ClusterClaim of the cluster, whoever made it. There is no way back."
        )?;
    }
    if extent.namespace {
        writeln!(
            console.err,
            "WARNING: --with-namespace deletes the namespace {}, with whatever others have put into it.",
            installation.namespace
        )?;
    }
    args.output.write(&removal(&installation, extent)?, console)?;
    Ok(Outcome::Done)
}
