//! The engine is pure: nothing it is built from does I/O, and nothing in it reads a clock or draws lots.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Crates that would make a decision depend on more than its arguments, or bring a network with them.
const UNWANTED: &[&str] = &[
    "async-std",
    "fastrand",
    "h2",
    "hyper",
    "kube-client",
    "kube-runtime",
    "mio",
    "rand",
    "rand_core",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "tower",
    "tracing-subscriber",
];

/// Words that read a clock, draw lots, or reach outside the process.
const FORBIDDEN: &[&str] = &[
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "thread::spawn",
    "thread_rng",
    "getrandom",
];

/// The packages the engine is built from on this machine, itself included, development aside.
fn closure() -> BTreeSet<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--package", env!("CARGO_PKG_NAME"), "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(ToOwned::to_owned).collect()
}

#[test]
fn nothing_the_engine_is_built_from_does_io_or_draws_lots() {
    let closure = closure();
    assert!(closure.contains("berth-api") && closure.contains("roaring"), "{closure:?}");
    let found: Vec<_> = UNWANTED.iter().filter(|unwanted| closure.contains(**unwanted)).collect();
    assert!(found.is_empty(), "{found:?} among {closure:?}");
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_source_reads_a_clock_draws_lots_or_reaches_outside() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 20);
    for (path, text) in files {
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{path} says {word}");
        }
    }
}
