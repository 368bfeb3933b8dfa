//! Counts what agrees and shows what does not.

use std::fmt::Write as _;
use std::io::Read;

use serde_json::Value;

/// Disagreements shown before a test fails.
const SHOWN: usize = 8;

/// How a corpus went.
pub(crate) struct Report {
    name: &'static str,
    pub(crate) agreed: usize,
    disagreements: Vec<String>,
}

impl Report {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, agreed: 0, disagreements: Vec::new() }
    }

    /// Compares an outcome with what was observed.
    pub(crate) fn compare(&mut self, line: usize, vector: &Value, ours: &Value, theirs: &Value) -> bool {
        if ours == theirs {
            self.agreed += 1;
            return true;
        }
        if self.disagreements.len() < SHOWN {
            let mut shown = format!("line {}\n", line + 1);
            writeln!(shown, "  vector: {vector}").unwrap();
            differences("", ours, theirs, &mut shown);
            self.disagreements.push(shown);
        } else {
            self.disagreements.push(String::new());
        }
        false
    }

    /// Fails unless everything agreed and there was enough of it.
    pub(crate) fn finish(self, at_least: usize) {
        let (agreed, wrong) = (self.agreed, self.disagreements.len());
        assert!(
            wrong == 0,
            "{}: {agreed} agree, {wrong} do not:\n{}",
            self.name,
            self.disagreements.concat()
        );
        assert!(agreed >= at_least, "{}: only {agreed} vectors", self.name);
    }
}

/// Where two outcomes differ.
fn differences(place: &str, ours: &Value, theirs: &Value, into: &mut String) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let (left, right) = (left.get(name), right.get(name));
                if left == right {
                    continue;
                }
                let place = format!("{place}/{name}");
                match (left, right) {
                    (Some(left), Some(right)) => differences(&place, left, right, into),
                    (left, right) => writeln!(
                        into,
                        "  at {place}: ours {} theirs {}",
                        left.map_or_else(|| "nothing".to_owned(), ToString::to_string),
                        right.map_or_else(|| "nothing".to_owned(), ToString::to_string),
                    )
                    .unwrap(),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                if left != right {
                    differences(&format!("{place}/{index}"), left, right, into);
                }
            }
        }
        _ => writeln!(into, "  at {place}:\n    ours   {ours}\n    theirs {theirs}").unwrap(),
    }
}

/// The vectors of a file.
pub(crate) fn vectors(compressed: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
