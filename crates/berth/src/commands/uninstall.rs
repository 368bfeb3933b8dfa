//! `berth uninstall`: what to delete again, for `kubectl delete`.

use clap::Args;

use super::ManifestFormat;
use crate::console::{Console, Outcome};
use crate::install::{Extent, Installation, InstallationArgs, removal};

/// Arguments of `berth uninstall`.
#[derive(Debug, Args)]
#[command(
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

/// Prints what to delete.
pub fn run(args: UninstallArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let installation = Installation::from(args.installation);
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
