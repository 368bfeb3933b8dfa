//! What differs between two values, as sets of fields: removed, modified and added.

use serde_json::{Map, Value};

use super::item::element;
use super::kind::{Branch, Items, Type};
use crate::fields::{Element, FieldSet, Node};
use crate::number::same;

/// The difference of two values. No path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison<'a> {
    pub(crate) removed: FieldSet<'a>,
    pub(crate) modified: FieldSet<'a>,
    pub(crate) added: FieldSet<'a>,
}

impl<'a> Comparison<'a> {
    /// Whether nothing differs.
    pub(crate) fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// The difference without these fields and all that is below them.
    pub(crate) fn without(self, fields: &FieldSet<'_>) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    /// What was written: modified or added.
    pub(crate) fn written(&self) -> FieldSet<'a> {
        self.modified.clone().union(self.added.clone())
    }
}

/// Which of the three sets a place itself belongs to.
#[derive(Default)]
struct Own {
    removed: bool,
    modified: bool,
    added: bool,
}

/// Compares two objects that were found to fit their type. Fails where an item of a list has no name.
pub(crate) fn compare<'a>(left: &'a Value, right: &'a Value, of: Type<'a>) -> Result<Comparison<'a>, String> {
    let mut walk = Walk { path: Vec::new(), failure: None };
    let mut found = Comparison::default();
    walk.inside(Some(left), Some(right), of, &mut found, &mut Own::default());
    match walk.failure {
        None => Ok(found),
        Some(failure) => Err(failure),
    }
}

struct Walk<'a> {
    /// Where the walk is, for errors; items of lists only, as names of fields are cheap to add and rarely needed.
    path: Vec<Element<'a>>,
    failure: Option<String>,
}

impl<'a> Walk<'a> {
    /// Compares what is at a place and files the differences under its element.
    fn place(
        &mut self,
        element: &Element<'a>,
        left: Option<&'a Value>,
        right: Option<&'a Value>,
        of: Type<'a>,
        out: &mut Comparison<'a>,
    ) {
        let mut below = Comparison::default();
        let mut own = Own::default();
        self.inside(left, right, of, &mut below, &mut own);
        file(&mut out.removed, element, own.removed, below.removed);
        file(&mut out.modified, element, own.modified, below.modified);
        file(&mut out.added, element, own.added, below.added);
    }

    fn inside(
        &mut self,
        left: Option<&'a Value>,
        right: Option<&'a Value>,
        of: Type<'a>,
        below: &mut Comparison<'a>,
        own: &mut Own,
    ) {
        let left_branch = left.map(|value| of.branch(Some(value)));
        let right_branch = right.map(|value| of.branch(Some(value)));
        let mut leaf = false;
        // A value that changed its kind is compared as both.
        if let Some(branch) = left_branch
            && left_branch != right_branch
        {
            leaf = self.branch(branch, left, right, of, below, own);
        }
        if let Some(branch) = right_branch {
            if left_branch.is_some() && left_branch != right_branch {
                // Both looks may find the same place; sets are united.
                let mut again = Comparison::default();
                leaf = self.branch(branch, left, right, of, &mut again, own);
                below.removed = std::mem::take(&mut below.removed).union(again.removed);
                below.modified = std::mem::take(&mut below.modified).union(again.modified);
                below.added = std::mem::take(&mut below.added).union(again.added);
            } else {
                leaf = self.branch(branch, left, right, of, below, own);
            }
        }
        if !leaf {
            own.added |= left.is_none();
            own.removed |= right.is_none();
        }
    }

    /// Compares as one kind of value; says whether the place is a leaf.
    fn branch(
        &mut self,
        branch: Branch,
        left: Option<&'a Value>,
        right: Option<&'a Value>,
        of: Type<'a>,
        below: &mut Comparison<'a>,
        own: &mut Own,
    ) -> bool {
        match branch {
            Branch::Scalar => {}
            Branch::Map => {
                let (left, right) = (left.and_then(Value::as_object), right.and_then(Value::as_object));
                let empty = left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty);
                if !empty && !of.map_is_atomic() {
                    self.map(left, right, of, below);
                    return false;
                }
            }
            Branch::List => {
                let (left, right) = (left.and_then(Value::as_array), right.and_then(Value::as_array));
                let empty = left.is_none_or(Vec::is_empty) && right.is_none_or(Vec::is_empty);
                if !empty && of.items() != Items::Atomic {
                    self.list(left.map_or(&[], Vec::as_slice), right.map_or(&[], Vec::as_slice), of, below);
                    return false;
                }
            }
        }
        match (left, right) {
            (None, _) => own.added = true,
            (_, None) => own.removed = true,
            (Some(left), Some(right)) => own.modified |= !same(left, right),
        }
        true
    }

    fn map(
        &mut self,
        left: Option<&'a Map<String, Value>>,
        right: Option<&'a Map<String, Value>>,
        of: Type<'a>,
        out: &mut Comparison<'a>,
    ) {
        let mut lefts = left.into_iter().flatten().peekable();
        let mut rights = right.into_iter().flatten().peekable();
        loop {
            let found = match (lefts.peek(), rights.peek()) {
                (Some((left, _)), Some((right, _))) => left.cmp(right),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return,
            };
            let left = if found.is_le() { lefts.next() } else { None };
            let right = if found.is_ge() { rights.next() } else { None };
            let Some((name, _)) = left.or(right) else { return };
            let (left, right) = (left.map(|(_, value)| value), right.map(|(_, value)| value));
            // What did not change is told without a look at the schema.
            if left == right {
                continue;
            }
            // A field that is not declared was refused before; it has no owner.
            let Some((of, _)) = of.field(name) else { continue };
            self.place(&Element::field(name), left, right, of, out);
        }
    }

    fn list(&mut self, left: &'a [Value], right: &'a [Value], of: Type<'a>, out: &mut Comparison<'a>) {
        if left == right {
            return;
        }
        let lefts = self.named(left, of);
        let rights = self.named(right, of);
        let inner = of.item();
        let mut lefts = lefts.chunk_by(|(left, _), (right, _)| left == right).peekable();
        let mut rights = rights.chunk_by(|(left, _), (right, _)| left == right).peekable();
        loop {
            let found = match (lefts.peek(), rights.peek()) {
                (Some(left), Some(right)) => left[0].0.cmp(&right[0].0),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (None, None) => return,
            };
            let left = if found.is_le() { lefts.next() } else { None }.unwrap_or_default();
            let right = if found.is_ge() { rights.next() } else { None }.unwrap_or_default();
            let Some((element, _)) = left.first().or(right.first()) else { return };
            let element = element.clone();
            match (left, right) {
                // Items that share a name are compared as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let equal = left.len() == right.len()
                        && left.iter().zip(right).all(|((_, left), (_, right))| same(left, right));
                    if !equal {
                        out.modified.push(leaf(element));
                    }
                }
                ([_, _, ..], _) => {
                    let mut now = Comparison::default();
                    if let Some((_, now_alone)) = right.first() {
                        self.place(&element, None, Some(now_alone), inner, &mut now);
                    }
                    now.removed = now.removed.union(FieldSet { nodes: vec![leaf(element)] });
                    append(out, now);
                }
                (_, [_, _, ..]) => {
                    let mut now = Comparison::default();
                    if let Some((_, was_alone)) = left.first() {
                        self.place(&element, Some(was_alone), None, inner, &mut now);
                    }
                    now.added = now.added.union(FieldSet { nodes: vec![leaf(element)] });
                    append(out, now);
                }
                _ => {
                    let (left, right) =
                        (left.first().map(|(_, item)| *item), right.first().map(|(_, item)| *item));
                    self.path.push(element.clone());
                    self.place(&element, left, right, inner, out);
                    self.path.pop();
                }
            }
        }
    }

    /// A list's items by name, sorted; items that share a name keep their order.
    fn named(&mut self, items: &'a [Value], of: Type<'a>) -> Vec<(Element<'a>, &'a Value)> {
        let mut named = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match element(of, item) {
                Ok(element) => named.push((element, item)),
                Err(message) => {
                    let path: String = self.path.iter().map(ToString::to_string).collect();
                    let colon = if path.is_empty() { "" } else { ": " };
                    self.failure.get_or_insert_with(|| format!("{path}{colon}element {index}: {message}"));
                }
            }
        }
        named.sort_by(|(left, _), (right, _)| left.cmp(right));
        named
    }
}

fn leaf(element: Element<'_>) -> Node<'_> {
    Node { element, member: true, children: FieldSet::new() }
}

fn file<'a>(set: &mut FieldSet<'a>, element: &Element<'a>, member: bool, children: FieldSet<'a>) {
    if member || !children.is_empty() {
        set.push(Node { element: element.clone(), member, children });
    }
}

fn append<'a>(out: &mut Comparison<'a>, found: Comparison<'a>) {
    out.removed.nodes.extend(found.removed.nodes);
    out.modified.nodes.extend(found.modified.nodes);
    out.added.nodes.extend(found.added.nodes);
}
