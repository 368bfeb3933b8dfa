//! Everything behind a set of paths, as objects.
//!
//! Owns the whole way from paths to objects, collecting every problem on the way rather than stopping at the first.
//! Never filters by kind: which kinds matter is the caller's to say.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use super::object::{self, Found, Object};
use super::problem::{Notice, Problem};
use super::source::{Origin, Source, Texts, gather};
use super::split::{Part, parts};
use super::{Budget, Read as ReadText, json, yaml};

/// What was read.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Every object, in the order of the files and of the documents in them.
    pub objects: Vec<Object>,
    /// What was passed over, and why that is no fault.
    pub notices: Vec<Notice>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Reads all objects behind `paths`; `-` is standard input.
pub fn load(paths: &[PathBuf], stdin: &mut dyn Read) -> Loaded {
    let mut loaded = Loaded::default();
    let mut budget = Budget::default();
    let mut texts = Texts::new(stdin);
    for source in gather(paths, &mut loaded.notices, &mut loaded.problems) {
        match texts.read(&source) {
            Ok(text) => read_source(&source, &text, &mut budget, &mut loaded),
            Err(problem) => loaded.problems.push(problem),
        }
    }
    loaded
}

/// Reads the objects of one text that is in memory already, and adds them to `loaded`.
pub fn load_text(name: Arc<str>, text: &str, loaded: &mut Loaded) {
    let source = Source { name, path: None, origin: Origin::Named };
    read_source(&source, text, &mut Budget::default(), loaded);
}

fn read_source(source: &Source, text: &str, budget: &mut Budget, loaded: &mut Loaded) {
    for part in parts(text) {
        let read = read_part(source, part, budget);
        for fault in read.faults {
            loaded.problems.push(Problem::at(&source.name, fault.at, fault.path, fault.message));
        }
        let mut found = Vec::new();
        for document in read.documents {
            object::open(document, &source.name, &mut found, &mut loaded.problems);
        }
        for found in found {
            match found {
                Found::Object(object) => loaded.objects.push(*object),
                Found::Foreign(at) => {
                    let message = "not a Kubernetes object: it has neither apiVersion nor kind";
                    match source.origin {
                        Origin::Named => loaded.problems.push(Problem::at(&source.name, at, "", message)),
                        Origin::Found => {
                            let message = format!("skipped, {message}");
                            loaded.notices.push(Notice(Problem::at(&source.name, at, "", message)));
                        }
                    }
                }
            }
        }
    }
}

/// What looks like JSON is read as JSON; if that fails it may still be YAML in flow style.
fn read_part(source: &Source, part: Part<'_>, budget: &mut Budget) -> ReadText {
    if json::looks_like_json(part.text) {
        let fault = match json::read(part.text, part.lines_before, budget) {
            Ok(read) => return read,
            Err(fault) => fault,
        };
        let is_json_file = source.name.to_ascii_lowercase().ends_with(".json");
        if is_json_file {
            return ReadText { documents: Vec::new(), faults: vec![fault] };
        }
    }
    yaml::read(part.text, part.lines_before, budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loaded(text: &str) -> Loaded {
        load(&["-".into()], &mut text.as_bytes())
    }

    fn shown<T: ToString>(items: &[T]) -> Vec<String> {
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_stream_gives_its_objects_and_skips_what_is_empty() {
        let text = "# only a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\n~\n---\n{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"b\"}}\n";
        let loaded = loaded(text);
        assert_eq!(shown(&loaded.problems), [] as [String; 0]);
        let titles: Vec<_> = loaded.objects.iter().map(Object::title).collect();
        assert_eq!(titles, ["ConfigMap a", "Secret b"]);
    }

    #[test]
    fn lists_are_opened_and_items_keep_their_path() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {name: a}\n- apiVersion: x/v1\n  kind: BList\n  items:\n  - metadata:\n      name: b\n    spec: 3\n- 7\n";
        let loaded = loaded(text);
        let titles: Vec<_> = loaded.objects.iter().map(Object::title).collect();
        assert_eq!(titles, ["A a", "B b"]);
        assert_eq!(loaded.objects[1].api_version, "x/v1");
        assert_eq!(loaded.objects[1].value["kind"], "B");
        let problem = loaded.objects[1].problem("spec", "expected an object");
        assert_eq!(problem.to_string(), "<stdin>:12: items[1].items[0].spec: expected an object");
        assert_eq!(shown(&loaded.problems), ["<stdin>:13: items[2]: expected an object"]);
    }

    #[test]
    fn every_fault_of_every_document_is_collected() {
        let text = "a: [\n---\napiVersion: v1\n---\nkind: 5\napiVersion: v1\n---\nx: 1\n---\napiVersion: v1\nkind: A\nkind: B\n";
        assert_eq!(
            shown(&loaded(text).problems),
            [
                "<stdin>:2: not valid YAML: while parsing a node, did not find expected node content",
                "<stdin>:3: kind: required, and missing",
                "<stdin>:5: kind: expected a word such as Placement",
                "<stdin>:8: not a Kubernetes object: it has neither apiVersion nor kind",
                "<stdin>:12: kind: the key is given twice, first on line 11: keep one",
            ]
        );
    }

    #[test]
    fn a_foreign_document_is_a_notice_in_a_folder_and_a_problem_when_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("values.yaml");
        std::fs::write(&file, "\nresources:\n- a.yaml\n").unwrap();
        let in_folder = load(&[dir.path().into()], &mut std::io::empty());
        assert!(in_folder.problems.is_empty());
        assert!(in_folder.notices[0].to_string().ends_with(
            "values.yaml:2: skipped, not a Kubernetes object: it has neither apiVersion nor kind"
        ));
        assert_eq!(load(&[file], &mut std::io::empty()).problems.len(), 1);
    }

    proptest! {
        #[test]
        fn random_text_never_panics(text in any::<String>()) {
            loaded(&text);
        }

        #[test]
        fn random_yaml_like_text_never_panics(text in "([ \\-\\[\\]{}:,#&*!|>'\"%@`?~\n\ta-c0-2.]|---\n|: |- |&a |\\*a |<<: |!!|\\.\\.\\.\n|\r\n|\u{85}|é){0,60}") {
            loaded(&text);
        }

        #[test]
        fn random_json_like_text_never_panics(text in "\\{([ \\[\\]{}:,\"\\\\\nu0-9a-e.+-]|\"a\":|true|null|é){0,60}") {
            loaded(&text);
        }
    }
}
