//! Which part of an old object a part of the new one corresponds to.
//!
//! Owns the pairing: fields by name, items of a keyed list by their keys, nothing else. An update is compared with what
//! was there before along these pairs. Never changes a value.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    DEPTH_MAX, gotext,
    node::{ListType, Schema},
};

/// The items of an old list, found by the keys of a new one's items.
pub(crate) struct OldItems<'o, 's> {
    entries: &'o [Value],
    keys: &'s [Box<str>],
    /// Made when the items of the two lists are not at the same places.
    index: Option<HashMap<String, &'o Value>>,
}

impl<'o, 's> OldItems<'o, 's> {
    pub(crate) fn new(old: &'o Value, schema: Schema<'s>) -> Self {
        let (entries, keys) = match (old, &schema.node().list) {
            (Value::Array(entries), ListType::Map(keys)) if !keys.is_empty() => {
                (entries.as_slice(), keys.as_slice())
            }
            // The items of other lists have no identity.
            _ => (&[] as &[Value], &[] as &[Box<str>]),
        };
        Self { entries, keys, index: None }
    }

    /// The old item with the keys of a new one, which is at `index`.
    pub(crate) fn of(&mut self, entry: &Value, index: usize) -> Option<&'o Value> {
        if self.entries.is_empty() {
            return None;
        }
        let key = key_of(entry, self.keys)?;
        if let Some(old) = self.entries.get(index)
            && key_of(old, self.keys).as_ref() == Some(&key)
        {
            return Some(old);
        }
        let (entries, keys) = (self.entries, self.keys);
        let items = self.index.get_or_insert_with(|| {
            // Of items with equal keys the first counts.
            entries.iter().rev().filter_map(|entry| Some((key_of(entry, keys)?, entry))).collect()
        });
        items.get(&key).copied()
    }
}

/// The identity of a keyed list's item; none unless it has a scalar under each key.
fn key_of(entry: &Value, keys: &[Box<str>]) -> Option<String> {
    let mut text = String::new();
    for key in keys {
        match entry.get(&**key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => text.push_str(&gotext::json(scalar)),
        }
        text.push('\0');
    }
    Some(text)
}

/// Whether a value is what it was. Items of a keyed list may have moved; a field that the schema does not describe
/// cannot be compared and makes the difference.
pub(crate) fn unchanged(value: &Value, old: &Value, schema: Schema<'_>) -> bool {
    unchanged_within(value, old, schema, DEPTH_MAX)
}

fn unchanged_within(value: &Value, old: &Value, schema: Schema<'_>, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match (value, old) {
        (Value::Object(fields), Value::Object(old)) => {
            fields.len() == old.len()
                && fields.iter().all(|(name, field)| match (old.get(name), schema.field(name)) {
                    (Some(old), Some(schema)) => unchanged_within(field, old, schema, depth),
                    _ => false,
                })
        }
        (Value::Array(entries), Value::Array(old_entries)) => {
            if entries.len() != old_entries.len() {
                return false;
            }
            match (&schema.node().list, schema.items()) {
                (ListType::Map(keys), Some(items)) if !keys.is_empty() => {
                    let mut old = OldItems::new(old, schema);
                    entries.iter().zip(old_entries).enumerate().all(|(index, (entry, beside))| {
                        if key_of(entry, keys).is_none() {
                            // Without an identity an item is what it was where it was.
                            return same(entry, beside, depth);
                        }
                        old.of(entry, index).is_some_and(|old| unchanged_within(entry, old, items, depth))
                    })
                }
                _ => same(value, old, depth),
            }
        }
        _ => value == old,
    }
}

/// Equality that gives up on values nested too deeply.
fn same(value: &Value, other: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match (value, other) {
        (Value::Array(entries), Value::Array(others)) => {
            entries.len() == others.len()
                && entries.iter().zip(others).all(|(entry, other)| same(entry, other, depth))
        }
        (Value::Object(fields), Value::Object(others)) => {
            fields.len() == others.len()
                && fields
                    .iter()
                    .all(|(name, field)| others.get(name).is_some_and(|other| same(field, other, depth)))
        }
        _ => value == other,
    }
}
