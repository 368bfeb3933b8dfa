//! An API server with a fleet on it, and the controllers beside it.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use berth_api::{ManagedCluster, Placement, PlacementDecision, crds};
use berth_bed::{Bed, Companion};
use berth_sim::{Load, View, each};
use futures::StreamExt as _;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::fleet::{self, Detail};
use crate::process;
use crate::report::progress;

/// The label that the bare client reacts to.
const BARE_BEAT: &str = "bench.berth.dev/bare";
/// The namespace of the bare client's writes.
const BARE: &str = "bare";

/// The server, the client that loads it, and the controllers.
pub(crate) struct Ground {
    pub(crate) bed: Bed,
    pub(crate) client: Client,
    load: Load,
    pub(crate) controllers: Option<Companion>,
}

impl Ground {
    /// A server with our definitions, the namespaces, the set, its bindings and so many clusters.
    pub(crate) async fn new(bed: Bed, clusters: usize) -> anyhow::Result<Self> {
        let client = bed.client();
        let load = Load::new(client.clone());
        load.define(crds()).await?;
        let bindings: Vec<_> = fleet::bindings().collect();
        let named = bindings.iter().filter_map(|binding| binding.metadata.namespace.clone());
        load.namespaces(named.chain([BARE.to_owned()])).await?;
        load.bind(&fleet::set(), bindings.into_iter()).await?;
        let ground = Self { bed, client, load, controllers: None };
        ground.add_clusters(0..clusters).await?;
        Ok(ground)
    }

    /// Makes the clusters of these numbers.
    pub(crate) async fn add_clusters(&self, numbers: Range<usize>) -> anyhow::Result<()> {
        let clusters = numbers.map(|number| fleet::cluster(number, Detail::Whole));
        self.load.clusters(clusters, |made| progress(&format!("  {made} made"))).await
    }

    /// Makes placements.
    pub(crate) async fn place(&self, placements: impl Iterator<Item = Placement>) -> anyhow::Result<()> {
        self.load.placements(placements).await
    }

    /// Starts the placement controller, or starts it again; how long it took until it worked comes back.
    pub(crate) async fn start(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        if let Some(companion) = &mut self.controllers {
            companion.start().await?;
            return Ok(begun.elapsed());
        }
        let flags = [
            "--leader-elect=false",
            "--controllers=placement-controller",
            "--metrics-bind=127.0.0.1:0",
            "--log=warn",
        ];
        let program = process::berth()?;
        let begun = Instant::now();
        self.controllers = Some(Companion::program(&self.bed, "controllers", program, "run", &flags).await?);
        Ok(begun.elapsed())
    }

    fn running(&self) -> anyhow::Result<&Companion> {
        self.controllers.as_ref().context("the controllers have not been started")
    }

    /// What the controllers have had of the processors, in seconds.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        process::processor_seconds(&self.pid()?)
    }

    /// The most memory the controllers have had.
    pub(crate) fn peak_megabytes(&self) -> anyhow::Result<f64> {
        process::peak_megabytes(&self.pid()?)
    }

    fn pid(&self) -> anyhow::Result<String> {
        Ok(self.running()?.pid().context("the controllers do not run")?.to_string())
    }

    /// Requests to the server that changed something, or were meant to, and events, since the controllers started.
    pub(crate) async fn requests(&self) -> anyhow::Result<(f64, f64)> {
        let line = self.running()?.announcement();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let mut socket =
            TcpStream::connect(address.with_context(|| format!("no metrics in {line:?}"))?).await?;
        socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        socket.read_to_string(&mut text).await?;
        let sum = |name: &str| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines
                .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
                .fold(0.0, |all, one| all + one)
        };
        Ok((sum("berth_writes_total"), sum("berth_events_total")))
    }

    /// A bare client writes what the controllers write for so many placements: a slice made, its clusters, a status.
    pub(crate) async fn bare_writes(&self, placements: usize, round: usize) -> anyhow::Result<Duration> {
        let api: Api<PlacementDecision> = Api::namespaced(self.client.clone(), BARE);
        let begun = Instant::now();
        each(0..placements, async |number| {
            let metadata = ObjectMeta {
                name: Some(format!("r{round}-{number}")),
                namespace: Some(BARE.to_owned()),
                ..ObjectMeta::default()
            };
            let slice = fleet::decision(&metadata, (0..10).map(fleet::name));
            let made = api.create(&PostParams::default(), &slice).await?;
            let name = made.name_any();
            let full = serde_json::to_value(&slice.status)?;
            let mut fewer = full.clone();
            fewer["decisions"].as_array_mut().context("it is a list")?.pop();
            for status in [full, fewer] {
                let patch = Patch::Merge(json!({"status": status}));
                api.patch_status(&name, &PatchParams::default(), &patch).await?;
            }
            Ok(())
        })
        .await?;
        Ok(begun.elapsed())
    }

    /// What a reaction takes a bare client that reads every cluster and answers a change of one with one write: from the
    /// answer to the change until `view` shows the write.
    pub(crate) async fn bare_reactions(&self, view: &View, count: usize) -> anyhow::Result<Vec<Duration>> {
        let decisions: Api<PlacementDecision> = Api::namespaced(self.client.clone(), BARE);
        let metadata = ObjectMeta {
            name: Some("reaction".to_owned()),
            namespace: Some(BARE.to_owned()),
            ..ObjectMeta::default()
        };
        let slice = fleet::decision(&metadata, std::iter::empty());
        let slice = decisions.create(&PostParams::default(), &slice).await?.name_any();
        let (api, own, name) =
            (Api::<ManagedCluster>::all(self.client.clone()), decisions.clone(), slice.clone());
        let _reacting = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                // The first may have been before the watch began.
                let Ok(Event::Apply(cluster) | Event::InitApply(cluster)) = event else { continue };
                let Some(beat) = cluster.labels().get(BARE_BEAT) else { continue };
                let patch = json!({"status": {"decisions": [{"clusterName": beat, "reason": ""}]}});
                // One that fails is missed by whoever waits for it.
                let _ = own.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            }
        }));
        let mut took = Vec::new();
        for number in 0..count {
            let beat = format!("reaction-{number}");
            let patch = json!({"metadata": {"labels": {BARE_BEAT: beat}}});
            // The first is seen when the watch has begun, which nobody measures.
            self.change(&fleet::name(0), patch).await?;
            let begun = Instant::now();
            view.until("a bare reaction", |state| state.names(&beat)).await?;
            took.push(begun.elapsed());
        }
        self.change(&fleet::name(0), json!({"metadata": {"labels": {BARE_BEAT: Value::Null}}})).await?;
        decisions.delete(&slice, &DeleteParams::default()).await?;
        view.until("the bare slice is gone", |state| !state.names(&format!("reaction-{}", count - 1)))
            .await?;
        Ok(took)
    }

    /// Changes a cluster; how long the server took to answer comes back.
    pub(crate) async fn change(&self, cluster: &str, patch: Value) -> anyhow::Result<Duration> {
        self.load.change(cluster, patch).await
    }
}
