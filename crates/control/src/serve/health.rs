//! How the process is: named checks that its parts turn on and off.
//!
//! Owns two questions. *Alive*: does everything that must keep turning still turn? A part says so by beating a
//! [`Pulse`]; one that does not any more calls for a restart. *Ready*: has everything been seen that is needed? A part
//! says so by its [`Check`]. Leading and standing by are both ready: a candidate that is not ready could not take over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The state of one check: well, or why not.
pub(super) type State = Result<(), String>;

/// The checks of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// What pulses count from.
    start: Instant,
    checks: Mutex<BTreeMap<&'static str, State>>,
    pulses: Mutex<BTreeMap<&'static str, Beats>>,
}

#[derive(Debug, Clone)]
struct Beats {
    /// When the next one must have come, in milliseconds since the start.
    due: Arc<AtomicU64>,
    within: Duration,
}

/// One check, in the hands of the part it is about.
#[derive(Debug)]
pub struct Check {
    name: &'static str,
    health: Health,
}

/// The pulse of one part that must keep turning.
#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    beats: Beats,
}

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Inner { start: Instant::now(), checks: Mutex::default(), pulses: Mutex::default() }))
    }
}

impl Health {
    /// A new check of readiness, which fails until it is said to pass. One of the same name is replaced.
    pub fn check(&self, name: &'static str) -> Check {
        let check = Check { name, health: self.clone() };
        check.fail("not ready yet".to_owned());
        check
    }

    /// A new check of life: from now on, [`Pulse::beat`] must be called again and again `within` so much time.
    pub fn pulse(&self, name: &'static str, within: Duration) -> Pulse {
        let pulse = Pulse { start: self.0.start, beats: Beats { due: Arc::default(), within } };
        pulse.beat();
        with(&self.0.pulses, |pulses| pulses.insert(name, pulse.beats.clone()));
        pulse
    }

    /// Whether every check of readiness passes.
    pub fn is_ready(&self) -> bool {
        with(&self.0.checks, |checks| checks.values().all(Result::is_ok))
    }

    /// Whether every pulse beats.
    pub fn is_alive(&self) -> bool {
        self.pulses().iter().all(|(_, state)| state.is_ok())
    }

    /// Each check of readiness by name, with the reason where it fails.
    pub fn report(&self) -> Vec<(&'static str, Result<(), String>)> {
        with(&self.0.checks, |checks| checks.iter().map(|(name, state)| (*name, state.clone())).collect())
    }

    /// Each pulse by name, with the reason where it does not beat.
    pub fn pulses(&self) -> Vec<(&'static str, Result<(), String>)> {
        let now = millis(self.0.start);
        let state = |beats: &Beats| match now.checked_sub(beats.due.load(Ordering::Relaxed)) {
            None | Some(0) => Ok(()),
            Some(late) => {
                let since = beats.within + Duration::from_millis(late);
                Err(format!("stuck for {} s, expected within {:?}", since.as_secs(), beats.within))
            }
        };
        with(&self.0.pulses, |pulses| pulses.iter().map(|(name, beats)| (*name, state(beats))).collect())
    }
}

impl Check {
    /// All is well.
    pub fn pass(&self) {
        self.set(Ok(()));
    }

    /// Not ready, and why.
    pub fn fail(&self, why: String) {
        self.set(Err(why));
    }

    fn set(&self, state: State) {
        with(&self.health.0.checks, |checks| checks.insert(self.name, state));
    }
}

impl Pulse {
    /// Still turning. Costs a look at the clock.
    pub fn beat(&self) {
        let within = u64::try_from(self.beats.within.as_millis()).unwrap_or(u64::MAX);
        self.beats.due.store(millis(self.start).saturating_add(within), Ordering::Relaxed);
    }
}

fn millis(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn with<M, T>(mutex: &Mutex<M>, work: impl FnOnce(&mut M) -> T) -> T {
    // A state is replaced as a whole, so a thread that panicked has left nothing half done.
    work(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_when_every_check_passes() {
        let health = Health::default();
        assert!(health.is_ready());
        let (caches, other) = (health.check("caches"), health.check("another"));
        assert!(!health.is_ready());
        caches.pass();
        other.fail("waiting for leases".to_owned());
        assert!(!health.is_ready());
        assert_eq!(health.report(), [("another", Err("waiting for leases".to_owned())), ("caches", Ok(()))]);
        other.pass();
        assert!(health.is_ready());
        caches.fail("lost".to_owned());
        assert!(!health.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_stops_turning_is_not_alive() {
        let health = Health::default();
        let pulse = health.pulse("loop", Duration::from_secs(30));
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(30)).await;
            assert!(health.is_alive());
            pulse.beat();
        }
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(!health.is_alive() && health.is_ready());
        assert_eq!(health.pulses(), [("loop", Err("stuck for 31 s, expected within 30s".to_owned()))]);
        pulse.beat();
        assert!(health.is_alive());
    }
}
