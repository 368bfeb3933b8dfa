//! Test beds: somewhere real to run a scenario.
//!
//! [`Bed::kubernetes`] is a kube-apiserver with its etcd, built by `./dev upstream`; [`Bed::hub`] is Berth's own API
//! server, started as a user starts it. Both give the same [`Bed`]: a client, a kubeconfig, an address, and the means
//! to stop, start, pause and kill the API server under the scenario's feet. [`scenario!`] makes two tests of one
//! scenario, one on each bed.
//!
//! ```text
//!  Tools ──▶ Kubernetes ──┐                 ┌─ Process   one server, never left behind
//!  Berth ──▶ Hub ─────────┴──▶ Bed ─────────┼─ Port      reserved for as long as the bed lives
//!                              │            ├─ Authority certificates made on the fly (Kubernetes only)
//!  Companion (berth run) ──────┤            │
//!  scenario! ──▶ Shared ───────┘            └─ Folder    data and logs, kept when the test failed
//! ```
//!
//! What this crate owns: starting, steering and ending those processes on loopback, with data in a temporary folder.
//! What it never does: ship (it is a test harness), reach beyond loopback, leave a process behind (not even when the
//! test is killed), or pass silently for a bed that is not there: a test says that it was skipped, and
//! `BERTH_REQUIRE_UPSTREAM=1` makes that a failure.
//!
//! # Writing a test
//!
//! ```no_run
//! # fn main() {} // the scenario is a module and looks for its names outside a function
//! use berth_bed::Bed;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, ListParams};
//!
//! berth_bed::scenario! {
//!     /// A namespace begins without ConfigMaps of ours.
//!     async fn a_new_namespace_is_empty(bed: &Bed) {
//!         let namespace = bed.namespace("empty").await;
//!         let maps: Api<ConfigMap> = Api::namespaced(bed.client(), &namespace);
//!         assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 0);
//!     }
//! }
//! ```
//!
//! This gives the tests `a_new_namespace_is_empty::on_the_hub` and `::on_kubernetes`. With `bed: &Bed` the tests
//! of a process share one bed, so a scenario works in namespaces of its own; with `bed: &mut Bed` it has a bed to itself
//! and may stop, pause or kill the API server. `managed async fn` shares a bed on which Kubernetes' controllers do what
//! the hub does by itself ([`Bed::managed`]). A test of one bed only:
//!
//! ```no_run
//! # use berth_bed::{Bed, or_skip};
//! # async fn test() {
//! let Some(mut bed) = or_skip(Bed::kubernetes().controller_manager(&["--controllers=namespace-controller"]).await) else {
//!     return;
//! };
//! bed.kill();
//! bed.start().await.unwrap();
//! # }
//! ```
//!
//! # How the Kubernetes bed differs from a cluster
//!
//! RBAC is on and anonymous requests reach only what Kubernetes opens to everybody (health and version). The admission
//! plugin `ServiceAccount` is off, because without a controller manager no namespace has a service account to give to
//! its pods, and because it writes a volume with a random name into each of them, which no other server could repeat;
//! tokens of service accounts work all the same. `TaintNodesByCondition` is off, because without kubelets every new
//! Node would stay tainted as not ready. [`Kubernetes::api_server`] adds flags, also to turn these on again
//! (`--enable-admission-plugins=...`).

mod absent;
mod authority;
mod bed;
mod companion;
mod error;
mod folder;
mod hub;
mod identity;
mod kubernetes;
mod port;
mod process;
mod scenario;
mod shared;
mod tools;

pub use absent::or_skip;
pub use bed::{Bed, Kind};
pub use companion::Companion;
pub use error::BedError;
pub use hub::Hub;
pub use identity::Identity;
pub use kubernetes::Kubernetes;
pub use port::Port;
pub use scenario::{managed, own, shared};
pub use shared::Shared;
pub use tools::{berth, cache, tool};
