//! The log in one redb file.
//!
//! ```text
//! history: revision -> record        append-only but for compaction
//! meta:    "format", "floor", "journal", "taken" -> u64
//! ```
//! Owns the file, the lock that keeps a second process out, and the mapping of redb's errors to advice. There is no table
//! of current objects: the log after compaction *is* the current objects and their recent history, in order, so a write
//! touches one place and opening is one scan. Every commit is durable before it returns.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::redb::backends::FileBackend;
use ::redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend,
    TableDefinition, TableError,
};

use crate::backend::redb::guard::guard;
pub(crate) use crate::backend::redb::link::Link;
use crate::backend::redb::storage::Observed;
use crate::backend::{Backend, Snapshot};
use crate::error::BackendError;
use crate::file;
use crate::record::Record;
use crate::revision::Revision;

mod guard;
mod link;
mod storage;

/// The name of the store within the data directory.
pub const FILE_NAME: &str = "hub.redb";

/// The format that this version writes, and the newest that it reads. With the second, what is newest may be in a journal
/// beside the file, which a version that knows only the first would not look for. With the third, the store says which
/// journal that is; one of the second becomes one of the third when its journal is opened.
pub const FORMAT_VERSION: u64 = 3;

/// The format that had a journal and did not say which.
const FORMAT_UNTOLD: u64 = 2;

/// The oldest format there is.
const FORMAT_FIRST: u64 = 1;

/// redb's page cache, in bytes. All objects are in memory as entries anyway; the cache only has to hold the inner pages
/// and what one batch touches.
const CACHE_BYTES: usize = 4 << 20;

/// Records per transaction while a backup is written, so that a large store does not become one large transaction.
const COPY_RECORDS: usize = 4096;

const HISTORY: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("history");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FORMAT: &str = "format";
const FLOOR: &str = "floor";

/// Opens the storage under the database, again after every failure.
pub type OpenStorage = Box<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send>;

/// A log in one file.
pub struct RedbBackend {
    path: PathBuf,
    open: OpenStorage,
    /// None only after a failed [`Backend::recover`].
    database: Option<Database>,
    /// Set for good when a sync failed: the kernel may have dropped the pages it could not write, so nothing that is
    /// read back from here on proves anything about the disk.
    unsynced: Arc<AtomicBool>,
    /// Held for its lock.
    _lock: Option<File>,
}

impl RedbBackend {
    /// Opens the store in `directory`, creating both when they do not exist.
    pub fn open(directory: &Path) -> Result<Self, BackendError> {
        let path = directory.join(FILE_NAME);
        let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", path.display()));
        fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        let lock = file::lock(directory, &path)?;
        if !path.try_exists().map_err(|error| failed(&error))? {
            // A store that a crash interrupted while it was made must not stand in the way of the next start.
            write_store(&path, Revision::ZERO, |_| Ok(()))?;
        }
        let file = path.clone();
        let open: OpenStorage = Box::new(move || {
            let file = OpenOptions::new().read(true).write(true).open(&file)?;
            if file.metadata()?.len() == 0 {
                // The engine would take it for a new store; ours gets its name only when it is filled.
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
            }
            Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
        });
        Self::start(path, open, Some(lock))
    }

    /// Opens a store on storage of the caller's making; `path` is only its name in messages. For fault injection.
    pub fn with_storage(path: &Path, open: OpenStorage) -> Result<Self, BackendError> {
        Self::start(path.to_owned(), open, None)
    }

    fn start(path: PathBuf, open: OpenStorage, lock: Option<File>) -> Result<Self, BackendError> {
        let mut backend = Self { path, open, database: None, unsynced: Arc::default(), _lock: lock };
        backend.recover()?;
        Ok(backend)
    }

    /// The last revision that was given out: of the newest record, or the floor where all after it is forgotten.
    pub(crate) fn head(&self) -> Result<Revision, BackendError> {
        self.guarded(|this| {
            let head = || {
                let transaction = this.database()?.begin_read().map_err(|error| this.failed(error))?;
                let floor = floor_of(&transaction).map_err(|error| this.failed(error))?;
                let history = transaction.open_table(HISTORY).map_err(|error| this.failed(error))?;
                let last = history.last().map_err(|error| this.failed(error))?;
                Ok(last.map_or(floor, |(revision, _)| floor.max(Revision(revision.value()))))
            };
            head()
        })
    }

    /// The file, or what it is called in messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the store knows of its journal.
    pub(crate) fn link(&self) -> Result<Link, BackendError> {
        self.guarded(|this| {
            let transaction = this.database()?.begin_read().map_err(|error| this.failed(error))?;
            let meta = transaction.open_table(META).map_err(|error| this.failed(error))?;
            Link::read(&meta).map_err(|error| this.failed(error))
        })
    }

    /// Adds `records` and notes what journal there is, atomically. From here on it is a store of the newest format.
    pub(crate) fn take_over(&mut self, records: &[Record], link: Link) -> Result<(), BackendError> {
        self.write(|transaction| {
            put(transaction, records)?;
            let mut meta = transaction.open_table(META)?;
            meta.insert(FORMAT, FORMAT_VERSION)?;
            link.write(&mut meta)
        })
    }

    fn failed(&self, error: impl Into<::redb::Error>) -> BackendError {
        explain(&self.path, &self.unsynced, error.into())
    }

    /// Runs `work` on the database; a damaged file can trip redb's assertions, which is an answer and not a crash.
    fn guarded<T>(&self, work: impl FnOnce(&Self) -> Result<T, BackendError>) -> Result<T, BackendError> {
        guard(&self.path, || work(self))
    }

    fn database(&self) -> Result<&Database, BackendError> {
        self.database.as_ref().ok_or_else(|| BackendError::Failed("the store is not open".into()))
    }

    fn write(
        &self,
        change: impl FnOnce(&::redb::WriteTransaction) -> Result<(), ::redb::Error>,
    ) -> Result<(), BackendError> {
        self.guarded(|this| commit(this.database()?, change).map_err(|error| this.failed(error)))
    }
}

impl Backend for RedbBackend {
    fn floor(&mut self) -> Result<Revision, BackendError> {
        self.guarded(|this| {
            let transaction = this.database()?.begin_read().map_err(|error| this.failed(error))?;
            floor_of(&transaction).map_err(|error| this.failed(error))
        })
    }

    fn read(
        &mut self,
        after: Revision,
        visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        self.guarded(|this| {
            let transaction = this.database()?.begin_read().map_err(|error| this.failed(error))?;
            walk(&this.path, &this.unsynced, &transaction, after, visit)
        })
    }

    fn append(&mut self, records: &[Record]) -> Result<(), BackendError> {
        self.write(|transaction| put(transaction, records))
    }

    fn compact(&mut self, floor: Revision, dropped: &[Revision]) -> Result<(), BackendError> {
        self.write(|transaction| {
            let mut meta = transaction.open_table(META)?;
            let old = meta.get(FLOOR)?.map_or(0, |floor| floor.value());
            meta.insert(FLOOR, floor.0.max(old))?;
            let mut history = transaction.open_table(HISTORY)?;
            for revision in dropped {
                history.remove(revision.0)?;
            }
            Ok(())
        })
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        if self.unsynced.load(Ordering::Acquire) {
            return Err(BackendError::NotSynced("an earlier write may be lost".into()));
        }
        let path = self.path.clone();
        // The old handle closes first: two of them on one file would fight over its pages.
        let old = self.database.take();
        guard(&path, move || {
            drop(old);
            Ok(())
        })?;
        self.database = Some(guard(&path, || {
            let storage = (self.open)().map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    BackendError::Corrupted { path: path.clone(), detail: error.to_string() }
                }
                _ => BackendError::Failed(format!("{}: {error}", path.display())),
            })?;
            let database = Builder::new()
                .set_cache_size(CACHE_BYTES)
                .create_with_backend(Observed::new(storage, Arc::clone(&self.unsynced)))
                .map_err(|error| self.failed(error))?;
            check_format(&path, &self.unsynced, &database)?;
            Ok(database)
        })?);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Box<dyn Snapshot>, BackendError> {
        self.guarded(|this| {
            let transaction = this.database()?.begin_read().map_err(|error| this.failed(error))?;
            Ok(Box::new(RedbSnapshot {
                path: this.path.clone(),
                unsynced: Arc::clone(&this.unsynced),
                transaction,
            }) as Box<dyn Snapshot>)
        })
    }

    fn size_bytes(&mut self) -> Result<u64, BackendError> {
        fs::metadata(&self.path)
            .map(|metadata| metadata.len())
            .map_err(|error| BackendError::Failed(format!("{}: {error}", self.path.display())))
    }
}

impl fmt::Debug for RedbBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbBackend").field("path", &self.path).finish_non_exhaustive()
    }
}

struct RedbSnapshot {
    path: PathBuf,
    unsynced: Arc<AtomicBool>,
    transaction: ReadTransaction,
}

impl Snapshot for RedbSnapshot {
    fn write_to(self: Box<Self>, path: &Path) -> Result<(), BackendError> {
        guard(&self.path, || {
            let floor =
                floor_of(&self.transaction).map_err(|error| explain(&self.path, &self.unsynced, error))?;
            write_store(path, floor, |put| {
                walk(&self.path, &self.unsynced, &self.transaction, Revision::ZERO, &mut |record| {
                    put(&record)
                })
            })
        })
    }
}

/// Writes a new store to `path`: a file beside it is filled, synchronised and then given its name.
pub(super) fn write_store(
    path: &Path,
    floor: Revision,
    fill: impl FnOnce(&mut dyn FnMut(&Record) -> Result<(), BackendError>) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let failed = |error: &dyn fmt::Display| BackendError::Failed(format!("{}: {error}", path.display()));
    if path.try_exists().map_err(|error| failed(&error))? {
        return Err(BackendError::Exists { path: path.to_owned() });
    }
    let partial = file::partial(path);
    fill_file(&partial, floor, fill)
        .and_then(|()| file::publish(&partial, path).map_err(|error| failed(&error)))
        .inspect_err(|_| {
            // What is left of a file that could not be finished is only in the way.
            let _ = fs::remove_file(&partial);
        })
}

fn fill_file(
    path: &Path,
    floor: Revision,
    fill: impl FnOnce(&mut dyn FnMut(&Record) -> Result<(), BackendError>) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let failed = |error: &dyn fmt::Display| BackendError::Failed(format!("{}: {error}", path.display()));
    let file = file::private(path, true).map_err(|error| failed(&error))?;
    let mut builder = Builder::new();
    let database = builder.set_cache_size(CACHE_BYTES).create_file(file).map_err(|error| failed(&error))?;
    commit(&database, |transaction| {
        transaction.open_table(HISTORY)?;
        let mut meta = transaction.open_table(META)?;
        meta.insert(FORMAT, FORMAT_VERSION)?;
        meta.insert(FLOOR, floor.0)?;
        Link::NONE.write(&mut meta)
    })
    .map_err(|error| failed(&error))?;
    let mut waiting: Vec<Record> = Vec::new();
    let flush = |records: &mut Vec<Record>| {
        commit(&database, |transaction| put(transaction, records)).map_err(|error| failed(&error))?;
        records.clear();
        Ok(())
    };
    fill(&mut |record| {
        waiting.push(record.clone());
        if waiting.len() >= COPY_RECORDS { flush(&mut waiting) } else { Ok(()) }
    })?;
    flush(&mut waiting)
}

fn put(transaction: &::redb::WriteTransaction, records: &[Record]) -> Result<(), ::redb::Error> {
    let mut history = transaction.open_table(HISTORY)?;
    for record in records {
        record.encode(history.insert_reserve(record.revision.0, record.encoded_len())?.as_mut());
    }
    Ok(())
}

fn commit(
    database: &Database,
    change: impl FnOnce(&::redb::WriteTransaction) -> Result<(), ::redb::Error>,
) -> Result<(), ::redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    change(&transaction)?;
    Ok(transaction.commit()?)
}

fn floor_of(transaction: &ReadTransaction) -> Result<Revision, ::redb::Error> {
    Ok(Revision(transaction.open_table(META)?.get(FLOOR)?.map_or(0, |floor| floor.value())))
}

fn walk(
    path: &Path,
    unsynced: &AtomicBool,
    transaction: &ReadTransaction,
    after: Revision,
    visit: &mut dyn FnMut(Record) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let failed = |error: ::redb::Error| explain(path, unsynced, error);
    let history = transaction.open_table(HISTORY).map_err(|error| failed(error.into()))?;
    for item in history.range(after.next().0..).map_err(|error| failed(error.into()))? {
        let (revision, bytes) = item.map_err(|error| failed(error.into()))?;
        let record = Record::decode(Revision(revision.value()), bytes.value())
            .map_err(|detail| BackendError::Corrupted { path: path.to_owned(), detail })?;
        visit(record)?;
    }
    Ok(())
}

/// Refuses a store of a newer version; gives a new one its tables and its format.
fn check_format(path: &Path, unsynced: &AtomicBool, database: &Database) -> Result<(), BackendError> {
    let failed = |error: ::redb::Error| explain(path, unsynced, error);
    let transaction = database.begin_read().map_err(|error| failed(error.into()))?;
    let found = match transaction.open_table(META) {
        Ok(meta) => meta.get(FORMAT).map_err(|error| failed(error.into()))?.map(|format| format.value()),
        Err(TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(failed(error.into())),
    };
    match found {
        Some(FORMAT_VERSION | FORMAT_UNTOLD) => Ok(()),
        Some(found) if found > FORMAT_VERSION => {
            Err(BackendError::Newer { path: path.to_owned(), found, known: FORMAT_VERSION })
        }
        Some(FORMAT_FIRST) => {
            drop(transaction);
            commit(database, |transaction| {
                let mut meta = transaction.open_table(META)?;
                meta.insert(FORMAT, FORMAT_VERSION)?;
                Link::NONE.write(&mut meta)
            })
            .map_err(failed)
        }
        Some(found) => Err(BackendError::Corrupted {
            path: path.to_owned(),
            detail: format!("there never was a format {found}"),
        }),
        None => {
            drop(transaction);
            let tables = database
                .begin_read()
                .map_err(|error| failed(error.into()))?
                .list_tables()
                .map_err(|error| failed(error.into()))?
                .count();
            if tables > 0 {
                return Err(BackendError::Corrupted {
                    path: path.to_owned(),
                    detail: "it is a database of another program".into(),
                });
            }
            commit(database, |transaction| {
                transaction.open_table(HISTORY)?;
                let mut meta = transaction.open_table(META)?;
                meta.insert(FORMAT, FORMAT_VERSION)?;
                Link::NONE.write(&mut meta)
            })
            .map_err(failed)
        }
    }
}

fn explain(path: &Path, unsynced: &AtomicBool, error: ::redb::Error) -> BackendError {
    if unsynced.load(Ordering::Acquire) {
        return BackendError::NotSynced(error.to_string());
    }
    let corrupted = |detail: String| BackendError::Corrupted { path: path.to_owned(), detail };
    match error {
        ::redb::Error::DatabaseAlreadyOpen => BackendError::InUse { path: path.to_owned() },
        ::redb::Error::UpgradeRequired(format) => {
            corrupted(format!("its file format {format} is of an older engine"))
        }
        ::redb::Error::Corrupted(detail) => corrupted(detail),
        ::redb::Error::Io(error)
            if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            corrupted(error.to_string())
        }
        error @ (::redb::Error::TableTypeMismatch { .. }
        | ::redb::Error::TableIsMultimap(_)
        | ::redb::Error::TableDoesNotExist(_)
        | ::redb::Error::RepairAborted) => corrupted(error.to_string()),
        error => BackendError::Failed(format!("{}: {error}", path.display())),
    }
}
