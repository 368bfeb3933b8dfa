//! Private files: written whole or not at all, readable by their owner only.
//!
//! Owns atomic replacement and modes. Never interprets what it writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Larger than any key or certificate file of ours, so that a wrong path cannot fill memory.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Creates a directory (and its parents) that only its owner may enter.
pub(crate) fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Takes away what others than its owner may do with a file or directory; whether there was anything. One that is not
/// there has nobody to be kept from.
#[cfg(unix)]
pub(crate) fn close_to_others(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mode = permissions.mode();
    let closed = mode & !0o077;
    if mode == closed {
        return Ok(false);
    }
    permissions.set_mode(closed);
    fs::set_permissions(path, permissions)?;
    Ok(true)
}

/// Reads a text file; `None` when it is not there.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("larger than {FILE_BYTES_MAX} bytes"),
        ));
    }
    Ok(Some(text))
}

/// Replaces `path` by `text`, mode 0600, durable when this returns.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    let temporary = dir.join(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    let result = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to report; a left-over temporary file does no harm.
        let _ = fs::remove_file(&temporary);
        return result;
    }
    File::open(dir)?.sync_all()
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // A left-over of a killed process with our process id must not stop us.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_private(&path, "one").unwrap();
        write_private(&path, "two").unwrap();
        assert_eq!(read_text(&path).unwrap().as_deref(), Some("two"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_absent_file_is_none_and_a_huge_one_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_text(&dir.path().join("x")).unwrap(), None);
        let big = dir.path().join("big");
        fs::write(&big, vec![b'a'; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(read_text(&big).is_err());
    }
}
