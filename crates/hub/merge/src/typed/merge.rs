//! A configuration merged into a live value: what is mentioned is taken, everything else stays.
//!
//! Owns the order of merged lists: the items of the configuration keep their order, and live items that it does not
//! mention keep their places between the shared ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::item::element;
use super::kind::{Branch, Items, Type};
use crate::fields::Element;

/// Merges two values that were found to fit their type.
pub(crate) fn merge(live: &Value, config: &Value, of: Type<'_>) -> Value {
    inner(live, config, of).unwrap_or(Value::Null)
}

fn inner(live: &Value, config: &Value, of: Type<'_>) -> Option<Value> {
    match of.branch(Some(config)) {
        Branch::Scalar => {}
        Branch::Map => {
            let (lefts, rights) = (live.as_object(), config.as_object());
            let empty = lefts.is_none_or(Map::is_empty) && rights.is_none_or(Map::is_empty);
            if !empty && !of.map_is_atomic() {
                let none = Map::new();
                return map(lefts.unwrap_or(&none), rights.unwrap_or(&none), of);
            }
        }
        Branch::List => {
            let (lefts, rights) = (live.as_array(), config.as_array());
            let empty = lefts.is_none_or(Vec::is_empty) && rights.is_none_or(Vec::is_empty);
            if !empty && of.items() != Items::Atomic {
                return list(lefts.map_or(&[], Vec::as_slice), rights.map_or(&[], Vec::as_slice), of);
            }
        }
    }
    Some(config.clone())
}

fn map(live: &Map<String, Value>, config: &Map<String, Value>, of: Type<'_>) -> Option<Value> {
    let mut out = Map::new();
    for (name, left) in live {
        let merged = match (config.get(name), of.field(name)) {
            (Some(right), Some((of, _))) => inner(left, right, of),
            (Some(right), None) => Some(right.clone()),
            (None, _) => Some(left.clone()),
        };
        out.extend(merged.map(|merged| (name.clone(), merged)));
    }
    for (name, right) in config.iter().filter(|(name, _)| !live.contains_key(name.as_str())) {
        out.insert(name.clone(), right.clone());
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// The items of one side: their names in order, and where each name first stands; `None` for a name that more than one
/// live item has, as those are not merged with anything.
struct Side<'a> {
    elements: Vec<(Element<'a>, &'a Value)>,
    first: BTreeMap<Element<'a>, Option<&'a Value>>,
}

impl<'a> Side<'a> {
    fn of(items: &'a [Value], of: Type<'a>) -> Self {
        let elements: Vec<_> =
            items.iter().filter_map(|item| Some((element(of, item).ok()?, item))).collect();
        let mut first = BTreeMap::new();
        for (element, item) in &elements {
            first.entry(element.clone()).and_modify(|known| *known = None).or_insert(Some(*item));
        }
        Self { elements, first }
    }

    fn has(&self, element: &Element<'_>) -> bool {
        self.first.contains_key(element)
    }
}

fn list(live: &[Value], config: &[Value], of: Type<'_>) -> Option<Value> {
    let (live, config) = (Side::of(live, of), Side::of(config, of));
    let inner_type = of.item();
    let take = |element: &Element<'_>, right: &Value| match live.first.get(element) {
        None => Some(right.clone()),
        Some(left) => inner(left.unwrap_or(&Value::Null), right, inner_type),
    };
    let mut shared = config.elements.iter().map(|(element, _)| element).filter(|element| live.has(element));
    let mut next_shared = shared.next();
    let mut taken: std::collections::BTreeSet<&Element<'_>> = std::collections::BTreeSet::new();
    let mut out = Vec::with_capacity(live.elements.len().max(config.elements.len()));
    let mut lefts = live.elements.iter().peekable();
    let mut rights = config.elements.iter().peekable();
    while lefts.peek().is_some() || rights.peek().is_some() {
        if let (Some((left, _)), Some((right, item))) = (lefts.peek(), rights.peek()) {
            if left == right {
                taken.insert(right);
                out.extend(take(right, item));
                lefts.next();
                rights.next();
                next_shared = shared.next();
                continue;
            }
            if config.has(left) && next_shared.is_some_and(|next| next != left) {
                // Shared, and not the one whose turn it is: the configuration's order wins.
                lefts.next();
                continue;
            }
        }
        if let Some((left, item)) = lefts.peek() {
            if !config.has(left) {
                out.push((*item).clone());
                lefts.next();
                continue;
            }
            if taken.contains(left) {
                lefts.next();
            }
        }
        if let Some((right, item)) = rights.next() {
            taken.insert(right);
            out.extend(take(right, item));
            if next_shared.is_some_and(|next| next == right) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
