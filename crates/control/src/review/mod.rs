//! Asking somebody outside before a pod goes: reviews over HTTPS.
//!
//! ```text
//!   Question ──▶ Reviewer ──POST, TLS──▶ somebody's service
//!                   └── Answer: allowed | denied | later | unanswered ◀──┘
//! ```
//!
//! Owns the two documents, the way they travel, and what an answer means; where they go is an
//! [`Address`](berth_engine::gate::Address), which the engine reads. It decides nothing and remembers nothing: who asks,
//! when again, and what becomes of the pod is the controllers' business. It fails closed: whatever is not a clear yes to the
//! very question that was asked is none. The same question has the same id however often it is asked, so whoever answers
//! may act on the first and repeat what he said to the others.

mod answer;
mod client;
mod document;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Silence};
pub use client::Reviewer;
pub use document::{NodeFacts, PodFacts, Question, ReplacementFacts, TaintFacts};
