//! Members of stateful workloads on ailing nodes, from outside: taints and policies in, replaced members out.
//!
//! ```text
//!  scenario ── nodes, sets, policies ──▶ Scene ──▶ API server ◀──▶ berth run --controllers=replacement-controller
//!      └── what became of it ◀── Chronicle (watches)   ▲
//!                    Hands: scheduler, kubelets ───────┘   kube-controller-manager's StatefulSet controller, on Kubernetes
//! ```
//!
//! Each scenario is told once and runs on a kube-apiserver and on the hub. On Kubernetes, kube-controller-manager makes the pods
//! of StatefulSets, binds claims and lets go of them. The hub has no such controllers: `sets` plays the little of them that
//! scenarios need, and is used nowhere else. Nowhere is there a scheduler or a kubelet: `hands` plays both.
//!
//! What must never happen is judged afterwards, by the API server's own order of revisions and not by the clock. Two ways to run:
//! - `beside`: beside others, on one bed with one process of the controller.
//! - `turn`: alone on a bed, with controllers of its own that it may kill, start again, and send another way.

#![allow(clippy::unwrap_used, reason = "scenarios fail loudly")]

mod chronicle;
#[allow(dead_code, reason = "shared with the scenarios about nodes, which need more of it")]
#[path = "../nodes/gate.rs"]
mod gate;
mod ground;
mod hands;
#[allow(dead_code, reason = "shared with the scenarios, which need more of it")]
#[path = "../scenarios/hook.rs"]
mod hook;
mod scene;
mod set;
mod sets;

mod budgets;
mod causes;
mod delegates;
mod door;
mod gates;
mod members;
mod restarts;
mod stories;
mod triggers;
mod volumes;
