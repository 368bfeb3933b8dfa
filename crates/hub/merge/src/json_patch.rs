//! JSON patch (RFC 6902), as the API server applies it: the same operations, the same leniencies and the same texts.
//!
//! Two leniencies matter to clients: `replace` of a field that is not there adds it, and a path may name an index from
//! the end. Owns the operations and their limits. Never decides what the patched document may be.

use std::borrow::Cow;

use berth_schema::gotext::json_kind;
use serde_json::{Map, Value};

use crate::depth::{MAX_DOCUMENT_DEPTH, within};
use crate::golang::Quoted;
use crate::patch_error::PatchError;

/// Operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Bytes that the `copy` operations of one patch may add together: ten copies of a document into itself would
/// otherwise make a thousand of it.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// The members an operation may have; others are reported as unknown fields.
const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

/// Applies a patch to a document.
pub fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = read(patch)?;
    let mut document = target.clone();
    let mut copied_bytes = 0;
    for operation in operations {
        operation.apply(&mut document, &mut copied_bytes).map_err(PatchError::Unprocessable)?;
    }
    Ok(document)
}

/// What a strict or warning server says about members that no operation has, in order.
pub fn unknown_operation_fields(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    let named =
        operations.iter().enumerate().filter_map(|(index, operation)| Some((index, operation.as_object()?)));
    named
        .flat_map(|(index, members)| {
            let unknown = members.keys().filter(|name| !MEMBERS.contains(&name.as_str()));
            unknown.map(move |name| format!("json patch unknown field \"[{index}].{name}\""))
        })
        .collect()
}

fn read(patch: &Value) -> Result<Vec<Operation<'_>>, PatchError> {
    let refused = |found: &str, place: &str, wanted: &str| {
        PatchError::BadRequest(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go {place} of type {wanted}"
        ))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(refused(json_kind(other), "value", "[]handlers.jsonPatchOp")),
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    for operation in operations {
        let members = match operation {
            Value::Object(members) => members,
            Value::Null => continue,
            other => return Err(refused(json_kind(other), "value", "handlers.jsonPatchOp")),
        };
        for name in ["op", "path", "from"] {
            match members.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    let place = format!("struct field jsonPatchOp.{name}");
                    return Err(refused(json_kind(other), &place, "string"));
                }
            }
        }
    }
    Ok(operations.iter().map(|operation| Operation { members: operation.as_object() }).collect())
}

struct Operation<'a> {
    members: Option<&'a Map<String, Value>>,
}

/// Why an operation does not apply, without the operation's own words around it.
type Reason = String;

const MISSING: &str = "missing value";

impl<'a> Operation<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.members?.get(name)?.as_str()
    }

    /// The value, where a null and nothing are the same.
    fn value(&self) -> &'a Value {
        self.members.and_then(|members| members.get("value")).unwrap_or(&Value::Null)
    }

    fn apply(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), String> {
        match self.text("op").unwrap_or("unknown") {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.relocate(document),
            "test" => self.test(document),
            "copy" => self.copy(document, copied_bytes),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&self, document: &mut Value) -> Result<(), String> {
        let path =
            self.text("path").ok_or_else(|| format!("add operation failed to decode path: {MISSING}"))?;
        let place = find(document, path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        let added = place.add(self.value().clone());
        added.map_err(|reason| format!("error in add for path: '{path}': {reason}"))
    }

    fn remove(&self, document: &mut Value) -> Result<(), String> {
        let path =
            self.text("path").ok_or_else(|| format!("remove operation failed to decode path: {MISSING}"))?;
        let place = find(document, path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        })?;
        match place.remove() {
            Ok(_) => Ok(()),
            Err(reason) => Err(format!("error in remove for path: '{path}': {reason}")),
        }
    }

    fn replace(&self, document: &mut Value) -> Result<(), String> {
        let path = self.text("path").ok_or_else(|| {
            format!("replace operation failed to decode path: operation missing path field: {MISSING}")
        })?;
        if path.is_empty() {
            return match self.value() {
                whole @ (Value::Object(_) | Value::Array(_)) => {
                    *document = whole.clone();
                    Ok(())
                }
                // The end of the text is the server's own: it prints an error that is not there.
                _ => Err("replace operation value must be object or array: %!w(<nil>)".to_owned()),
            };
        }
        let mut place = find(document, path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
        })?;
        if place.get().is_err() {
            return Err(format!("replace operation does not apply: doc is missing key: {path}: {MISSING}"));
        }
        place
            .set(self.value().clone())
            .map_err(|reason| format!("error in remove for path: '{path}': {reason}"))
    }

    fn from(&self, verb: &str) -> Result<&'a str, String> {
        self.text("from").ok_or_else(|| {
            format!("{verb} operation failed to decode from: operation, missing from field: {MISSING}")
        })
    }

    fn relocate(&self, document: &mut Value) -> Result<(), String> {
        let from = self.from("move")?;
        let mut place = find(document, from).ok_or_else(|| {
            format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let key = place.key().to_owned();
        let in_move = |reason: Reason| format!("error in move for path: '{key}': {reason}");
        place.get().map_err(in_move)?;
        let value = place.remove().map_err(in_move)?;
        let path = self.text("path").ok_or_else(|| {
            format!("move operation failed to decode path: operation missing path field: {MISSING}")
        })?;
        let place = find(document, path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        place.add(value).map_err(|reason| format!("error in move for path: '{path}': {reason}"))
    }

    fn test(&self, document: &mut Value) -> Result<(), String> {
        let path = self.text("path").ok_or_else(|| {
            format!("test operation failed to decode path: operation missing path field: {MISSING}")
        })?;
        let failed = || Err(format!("testing value {path} failed: test failed"));
        if path.is_empty() {
            return if document == self.value() { Ok(()) } else { failed() };
        }
        let mut place = find(document, path)
            .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
        let found = place.get().map_err(|reason| format!("error in test for path: '{path}': {reason}"))?;
        if found.unwrap_or(&Value::Null) == self.value() { Ok(()) } else { failed() }
    }

    fn copy(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), String> {
        let from = self.from("copy")?;
        let mut place = find(document, from).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
        })?;
        let found = place.get().map_err(|reason| format!("error in copy for from: '{from}': {reason}"))?;
        let value = found.cloned();
        let path =
            self.text("path").ok_or_else(|| format!("copy operation failed to decode path: {MISSING}"))?;
        let place = find(document, path).ok_or_else(|| {
            format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
        })?;
        *copied_bytes += value.as_ref().map_or(0, json_bytes);
        if *copied_bytes > MAX_COPY_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding the limit {MAX_COPY_BYTES}"
            ));
        }
        let added = place.add(value.unwrap_or(Value::Null));
        added.map_err(|reason| format!("error while adding value during copy: {reason}"))
    }
}

/// Bytes of a value's compact JSON, without making it.
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("a value in memory always has a JSON text");
    count.0
}

/// A place in a document: the container and the name or index inside it.
struct Place<'d, 'p> {
    container: Container<'d>,
    key: Cow<'p, str>,
    /// Levels from the root to the container.
    depth: usize,
}

enum Container<'d> {
    Object(&'d mut Map<String, Value>),
    Array(&'d mut Vec<Value>),
}

/// One segment of a pointer. `~1` is a slash and `~0` a tilde.
fn segment(text: &str) -> Cow<'_, str> {
    if text.contains('~') {
        Cow::Owned(text.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The container a pointer leads into. What stands before the first slash is not looked at.
fn find<'d, 'p>(document: &'d mut Value, path: &'p str) -> Option<Place<'d, 'p>> {
    let (_, path) = path.split_once('/')?;
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
    let mut current = document;
    let mut depth = 1;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let part = segment(part);
        current = match current {
            Value::Object(fields) => fields.get_mut(part.as_ref())?,
            Value::Array(items) => {
                let at = index(&part, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
        depth += 1;
    }
    let container = match current {
        Value::Object(fields) => Container::Object(fields),
        Value::Array(items) => Container::Array(items),
        _ => return None,
    };
    Some(Place { container, key: segment(key), depth })
}

fn parse_index(key: &str) -> Result<i64, Reason> {
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    let wrong = |why: &str| Err(format!("strconv.Atoi: parsing {}: {why}", Quoted(key)));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return wrong("invalid syntax");
    }
    key.parse().or_else(|_| wrong("value out of range"))
}

/// An index, where negative ones count from the end.
fn index(key: &str, length: usize) -> Result<usize, Reason> {
    let asked = parse_index(key)?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let at = if asked < 0 { asked + length } else { asked };
    if (0..length).contains(&at) {
        Ok(at as usize)
    } else {
        Err(format!("Unable to access invalid index: {asked}: invalid index referenced"))
    }
}

impl Place<'_, '_> {
    fn key(&self) -> &str {
        &self.key
    }

    fn get(&mut self) -> Result<Option<&Value>, Reason> {
        match &self.container {
            Container::Object(fields) => Ok(fields.get(self.key.as_ref())),
            Container::Array(items) => Ok(items.get(index(&self.key, items.len())?)),
        }
    }

    fn fits(&self, value: &Value) -> Result<(), Reason> {
        if within(value, MAX_DOCUMENT_DEPTH.saturating_sub(self.depth)) {
            Ok(())
        } else {
            Err(format!("the document would be nested deeper than {MAX_DOCUMENT_DEPTH} levels"))
        }
    }

    fn set(self, value: Value) -> Result<(), Reason> {
        self.fits(&value)?;
        match self.container {
            Container::Object(fields) => {
                fields.insert(self.key.into_owned(), value);
            }
            Container::Array(items) => {
                let at = index(&self.key, items.len())?;
                items[at] = value;
            }
        }
        Ok(())
    }

    fn add(self, value: Value) -> Result<(), Reason> {
        self.fits(&value)?;
        match self.container {
            Container::Object(fields) => {
                fields.insert(self.key.into_owned(), value);
            }
            Container::Array(items) if self.key == "-" => items.push(value),
            Container::Array(items) => {
                parse_index(&self.key).map_err(|reason| {
                    format!("value was not a proper array index: '{}': {reason}", self.key)
                })?;
                let at = index(&self.key, items.len() + 1)?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, Reason> {
        match self.container {
            Container::Object(fields) => fields
                .remove(self.key.as_ref())
                .ok_or_else(|| format!("Unable to remove nonexistent key: {}: {MISSING}", self.key)),
            Container::Array(items) => {
                let at = index(&self.key, items.len())?;
                Ok(items.remove(at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(target: &Value, patch: &Value) -> String {
        json_patch(target, patch).unwrap_err().to_string()
    }

    #[test]
    fn operations_apply_in_order() {
        let target = json!({"a": {"b": [1, 2]}, "x/y": 1, "t~u": 2});
        let patch = json!([
            {"op": "test", "path": "/a/b/0", "value": 1},
            {"op": "add", "path": "/a/b/-", "value": 3},
            {"op": "add", "path": "/a/b/0", "value": 0},
            {"op": "remove", "path": "/a/b/-1"},
            {"op": "replace", "path": "/x~1y", "value": {"k": 1}},
            {"op": "move", "from": "/t~0u", "path": "/a/c"},
            {"op": "copy", "from": "/a", "path": "/d"},
        ]);
        assert_eq!(
            json_patch(&target, &patch).unwrap(),
            json!({"a": {"b": [0, 1, 2], "c": 2}, "d": {"b": [0, 1, 2], "c": 2}, "x/y": {"k": 1}})
        );
    }

    #[test]
    fn replacing_a_field_that_is_not_there_adds_it_and_removing_it_fails() {
        let patch = json!([{"op": "replace", "path": "/spec/x", "value": 1}]);
        assert_eq!(json_patch(&json!({"spec": {}}), &patch).unwrap(), json!({"spec": {"x": 1}}));
        assert_eq!(
            error(&json!({"spec": {}}), &json!([{"op": "remove", "path": "/spec/x"}])),
            "error in remove for path: '/spec/x': Unable to remove nonexistent key: x: missing value"
        );
        assert_eq!(
            error(&json!({}), &json!([{"op": "replace", "path": "/spec/x", "value": 1}])),
            "replace operation does not apply: doc is missing path: /spec/x: missing value"
        );
    }

    #[test]
    fn a_failed_test_names_its_path_and_answers_422() {
        let failure =
            json_patch(&json!({"a": 1}), &json!([{"op": "test", "path": "/a", "value": 2}])).unwrap_err();
        assert_eq!(failure, PatchError::Unprocessable("testing value /a failed: test failed".to_owned()));
        assert_eq!(failure.code(), 422);
    }

    #[test]
    fn testing_for_null_holds_where_nothing_is() {
        assert!(json_patch(&json!({}), &json!([{"op": "test", "path": "/a", "value": null}])).is_ok());
        assert!(json_patch(&json!({"a": 1}), &json!([{"op": "test", "path": "/a"}])).is_err());
    }

    #[test]
    fn indexes_out_of_range_and_no_indexes_are_told_apart() {
        let list = json!({"a": [1]});
        assert_eq!(
            error(&list, &json!([{"op": "add", "path": "/a/5", "value": 1}])),
            "error in add for path: '/a/5': Unable to access invalid index: 5: invalid index referenced"
        );
        assert_eq!(
            error(&list, &json!([{"op": "add", "path": "/a/x", "value": 1}])),
            "error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax"
        );
        assert_eq!(
            error(&list, &json!([{"op": "remove", "path": "/a/99999999999999999999"}])),
            "error in remove for path: '/a/99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range"
        );
    }

    #[test]
    fn more_operations_than_allowed_are_refused() {
        let patch: Value = (0..=MAX_OPERATIONS).map(|_| json!({"op": "test", "path": "/a"})).collect();
        let refused = json_patch(&json!({}), &patch).unwrap_err();
        assert_eq!(refused.code(), 413);
        assert_eq!(refused.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
    }

    #[test]
    fn copying_a_document_into_itself_again_and_again_stops_at_the_limit() {
        let patch: Value =
            (0..64).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/{n}")})).collect();
        let refused = error(&json!({"a": {"text": "0123456789"}}), &patch);
        assert!(refused.contains("nested deeper") || refused.contains("exceeding the limit"), "{refused}");
        let wide: Value =
            (0..64).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/b/{n}")})).collect();
        let refused = error(&json!({"a": "x".repeat(100_000), "b": {}}), &wide);
        assert!(refused.starts_with("Unable to complete the copy"), "{refused}");
    }

    #[test]
    fn a_document_can_not_be_nested_without_bound() {
        let mut path = String::new();
        let patch: Value = (0..=MAX_DOCUMENT_DEPTH)
            .map(|_| {
                path.push_str("/a");
                json!({"op": "add", "path": path, "value": {}})
            })
            .collect();
        assert!(error(&json!({}), &patch).contains("nested deeper than 120 levels"));
    }

    #[test]
    fn malformed_patches_are_bad_requests() {
        let refused = |patch: &Value| {
            let refused = json_patch(&json!({}), patch).unwrap_err();
            assert_eq!(refused.code(), 400);
            refused.to_string()
        };
        assert_eq!(
            refused(&json!({})),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(
            refused(&json!([{"op": "add", "path": 1}])),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"
        );
        assert_eq!(
            unknown_operation_fields(&json!([{"op": "add", "path": "/a", "x": 1}])),
            ["json patch unknown field \"[0].x\""]
        );
    }

    #[test]
    fn an_unknown_operation_is_named() {
        assert_eq!(error(&json!({}), &json!([{"op": "frob", "path": "/a"}])), "Unexpected kind: frob");
        assert_eq!(error(&json!({}), &json!([{"path": "/a"}])), "Unexpected kind: unknown");
    }
}
