//! `berth install`: everything a Kubernetes needs to run Berth, for `kubectl apply`; or whether it has it.

use anyhow::Context as _;
use clap::Args;
use kube::Client;

use super::hub::on_threads;
use super::{ManifestFormat, ServerArgs};
use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise};
use crate::install::{Installation, InstallationArgs, check, parts};

/// Arguments of `berth install`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth install --image registry.example.com/berth:0.1.0 | kubectl apply --server-side -f -\n  berth install --controllers=placement-controller --without-webhooks --without-crds\n  berth install --controllers='*,taint-eviction-controller' --eviction-rate 20\n  berth install --check --image registry.example.com/berth:0.1.0 --context fleet"
)]
pub struct InstallArgs {
    /// What to install.
    #[command(flatten)]
    pub installation: InstallationArgs,

    /// How to print the manifests.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ManifestFormat,

    /// Compare a server with what would be printed, instead of printing it; exit code 1 where something is missing,
    /// different or not ready. Nothing is written to the server.
    #[arg(long, conflicts_with = "output")]
    pub check: bool,

    /// The server, with --check.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Prints the manifests, or checks a server.
pub fn run(args: InstallArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let installation = match Installation::try_from(args.installation) {
        Ok(installation) => installation,
        Err(message) => {
            writeln!(console.err, "berth: {message}")?;
            return Ok(Outcome::Misused);
        }
    };
    // What is there already would be held to the standard that ours is, and Kubernetes' own pods could not start any more.
    if !args.check && is_shared(&installation.namespace) {
        writeln!(
            console.err,
            "berth: the namespace {} is Kubernetes' own, and installing restricts what may run in it; choose another one",
            installation.namespace
        )?;
        return Ok(Outcome::Misused);
    }
    if args.check {
        return on_threads(examine(&installation, &args.server, console));
    }
    if args.server != ServerArgs::default() {
        writeln!(
            console.err,
            "berth: --kubeconfig and --context go with --check; `berth install | kubectl apply -f -` says it to kubectl"
        )?;
        return Ok(Outcome::Misused);
    }
    args.output.write(&parts::objects(&installation)?, console)?;
    Ok(Outcome::Done)
}

/// Whether a namespace is there in every cluster, with pods of others in it.
fn is_shared(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

async fn examine(
    installation: &Installation,
    server: &ServerArgs,
    console: &mut Console<'_>,
) -> anyhow::Result<Outcome> {
    let server = connect::find(server, Otherwise::Kubectl).await?;
    let url = server.url();
    let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
    let report = check(&client, &url, installation).await?;
    write!(console.out, "{report}")?;
    Ok(if report.is_well() { Outcome::Done } else { Outcome::Faulty })
}
