//! Which watches do not work, as readiness tells it.
//!
//! A short outage is nobody's concern: what was known stays known. A kind that is not followed for longer is named, since
//! what is decided by it may be long untrue.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::serve::{Check, Health};
use crate::world::Kind;

/// How long a watch may fail before the process is not ready.
pub(super) const UNWELL_MAX: Duration = Duration::from_mins(3);

/// The watches of a process.
#[derive(Debug)]
pub(crate) struct Vigil {
    check: Check,
    /// Since when each that fails does.
    failing: Mutex<BTreeMap<Kind, Instant>>,
}

impl Vigil {
    /// All watches work until one is said to fail.
    pub(crate) fn new(health: &Health) -> Self {
        let check = health.check("watches");
        check.pass();
        Self { check, failing: Mutex::default() }
    }

    /// The watch of a kind works.
    pub(super) fn works(&self, kind: Kind) {
        self.note(|failing| failing.remove(&kind).is_some());
    }

    /// The watch of a kind has failed.
    pub(super) fn fails(&self, kind: Kind) {
        self.note(|failing| {
            failing.entry(kind).or_insert_with(Instant::now);
            true
        });
    }

    fn note(&self, change: impl FnOnce(&mut BTreeMap<Kind, Instant>) -> bool) {
        // Each entry is put in or taken out as a whole, so a thread that panicked has left nothing half done. The check is
        // set under the lock, or two changes could be told in the wrong order.
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut failing) {
            return;
        }
        let long = failing.iter().filter(|(_, since)| since.elapsed() >= UNWELL_MAX);
        let long: Vec<String> = long
            .map(|(kind, since)| format!("{} for {} s", kind.plural(), since.elapsed().as_secs()))
            .collect();
        if long.is_empty() {
            self.check.pass();
        } else {
            self.check.fail(format!("the watch does not work of {}", long.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_whose_watch_fails_for_long_is_named_until_it_works() {
        let health = Health::default();
        let vigil = Vigil::new(&health);
        vigil.fails(Kind::Placement);
        tokio::time::advance(UNWELL_MAX / 2).await;
        vigil.fails(Kind::Lease);
        vigil.fails(Kind::Placement);
        assert!(health.is_ready(), "an outage that is short");
        tokio::time::advance(UNWELL_MAX / 2).await;
        vigil.fails(Kind::Placement);
        let why = "the watch does not work of placements for 180 s".to_owned();
        assert_eq!(health.report(), [("watches", Err(why))]);
        vigil.works(Kind::Placement);
        assert!(health.is_ready());
        tokio::time::advance(UNWELL_MAX / 2).await;
        vigil.fails(Kind::Placement);
        let why = "the watch does not work of leases for 180 s".to_owned();
        assert_eq!(health.report(), [("watches", Err(why))], "counted from when it failed anew");
    }
}
