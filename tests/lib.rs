//! Black-box tests of Berth: everything here talks to a server through its API, as a user's programs do.
//!
//! `differential`: the same generated requests to the hub and to a real kube-apiserver, answers compared.
//! `transcripts`: what a person types at kubectl and sees, the same on both.
//! `scenarios`: what a program relies on (owners, namespaces, definitions, budgets, access, webhooks, watches), one source
//! for both beds.
