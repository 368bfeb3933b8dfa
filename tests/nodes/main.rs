//! Nodes and pods, from outside: taints that drive pods away, and nodes that are tainted for how they do.
//!
//! ```text
//!  scenario ── nodes, pods ──▶ Scene ──▶ API server ◀──▶ kube-controller-manager, or berth run
//!      └── leaves_at(…), stay(…) ◀── Record (a watch)
//! ```
//!
//! Each scenario is told once and held against three: Kubernetes' own controllers, which prove the scenario, and Berth's, on a
//! kube-apiserver and on the hub. Where ours differ on purpose the scenario says so, and asserts what each does. It works in a
//! namespace and on nodes of its own; there is no kubelet but the one that a scenario plays. Three ways to run:
//! - `eviction`: beside others, on one bed with one process of controllers that evict.
//! - `lifecycle`: beside others, on a bed where nodes are judged as well. Zones are the scenarios' own, too.
//! - `turn`: alone on a bed, with controllers of its own that it may kill, pause and start again.
//!
//! Scenarios that also stand in Kubernetes' suites say under which name; `docs/conformance-nodes.md` has them all.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod gate;
mod ground;
#[allow(dead_code, reason = "shared with the scenarios, which need more of it")]
#[path = "../scenarios/hook.rs"]
mod hook;
mod kubelet;
#[allow(dead_code, reason = "shared with the fleet, which needs more of it")]
#[path = "../fleet/metrics.rs"]
mod metrics;
mod pod;
mod record;
mod scene;
mod taint;

mod armed;
mod bounds;
mod countdown;
mod faults;
mod health;
mod leaders;
mod outages;
mod pods;
mod taints;
mod zones;
