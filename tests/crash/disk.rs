//! A disk that can be told to fail, under the store's database.
//!
//! What was written since the last sync is kept apart: when the power goes, any part of it may be on the platter.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use berth_hub_store::{Backend, BackendError, RedbBackend};
use redb::StorageBackend;

use crate::random::Random;

/// Sectors are written whole.
const SECTOR_BYTES: usize = 512;

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

#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    /// What a sync has confirmed.
    durable: Vec<u8>,
    /// What readers see.
    live: Vec<u8>,
    /// How the two differ, in order.
    pending: Vec<Change>,
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

    fn change(&mut self, change: Change) {
        change.make(&mut self.live);
        self.pending.push(change);
    }
}

impl Disk {
    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store on this disk.
    pub(crate) fn backend(&self) -> Result<Box<dyn Backend>, BackendError> {
        let disk = self.clone();
        let open = Box::new(move || Ok(Box::new(disk.clone()) as Box<dyn StorageBackend>));
        Ok(Box::new(RedbBackend::with_storage(Path::new("disk"), open)?))
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
        platter.capacity = more.map(|more| platter.live.len() + more);
    }

    /// The power comes back, with some of what was not synchronised.
    pub(crate) fn power_up(&self, random: &mut Random) {
        let mut platter = self.platter();
        let mut image = std::mem::take(&mut platter.durable);
        for change in std::mem::take(&mut platter.pending) {
            match (random.below(3), change) {
                (0, _) => {}
                (1, Change::Data(offset, mut data)) => {
                    let length = random.below(data.len() + 1).next_multiple_of(SECTOR_BYTES).min(data.len());
                    data.truncate(length);
                    Change::Data(offset, data).make(&mut image);
                }
                (_, change) => change.make(&mut image),
            }
        }
        *platter = Platter { live: image.clone(), durable: image, ..Platter::default() };
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let platter = self.platter();
        if platter.dark {
            return Err(failure());
        }
        let offset = offset as usize;
        let data = platter.live.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut platter = self.platter();
        let len = len as usize;
        let grows = len > platter.live.len();
        let full = grows && platter.capacity.is_some_and(|capacity| len > capacity);
        if full || platter.strike(if grows { &[Trouble::Full] } else { &[] }).is_some() {
            return Err(failure());
        }
        platter.change(Change::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.strike(&[Trouble::Sync]).is_some() {
            return Err(failure());
        }
        let Platter { durable, pending, .. } = &mut *platter;
        pending.drain(..).for_each(|change| change.make(durable));
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
        platter.change(Change::Data(offset as usize, data[..arrives].to_vec()));
        if arrives == data.len() { Ok(()) } else { Err(failure()) }
    }
}
