//! Reference data beside the project, which may be absent.

use std::{fs, path::PathBuf};

use serde_json::Value;

/// Texts of the files in a folder of the reference data, by name; none, with a notice, when it is absent.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    let Ok(entries) = fs::read_dir(&path) else {
        eprintln!("skipped: no reference data in shared/{folder}");
        return Vec::new();
    };
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.ends_with(extension))
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The documents of a YAML text.
pub(crate) fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}
