//! How deep a document may be nested. Every walk in this crate is recursive, and so are the JSON reader and the
//! destructor of a value: the limit is what keeps the stack bounded.

use serde_json::Value;

/// Levels of nesting of a document, as many as the JSON reader accepts: a deeper result could be stored, never read.
pub const MAX_DEPTH: usize = 128;

/// Levels of nesting of a patched document: what the reader of bodies takes, so that it can be sent again, with room for
/// the entries of its managers, which are a few levels deeper than what they are about.
pub const MAX_DOCUMENT_DEPTH: usize = 120;

/// Whether a value stays within so many levels.
pub(crate) fn within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| within(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| within(field, levels - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_have_no_depth_and_each_container_adds_one() {
        assert!(within(&json!(1), 0));
        assert!(!within(&json!({}), 0));
        assert!(within(&json!({"a": [1]}), 2));
        assert!(!within(&json!({"a": [1]}), 1));
    }
}
