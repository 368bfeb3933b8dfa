//! An object on its way into the store.
//!
//! Owns the one serialisation of an object. The revision is not known until the writer thread takes the write, so the
//! text is made without `metadata.resourceVersion` in the caller's task, and the revision is spliced in later by a copy.
//! It never validates what the object says.

use std::io::Write as _;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::meta::Meta;
use crate::revision::Revision;

/// The largest object that is taken, in bytes of JSON. Request bodies are limited to 3 MiB long before; this keeps every
/// position within an object in 32 bits, whatever the caller's limits are.
pub const OBJECT_BYTES_MAX: usize = 64 << 20;

/// Levels of nesting that are taken. The reader of stored JSON stops at 128; what it could not read again would be lost,
/// and an event puts one more level around an object.
pub const OBJECT_DEPTH_MAX: usize = 126;

/// Why an object cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The value, or its `metadata`, is not a JSON object.
    #[error("only a JSON object with an object as its metadata can be stored")]
    NotAnObject,
    /// The serialised object is over [`OBJECT_BYTES_MAX`].
    #[error("the object has {0} bytes; at most {OBJECT_BYTES_MAX} can be stored")]
    TooLarge(usize),
    /// The object is nested deeper than [`OBJECT_DEPTH_MAX`].
    #[error("the object is nested deeper than {OBJECT_DEPTH_MAX} levels")]
    TooDeep,
    /// A field of `metadata` has a shape that Kubernetes does not know, such as a label that is not a string.
    #[error("metadata cannot be read: {0}")]
    Metadata(String),
}

/// A serialised object that only lacks its `metadata.resourceVersion`.
#[derive(Clone, Debug)]
pub struct Draft {
    text: Vec<u8>,
    /// Where `"resourceVersion":"N"` goes.
    splice: usize,
    /// Whether members of `metadata` stand before and after that place.
    before: bool,
    after: bool,
    metadata: Range<usize>,
    meta: Meta,
}

impl Draft {
    /// Serialises `object`; a `metadata.resourceVersion` in it is left out.
    pub fn new(object: &Value) -> Result<Self, DraftError> {
        let Value::Object(members) = object else { return Err(DraftError::NotAnObject) };
        if !within(object, OBJECT_DEPTH_MAX) {
            return Err(DraftError::TooDeep);
        }
        let none = Map::new();
        let metadata = match members.get("metadata") {
            Some(Value::Object(metadata)) => metadata,
            None => &none,
            Some(_) => return Err(DraftError::NotAnObject),
        };
        let mut draft = Self {
            text: Vec::with_capacity(1024),
            splice: 0,
            before: false,
            after: false,
            metadata: 0..0,
            meta: Meta::default(),
        };
        draft.text.push(b'{');
        let mut seen = false;
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                draft.text.push(b',');
            }
            draft.json(name);
            draft.text.push(b':');
            if name == "metadata" {
                seen = true;
                draft.metadata(metadata);
            } else {
                draft.json(value);
            }
        }
        if !seen {
            draft.text.extend_from_slice(if members.is_empty() {
                b"\"metadata\":"
            } else {
                b",\"metadata\":"
            });
            draft.metadata(metadata);
        }
        draft.text.push(b'}');
        if draft.text.len() > OBJECT_BYTES_MAX {
            return Err(DraftError::TooLarge(draft.text.len()));
        }
        draft.meta = Meta::read(&draft.text, draft.metadata.clone()).map_err(DraftError::Metadata)?;
        Ok(draft)
    }

    /// The bytes this draft holds.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    fn json(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        serde_json::to_writer(&mut self.text, value).expect("writing a JSON value to memory cannot fail");
    }

    fn metadata(&mut self, metadata: &Map<String, Value>) {
        let start = self.text.len();
        self.text.push(b'{');
        self.splice = self.text.len();
        let mut first = true;
        for (name, value) in metadata {
            if name == "resourceVersion" {
                continue;
            }
            if !first {
                self.text.push(b',');
            }
            first = false;
            self.json(name);
            self.text.push(b':');
            self.json(value);
            // The revision goes where it stands in sorted order: behind the last name that sorts before it.
            if name.as_str() < "resourceVersion" {
                self.splice = self.text.len();
                self.before = true;
                self.after = false;
            } else {
                self.after = true;
            }
        }
        self.text.push(b'}');
        self.metadata = start..self.text.len();
    }

    /// The finished text at `revision`, where its metadata lies, and what the metadata says.
    pub(crate) fn finish(self, revision: Revision) -> (Bytes, Range<usize>, Meta) {
        let mut part = [0_u8; 48];
        let mut rest = &mut part[..];
        // The separator on the far side is already in the text when members stand on both sides.
        let lead = if self.before { "," } else { "" };
        let trail = if self.after && !self.before { "," } else { "" };
        write!(rest, "{lead}\"resourceVersion\":\"{revision}\"{trail}")
            .expect("a revision has at most twenty digits");
        let free = rest.len();
        let part = &part[..part.len() - free];

        let mut text = Vec::with_capacity(self.text.len() + part.len());
        text.extend_from_slice(&self.text[..self.splice]);
        text.extend_from_slice(part);
        text.extend_from_slice(&self.text[self.splice..]);
        let mut meta = self.meta;
        meta.shift(self.splice, part.len());
        (text.into(), self.metadata.start..self.metadata.end + part.len(), meta)
    }
}

/// Whether a value stays within so many levels.
fn within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| within(item, levels - 1)),
        Value::Object(members) => levels > 0 && members.values().all(|member| within(member, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finished(object: &Value) -> (Value, Bytes, Meta) {
        let (json, range, meta) = Draft::new(object).unwrap().finish(Revision(17));
        assert_eq!(Meta::read(&json, range).unwrap(), meta, "positions move with the splice");
        (serde_json::from_slice(&json).unwrap(), json, meta)
    }

    #[test]
    fn the_revision_is_spliced_in_wherever_metadata_stands() {
        for metadata in [
            json!({}),
            json!({"name": "a"}),
            json!({"uid": "u"}),
            json!({"name": "a", "uid": "u", "labels": {"x": "y"}}),
            json!({"name": "a", "resourceVersion": "3"}),
        ] {
            let object = json!({"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": {"a": 1}});
            let mut expected = object.clone();
            expected["metadata"]["resourceVersion"] = json!("17");
            let (value, json, _) = finished(&object);
            assert_eq!(value, expected);
            assert_eq!(json, serde_json::to_vec(&expected).unwrap(), "keys stay sorted");
        }
    }

    #[test]
    fn an_object_without_metadata_gets_one() {
        assert_eq!(finished(&json!({})).0, json!({"metadata": {"resourceVersion": "17"}}));
        assert_eq!(finished(&json!({"a": 1})).0, json!({"a": 1, "metadata": {"resourceVersion": "17"}}));
    }

    #[test]
    fn what_is_nested_too_deep_to_be_read_again_is_refused() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        assert!(finished(&nested(OBJECT_DEPTH_MAX)).0.is_object());
        assert_eq!(Draft::new(&nested(OBJECT_DEPTH_MAX + 1)).unwrap_err(), DraftError::TooDeep);
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        assert_eq!(Draft::new(&json!([])).unwrap_err(), DraftError::NotAnObject);
        assert_eq!(Draft::new(&json!({"metadata": 1})).unwrap_err(), DraftError::NotAnObject);
        assert!(matches!(
            Draft::new(&json!({"metadata": {"labels": {"a": 1}}})).unwrap_err(),
            DraftError::Metadata(_)
        ));
    }
}
