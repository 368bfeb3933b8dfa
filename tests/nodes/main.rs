//! Nodes and pods, from outside: taints that drive pods away, and nodes that are tainted for how they do.
//!
//! ```text
//!  scenario ── nodes, pods ──▶ Scene ──▶ API server ◀──▶ kube-controller-manager, or berth run
//!      └── leaves_at(…), stay(…) ◀── Record (a watch)
//! ```
//!
//! Each scenario is told once and held against three: Kubernetes' own controllers, which prove the scenario, and Berth's, on a
//! kube-apiserver and on the hub. Where ours differ on purpose the scenario says so, and asserts what each does. It works in a
//! namespace and on nodes of its own; there is no kubelet but the one that a scenario plays. Five ways to run:
//! - `eviction`: beside others, on one bed with one process of controllers that evict.
//! - `numbers`: the same on a bed whose server lets tolerations compare numbers.
//! - `lifecycle`: beside others, on a bed where nodes are judged as well. Zones are the scenarios' own, too.
//! - `turn`: alone on a bed, with controllers of its own that it may kill, pause and start again.
//! - `quiet`: the same while no other scenario runs, for those that measure.
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
mod blind;
mod bounds;
mod countdown;
mod drain;
mod faults;
mod health;
mod leaders;
mod operators;
mod outages;
mod pods;
mod policies;
mod stories;
mod storm;
mod taints;
mod zones;
