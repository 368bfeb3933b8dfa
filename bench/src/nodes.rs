//! The taint-eviction-controller over a large cluster, without a server: what a change of taints costs, and what a pod keeps.

use std::time::{Duration, Instant};

use anyhow::bail;
use berth_control::ControllerName;
use berth_control::lead::Fence;
use berth_sim::nodes::node_name;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::count::{self, allocated, counted_call};
use crate::figure::{Figure, grouped, median};
use crate::inside::{Inside, last_page, modified};
use crate::report::{Report, progress};

const HEAD: &str = "\
nodes: the taint-eviction-controller in this process, fed with the lists and watches of a server that is a function; no
sockets, no TLS, nothing written. A change of taints is a node that gets a taint which its 30 pods tolerate for an hour, or
loses it: all of them are judged, and armed or let be. From the line of the watch to the end of the loop's turn; the events
about those that are let be are handed in, and told behind it.
value: median where it is a time; allocations include growing; instructions as callgrind counts them, in a smaller cluster,
because a change costs what is on the node and not what is in the cluster. Memory is all that the process keeps.";

/// How much of a processor one change of taints may take, in microseconds, and in instructions on a core that does three in a
/// nanosecond.
const CHANGE_MICROS_MAX: f64 = 100.0;
const CHANGE_INSTRUCTIONS_MAX: f64 = 300_000.0;
/// What a pod may keep, with its share of everything else, in bytes.
const POD_BYTES_MAX: f64 = 1_000.0;

const FULL_NODES: usize = 5_000;
const QUICK_NODES: usize = 500;
/// The cluster in which instructions are counted, each of which costs fifty there.
const COUNTED_NODES: usize = 500;
const PODS_PER_NODE: usize = 30;

/// Changes that are measured together: half of them taint, the other half takes it back.
const CHANGES: usize = 200;
/// How often they are.
const ROUNDS: usize = 25;
/// How long the controller may take to tell how many wait: it does once a second.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

const TAINT: &str = "bench.berth.dev/away";

/// Runs the bench.
pub(crate) fn run(quick: bool) -> anyhow::Result<Report> {
    let nodes = if quick { QUICK_NODES } else { FULL_NODES };
    let pods = nodes * PODS_PER_NODE;
    let mut report = Report { head: HEAD.to_owned(), ..Report::default() };
    let size = format!("{} nodes, {} pods", grouped(nodes as i64), grouped(pods as i64));
    progress(&size);
    let begun = Instant::now();
    let (stage, memory) = allocated(|| Stage::new(nodes));
    let mut stage = stage?;
    let read = begun.elapsed();
    let name = format!("a pod among {size}");
    report.add(&name, "bytes", Figure::Number(memory.kept as f64 / pods as f64));
    report.hold(&name, "bytes", POD_BYTES_MAX, true);
    report.add(&name, "µs to read, from a list", Figure::Number(read.as_secs_f64() * 1e6 / pods as f64));

    stage.prove()?;
    let name = format!("one change of taints, {size}");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let lines = stage.lines();
        let begun = Instant::now();
        stage.inside.tell(&lines)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6 / CHANGES as f64);
    }
    report.add(&name, "µs", Figure::Number(median(times)));
    report.hold(&name, "µs", CHANGE_MICROS_MAX, false);
    let lines = stage.lines();
    let (done, taken) = allocated(|| stage.inside.tell(&lines));
    done?;
    report.add(&name, "allocations", Figure::Number(taken.times as f64 / CHANGES as f64));
    drop(stage);

    let name = format!("one change of taints, {} nodes", grouped(COUNTED_NODES as i64));
    let instructions = if count::can_count_instructions() {
        progress("instructions");
        let calls = count::instructions(&["nodes", "--counted", &COUNTED_NODES.to_string()], 1)?;
        let all = calls.first().copied();
        all.map_or(Figure::Absent("not counted"), |all| Figure::Number(all as f64 / CHANGES as f64))
    } else {
        Figure::Absent("valgrind not found")
    };
    report.add(&name, "instructions", instructions);
    report.hold(&name, "instructions", CHANGE_INSTRUCTIONS_MAX, false);
    Ok(report)
}

/// Makes all changes where an instruction counter sees them, after once where it does not.
pub(crate) fn counted(nodes: usize) -> anyhow::Result<()> {
    let mut stage = Stage::new(nodes)?;
    let lines = stage.lines();
    stage.inside.tell(&lines)?;
    let lines = stage.lines();
    let mut done = Ok(());
    counted_call(&mut || done = stage.inside.tell(&lines));
    done
}

/// The controller, and a cluster that changes.
struct Stage {
    inside: Inside,
    nodes: usize,
    revision: u64,
    /// When taints are added: now, so that nobody has to go within the hour.
    added: String,
}

impl Stage {
    fn new(nodes: usize) -> anyhow::Result<Self> {
        let page = move |path: &str, query: &str| page(path, query, nodes);
        // It leads: what it would do it would do here.
        let inside = Inside::new(ControllerName::TaintEviction.as_str(), Fence::open(), "nodes", page)?;
        let added = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
        Ok(Self { inside, nodes, revision: 2, added })
    }

    /// Half of the changes taint a node each, the other half takes it back.
    fn lines(&mut self) -> Vec<Bytes> {
        let (taint, untaint) = (self.some(true), self.some(false));
        taint.into_iter().chain(untaint).collect()
    }

    fn some(&mut self, is_tainted: bool) -> Vec<Bytes> {
        let taints = if is_tainted {
            json!([{"key": TAINT, "effect": "NoExecute", "timeAdded": self.added}])
        } else {
            json!([])
        };
        let changed = (0..CHANGES / 2).map(|number| {
            self.revision += 1;
            modified(&node(number % self.nodes, self.revision, &taints))
        });
        changed.collect()
    }

    /// Shows that the changes do what they are measured for: all pods of the tainted nodes wait, and then none does.
    fn prove(&mut self) -> anyhow::Result<()> {
        for (is_tainted, waiting) in [(true, CHANGES / 2 * PODS_PER_NODE), (false, 0)] {
            let lines = self.some(is_tainted);
            self.inside.tell(&lines)?;
            let wanted = format!("berth_evictions_waiting {waiting}");
            let begun = Instant::now();
            while !self.inside.metrics.text().lines().any(|line| line == wanted) {
                if begun.elapsed() > TOLD_WITHIN {
                    bail!("never seen: {wanted}; the changes are not handled");
                }
                self.inside.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
            }
        }
        Ok(())
    }
}

/// What the server shows of a resource, from where a page of it begins.
fn page(path: &str, query: &str, nodes: usize) -> String {
    let asked = |name: &str| {
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        value.parse::<usize>().ok()
    };
    match path.rsplit('/').next() {
        Some("nodes") => last_page(&(0..nodes).map(|number| node(number, 1, &json!([]))).collect::<Vec<_>>()),
        Some("pods") => {
            let all = nodes * PODS_PER_NODE;
            let first = asked("continue").unwrap_or_default();
            let last = asked("limit").map_or(all, |limit| (first + limit).min(all));
            let items: Vec<Value> = (first..last).map(pod).collect();
            let next = if last < all { last.to_string() } else { String::new() };
            json!({"metadata": {"resourceVersion": "2", "continue": next}, "items": items}).to_string()
        }
        _ => last_page(&[]),
    }
}

/// Node `number`, as it is shown: with what a kubelet says of it.
fn node(number: usize, revision: u64, taints: &Value) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "KubeletSays", "message": "kubelet says so",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let name = node_name(number);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("0f1e2d3c-0000-4000-8000-{number:012}"), "resourceVersion": revision.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": format!("z{}", number % 3),
            },
        },
        "spec": {"podCIDR": "10.0.0.0/24", "taints": taints},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("Ready", "True")],
        },
    })
}

/// Pod `number` of the cluster, as it is shown: one of a Deployment, on its node.
fn pod(number: usize) -> Value {
    let workload = number % 1_000;
    let toleration = |key: &str, seconds: i64| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({
        "metadata": {
            "name": format!("workload-{workload:04}-6d4cf56db6-{number:06}"), "namespace": format!("team-{:02}", workload % 50),
            "uid": format!("0f1e2d3c-0001-4000-8000-{number:012}"), "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z", "generateName": format!("workload-{workload:04}-6d4cf56db6-"),
            "labels": {"app": format!("workload-{workload:04}"), "pod-template-hash": "6d4cf56db6", "tier": "backend"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("workload-{workload:04}-6d4cf56db6"),
                "uid": format!("0f1e2d3c-0002-4000-8000-{workload:012}"), "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": node_name(number / PODS_PER_NODE), "terminationGracePeriodSeconds": 30, "priority": 0,
            "serviceAccountName": "default", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "containers": [{
                "name": "main", "image": "registry.example.com/workload:1.2.3", "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "PORT", "value": "8080"}, {"name": "LOG", "value": "info"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            }],
            "tolerations": [
                toleration("node.kubernetes.io/not-ready", 300), toleration("node.kubernetes.io/unreachable", 300),
                toleration(TAINT, 3_600),
            ],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.7", "hostIP": "192.0.2.7", "qosClass": "Burstable",
            "conditions": [condition("PodScheduled"), condition("Ready"), condition("ContainersReady")],
        },
    })
}
