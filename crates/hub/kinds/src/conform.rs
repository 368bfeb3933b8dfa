//! An object as the types of the table have it: what reading JSON into Go's records and writing it again makes of it.
//!
//! Owns which values are refused (with Go's words), which fields are dropped as unknown, which empty fields are left out and
//! which are written although empty, and how times, quantities and bytes are spelled. The stored form of every built-in object
//! has gone through here, so that it looks the same however it was sent. Never fills in defaults and never judges values.

use std::fmt::Write as _;

use base64::Engine as _;
use berth_text::gotext::json_kind;
use serde_json::{Map, Value};

use crate::{
    instant,
    quantity::Quantity,
    registry::Builtins,
    types::{Field, Kind, Omit, TypeId, Types},
};

/// How deep an object may be nested, in levels. Far beyond any real one, and small for the stack.
pub const DEPTH_MAX: usize = 200;
/// How many values an object may hold. Three bytes of JSON can stand for a record of many fields, so bytes are no bound.
pub const VALUES_MAX: usize = 400_000;
/// How many unknown fields are named; more are dropped all the same.
pub const UNKNOWN_MAX: usize = 100;

/// An object that cannot be read as its kind. The text is what follows `cannot be handled as a Pod: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConformError(pub String);

impl ConformError {
    /// The object holds more than [`VALUES_MAX`] values.
    pub fn too_many_values() -> Self {
        Self(format!("the object holds more than {VALUES_MAX} values"))
    }
}

/// An object in the form its type gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conformed {
    /// The object.
    pub value: Value,
    /// Paths of fields that the type does not have, as `spec.containers[0].imagee`; they are gone from the object.
    pub unknown: Vec<String>,
}

/// Reads an object as a type.
pub fn conform(id: TypeId, object: Value) -> Result<Conformed, ConformError> {
    let root = Kind::Struct(id);
    let mut reading = Reading {
        types: &Builtins::load().types,
        unknown: Vec::new(),
        first: None,
        stack: Vec::new(),
        path: String::new(),
        depth: 0,
        values: 0,
    };
    let value = reading.value(&root, Some(object), None)?;
    match reading.first {
        Some(error) => Err(ConformError(error)),
        None => Ok(Conformed { value, unknown: reading.unknown }),
    }
}

struct Reading<'a> {
    types: &'a Types,
    unknown: Vec<String>,
    /// A value of the wrong type does not stop the reading, but makes it fail; only the first is told.
    first: Option<String>,
    /// The records entered: Go's name of each and the field in it.
    stack: Vec<(&'a str, &'a str)>,
    /// Where we are, for unknown fields.
    path: String,
    depth: usize,
    values: usize,
}

type Read = Result<Value, ConformError>;

impl<'a> Reading<'a> {
    /// One value. `None` is an absent one and stands, like null, for the zero value of the kind.
    fn value(&mut self, kind: &'a Kind, value: Option<Value>, field: Option<&'a Field>) -> Read {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ConformError(format!("exceeded max depth of {DEPTH_MAX}")));
        }
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(ConformError::too_many_values());
        }
        let value = value.filter(|value| !value.is_null());
        let read = match value {
            None => self.zero(kind),
            Some(value) => self.present(kind, value, field),
        };
        self.depth -= 1;
        read
    }

    fn zero(&mut self, kind: &'a Kind) -> Read {
        Ok(match kind {
            Kind::Bool | Kind::SchemaOrBool => false.into(),
            Kind::Int32 | Kind::Int64 | Kind::Double | Kind::IntOrString => 0.into(),
            Kind::String => "".into(),
            Kind::Quantity => "0".into(),
            Kind::Struct(id) => self.record(*id, Map::new())?,
            _ => Value::Null,
        })
    }

    fn present(&mut self, kind: &'a Kind, value: Value, field: Option<&'a Field>) -> Read {
        match (kind, value) {
            (Kind::Bool, Value::Bool(value)) => Ok(value.into()),
            (Kind::Int32, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                Ok(Value::Number(number))
            }
            (Kind::Int64, Value::Number(number)) if number.as_i64().is_some() => Ok(Value::Number(number)),
            (Kind::Double, Value::Number(number)) => Ok(Value::Number(number)),
            (Kind::String, Value::String(text)) => Ok(text.into()),
            (Kind::Bytes, Value::String(text)) => bytes(&text),
            (Kind::Time, value) => string(value)
                .and_then(|text| instant::canonical_seconds(&text))
                .map_or_else(|error| Err(ConformError(error)), |text| Ok(text.into())),
            (Kind::MicroTime, value) => string(value)
                .and_then(|text| instant::canonical_micros(&text))
                .map_or_else(|error| Err(ConformError(error)), |text| Ok(text.into())),
            (Kind::Quantity, value) => quantity(&value),
            (Kind::IntOrString, value) => int_or_string(value),
            (Kind::Raw | Kind::Any | Kind::Fields, value) => Ok(value),
            (Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings, value) => {
                self.schema_or(kind, value)
            }
            (Kind::Struct(id), Value::Object(map)) => self.record(*id, map),
            (Kind::List(item), Value::Array(items)) => self.list(item, items),
            (Kind::Map(item), Value::Object(map)) => self.map(item, map),
            (kind, value) => {
                self.mistyped(kind, &value, field);
                self.zero(kind)
            }
        }
    }

    fn record(&mut self, id: TypeId, mut map: Map<String, Value>) -> Read {
        let found = self.types.get(id);
        let keeps_empty = found.short.starts_with("apiextensions.");
        let mut out = Map::new();
        let length = self.path.len();
        for field in &found.fields {
            let value = map.remove(&*field.name);
            let absent = value.as_ref().is_none_or(Value::is_null);
            if absent && (field.pointer || matches!(field.kind, Kind::List(_) | Kind::Map(_) | Kind::Bytes)) {
                if field.omit == Omit::Never {
                    out.insert(field.name.to_string(), Value::Null);
                }
                continue;
            }
            self.stack.push((found.go_name(), &field.name));
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&field.name);
            let value = self.value(&field.kind, value, Some(field))?;
            self.path.truncate(length);
            self.stack.pop();
            if left_out(field, &value) {
                continue;
            }
            // Kubernetes keeps objects in protobuf, which does not tell an empty list from none; definitions it keeps as JSON.
            let emptied =
                matches!(field.kind, Kind::List(_) | Kind::Map(_)) && is_empty(&value) && !keeps_empty;
            out.insert(field.name.to_string(), if emptied { Value::Null } else { value });
        }
        for name in map.keys() {
            if self.unknown.len() < UNKNOWN_MAX {
                let dot = if self.path.is_empty() { "" } else { "." };
                self.unknown.push(format!("{}{dot}{name}", self.path));
            }
        }
        Ok(Value::Object(out))
    }

    fn list(&mut self, item: &'a Kind, items: Vec<Value>) -> Read {
        let length = self.path.len();
        let mut out = Vec::with_capacity(items.len());
        for (at, value) in items.into_iter().enumerate() {
            // Writing to a text does not fail.
            let _ = write!(self.path, "[{at}]");
            out.push(self.value(item, Some(value), None)?);
            self.path.truncate(length);
        }
        Ok(out.into())
    }

    fn map(&mut self, item: &'a Kind, map: Map<String, Value>) -> Read {
        let length = self.path.len();
        let mut out = Map::new();
        for (name, value) in map {
            self.path.push('.');
            self.path.push_str(&name);
            let value = self.value(item, Some(value), None)?;
            self.path.truncate(length);
            out.insert(name, value);
        }
        Ok(Value::Object(out))
    }

    /// The three kinds of a JSON schema that may be something else.
    fn schema_or(&mut self, kind: &'a Kind, value: Value) -> Read {
        let props =
            self.types.find("apiextensions.v1.JSONSchemaProps").expect("JSONSchemaProps is in the table");
        match (kind, value) {
            (_, Value::Object(map)) => self.record(props, map),
            (Kind::SchemaOrBool, Value::Bool(value)) => Ok(value.into()),
            (Kind::SchemaOrBool, _) => Err(ConformError("boolean or JSON schema expected".into())),
            (Kind::SchemaOrList, Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return Err(ConformError(format!("exceeded max depth of {DEPTH_MAX}")));
                    }
                    out.push(match item {
                        Value::Object(map) => self.record(props, map)?,
                        Value::Null => self.record(props, Map::new())?,
                        other => return Err(ConformError(cannot(&other, "v1.JSONSchemaProps"))),
                    });
                    self.depth -= 1;
                }
                Ok(out.into())
            }
            (Kind::SchemaOrStrings, Value::Array(items)) => match items.iter().find(|item| !item.is_string())
            {
                Some(other) => Err(ConformError(cannot(other, "string"))),
                None => Ok(items.into()),
            },
            _ => Ok(Value::Null),
        }
    }

    fn mistyped(&mut self, kind: &Kind, value: &Value, field: Option<&Field>) {
        if self.first.is_some() {
            return;
        }
        let go = field.map_or_else(|| self.types.go_kind(kind), |field| self.types.go_type(field));
        self.first = Some(match self.stack.last() {
            None => cannot(value, &go),
            Some((record, _)) => {
                let fields: Vec<&str> = self.stack.iter().map(|(_, field)| *field).collect();
                let fits = matches!(kind, Kind::Int32 | Kind::Int64);
                let what = if fits { number_word(value) } else { json_kind(value).to_owned() };
                format!(
                    "json: cannot unmarshal {what} into Go struct field {record}.{} of type {go}",
                    fields.join(".")
                )
            }
        });
    }
}

/// Whether an empty value is not written.
fn left_out(field: &Field, value: &Value) -> bool {
    if field.omit == Omit::Never || field.pointer {
        return false;
    }
    match (&field.kind, value) {
        // Go's records are never empty; a time that is not set is written as null unless zero times are left out.
        (Kind::Struct(_) | Kind::Quantity | Kind::IntOrString | Kind::Raw, _) => false,
        (_, Value::Null) => field.omit == Omit::Zero || !matches!(field.kind, Kind::Time | Kind::MicroTime),
        (_, Value::Bool(value)) => !value && field.kind == Kind::Bool,
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Array(items)) => items.is_empty(),
        (Kind::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn bytes(text: &str) -> Read {
    // Line breaks within base64 are passed over, as Go does.
    let joined: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match base64::engine::general_purpose::STANDARD.decode(&joined) {
        Ok(bytes) => Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into()),
        Err(error) => {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                    joined.len() / 4 * 4
                }
            };
            Err(ConformError(format!("illegal base64 data at input byte {at}")))
        }
    }
}

fn string(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(cannot(&other, "string")),
    }
}

fn quantity(value: &Value) -> Read {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    };
    Quantity::canonical(&text).map(Value::from).map_err(|error| ConformError(error.to_string()))
}

fn int_or_string(value: Value) -> Read {
    match value {
        Value::String(_) => Ok(value),
        Value::Number(ref number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(value),
        other => Err(ConformError(format!(
            "json: cannot unmarshal {} into Go value of type int32",
            number_word(&other)
        ))),
    }
}

fn cannot(value: &Value, go: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {go}", json_kind(value))
}

/// A number that does not fit is named.
fn number_word(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("number {number}"),
        other => json_kind(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(short: &str, object: Value) -> Result<Conformed, ConformError> {
        conform(Builtins::load().types.find(short).unwrap(), object)
    }

    #[test]
    fn records_are_written_although_empty_and_empty_lists_are_left_out() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"name": "c"}], "tolerations": [], "nodeName": ""}});
        assert_eq!(
            read("core.v1.Pod", pod).unwrap().value,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}})
        );
    }

    #[test]
    fn what_go_always_writes_is_there_although_unset() {
        let event = read("core.v1.Event", json!({"reason": "x"})).unwrap().value;
        assert_eq!(event["eventTime"], Value::Null);
        assert!(event.as_object().unwrap().contains_key("firstTimestamp"));
        assert_eq!(event["reportingComponent"], "");
        let set = read("apps.v1.Deployment", json!({"spec": {}})).unwrap().value;
        assert_eq!(
            set["spec"],
            json!({"selector": null, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": null}}})
        );
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let pod = json!({"spec": {"containers": [{"name": "c", "imagee": 1}], "foo": {}}, "bar": 1});
        let read = read("core.v1.Pod", pod).unwrap();
        assert_eq!(read.unknown, ["spec.containers[0].imagee", "spec.foo", "bar"]);
        assert!(read.value.pointer("/spec/foo").is_none());
    }

    #[test]
    fn wrong_types_are_refused_in_go_s_words() {
        for (object, message) in [
            (
                json!({"metadata": {"labels": {"a": 5}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"spec": {"containers": "x"}}),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}}),
                "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            ),
            (
                json!({"spec": {"restartPolicy": true}}),
                "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
            ),
            (
                json!({"spec": {"priority": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
            ),
            (
                json!({"spec": {"containers": [{"image": 5, "resources": {"limits": {"cpu": "x"}}}]}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
        ] {
            assert_eq!(read("core.v1.Pod", object).unwrap_err().0, message);
        }
        assert_eq!(
            read("core.v1.Secret", json!({"data": {"a": "!!"}})).unwrap_err().0,
            "illegal base64 data at input byte 0"
        );
    }

    #[test]
    fn schemas_of_definitions_are_read_through_their_alternatives() {
        let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object",
            "additionalProperties": {"type": "string"}, "items": [{"type": "string", "nope": 1}]}}}]}});
        let read = read("apiextensions.v1.CustomResourceDefinition", crd).unwrap();
        let schema = read.value.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap();
        assert_eq!(schema["additionalProperties"], json!({"type": "string"}));
        assert_eq!(schema["items"], json!([{"type": "string"}]));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let mut schema = json!({});
        for _ in 0..120 {
            schema = json!({"not": {"not": schema}});
        }
        let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        assert!(read("apiextensions.v1.CustomResourceDefinition", crd).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z0-9]{0,6}".prop_map(Value::from)
        ];
        let names = prop_oneof![
            Just("metadata"),
            Just("spec"),
            Just("containers"),
            Just("name"),
            Just("labels"),
            Just("template"),
            Just("resources"),
            Just("status"),
            Just("volumes")
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(names.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_has_been_read_reads_the_same_again(object in any_json()) {
            for short in ["core.v1.Pod", "apps.v1.Deployment", "core.v1.Node"] {
                if let Ok(once) = read(short, object.clone()) {
                    let twice = read(short, once.value.clone()).unwrap();
                    prop_assert_eq!(&twice.value, &once.value);
                    prop_assert!(twice.unknown.is_empty());
                }
            }
        }
    }
}
