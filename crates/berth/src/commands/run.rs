//! `berth run`: the controllers, against any Kubernetes.

use anyhow::Context as _;
use clap::Args;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::hub::on_threads;
use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise};
use crate::fleet::controllers::{Controllers, identity, listen};
use crate::fleet::settings::{Settings, SettingsArgs, Unsettled};
use crate::service::{Signals, start_log};

/// Arguments of `berth run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth run\n  berth run --kubeconfig ./config --context fleet --leader-elect=false\n  berth run --controllers='*,-cluster-taint-controller' --metrics-bind 0.0.0.0:8080\n  berth run --config /etc/berth/run.yaml"
)]
pub struct RunArgs {
    /// How to run.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Runs the controllers until a signal ends them.
pub fn run(args: RunArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let settings = match args.settings.settle() {
        Ok(settings) => settings,
        Err(Unsettled::Flags(message)) => {
            writeln!(console.err, "berth: {message}")?;
            return Ok(Outcome::Misused);
        }
        Err(Unsettled::File(problems)) => {
            console.report(problems)?;
            return Ok(Outcome::Faulty);
        }
    };
    start_log(&settings.log);
    on_threads(work(settings, console))
}

async fn work(settings: Settings, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let mut signals = Signals::listen()?;
    let server = connect::find(&settings.server, Otherwise::Kubectl).await?;
    let listener = listen(settings.metrics).await?;
    let (url, identity) = (server.url(), identity());
    let pod = server.pod_namespace.clone();
    let controllers = Controllers {
        client: Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?,
        server: url,
        list: settings.controllers,
        election: settings.election.map(|election| election.stand(identity.clone(), pod)),
        identity,
        listener,
    };
    let stop = CancellationToken::new();
    let running = controllers.run(stop.clone(), async |line| {
        writeln!(console.out, "{line}")?;
        Ok(console.out.flush()?)
    });
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => ended?,
        name = signals.next() => {
            tracing::info!("{name}: finishing what is under way; a second signal, a second later or more, ends the process at once");
            stop.cancel();
            tokio::select! {
                ended = &mut running => ended?,
                name = signals.next() => anyhow::bail!("stopped at once by another {name}; work was cut off"),
            }
        }
    }
    tracing::info!("stopped");
    Ok(Outcome::Done)
}
