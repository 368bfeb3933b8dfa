//! The old store and its journal, kept beside a restored one.
//!
//! ```text
//! hub.redb ──> hub.redb.replaced-1
//! hub.log  ──> hub.redb.replaced-1.log
//! ```
//! Owns their names and the way there and back. It never looks into the files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::backend::{FILE_NAME, JOURNAL_NAME};

/// What was put aside.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// The other name of the store, if there was one.
    pub(crate) store: Option<PathBuf>,
    journal: Option<PathBuf>,
}

fn prefix() -> String {
    format!("{FILE_NAME}.replaced-")
}

/// The journals that were put aside in `directory`.
pub(crate) fn journals(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = prefix();
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let ours =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&prefix));
        if ours && path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether `journal`, which was put aside, went with the very store that `directory` has now: nothing else took its place.
pub(crate) fn is_of_store(journal: &Path, directory: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let store = identity(&directory.join(FILE_NAME));
    store.is_some() && store == identity(&journal.with_extension(""))
}

/// Gives the store of `directory` a second name, the first that is free, and the journal the one that goes with it, durably.
/// The store keeps its first name until another takes it in one step. The journal does not: no other store may find it.
pub(crate) fn put(directory: &Path) -> io::Result<Aside> {
    let mut aside = Aside::default();
    put_both(directory, &mut aside).inspect_err(|_| take_back(directory, &aside))?;
    Ok(aside)
}

fn put_both(directory: &Path, aside: &mut Aside) -> io::Result<()> {
    let mut number = 1_u32;
    let log = loop {
        let store = directory.join(format!("{}{number}", prefix()));
        let log = directory.join(format!("{}{number}.log", prefix()));
        number += 1;
        if store.try_exists()? || log.try_exists()? {
            continue;
        }
        match fs::hard_link(directory.join(FILE_NAME), &store) {
            Ok(()) => aside.store = Some(store),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        break log;
    };
    match fs::rename(directory.join(JOURNAL_NAME), &log) {
        Ok(()) => aside.journal = Some(log),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    File::open(directory)?.sync_all()
}

/// Makes everything as it was, as far as it can be: what stays aside is found there.
pub(crate) fn take_back(directory: &Path, aside: &Aside) {
    if let Some(journal) = &aside.journal {
        let _ = fs::rename(journal, directory.join(JOURNAL_NAME));
    }
    if let Some(store) = &aside.store {
        let _ = fs::remove_file(store);
    }
}
