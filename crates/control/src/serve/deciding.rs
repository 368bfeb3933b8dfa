//! The series that are counted for every decision, found without a look at their labels.
//!
//! Owns where they are: a change of one node is a decision for each of its pods, and to hash and compare labels three times for
//! each would cost more than the decision. Which series there are, and what they are called, is [`Metrics`](super::Metrics)'s.

use std::sync::{OnceLock, PoisonError, RwLock};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use crate::names::ControllerName;

/// The series of each controller, in the order in which the names are declared.
#[derive(Debug, Default)]
pub(super) struct Deciding([OfOne; ControllerName::ALL.len()]);

/// Those of one controller; absent until there is something to count.
#[derive(Debug, Default)]
pub(super) struct OfOne {
    /// How long its decisions take.
    pub(super) took: OnceLock<Histogram>,
    /// How long its reactions take.
    pub(super) reacted: OnceLock<Histogram>,
    /// How decisions came out: a handful of words, so looking through them is faster than any map.
    outcomes: RwLock<Vec<(&'static str, Counter)>>,
}

impl Deciding {
    pub(super) fn of(&self, controller: ControllerName) -> &OfOne {
        &self.0[controller as usize]
    }
}

impl OfOne {
    /// A decision came out so; `series` finds what counts that, once.
    pub(super) fn came_out(&self, outcome: &'static str, series: impl FnOnce() -> Counter) {
        let is_this = |known: &&(&'static str, Counter)| std::ptr::eq(known.0, outcome) || known.0 == outcome;
        {
            let known = self.outcomes.read().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, counter)) = known.iter().find(is_this) {
                counter.inc();
                return;
            }
        }
        let counter = series();
        counter.inc();
        self.outcomes.write().unwrap_or_else(PoisonError::into_inner).push((outcome, counter));
    }
}
