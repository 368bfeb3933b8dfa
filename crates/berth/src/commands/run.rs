//! `berth run`: the controllers, against any Kubernetes.

use anyhow::Context as _;
use berth_control::lead::HOME;
use berth_control::{Pace, inquiries};
use clap::Args;
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise};
use crate::fleet::controllers::{Controllers, Listeners, identity};
use crate::fleet::settings::{Settings, SettingsArgs, Unsettled};
use crate::service::{Signals, start_log};

/// Arguments of `berth run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth run\n  berth run --kubeconfig ./config --context fleet --leader-elect=false\n  berth run --controllers='*,-cluster-taint-controller' --metrics-bind 0.0.0.0:8080\n  berth run --controllers=taint-eviction-controller --eviction-rate 20\n  berth run --debug-bind 127.0.0.1:9443\n  berth run --config /etc/berth/run.yaml"
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
    if let Some(idle) = &settings.idle {
        tracing::warn!("{idle}");
    }
    let pace = Pace::default();
    on_one_thread(pace.clone(), work(settings, pace, console))
}

/// Runs a job on this thread alone, and leaves behind what it has not finished. The controllers wait for a server nearly
/// all the time; what woke one thread after another for every event would cost more than the work. Before the thread sleeps it
/// rests as long as the pace allows, so that it is woken for several events at once.
fn on_one_thread<T>(pace: Pace, job: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let rest = move || {
        let rest = pace.rest();
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().on_thread_park(rest).build();
    let runtime = runtime.context("the process cannot start its runtime")?;
    let outcome = runtime.block_on(job);
    runtime.shutdown_background();
    outcome
}

async fn work(settings: Settings, pace: Pace, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let mut signals = Signals::listen()?;
    let server = connect::find(&settings.server, Otherwise::Kubectl).await?;
    let listeners = Listeners::bind(settings.metrics, &settings.debug).await?;
    let (url, identity) = (server.url(), identity());
    let pod = server.pod_namespace.clone();
    let home = settings.home.or_else(|| pod.clone()).unwrap_or_else(|| HOME.to_owned());
    let controllers = Controllers {
        client: server.client().with_context(|| format!("{url} cannot be talked to"))?,
        server: url,
        list: settings.controllers,
        election: settings.election.map(|election| election.stand(identity.clone(), pod)),
        identity,
        home,
        nodes: settings.nodes,
        listeners,
        inquiries: inquiries(),
        pace,
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
