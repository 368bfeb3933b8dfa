//! Running a hub: from flags to an address that answers, and to an end that loses nothing.
//!
//! Owns the order of starting (socket, data, kubeconfig, ready line) and what a signal does. Whoever works on a hub from
//! within its process (`berth up`) is a crew: it comes aboard when the hub answers, and leaves before the hub closes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use berth_hub::{Admission, Hub, HubOptions, Listener};
use berth_hub_guard::{Kubeconfig, write_kubeconfig};
use clap::{Args, ValueHint};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use super::{KUBECONFIG, default_data};
use crate::console::{Console, Outcome};
use crate::service::{Address, LogArgs, Signals, start_log, url_host};

/// How a hub is run.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Where objects and keys are kept; made when it is missing [default: $XDG_DATA_HOME/berth, which is mostly
    /// ~/.local/share/berth].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,

    /// Keep nothing: objects and keys end with the process.
    #[arg(long, conflicts_with = "data", requires = "kubeconfig")]
    pub in_memory: bool,

    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    pub listen: Address,

    /// Where the administrator's kubeconfig is written [default: DIR/kubeconfig].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// File of bearer tokens, a line each: token,user,uid[,"group1,group2"].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_auth_file: Option<PathBuf>,

    /// Another name or address by which clients reach the hub, for its certificate; can be given several times.
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,

    /// Where admission webhooks reach a service, as there is no cluster network; can be given several times.
    #[arg(long = "webhook-service", value_name = "NAMESPACE/NAME=HOST:PORT")]
    pub services: Vec<WebhookService>,
}

/// A service that webhook configurations name, and where it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookService {
    name: String,
    address: String,
}

impl FromStr for WebhookService {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(name, address)| {
            let named = name
                .split_once('/')
                .is_some_and(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
            let port = address
                .rsplit_once(':')
                .filter(|(host, _)| !host.is_empty())
                .map(|(_, port)| port.parse::<u16>());
            named && matches!(port, Some(Ok(1..)))
        });
        let (name, address) =
            parts.ok_or("give it as NAMESPACE/NAME=HOST:PORT, as in hooks/policy=127.0.0.1:9443")?;
        Ok(Self { name: name.to_owned(), address: address.to_owned() })
    }
}

/// Runs a hub until a signal ends it.
pub(super) fn run(args: ServeArgs, log: &LogArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    start_log(log);
    on_threads(async {
        let mut signals = Signals::listen()?;
        let station = Station::open(args, Vec::new(), &mut signals, console).await?;
        let alone = async |_: &Place, stop: CancellationToken, _: &mut Console<'_>| {
            stop.cancelled().await;
            anyhow::Ok(())
        };
        station.run(alone, &mut signals, console).await
    })
}

/// Runs a job on threads of its own, and leaves behind what it has not finished.
pub(crate) fn on_threads<T>(job: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = runtime::Builder::new_multi_thread().thread_name("berth").enable_all().build();
    let runtime = runtime.context("the process cannot start its threads")?;
    let outcome = runtime.block_on(job);
    // After a second signal requests may be under way still: whoever sent it does not want to wait for them.
    runtime.shutdown_background();
    outcome
}

/// A hub with a socket that takes connections, which nobody answers yet.
pub(crate) struct Station {
    place: Place,
    listener: Listener,
}

/// What a crew works on.
pub(crate) struct Place {
    /// The hub, which answers.
    pub(crate) hub: Hub,
    /// Where the administrator's kubeconfig is.
    pub(crate) kubeconfig: PathBuf,
    /// What cluster, user and context are called in it.
    name: String,
}

impl Station {
    /// Binds the socket and opens the data. `admission` has a say in every write.
    pub(crate) async fn open(
        args: ServeArgs,
        admission: Vec<Arc<dyn Admission>>,
        signals: &mut Signals,
        console: &mut Console<'_>,
    ) -> anyhow::Result<Self> {
        let data = match args.data {
            _ if args.in_memory => None,
            Some(data) => Some(data),
            None => Some(default_data()?),
        };
        let kubeconfig = args.kubeconfig.or_else(|| Some(data.as_deref()?.join(KUBECONFIG)));
        let kubeconfig =
            kubeconfig.expect("the parser asks for a kubeconfig where there is no data directory");

        let listener = Listener::bind(args.listen.0).await?;
        let address = listener.address();
        if !address.ip().to_canonical().is_loopback() {
            writeln!(
                console.err,
                "warning: the hub listens on {address}, where other machines may reach it; without --listen it is on \
                 loopback only"
            )?;
        }
        let name = name_of(data.as_deref());
        let services: BTreeMap<_, _> = args.services.into_iter().map(|one| (one.name, one.address)).collect();
        let options = HubOptions {
            data,
            tokens: args.token_auth_file,
            names: args.names,
            services,
            admission,
            ..HubOptions::default()
        };
        let hub = tokio::select! {
            hub = Hub::open(options) => hub?,
            name = signals.next() => bail!("stopped by {name} before the hub was ready"),
        };
        Ok(Self { place: Place { hub, kubeconfig, name }, listener })
    }

    /// Answers, with `crew` at work beside it, until a signal or the crew's failure; then ends both, the crew first.
    pub(crate) async fn run(
        self,
        crew: impl AsyncFnOnce(&Place, CancellationToken, &mut Console<'_>) -> anyhow::Result<()>,
        signals: &mut Signals,
        console: &mut Console<'_>,
    ) -> anyhow::Result<Outcome> {
        let Self { place, listener } = self;
        let ended = announce_and_serve(&place, listener, crew, signals, console).await;
        // Also where standard output is gone: the data is closed in any case.
        place.hub.begin_close();
        tokio::select! {
            () = place.hub.close() => {}
            name = signals.next() => bail!("stopped at once by another {name}"),
        }
        ended?;
        tracing::info!("stopped");
        Ok(Outcome::Done)
    }
}

/// What a hub is called in its kubeconfig: by its data directory, so that those of several hubs can be used together, and
/// always the same.
fn name_of(data: Option<&Path>) -> String {
    let full = data.and_then(|data| std::path::absolute(data).ok());
    // A path that ends in `..` has no name of its own, unless it is there to be asked.
    let full = full.map(|path| path.canonicalize().unwrap_or(path));
    let folder = full.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let folder: String = folder.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    match folder.as_str() {
        "" => "berth".to_owned(),
        own if own.starts_with("berth") => folder,
        _ => format!("berth-{folder}"),
    }
}

/// Says that the hub is ready, and serves until a signal and the end of the requests under way.
async fn announce_and_serve(
    place: &Place,
    listener: Listener,
    crew: impl AsyncFnOnce(&Place, CancellationToken, &mut Console<'_>) -> anyhow::Result<()>,
    signals: &mut Signals,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    let url = format!("https://{}", url_host(listener.address()));
    // Everything that can fail comes before the announcement: whoever reads it can connect and is answered.
    let server = place.hub.server(listener)?;
    let identity = place.hub.admin()?;
    let config =
        Kubeconfig { name: &place.name, server: &url, ca_pem: place.hub.ca_pem(), identity: &identity };
    write_kubeconfig(&place.kubeconfig, &config)
        .with_context(|| format!("{}: the kubeconfig cannot be written", place.kubeconfig.display()))?;
    let serving = server.run();
    tokio::pin!(serving);
    writeln!(console.out, "hub ready at {url}, kubeconfig {}", place.kubeconfig.display())?;
    console.out.flush()?;
    let stop = CancellationToken::new();
    let crewed = {
        let crew = crew(place, stop.clone(), console);
        tokio::pin!(crew);
        tokio::select! {
            () = &mut serving => return Ok(()),
            ended = &mut crew => ended,
            name = signals.next() => {
                tracing::info!("{name}: open requests may finish; a second signal, a second later or more, ends the process at once");
                stop.cancel();
                // What the crew finishes, the hub must still take.
                tokio::select! {
                    () = &mut serving => return Ok(()),
                    ended = &mut crew => ended,
                    name = signals.next() => bail!("stopped at once by another {name}; work was cut off"),
                }
            }
        }
    };
    place.hub.begin_close();
    tokio::select! {
        () = &mut serving => {}
        name = signals.next() => bail!("stopped at once by another {name}; open requests were cut off"),
    }
    crewed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_called_by_its_data_directory() {
        let name = |data: &str| name_of(Some(Path::new(data)));
        assert_eq!(name("/nowhere/.local/share/berth"), "berth");
        assert_eq!(name("./nowhere-fleet/"), "berth-nowhere-fleet");
        assert_eq!(name("/nowhere/berth-data"), "berth-data");
        assert_eq!(name("/nowhere/my data"), "berth-my-data");
        assert_eq!(name("/"), "berth");
        assert_eq!(name_of(None), "berth");
    }

    #[test]
    fn a_service_has_a_namespace_a_name_and_an_address_with_a_port() {
        let parsed: WebhookService = "hooks/policy=127.0.0.1:9443".parse().unwrap();
        assert_eq!(parsed, WebhookService { name: "hooks/policy".into(), address: "127.0.0.1:9443".into() });
        for wrong in
            ["", "policy=127.0.0.1:9443", "hooks/policy", "hooks/=a:1", "a/b=host", "a/b=:1", "a/b=host:0"]
        {
            assert!(wrong.parse::<WebhookService>().is_err(), "{wrong}");
        }
    }
}
