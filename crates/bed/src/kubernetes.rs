//! A real Kubernetes API: etcd, kube-apiserver and, when asked for, kube-controller-manager.

use std::{
    future::{Future, IntoFuture},
    path::PathBuf,
    pin::Pin,
    time::Duration,
};

use rcgen::KeyPair;
use tokio::net::TcpStream;

use crate::{
    Bed, BedError, Identity, Kind, authority::Authority, bed::Launch, folder::Folder, port::Port,
    process::Process, tools,
};

/// What the API server keeps its data in.
pub(crate) const ETCD: &str = "etcd";

/// How long etcd may take to listen.
const LISTEN: Duration = Duration::from_mins(1);

/// How often a bed is begun anew because somebody took one of its ports in the meantime.
const ATTEMPTS: usize = 3;

/// What a server writes when its port is taken.
const TAKEN: &str = "address already in use";

/// Room for the largest loads of our benchmarks; etcd's own default is 2 GiB.
const ETCD_QUOTA_BYTES: u64 = 8 << 30;

/// Plugins that need what a bed without kubelets and controllers does not have; the crate's documentation says more.
const WITHOUT_PLUGINS: &str = "ServiceAccount,TaintNodesByCondition";

/// The controllers whose work the hub does by itself: garbage, namespaces, default service accounts, tokens in Secrets, the
/// authority's certificate in every namespace, the status of disruption budgets, the rules of aggregated roles. Without those that would start pods or judge nodes.
pub(crate) const BUILT_INTO_THE_HUB: &str = "--controllers=garbage-collector-controller,namespace-controller,\
    serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller,\
    disruption-controller,clusterrole-aggregation-controller";

/// The one of them that gives every namespace that certificate.
const PUBLISHER: &str = "root-ca-certificate-publisher-controller";

/// What kind of Kubernetes bed to start. Awaiting it starts it.
#[derive(Debug, Clone, Default)]
#[must_use = "a bed starts when it is awaited"]
pub struct Kubernetes {
    volatile: bool,
    api_server: Vec<String>,
    controller_manager: Option<Vec<String>>,
}

impl Kubernetes {
    /// Lets etcd answer before its data is on the disk: faster, and no measure of anything durable.
    pub fn without_fsync(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// More flags of kube-apiserver; a flag given here wins over the bed's own.
    pub fn api_server(mut self, flags: &[&str]) -> Self {
        self.api_server.extend(flags.iter().map(ToString::to_string));
        self
    }

    /// Runs kube-controller-manager too, with these flags; without any, all its default controllers.
    pub fn controller_manager(mut self, flags: &[&str]) -> Self {
        self.controller_manager.get_or_insert_default().extend(flags.iter().map(ToString::to_string));
        self
    }

    async fn start(self) -> Result<Bed, BedError> {
        let mut attempt = 1;
        loop {
            match self.attempt().await {
                Err(BedError::Ended { tail, .. }) if tail.contains(TAKEN) && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self) -> Result<Bed, BedError> {
        let (etcd, api_server) = (tools::tool(ETCD)?, tools::tool("kube-apiserver")?);
        let controller_manager = match &self.controller_manager {
            Some(flags) => Some((tools::tool("kube-controller-manager")?, flags)),
            None => None,
        };
        let reserve = || Port::reserve().map_err(BedError::system("reserve a port"));
        let ports = [reserve()?, reserve()?, reserve()?];
        let [clients, peers, serving] = ports.each_ref().map(Port::number);
        let folder = Folder::new()?;

        let url = format!("https://127.0.0.1:{serving}");
        let files = Files::write(&folder, &url)?;
        let mut backing = vec![(ETCD, self.start_etcd(etcd, clients, peers, &folder).await?)];
        let launch = Launch {
            name: "kube-apiserver",
            program: api_server,
            arguments: self.api_server_flags(&files, clients, serving),
            announces: false,
        };
        if let Some((program, flags)) = controller_manager {
            // It waits for the API server by itself.
            let flags = controller_manager_flags(&files).into_iter().chain(flags.iter().cloned());
            let name = "kube-controller-manager";
            backing.push((name, Process::start(name, &program, flags, folder.path(), false)?));
        }
        let publishes = self.publishes();
        Bed::raise(Kind::Kubernetes, launch, files.kubeconfig, backing, publishes, ports.into(), folder).await
    }

    /// Whether its controllers give every namespace the certificate of the authority, which they do unless others are named.
    fn publishes(&self) -> bool {
        let Some(flags) = &self.controller_manager else { return false };
        let mut lists = flags.iter().filter_map(|flag| flag.strip_prefix("--controllers="));
        lists.next_back().is_none_or(|list| {
            let mut names = list.split(',');
            names.any(|name| [PUBLISHER, "*"].contains(&name))
                && !list.split(',').any(|name| name.strip_prefix('-') == Some(PUBLISHER))
        })
    }

    async fn start_etcd(
        &self,
        program: PathBuf,
        clients: u16,
        peers: u16,
        folder: &Folder,
    ) -> Result<Process, BedError> {
        let (clients_url, peers_url) =
            (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        let mut arguments = vec![
            "--name=bed".to_owned(),
            "--data-dir=etcd".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={clients_url}"),
            format!("--advertise-client-urls={clients_url}"),
            format!("--listen-peer-urls={peers_url}"),
            format!("--initial-advertise-peer-urls={peers_url}"),
            format!("--initial-cluster=bed={peers_url}"),
            format!("--quota-backend-bytes={ETCD_QUOTA_BYTES}"),
        ];
        if self.volatile {
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        let mut etcd = Process::start(ETCD, &program, arguments, folder.path(), false)?;
        let listens = || async move { TcpStream::connect(("127.0.0.1", clients)).await.ok().map(drop) };
        etcd.until(LISTEN, listens).await.inspect_err(|_| folder.keep())?;
        Ok(etcd)
    }

    fn api_server_flags(&self, files: &Files, etcd: u16, serving: u16) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={serving}"),
            "--cert-dir=.".to_owned(),
            format!("--tls-cert-file={}", files.server_certificate.display()),
            format!("--tls-private-key-file={}", files.server_key.display()),
            format!("--client-ca-file={}", files.authority.display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", files.token_public_key.display()),
            format!("--service-account-signing-key-file={}", files.token_key.display()),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            // Nobody reaches this server through its service, and it should not keep trying to say where it is.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        // kube-apiserver refuses a plugin that is both on and off.
        let wanted = |plugin: &&str| {
            let on = |flag: &String| flag.starts_with("--enable-admission-plugins") && flag.contains(plugin);
            !self.api_server.iter().any(on)
        };
        let without: Vec<&str> = WITHOUT_PLUGINS.split(',').filter(wanted).collect();
        flags.push(format!("--disable-admission-plugins={}", without.join(",")));
        flags.extend(self.api_server.iter().cloned());
        flags
    }
}

fn controller_manager_flags(files: &Files) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", files.kubeconfig.display()),
        format!("--service-account-private-key-file={}", files.token_key.display()),
        format!("--root-ca-file={}", files.authority.display()),
        // One of it, serving nobody.
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}

impl IntoFuture for Kubernetes {
    type Output = Result<Bed, BedError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// The certificates, keys and configurations that the servers read.
struct Files {
    authority: PathBuf,
    server_certificate: PathBuf,
    server_key: PathBuf,
    token_key: PathBuf,
    token_public_key: PathBuf,
    kubeconfig: PathBuf,
}

impl Files {
    fn write(folder: &Folder, url: &str) -> Result<Self, BedError> {
        let authority = Authority::new()?;
        let server = authority.server()?;
        let admin = authority.client("berth-bed-admin", "system:masters")?;
        let token = KeyPair::generate()?;
        let identity =
            Identity { authority: authority.certificate(), certificate: admin.certificate, key: admin.key };
        Ok(Self {
            authority: folder.write("ca.crt", &identity.authority)?,
            server_certificate: folder.write("server.crt", &server.certificate)?,
            server_key: folder.write("server.key", &server.key)?,
            token_key: folder.write("tokens.key", &token.serialize_pem())?,
            token_public_key: folder.write("tokens.pub", &token.public_key_pem())?,
            kubeconfig: folder.write("kubeconfig", &identity.kubeconfig(url))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_waited_for_only_where_somebody_brings_it() {
        let publishes = |flags: &[&str]| Kubernetes::default().controller_manager(flags).publishes();
        assert!(!Kubernetes::default().publishes(), "nobody is there");
        assert!(publishes(&[]), "all that are on by default");
        assert!(publishes(&[BUILT_INTO_THE_HUB]));
        assert!(publishes(&["--controllers=*,-ttl-controller"]));
        assert!(!publishes(&["--controllers=*,-root-ca-certificate-publisher-controller"]));
        assert!(!publishes(&["--controllers=namespace-controller"]));
    }
}
