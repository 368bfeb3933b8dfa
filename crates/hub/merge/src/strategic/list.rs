//! A patch of a list merged into the list.

use std::collections::{BTreeSet, HashMap, HashSet};

use berth_schema::Schema;
use serde_json::Value;

use super::order::settle;
use super::scalar::Key;
use super::{DIRECTIVE, fields, internal, no_merge_key};
use crate::golang::Plain;
use crate::patch_error::PatchError;

/// What the items of a list are: all of one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Map,
    Scalar,
}

/// The kind of all items; `None` where there are none.
pub(super) fn kind_of(lists: [&[Value]; 2]) -> Result<Option<Kind>, PatchError> {
    let mut found: Option<&Value> = None;
    for item in lists.iter().copied().flatten() {
        match found {
            None => {
                if item.is_array() {
                    return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
                }
                if item.is_null() {
                    return Err(PatchError::BadRequest(
                        "a list that is merged has an item that is null".to_owned(),
                    ));
                }
                found = Some(item);
            }
            Some(first) => {
                if crate::golang::type_name(first) != crate::golang::type_name(item) {
                    let shown = |list: &[Value]| Plain(&Value::Array(list.to_vec())).to_string();
                    let (left, right) = (shown(lists[0]), shown(lists[1]));
                    return Err(internal(format!("list element types are not identical: [{left} {right}]")));
                }
            }
        }
    }
    Ok(found.map(|first| if first.is_object() { Kind::Map } else { Kind::Scalar }))
}

/// Merges a patch into a list whose strategy is to merge, or takes scalars out of it.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    item: Option<Schema<'_>>,
    merge_key: Option<&str>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    let Some(kind) = kind_of([&original, &patch])? else { return Ok(original) };
    if kind == Kind::Scalar {
        if deletes {
            let gone: HashSet<Key<'_>> = patch.iter().map(Key::of).collect();
            return Ok(original.into_iter().filter(|item| !gone.contains(&Key::of(item))).collect());
        }
        let both: Vec<Value> = original.iter().chain(&patch).cloned().collect();
        return settle(deduplicated(both), &patch, &original, merge_key);
    }
    let Some(key) = merge_key else {
        return Err(internal("cannot merge lists without merge key for struct"));
    };
    let (original, patch) = special_items(original, patch, key)?;
    let merged = by_key(original.clone(), &patch, key, item)?;
    settle(merged, &patch, &original, merge_key)
}

/// Without what appears again. Where something goes the last item takes its place, as on the server: the order shows.
fn deduplicated(items: Vec<Value>) -> Vec<Value> {
    let mut places: HashMap<Key<'_>, BTreeSet<usize>> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        places.entry(Key::of(item)).or_default().insert(index);
    }
    if places.len() == items.len() {
        drop(places);
        return items;
    }
    // Which item stands where.
    let mut slots: Vec<usize> = (0..items.len()).collect();
    let mut at = 0;
    while at < slots.len() {
        let key = Key::of(&items[slots[at]]);
        while let Some(again) = places.get(&key).and_then(|known| known.range(at + 1..).next().copied()) {
            let last = slots.len() - 1;
            let moved = slots[last];
            places.entry(key.clone()).or_default().remove(&again);
            if again != last {
                let theirs = places.entry(Key::of(&items[moved])).or_default();
                theirs.remove(&last);
                theirs.insert(again);
                slots[again] = moved;
            }
            slots.pop();
        }
        at += 1;
    }
    drop(places);
    let mut items: Vec<Option<Value>> = items.into_iter().map(Some).collect();
    slots.into_iter().filter_map(|slot| items[slot].take()).collect()
}

/// Carries out the directives among a patch's items; gives the list and the patch without them.
fn special_items(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut replace = false;
    let mut plain = Vec::with_capacity(patch.len());
    let mut gone = Vec::new();
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(directive) => match directive.as_str() {
                Some("delete") => match item.get(key) {
                    Some(value) => gone.push(value.clone()),
                    None => return Err(no_merge_key(&item, key)),
                },
                Some("replace") => replace = true,
                Some("merge") => return Err(internal("merging lists cannot yet be specified in the patch")),
                _ => return Err(fields::unknown_directive(directive, &item)),
            },
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    let gone: HashSet<Key<'_>> = gone.iter().map(Key::of).collect();
    let stays = |item: &Value| item.get(key).is_none_or(|value| !gone.contains(&Key::of(value)));
    Ok((original.into_iter().filter(stays).collect(), plain))
}

/// Merges each item into the first that has its key, or adds it.
fn by_key(
    mut original: Vec<Value>,
    patch: &[Value],
    key: &str,
    schema: Option<Schema<'_>>,
) -> Result<Vec<Value>, PatchError> {
    let values: Vec<Option<Value>> = original.iter().map(|item| item.get(key).cloned()).collect();
    let mut places: HashMap<Key<'_>, usize> = HashMap::with_capacity(original.len());
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = value {
            places.entry(Key::of(value)).or_insert(index);
        }
    }
    for item in patch {
        let value = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
        match places.get(&Key::of(value)) {
            None => {
                places.insert(Key::of(value), original.len());
                original.push(item.clone());
            }
            Some(&at) => {
                let (Value::Object(live), Value::Object(changes)) = (original[at].take(), item) else {
                    return Err(internal(format!("value for key {at} is not a map")));
                };
                original[at] = Value::Object(fields::merge(live, changes.clone(), schema)?);
            }
        }
    }
    Ok(original)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The same, item by item, as one would do it for a short list.
    fn one_by_one(mut items: Vec<Value>) -> Vec<Value> {
        let mut left = 0;
        while left < items.len() {
            let mut right = left + 1;
            while right < items.len() {
                if items[left] == items[right] {
                    items.swap_remove(right);
                } else {
                    right += 1;
                }
            }
            left += 1;
        }
        items
    }

    proptest::proptest! {
        #[test]
        fn repeated_scalars_go_in_the_order_the_server_removes_them(
            items in proptest::collection::vec(0..6_i64, 0..20)
        ) {
            let items: Vec<Value> = items.into_iter().map(Value::from).collect();
            proptest::prop_assert_eq!(deduplicated(items.clone()), one_by_one(items));
        }
    }

    #[test]
    fn items_of_different_kinds_are_refused() {
        let refused = merge(vec![json!(1)], vec![json!("a")], None, None, false).unwrap_err();
        assert_eq!(refused.to_string(), "list element types are not identical: [[1] [a]]");
    }
}
