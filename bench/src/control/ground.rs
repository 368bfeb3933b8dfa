//! An API server with a fleet on it, and the controllers beside it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use berth_api::{ManagedCluster, Placement, PlacementDecision, crds};
use berth_bed::{Bed, Companion};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fleet::{self, Detail};
use crate::process;

/// Writes under way at once, ours and those of the bare client: as many as the controllers have.
const IN_FLIGHT: usize = 64;
/// How long our kinds may take to be served.
const SERVED: Duration = Duration::from_secs(30);
/// The namespace of the bare client's writes.
const BARE: &str = "bare";

/// The server, the client that loads it, and the controllers.
pub(crate) struct Ground {
    pub(crate) bed: Bed,
    pub(crate) client: Client,
    pub(crate) controllers: Option<Companion>,
}

impl Ground {
    /// A server with our definitions, the namespaces, the set, its bindings and so many clusters.
    pub(crate) async fn new(bed: Bed, clusters: usize) -> anyhow::Result<Self> {
        let client = bed.client();
        let ground = Self { bed, client: client.clone(), controllers: None };
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in crds() {
            definitions.create(&PostParams::default(), &definition).await?;
        }
        let begun = Instant::now();
        let probe: Api<Placement> = Api::all(client.clone());
        while let Err(error) = probe.list_metadata(&kube::api::ListParams::default()).await {
            ensure!(begun.elapsed() < SERVED, "Placements are not served: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let bindings: Vec<_> = fleet::bindings().collect();
        let named = bindings.iter().filter_map(|binding| binding.metadata.namespace.clone());
        for name in named.chain([BARE.to_owned()]) {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            namespaces
                .create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() })
                .await?;
        }
        Api::all(client.clone()).create(&PostParams::default(), &fleet::set()).await?;
        for binding in bindings {
            let namespace = binding.namespace().unwrap_or_default();
            Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &binding).await?;
        }
        let api: Api<ManagedCluster> = Api::all(client);
        each(0..clusters, async |number| {
            let mut cluster = fleet::cluster(number, Detail::Whole);
            cluster.metadata = ObjectMeta {
                name: cluster.metadata.name,
                labels: cluster.metadata.labels,
                ..ObjectMeta::default()
            };
            let made = api.create(&PostParams::default(), &cluster).await?;
            let status = json!({"status": cluster.status});
            api.patch_status(&made.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
            Ok(())
        })
        .await?;
        Ok(ground)
    }

    /// Makes placements.
    pub(crate) async fn place(&self, placements: impl Iterator<Item = Placement>) -> anyhow::Result<()> {
        each(placements, async |placement: Placement| {
            let api: Api<Placement> =
                Api::namespaced(self.client.clone(), &placement.namespace().unwrap_or_default());
            api.create(&PostParams::default(), &placement).await?;
            Ok(())
        })
        .await
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

    /// Changes a cluster; how long the server took to answer comes back.
    pub(crate) async fn change(&self, cluster: &str, patch: Value) -> anyhow::Result<Duration> {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        let begun = Instant::now();
        api.patch(cluster, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(begun.elapsed())
    }
}

/// Does something for each, some at a time.
async fn each<T>(
    items: impl IntoIterator<Item = T>,
    work: impl AsyncFn(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    futures::stream::iter(items.into_iter().map(|item| work(item)))
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(async |()| Ok(()))
        .await
}
