//! Where contenders meet: one API server with a fleet on it, which each finds in the same state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use berth_api::ManagedClusterSet;
use berth_api::names::{DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET};
use berth_bed::Bed;
use berth_sim::{Load, Sample, View};
use kube::api::{Api, DeleteParams};
use kube::{Client, Error};
use serde_json::json;

use super::contender::{Contender, Running};
use super::evict::NAMESPACE;
use super::requests::Own;
use super::window::{Spent, Window};
use crate::report::progress;

/// How long a contender may take to decide every placement.
const PATIENCE: Duration = Duration::from_mins(20);

/// The server, the fleet, and who watches.
pub(crate) struct Arena {
    pub(crate) bed: Bed,
    pub(crate) client: Client,
    pub(crate) load: Load,
    pub(crate) view: View,
    pub(crate) sample: Sample,
    pub(crate) clusters: usize,
    programs: BTreeMap<Contender, PathBuf>,
    beats: AtomicUsize,
}

impl Arena {
    /// A server with a folder's definitions and so many clusters; none where nobody is about clusters.
    pub(crate) async fn new(
        bed: Bed,
        definitions: &Path,
        sample: Sample,
        clusters: usize,
        programs: BTreeMap<Contender, PathBuf>,
    ) -> anyhow::Result<Self> {
        let mut apply = bed.kubectl()?;
        apply.args(["apply", "--server-side", "--filename"]).arg(definitions);
        let applied = apply.output().context("cannot run kubectl")?;
        let said = String::from_utf8_lossy(&applied.stderr);
        ensure!(applied.status.success(), "{} cannot be applied: {}", definitions.display(), said.trim());
        let client = bed.client();
        let load = Load::new(client.clone());
        load.served().await?;
        load.namespaces([sample.namespace(), NAMESPACE].map(str::to_owned).into_iter()).await?;
        load.bind(&sample.set(), [sample.binding()].into_iter()).await?;
        if clusters > 0 {
            progress(&format!("{clusters} clusters"));
        }
        let told = |made| progress(&format!("  {made} made"));
        load.clusters((0..clusters).map(|number| sample.cluster(number)), told).await?;
        let view = View::new(client.clone()).patient(PATIENCE);
        Ok(Self { bed, client, load, view, sample, clusters, programs, beats: AtomicUsize::new(0) })
    }

    /// Takes away what a contender and its placements left.
    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        self.view.want(std::collections::HashMap::new());
        self.load.clear(self.sample.namespace()).await?;
        let sets: Api<ManagedClusterSet> = Api::all(self.client.clone());
        for name in [DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET] {
            match sets.delete(name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.view.until("no decision is left", |state| state.filled() == 0).await
    }

    /// Makes the first placements of the sample.
    pub(crate) async fn place(&self, count: usize) -> anyhow::Result<()> {
        self.view.want(self.sample.wanted(self.clusters, count));
        self.load.placements((0..count).map(|number| self.sample.placement(number))).await
    }

    /// Starts a contender.
    pub(crate) fn start(&self, contender: Contender) -> anyhow::Result<Running> {
        self.start_with(contender, &[])
    }

    /// Starts a contender with more flags, which a stage has for everybody.
    pub(crate) fn start_with(&self, contender: Contender, flags: &[String]) -> anyhow::Result<Running> {
        let program = self.programs.get(&contender).context("a program was found for every contender")?;
        contender.start(&self.bed, program, flags)
    }

    /// Waits until every placement has its clusters.
    pub(crate) async fn decided(&self, contender: &mut Running) -> anyhow::Result<()> {
        contender.until(self.view.until("every placement is decided", |state| state.lacking() == 0)).await
    }

    /// Changes a label of a cluster that no placement looks at.
    pub(crate) async fn beat(&self) -> anyhow::Result<Duration> {
        let number = self.beats.fetch_add(1, Ordering::Relaxed);
        let label = json!({"metadata": {"labels": {"bench.berth.dev/beat": number.to_string()}}});
        self.load.change(&self.sample.name(number % self.clusters), label).await
    }

    /// Opens an account of what the machine is used for.
    pub(crate) async fn open(&self, contender: Option<&Running>) -> anyhow::Result<Window> {
        Window::open(&self.bed, &self.client, contender).await
    }

    /// Closes it; what the load generator wrote in between does not count.
    pub(crate) async fn close(
        &self,
        window: Window,
        contender: Option<&Running>,
        own: Own,
    ) -> anyhow::Result<Spent> {
        window.close(&self.bed, &self.client, contender, own).await
    }
}
