//! What clients ask about the table of resources: discovery and OpenAPI.
//!
//! Owns the documents of one table, each made when it is first asked for and kept as long as the table is served.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use berth_hub_kinds::openapi::{self, CustomKind};
use berth_hub_wire::{Discovery, Document, ResourceInfo, SubresourceInfo};
use serde_json::{Value, json};

use super::{Origin, Resource};

/// What the documents say the server is.
const SERVER: &str = "v1.36.4";

/// A group and a version.
type GroupVersion = (Arc<str>, Box<str>);

/// The documents of one table.
#[derive(Debug)]
pub(crate) struct Documents {
    resources: Vec<Arc<Resource>>,
    discovery: OnceLock<Discovery>,
    openapi: BTreeMap<String, (GroupVersion, OnceLock<Document>)>,
    index: OnceLock<Document>,
}

impl Documents {
    pub(super) fn new(resources: &[Arc<Resource>]) -> Self {
        let path = |group: &str, version: &str| {
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
        };
        let openapi = resources
            .iter()
            .map(|resource| {
                let key = (resource.group.clone(), resource.version.clone());
                (path(&key.0, &key.1), (key, OnceLock::new()))
            })
            .collect();
        Self { openapi, resources: resources.to_vec(), discovery: OnceLock::new(), index: OnceLock::new() }
    }

    /// The discovery documents in all their forms.
    pub(crate) fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| {
            let resources: Vec<ResourceInfo> = self.resources.iter().map(|resource| info(resource)).collect();
            Discovery::new(&resources, "127.0.0.1")
        })
    }

    /// `/openapi/v3`
    pub(crate) fn openapi_index(&self) -> &Document {
        self.index.get_or_init(|| {
            let paths: BTreeMap<&String, Value> = self
                .openapi
                .keys()
                .filter_map(|path| {
                    let hash = hash(self.openapi(path)?);
                    Some((path, json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")})))
                })
                .collect();
            Document::new(&json!({"paths": paths}))
        })
    }

    /// `/openapi/v3/PATH`
    pub(crate) fn openapi(&self, path: &str) -> Option<&Document> {
        let ((group, version), slot) = self.openapi.get(path)?;
        Some(slot.get_or_init(|| {
            let here = self
                .resources
                .iter()
                .filter(|resource| resource.group == *group && resource.version == *version);
            let custom: Vec<CustomKind<'_>> = here
                .filter_map(|resource| {
                    let compiled = resource.custom()?;
                    Some(CustomKind {
                        group: &resource.group,
                        version: &resource.version,
                        kind: &resource.kind,
                        list_kind: &resource.list_kind,
                        plural: &resource.plural,
                        namespaced: resource.namespaced,
                        schema: Some(&compiled.schema),
                        status: compiled.status,
                        scale: compiled.scale.is_some(),
                    })
                })
                .collect();
            let document = if custom.is_empty() {
                openapi::builtin_document(group, version, SERVER)
            } else {
                openapi::custom_document(&custom, SERVER)
            };
            Document::new(&document)
        }))
    }

    /// Every path that says something, for `/`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> =
            ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"]
                .map(str::to_owned)
                .into();
        paths.extend(self.openapi.keys().map(|path| format!("/{path}")));
        paths.extend(self.openapi.keys().map(|path| format!("/openapi/v3/{path}")));
        paths.extend(
            self.openapi
                .values()
                .filter(|((group, _), _)| !group.is_empty())
                .map(|((group, _), _)| format!("/apis/{group}")),
        );
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

/// A document's tag without its quotes.
pub(crate) fn hash(document: &Document) -> &str {
    document.etag().trim_matches('"')
}

fn info(resource: &Resource) -> ResourceInfo {
    let texts = |names: &[Box<str>]| names.iter().map(std::string::ToString::to_string).collect();
    let subresources = match &resource.origin {
        Origin::Builtin(kind) => kind
            .subresources
            .iter()
            .map(|sub| SubresourceInfo {
                name: sub.name.to_owned(),
                group: sub.group.to_owned(),
                version: sub.version.to_owned(),
                kind: sub.kind.to_owned(),
                verbs: sub.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            })
            .collect(),
        Origin::Custom(version) => {
            let sub = |name: &str, group: &str, version: &str, kind: &str| SubresourceInfo {
                name: name.to_owned(),
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                verbs: ["get", "patch", "update"].map(str::to_owned).into(),
            };
            let status =
                version.status.then(|| sub("status", &resource.group, &resource.version, &resource.kind));
            let scale = version.scale.as_ref().map(|_| sub("scale", "autoscaling", "v1", "Scale"));
            status.into_iter().chain(scale).collect()
        }
    };
    let (storage_group, storage_version) = match &resource.origin {
        Origin::Builtin(kind) => {
            (kind.storage.0.to_owned(), if kind.stored() { kind.version.to_owned() } else { String::new() })
        }
        Origin::Custom(version) => {
            let storage = version.storage_api_version.rsplit('/').next().unwrap_or_default();
            (resource.group.to_string(), storage.to_owned())
        }
    };
    ResourceInfo {
        group: resource.group.to_string(),
        version: resource.version.to_string(),
        kind: resource.kind.to_string(),
        list_kind: resource.list_kind.to_string(),
        plural: resource.plural.to_string(),
        singular: resource.singular.to_string(),
        short_names: texts(&resource.short_names),
        categories: texts(&resource.categories),
        namespaced: resource.namespaced,
        is_custom: resource.custom().is_some(),
        verbs: resource.verbs().iter().map(|verb| (*verb).to_owned()).collect(),
        storage_group,
        storage_version,
        subresources,
    }
}
