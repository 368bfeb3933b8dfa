//! Texts that come out of Go's ways: the words of its converter, and of its reader of nested fields.
//!
//! Owns spelling only; a few refusals are known by it.

use berth_schema::gotext::{Plain, type_name};
use serde_json::Value;

/// How the converter that strategic merges go through says that a value has the wrong type, from what the JSON reader says.
pub(super) fn conversion_failure(why: &str) -> Option<String> {
    let Some(mismatch) = why.strip_prefix("json: cannot unmarshal ") else {
        // Types that read themselves, as times and bytes do.
        return why.starts_with("illegal base64").then(|| format!("error decoding from json: {why}"));
    };
    let (found, wanted) = mismatch.split_once(" into Go ")?;
    let (_, wanted) = wanted.rsplit_once(" of type ")?;
    let kind = match found {
        "number" => "int64",
        "array" => "slice",
        "object" => "map",
        "string" | "bool" => found,
        _ if found.starts_with("number ") => "float64",
        _ => return None,
    };
    Some(match (kind, wanted) {
        (_, wanted) if wanted.starts_with("map[") => format!("cannot restore map from {kind}"),
        (_, wanted) if wanted.starts_with("[]") => format!("cannot restore slice from {kind}"),
        ("int64" | "float64", "int32" | "int64") | ("int64", "string") => {
            format!("cannot convert {kind} to {wanted}")
        }
        (_, "string" | "bool" | "int32" | "int64" | "float64") => format!("unrecognized type: {wanted}"),
        _ => return None,
    })
}

/// The value at a path, `None` when there is none, or why there cannot be one.
pub(super) fn nested<'v>(object: &'v Value, fields: &[&str]) -> Result<Option<&'v Value>, String> {
    let mut value = object;
    for (index, field) in fields.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(*field) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => return Err(misfit(&fields[..=index], other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// The words about a value that is of another type than is wanted at its path.
pub(super) fn misfit(fields: &[&str], value: &Value, wanted: &str) -> String {
    let (path, shown) = (fields.join("."), Plain(value));
    format!(".{path} accessor error: {shown} is of the type {}, expected {wanted}", type_name(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_another_type_is_shown_with_the_path_to_it() {
        let value = json!({"spec": {"crew": "many", "none": null}});
        let crew = nested(&value, &["spec", "crew"]).unwrap().unwrap();
        let told = misfit(&["spec", "crew"], crew, "int64");
        assert_eq!(told, ".spec.crew accessor error: many is of the type string, expected int64");
        assert_eq!(nested(&value, &["spec", "none", "deeper"]), Ok(None));
        assert_eq!(nested(&value, &["status", "crew"]), Ok(None));
        assert_eq!(
            nested(&value, &["spec", "crew", "deeper"]).unwrap_err(),
            ".spec.crew.deeper accessor error: many is of the type string, expected map[string]interface{}"
        );
    }
}
