//! Which files to read, and their text.
//!
//! Owns walking folders and reading files and standard input within limits. Never interprets what it read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::problem::{Notice, Problem};

/// Bytes of one file: a fleet of ten thousand clusters with all their status is about half of this.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 20;

/// Bytes of all files of one run together.
pub(super) const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Files of one run.
pub(super) const FILES_MAX: usize = 100_000;

/// Folders inside folders. Links to folders are not followed, so this only bounds real trees.
pub(super) const FOLDER_DEPTH_MAX: usize = 64;

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// How a file came to be read, which decides what a document that is no Kubernetes object means in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user named it: everything in it is meant.
    Named,
    /// It lay in a folder the user named: it may be something else's.
    Found,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The name shown in messages.
    pub name: Arc<str>,
    /// Where its text is; nothing for standard input.
    pub path: Option<PathBuf>,
    pub origin: Origin,
}

/// Lists the files behind the given paths: a file is itself, a folder all manifests below it, sorted by path.
/// What is passed over in a folder although it is named like a manifest is told.
pub(super) fn gather(
    paths: &[PathBuf],
    notices: &mut Vec<Notice>,
    problems: &mut Vec<Problem>,
) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for path in paths {
        let name: Arc<str> = path.to_string_lossy().into();
        if path.as_os_str() == STDIN {
            if sources.iter().any(|s| s.path.is_none()) {
                problems.push(Problem::of_file(&name, "standard input can be read once only"));
            } else {
                sources.push(Source { name: "<stdin>".into(), path: None, origin: Origin::Named });
            }
            continue;
        }
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                let before = sources.len();
                walk(path, 0, &mut sources, notices, problems);
                if sources.len() == before {
                    problems.push(Problem::of_file(&name, "no *.yaml, *.yml or *.json file in this folder"));
                }
            }
            Ok(_) => sources.push(Source { name, path: Some(path.clone()), origin: Origin::Named }),
            Err(error) => problems.push(Problem::of_file(&name, reason(&error))),
        }
        if sources.len() > FILES_MAX {
            problems.push(Problem::of_file(&name_of(path), format!("more than {FILES_MAX} files")));
            sources.truncate(FILES_MAX);
            break;
        }
    }
    sources
}

fn name_of(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Recursion is bounded by [`FOLDER_DEPTH_MAX`].
fn walk(
    folder: &Path,
    depth: usize,
    sources: &mut Vec<Source>,
    notices: &mut Vec<Notice>,
    problems: &mut Vec<Problem>,
) {
    if depth >= FOLDER_DEPTH_MAX {
        problems.push(Problem::of_file(
            &name_of(folder),
            format!("folders nested deeper than {FOLDER_DEPTH_MAX}"),
        ));
        return;
    }
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => return problems.push(Problem::of_file(&name_of(folder), reason(&error))),
    };
    let mut entries: Vec<_> = entries.into_iter().map(|entry| (entry.path(), entry)).collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, entry) in entries {
        if sources.len() > FILES_MAX {
            return;
        }
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let is_real_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_real_folder {
            walk(&path, depth + 1, sources, notices, problems);
        } else if is_manifest(&path) {
            // Follows links: a link to a file is that file.
            match fs::metadata(&path) {
                Ok(meta) if meta.is_file() => {
                    sources.push(Source { name: name_of(&path), path: Some(path), origin: Origin::Found });
                }
                Ok(_) => {}
                Err(error) => {
                    let why = match error.kind() {
                        io::ErrorKind::NotFound => "a link that leads nowhere".to_owned(),
                        _ => reason(&error),
                    };
                    notices.push(Notice(Problem::of_file(&name_of(&path), format!("skipped, {why}"))));
                }
            }
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// Reads texts one after the other, counting what was read so far.
pub(super) struct Texts<'s> {
    stdin: &'s mut dyn Read,
    bytes_left: u64,
}

impl<'s> Texts<'s> {
    pub(super) fn new(stdin: &'s mut dyn Read) -> Self {
        Self { stdin, bytes_left: INPUT_BYTES_MAX }
    }

    /// The text of one source.
    pub(super) fn read(&mut self, source: &Source) -> Result<String, Problem> {
        let problem = |message: String| Problem::of_file(&source.name, message);
        let mut bytes = Vec::new();
        let outcome = match &source.path {
            Some(path) => {
                File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
            }
            None => self.stdin.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
        };
        outcome.map_err(|error| problem(reason(&error)))?;
        let length = bytes.len() as u64;
        if length > FILE_BYTES_MAX {
            return Err(problem(format!("larger than {} MiB: split it", FILE_BYTES_MAX >> 20)));
        }
        self.bytes_left = self
            .bytes_left
            .checked_sub(length)
            .ok_or_else(|| problem(format!("more than {} MiB of input in one run", INPUT_BYTES_MAX >> 20)))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].split(|b| *b == b'\n').count();
            Problem { line: u32::try_from(line).ok(), ..problem("not UTF-8 text: save it as UTF-8".into()) }
        })
    }
}

/// The operating system's reason in this program's wording: lower case, without the error number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "is a folder".into(),
        _ => format!("cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf], root: &Path) -> Vec<String> {
        let (mut notices, mut problems) = (Vec::new(), Vec::new());
        let sources = gather(paths, &mut notices, &mut problems);
        assert_eq!((notices, problems), (vec![], vec![]));
        let short =
            |s: &Source| s.path.as_ref().unwrap().strip_prefix(root).unwrap().to_string_lossy().into_owned();
        sources.iter().map(short).collect()
    }

    #[test]
    fn a_folder_gives_its_manifests_sorted_and_nothing_hidden() {
        let dir = tempfile::tempdir().unwrap();
        for file in
            ["b.yml", "a.yaml", "sub/c.json", "sub/.hidden.yaml", ".git/d.yaml", "note.txt", "sub/E.YAML"]
        {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(
            names(&[dir.path().to_owned()], dir.path()),
            ["a.yaml", "b.yml", "sub/E.YAML", "sub/c.json"]
        );
        assert_eq!(names(&[dir.path().join("note.txt")], dir.path()), ["note.txt"]);
    }

    #[test]
    fn missing_paths_and_empty_folders_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        let mut problems = Vec::new();
        gather(&[dir.path().join("none"), dir.path().to_owned()], &mut Vec::new(), &mut problems);
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0].message, "no such file or folder");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_told_and_one_to_a_file_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("real.yaml"), "").unwrap();
        for (link, target) in
            [("good.yaml", "real.yaml"), ("gone.yaml", "nowhere.yaml"), ("gone.txt", "nowhere")]
        {
            std::os::unix::fs::symlink(target, dir.path().join(link)).unwrap();
        }
        let (mut notices, mut problems) = (Vec::new(), Vec::new());
        let sources = gather(&[dir.path().to_owned()], &mut notices, &mut problems);
        assert_eq!((sources.len(), problems), (2, vec![]));
        let told: Vec<String> = notices.iter().map(ToString::to_string).collect();
        let path = dir.path().join("gone.yaml");
        assert_eq!(told, [format!("notice: {}: skipped, a link that leads nowhere", path.display())]);
    }

    #[test]
    fn text_that_is_not_utf_8_names_its_line() {
        let source = Source { name: "<stdin>".into(), path: None, origin: Origin::Named };
        let problem = Texts::new(&mut &b"a: 1\nb: \xff"[..]).read(&source).unwrap_err();
        assert_eq!(problem.to_string(), "<stdin>:2: not UTF-8 text: save it as UTF-8");
    }

    #[test]
    fn an_endless_input_is_cut_off() {
        let source = Source { name: "<stdin>".into(), path: None, origin: Origin::Named };
        let problem = Texts::new(&mut io::repeat(b' ')).read(&source).unwrap_err();
        assert_eq!(problem.message, "larger than 64 MiB: split it");
    }
}
