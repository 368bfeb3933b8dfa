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
//!                                    secrets      tokens of service accounts, kept in Secrets
//!                                    trust        the authority's certificate, in every namespace
//!                                    (roles)      the rules of aggregated roles
//! ```
//!
//! Owns one task that follows every commit, and those it begins. The decisions are pure functions, one file each (those of
//! definitions and budgets are beside what else is known of their kinds, in `resource`); what reads, asks them and commits
//! through the same stage as everybody else is in `task`. It is level-triggered: at start it looks at everything once.

pub(crate) mod accounts;
pub(crate) mod ending;
pub(crate) mod expiry;
mod follow;
pub(crate) mod garbage;
mod hand;
mod keeper;
mod pace;
pub(crate) mod pods;
mod queue;
pub(crate) mod secrets;
mod task;
pub(crate) mod trust;

pub(crate) use hand::Hand;
pub(crate) use keeper::Keeper;
