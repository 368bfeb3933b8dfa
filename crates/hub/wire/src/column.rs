//! Columns of tables about custom resources.
//!
//! Owns the rules by which a printer column of a definition becomes a cell. Columns of built-in kinds are made where
//! those kinds are known.

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::age;
use crate::jsonpath::{self, JsonPath};

/// The head of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDefinition {
    /// What stands over it.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A hint, such as `name`.
    #[serde(default)]
    pub format: String,
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// Zero is always shown, anything else only in wide output.
    #[serde(default)]
    pub priority: i32,
}

/// An entry of `additionalPrinterColumns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrinterColumn {
    /// Its head.
    #[serde(flatten)]
    pub head: ColumnDefinition,
    /// Where its cells come from.
    #[serde(rename = "jsonPath")]
    pub json_path: String,
}

/// Heads of columns, encoded once for every table they stand in.
#[derive(Debug, Clone, PartialEq)]
pub struct Heads {
    definitions: Vec<ColumnDefinition>,
    json: Bytes,
}

impl Heads {
    /// Encodes heads.
    pub fn new(definitions: Vec<ColumnDefinition>) -> Self {
        let json = serde_json::to_vec(&definitions).expect("strings and numbers encode").into();
        Heads { definitions, json }
    }

    /// The heads.
    pub fn definitions(&self) -> &[ColumnDefinition] {
        &self.definitions
    }

    /// The heads as JSON.
    pub fn json(&self) -> &[u8] {
        &self.json
    }
}

/// What the fields of object metadata mean, as the published API describes them: the texts over the columns of names
/// and ages.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetadataTexts<'a> {
    /// Of `metadata.name`.
    pub name: &'a str,
    /// Of `metadata.creationTimestamp`.
    pub creation_timestamp: &'a str,
}

/// The compiled columns of a custom resource: its name, and what its definition adds.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomColumns {
    heads: Heads,
    paths: Vec<JsonPath>,
}

impl CustomColumns {
    /// Compiles the columns of a definition; without any there is the age. The error names the path that cannot be
    /// read.
    pub fn compile(columns: &[PrinterColumn], texts: MetadataTexts<'_>) -> Result<Self, String> {
        let mut heads = vec![ColumnDefinition {
            name: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            description: texts.name.to_owned(),
            priority: 0,
        }];
        let age = [PrinterColumn {
            head: ColumnDefinition {
                name: "Age".to_owned(),
                kind: "date".to_owned(),
                description: texts.creation_timestamp.to_owned(),
                ..ColumnDefinition::default()
            },
            json_path: ".metadata.creationTimestamp".to_owned(),
        }];
        let columns = if columns.is_empty() { &age } else { columns };
        let mut paths = Vec::with_capacity(columns.len());
        for column in columns {
            let path = &column.json_path;
            let compiled = JsonPath::parse_path(path)
                .map_err(|_| format!("unrecognized column definition {}", crate::gotext::quote(path)))?;
            paths.push(compiled);
            let mut head = column.head.clone();
            if head.description.is_empty() {
                head.description = format!("Custom resource definition column (in JSONPath format): {path}");
            }
            heads.push(head);
        }
        Ok(CustomColumns { heads: Heads::new(heads), paths })
    }

    /// The heads, the name's first.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The cells of an object's row.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut cells = Vec::with_capacity(self.paths.len() + 1);
        cells.push(Value::from(name));
        let kinds = self.heads.definitions.iter().skip(1).map(|head| head.kind.as_str());
        cells.extend(
            self.paths
                .iter()
                .zip(kinds)
                .map(|(path, kind)| path.first(object).map_or(Value::Null, |value| cell(kind, value, now))),
        );
        cells
    }
}

/// A found value as a cell of a column of this type; nothing when it is of another.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", value) => Value::from(jsonpath::print(value)),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            // A fraction is cut off; what is beyond 64 bits stays at their end.
            (None, Some(float)) => Value::from(float as i64),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(number)) => Value::Number(match number.as_i64() {
            // Exact below two to the fifty-third, and rounded to a float beyond, as Go would.
            Some(whole) if whole.unsigned_abs() < 1 << 53 => number.clone(),
            _ => number.as_f64().and_then(Number::from_f64).unwrap_or_else(|| number.clone()),
        }),
        ("boolean", Value::Bool(flag)) => Value::Bool(*flag),
        ("date", Value::String(text)) => Value::from(age::age_of_text(now, text)),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn columns(list: &Value) -> CustomColumns {
        let list: Vec<PrinterColumn> = serde_json::from_value(list.clone()).unwrap();
        let texts = MetadataTexts { name: "the name", creation_timestamp: "when it was made" };
        CustomColumns::compile(&list, texts).unwrap()
    }

    fn now() -> Timestamp {
        age::parse("2026-11-16T12:00:00Z").unwrap()
    }

    #[test]
    fn cells_follow_the_type_of_their_column() {
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-11-16T11:00:00Z"},
                            "a": 5, "b": 1.5, "c": true, "d": "text", "e": [1], "f": null});
        let types = ["string", "integer", "number", "boolean", "date"];
        for (field, want) in [
            ("a", json!(["5", 5, 5, null, null])),
            ("b", json!(["1.5", 1, 1.5, null, null])),
            ("c", json!(["true", null, null, true, null])),
            ("d", json!(["text", null, null, null, "<invalid>"])),
            ("e", json!(["[1]", null, null, null, null])),
            ("f", json!(["<no value>", null, null, null, null])),
            ("missing", json!([null, null, null, null, null])),
            ("metadata.creationTimestamp", json!(["2026-11-16T11:00:00Z", null, null, null, "60m"])),
        ] {
            let list: Value = types
                .iter()
                .map(|t| json!({"name": t, "type": t, "jsonPath": format!(".{field}")}))
                .collect();
            let cells = columns(&list).cells(&object, now());
            assert_eq!(cells[0], "x");
            assert_eq!(Value::from(cells[1..].to_vec()), want, "{field}");
        }
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let columns = columns(&json!([]));
        assert_eq!(columns.heads().definitions()[1].name, "Age");
        let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-11-14T12:00:00Z"}});
        assert_eq!(columns.cells(&object, now()), [json!("x"), json!("2d")]);
    }

    #[test]
    fn a_column_is_described_by_its_path_unless_told_otherwise() {
        let columns = columns(&json!([
            {"name": "A", "type": "string", "jsonPath": ".a"},
            {"name": "B", "type": "string", "jsonPath": ".b", "description": "bee", "priority": 1},
        ]));
        let heads = columns.heads().definitions();
        assert_eq!(heads[1].description, "Custom resource definition column (in JSONPath format): .a");
        assert_eq!((heads[2].description.as_str(), heads[2].priority), ("bee", 1));
    }

    #[test]
    fn a_path_that_cannot_be_read_is_named() {
        let bad = PrinterColumn { json_path: ".a[".into(), ..PrinterColumn::default() };
        assert_eq!(
            CustomColumns::compile(&[bad], MetadataTexts::default()).unwrap_err(),
            "unrecognized column definition \".a[\""
        );
    }
}
