//! A log in memory, for tests and for a hub that may forget.
//!
//! Clones share one log, so that a ledger can be closed and opened again as if the clone were the disk.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::redb::write_store;
use crate::backend::{Backend, Snapshot};
use crate::error::BackendError;
use crate::record::Record;
use crate::revision::Revision;

/// A log that lives as long as the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryBackend {
    log: Arc<Mutex<Log>>,
}

#[derive(Clone, Debug, Default)]
struct Log {
    floor: Revision,
    records: BTreeMap<Revision, Record>,
}

impl MemoryBackend {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for MemoryBackend {
    fn floor(&mut self) -> Result<Revision, BackendError> {
        Ok(self.log().floor)
    }

    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        // Records share their bytes, so the copy is one of pointers.
        let records: Vec<Record> =
            self.log().records.range(after.next()..).map(|(_, record)| record.clone()).collect();
        records.into_iter().try_for_each(visit)
    }

    fn append(&mut self, records: &[Record]) -> Result<(), BackendError> {
        self.log().records.extend(records.iter().map(|record| (record.revision, record.clone())));
        Ok(())
    }

    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError> {
        let mut log = self.log();
        log.floor = log.floor.max(floor);
        for revision in dropped {
            log.records.remove(revision);
        }
        Ok(())
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError> {
        Ok(Box::new(self.log().clone()))
    }

    fn size_bytes(&mut self) -> Result<u64, BackendError> {
        Ok(self.log().records.values().map(|record| record.encoded_len() as u64).sum())
    }
}

impl Snapshot for Log {
    fn write_to(self: Box<Self>, path: &Path) -> Result<(), BackendError> {
        write_store(path, self.floor, |put| self.records.values().try_for_each(put))
    }
}
