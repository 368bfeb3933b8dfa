//! The order of merged items: as the patch has them, with items that only the document has kept between.

use std::collections::HashMap;

use serde_json::Value;

use super::scalar::Key;
use super::{DIRECTIVE, bad_type, no_merge_key};
use crate::patch_error::PatchError;

/// Up to here, items whose place is unknown are moved one by one as the server moves them; beyond, they go last. The
/// server's result for such patches depends on how its sort works.
const MOVED_ONE_BY_ONE: usize = 20;

/// What tells items apart: the value of a field, or the item itself.
fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Key<'a> {
    match merge_key {
        None => Key::of(item),
        Some(key) => item.get(key).map_or(Key::Null, Key::of),
    }
}

/// Where each item first stands.
struct Places<'a> {
    first: HashMap<Key<'a>, usize>,
    merge_key: Option<&'a str>,
}

impl<'a> Places<'a> {
    fn of(items: &'a [Value], merge_key: Option<&'a str>) -> Self {
        let mut first = HashMap::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            first.entry(identity(item, merge_key)).or_insert(index);
        }
        Self { first, merge_key }
    }

    fn get(&self, item: &Value) -> Option<usize> {
        self.first.get(&identity(item, self.merge_key)).copied()
    }
}

/// Merged items in order: those of the patch by `patch_order`, the others by `server_order`, interleaved by where both
/// stood on the server.
pub(super) fn settle(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let by_patch = Places::of(patch_order, merge_key);
    let by_server = Places::of(server_order, merge_key);
    if let Some(key) = merge_key {
        for item in &merged {
            keyed(item, key)?;
        }
    }
    let (patched, others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| by_patch.get(item).is_some());
    let patched = sort(patched, patch_order, &by_patch, merge_key)?;
    let others = sort(others, server_order, &by_server, merge_key)?;
    Ok(interleave(others, patched, &by_server))
}

fn keyed(item: &Value, key: &str) -> Result<(), PatchError> {
    match item {
        Value::Object(fields) if fields.contains_key(key) => Ok(()),
        Value::Object(_) => Err(no_merge_key(item, key)),
        other => Err(bad_type("map[string]interface {}", other)),
    }
}

fn sort(
    items: Vec<Value>,
    order: &[Value],
    places: &Places<'_>,
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let mut deleted = Vec::new();
    let mut kept = items;
    if let Some(key) = merge_key {
        for item in kept.iter().chain(order) {
            keyed(item, key)?;
        }
        let (gone, stay) =
            kept.into_iter().partition(|item| item.get(DIRECTIVE).is_some_and(|value| value == "delete"));
        deleted = gone;
        kept = stay;
    }
    let mut placed: Vec<(Option<usize>, Value)> =
        kept.into_iter().map(|item| (places.get(&item), item)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else if placed.len() <= MOVED_ONE_BY_ONE {
        for end in 1..placed.len() {
            let mut at = end;
            while at > 0 && before(placed[at].0, placed[at - 1].0) {
                placed.swap(at, at - 1);
                at -= 1;
            }
        }
    } else {
        placed.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

/// An item without a place is before every other, and every other before it.
fn before(left: Option<usize>, right: Option<usize>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    }
}

fn interleave(left: Vec<Value>, right: Vec<Value>, places: &Places<'_>) -> Vec<Value> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    loop {
        let take_left = match (left.peek(), right.peek()) {
            (Some(left), Some(right)) => match (places.get(left), places.get(right)) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return out,
        };
        out.extend(if take_left { left.next() } else { right.next() });
    }
}
