//! Files that appear complete or not at all, and the lock of a data directory.
//!
//! Owns how files are made; it never knows what is in them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BackendError;

/// The name of the file whose lock says that the data directory is in use.
pub(crate) const LOCK_NAME: &str = "hub.lock";

/// How long a lock may be taken before the directory counts as in use, and how often is looked. Whoever had it may be just about
/// to end; and a program that is being started by them has all their files for a moment, locks included.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// Takes the lock of `directory`, which lasts as long as the file is held; `store` is named when it is taken already.
pub(crate) fn lock(directory: &Path, store: &Path) -> Result<File, BackendError> {
    let failed = |error: &io::Error| BackendError::Failed(format!("{}: {error}", directory.display()));
    let lock = private(&directory.join(LOCK_NAME), false).map_err(|error| failed(&error))?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => thread::sleep(LOCK_LOOK),
            Err(TryLockError::WouldBlock) => return Err(BackendError::InUse { path: store.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}

/// Where a file is filled before it gets its name.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}

/// Gives a finished file its name, durably.
pub(crate) fn publish(partial: &Path, path: &Path) -> io::Result<()> {
    File::open(partial)?.sync_all()?;
    fs::rename(partial, path)?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Opens a file that only its owner may read: objects hold secrets.
pub(crate) fn private(path: &Path, truncate: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(truncate);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}
