//! How an item of a list is named in a path.

use std::borrow::Cow;

use serde_json::Value;

use super::kind::{Items, Type};
use crate::fields::Element;

/// What keeps an item from having a name.
pub(super) type Unnamed = String;

/// The path element of an item of a list whose items are told apart.
pub(super) fn element<'a>(list: Type<'a>, item: &'a Value) -> Result<Element<'a>, Unnamed> {
    match list.items() {
        Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        Items::Keyed(keys) => by_keys(list, keys, item),
        Items::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(Element::Value(Cow::Borrowed(scalar))),
        },
    }
}

fn by_keys<'a>(list: Type<'a>, keys: &'a [Box<str>], item: &'a Value) -> Result<Element<'a>, Unnamed> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut named: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            // A key that is neither given nor defaulted is left out: that makes a different item.
            let value = fields.get(&**key).or_else(|| list.key_default(key))?;
            Some((Cow::Borrowed(&**key), Cow::Borrowed(value)))
        })
        .collect();
    if named.is_empty() && !keys.is_empty() {
        let quoted: Vec<_> = keys.iter().map(|key| crate::golang::Quoted(key).to_string()).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            quoted.join(" ")
        ));
    }
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(Element::Key(named))
}
