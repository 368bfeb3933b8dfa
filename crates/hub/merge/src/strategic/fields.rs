//! A patch of an object merged into the object.

use std::collections::HashSet;

use berth_schema::{Schema, Shape};
use serde_json::{Map, Value};

use super::list::{self, kind_of};
use super::order::settle;
use super::scalar::Key;
use super::{DELETE_FROM, DIRECTIVE, RETAIN_KEYS, SET_ORDER, bad_type, internal};
use crate::golang::{Plain, Quoted, type_name};
use crate::patch_error::PatchError;

type Fields = Map<String, Value>;

/// How a field is merged, and what is inside it.
struct Strategy<'a> {
    schema: Schema<'a>,
    merge: bool,
    merge_key: Option<&'a str>,
}

/// Looks a field up; fails where the type has no named fields, as nothing says how to merge what is inside a map.
fn strategy<'a>(schema: Option<Schema<'a>>, name: &str) -> Result<Strategy<'a>, PatchError> {
    let unknown =
        || internal(format!("unable to find api field in struct for the json field {}", Quoted(name)));
    let schema = schema.ok_or_else(unknown)?;
    let node = schema.node();
    if node.properties.is_empty() {
        let found = match node.shape {
            Shape::Object => "map",
            Shape::Array => "slice",
            _ => return Err(unknown()),
        };
        return Err(internal(format!(
            "merging an object in json but data type is not struct, instead is: {found}"
        )));
    }
    let field = schema.property(name).ok_or_else(unknown)?;
    let rule = field.node().patch.as_ref();
    Ok(Strategy {
        schema: field,
        merge: rule.is_some_and(|rule| rule.merge),
        merge_key: rule.and_then(|rule| rule.merge_key.as_deref()).filter(|key| !key.is_empty()),
    })
}

pub(super) fn unknown_directive(directive: &Value, item: &Value) -> PatchError {
    let shown = match directive {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", type_name(other), Plain(other)),
    };
    internal(format!("unknown patch type: {shown} in map: {}", Plain(item)))
}

/// Merges a patch into an object.
pub(super) fn merge(
    mut original: Fields,
    mut patch: Fields,
    schema: Option<Schema<'_>>,
) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &Value::Object(patch.clone()))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    ordered_lists(&mut original, &mut patch, schema)?;
    for (name, change) in patch {
        let list = target(&name, DELETE_FROM).map_err(|Nameless| {
            PatchError::BadRequest("invalid patch format of primitive list".to_owned())
        })?;
        let deletes = list.is_some();
        let name = list.map(str::to_owned).unwrap_or(name);
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let same_kind = original.get(&name).is_some_and(|value| type_name(value) == type_name(&change));
        if !same_kind {
            // Nothing to merge with: the patch is the value, without its directives and nulls.
            if !deletes {
                put(&mut original, name, without_nulls(change));
            }
            continue;
        }
        match (original.remove(&name), change) {
            (Some(Value::Object(live)), Value::Object(change)) => {
                let found = strategy(schema, &name)?;
                let merged = merge(live, change, Some(found.schema))?;
                original.insert(name, Value::Object(merged));
            }
            (Some(Value::Array(live)), Value::Array(change)) => {
                let found = strategy(schema, &name)?;
                let merged = if found.merge || deletes {
                    list::merge(live, change, found.schema.items(), found.merge_key, deletes)?
                } else {
                    change
                };
                original.insert(name, Value::Array(merged));
            }
            (_, change) => put(&mut original, name, change),
        }
    }
    Ok(original)
}

/// A directive that names no list.
struct Nameless;

/// The list that a directive is about; `None` for what is no directive of this kind.
fn target<'a>(name: &'a str, directive: &str) -> Result<Option<&'a str>, Nameless> {
    match name.strip_prefix(directive) {
        None => Ok(None),
        Some(rest) => rest.strip_prefix('/').map(Some).ok_or(Nameless),
    }
}

fn put(fields: &mut Fields, name: String, value: Value) {
    match without_directives(value) {
        Some(value) => fields.insert(name, value),
        None => fields.remove(&name),
    };
}

/// A value without objects that are directives.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let fields =
                fields.into_iter().filter_map(|(name, field)| Some((name, without_directives(field)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// A value without fields that are null; items of lists stay.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, field)| !field.is_null());
            Value::Object(fields.map(|(name, field)| (name, without_nulls(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// Clears what a patch does not retain. Everything it sets has to be retained.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let Value::Array(retained) = retained else { return Err(wrong()) };
    let retained: HashSet<Key<'_>> = retained.iter().map(Key::of).collect();
    let sets = patch.iter().filter(|(name, change)| {
        !change.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER)
    });
    if sets.into_iter().any(|(name, _)| !retained.contains(&Key::Text(name))) {
        return Err(wrong());
    }
    original.retain(|name, _| retained.contains(&Key::Text(name)));
    Ok(())
}

/// Merges the lists whose order the patch sets.
fn ordered_lists(
    original: &mut Fields,
    patch: &mut Fields,
    schema: Option<Schema<'_>>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let Value::Array(order) = order else { return Err(bad_type("[]interface {}", &order)) };
        let Ok(Some(name)) = target(&directive, SET_ORDER) else {
            return Err(PatchError::BadRequest("invalid patch format of setElementOrder list".to_owned()));
        };
        let as_list = |value: Option<&Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items.clone())),
            Some(other) => Err(bad_type("[]interface {}", other)),
        };
        let live = as_list(original.get(name))?;
        let change = as_list(patch.get(name))?;
        let found = strategy(schema, name)?;
        if found.schema.node().shape != Shape::Array {
            return Err(internal("expected slice or array type, but got: struct"));
        }
        in_order(change.as_deref().unwrap_or_default(), &order, found.merge_key)?;
        let kind = kind_of([live.as_deref().unwrap_or_default(), change.as_deref().unwrap_or_default()]);
        let merged = match (&live, change) {
            (None, None) => continue,
            (Some(live), None) => live.clone(),
            (None, Some(change)) => {
                let plain = without_directives(Value::Array(change));
                plain.and_then(|plain| plain.as_array().cloned()).unwrap_or_default()
            }
            (Some(live), Some(change)) if found.merge => {
                list::merge(live.clone(), change, found.schema.items(), found.merge_key, false)?
            }
            (Some(_), Some(change)) => change,
        };
        if kind?.is_none() {
            return Err(internal("no elements in any of the given slices"));
        }
        let settled = settle(merged, &order, live.as_deref().unwrap_or_default(), found.merge_key)?;
        original.insert(name.to_owned(), Value::Array(settled));
        patch.remove(name);
    }
    Ok(())
}

/// Whether the items of a patch stand in the order that is set, and are all in it.
fn in_order(patch: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let object = |item: &Value| {
        if item.is_object() { Ok(()) } else { Err(bad_type("map[string]interface {}", item)) }
    };
    let mut kept = Vec::with_capacity(patch.len());
    for item in patch {
        if merge_key.is_some() {
            object(item)?;
            if item.get(DIRECTIVE).is_some_and(|directive| directive == "delete") {
                continue;
            }
        }
        kept.push(item);
    }
    let mut ordered = order.iter();
    for item in &kept {
        // A directive has no place, but the server notices it only while there are places left.
        if item.get(DIRECTIVE).is_some() && ordered.len() > 0 {
            continue;
        }
        let mut placed = false;
        for next in ordered.by_ref() {
            if same_item(item, next, merge_key)? {
                placed = true;
                break;
            }
        }
        if !placed {
            return Err(internal(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                Plain(&Value::Array(patch.to_vec())),
                Plain(&Value::Array(order.to_vec())),
            )));
        }
    }
    Ok(())
}

fn same_item(left: &Value, right: &Value, merge_key: Option<&str>) -> Result<bool, PatchError> {
    let Some(key) = merge_key else { return Ok(Key::of(left) == Key::of(right)) };
    let value = |item: &'_ Value| -> Result<Value, PatchError> {
        if !item.is_object() {
            return Err(bad_type("map[string]interface {}", item));
        }
        item.get(key).cloned().ok_or_else(|| super::no_merge_key(item, key))
    };
    Ok(Key::of(&value(left)?) == Key::of(&value(right)?))
}
