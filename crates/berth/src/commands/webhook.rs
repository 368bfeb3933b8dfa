//! `berth webhook`: the admission rules, for any Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use berth_admission::TimeAdded;
use berth_control::serve::{Health, Metrics, router};
use berth_hub::{Clock, Listener};
use clap::Args;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::hub::on_threads;
use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise, ServerArgs};
use crate::fleet::controllers::board;
use crate::fleet::settings::{Bind, parse_span};
use crate::service::{Address, LogArgs, Signals, start_log, url_host};
use crate::webhook::door::Door;
use crate::webhook::keeper::{Keeper, Own, Place};
use crate::webhook::lookout::Lookout;
use crate::webhook::vault::Terms;
use crate::webhook::{Base, server, usual};

/// The shortest life of a certificate: less could not be renewed in time.
const LIFE_MIN: Duration = Duration::from_secs(4);
/// The longest: what clients of the web take at most, and then some.
const LIFE_MAX: Duration = Duration::from_hours(365 * 24);

/// Arguments of `berth webhook`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth webhook\n  berth webhook --namespace fleet --service berth-webhook --secret berth-webhook-tls\n  berth webhook --kubeconfig ./config --listen 127.0.0.1:9443 --url https://127.0.0.1:9443\n  berth webhook --register --trusted-user system:serviceaccount:berth-system:berth"
)]
pub struct WebhookArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,

    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = usual::LISTEN)]
    pub listen: Address,

    /// The namespace of the Service and the Secret [default: that of the pod this runs in, or berth-system].
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// The Service by which the API server reaches this.
    #[arg(long, value_name = "NAME", default_value = usual::SERVICE)]
    pub service: String,

    /// The Secret that keeps the certificates; all replicas share it.
    #[arg(long, value_name = "NAME", default_value = usual::SECRET)]
    pub secret: String,

    /// The name of both webhook configurations, the mutating and the validating one.
    #[arg(long, value_name = "NAME", default_value = usual::CONFIGURATION)]
    pub configuration: String,

    /// Apply the webhook configurations, rather than keep `caBundle` true in those that `berth install` made.
    #[arg(long)]
    pub register: bool,

    /// Have the API server call this address instead of the Service, as where this runs outside the cluster; implies
    /// --register. Port 0 stands for the one that is listened on.
    #[arg(long, value_name = "https://HOST:PORT")]
    pub url: Option<Base>,

    /// A user whose writes are never asked about, as the controllers' own; with --register; can be given several times
    /// [default: system:serviceaccount:NAMESPACE:berth].
    #[arg(long, value_name = "USER")]
    pub trusted_user: Vec<String>,

    /// How long a serving certificate lasts; it is renewed after two thirds of that, and its authority lasts four times as
    /// long.
    #[arg(long, value_name = "SPAN", default_value = "2160h", value_parser = parse_life)]
    pub certificate_life: Duration,

    /// Let clients say since when a taint counts, as on a hub without upstream's admission.
    #[arg(long)]
    pub allow_time_added: bool,

    /// Where to serve /healthz, /readyz and /metrics; 0 for nowhere.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub metrics_bind: Bind,

    /// How much to tell.
    #[command(flatten)]
    pub log: LogArgs,
}

fn parse_life(text: &str) -> Result<Duration, String> {
    let life = parse_span(text)?;
    if (LIFE_MIN..=LIFE_MAX).contains(&life) {
        Ok(life)
    } else {
        Err(format!("give at least {LIFE_MIN:?} and at most {} days", LIFE_MAX.as_secs() / 86_400))
    }
}

/// Serves the rules until a signal ends it.
pub fn run(args: WebhookArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    start_log(&args.log);
    on_threads(work(args, console))
}

async fn work(mut args: WebhookArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let mut signals = Signals::listen()?;
    let found = connect::find(&args.server, Otherwise::Kubectl).await?;
    let board = board(args.metrics_bind).await?;
    let listener = Listener::bind(args.listen.0).await?;
    let address = listener.address();
    args.url = args.url.map(|url| url.at(address.port()));
    let url = found.url();
    let place = place(&args, found.pod_namespace.clone());
    let client = Client::try_from(found.config).with_context(|| format!("{url} cannot be talked to"))?;
    let metrics_at =
        board.as_ref().map(|one| format!(", metrics http://{}/metrics", url_host(one.address())));
    let line =
        format!("webhook ready at https://{} for {url}{}", url_host(address), metrics_at.unwrap_or_default());

    let (health, metrics) = (Health::default(), Arc::new(Metrics::default()));
    let check = health.check("certificate");
    let _board = board.map(|board| {
        let router = router(&health, Arc::clone(&metrics));
        AbortOnDropHandle::new(tokio::spawn(board.serve(router, CancellationToken::new())))
    });
    let stop = CancellationToken::new();
    let mut keeper = Keeper::new(&client, place, check, Arc::clone(&metrics));
    let serving = tokio::select! {
        serving = keeper.begin() => serving,
        name = signals.next() => bail!("stopped by {name} before there was a certificate"),
    };
    if let Some(words) = keeper.reservation() {
        tracing::warn!("{words}");
    }
    let lookout = Lookout::keep(client.clone(), Arc::clone(&metrics), stop.clone());
    let time_added = if args.allow_time_added { TimeAdded::Client } else { TimeAdded::Server };
    let door = Door::new(client, lookout, time_added, metrics);
    let answering = {
        let stop = stop.clone();
        tokio::spawn(async move {
            listener.serve(server::router(door), &serving, Clock::system(), server::limits(), stop).await;
        })
    };
    tokio::pin!(answering);
    let keeping = tokio::spawn(keeper.run(stop.clone()));
    writeln!(console.out, "{line}")?;
    console.out.flush()?;
    let name = tokio::select! {
        ended = &mut answering => {
            ended.context("the server ended badly")?;
            bail!("the server ended by itself");
        }
        name = signals.next() => name,
    };
    tracing::info!(
        "{name}: finishing what is under way; a second signal, a second later or more, ends the process at once"
    );
    stop.cancel();
    tokio::select! {
        ended = &mut answering => ended.context("the server ended badly")?,
        name = signals.next() => bail!("stopped at once by another {name}; open requests were cut off"),
    }
    let farewell = keeping.await.context("the keeper of the certificates ended badly")?;
    if let Some(words) = farewell {
        tracing::warn!("{words}");
    }
    tracing::info!("stopped");
    Ok(Outcome::Done)
}

/// Where everything is on the server, and whose.
fn place(args: &WebhookArgs, pod: Option<String>) -> Place {
    let namespace = args.namespace.clone().or(pod).unwrap_or_else(|| usual::NAMESPACE.to_owned());
    let service = &args.service;
    let mut names: Vec<String> =
        ["", ".svc", ".svc.cluster.local"].iter().map(|end| format!("{service}.{namespace}{end}")).collect();
    names.extend(args.url.iter().map(|url| url.host().to_owned()));
    let trusted = if args.trusted_user.is_empty() {
        vec![format!("system:serviceaccount:{namespace}:{}", usual::CONTROLLERS_ACCOUNT)]
    } else {
        args.trusted_user.clone()
    };
    let own = (args.register || args.url.is_some()).then(|| Own {
        url: args.url.as_ref().map(ToString::to_string),
        service: service.clone(),
        trusted,
    });
    Place {
        namespace,
        secret: args.secret.clone(),
        configuration: args.configuration.clone(),
        own,
        terms: Terms { names, life: args.certificate_life },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_lives_long_enough_to_be_renewed() {
        assert_eq!(parse_life("6s"), Ok(Duration::from_secs(6)));
        assert!(parse_life("1s").is_err() && parse_life("100000h").is_err() && parse_life("soon").is_err());
    }
}
