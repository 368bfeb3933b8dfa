//! A change that concerns nobody, inside this process: from the line of a watch to the end of the loop's turn.
//!
//! Nobody leads, so nothing is decided or written.

use std::time::Instant;

use anyhow::ensure;
use berth_api::kinds;
use berth_control::ControllerName;
use berth_control::lead::Fence;
use berth_engine::model::ObjectKey;
use berth_sim::fleet::{self, Detail};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::count::{self, allocated, counted_call};
use crate::figure::Figure;
use crate::inside::{Inside, last_page, modified};
use crate::report::Report;

/// Changes that are counted together.
const CHANGES: usize = 200;
/// Placements that might look at a change.
const PLACEMENTS: usize = 100;
/// Who owns which field is about as long as what it is about.
const MANAGERS: usize = 3;
/// Microseconds for one change.
const MICROS_MAX: f64 = 50.0;
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
    let begun = Instant::now();
    let (done, allocated) = allocated(|| stage.tell(&lines));
    let took = begun.elapsed();
    done?;
    stage.check()?;
    report.add(NAME, "µs", Figure::Number(took.as_secs_f64() * 1e6 / CHANGES as f64));
    report.hold(NAME, "µs", MICROS_MAX, false);
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
    inside: Inside,
    clusters: usize,
    revision: u64,
}

impl Stage {
    fn new(clusters: usize) -> anyhow::Result<Self> {
        let page = move |path: &str, _: &str| last_page(&items(path, clusters));
        let inside =
            Inside::new(ControllerName::Placement.as_str(), Fence::closed(), "managedclusters", page)?;
        Ok(Self { inside, clusters, revision: 2 })
    }

    /// Lines about one cluster after the other, each with another label that no placement looks at.
    fn lines(&mut self) -> Vec<Bytes> {
        let change = |number| {
            self.revision += 1;
            let cluster = fleet::cluster(number % self.clusters, Detail::Whole);
            let cluster = fleet::relabelled(cluster, &self.revision.to_string());
            modified(&shown("ManagedCluster", &cluster, self.revision))
        };
        (0..CHANGES).map(change).collect()
    }

    fn tell(&self, lines: &[Bytes]) -> anyhow::Result<()> {
        self.inside.tell(lines)
    }

    fn change_all(&mut self) -> anyhow::Result<()> {
        let lines = self.lines();
        self.tell(&lines)?;
        self.check()
    }

    /// Whether the last of the changes was seen.
    fn check(&self) -> anyhow::Result<()> {
        let last = ObjectKey::new("", &fleet::name((CHANGES - 1) % self.clusters));
        let seen = self.inside.runtime.block_on(self.inside.inquirer.ask(move |sight| {
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

/// What the server shows: the fleet.
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
