//! A change that concerns nobody, inside this process: from the line of a watch to the end of the loop's turn.
//!
//! Owns a server that is no more than a function: it shows a fleet, and tells of one change after the other. So what is
//! counted is reading, the world, the model and the loop, without sockets, TLS and the kernel, and it is the same on every
//! machine. Nobody leads, so nothing is decided or written.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, ensure};
use berth_api::kinds;
use berth_control::lead::{Fence, HOME};
use berth_control::serve::{Health, Metrics};
use berth_control::{ControllerName, Dialect, EvictionLimits, Inquirer, Options, inquiries};
use berth_engine::model::ObjectKey;
use berth_engine::node::LifecyclePolicy;
use berth_sim::fleet::{self, Detail};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::count::{self, allocated, counted_call};
use crate::figure::Figure;
use crate::report::Report;

/// Changes that are counted together.
const CHANGES: usize = 200;
/// How often everybody else gets a turn for one change: a line wakes the reader, what it tells the loop.
const TURNS: usize = 8;
/// Placements that might look at a change.
const PLACEMENTS: usize = 100;
/// Who owns which field is about as long as what it is about.
const MANAGERS: usize = 3;
/// Instructions for one change: half of the 50 µs that a change may take, on a core that does three in a nanosecond; the
/// other half is for sockets, TLS and the kernel.
const INSTRUCTIONS_MAX: f64 = 75_000.0;
/// Allocations for one change.
const ALLOCATIONS_MAX: f64 = 400.0;

const NAME: &str = "a change that concerns nobody, without sockets";

/// Adds the rows.
pub(super) fn tell(clusters: usize, report: &mut Report) -> anyhow::Result<()> {
    let instructions = if count::can_count_instructions() {
        let calls = count::instructions(&["control", "--counted", &clusters.to_string()], 1)?;
        calls
            .first()
            .map_or(Figure::Absent("not counted"), |all| Figure::Number(*all as f64 / CHANGES as f64))
    } else {
        Figure::Absent("valgrind not found")
    };
    report.add(NAME, "instructions", instructions);
    report.hold(NAME, "instructions", INSTRUCTIONS_MAX, false);
    let mut stage = Stage::new(clusters)?;
    stage.change_all()?;
    let lines = stage.lines();
    let (done, allocated) = allocated(|| stage.tell(&lines));
    done?;
    stage.check()?;
    report.add(NAME, "allocations", Figure::Number(allocated.times as f64 / CHANGES as f64));
    report.hold(NAME, "allocations", ALLOCATIONS_MAX, false);
    Ok(())
}

/// Makes all changes where an instruction counter sees them, after once where it does not.
pub(crate) fn counted(clusters: usize) -> anyhow::Result<()> {
    let mut stage = Stage::new(clusters)?;
    stage.change_all()?;
    let lines = stage.lines();
    let mut done = Ok(());
    counted_call(&mut || done = stage.tell(&lines));
    done?;
    stage.check()
}

/// The controllers, and a way to tell them of changes.
struct Stage {
    runtime: tokio::runtime::Runtime,
    tell: mpsc::UnboundedSender<Bytes>,
    inquirer: Inquirer,
    clusters: usize,
    revision: u64,
    stop: CancellationToken,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Stage {
    fn new(clusters: usize) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (tell, told) = mpsc::unbounded();
        let (inquirer, asked) = inquiries();
        let stop = CancellationToken::new();
        let options = Options {
            controllers: ControllerName::Placement.as_str().parse().map_err(anyhow::Error::msg)?,
            identity: "bench".to_owned(),
            home: HOME.to_owned(),
            evictions: EvictionLimits::default(),
            lifecycle: LifecyclePolicy::default(),
            dialect: Dialect::OURS,
            fence: Fence::closed(),
            health: Health::default(),
            metrics: Arc::new(Metrics::default()),
            inquiries: asked,
        };
        {
            let _within = runtime.enter();
            runtime.spawn(berth_control::run(server(clusters, told), options, stop.clone()));
        }
        let stage = Self { runtime, tell, inquirer, clusters, revision: 2, stop };
        stage.runtime.block_on(async {
            while stage.inquirer.ask(|_| ()).await.is_err() {
                tokio::task::yield_now().await;
            }
        });
        Ok(stage)
    }

    /// Lines about one cluster after the other, each with another label that no placement looks at.
    fn lines(&mut self) -> Vec<Bytes> {
        let change = |number| {
            self.revision += 1;
            let cluster = fleet::cluster(number % self.clusters, Detail::Whole);
            let cluster = fleet::relabelled(cluster, &self.revision.to_string());
            let object = shown("ManagedCluster", &cluster, self.revision);
            Bytes::from(format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"))
        };
        (0..CHANGES).map(change).collect()
    }

    /// Tells them one by one, as they come.
    fn tell(&mut self, lines: &[Bytes]) -> anyhow::Result<()> {
        self.runtime.block_on(async {
            for line in lines {
                self.tell.unbounded_send(line.clone()).context("the watch has ended")?;
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        })
    }

    fn change_all(&mut self) -> anyhow::Result<()> {
        let lines = self.lines();
        self.tell(&lines)?;
        self.check()
    }

    /// Whether the last of the changes was seen.
    fn check(&self) -> anyhow::Result<()> {
        let last = ObjectKey::new("", &fleet::name((CHANGES - 1) % self.clusters));
        let seen = self.runtime.block_on(self.inquirer.ask(move |sight| {
            sight.world.clusters.get(&last).and_then(|object| object.metadata.resource_version.clone())
        }))?;
        ensure!(seen == Some(self.revision.to_string()), "at {seen:?} and not at {}", self.revision);
        Ok(())
    }
}

/// An object as an API server shows it, with who owns which field.
fn shown(kind: &str, object: &impl serde::Serialize, revision: u64) -> Value {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    let fields = owned(&object);
    let owners: Vec<Value> = (0..MANAGERS)
        .map(|number| {
            json!({"apiVersion": "cluster.open-cluster-management.io/v1", "fieldsType": "FieldsV1",
                "fieldsV1": if number == 0 { fields.clone() } else { json!({"f:status": {}}) },
                "manager": format!("manager-{number}"), "operation": "Update", "time": "2026-01-01T00:00:00Z"})
        })
        .collect();
    let metadata = &mut object["metadata"];
    metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    metadata["generation"] = json!(1);
    metadata["managedFields"] = json!(owners);
    metadata["resourceVersion"] = json!(revision.to_string());
    metadata["uid"] = json!("0f1e2d3c-0000-4000-8000-000000000000");
    let group = kinds::kinds().iter().find(|info| info.kind == kind);
    object["apiVersion"] = json!(group.map(kinds::KindInfo::api_version));
    object["kind"] = json!(kind);
    object
}

/// The fields of a value, as their owner is told of them.
fn owned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, below)| (format!("f:{name}"), owned(below))).collect()
        }
        _ => json!({}),
    }
}

/// A server that shows the fleet, and tells of clusters what it is told.
fn server(clusters: usize, told: mpsc::UnboundedReceiver<Bytes>) -> Client {
    let told = Arc::new(Mutex::new(Some(told)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let watched = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let path = request.uri().path().to_owned();
        let told = Arc::clone(&told);
        async move {
            let body: UnsyncBoxBody<Bytes, Infallible> = if watched {
                let source = if path.ends_with("/managedclusters") {
                    told.lock().ok().and_then(|mut told| told.take())
                } else {
                    None
                };
                let lines = match source {
                    Some(lines) => lines.left_stream(),
                    None => futures::stream::pending().right_stream(),
                };
                UnsyncBoxBody::new(StreamBody::new(lines.map(|line| Ok(Frame::data(line)))))
            } else {
                let items = items(&path, clusters);
                let page = json!({"metadata": {"resourceVersion": "2"}, "items": items}).to_string();
                UnsyncBoxBody::new(StreamBody::new(futures::stream::iter([Ok(Frame::data(page.into()))])))
            };
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    Client::new(service, "default")
}

fn items(path: &str, clusters: usize) -> Vec<Value> {
    match path.rsplit('/').next() {
        Some("managedclusters") => (0..clusters)
            .map(|number| shown("ManagedCluster", &fleet::cluster(number, Detail::Whole), 1))
            .collect(),
        Some("managedclustersets") => vec![shown("ManagedClusterSet", &fleet::set(), 1)],
        Some("managedclustersetbindings") => {
            fleet::bindings().map(|binding| shown("ManagedClusterSetBinding", &binding, 1)).collect()
        }
        Some("placements") => {
            fleet::others().take(PLACEMENTS).map(|placement| shown("Placement", &placement, 1)).collect()
        }
        _ => Vec::new(),
    }
}
