//! What defaults may add to an object.
//!
//! Owns the bound on it. A schema says a default once and an object asks for it in three bytes, as often as it likes, so
//! neither the size of the schema nor that of the object bounds what comes out. Counting is done before anything is
//! copied.

use std::io;

use serde_json::Value;

/// How much filling in defaults may still add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes of JSON.
    pub bytes: usize,
    /// Values: fields, items, and what they hold.
    pub values: usize,
}

impl Allowance {
    /// As much as it takes: for schemas that are part of the program, whose defaults are few and small.
    pub const UNBOUNDED: Self = Self { bytes: usize::MAX, values: usize::MAX };

    /// Takes what `default` needs under a name of so many bytes, or says that it is not there.
    pub(crate) fn spend(&mut self, name: usize, default: &Value) -> Result<(), DefaultsError> {
        // The quotes of the name, the colon and the comma.
        let around = if name == 0 { 0 } else { name + 4 };
        let bytes = self.bytes.checked_sub(around).and_then(|left| text_fits(default, left));
        self.bytes = bytes.ok_or(DefaultsError::Bytes)?;
        let count = count_values(default, self.values).ok_or(DefaultsError::Values)?;
        self.values -= count;
        Ok(())
    }
}

/// The defaults of a schema add more to an object than they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DefaultsError {
    /// More bytes.
    #[error("the defaults of the schema add too many bytes")]
    Bytes,
    /// More values.
    #[error("the defaults of the schema add too many values")]
    Values,
}

/// How many values there are in a value, itself among them; none when there are more than `most`.
pub fn count_values(value: &Value, most: usize) -> Option<usize> {
    let mut waiting = vec![value];
    let mut count: usize = 0;
    while let Some(value) = waiting.pop() {
        count += 1;
        let inside = match value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if count.saturating_add(waiting.len()).saturating_add(inside) > most {
            return None;
        }
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => waiting.extend(fields.values()),
            _ => {}
        }
    }
    Some(count)
}

/// What is left of so many bytes behind the text of a value; none when it does not fit.
fn text_fits(value: &Value, bytes: usize) -> Option<usize> {
    let mut left = Left(bytes);
    serde_json::to_writer(&mut left, value).ok().map(|()| left.0)
}

/// A place to write to that keeps nothing and fails when it is full.
struct Left(usize);

impl io::Write for Left {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(text.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{apply_defaults, compile, node::Arena};

    fn fill(schema: &Value, value: &mut Value, allowance: Allowance) -> Result<(), DefaultsError> {
        let mut arena = Arena::default();
        let id = compile(&mut arena, schema).unwrap();
        apply_defaults(value, arena.schema(id), allowance)
    }

    fn bytes(bytes: usize) -> Allowance {
        Allowance { bytes, ..Allowance::UNBOUNDED }
    }

    fn values(values: usize) -> Allowance {
        Allowance { values, ..Allowance::UNBOUNDED }
    }

    #[test]
    fn every_item_is_charged_the_text_it_gets() {
        let schema = json!({"type": "array", "items": {"type": "object", "properties": {
            "ab": {"type": "string", "default": "cd"},
        }}});
        // `"ab":"cd",` is ten bytes.
        let mut items = json!([{}, {}, {}]);
        assert_eq!(fill(&schema, &mut items, bytes(29)), Err(DefaultsError::Bytes));
        assert_eq!(items, json!([{"ab": "cd"}, {"ab": "cd"}, {}]), "filled as far as it goes");
        let mut items = json!([{}, {"ab": "x"}, {}, {}]);
        assert_eq!(fill(&schema, &mut items, bytes(30)), Ok(()));
        assert_eq!(fill(&schema, &mut json!([{}, {}, {}]), values(2)), Err(DefaultsError::Values));
        assert_eq!(fill(&schema, &mut json!([{}, {}, {}]), values(3)), Ok(()));
    }

    #[test]
    fn defaults_inside_defaults_are_charged_too() {
        let inner =
            json!({"type": "object", "properties": {"n": {"type": "string", "default": "x".repeat(100)}}});
        let schema = json!({"type": "object", "properties": {
            "list": {"type": "array", "items": inner, "default": [{}, {}, {}, {}]},
        }});
        assert_eq!(fill(&schema, &mut json!({}), bytes(400)), Err(DefaultsError::Bytes));
        assert_eq!(fill(&schema, &mut json!({}), bytes(500)), Ok(()));
        assert_eq!(fill(&schema, &mut json!({}), values(8)), Err(DefaultsError::Values));
        assert_eq!(fill(&schema, &mut json!({}), values(9)), Ok(()));
    }

    #[test]
    fn a_null_that_is_replaced_is_charged() {
        let schema =
            json!({"type": "object", "additionalProperties": {"type": "string", "default": "0123456789"}});
        let mut map = json!({"a": null, "b": null});
        assert_eq!(fill(&schema, &mut map, bytes(23)), Err(DefaultsError::Bytes));
        assert_eq!(map, json!({"a": "0123456789", "b": null}));
        assert_eq!(fill(&schema, &mut json!({"a": null, "b": null}), bytes(24)), Ok(()));
    }

    #[test]
    fn values_are_counted_at_every_level_and_no_further_than_asked() {
        let value = json!({"a": [1, {"b": null}], "c": "d"});
        assert_eq!(count_values(&value, 6), Some(6));
        assert_eq!(count_values(&value, 5), None);
        assert_eq!(count_values(&json!(1), 0), None);
        let deep = (0..100_000).fold(json!(0), |inner, _| Value::Array(vec![inner]));
        assert_eq!(count_values(&deep, 200_000), Some(100_001));
        // Dropping so deep a value recurses, which parsing never lets happen.
        std::mem::forget(deep);
    }
}
