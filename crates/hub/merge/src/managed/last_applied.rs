//! The annotation in which `kubectl apply` remembers what it applied, when applying was done by the client.
//!
//! An object that was managed that way comes over without conflicts: what the annotation says and the object still has
//! is the applier's own.

use serde_json::Value;

use super::object_type::ObjectType;
use super::writer::Writer;
use crate::fields::FieldSet;
use crate::typed::{Duplicates, compare, extract, validate};

/// Where the configuration is remembered.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The one manager this concerns.
pub(super) const KUBECTL: &str = "kubectl";

/// All annotations of an object together, in bytes of names and values.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

fn remembered(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(LAST_APPLIED_ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields that the remembered configuration has and the live object still has unchanged; `None` where nothing (or
/// nothing that can be read) is remembered.
pub(super) fn still_applied(
    live: &Value,
    of: &ObjectType<'_>,
    writer: &Writer<'_>,
) -> Option<FieldSet<'static>> {
    let of = of.at(writer.api_version, writer.api_version)?;
    let remembered: Value = serde_json::from_str(remembered(live)?).ok()?;
    if remembered.get("kind").is_none() || remembered.get("apiVersion")?.as_str()? != writer.api_version {
        return None;
    }
    validate(live, of, Duplicates::Refused).ok()?;
    validate(&remembered, of, Duplicates::Refused).ok()?;
    let comparison = compare(&remembered, live, of).ok()?;
    let kept = extract(&remembered, of)
        .difference(&comparison.modified)
        .difference(&comparison.added)
        .difference(&comparison.removed);
    Some(kept.into_owned())
}

/// Keeps the annotation in step with what was applied, where there is one. An object whose annotations would become too
/// large goes without it.
pub(super) fn remember(object: &mut Value, config: &Value) {
    if remembered(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
    let text = encoded(&config);
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(LAST_APPLIED_ANNOTATION.to_owned(), Value::from(text));
    let bytes: usize =
        annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > MAX_ANNOTATIONS_BYTES {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
}

/// The text as the client's encoder writes it: one line with a line end, and `<`, `>`, `&` escaped.
fn encoded(config: &Value) -> String {
    let mut text = String::new();
    for letter in config.to_string().chars() {
        match letter {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            letter => text.push(letter),
        }
    }
    text.push('\n');
    text
}
