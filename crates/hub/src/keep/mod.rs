//! What must be kept in order without being asked.
//!
//! ```text
//! core::commit ──Chore──▶ Keeper ──▶ garbage      dependents of owners that are gone
//!                                    ending       the content of namespaces that end
//!                                    definition   the objects of definitions that end
//!                                    pods         pods that no kubelet will finish
//!                                    budget       the status of disruption budgets
//!                                    expiry       events that are old
//!                                    accounts     a service account for every namespace
//!                                    (roles)      the rules of aggregated roles
//! ```
//!
//! Owns one task that follows every commit. The decisions are pure functions, one file each; the task reads, asks them,
//! and commits through the same door as everybody else. It is level-triggered: at start it looks at everything once.

pub mod accounts;
pub mod budget;
mod chore;
pub mod definition;
pub mod ending;
pub mod expiry;
pub mod garbage;
mod hand;
mod keeper;
pub mod pods;
mod queue;

pub(crate) use chore::Chore;
pub(crate) use hand::Hand;
pub(crate) use keeper::Keeper;
