//! The JSON form of a field set, `FieldsV1`: nested objects whose names are path elements, with `.` where a path that
//! goes on is itself in the set.
//!
//! Owns reading and writing it. Elements of kinds that a newer server might write are left out when read, as the API
//! server does.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{FieldSet, Node};
use crate::depth::MAX_DEPTH;

/// Why a `FieldsV1` could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A level is no object.
    #[error("expected an object of path elements")]
    NoObject,
    /// A name is no path element.
    #[error("parsing key as path element: {0}")]
    Element(String),
    /// More levels than any object has.
    #[error("field set is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Reads one path element; `None` for a kind that is not known.
fn read_element(text: &str) -> Result<Option<Element<'_>>, FieldsError> {
    let wrong = |why: String| FieldsError::Element(why);
    if text.len() < 2 {
        return Err(wrong("key must be 2 characters long:".to_owned()));
    }
    if text.as_bytes()[1] != b':' {
        return Err(wrong(format!("missing colon: {text}")));
    }
    let rest = &text[2..];
    match text.as_bytes()[0] {
        b'f' => Ok(Some(Element::Field(Cow::Borrowed(rest)))),
        b'v' => {
            let value = serde_json::from_str(rest).map_err(|error| wrong(error.to_string()))?;
            Ok(Some(Element::Value(Cow::Owned(value))))
        }
        b'k' => {
            let fields: Map<String, Value> =
                serde_json::from_str(rest).map_err(|error| wrong(error.to_string()))?;
            let fields = fields.into_iter().map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)));
            Ok(Some(Element::Key(fields.collect())))
        }
        b'i' => match rest.parse() {
            Ok(index) => Ok(Some(Element::Index(index))),
            Err(_) => Err(wrong(format!("strconv.Atoi: parsing \"{rest}\": invalid syntax"))),
        },
        _ => Ok(None),
    }
}

fn write_json(text: &mut String, value: &Value) {
    write!(text, "{value}").expect("writing to a string does not fail");
}

/// Whether any path of a set is in a JSON form, without reading the whole of it: the set of a change is small, and most
/// managers are not concerned.
pub(crate) fn touches(fields: &Value, set: &FieldSet<'_>) -> bool {
    fields.as_object().is_some_and(|fields| touches_inner(fields, set))
}

fn touches_inner(fields: &Map<String, Value>, set: &FieldSet<'_>) -> bool {
    set.nodes.iter().any(|node| {
        let Some(Value::Object(inner)) = fields.get(&write_element(&node.element)) else { return false };
        (node.member && (inner.is_empty() || inner.contains_key("."))) || touches_inner(inner, &node.children)
    })
}

/// The element and what is below it, for each name of a level that has anything below it.
pub(crate) fn containers(fields: &Value) -> impl Iterator<Item = (&str, &Value)> {
    fields.as_object().into_iter().flatten().filter_map(|(name, inner)| {
        let has_more = inner.as_object().is_some_and(|inner| inner.keys().any(|name| name != "."));
        has_more.then_some((name.as_str(), inner))
    })
}

/// An element's name in the JSON form.
pub(super) fn write_element(element: &Element<'_>) -> String {
    match element {
        Element::Field(name) => {
            let mut text = String::with_capacity(name.len() + 2);
            text.push_str("f:");
            text.push_str(name);
            text
        }
        Element::Key(fields) => {
            let mut text = String::from("k:{");
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                // Names as JSON strings, so that a quote in a field's name does no harm.
                text.push_str(&serde_json::to_string(name).expect("a string always has a JSON text"));
                text.push(':');
                write_json(&mut text, &whole(value));
            }
            text.push('}');
            text
        }
        Element::Value(value) => {
            let mut text = String::from("v:");
            write_json(&mut text, &whole(value));
            text
        }
        Element::Index(index) => format!("i:{index}"),
    }
}

/// A number without a fraction is written without one, whatever it was read from.
fn whole(value: &Value) -> Cow<'_, Value> {
    /// Below this magnitude a double without a fraction prints as a whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(double) if double.fract() == 0.0 && double.abs() < EXACT => {
                Cow::Owned(Value::from(double as i64))
            }
            _ => Cow::Borrowed(value),
        },
        other => Cow::Borrowed(other),
    }
}

impl<'a> FieldSet<'a> {
    /// Reads a set from its JSON form. A null is the empty set.
    pub fn from_fields_v1(fields: &'a Value) -> Result<Self, FieldsError> {
        Ok(read(fields, MAX_DEPTH)?.1)
    }

    /// The JSON form.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.members(false))
    }

    fn members(&self, own: bool) -> Map<String, Value> {
        let own = own.then(|| (".".to_owned(), Value::Object(Map::new())));
        let nodes = self.nodes.iter().map(|node| {
            let inner =
                if node.children.is_empty() { Map::new() } else { node.children.members(node.member) };
            (write_element(&node.element), Value::Object(inner))
        });
        own.into_iter().chain(nodes).collect()
    }

    /// The JSON text with elements in their canonical order (a JSON object here sorts its names as text, in which port
    /// 443 comes before port 80).
    pub fn to_canonical_text(&self) -> String {
        let mut text = String::new();
        self.write_text(false, &mut text);
        text
    }

    fn write_text(&self, own: bool, text: &mut String) {
        text.push('{');
        if own {
            text.push_str("\".\":{}");
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if own || index > 0 {
                text.push(',');
            }
            let name = write_element(&node.element);
            text.push_str(&serde_json::to_string(&name).expect("a string always has a JSON text"));
            text.push(':');
            if node.children.is_empty() {
                text.push_str("{}");
            } else {
                node.children.write_text(node.member, text);
            }
        }
        text.push('}');
    }
}

/// A level: whether what it stands for is a member, and what is below.
fn read(fields: &Value, levels: usize) -> Result<(bool, FieldSet<'_>), FieldsError> {
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => return Ok((true, FieldSet::new())),
        _ => return Err(FieldsError::NoObject),
    };
    if levels == 0 {
        return Err(FieldsError::TooDeep);
    }
    let mut member = false;
    let mut set = FieldSet { nodes: Vec::with_capacity(fields.len()) };
    for (name, inner) in fields {
        if name == "." {
            member = true;
            continue;
        }
        let Some(element) = read_element(name)? else { continue };
        let (member, children) = read(inner, levels - 1)?;
        let node = Node { element, member, children };
        if set.nodes.last().is_none_or(|last| last.element < node.element) {
            set.nodes.push(node);
        } else {
            set = set.union(FieldSet { nodes: vec![node] });
        }
    }
    Ok((member || set.is_empty(), set))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_survives_its_json_form() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                "f:ports": {
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}},
                    "k:{\"containerPort\":443,\"protocol\":\"TCP\"}": {".": {}},
                },
                "f:finalizers": {"v:\"x\"": {}, "v:1": {}},
                "f:list": {"i:0": {}, "i:12": {}},
            },
        });
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        let mut expected = fields.clone();
        // An element with only a "." is a member without descendants.
        expected["f:spec"]["f:ports"]["k:{\"containerPort\":443,\"protocol\":\"TCP\"}"] = json!({});
        assert_eq!(set.to_fields_v1(), expected);
        let text = set.to_canonical_text();
        assert!(text.find("containerPort\\\":80").unwrap() < text.find("containerPort\\\":443").unwrap());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn unknown_kinds_of_elements_are_left_out_and_broken_ones_refused() {
        let fields = json!({"x:future": {"f:a": {}}, "f:b": {}});
        assert_eq!(FieldSet::from_fields_v1(&fields).unwrap().to_fields_v1(), json!({"f:b": {}}));
        for broken in
            [json!({"f": {}}), json!({"fx": {}}), json!({"k:[": {}}), json!({"i:x": {}}), json!({"f:a": 1})]
        {
            assert!(FieldSet::from_fields_v1(&broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_field_set_nested_without_bound_is_refused() {
        let mut fields = json!({});
        for _ in 0..=MAX_DEPTH {
            fields = json!({"f:a": fields});
        }
        assert_eq!(FieldSet::from_fields_v1(&fields), Err(FieldsError::TooDeep));
    }

    /// Sets over a small alphabet, so that they overlap.
    fn sets() -> impl Strategy<Value = FieldSet<'static>> {
        let element = prop_oneof![
            prop::sample::select(vec!["a", "b", "c"]).prop_map(Element::field),
            (0..3_i64).prop_map(|n| Element::Key(vec![(Cow::Borrowed("k"), Cow::Owned(json!(n)))])),
            prop::sample::select(vec!["x", "y"]).prop_map(|v| Element::Value(Cow::Owned(json!(v)))),
        ];
        prop::collection::vec(prop::collection::vec(element, 1..4), 0..8).prop_map(|paths| {
            let mut set = FieldSet::new();
            for path in paths {
                set.insert(path);
            }
            set
        })
    }

    proptest! {
        #[test]
        fn the_algebra_of_sets_holds(a in sets(), b in sets(), c in sets()) {
            prop_assert_eq!(a.clone().union(b.clone()), b.clone().union(a.clone()));
            prop_assert_eq!(
                a.clone().union(b.clone()).union(c.clone()),
                a.clone().union(b.clone().union(c.clone()))
            );
            prop_assert_eq!(a.clone().union(a.clone()), a.clone());
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            prop_assert_eq!(a.intersection(&a), a.clone());
            prop_assert_eq!(a.intersects(&b), !a.intersection(&b).is_empty());
            prop_assert!(a.clone().difference(&a).is_empty());
            // What is taken away and what is shared make up the whole, and do not overlap.
            let rest = a.clone().difference(&b);
            prop_assert!(!rest.intersects(&b));
            prop_assert_eq!(rest.len() + a.intersection(&b).len(), a.len());
            prop_assert_eq!(rest.union(a.intersection(&b)), a.clone());
            prop_assert_eq!(
                a.clone().difference(&b).difference(&c),
                a.clone().difference(&b.clone().union(c.clone()))
            );
            prop_assert!(a.clone().recursive_difference(&b).difference(&a).is_empty());
        }

        #[test]
        fn every_set_survives_its_json_form(a in sets()) {
            let fields = a.to_fields_v1();
            prop_assert_eq!(&FieldSet::from_fields_v1(&fields).unwrap(), &a);
            prop_assert_eq!(a.paths().len(), a.len());
            let mut rebuilt = FieldSet::new();
            for path in a.paths() {
                rebuilt.insert(path);
            }
            prop_assert_eq!(rebuilt, a);
        }
    }
}
