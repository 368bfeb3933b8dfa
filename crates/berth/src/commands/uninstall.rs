//! `berth uninstall`: what to delete again, for `kubectl delete`.

use berth_api::kinds;
use berth_api::names::label::{BOUND_BY, BOUND_BY_RBAC};
use berth_control::ControllerName;
use berth_control::world::FREEZE;
use clap::{Arg, Args, Command};

use super::ManifestFormat;
use crate::console::{Console, Outcome};
use crate::fleet::nodes::NodeArgs;
use crate::install::{Extent, Installation, InstallationArgs, heeds_freezes, removal};

/// Arguments of `berth uninstall`.
#[derive(Debug, Args)]
#[command(
    mut_args(in_hindsight),
    after_help = "Examples:\n  berth uninstall | kubectl delete --ignore-not-found -f -\n  berth uninstall --namespace fleet --with-namespace | kubectl delete --ignore-not-found -f -\n\nWhat was written for users stays. Bindings that followed from RBAC bind on, also when their grant goes later:\n  kubectl delete managedclustersetbindings -A -l berth.dev/bound-by=rbac"
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
        id if is_of_nodes(id) => return arg.hide(true),
        _ => return arg,
    };
    arg.help(help)
}

fn is_of_nodes(id: &str) -> bool {
    NodeArgs::augment_args(Command::new("nodes")).get_arguments().any(|arg| arg.get_id() == id)
}

/// The kinds that are ours to define, as a sentence names them.
fn every_kind() -> String {
    let kinds: Vec<&str> = kinds::kinds().iter().map(|info| info.kind).collect();
    match kinds.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => kinds.concat(),
    }
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
            "WARNING: --with-crds deletes the definitions, and the server then deletes EVERY {} of the cluster, whoever \
             made it. There is no way back.",
            every_kind()
        )?;
    }
    if extent.namespace {
        writeln!(
            console.err,
            "WARNING: --with-namespace deletes the namespace {}, with whatever others have put into it.",
            installation.namespace
        )?;
    }
    if heeds_freezes(&installation) {
        writeln!(
            console.err,
            "note: a freeze of evictions goes too (ConfigMap {}/{FREEZE}), if there is one: it does not hold for an \
             installation that follows",
            installation.namespace
        )?;
    }
    if !extent.definitions
        && installation.controllers.enabled().any(|name| name == ControllerName::RbacBinding)
    {
        writeln!(
            console.err,
            "note: ManagedClusterSetBindings that followed from RBAC stay, and nobody removes them when their grant goes; \
             to delete them now: kubectl delete managedclustersetbindings -A -l {BOUND_BY}={BOUND_BY_RBAC}"
        )?;
    }
    args.output.write(&removal(&installation, extent)?, console)?;
    Ok(Outcome::Done)
}
