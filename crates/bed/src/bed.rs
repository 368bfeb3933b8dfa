//! The handle on a running API server, the same for every kind of bed.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Client, Config,
    api::{Api, ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::{sleep, timeout};

use crate::{
    BedError, Hub, Identity, Kubernetes,
    folder::Folder,
    identity::unusable,
    kubernetes::ETCD,
    port::Port,
    process::Process,
    shared::{self, Shared},
    tools,
};

/// How long a server may take to become ready. It takes seconds; a busy machine that compiles beside it takes more.
const READY: Duration = Duration::from_mins(2);

/// How long a server may take to end when asked to: kube-apiserver lets requests under way finish.
const END: Duration = Duration::from_mins(1);

/// How long one look at a server's readiness may take.
const LOOK: Duration = Duration::from_secs(5);

/// How often a new namespace is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What every namespace is given, by the hub or by a controller.
const ROOT: &str = "kube-root-ca.crt";

/// Which API server a bed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Berth's own.
    Hub,
    /// A kube-apiserver on etcd.
    Kubernetes,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hub => "the hub",
            Self::Kubernetes => "Kubernetes",
        })
    }
}

/// How the API server of a bed is started, each time the same way: same data, same port.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether the server announces itself in a line on standard output, with its address in it.
    pub(crate) announces: bool,
}

/// A running API server on loopback, with everything under it. Dropping it ends every process it started.
#[derive(Debug)]
pub struct Bed {
    // Dropped in this order: the API server before what it stands on, the folder last.
    server: Option<Process>,
    backing: Vec<(&'static str, Process)>,
    kind: Kind,
    launch: Launch,
    url: String,
    kubeconfig: PathBuf,
    identity: Identity,
    config: Config,
    /// Whether somebody puts the authority's certificate into every namespace.
    has_publisher: bool,
    _ports: Vec<Port>,
    folder: Folder,
}

impl Bed {
    /// A kube-apiserver on etcd; await it to start it, or say first what should be different.
    pub fn kubernetes() -> Kubernetes {
        Kubernetes::default()
    }

    /// Berth's own API server; await it to start it, or say first what should be different.
    pub fn hub() -> Hub {
        Hub::default()
    }

    /// The bed of that kind which the tests of this process share.
    pub async fn shared(kind: Kind) -> Result<Shared, BedError> {
        shared::get(kind, false).await
    }

    /// The shared bed of that kind on which garbage is collected, namespaces end, accounts appear, budgets are counted and
    /// roles aggregated: by the hub itself, and on Kubernetes by a kube-controller-manager with just those controllers.
    pub async fn managed(kind: Kind) -> Result<Shared, BedError> {
        shared::get(kind, true).await
    }

    /// Gives this bed to all who ask for it from here on; it ends with the process, and so does its folder.
    pub fn share(self) -> Result<Shared, BedError> {
        Shared::of(self)
    }

    /// Starts the API server and waits until it serves. `kubeconfig` is there by then, written by us or by the server.
    pub(crate) async fn raise(
        kind: Kind,
        launch: Launch,
        kubeconfig: PathBuf,
        backing: Vec<(&'static str, Process)>,
        has_publisher: bool,
        ports: Vec<Port>,
        folder: Folder,
    ) -> Result<Self, BedError> {
        match Self::first_start(&launch, &kubeconfig, &folder).await {
            Ok((server, url, identity, config)) => Ok(Self {
                server: Some(server),
                backing,
                kind,
                launch,
                url,
                kubeconfig,
                identity,
                config,
                has_publisher,
                _ports: ports,
                folder,
            }),
            Err(error) => {
                folder.keep();
                Err(error)
            }
        }
    }

    async fn first_start(
        launch: &Launch,
        path: &Path,
        folder: &Folder,
    ) -> Result<(Process, String, Identity, Config), BedError> {
        let mut server = launch.start(folder).await?;
        let read = Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))?;
        let identity = Identity::read(&read, path)?;
        let url = read.clusters.first().and_then(|named| named.cluster.as_ref()?.server.clone());
        let url = url.ok_or_else(|| unusable(path, &"its first cluster has no server"))?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let config = config.map_err(|error| unusable(path, &error))?;
        await_ready(&mut server, &config).await?;
        Ok((server, url, identity, config))
    }

    /// Which API server this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// A client of the administrator, with connections of its own, on the runtime that calls this.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("a configuration that this bed has been reached with")
    }

    /// A client that acts as `user` of `groups`, by impersonation.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(ToString::to_string).collect());
        Client::try_from(config).expect("a configuration that differs from a proven one in two headers")
    }

    /// The administrator's client configuration, to change before making a client of it.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where the API server listens, as in `https://127.0.0.1:40123`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's certificates, for clients of other make.
    pub fn admin_identity(&self) -> &Identity {
        &self.identity
    }

    /// The folder with the bed's data and logs (`kube-apiserver.log`, `hub.log`, ...).
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program that serves: `berth`, or `kube-apiserver`.
    pub fn program(&self) -> &Path {
        &self.launch.program
    }

    /// The process number of the API server, unless it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Process::pid)
    }

    /// The name and process number of everything that runs under this bed, to measure it.
    pub fn pids(&self) -> Vec<(&'static str, u32)> {
        let server = self.server.iter().map(|process| (self.launch.name, process.pid()));
        server.chain(self.backing.iter().map(|(name, process)| (*name, process.pid()))).collect()
    }

    /// A `kubectl` command line as the administrator, to which arguments are added.
    pub fn kubectl(&self) -> Result<Command, BedError> {
        let mut command = Command::new(tools::tool("kubectl")?);
        // Its caches live in the home folder, by address: another bed may have had this port.
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        Ok(command)
    }

    /// A `berth` command line as the administrator, to which arguments are added.
    pub fn berth(&self) -> Result<Command, BedError> {
        let mut command = Command::new(tools::berth()?);
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        Ok(command)
    }

    /// Makes a namespace of its own for a scenario and gives its name, which begins with `prefix`. Where a controller gives each
    /// namespace the certificate of the authority, it has by then: scenarios look at all that is in their namespace.
    ///
    /// # Panics
    /// When the API server refuses it.
    pub async fn namespace(&self, prefix: &str) -> String {
        let metadata = ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::all(self.client()).create(&PostParams::default(), &namespace).await;
        let made = made.unwrap_or_else(|error| panic!("no namespace {prefix}-… on {}: {error}", self.kind));
        let name = made.metadata.name.expect("an object that was created has a name");
        if self.has_publisher {
            self.is_furnished(&name).await;
        }
        name
    }

    async fn is_furnished(&self, namespace: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client(), namespace);
        let given = async {
            while maps.get_opt(ROOT).await.ok().flatten().is_none() {
                sleep(POLL).await;
            }
        };
        let given = timeout(READY, given).await;
        given.unwrap_or_else(|_| panic!("nobody put {ROOT} into {namespace} on {}", self.kind));
    }

    /// Asks the API server to end, as an operator would, and waits until it has. No-op when it does not run.
    pub async fn stop(&mut self) -> Result<(), BedError> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        server.stop(END).await.inspect_err(|_| self.folder.keep())
    }

    /// Ends the API server as a crash would. What it stands on (etcd) goes on. No-op when it does not run.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Starts the API server again on the same data and the same port. No-op when it runs.
    pub async fn start(&mut self) -> Result<(), BedError> {
        if self.server.is_none() {
            let started = async {
                let mut server = self.launch.start(&self.folder).await?;
                await_ready(&mut server, &self.config).await?;
                Ok(server)
            };
            self.server = Some(started.await.inspect_err(|_: &BedError| self.folder.keep())?);
        }
        Ok(())
    }

    /// Ends what the API server keeps its data in, as a crash would; whether there is such a thing. The hub keeps its own.
    pub fn kill_store(&mut self) -> bool {
        self.store().map(Process::kill).is_some()
    }

    /// Starts that again, on the same data. The API server finds it by itself.
    pub fn start_store(&mut self) -> Result<(), BedError> {
        self.store().map_or(Ok(()), Process::begin_again)
    }

    fn store(&mut self) -> Option<&mut Process> {
        self.backing.iter_mut().find(|(name, _)| *name == ETCD).map(|(_, process)| process)
    }

    /// Freezes the API server: connections stay open and nothing is answered.
    pub fn pause(&self) -> Result<(), BedError> {
        self.server.as_ref().map_or(Ok(()), Process::pause)
    }

    /// Lets a paused API server go on.
    pub fn resume(&self) -> Result<(), BedError> {
        self.server.as_ref().map_or(Ok(()), Process::resume)
    }

    /// Whether data and logs are kept whatever follows.
    pub(crate) fn is_kept(&self) -> bool {
        self.folder.is_kept()
    }

    /// Keeps data and logs whatever the test's outcome.
    pub fn keep(&self) {
        self.folder.keep();
    }
}

impl Launch {
    /// Starts the server; when it announces itself, waits for that.
    async fn start(&self, folder: &Folder) -> Result<Process, BedError> {
        let mut server =
            Process::start(self.name, &self.program, &self.arguments, folder.path(), self.announces)?;
        if self.announces {
            let line = server.announcement(folder.path(), READY).await?;
            if !line.contains("https://") {
                let log = folder.path().join(format!("{}.log", self.name));
                return Err(BedError::Announcement { server: self.name, line, log });
            }
        }
        Ok(server)
    }
}

/// Waits until the server says that it is ready and has the namespace every client starts from.
async fn await_ready(server: &mut Process, config: &Config) -> Result<(), BedError> {
    let client = Client::try_from(config.clone()).map_err(|error| BedError::System {
        doing: "make a client".to_owned(),
        source: std::io::Error::other(error),
    })?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let look = || {
        let (client, namespaces) = (client.clone(), namespaces.clone());
        async move {
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a constant request");
            client.request_text(request).await.ok()?;
            namespaces.get("default").await.ok().map(drop)
        }
    };
    server.until(READY, || async { timeout(LOOK, look()).await.ok().flatten() }).await
}
