//! A backend that fails when it is told to, for tests of everything above it.
//!
//! Owns the plan of failures. It never loses what it acknowledged: that is what the tests prove of the layers above.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Snapshot};
use crate::error::BackendError;
use crate::record::Record;
use crate::revision::Revision;

/// How an append, a compaction or a recovery goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written.
    Refused,
    /// Everything is written, and an error is returned all the same: the answer got lost.
    Unanswered,
    /// Everything may be written, and nobody can know: see [`BackendError::NotSynced`].
    NotSynced,
    /// The backend panics.
    Panic,
}

/// Which of the next operations fail. Clones share the plan.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    appends: Option<(u64, Fault)>,
    compactions: Option<(u64, Fault)>,
    recoveries_that_fail: u64,
}

impl FaultPlan {
    /// The append after `good` more good ones fails.
    pub fn fail_append(&self, good: u64, fault: Fault) {
        self.plan().appends = Some((good, fault));
    }

    /// The compaction step after `good` more good ones fails.
    pub fn fail_compaction(&self, good: u64, fault: Fault) {
        self.plan().compactions = Some((good, fault));
    }

    /// The next `times` recoveries fail.
    pub fn fail_recoveries(&self, times: u64) {
        self.plan().recoveries_that_fail = times;
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts down; the fault when its turn has come.
fn due(plan: &mut Option<(u64, Fault)>) -> Option<Fault> {
    match plan {
        Some((0, fault)) => {
            let fault = *fault;
            *plan = None;
            Some(fault)
        }
        Some((good, _)) => {
            *good -= 1;
            None
        }
        None => None,
    }
}

/// A backend around another that follows a [`FaultPlan`].
#[derive(Debug)]
pub struct FaultyBackend<B> {
    inner: B,
    plan: FaultPlan,
}

impl<B: Backend> FaultyBackend<B> {
    /// Wraps `inner`.
    pub fn new(inner: B, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }

    fn strike(
        &mut self,
        fault: Option<Fault>,
        work: impl FnOnce(&mut B) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        match fault {
            None => work(&mut self.inner),
            Some(Fault::Refused) => Err(BackendError::Failed("no space left on device".into())),
            Some(Fault::Unanswered) => {
                work(&mut self.inner)?;
                Err(BackendError::Failed("the answer was lost".into()))
            }
            Some(Fault::NotSynced) => {
                work(&mut self.inner)?;
                Err(BackendError::NotSynced("input/output error".into()))
            }
            Some(Fault::Panic) => panic!("a planned panic of the backend"),
        }
    }
}

impl<B: Backend> Backend for FaultyBackend<B> {
    fn floor(&mut self) -> Result<Revision, BackendError> {
        self.inner.floor()
    }

    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        self.inner.read(after, visit)
    }

    fn append(&mut self, records: &[Record]) -> Result<(), BackendError> {
        let fault = due(&mut self.plan.plan().appends);
        self.strike(fault, |inner| inner.append(records))
    }

    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError> {
        let fault = due(&mut self.plan.plan().compactions);
        self.strike(fault, |inner| inner.compact(floor, dropped))
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        {
            let mut plan = self.plan.plan();
            if plan.recoveries_that_fail > 0 {
                plan.recoveries_that_fail -= 1;
                return Err(BackendError::Failed("still no space left on device".into()));
            }
        }
        self.inner.recover()
    }

    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError> {
        self.inner.snapshot()
    }

    fn size_bytes(&mut self) -> Result<u64, BackendError> {
        self.inner.size_bytes()
    }
}
