//! A short journal in front of the store, so that one small write costs one page.
//!
//! ```text
//! append ──> hub.log: one frame, one sync         ──┐ when it is full, before anything else, and on every opening
//!                                                   └──> hub.redb: all of them in one transaction
//! ```
//! A commit of the database rewrites seven pages all over its file; a frame is written where the last one ended. Owns the
//! frames and their way into the store. Never has what the store does not get: the journal is only overwritten after the
//! store has confirmed everything in it, and after a crash or a failure it is read into the store before anything else.
//!
//! A frame begins on a block of its own, so that writing one never touches another that was acknowledged. It says which
//! revision it follows: what is left of earlier rounds does not fit to the store's last revision.
//!
//! The first block has a number that the store has too, and the store notes whether it was closed with everything taken
//! over. One that was not is never opened without its journal: what is only there was acknowledged.
//! ```text
//! journal made: zeros, sync, header, sync ──> store: its number, not taken ──> frames ... ──> closed: all, taken
//! ```

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ::redb::StorageBackend;
use ::redb::backends::FileBackend;

use crate::aside;
use crate::backend::journal::frame::{Frame, frame, highest};
use crate::backend::journal::header::Header;
use crate::backend::redb::{FILE_NAME, Link, OpenStorage, RedbBackend};
use crate::backend::{Backend, Snapshot};
use crate::error::BackendError;
use crate::file;
use crate::record::Record;
use crate::revision::Revision;

mod frame;
mod header;

/// The name of the journal within the data directory.
pub const JOURNAL_NAME: &str = "hub.log";

/// The size of the journal. It is filled once, so that a write never changes more of the file system than one block, and
/// bounds what one transaction of the store takes over: some milliseconds of work every few hundred small writes.
const JOURNAL_BYTES: u64 = 2 << 20;

/// Where frames may begin. What a disk may tear is a block.
const BLOCK_BYTES: usize = 4096;

/// Where the first frame begins: after the header.
const FIRST_FRAME: u64 = BLOCK_BYTES as u64;

/// A store with a journal in front of it.
pub struct JournaledBackend {
    store: RedbBackend,
    path: PathBuf,
    open: OpenStorage,
    /// None only after a failed [`Backend::recover`].
    journal: Option<Box<dyn StorageBackend>>,
    /// Where the next frame goes.
    at: u64,
    /// The size of the journal.
    room: u64,
    /// The size that a new one gets; none where storage has a size already.
    new_room: Option<u64>,
    /// The number in its header.
    number: u64,
    /// The last revision that is durable, here or in the store.
    head: Revision,
    /// What the journal has and the store does not.
    pending: Vec<Record>,
    /// Set for good when a sync failed; see [`RedbBackend`].
    unsynced: bool,
}

impl JournaledBackend {
    /// Opens the store in `directory` and its journal, creating what does not exist.
    pub fn open(directory: &Path) -> Result<Self, BackendError> {
        let (path, store) = (directory.join(JOURNAL_NAME), directory.join(FILE_NAME));
        let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", path.display()));
        // The store is made first, so this is no first start that was cut short.
        if !store.try_exists().map_err(|error| failed(&error))?
            && read_file(&path).is_ok_and(|bytes| highest(&bytes).is_some())
        {
            return Err(BackendError::StoreLost { store, journal: path });
        }
        let mut store = RedbBackend::open(directory)?;
        if !path.try_exists().map_err(|error| failed(&error))? {
            let needed = match store.link()? {
                // A restoration that was cut short had put it aside.
                Link::Known { journal, taken: false } => {
                    !bring_back(directory, journal).map_err(|error| failed(&error))?
                }
                // What that version restored and nobody opened had none; all else had.
                Link::Untold => store.head()? > store.floor()?,
                Link::Known { taken: true, .. } => false,
            };
            if needed {
                return Err(lost(&path, "is missing", &store));
            }
            file::private(&path, false)
                .and_then(|_| File::open(directory)?.sync_all())
                .map_err(|error| failed(&error))?;
        }
        let name = path.clone();
        let open: OpenStorage = Box::new(move || {
            let file = OpenOptions::new().read(true).write(true).open(&name)?;
            Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
        });
        Self::start(store, &path, open, Some(JOURNAL_BYTES))
    }

    /// Puts a journal on storage of the caller's making before `store`, as large as that is; `path` is only its name in
    /// messages. For fault injection.
    pub fn with_storage(store: RedbBackend, path: &Path, open: OpenStorage) -> Result<Self, BackendError> {
        Self::start(store, path, open, None)
    }

    fn start(
        store: RedbBackend,
        path: &Path,
        open: OpenStorage,
        new_room: Option<u64>,
    ) -> Result<Self, BackendError> {
        let mut backend = Self {
            store,
            path: path.to_owned(),
            open,
            journal: None,
            at: FIRST_FRAME,
            room: 0,
            new_room,
            number: 0,
            head: Revision::ZERO,
            pending: Vec::new(),
            unsynced: false,
        };
        backend.replay()?;
        Ok(backend)
    }

    fn failed(&self, error: &io::Error) -> BackendError {
        BackendError::Failed(format!("{}: {error}", self.path.display()))
    }

    fn corrupted(&self, detail: String) -> BackendError {
        BackendError::Corrupted { path: self.path.clone(), detail }
    }

    /// Reads the journal into the store, as after a crash.
    fn replay(&mut self) -> Result<(), BackendError> {
        self.journal = None;
        self.pending.clear();
        let journal = (self.open)().map_err(|error| self.failed(&error))?;
        let length = journal.len().map_err(|error| self.failed(&error))?;
        let mut bytes = vec![0; usize::try_from(length.min(JOURNAL_BYTES)).unwrap_or_default()];
        journal.read(0, &mut bytes).map_err(|error| self.failed(&error))?;

        let (link, head) = (self.store.link()?, self.store.head()?);
        let header = Header::read(&bytes);
        let ours = self.recognise(link, header, length, head, &bytes)?;
        let (head, records) = match link {
            _ if ours => self.scan(&bytes[BLOCK_BYTES.min(bytes.len())..], head)?,
            // It had no header.
            Link::Untold if header.is_none() => self.scan(&bytes, head)?,
            _ => (head, Vec::new()),
        };
        // What was read may never have been synchronised: from here on it is the store that has it.
        if let Some(header) = header.filter(|_| ours) {
            (self.number, self.room) = (header.number, header.room.min(JOURNAL_BYTES));
            let link = Link::Known { journal: self.number, taken: false };
            if !records.is_empty() || self.store.link()? != link {
                self.store.take_over(&records, link)?;
            }
        } else {
            if !records.is_empty() {
                self.store.append(&records)?;
            }
            self.begin(&*journal, self.new_room.unwrap_or(length), head)?;
        }
        (self.journal, self.head, self.at) = (Some(journal), head, FIRST_FRAME);
        Ok(())
    }

    /// Whether the journal is the one of the store, and whole. An error if it should be and is not, or if it has what
    /// another store may lack; else it is to be made anew.
    fn recognise(
        &mut self,
        link: Link,
        header: Option<Header>,
        length: u64,
        head: Revision,
        bytes: &[u8],
    ) -> Result<bool, BackendError> {
        let number = match link {
            Link::Known { journal, .. } => Some(journal),
            Link::Untold => None,
        };
        let detail = match header {
            Some(header) if Some(header.number) != number => "belongs to another store",
            Some(header) if header.room > length => "is cut short",
            Some(_) => return Ok(true),
            None => "does not begin as one",
        };
        // Before there was a header, a journal had its whole size before the first write.
        let cut = link == Link::Untold
            && self.new_room.is_some_and(|room| length < room)
            && head > self.store.floor()?;
        if cut || matches!(link, Link::Known { taken: false, .. }) {
            return Err(lost(&self.path, if cut { "is cut short" } else { detail }, &self.store));
        }
        let foreign = header.is_some_and(|header| Some(header.number) != number);
        match highest(bytes) {
            Some(newest) if foreign || (newest > head && link != Link::Untold) => {
                Err(self.corrupted(format!(
                    "it {detail} and goes to revision {newest}, and the store has come to {head} without it"
                )))
            }
            _ => Ok(false),
        }
    }

    /// What the frames have that a store at `head` has not, and how far it comes with them.
    fn scan(&self, bytes: &[u8], mut head: Revision) -> Result<(Revision, Vec<Record>), BackendError> {
        let mut records = Vec::new();
        let (mut at, mut whole) = (0, true);
        while at < bytes.len() {
            let Some(frame) = Frame::read(&bytes[at..]) else {
                // The end, which a crash may have torn. After it there is only what was read into the store before.
                whole = false;
                at += BLOCK_BYTES;
                continue;
            };
            if frame.last > head {
                if !whole || frame.follows != head {
                    let follows = frame.follows;
                    return Err(self.corrupted(format!(
                        "it goes on after revision {follows}, and the store has come to {head}"
                    )));
                }
                records.extend(frame.records().map_err(|detail| self.corrupted(detail))?);
                head = frame.last;
            }
            at += frame.blocks() * BLOCK_BYTES;
        }
        Ok((head, records))
    }

    /// Makes a journal and tells the store, which has everything. Until it is told, whatever a crash leaves of the new
    /// journal is made anew: frames go before the header comes.
    fn begin(&mut self, journal: &dyn StorageBackend, room: u64, head: Revision) -> Result<(), BackendError> {
        let header = Header::new(room, head);
        for bytes in [vec![0; usize::try_from(room).unwrap_or_default()], header.bytes()] {
            journal.write(0, &bytes).map_err(|error| self.failed(&error))?;
            self.sync(journal)?;
        }
        self.store.take_over(&[], Link::Known { journal: header.number, taken: false })?;
        (self.number, self.room) = (header.number, room);
        Ok(())
    }

    fn sync(&mut self, journal: &dyn StorageBackend) -> Result<(), BackendError> {
        journal.sync_data().map_err(|error| {
            self.unsynced = true;
            BackendError::NotSynced(format!("{}: {error}", self.path.display()))
        })
    }

    /// Has the store take over everything, and begins the journal anew.
    fn settle(&mut self) -> Result<(), BackendError> {
        if !self.pending.is_empty() {
            self.store.append(&self.pending)?;
            self.pending.clear();
        }
        self.at = FIRST_FRAME;
        Ok(())
    }
}

impl Backend for JournaledBackend {
    fn floor(&mut self) -> Result<Revision, BackendError> {
        self.store.floor()
    }

    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        self.settle()?;
        self.store.read(after, visit)
    }

    fn append(&mut self, records: &[Record]) -> Result<(), BackendError> {
        let Some(last) = records.last() else { return Ok(()) };
        if self.unsynced {
            return Err(BackendError::NotSynced("an earlier write may be lost".into()));
        }
        let frame = frame(self.head, records);
        let end = self.at + frame.len() as u64;
        if end > self.room {
            let kept = self.pending.len();
            self.pending.extend_from_slice(records);
            self.settle().inspect_err(|_| self.pending.truncate(kept))?;
        } else {
            let journal = self
                .journal
                .as_ref()
                .ok_or_else(|| BackendError::Failed("the journal is not open".into()))?;
            journal.write(self.at, &frame).map_err(|error| self.failed(&error))?;
            if let Err(error) = journal.sync_data() {
                self.unsynced = true;
                return Err(BackendError::NotSynced(format!("{}: {error}", self.path.display())));
            }
            self.at = end;
            self.pending.extend_from_slice(records);
        }
        self.head = last.revision;
        Ok(())
    }

    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError> {
        self.settle()?;
        self.store.compact(floor, dropped)?;
        self.head = self.head.max(floor);
        Ok(())
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        if self.unsynced {
            return Err(BackendError::NotSynced("an earlier write may be lost".into()));
        }
        self.store.recover()?;
        self.replay()
    }

    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError> {
        self.settle()?;
        self.store.snapshot()
    }

    fn size_bytes(&mut self) -> Result<u64, BackendError> {
        Ok(self.store.size_bytes()? + self.room)
    }
}

impl Drop for JournaledBackend {
    fn drop(&mut self) {
        // Without a journal it is not known what is in it.
        if !self.unsynced && self.journal.is_some() {
            // So that the store is whole by itself. Where it cannot be, the journal still has it.
            let _ = self.store.take_over(&self.pending, Link::Known { journal: self.number, taken: true });
        }
    }
}

impl fmt::Debug for JournaledBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournaledBackend")
            .field("store", &self.store)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

fn lost(journal: &Path, detail: &'static str, store: &RedbBackend) -> BackendError {
    match store.head() {
        Ok(revision) => BackendError::JournalLost {
            journal: journal.to_owned(),
            detail,
            store: store.path().to_owned(),
            revision,
        },
        Err(error) => error,
    }
}

/// As much of a file as a journal has.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(JOURNAL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The highest revision that the journal in this file tells of, however damaged it is. Zero where it tells of none.
pub(crate) fn highest_revision(path: &Path) -> Revision {
    let bytes = read_file(path).unwrap_or_default();
    let begun = Header::read(&bytes).map(|header| header.begun);
    highest(&bytes).max(begun).unwrap_or_default()
}

/// Gives the journal with this number its name back, if it was put aside and its store was not replaced. Moved and not
/// copied: a copy that is left, like one that somebody made of both, would be older than its store some day.
fn bring_back(directory: &Path, number: u64) -> io::Result<bool> {
    for path in aside::journals(directory)? {
        let header = read_file(&path).ok().and_then(|bytes| Header::read(&bytes));
        if header.is_some_and(|header| header.number == number) && aside::is_of_store(&path, directory) {
            fs::rename(&path, directory.join(JOURNAL_NAME))?;
            File::open(directory)?.sync_all()?;
            return Ok(true);
        }
    }
    Ok(false)
}
