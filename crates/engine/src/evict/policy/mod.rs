//! Who says how a pod leaves a node: policies, and what counts where there is none.
//!
//! Owns what an EvictionPolicy means: reading one ([`compile`]), which of several counts ([`Book`]), what each taint of a node
//! comes to for a pod ([`demands`]), when a pod that does not end may be deleted by force ([`force`]), and how a policy stands
//! ([`standing`]). The controller, `berth explain pod` and the status all go by these. It never acts, and asks nobody.
//!
//! ```text
//!   EvictionPolicy --compile--> Rule --> Book --governing(pod, taint)--> the most specific
//!                                                    |
//!   taints x tolerations -------------------- demands: leave from t on, by this way, because of that
//! ```
//!
//! A policy that cannot be understood holds the pods it selects: what it was to keep is not known.

mod book;
mod compile;
mod demand;
mod force;
mod keep;
mod rule;
mod selection;
mod standing;

pub use book::{Book, Governing};
pub use compile::{Complaint, compile};
pub(super) use demand::needs_time;
pub use demand::{Act, Authority, Demand, PodFacts, demands};
pub use force::{Ground, NodeSight, force};
pub use keep::Keep;
pub use rule::{Force, Orders, Pace, Proof, Rule, Way};
pub use selection::{Selection, TaintTerm};
pub use standing::{Tally, standing};
