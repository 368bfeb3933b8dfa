//! One served resource: a group, a version and a plural, and everything the pipeline must know about it.
//!
//! Owns the facts. Built-in kinds bring them as data, definitions of custom resources are compiled into them; past this
//! point nothing asks which of the two an object is, except through these fields.

use std::sync::Arc;

use berth_hub_kinds::{Builtin, Builtins};
use berth_hub_store::ResourceKey;
use berth_hub_wire::discovery::CUSTOM_RESOURCE_VERBS;
use berth_schema::Schema;

use super::definition::CustomVersion;

/// A resource as it is served in one version.
#[derive(Debug)]
pub struct Resource {
    /// The API group, empty for core.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind of an object.
    pub kind: Box<str>,
    /// The kind of a list.
    pub list_kind: Box<str>,
    /// The name in paths.
    pub plural: Box<str>,
    /// The name of one.
    pub singular: Box<str>,
    /// Names for people in a hurry.
    pub short_names: Vec<Box<str>>,
    /// Groups of resources this belongs to, as `all`.
    pub categories: Vec<Box<str>>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where its objects are kept: one place for all versions and views of a kind.
    pub storage: ResourceKey,
    /// Where the facts come from.
    pub origin: Origin,
}

/// Where a resource comes from.
#[derive(Debug)]
pub enum Origin {
    /// Built in.
    Builtin(&'static Builtin),
    /// One version of a definition.
    Custom(Arc<CustomVersion>),
}

impl Resource {
    /// A built-in kind.
    pub fn builtin_kind(kind: &'static Builtin) -> Self {
        let boxed = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
        Self {
            group: kind.group.into(),
            version: kind.version.into(),
            kind: kind.kind.into(),
            list_kind: kind.list_kind.clone(),
            plural: kind.plural.into(),
            singular: kind.singular.clone(),
            short_names: boxed(kind.short_names),
            categories: boxed(kind.categories),
            namespaced: kind.namespaced,
            storage: ResourceKey::new(kind.storage.0, kind.storage.1),
            origin: Origin::Builtin(kind),
        }
    }

    /// Whether objects are kept, rather than only answered.
    pub fn is_stored(&self) -> bool {
        self.builtin().is_none_or(Builtin::stored)
    }

    /// Whether objects are kept in exactly this form.
    pub fn is_storage_form(&self) -> bool {
        match &self.origin {
            Origin::Builtin(kind) => kind.storage == (kind.group, kind.plural),
            Origin::Custom(version) => version.storage_api_version == self.api_version(),
        }
    }

    /// `group/version`, or the version alone for core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, as error messages name a resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The schema of an object.
    pub fn schema(&self) -> Schema<'_> {
        match &self.origin {
            Origin::Builtin(builtin) => Builtins::load().schema_of(builtin),
            Origin::Custom(version) => version.arena.schema(version.root),
        }
    }

    /// The schema with the metadata every object has, by which fields are owned and merged.
    pub fn typed_schema(&self) -> Schema<'_> {
        match &self.origin {
            Origin::Builtin(_) => self.schema(),
            Origin::Custom(version) => version.arena.schema(version.typed_root),
        }
    }

    /// The built-in kind, if it is one.
    pub fn builtin(&self) -> Option<&'static Builtin> {
        match &self.origin {
            Origin::Builtin(builtin) => Some(builtin),
            Origin::Custom(_) => None,
        }
    }

    /// The version of a definition, if it is one.
    pub fn custom(&self) -> Option<&CustomVersion> {
        match &self.origin {
            Origin::Builtin(_) => None,
            Origin::Custom(version) => Some(version),
        }
    }

    /// Whether a subresource of this name is served.
    pub fn has_subresource(&self, name: &str) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => builtin.subresource(name).is_some(),
            Origin::Custom(version) => match name {
                "status" => version.status,
                "scale" => version.scale.is_some(),
                _ => false,
            },
        }
    }

    /// What may be done with it, as discovery lists it.
    pub fn verbs(&self) -> &'static [&'static str] {
        self.builtin().map_or(&CUSTOM_RESOURCE_VERBS, |builtin| builtin.verbs)
    }
}
