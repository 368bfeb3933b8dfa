//! The temporary folder of a bed: removed when all went well, kept and named when not.

use std::{
    env, fs, io,
    io::Write,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::BedError;

/// Set to anything, it keeps the folders of beds whose tests passed, too.
const KEEP: &str = "BERTH_KEEP_BEDS";

/// Where a bed keeps its data, certificates and logs.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: AtomicBool,
}

impl Folder {
    pub(crate) fn new() -> Result<Self, BedError> {
        let path = tempfile::Builder::new()
            .prefix("berth-bed-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(BedError::system("make a temporary folder"))?
            .keep();
        Ok(Self { path, keep: AtomicBool::new(env::var_os(KEEP).is_some()) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder whatever follows: somebody will want to read its logs.
    pub(crate) fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.keep.load(Ordering::Relaxed)
    }

    /// Writes a file that only its owner may read: most of what a bed writes are keys.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.path.join(name);
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(BedError::system(format!("write {}", path.display())))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if thread::panicking() || *self.keep.get_mut() {
            // Not captured: the reader of a failed run needs the path even when the runner drops the output.
            let _ = writeln!(io::stderr(), "the bed's data and logs are kept in {}", self.path.display());
        } else {
            // A folder that cannot be removed is one more folder in the temporary directory, not a failed test.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_failed_test_is_kept_and_that_of_a_passed_one_is_not() {
        let kept = thread::spawn(|| {
            let folder = Folder::new().unwrap();
            folder.write("server.log", "what happened").unwrap();
            std::panic::resume_unwind(Box::new(folder.path().to_owned()));
        });
        let path = *kept.join().unwrap_err().downcast::<PathBuf>().unwrap();
        assert_eq!(fs::read_to_string(path.join("server.log")).unwrap(), "what happened");
        fs::remove_dir_all(path).unwrap();

        let passed = Folder::new().unwrap();
        let path = passed.path().to_owned();
        drop(passed);
        assert_eq!(path.exists(), env::var_os(KEEP).is_some());
    }
}
