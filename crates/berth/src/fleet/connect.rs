//! Which API server, as kubectl finds it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueHint};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use crate::commands::hub::{KUBECONFIG, default_data};

/// How long a connection may be quiet before the other side is asked whether it is there, and how often it is asked.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// Which API server to work with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ServerArgs {
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod this runs in].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// One file that somebody named.
    Named(PathBuf),
    /// Several, as `$KUBECONFIG` can list them; those that are missing count for nothing.
    Listed(OsString),
    /// The service account of a pod.
    Pod,
}

/// Where to look for a server that nobody named, neither with a flag nor in `$KUBECONFIG`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Where kubectl looks, and nowhere else: who is to act on a server must not find one by chance.
    Kubectl,
    /// Where kubectl looks, then in the hub's default data directory.
    KubectlThenHub,
    /// In the hub's default data directory: the command is about a hub.
    Hub,
}

/// An API server that can be asked.
#[derive(Debug)]
pub(crate) struct Server {
    /// How to reach it, and as whom.
    pub(crate) config: Config,
    /// The namespace of the pod this process runs in, where that is how the server was found.
    pub(crate) pod_namespace: Option<String>,
}

impl Server {
    /// Its address, for messages.
    pub(crate) fn url(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }

    /// A client for somebody who stays: it sends what it has at once, and notices when nobody is there any more.
    pub(crate) fn client(self) -> kube::Result<Client> {
        let mut config = self.config;
        // What failed is decided again here, because the world may have moved; nobody repeats it underneath.
        config.default_retry = false;
        if config.proxy_url.is_some() {
            return Client::try_from(config);
        }
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // A request is a few small packets; each would wait for the answer to the one before.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_read_timeout(config.read_timeout);
        connector.set_write_timeout(config.write_timeout);
        let service = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .service(service);
        Ok(Client::new(service, config.default_namespace))
    }
}

/// Finds the server. Whatever was named must work: a kubeconfig that is broken is not passed over for another.
pub(crate) async fn find(args: &ServerArgs, otherwise: Otherwise) -> anyhow::Result<Server> {
    let env = |name| std::env::var_os(name);
    let in_pod = env("KUBERNETES_SERVICE_HOST").is_some();
    let home = env("HOME").map(|home| Path::new(&home).join(".kube/config"));
    let home = home.filter(|path| path.is_file());
    let hub = default_data().ok().map(|data| data.join(KUBECONFIG));
    let usual = usual(otherwise, home, in_pod, hub);
    let origin = origin(args, env("KUBECONFIG").as_deref(), usual).context(match otherwise {
        Otherwise::Kubectl => {
            "no API server is known: there is neither a kubeconfig ($KUBECONFIG, ~/.kube/config) nor a pod's service \
             account; name one with --kubeconfig, or run `berth up` for a server of its own"
        }
        Otherwise::KubectlThenHub => {
            "no API server is known: there is neither a kubeconfig ($KUBECONFIG, ~/.kube/config, or a hub's in the \
             default data directory) nor a pod's service account; name one with --kubeconfig, or run `berth up` for a \
             server of its own"
        }
        Otherwise::Hub => {
            "no hub is known, as none of KUBECONFIG, XDG_DATA_HOME and HOME is set; name its kubeconfig with --kubeconfig"
        }
    })?;
    open(origin, args.context.as_deref()).await
}

fn usual(otherwise: Otherwise, home: Option<PathBuf>, in_pod: bool, hub: Option<PathBuf>) -> Option<Origin> {
    let kubectl = home.map(Origin::Named).or_else(|| in_pod.then_some(Origin::Pod));
    match otherwise {
        Otherwise::Kubectl => kubectl,
        Otherwise::KubectlThenHub => kubectl.or_else(|| hub.filter(|path| path.is_file()).map(Origin::Named)),
        // Also one that is not there: the message then names it.
        Otherwise::Hub => hub.map(Origin::Named),
    }
}

fn origin(args: &ServerArgs, listed: Option<&OsStr>, usual: Option<Origin>) -> Option<Origin> {
    if let Some(path) = &args.kubeconfig {
        return Some(Origin::Named(path.clone()));
    }
    if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
        return Some(Origin::Listed(listed.to_owned()));
    }
    usual
}

async fn open(origin: Origin, context: Option<&str>) -> anyhow::Result<Server> {
    let (name, read) = match origin {
        Origin::Pod => {
            let config = Config::incluster().context("the pod's service account cannot be used")?;
            let pod_namespace = Some(config.default_namespace.clone());
            return Ok(Server { config, pod_namespace });
        }
        Origin::Named(path) => {
            let name = path.display().to_string();
            let read = read(&path)?;
            (name, read)
        }
        Origin::Listed(listed) => {
            let name = listed.to_string_lossy().into_owned();
            let mut merged: Option<Kubeconfig> = None;
            for path in std::env::split_paths(&listed).filter(|path| path.is_file()) {
                let one = read(&path)?;
                merged = Some(match merged {
                    Some(first) => first.merge(one).with_context(|| unusable(&name))?,
                    None => one,
                });
            }
            let merged = merged.ok_or_else(|| anyhow!("{name}: no such file, as $KUBECONFIG names it"))?;
            (name, merged)
        }
    };
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(read, &options).await.with_context(|| unusable(&name))?;
    Ok(Server { config, pod_namespace: None })
}

fn read(path: &Path) -> anyhow::Result<Kubeconfig> {
    let named = || unusable(&path.display().to_string());
    // Asked first for the words of the system alone: what reads it repeats them.
    std::fs::File::open(path).with_context(named)?;
    Kubeconfig::read_from(path).with_context(named)
}

fn unusable(name: &str) -> String {
    format!("{name}: this kubeconfig cannot be used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_comes_first_and_what_is_usual_last() {
        let named = ServerArgs { kubeconfig: Some("a".into()), context: None };
        let none = ServerArgs::default();
        let listed = Some(OsStr::new("b:c"));
        let usual = || Some(Origin::Pod);
        assert_eq!(origin(&named, listed, usual()), Some(Origin::Named("a".into())));
        assert_eq!(origin(&none, listed, usual()), Some(Origin::Listed("b:c".into())));
        assert_eq!(origin(&none, Some(OsStr::new("")), usual()), usual());
        assert_eq!(origin(&none, None, usual()), usual());
        assert_eq!(origin(&none, None, None), None);
    }

    #[test]
    fn the_hub_of_the_default_data_directory_is_found_by_who_may_ask_it() {
        let folder = tempfile::tempdir().unwrap();
        let (hub, home) = (folder.path().join("hub"), folder.path().join("home"));
        let look = |otherwise, home: Option<&PathBuf>, in_pod| {
            usual(otherwise, home.cloned(), in_pod, Some(hub.clone()))
        };
        let named = |path: &PathBuf| Some(Origin::Named(path.clone()));
        assert_eq!(look(Otherwise::KubectlThenHub, None, false), None, "no hub has run yet");
        assert_eq!(look(Otherwise::Hub, None, false), named(&hub));
        std::fs::write(&hub, "").unwrap();
        assert_eq!(look(Otherwise::KubectlThenHub, None, false), named(&hub));
        assert_eq!(look(Otherwise::KubectlThenHub, Some(&home), true), named(&home));
        assert_eq!(look(Otherwise::KubectlThenHub, None, true), Some(Origin::Pod));
        assert_eq!(look(Otherwise::Kubectl, None, false), None, "controllers never act on it by chance");
        assert_eq!(look(Otherwise::Hub, Some(&home), true), named(&hub));
    }
}
