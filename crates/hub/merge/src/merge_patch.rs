//! JSON merge patch (RFC 7386): what is null goes, objects are merged, everything else is replaced.
//!
//! Owns the merge and the refusal of what is no merge patch of an object.

use serde_json::Value;

use crate::golang::type_name;
use crate::patch_error::PatchError;

/// Whether a document can be a merge patch of an object.
///
/// The server decodes it as an object first, so a list or a scalar is refused as a malformed request.
pub fn check_merge_patch(patch: &Value) -> Result<(), PatchError> {
    let found = match patch {
        Value::Object(_) => return Ok(()),
        // A null decodes into no object at all.
        Value::Null => return Err(PatchError::BadRequest("Invalid JSON Patch".to_owned())),
        Value::Array(_) => "array",
        Value::Number(_) => "number",
        other => type_name(other),
    };
    Err(PatchError::BadRequest(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )))
}

/// Merges a patch into a document.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = without_nulls(patch);
        return;
    }
    let Value::Object(fields) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
            continue;
        }
        match fields.get_mut(name) {
            // A null in the document is as good as nothing: the patch's own nulls go with it.
            None | Some(Value::Null) => {
                fields.insert(name.clone(), without_nulls(change));
            }
            Some(field) if field.is_object() => merge_patch(field, change),
            Some(field) => *field = without_nulls(change),
        }
    }
}

/// A value without its null fields. Nulls that are items of lists stay: they have a place, not a name.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| (name.clone(), without_nulls(field)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_nulls).collect::<Vec<_>>().into(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(target: Value, patch: &Value) -> Value {
        let mut target = target;
        merge_patch(&mut target, patch);
        target
    }

    #[test]
    fn nulls_delete_and_objects_merge() {
        assert_eq!(
            merged(
                json!({"a": {"b": 1, "c": 2}, "d": 3}),
                &json!({"a": {"b": null, "e": {"f": null}}, "g": null})
            ),
            json!({"a": {"c": 2, "e": {}}, "d": 3})
        );
    }

    #[test]
    fn lists_are_replaced_and_keep_their_nulls() {
        assert_eq!(
            merged(json!({"a": [1, 2]}), &json!({"a": [null, {"x": null}]})),
            json!({"a": [null, {}]})
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(
            check_merge_patch(&json!([])).unwrap_err().to_string(),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
        assert_eq!(check_merge_patch(&json!(null)).unwrap_err().code(), 400);
        assert!(check_merge_patch(&json!({})).is_ok());
    }
}
