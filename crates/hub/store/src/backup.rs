//! Putting a backup back.
//!
//! Owns the check of a backup and its way into a data directory. It never touches the backup itself, and never destroys
//! a store that is there.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::redb::backends::FileBackend;

use crate::backend::{Backend, FILE_NAME, RedbBackend};
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
    let path = directory.join(FILE_NAME);
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", path.display()));
    // There will be keys in it.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed(&error))?;
    let _lock = file::lock(directory, &path)?;
    let there = path.try_exists().map_err(|error| failed(&error))?;
    if there && !replace {
        return Err(BackendError::Exists { path }.into());
    }
    let partial = file::partial(&path);
    // A store that is replaced may have been restored from this very backup and have gone on since. One that cannot be
    // read tells nothing; it is why backups are made.
    let past = there.then(|| read_copy(&path, &partial).ok()).flatten().map(|(_, state)| state.revision());
    let restored = check_copy(backup, &partial, past.unwrap_or(Revision::ZERO)).inspect_err(|_| {
        // What is left of a copy that cannot be used is only in the way.
        let _ = fs::remove_file(&partial);
    })?;
    let aside = if there { Some(second_name(&path).map_err(|error| failed(&error))?) } else { None };
    file::publish(&partial, &path).map_err(|error| failed(&error))?;
    Ok((restored, aside))
}

/// Gives the store a second name, the first that is free. The new store then takes its first name in one step, so that
/// there is one at every moment.
fn second_name(path: &Path) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    loop {
        let aside = path.with_file_name(format!("{FILE_NAME}.replaced-{number}"));
        match fs::hard_link(path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            linked => return linked.map(|()| aside),
        }
    }
}

/// Copies `backup` to `partial`, reads all of it, and gives it a revision that no client has seen, neither of the store it
/// was made of nor of one that has come as far as `past`.
fn check_copy(backup: &Path, partial: &Path, past: Revision) -> Result<Restored, StoreError> {
    let (mut copy, state) = read_copy(backup, partial)?;
    let backup_revision = state.revision();
    let revision = Revision(backup_revision.0.max(past.0).saturating_add(RESTORE_GAP));
    copy.compact(revision, &[])?;
    drop(copy);
    let objects = state.shelves().iter().map(|(_, shelf)| shelf.read().entries.len()).sum();
    Ok(Restored { backup_revision, revision, objects })
}

/// Copies a store to `partial` and reads all of it there: opening one may write to it.
fn read_copy(store: &Path, partial: &Path) -> Result<(RedbBackend, Arc<State>), StoreError> {
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", store.display()));
    let mut from = File::open(store).map_err(|error| failed(&error))?;
    let mut to = file::private(partial, true).map_err(|error| failed(&error))?;
    if io::copy(&mut from, &mut to).map_err(|error| failed(&error))? == 0 {
        // The engine would take an empty file for a new store.
        return Err(BackendError::Corrupted { path: store.to_owned(), detail: "it is empty".into() }.into());
    }
    drop(to);

    let storage = partial.to_owned();
    let mut copy = RedbBackend::with_storage(
        store,
        Box::new(move || {
            let file = OpenOptions::new().read(true).write(true).open(&storage)?;
            Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
        }),
    )?;
    let floor = copy.floor()?;
    let state = Arc::new(State::new(floor, HistoryOptions::default()));
    let (mut names, mut trail) = (Names::default(), Trail::default());
    Replay::new(&state, &mut names, &mut trail, floor, Revision::ZERO).run(&mut copy)?;
    Ok((copy, state))
}
