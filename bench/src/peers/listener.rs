//! A floor for reading: a process that follows the clusters and does nothing with what it hears.
//!
//! What it takes of a processor is what sockets, TLS and waking up take of whoever follows them.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use berth_bed::{Bed, Companion};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::PROGRAM;
use crate::process;

/// The flag that makes this program listen.
pub(crate) const FLAG: &str = "--listen-with";
/// How long it has to begin.
const BEGIN: Duration = Duration::from_secs(3);
const WATCH: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters?watch=true";

/// Listens until it is ended.
pub(crate) fn listen(kubeconfig: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let answer = Client::try_from(config)?.send(Request::get(WATCH).body(Body::empty())?).await?;
        let mut body = answer.into_body();
        while let Some(piece) = body.frame().await {
            std::hint::black_box(piece?);
        }
        anyhow::bail!("the watch has ended")
    })
}

/// The process.
pub(crate) struct Listener(Companion);

impl Listener {
    /// Starts it, and waits until it has read all there is.
    pub(crate) async fn start(bed: &Bed) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program is not to be found")?;
        let kubeconfig = bed.kubeconfig().display().to_string();
        let arguments = vec![PROGRAM.to_owned(), FLAG.to_owned(), kubeconfig];
        let mut companion = Companion::launch(bed, "listener", program, arguments)?;
        tokio::time::sleep(BEGIN).await;
        anyhow::ensure!(companion.ended().is_none(), "the listener has ended:\n{}", companion.log());
        Ok(Self(companion))
    }

    /// What it has had of the processors.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        process::processor_seconds(&self.0.pid().context("the listener does not run")?.to_string())
    }

    /// Ends it.
    pub(crate) fn end(mut self) {
        self.0.kill();
    }
}
