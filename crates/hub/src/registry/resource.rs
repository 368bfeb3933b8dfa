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
pub(crate) struct Resource {
    /// The API group, empty for core.
    pub group: Arc<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind of an object.
    pub kind: Box<str>,
    /// The kind of a list.
    pub list_kind: Box<str>,
    /// The name in paths.
    pub plural: Arc<str>,
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
    /// How the text of its objects begins.
    pub head: Head,
    /// Where the facts come from.
    pub origin: Origin,
}

/// How the text of every object of a resource begins, so that a list need not put it together for each.
#[derive(Debug)]
pub(crate) struct Head {
    text: Box<str>,
    version: usize,
}

impl Head {
    /// The head of objects of this kind.
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        let slash = if group.is_empty() { "" } else { "/" };
        let version = format!("{{\"apiVersion\":\"{group}{slash}{version}\",");
        let text = format!("{version}\"kind\":\"{kind}\",");
        Self { text: text.into(), version: version.len() }
    }

    /// The opening brace, `apiVersion` and `kind`.
    pub(crate) fn whole(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The opening brace and `apiVersion`.
    pub(crate) fn version(&self) -> &[u8] {
        &self.text.as_bytes()[..self.version]
    }
}

/// Where a resource comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Built in.
    Builtin(&'static Builtin),
    /// One version of a definition.
    Custom(Arc<CustomVersion>),
}

impl Resource {
    /// A built-in kind.
    pub(crate) fn builtin_kind(kind: &'static Builtin) -> Self {
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
            head: Head::new(kind.group, kind.version, kind.kind),
            origin: Origin::Builtin(kind),
        }
    }

    /// Whether objects are kept, rather than only answered.
    pub(crate) fn is_stored(&self) -> bool {
        self.builtin().is_none_or(Builtin::stored)
    }

    /// Whether objects are kept in exactly this form.
    pub(crate) fn is_storage_form(&self) -> bool {
        match &self.origin {
            Origin::Builtin(kind) => kind.storage == (kind.group, kind.plural),
            Origin::Custom(version) => version.storage_api_version == self.api_version(),
        }
    }

    /// `group/version`, or the version alone for core.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The schema of an object.
    pub(crate) fn schema(&self) -> Schema<'_> {
        match &self.origin {
            Origin::Builtin(builtin) => Builtins::load().schema_of(builtin),
            Origin::Custom(version) => version.arena.schema(version.root),
        }
    }

    /// The schema with the metadata every object has, by which fields are owned and merged.
    pub(crate) fn typed_schema(&self) -> Schema<'_> {
        match &self.origin {
            Origin::Builtin(_) => self.schema(),
            Origin::Custom(version) => version.typed_schema(),
        }
    }

    /// The built-in kind, if it is one.
    pub(crate) fn builtin(&self) -> Option<&'static Builtin> {
        match &self.origin {
            Origin::Builtin(builtin) => Some(builtin),
            Origin::Custom(_) => None,
        }
    }

    /// The version of a definition, if it is one.
    pub(crate) fn custom(&self) -> Option<&CustomVersion> {
        match &self.origin {
            Origin::Builtin(_) => None,
            Origin::Custom(version) => Some(version),
        }
    }

    /// Whether a subresource of this name is served.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
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
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        self.builtin().map_or(&CUSTOM_RESOURCE_VERBS, |builtin| builtin.verbs)
    }
}
