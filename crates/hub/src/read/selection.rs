//! Which objects a list or a watch shows.
//!
//! Owns the test of an entry against a label selector and a field selector. Labels are read from the entry; fields
//! other than name and namespace are read out of the object once and remembered with it.

use std::borrow::Cow;

use berth_hub_store::Entry;
use berth_hub_wire::{FieldLabelRule, FieldSelector, LabelSelector, Labels, ListOptions, Status};
use serde_json::Value;

use super::present::parse;
use crate::registry::{Origin, Resource};

/// What a client selects.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
    /// For each field that can be selected on: its label in selectors, and where the stored object has it.
    places: Vec<(String, String)>,
    /// The one name, of a watch on one object.
    only: Option<String>,
}

/// The selectable fields of one object, by their places. Views of one stored object have different places, so a place
/// that is not among them is read on its own.
struct Fields(Vec<(Box<str>, Option<Box<str>>)>);

struct EntryLabels<'a>(&'a Entry);

impl Labels for EntryLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
}

impl Selection {
    /// What two selectors select among the objects of a resource.
    pub(crate) fn new(resource: &Resource, options: &ListOptions) -> Result<Self, Status> {
        let (labels, fields) = (options.label_selector.clone(), options.field_selector.clone());
        let places = places(resource);
        let rule = if resource.custom().is_some() || !places.is_empty() {
            FieldLabelRule::Listed
        } else {
            FieldLabelRule::MetadataOnly
        };
        let known = |field: &str| {
            ["metadata.name", "metadata.namespace"].contains(&field)
                || places.iter().any(|(label, _)| label == field)
        };
        fields.check(known, rule)?;
        let places = if fields.is_everything() { Vec::new() } else { places };
        Ok(Self { labels, fields, places, only: None })
    }

    /// The same, and of this name.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { only: Some(name.to_owned()), ..self }
    }

    /// Whether there is nothing to test.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.only.is_none()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        if self.only.as_ref().is_some_and(|only| **only != *entry.key().name) {
            return false;
        }
        if !self.labels.is_everything() && !self.labels.matches(&EntryLabels(entry)) {
            return false;
        }
        if self.fields.is_everything() {
            return true;
        }
        self.fields.matches(|field| match field {
            "metadata.name" => Some(Cow::Borrowed(&*entry.key().name)),
            "metadata.namespace" => Some(Cow::Borrowed(&*entry.key().namespace)),
            _ => {
                let (_, place) = self.places.iter().find(|(label, _)| label == field)?;
                let fields = entry.derived(|entry| Fields::read(entry, &self.places));
                let value = match fields.0.iter().find(|(known, _)| **known == **place) {
                    Some((_, value)) => value.clone(),
                    None => at(&parse(entry.json()), place),
                };
                Some(Cow::Owned(value.unwrap_or_default().into()))
            }
        })
    }
}

impl Fields {
    fn read(entry: &Entry, places: &[(String, String)]) -> Self {
        let object = parse(entry.json());
        Self(places.iter().map(|(_, place)| (place.as_str().into(), at(&object, place))).collect())
    }
}

/// The scalar at a dotted path, as selectors compare it.
fn at(object: &Value, path: &str) -> Option<Box<str>> {
    let mut at = object;
    for segment in path.split('.') {
        at = at.get(segment)?;
    }
    match at {
        Value::String(text) => Some(text.as_str().into()),
        Value::Null | Value::Object(_) | Value::Array(_) => None,
        scalar => Some(scalar.to_string().into()),
    }
}

/// What can be selected on besides name and namespace.
fn places(resource: &Resource) -> Vec<(String, String)> {
    match &resource.origin {
        Origin::Builtin(kind) => kind
            .selectable_fields
            .iter()
            .filter(|field| !["metadata.name", "metadata.namespace"].contains(&field.label))
            .map(|field| (field.label.to_owned(), field.stored.to_owned()))
            .collect(),
        Origin::Custom(version) => {
            version.selectable.iter().map(|path| (path.clone(), path.clone())).collect()
        }
    }
}
