//! Running a hub: from flags to an address that answers, and to an end that loses nothing.
//!
//! Owns the order of starting (socket, data, kubeconfig, ready line) and what a signal does.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use berth_hub::{Hub, HubOptions, Listener};
use clap::{Args, ValueHint};
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::log::{self, LogArgs};
use super::{KUBECONFIG, default_data};
use crate::console::{Console, Outcome};

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
    pub listen: ListenAddress,

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

/// An address a hub can listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "give an address with a port, as 127.0.0.1:6443, [::1]:6443 or 0.0.0.0:6443";
        text.parse().map(Self).map_err(|_| advice.to_owned())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
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
    log::start(log);
    let runtime = runtime::Builder::new_multi_thread().thread_name("berth-hub").enable_all().build();
    let runtime = runtime.context("the hub cannot start its threads")?;
    let outcome = runtime.block_on(serve(args, console));
    // After a second signal requests may be under way still: whoever sent it does not want to wait for them.
    runtime.shutdown_background();
    outcome
}

async fn serve(args: ServeArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    // Before anything else, so that a signal during the start is not the system's to handle.
    let mut signals = Signals::listen()?;
    let data = match args.data {
        _ if args.in_memory => None,
        Some(data) => Some(data),
        None => Some(default_data()?),
    };
    let kubeconfig = args.kubeconfig.or_else(|| Some(data.as_deref()?.join(KUBECONFIG)));
    let kubeconfig = kubeconfig.expect("the parser asks for a kubeconfig where there is no data directory");

    let listener = Listener::bind(args.listen.0).await?;
    let address = listener.address();
    if !address.ip().to_canonical().is_loopback() {
        writeln!(
            console.err,
            "warning: the hub listens on {address}, where other machines may reach it; without --listen it is on \
             loopback only"
        )?;
    }
    let services: BTreeMap<_, _> = args.services.into_iter().map(|one| (one.name, one.address)).collect();
    let options = HubOptions {
        data,
        tokens: args.token_auth_file,
        names: args.names,
        services,
        ..HubOptions::default()
    };
    let hub = tokio::select! {
        hub = Hub::open(options) => hub?,
        name = signals.next() => bail!("stopped by {name} before the hub was ready"),
    };
    let ended = announce_and_serve(&hub, listener, &kubeconfig, &mut signals, console).await;
    if ended.is_err() {
        // Also where standard output is gone: the data is closed in any case.
        hub.begin_close();
    }
    tokio::select! {
        () = hub.close() => {}
        name = signals.next() => bail!("stopped at once by another {name}"),
    }
    ended?;
    tracing::info!("stopped");
    Ok(Outcome::Done)
}

/// Says that the hub is ready, and serves until a signal and the end of the requests under way.
async fn announce_and_serve(
    hub: &Hub,
    listener: Listener,
    kubeconfig: &Path,
    signals: &mut Signals,
    console: &mut Console<'_>,
) -> anyhow::Result<()> {
    let url = url_of(listener.address());
    hub.write_kubeconfig(kubeconfig, &url)?;
    // The socket takes connections from here on; they are answered as soon as the next line runs.
    let serving = hub.serve(listener);
    tokio::pin!(serving);
    writeln!(console.out, "hub ready at {url}, kubeconfig {}", kubeconfig.display())?;
    console.out.flush()?;
    tokio::select! {
        ended = &mut serving => return Ok(ended?),
        name = signals.next() => {
            tracing::info!("{name}: open requests may finish; a second signal ends the hub at once");
            hub.begin_close();
        }
    }
    tokio::select! {
        ended = &mut serving => Ok(ended?),
        name = signals.next() => bail!("stopped at once by another {name}; open requests were cut off"),
    }
}

/// How clients on this machine reach an address: the wildcard addresses are for listening only.
fn url_of(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

/// The signals that ask a hub to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("the hub cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The name of the next one.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_address_is_reached_through_loopback() {
        let url = |address: &str| url_of(address.parse().unwrap());
        assert_eq!(url("0.0.0.0:6443"), "https://127.0.0.1:6443");
        assert_eq!(url("[::]:6443"), "https://[::1]:6443");
        assert_eq!(url("127.0.0.1:1"), "https://127.0.0.1:1");
        assert_eq!(url("192.0.2.7:6443"), "https://192.0.2.7:6443");
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
