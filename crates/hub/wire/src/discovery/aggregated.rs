//! The aggregated documents: everything in one answer.

use serde::Serialize;

use super::{Document, Group, ResourceInfo};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'r> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Nothing,
    items: Vec<GroupItem<'r>>,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Name<'r> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'r str,
}

#[derive(Serialize)]
struct GroupItem<'r> {
    metadata: Name<'r>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    versions: Vec<VersionItem<'r>>,
}

#[derive(Serialize)]
struct VersionItem<'r> {
    version: &'r str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ResourceItem<'r>>,
    freshness: &'static str,
}

#[derive(Serialize)]
struct ResponseKind<'r> {
    group: &'r str,
    version: &'r str,
    kind: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceItem<'r> {
    resource: &'r str,
    response_kind: ResponseKind<'r>,
    scope: &'static str,
    singular_resource: &'r str,
    verbs: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'r [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceItem<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceItem<'r> {
    subresource: &'r str,
    response_kind: ResponseKind<'r>,
    verbs: &'r [String],
}

pub(super) fn document(groups: &[Group<'_>], api_version: &'static str) -> Document {
    let items = groups
        .iter()
        .map(|group| GroupItem {
            metadata: Name { name: group.name },
            versions: group
                .versions
                .iter()
                .map(|(version, resources)| VersionItem {
                    version,
                    resources: resources.iter().map(|resource| item(resource)).collect(),
                    freshness: "Current",
                })
                .collect(),
        })
        .collect();
    Document::new(&List { kind: "APIGroupDiscoveryList", api_version, metadata: Nothing {}, items })
}

fn item(resource: &ResourceInfo) -> ResourceItem<'_> {
    ResourceItem {
        resource: &resource.plural,
        response_kind: kind(resource, &resource.group, &resource.version, &resource.kind),
        scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &resource.singular,
        verbs: &resource.verbs,
        short_names: &resource.short_names,
        categories: &resource.categories,
        subresources: resource
            .subresources
            .iter()
            .map(|below| SubresourceItem {
                subresource: &below.name,
                response_kind: kind(resource, &below.group, &below.version, &below.kind),
                verbs: &below.verbs,
            })
            .collect(),
    }
}

fn kind<'r>(resource: &ResourceInfo, group: &'r str, version: &'r str, kind: &'r str) -> ResponseKind<'r> {
    let (group, version) =
        if resource.is_custom { (group, version) } else { resource.spelled(group, version) };
    ResponseKind { group, version, kind }
}
