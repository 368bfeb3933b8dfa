//! A disk that can be told to fail, under the store's database.
//!
//! What was written since the last sync is kept apart: when the power goes, any part of it may be on the platter.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use berth_hub_store::backend::OpenStorage;
use berth_hub_store::{Backend, BackendError, JournaledBackend, RedbBackend};
use redb::StorageBackend;

use berth_tests::random::Random;

/// Sectors are written whole.
const SECTOR_BYTES: usize = 512;

/// The store and its journal.
const FILES: usize = 2;

/// The journal is so small that it is full every few dozen writes.
const JOURNAL_BYTES: u64 = 32 * 4096;

/// How the disk fails, once, at an operation that can fail in this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Half of a write arrives, then it fails.
    ShortWrite,
    /// Nothing of a write arrives.
    Refused,
    /// The file cannot grow, as long as the disk has this many bytes.
    Full,
    /// A sync fails.
    Sync,
    /// Everything fails from here on, until [`Disk::power_up`].
    Power,
}

/// A disk with the files of a hub; each handle is to one of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Platter>>, usize);

#[derive(Debug, Default)]
struct Platter {
    /// What a sync has confirmed.
    durable: [Vec<u8>; FILES],
    /// What readers see.
    live: [Vec<u8>; FILES],
    /// How the two differ, in order, by file.
    pending: Vec<(usize, Change)>,
    plan: Option<(u64, Trouble)>,
    capacity: Option<usize>,
    dark: bool,
}

#[derive(Debug)]
enum Change {
    Length(usize),
    Data(usize, Vec<u8>),
}

impl Change {
    fn make(&self, image: &mut Vec<u8>) {
        match self {
            Self::Length(length) => image.resize(*length, 0),
            Self::Data(offset, data) => {
                let end = offset + data.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*offset..end].copy_from_slice(data);
            }
        }
    }
}

fn failure() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "a planned failure of the disk")
}

impl Platter {
    /// The trouble that strikes an operation which can fail in the ways of `possible`.
    fn strike(&mut self, possible: &[Trouble]) -> Option<Trouble> {
        if self.dark {
            return Some(Trouble::Power);
        }
        let (left, trouble) = self.plan.as_mut()?;
        if !possible.contains(trouble) && *trouble != Trouble::Power {
            return None;
        }
        if *left > 0 {
            *left -= 1;
            return None;
        }
        let trouble = *trouble;
        self.plan = None;
        self.dark = trouble == Trouble::Power;
        Some(trouble)
    }

    fn change(&mut self, file: usize, change: Change) {
        change.make(&mut self.live[file]);
        self.pending.push((file, change));
    }
}

impl Disk {
    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store on this disk.
    pub(crate) fn backend(&self) -> Result<Box<dyn Backend>, BackendError> {
        let file = |number| Self(Arc::clone(&self.0), number);
        let open = |disk: Self| -> OpenStorage { Box::new(move || Ok(Box::new(disk.clone()))) };
        let journal = file(1);
        if journal.len().is_ok_and(|length| length < JOURNAL_BYTES) {
            let made = journal.set_len(JOURNAL_BYTES).and_then(|()| journal.sync_data());
            made.map_err(|error| BackendError::Failed(error.to_string()))?;
        }
        let store = RedbBackend::with_storage(Path::new("disk"), open(file(0)))?;
        Ok(Box::new(JournaledBackend::with_storage(store, Path::new("journal"), open(journal))?))
    }

    /// Fails after `good` more operations that could have failed in this way.
    pub(crate) fn plan(&self, good: u64, trouble: Trouble) {
        self.platter().plan = Some((good, trouble));
    }

    /// Whether a planned failure is still to come.
    pub(crate) fn is_planned(&self) -> bool {
        self.platter().plan.is_some()
    }

    /// Lets the file grow by no more than this, or as much as it likes again.
    pub(crate) fn limit(&self, more: Option<usize>) {
        let mut platter = self.platter();
        platter.capacity = more.map(|more| platter.live[0].len() + more);
    }

    /// The power comes back, with some of what was not synchronised.
    pub(crate) fn power_up(&self, random: &mut Random) {
        let mut platter = self.platter();
        let mut image = std::mem::take(&mut platter.durable);
        for (file, change) in std::mem::take(&mut platter.pending) {
            let image = &mut image[file];
            match (random.below(3), change) {
                (0, _) => {}
                (1, Change::Data(offset, mut data)) => {
                    let length = random.below(data.len() + 1).next_multiple_of(SECTOR_BYTES).min(data.len());
                    data.truncate(length);
                    Change::Data(offset, data).make(image);
                }
                (_, change) => change.make(image),
            }
        }
        *platter = Platter { live: image.clone(), durable: image, ..Platter::default() };
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().live[self.1].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.platter();
        if platter.dark {
            return Err(failure());
        }
        let offset = offset as usize;
        let data =
            platter.live[self.1].get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut platter = self.platter();
        let len = len as usize;
        let grows = len > platter.live[self.1].len();
        let full = grows && platter.capacity.is_some_and(|capacity| len > capacity);
        if full || platter.strike(if grows { &[Trouble::Full] } else { &[] }).is_some() {
            return Err(failure());
        }
        platter.change(self.1, Change::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.strike(&[Trouble::Sync]).is_some() {
            return Err(failure());
        }
        let Platter { durable, pending, .. } = &mut *platter;
        pending
            .extract_if(.., |(file, _)| *file == self.1)
            .for_each(|(file, change)| change.make(&mut durable[file]));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        let dark = platter.dark;
        let arrives = match platter.strike(&[Trouble::ShortWrite, Trouble::Refused]) {
            None => data.len(),
            Some(Trouble::Refused) => 0,
            Some(_) if dark => 0,
            Some(_) => data.len() / 2,
        };
        platter.change(self.1, Change::Data(offset as usize, data[..arrives].to_vec()));
        if arrives == data.len() { Ok(()) } else { Err(failure()) }
    }
}
