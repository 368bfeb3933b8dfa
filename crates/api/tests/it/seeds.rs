//! The YAML of the documents the project began with applies as written.

use berth_api::{Object, ReadError, names::GROUP};
use serde_json::Value;

use crate::{accepted::round_trip, shared};

/// The fenced YAML blocks of a document, with the indentation of their fence removed.
fn yaml_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut open {
            None if line.trim() == "```yaml" => open = Some((indent, String::new())),
            Some(_) if line.trim() == "```" => blocks.extend(open.take().map(|(_, block)| block)),
            Some((indent, block)) => {
                block.push_str(line.get(*indent..).unwrap_or_default());
                block.push('\n');
            }
            None => {}
        }
    }
    blocks
}

fn documents() -> Vec<(String, Value)> {
    let files = shared::files("seeds", ".md");
    files
        .iter()
        .flat_map(|(name, text)| {
            yaml_blocks(text).into_iter().map(move |block| (name.clone(), shared::yaml(&block)))
        })
        .collect()
}

/// The one document that is wrong as written: a placeholder for a namespace, and a score without a name.
fn is_placeholder(document: &Value) -> bool {
    document["metadata"]["namespace"].is_object()
}

#[test]
fn every_document_of_our_group_is_accepted_and_written_back() {
    let documents = documents();
    let ours: Vec<_> = documents
        .iter()
        .filter(|(_, document)| {
            document["apiVersion"].as_str().unwrap_or_default().starts_with(&format!("{GROUP}/"))
        })
        .filter(|(_, document)| !is_placeholder(document))
        .collect();
    for (file, document) in &ours {
        if let Err(error) = round_trip(document) {
            panic!("{file}: {error}\n{document:#}");
        }
        assert!(Object::read(document.clone()).unwrap().unknown_fields.is_empty(), "{file}: {document:#}");
    }
    assert!(documents.is_empty() || ours.len() == 16, "{} documents found", ours.len());
}

#[test]
fn the_document_with_placeholders_is_refused_for_exactly_what_is_wrong_with_it() {
    let documents = documents();
    let wrong: Vec<_> = documents.into_iter().filter(|(_, document)| is_placeholder(document)).collect();
    for (_, document) in &wrong {
        let Err(ReadError::Invalid { problems, .. }) = Object::read(document.clone()) else {
            panic!("accepted: {document:#}");
        };
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "metadata.namespace: Invalid value: {\"managed cluster namespace\":null}: must be a string",
                "status.scores[1].name: Required value",
            ]
        );
    }
    assert!(wrong.len() <= 1);
}

#[test]
fn placements_of_the_first_draft_apply_in_our_group() {
    let mut found = 0;
    for (file, mut document) in documents() {
        let draft = document["apiVersion"].as_str().unwrap_or_default().starts_with("placement.");
        if draft && document["kind"] == "Placement" {
            document["apiVersion"] = format!("{GROUP}/v1alpha1").into();
            if let Err(error) = round_trip(&document) {
                panic!("{file}: {error}");
            }
            found += 1;
        }
    }
    assert!(found == 0 || found == 2, "{found} placements found");
}
