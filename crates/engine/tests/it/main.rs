//! The engine as its users see it: against what upstream decided, against its own rules under random worlds, and
//! against the documents the project began with. Reference data beside the project is used where it is at hand.

// Helpers of tests may unwrap as tests do, and JSON literals read best where they are used up.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::needless_pass_by_value)]

mod accounts;
mod conditions;
mod conformance;
mod costs;
mod fixtures;
mod golden;
mod groups;
mod hostile;
mod impact;
mod naive;
mod notes;
mod predicates;
mod prioritizers;
mod properties;
mod purity;
mod random;
mod rankings;
mod replacement;
mod seeds;
mod sets;
mod shared;
mod snapshots;
mod spreading;
mod taints;
mod world;
