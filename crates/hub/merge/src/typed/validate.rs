//! Whether a value can be read by its type at all: kinds of values, declared fields, names of list items.
//!
//! Owns these mismatches and their texts. What values may be beyond that is the schema's own validation.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::item::element;
use super::kind::{Branch, Items, Scalar, Type};
use crate::depth::MAX_DEPTH;
use crate::fields::Element;
use crate::golang::{Plain, Syntax, type_name};

/// Whether items of a list may have the same name. Objects that are stored may; what is applied may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Allowed,
    Refused,
}

/// What does not fit, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatches(Vec<(String, String)>);

impl Display for Mismatches {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let one = |f: &mut Formatter<'_>, (path, message): &(String, String)| {
            if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
        };
        if let [only] = self.0.as_slice() {
            return one(f, only);
        }
        f.write_str("errors:")?;
        for mismatch in &self.0 {
            f.write_str("\n  ")?;
            one(f, mismatch)?;
        }
        Ok(())
    }
}

/// The way from the root to where the walk is, on the stack: a text is made only for an error.
struct Place<'p> {
    element: &'p Element<'p>,
    above: Option<&'p Place<'p>>,
}

impl Place<'_> {
    fn path(place: Option<&Place<'_>>) -> String {
        place.map_or_else(String::new, |place| format!("{}{}", Self::path(place.above), place.element))
    }
}

struct Walk {
    duplicates: Duplicates,
    found: Vec<(String, String)>,
}

/// Checks a value against its type.
pub(crate) fn validate(value: &Value, of: Type<'_>, duplicates: Duplicates) -> Result<(), Mismatches> {
    let mut walk = Walk { duplicates, found: Vec::new() };
    walk.value(value, of, None, MAX_DEPTH + 1);
    if walk.found.is_empty() { Ok(()) } else { Err(Mismatches(walk.found)) }
}

impl Walk {
    fn report(&mut self, place: Option<&Place<'_>>, message: String) {
        self.found.push((Place::path(place), message));
    }

    fn value(&mut self, value: &Value, of: Type<'_>, place: Option<&Place<'_>>, levels: usize) {
        if value.is_null() {
            return;
        }
        if levels == 0 {
            return self.report(place, format!("nested deeper than {MAX_DEPTH} levels"));
        }
        match of.branch(Some(value)) {
            Branch::Scalar => self.scalar(value, of.scalar(), place),
            Branch::List => match value {
                Value::Array(items) => self.list(items, of, place, levels),
                other => self.report(place, format!("expected list, got &{{{}}}", Plain(other))),
            },
            Branch::Map => match value {
                Value::Object(_) => self.map(value, of, place, levels),
                other => self.report(place, format!("expected map, got &{{{}}}", Plain(other))),
            },
        }
    }

    fn scalar(&mut self, value: &Value, scalar: Scalar, place: Option<&Place<'_>>) {
        let message = match (scalar, value) {
            (Scalar::Numeric, Value::Number(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
            (Scalar::Numeric, other) => format!("expected numeric (int or float), got {}", type_name(other)),
            (Scalar::String, other) => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", Syntax(other))
            }
            (Scalar::Boolean, other) => format!("expected boolean, got &{{{}}}", Plain(other)),
            (Scalar::Untyped, other) => format!("expected any scalar, got &{{{}}}", Plain(other)),
        };
        self.report(place, message);
    }

    fn map(&mut self, value: &Value, of: Type<'_>, place: Option<&Place<'_>>, levels: usize) {
        let Value::Object(fields) = value else { return };
        for (name, field) in fields {
            let element = Element::field(name);
            let here = Place { element: &element, above: place };
            let Some((of, _)) = of.field(name) else {
                // The first undeclared field ends the look at this object.
                return self.report(Some(&here), "field not declared in schema".to_owned());
            };
            self.value(field, of, Some(&here), levels - 1);
        }
    }

    fn list(&mut self, items: &[Value], of: Type<'_>, place: Option<&Place<'_>>, levels: usize) {
        let inner = of.item();
        if of.items() == Items::Atomic {
            for (index, item) in items.iter().enumerate() {
                let element = Element::Index(index as i64);
                self.value(item, inner, Some(&Place { element: &element, above: place }), levels - 1);
            }
            return;
        }
        let mut elements = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match element(of, item) {
                Ok(element) => elements.push(element),
                Err(message) => {
                    self.named_items(items, &elements, inner, place, levels);
                    return self.report(place, format!("element {index}: {message}"));
                }
            }
        }
        self.named_items(items, &elements, inner, place, levels);
    }

    fn named_items(
        &mut self,
        items: &[Value],
        elements: &[Element<'_>],
        of: Type<'_>,
        place: Option<&Place<'_>>,
        levels: usize,
    ) {
        let repeated = if self.duplicates == Duplicates::Refused {
            repeated(elements)
        } else {
            vec![false; elements.len()]
        };
        for ((item, element), repeated) in items.iter().zip(elements).zip(repeated) {
            if repeated {
                self.report(place, format!("duplicate entries for key {element}"));
            }
            self.value(item, of, Some(&Place { element, above: place }), levels - 1);
        }
    }
}

/// Which elements have appeared before.
fn repeated(elements: &[Element<'_>]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    order.sort_by(|&left, &right| elements[left].cmp(&elements[right]));
    let mut repeated = vec![false; elements.len()];
    for pair in order.windows(2) {
        repeated[pair[1]] = elements[pair[0]] == elements[pair[1]];
    }
    repeated
}
