//! A running hub: opened, served, asked from within, closed.
//!
//! Owns the order in which the parts come up and go down. Nothing is served before the log is read and the objects
//! every cluster begins with are there; nothing is closed before the last answer is out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use berth_hub_guard::token::TokenFileError;
use berth_hub_guard::webhook::ServiceMap;
use berth_hub_guard::{
    Authenticator, Authority, AuthorityError, Identity, Kubeconfig, ServiceAccountTokens, Serving,
    StaticTokens, User, write_kubeconfig,
};
use berth_hub_store::backend::FILE_NAME;
use berth_hub_store::{Backend, JournaledBackend, Ledger, LedgerOptions, MemoryBackend, StoreError};
use http::Request;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::admission::{self, Admission};
use crate::clock::Clock;
use crate::core::{Core, Parts};
use crate::derived::Derived;
use crate::keep::Keeper;
use crate::limits::Limits;
use crate::request::Peer;
use crate::serve::Listener;
use crate::{request, seed};

/// The administrator that `berth hub` writes a kubeconfig for.
const ADMIN: &str = "berth-admin";
const MASTERS: &str = "system:masters";
/// Where keys and certificates are, in the data directory.
const PKI: &str = "pki";
const IGNORE: &str = ".gitignore";
/// What may be in a data directory before there is a store: what a first start makes that is cut short, and what a file
/// system of its own brings along.
const BEGUN: [&str; 4] = [IGNORE, "hub.lock", "hub.redb.partial", "lost+found"];
/// How often the hub looks whether its certificate ends soon.
const RENEW_EVERY: Duration = Duration::from_hours(12);
/// How often old history is let go.
const COMPACT_EVERY: Duration = Duration::from_secs(30);

/// How a hub runs.
#[derive(Debug, Clone, Default)]
pub struct HubOptions {
    /// Where objects and keys are kept; without one they live in memory and end with the process.
    pub data: Option<PathBuf>,
    /// A file of static tokens, as kube-apiserver's `--token-auth-file`.
    pub tokens: Option<PathBuf>,
    /// Names and addresses its certificate is for, besides loopback.
    pub names: Vec<String>,
    /// Bounds on what clients may use.
    pub limits: Limits,
    /// The clock.
    pub clock: Clock,
    /// How the log is kept.
    pub ledger: LedgerOptions,
    /// Functions in this process that have a say in writes, asked in this order after the hub's own.
    pub admission: Vec<Arc<dyn Admission>>,
    /// Where admission webhooks that name a service are reached, as `namespace/name` to `host:port`.
    pub services: BTreeMap<String, String>,
}

/// Why a hub cannot run.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The data directory cannot be used.
    #[error("the data directory {path} cannot be used: {cause}; give another with --data")]
    Data {
        /// The directory.
        path: PathBuf,
        /// What the system said. It is in the message, so it is not a source.
        cause: std::io::Error,
    },
    /// The data directory belongs to something else.
    #[error("{path} holds files that are not a hub's; give an empty or new directory with --data")]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// There are keys of a hub, but not its objects.
    #[error(
        "{0}/{FILE_NAME} is missing, but {0}/{PKI} is there, so this hub had one; put it back, restore a backup with \
         `berth hub restore --data {0} BACKUP`, or move {0} away to begin with an empty hub",
        path.display()
    )]
    StoreMissing {
        /// The data directory.
        path: PathBuf,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The objects every cluster begins with could not be written.
    #[error("the first objects could not be written: {0}")]
    Seed(String),
}

/// An API server in this process.
#[derive(Clone, Debug)]
pub struct Hub {
    core: Arc<Core>,
    authority: Arc<Authority>,
    names: Vec<String>,
    keepers: Arc<tokio::sync::Mutex<Vec<JoinHandle<()>>>>,
}

impl Hub {
    /// Opens the data directory, or memory, and makes the hub ready to be served.
    pub async fn open(options: HubOptions) -> Result<Self, HubError> {
        let now = options.clock.now();
        let (backend, authority): (Box<dyn Backend>, Authority) = match &options.data {
            Some(data) => {
                private_directory(data)?;
                // The store is made before the keys, so keys without a store mean that one was lost, whenever a start
                // was cut short.
                (
                    Box::new(JournaledBackend::open(data).map_err(StoreError::from)?),
                    Authority::open(&data.join(PKI), now)?,
                )
            }
            None => (Box::new(MemoryBackend::new()), Authority::in_memory(now)?),
        };
        Self::with_backend(options, backend, authority).await
    }

    /// A hub on a backend of the caller's, for tests of what happens when storage fails.
    pub async fn with_backend(
        options: HubOptions,
        backend: Box<dyn Backend>,
        authority: Authority,
    ) -> Result<Self, HubError> {
        let HubOptions { data, tokens, names, limits, clock, ledger, admission, services } = options;
        let ledger = tokio::task::spawn_blocking(move || Ledger::open(backend, ledger))
            .await
            .map_err(|error| StoreError::Thread(error.to_string()))??;
        let statics = tokens.as_deref().map(StaticTokens::open).transpose()?.unwrap_or_default();
        let accounts =
            ServiceAccountTokens::new(authority.signing_key(), berth_hub_guard::token::DEFAULT_ISSUER);
        let authenticator = Authenticator::new(statics, accounts);
        let (derived, work) = Derived::follow(&ledger);
        let services = Arc::new(ServiceMap(services.into_iter().collect()));
        let scratch = data.unwrap_or_else(std::env::temp_dir);
        let admission = admission::builtin(&derived).into_iter().chain(admission).collect();
        let ca_pem = authority.ca_pem().into();
        let parts = Parts { ledger, derived, clock, limits, authenticator, admission, ca_pem, scratch };
        let core = Arc::new(Core::new(parts, services));
        seed::plant(&core).await.map_err(HubError::Seed)?;
        let stop = core.stopping.clone();
        let hub = Self { core, authority: Arc::new(authority), names, keepers: Arc::default() };
        let mut keepers = hub.keepers.lock().await;
        keepers.push(tokio::spawn(Keeper::new(Arc::clone(&hub.core), work).run(stop.clone())));
        keepers.push(tokio::spawn(compact(Arc::clone(&hub.core), stop)));
        drop(keepers);
        Ok(hub)
    }

    /// The API as a service, for whoever brings the requests. They must carry a [`Peer`].
    pub fn router(&self) -> Router {
        request::router(Arc::clone(&self.core))
    }

    /// A client within the process, without a socket, as an administrator.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::in_process())
    }

    /// A client within the process, as this user.
    pub fn client_as(&self, user: User) -> kube::Client {
        let peer = Peer::InProcess(Arc::new(user));
        let router = self.router();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer.clone());
            router.clone().oneshot(request)
        });
        kube::Client::new(service, "default")
    }

    /// Answers on a socket until the hub is closed.
    pub async fn serve(&self, listener: Listener) -> Result<(), HubError> {
        self.server(listener)?.run().await;
        Ok(())
    }

    /// Makes everything ready to answer on a socket. What can go wrong with that goes wrong here, so that an address is
    /// announced only when it answers.
    pub fn server(&self, listener: Listener) -> Result<Server, HubError> {
        let mut names = self.names.clone();
        names.push(listener.address().ip().to_string());
        let serving = Arc::new(Serving::new(&self.authority, &names, self.core.clock.now())?);
        Ok(Server { hub: self.clone(), listener, serving })
    }

    /// Writes the kubeconfig of an administrator of the hub at this address.
    pub fn write_kubeconfig(&self, path: &Path, server: &str) -> Result<(), HubError> {
        let identity = self.admin()?;
        let config =
            Kubeconfig { name: "berth", server, ca_pem: self.authority.ca_pem(), identity: &identity };
        Ok(write_kubeconfig(path, &config)?)
    }

    /// A certificate of the administrator.
    pub fn admin(&self) -> Result<Identity, HubError> {
        Ok(self.authority.client(ADMIN, &[MASTERS.to_owned()], self.core.clock.now())?)
    }

    /// The certificate authority's certificate, PEM.
    pub fn ca_pem(&self) -> &str {
        self.authority.ca_pem()
    }

    /// Tells watches and the accept loop to end, without waiting for them.
    pub fn begin_close(&self) {
        self.core.stopping.cancel();
    }

    /// Ends watches, waits for the keepers, and closes the log. To let open requests finish, await [`Hub::serve`] first.
    pub async fn close(&self) {
        self.begin_close();
        for keeper in self.keepers.lock().await.drain(..) {
            if let Err(error) = keeper.await {
                tracing::error!(%error, "a keeper ended badly");
            }
        }
        self.core.ledger.close().await;
    }
}

/// A hub on a socket, with its certificate at hand. Connections wait until it runs.
#[derive(Debug)]
#[must_use = "a server answers when it runs"]
pub struct Server {
    hub: Hub,
    listener: Listener,
    serving: Arc<Serving>,
}

impl Server {
    /// Answers until the hub is closed.
    pub async fn run(self) {
        let Self { hub, listener, serving } = self;
        let core = &hub.core;
        let renewal =
            tokio::spawn(renew(Arc::clone(&serving), Arc::clone(&hub.authority), core.clock.clone()));
        listener
            .serve(hub.router(), &serving, core.clock.clone(), core.limits.clone(), core.stopping.clone())
            .await;
        renewal.abort();
    }
}

fn private_directory(path: &Path) -> Result<(), HubError> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    let failed = |cause| HubError::Data { path: path.to_owned(), cause };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    // In this order: another hub that starts here at this moment makes the store before the keys.
    let keys = path.join(PKI).try_exists().map_err(failed)?;
    let store = path.join(FILE_NAME).try_exists().map_err(failed)?;
    if keys && !store {
        return Err(HubError::StoreMissing { path: path.to_owned() });
    }
    if !store {
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if !BEGUN.iter().any(|begun| name == *begun) {
                return Err(HubError::Foreign { path: path.to_owned() });
            }
        }
    }
    let mut permissions = std::fs::metadata(path).map_err(failed)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        // There are keys in it.
        tracing::warn!(path = %path.display(), "the data directory was open to others; it is closed to them now");
        permissions.set_mode(0o700);
        std::fs::set_permissions(path, permissions).map_err(failed)?;
    }
    // Keys do not belong into a repository, wherever the directory was put.
    let ignore = path.join(IGNORE);
    if !ignore.exists() {
        std::fs::write(ignore, "*\n").map_err(failed)?;
    }
    Ok(())
}

async fn renew(serving: Arc<Serving>, authority: Arc<Authority>, clock: Clock) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match serving.renew(&authority, clock.now()) {
            Ok(true) => tracing::info!("the serving certificate was renewed"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "the serving certificate could not be renewed"),
        }
    }
}

async fn compact(core: Arc<Core>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(COMPACT_EVERY) => {}
            () = stop.cancelled() => return,
        }
        let now = Duration::from_millis(u64::try_from(core.clock.now().as_millisecond()).unwrap_or_default());
        if let Err(error) = core.ledger.compact(now).await {
            tracing::warn!(%error, "old history could not be let go");
        }
    }
}
