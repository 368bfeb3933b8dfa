//! Black-box tests of Berth: everything here talks to a server through its API, as a user's programs do.
//!
//! `differential`: the same generated requests to the hub and to a real kube-apiserver, answers compared.
//! `transcripts`: what a person types at kubectl and sees, the same on both.
//! `scenarios`: what a program relies on (owners, namespaces, definitions, budgets, access, webhooks, watches), one source
//! for both beds.
//! `crash`: what is left after a kill or a broken disk. `limits`: what one caller may ask for.
//!
//! `fleet`: the fleet controllers, on the hub and on Kubernetes, with our definitions and with the stock ones.
//! `nodes`: taint eviction and node lifecycle, one source for Kubernetes' controllers and for Berth's.
//! `replacements`: members of stateful workloads on ailing nodes, on the hub and on Kubernetes with its StatefulSet controller.
//! `conformance`: which test shows which case of upstream's suites, held against `docs/conformance*.md`.
//!
//! `webhook`: the admission rules, by `berth webhook` on the hub and on Kubernetes, and built into `berth up`.
//! `install`: what `berth install` prints, applied to Kubernetes, run with its rights and tokens, broken, mended, taken away.
//! `monitoring`: the dashboard and the alerts, held against what the program tells.
//!
//! What more than one of them needs is in this library.

pub mod caller;
pub mod definitions;
pub mod heat;
pub mod machine;
pub mod random;
pub mod waiting;
