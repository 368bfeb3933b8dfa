//! The text of a story.
//!
//! ```text
//! # What it is about.
//! % kubectl apply -f crd.yaml        a step behind the curtain: it must succeed, and is not shown
//! $ kubectl get pods                 a step: shown with its output and exit code
//! $ kubectl apply -f - <<'END'       everything up to the next step belongs to it
//! kind: ConfigMap
//! END
//! ```

use std::path::{Path, PathBuf};

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// What the shell runs.
    pub(crate) script: String,
    /// Whether the audience sees it.
    pub(crate) shown: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/stories")
}

/// The names of all stories.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let stories = files.filter(|path| path.extension().is_some_and(|extension| extension == "story"));
    stories.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The steps of a story.
pub(crate) fn read(name: &str) -> Vec<Step> {
    parse(&std::fs::read_to_string(folder().join(format!("{name}.story"))).unwrap())
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(script) = line.strip_prefix("$ ") {
            steps.push(Step { script: script.to_owned(), shown: true });
        } else if let Some(script) = line.strip_prefix("% ") {
            steps.push(Step { script: script.to_owned(), shown: false });
        } else if line.starts_with("# ") || line.is_empty() {
            // A word to the reader of the story.
        } else {
            let step = steps.last_mut().expect("a story begins with a step");
            step.script.push('\n');
            step.script.push_str(line);
        }
    }
    steps
}

#[test]
fn a_step_reaches_to_the_next_one() {
    let steps = parse("# Two.\n% one\n\n$ two <<END\nhello\nEND\n$ three\n");
    let step = |script: &str, shown| Step { script: script.to_owned(), shown };
    assert_eq!(steps, [step("one", false), step("two <<END\nhello\nEND", true), step("three", true)]);
}
