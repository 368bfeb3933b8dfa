//! `berth demo`: what can happen to the clusters of `berth up --demo`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use berth_api::ManagedCluster;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::console::{Console, Outcome};
use crate::demo::{BEHAVIOUR, LABEL, SILENT, is_silent, is_simulated};
use crate::fleet::connect::{self, Otherwise, ServerArgs};
use crate::world::near;

/// How long a cluster may be silent, in leases: the lease controller's patience.
const PATIENCE: i32 = 5;

/// Arguments of `berth demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth demo fail fra-1\n  berth demo recover fra-1\n  berth demo fail --kubeconfig ./fleet/kubeconfig fra-1"
)]
pub struct DemoArgs {
    /// What is to happen.
    #[command(subcommand)]
    pub command: DemoCommand,
}

/// What can happen to a cluster.
#[derive(Debug, Subcommand)]
pub enum DemoCommand {
    /// Silence the agent of a cluster, as if the cluster were gone.
    ///
    /// Its lease is no longer renewed. When it has run out the cluster is unreachable, and Placements leave it as they
    /// tolerate that.
    Fail(ClusterArgs),
    /// Bring the agent of a cluster back.
    Recover(ClusterArgs),
}

/// One cluster on one server.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// The kubeconfig [default: $KUBECONFIG, or the one in the hub's default data directory].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// The cluster.
    #[arg(value_name = "CLUSTER")]
    pub cluster: String,
}

/// Makes it happen.
pub fn run(args: DemoArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (args, fails) = match args.command {
        DemoCommand::Fail(args) => (args, true),
        DemoCommand::Recover(args) => (args, false),
    };
    let told = runtime.block_on(switch(&args, fails))?;
    writeln!(console.out, "{told}")?;
    Ok(Outcome::Done)
}

async fn switch(args: &ClusterArgs, fails: bool) -> anyhow::Result<String> {
    let server = ServerArgs { kubeconfig: args.kubeconfig.clone(), context: None };
    let server = connect::find(&server, Otherwise::Hub).await?;
    let url = server.url();
    let unreachable = || format!("the hub at {url} does not answer; `berth up --demo` starts one");
    let client = Client::try_from(server.config).with_context(unreachable)?;
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let name = &args.cluster;
    let Some(cluster) = clusters.get_opt(name).await.with_context(unreachable)? else {
        let (label, value) = LABEL;
        let ours = clusters.list_metadata(&ListParams::default().labels(&format!("{label}={value}"))).await;
        let known: Vec<String> =
            ours.into_iter().flatten().filter_map(|cluster| cluster.metadata.name).collect();
        let advice = match near(name, known.iter().map(String::as_str)) {
            none if none.is_empty() && !known.is_empty() => format!("; the demo has {}", known.join(", ")),
            near => near,
        };
        bail!("there is no cluster {name}{advice}");
    };
    let (label, value) = LABEL;
    let labels = cluster.metadata.labels.iter().flatten();
    if !labels.into_iter().any(|(key, is)| key == label && is == value) {
        bail!(
            "{name} has no simulated agent: the demo only has a say over clusters with the label {label}={value}"
        );
    }
    let behaviour = if fails { json!(SILENT) } else { json!(null) };
    let patch = json!({"metadata": {"annotations": {BEHAVIOUR: behaviour}}});
    let params = PatchParams { field_manager: Some("berth-demo".to_owned()), ..PatchParams::default() };
    clusters
        .patch(name, &params, &Patch::Merge(patch))
        .await
        .with_context(|| format!("{name} cannot be changed"))?;
    // An agent that is silent already leaves no trace of whether it is there.
    if !is_silent(&cluster) && !is_simulated(&client, name, Timestamp::now()).await {
        return Ok(format!(
            "{name} is marked, but no agent is simulated for it at {url}: its lease is not renewed; a hub that is \
             started with `berth up --demo` has agents"
        ));
    }
    Ok(if fails {
        let seconds = cluster.lease_duration_seconds().saturating_mul(PATIENCE);
        format!("the agent of {name} is silent; in about {seconds} s the cluster is unreachable")
    } else {
        format!("the agent of {name} is back; within a second or two the cluster is available")
    })
}
