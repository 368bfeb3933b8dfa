//! What is served: every resource by its path, and what clients ask about them.
//!
//! Owns one immutable table of resources, built anew whenever a definition changes and swapped as a whole, so that a
//! request sees one table from its first line to its last. Never reads the store.

mod definition;
mod documents;
mod resource;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use berth_hub_kinds::Builtins;
use berth_hub_store::ResourceKey;
use serde_json::Value;

use crate::resource::{condition, meta};

pub use definition::CustomVersion;
pub(crate) use definition::ScalePaths;
pub(crate) use documents::{Documents, hash};
pub(crate) use resource::{Head, Origin, Resource};

/// The resources served at one moment.
#[derive(Debug)]
pub(crate) struct Registry {
    /// In the order of discovery: by group, version, plural.
    resources: Vec<Arc<Resource>>,
    /// By plural: few groups and versions share one.
    by_plural: HashMap<Arc<str>, Vec<Arc<Resource>>>,
    by_storage: BTreeMap<ResourceKey, Arc<Resource>>,
    documents: Documents,
}

impl Registry {
    /// The built-in kinds and the versions that `definitions` serve. What `before` has compiled already and did not change
    /// is taken over from there.
    pub(crate) fn new<'a>(
        definitions: impl IntoIterator<Item = &'a Value>,
        before: Option<&Registry>,
    ) -> Self {
        let mut resources: Vec<Arc<Resource>> =
            Builtins::load().kinds.iter().map(|kind| Arc::new(Resource::builtin_kind(kind))).collect();
        for definition in definitions {
            let known = before.map(|before| before.compiled_from(definition)).unwrap_or_default();
            resources.extend(if known.is_empty() { custom(definition, before) } else { known });
        }
        let mut by_plural: HashMap<Arc<str>, Vec<Arc<Resource>>> = HashMap::new();
        for resource in &resources {
            by_plural.entry(Arc::clone(&resource.plural)).or_default().push(Arc::clone(resource));
        }
        let mut by_storage: BTreeMap<ResourceKey, Arc<Resource>> = BTreeMap::new();
        for resource in resources.iter().filter(|resource| resource.is_stored()) {
            let known = by_storage.entry(resource.storage.clone()).or_insert_with(|| Arc::clone(resource));
            // One view or version speaks for the stored form: the one objects are stored in.
            if resource.is_storage_form() {
                *known = Arc::clone(resource);
            }
        }
        Self { documents: Documents::new(&resources), resources, by_plural, by_storage }
    }

    /// The resources that were compiled from exactly this state of a definition.
    fn compiled_from(&self, definition: &Value) -> Vec<Arc<Resource>> {
        let state = (meta::text(definition, "uid"), meta::text(definition, "resourceVersion"));
        let same = |resource: &&Arc<Resource>| {
            resource.custom().is_some_and(|version| {
                (version.definition_uid.as_str(), version.definition_revision.as_str()) == state
            })
        };
        self.resources.iter().filter(same).cloned().collect()
    }

    /// The resource at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let same = |known: &&Arc<Resource>| &*known.group == group && &*known.version == version;
        self.by_plural.get(plural)?.iter().find(same)
    }

    /// The resource whose form the objects kept under `storage` have.
    pub(crate) fn stored(&self, storage: &ResourceKey) -> Option<&Arc<Resource>> {
        self.by_storage.get(storage)
    }

    /// The stored resource of a kind, as an owner reference names it.
    pub(crate) fn of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.by_storage.values().find(|resource| &*resource.group == group && &*resource.kind == kind)
    }

    /// Every stored resource once, in its stored form.
    pub(crate) fn all_stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_storage.values()
    }

    /// Every served resource in every version.
    pub(crate) fn all(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Discovery and OpenAPI.
    pub(crate) fn documents(&self) -> &Documents {
        &self.documents
    }
}

/// The served versions of a definition whose names were accepted.
fn custom(definition: &Value, before: Option<&Registry>) -> Vec<Arc<Resource>> {
    if !condition::is_true(definition, "Established") {
        return Vec::new();
    }
    let text = |pointer: &str| {
        Box::<str>::from(definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default())
    };
    let texts = |pointer: &str| -> Vec<Box<str>> {
        definition
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(Into::into).collect())
            .unwrap_or_default()
    };
    let group: Arc<str> = text("/spec/group").into();
    let plural: Arc<str> = text("/status/acceptedNames/plural").into();
    let kind = text("/status/acceptedNames/kind");
    let versions =
        definition.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    served
        .filter_map(|version| match CustomVersion::compile(definition, version) {
            Ok(mut compiled) => {
                let name = version["name"].as_str().unwrap_or_default();
                // What did not change in the schema does not make objects old.
                if let Some(known) = before
                    .and_then(|before| before.find(&group, name, &plural))
                    .and_then(|known| known.custom())
                    && known.definition_uid == compiled.definition_uid
                    && known.schema == compiled.schema
                {
                    compiled.since = known.since;
                }
                Some(Arc::new(Resource {
                    version: name.into(),
                    kind: kind.clone(),
                    list_kind: text("/status/acceptedNames/listKind"),
                    singular: text("/status/acceptedNames/singular"),
                    short_names: texts("/status/acceptedNames/shortNames"),
                    categories: texts("/status/acceptedNames/categories"),
                    namespaced: definition.pointer("/spec/scope").and_then(Value::as_str)
                        == Some("Namespaced"),
                    storage: ResourceKey::new(&group, &plural),
                    head: Head::new(&group, name, &kind),
                    origin: Origin::Custom(Arc::new(compiled)),
                    group: group.clone(),
                    plural: plural.clone(),
                }))
            }
            Err(error) => {
                tracing::error!(%plural, %group, error, "a definition cannot be served");
                None
            }
        })
        .collect()
}
