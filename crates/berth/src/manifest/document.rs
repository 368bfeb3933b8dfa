//! One document that is no Kubernetes object: a configuration file.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::node::Positions;
use super::problem::{Position, Problem};
use super::source::{Origin, Source, Texts};
use super::{Budget, yaml};

/// A document and where its fields stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The file, as the user named it.
    pub file: Arc<str>,
    /// What it says; null when it is empty.
    pub value: Value,
    positions: Positions,
}

impl Document {
    /// Reads a file of YAML or JSON that holds at most one document.
    pub fn open(path: &Path) -> Result<Self, Vec<Problem>> {
        let file: Arc<str> = path.to_string_lossy().into();
        let source = Source { name: Arc::clone(&file), path: Some(path.to_owned()), origin: Origin::Named };
        let text = Texts::new(&mut std::io::empty()).read(&source).map_err(|problem| vec![problem])?;
        Self::parse(file, &text)
    }

    /// Reads a text.
    pub fn parse(file: Arc<str>, text: &str) -> Result<Self, Vec<Problem>> {
        let read = yaml::read(text, 0, &mut Budget::default());
        if !read.faults.is_empty() {
            let faults = read.faults.into_iter();
            return Err(faults.map(|one| Problem::at(&file, one.at, one.path, one.message)).collect());
        }
        let mut documents = read.documents.into_iter().filter(|document| !document.is_null());
        let first = documents.next();
        if let Some(second) = documents.next() {
            let message = "one document is read, and here begins another: remove it";
            return Err(vec![Problem::at(&file, second.at, "", message)]);
        }
        let (value, positions) = match first {
            Some(document) => document.split(),
            None => (Value::Null, Positions::default()),
        };
        Ok(Self { file, value, positions })
    }

    /// A fault of the field at `path`.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        let at = if self.value.is_null() { Position::START } else { self.positions.find(&self.value, path) };
        Problem::at(&self.file, at, path, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_knows_the_line_of_a_field() {
        let document = Document::parse("c.yaml".into(), "# first\na: 1\nb:\n  c: 2\n").unwrap();
        assert_eq!(document.problem("b.c", "wrong").to_string(), "c.yaml:4: b.c: wrong");
        assert_eq!(document.value["a"], 1);
    }

    #[test]
    fn nothing_is_a_document_and_two_are_too_many() {
        for empty in ["", "# nothing\n", "---\n"] {
            assert_eq!(Document::parse("c.yaml".into(), empty).unwrap().value, Value::Null);
        }
        let problems = Document::parse("c.yaml".into(), "a: 1\n---\nb: 2\n").unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].to_string().starts_with("c.yaml:3: one document is read"), "{}", problems[0]);
        assert!(Document::parse("c.yaml".into(), "a: [").is_err());
    }
}
