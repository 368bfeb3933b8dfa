//! Writes the definitions (CRDs) to a folder, one file each, or checks that the files there are up to date.
//!
//! ```text
//! cargo run -q -p berth-api --example crds -- deploy/crds           write
//! cargo run -q -p berth-api --example crds -- deploy/crds --check   name files that differ, exit 1 if any
//! ```

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::{Number, Value};

const HEADER: &str = "# Generated from crates/api; change the types there and run the crds example again.\n";

/// JSON with fields in alphabetical order, whatever map type JSON values are built with.
#[derive(Serialize)]
#[serde(untagged)]
enum Sorted {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Sorted>),
    Object(BTreeMap<String, Sorted>),
}

impl From<Value> for Sorted {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            // Limits are floats in the definition's type; whole ones are easier to read without a point.
            Value::Number(number) => Self::Number(
                number
                    .as_f64()
                    .filter(|float| number.is_f64() && float.fract() == 0.0)
                    .map_or(number, |float| (float as i64).into()),
            ),
            Value::String(value) => Self::String(value),
            Value::Array(entries) => Self::Array(entries.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.into_iter().map(|(name, field)| (name, Self::from(field))).collect())
            }
        }
    }
}

/// File name and content of every definition.
fn files() -> Result<BTreeMap<String, String>, Box<dyn std::error::Error>> {
    let mut files = BTreeMap::new();
    for crd in berth_api::crds() {
        let name = format!("{}.yaml", crd.metadata.name.as_deref().unwrap_or("unnamed"));
        let content = serde_saphyr::to_string(&Sorted::from(serde_json::to_value(&crd)?))?;
        files.insert(name, format!("{HEADER}{content}"));
    }
    Ok(files)
}

/// The files that are missing, differ, or do not belong there.
fn drifted(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<Vec<PathBuf>> {
    let mut drifted: Vec<PathBuf> = files
        .iter()
        .filter(|(name, content)| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(content))
        .map(|(name, _)| folder.join(name))
        .collect();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".cluster.open-cluster-management.io.yaml") && !files.contains_key(&name) {
                drifted.push(folder.join(name));
            }
        }
    }
    Ok(drifted)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (flags, folders): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let ([folder], [] | ["--check"]) =
        (&folders[..], &flags.iter().map(String::as_str).collect::<Vec<_>>()[..])
    else {
        writeln!(io::stderr(), "usage: crds FOLDER [--check]")?;
        return Ok(ExitCode::from(2));
    };
    let (folder, files) = (Path::new(folder), files()?);
    if flags.is_empty() {
        fs::create_dir_all(folder)?;
        for (name, content) in &files {
            fs::write(folder.join(name), content)?;
        }
        writeln!(io::stdout(), "wrote {} definitions to {}", files.len(), folder.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let drifted = drifted(folder, &files)?;
    for path in &drifted {
        writeln!(io::stderr(), "{} is out of date: run the crds example without --check", path.display())?;
    }
    Ok(if drifted.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
