//! Putting a backup back.
//!
//! Owns the check of a backup and its way into a data directory. It never touches the backup itself, and never destroys
//! a store that is there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::redb::backends::FileBackend;

use crate::aside::{self, Aside};
use crate::backend::{Backend, FILE_NAME, JOURNAL_NAME, Link, RedbBackend, highest_revision};
use crate::error::{BackendError, StoreError};
use crate::file;
use crate::options::HistoryOptions;
use crate::replay::{Names, Replay};
use crate::revision::Revision;
use crate::state::State;
use crate::trail::Trail;

/// Revisions that a restored store leaves out. Clients may have seen revisions after the backup; a store that handed them
/// out again for other changes would mislead them. Nobody writes this much between a backup and its restoration.
pub const RESTORE_GAP: u64 = 1_000_000_000;

/// What every store begins with: the engine's mark.
const MARK: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The newest revision in the backup.
    pub backup_revision: Revision,
    /// The revision of the restored store. Every earlier one counts as compacted: watchers list anew.
    pub revision: Revision,
    /// Objects in it.
    pub objects: usize,
}

/// Checks `backup` completely and makes it the store of `directory`, which must not have one.
pub fn restore(backup: &Path, directory: &Path) -> Result<Restored, StoreError> {
    put_back(backup, directory, false).map(|(restored, _)| restored)
}

/// Checks `backup` completely and puts it in the place of the store of `directory`, if there is one. That is kept in the
/// same directory under the name that is returned.
pub fn restore_over(backup: &Path, directory: &Path) -> Result<(Restored, Option<PathBuf>), StoreError> {
    put_back(backup, directory, true)
}

fn put_back(
    backup: &Path,
    directory: &Path,
    replace: bool,
) -> Result<(Restored, Option<PathBuf>), StoreError> {
    // Before anything is made or written: a slip in a name costs nothing.
    drop(open_store(backup)?);
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", directory.display()));
    let new = !directory.try_exists().map_err(|error| failed(&error))?;
    // There will be keys in it.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed(&error))?;
    put_into(backup, directory, replace).inspect_err(|_| {
        if new {
            // It holds nothing but the lock. Whoever can, finds it as it was.
            let _ = fs::remove_file(directory.join(file::LOCK_NAME)).and_then(|()| fs::remove_dir(directory));
        }
    })
}

fn put_into(
    backup: &Path,
    directory: &Path,
    replace: bool,
) -> Result<(Restored, Option<PathBuf>), StoreError> {
    let path = directory.join(FILE_NAME);
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", path.display()));
    let _lock = file::lock(directory, &path)?;
    let there = path.try_exists().map_err(|error| failed(&error))?;
    if there && !replace {
        return Err(BackendError::Exists { path }.into());
    }
    let partial = file::partial(&path);
    let past = past(directory, &partial).map_err(|error| failed(&error))?;
    let mut aside = Aside::default();
    let restored = check_copy(backup, &partial, past).and_then(|restored| {
        // Before the new store is seen: it must never meet the journal of another.
        aside = aside::put(directory).map_err(|error| failed(&error))?;
        file::publish(&partial, &path).map_err(|error| failed(&error))?;
        Ok(restored)
    });
    let restored = restored.inspect_err(|_| {
        // What is left of a copy that cannot be used is only in the way. Where it is gone it has become the store, and
        // the second name is the old one's only name.
        if fs::remove_file(&partial).is_ok() {
            aside::take_back(directory, &aside);
        }
    })?;
    Ok((restored, aside.store))
}

/// How far the store of `directory` may have come. It may have been restored from this very backup and have gone on since;
/// where it cannot be read, which is why backups are made, its journals tell.
fn past(directory: &Path, partial: &Path) -> io::Result<Revision> {
    let store = open_copy(&directory.join(FILE_NAME), partial).and_then(|copy| copy.head());
    let mut journals = aside::journals(directory)?;
    journals.push(directory.join(JOURNAL_NAME));
    let newest = journals.iter().map(|journal| highest_revision(journal)).max();
    Ok(newest.unwrap_or_default().max(store.unwrap_or_default()))
}

/// Opens what looks like a store. Anything but a regular file may never end, or never begin.
fn open_store(path: &Path) -> Result<File, BackendError> {
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", path.display()));
    let other = |detail: &str| BackendError::NoBackup { path: path.to_owned(), detail: detail.to_owned() };
    // Asked before it is opened as well: opening a pipe waits for a writer.
    if !fs::metadata(path).map_err(|error| failed(&error))?.is_file() {
        return Err(other("it is not a regular file"));
    }
    let mut file = File::open(path).map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return Err(other("it is not a regular file"));
    }
    let mut mark = [0; MARK.len()];
    match file.read_exact(&mut mark) {
        Ok(()) if mark == MARK => {}
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(failed(&error)),
        _ if file.metadata().is_ok_and(|metadata| metadata.len() == 0) => return Err(other("it is empty")),
        _ => return Err(other("it does not begin as one")),
    }
    file.rewind().map_err(|error| failed(&error))?;
    Ok(file)
}

/// Copies `backup` to `partial`, reads all of it, and gives it a revision that no client has seen, neither of the store it
/// was made of nor of one that has come as far as `past`.
fn check_copy(backup: &Path, partial: &Path, past: Revision) -> Result<Restored, StoreError> {
    let (mut copy, state) = read_copy(backup, partial)?;
    let backup_revision = state.revision();
    let revision = Revision(backup_revision.0.max(past.0).saturating_add(RESTORE_GAP));
    copy.compact(revision, &[])?;
    // It may be the file of a hub, with a journal of its own.
    copy.take_over(&[], Link::NONE)?;
    drop(copy);
    let objects = state.shelves().iter().map(|(_, shelf)| shelf.read().entries.len()).sum();
    Ok(Restored { backup_revision, revision, objects })
}

/// Copies a store to `partial` and reads all of it there.
fn read_copy(store: &Path, partial: &Path) -> Result<(RedbBackend, Arc<State>), StoreError> {
    let mut copy = open_copy(store, partial)?;
    let floor = copy.floor()?;
    let state = Arc::new(State::new(floor, HistoryOptions::default()));
    let (mut names, mut trail) = (Names::default(), Trail::default());
    Replay::new(&state, &mut names, &mut trail, floor, Revision::ZERO).run(&mut copy)?;
    Ok((copy, state))
}

/// Copies a store to `partial` and opens it there: opening one may write to it.
fn open_copy(store: &Path, partial: &Path) -> Result<RedbBackend, BackendError> {
    let failed = |error: &io::Error| {
        BackendError::Failed(format!("copying {} to {}: {error}", store.display(), partial.display()))
    };
    let from = open_store(store)?;
    let length = from.metadata().map_err(|error| failed(&error))?.len();
    let mut to = file::private(partial, true).map_err(|error| failed(&error))?;
    io::copy(&mut from.take(length), &mut to).map_err(|error| failed(&error))?;
    drop(to);

    let storage = partial.to_owned();
    RedbBackend::with_storage(
        store,
        Box::new(move || {
            let file = OpenOptions::new().read(true).write(true).open(&storage)?;
            Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
        }),
    )
}
