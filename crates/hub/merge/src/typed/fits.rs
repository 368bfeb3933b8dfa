//! Whether a value can be read by its type, yes or no: the check of every update, where nobody reads the reasons.
//!
//! Says the same as [`validate`](super::validate::validate) with repeated names allowed.

use serde_json::Value;

use super::item::element;
use super::kind::{Branch, Items, Scalar, Type};
use crate::depth::MAX_DEPTH;

/// Whether a value fits its type.
pub(crate) fn fits(value: &Value, of: Type<'_>) -> bool {
    within(value, of, MAX_DEPTH + 1)
}

fn within(value: &Value, of: Type<'_>, levels: usize) -> bool {
    match (of.branch(Some(value)), value) {
        (_, Value::Null) => true,
        _ if levels == 0 => false,
        (Branch::Scalar, value) => match (of.scalar(), value) {
            (Scalar::Numeric, value) => value.is_number(),
            (Scalar::String, value) => value.is_string(),
            (Scalar::Boolean, value) => value.is_boolean(),
            (Scalar::Untyped, value) => !value.is_array() && !value.is_object(),
        },
        (Branch::Map, Value::Object(fields)) => fields
            .iter()
            .all(|(name, field)| of.field(name).is_some_and(|(of, _)| within(field, of, levels - 1))),
        (Branch::List, Value::Array(items)) => {
            let inner = of.item();
            items.iter().all(|item| is_nameable(of, item) && within(item, inner, levels - 1))
        }
        _ => false,
    }
}

fn is_nameable(list: Type<'_>, item: &Value) -> bool {
    match (list.items(), item) {
        (Items::Keyed(keys), Value::Object(fields)) => {
            keys.iter().any(|key| fields.contains_key(&**key)) || element(list, item).is_ok()
        }
        (Items::Keyed(_), _) => false,
        (Items::Set, item) => !item.is_object() && !item.is_array() && !item.is_null(),
        (Items::Atomic, _) => true,
    }
}
