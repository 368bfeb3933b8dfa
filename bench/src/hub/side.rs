//! One of the two servers, and what is done to it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use berth_bed::{Bed, Kind as Server};
use bytes::Bytes;
use http::Method;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinSet;

use super::client::{Address, Connection};
use super::objects::{DEFINITION, Kind};
use crate::process::{berth, peak_megabytes, processor_seconds};

/// Connections over which requests in flight are spread.
const CONNECTIONS: usize = 4;

/// How long a definition may take to be served.
const SERVED: Duration = Duration::from_secs(30);

pub(super) struct Side {
    runtime: Handle,
    bed: Bed,
    address: Address,
    connections: Vec<Connection>,
}

impl Side {
    /// Makes a fresh server ready to be measured.
    pub(super) fn new(runtime: &Runtime, bed: Bed) -> anyhow::Result<Self> {
        let address = Address::of(&bed)?;
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                connections.push(address.connect().await?);
            }
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let definition = ("application/yaml", Bytes::from_static(DEFINITION.as_bytes()));
            connections[0].ask(Method::POST, definitions, Some(definition)).await?;
            let begun = Instant::now();
            while let Err(error) =
                connections[0].ask(Method::GET, Kind::ManagedCluster.collection(), None).await
            {
                ensure!(begun.elapsed() < SERVED, "ManagedClusters are not served: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(connections)
        })?;
        Ok(Self { runtime: runtime.handle().clone(), bed, address, connections })
    }

    /// Creates objects `PREFIX-0`, `PREFIX-1`, ...
    pub(super) fn create(
        &self,
        kind: Kind,
        prefix: &str,
        count: usize,
        in_flight: usize,
    ) -> anyhow::Result<()> {
        let bodies: Vec<Bytes> =
            (0..count).map(|number| kind.object(&format!("{prefix}-{number}")).to_string().into()).collect();
        self.spread(count, in_flight, move |number| {
            (Method::POST, kind.collection().to_owned(), Some(("application/json", bodies[number].clone())))
        })
    }

    /// Reads one object again and again.
    pub(super) fn get(&self, target: &str, count: usize, in_flight: usize) -> anyhow::Result<()> {
        let target = target.to_owned();
        self.spread(count, in_flight, move |_| (Method::GET, target.clone(), None))
    }

    /// Sends `count` requests, `in_flight` of them at a time.
    fn spread(
        &self,
        count: usize,
        in_flight: usize,
        request: impl Fn(usize) -> (Method, String, Option<(&'static str, Bytes)>) + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        let (next, request) = (Arc::new(AtomicUsize::new(0)), Arc::new(request));
        self.runtime.block_on(async {
            let mut workers = JoinSet::new();
            for worker in 0..in_flight {
                let mut connection = self.connections[worker % CONNECTIONS].clone();
                let (next, request) = (Arc::clone(&next), Arc::clone(&request));
                workers.spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return anyhow::Ok(());
                        }
                        let (method, target, body) = request(number);
                        connection.ask(method, &target, body).await?;
                    }
                });
            }
            while let Some(worker) = workers.join_next().await {
                worker??;
            }
            Ok(())
        })
    }

    /// How long a whole list takes to arrive, in milliseconds.
    pub(super) fn list(&self, kind: Kind, count: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let body =
            self.runtime.block_on(self.connections[0].clone().ask(Method::GET, kind.collection(), None))?;
        let millis = begun.elapsed().as_secs_f64() * 1e3;
        let list: serde_json::Value = serde_json::from_slice(&body)?;
        let found = list["items"].as_array().map_or(0, Vec::len);
        ensure!(found == count, "the list has {found} objects, not {count}");
        Ok(millis)
    }

    /// How many events watchers get per second, all of them together.
    pub(super) fn fan_out(&self, watchers: usize, updates: usize, round: usize) -> anyhow::Result<f64> {
        let name = "f1-r0-0";
        let took = self.runtime.block_on(super::fan::out(&self.address, name, watchers, updates, round))?;
        Ok((watchers * updates) as f64 / took.as_secs_f64())
    }

    pub(super) fn kind(&self) -> Server {
        self.bed.kind()
    }

    /// What the server's processes have had of the processors, together.
    pub(super) fn processor_seconds(&self) -> anyhow::Result<f64> {
        self.bed.pids().into_iter().map(|(_, pid)| processor_seconds(&pid.to_string())).sum()
    }

    /// The most memory that the server's processes have had, together.
    pub(super) fn peak_megabytes(&self) -> anyhow::Result<f64> {
        let peaks = self.bed.pids().into_iter().map(|(name, pid)| {
            peak_megabytes(&pid.to_string()).with_context(|| format!("{name} is not there any more"))
        });
        peaks.sum()
    }

    /// How long the API server takes until it answers again, in milliseconds.
    pub(super) fn restart_millis(&mut self) -> anyhow::Result<f64> {
        let runtime = self.runtime.clone();
        runtime.block_on(self.bed.stop())?;
        let begun = Instant::now();
        runtime.block_on(self.bed.start())?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    /// The same of the hub, from the start of the process to the first answer over TLS, and the best of some starts.
    /// The bed looks every few milliseconds only, which for the hub is much.
    pub(super) fn restart_hub(&mut self, rounds: usize) -> anyhow::Result<f64> {
        ensure!(self.bed.kind() == Server::Hub, "only the hub announces itself");
        self.runtime.block_on(self.bed.stop())?;
        let (program, folder) = (berth()?, self.bed.folder().to_owned());
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            best = best.min(self.start_once(&program, &folder)?);
        }
        Ok(best)
    }

    fn start_once(&self, program: &Path, folder: &Path) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let child = Command::new(program)
            .args(["hub", "--listen=127.0.0.1:0", "--data"])
            .arg(folder.join("data"))
            .arg("--kubeconfig")
            .arg(folder.join("kubeconfig.again"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut child = Ended(child);
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().context("it was asked for")?).read_line(&mut line)?;
        let socket = line.split("https://").nth(1).and_then(|rest| rest.split(',').next()).map(str::parse);
        let socket = socket.with_context(|| format!("no address in {line:?}"))??;
        let address = self.address.at(socket);
        self.runtime.block_on(async {
            let mut connection = address.connect().await?;
            connection.ask(Method::GET, "/readyz", None).await?;
            connection.ask(Method::GET, &Kind::ManagedCluster.path("f1-r0-0"), None).await
        })?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }
}

/// A process that does not outlive its measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
