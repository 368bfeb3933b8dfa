//! Strategic merge patch: a merge patch that knows which lists of a built-in kind are merged, and by which key.
//!
//! ```text
//! fields:  merge a patch into an object: directives, nulls, fields by the schema
//! list:    merge a patch into a list: by key, or as a set of scalars
//! order:   in which order merged items stand
//! scalar:  scalars as keys of a table
//! ```
//!
//! Owns the directives: `$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`. Lists are looked up by
//! table throughout, as a patch may bring thousands of items. Custom resources have no strategies and are refused before.

mod fields;
mod list;
mod order;
mod scalar;

use berth_schema::Schema;
use serde_json::Value;

use crate::golang::type_name;
use crate::patch_error::PatchError;

/// What marks a directive for the object or item it stands in.
const DIRECTIVE: &str = "$patch";
/// The fields of an object that survive.
const RETAIN_KEYS: &str = "$retainKeys";
/// Followed by a slash and the name of a list of scalars: what is taken out of it.
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
/// Followed by a slash and the name of a list: the order of its items.
const SET_ORDER: &str = "$setElementOrder";

/// Merges a patch into a document of a built-in kind.
pub fn strategic_merge(target: &Value, patch: &Value, schema: Schema<'_>) -> Result<Value, PatchError> {
    let Value::Object(changes) = patch else {
        let found = match patch {
            // A null decodes into no changes.
            Value::Null => return Ok(target.clone()),
            Value::Array(_) => "array",
            Value::Number(_) => "number",
            other => type_name(other),
        };
        return Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    };
    let original = target.as_object().cloned().unwrap_or_default();
    fields::merge(original, changes.clone(), Some(schema)).map(Value::Object)
}

fn internal(message: impl Into<String>) -> PatchError {
    PatchError::Internal(message.into())
}

/// An item that lacks the key its list is merged by.
fn no_merge_key(item: &Value, key: &str) -> PatchError {
    internal(format!("map: {} does not contain declared merge key: {key}", crate::golang::Plain(item)))
}

fn bad_type(expected: &str, found: &Value) -> PatchError {
    let found = if found.is_null() { "%!s(<nil>)" } else { type_name(found) };
    internal(format!("expected a {expected}, but received a {found}"))
}
