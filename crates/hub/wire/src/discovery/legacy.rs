//! The legacy documents: one per group and version.

use serde::Serialize;

use super::{Document, Group, ResourceInfo};
use crate::names::api_version;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CoreGroup<'r> {
    kind: &'static str,
    versions: Vec<&'r str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [Address<'r>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address<'r> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'r> {
    group_version: String,
    version: &'r str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupItem<'r> {
    #[serde(flatten)]
    head: Option<Head>,
    name: &'r str,
    versions: Vec<GroupVersion<'r>>,
    preferred_version: Option<GroupVersion<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    kind: &'static str,
    api_version: &'static str,
}

#[derive(Serialize)]
struct GroupList<'r> {
    #[serde(flatten)]
    head: Head,
    groups: Vec<GroupItem<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList<'r> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ResourceItem<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceItem<'r> {
    name: String,
    singular_name: &'r str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'r str,
    kind: &'r str,
    verbs: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'r [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// `/api`
pub(super) fn core_versions(core: &Group<'_>, server_address: &str) -> Document {
    Document::new(&CoreGroup {
        kind: "APIVersions",
        versions: core.versions.iter().map(|(version, _)| *version).collect(),
        addresses: [Address { client_cidr: "0.0.0.0/0", server_address }],
    })
}

/// `/apis`
pub(super) fn groups(groups: &[Group<'_>]) -> Document {
    let groups = groups.iter().map(|group| group_item(group, None)).collect();
    Document::new(&GroupList { head: Head { kind: "APIGroupList", api_version: "v1" }, groups })
}

/// `/apis/{group}`
pub(super) fn group(group: &Group<'_>) -> Document {
    Document::new(&group_item(group, Some(Head { kind: "APIGroup", api_version: "v1" })))
}

fn group_item<'r>(group: &Group<'r>, head: Option<Head>) -> GroupItem<'r> {
    let version =
        |version: &'r str| GroupVersion { group_version: api_version(group.name, version), version };
    GroupItem {
        head,
        name: group.name,
        versions: group.versions.iter().map(|(name, _)| version(name)).collect(),
        preferred_version: group.versions.first().map(|(name, _)| version(name)),
    }
}

/// `/api/{version}`, `/apis/{group}/{version}`
pub(super) fn resources(group: &str, version: &str, resources: &[&ResourceInfo]) -> Document {
    let mut items = Vec::new();
    for resource in resources {
        items.push(ResourceItem {
            name: resource.plural.clone(),
            singular_name: &resource.singular,
            namespaced: resource.namespaced,
            group: "",
            version: "",
            kind: &resource.kind,
            verbs: &resource.verbs,
            short_names: &resource.short_names,
            categories: &resource.categories,
            storage_version_hash: resource.storage_version_hash(),
        });
        for below in &resource.subresources {
            let (group, version) = resource.spelled(&below.group, &below.version);
            items.push(ResourceItem {
                name: format!("{}/{}", resource.plural, below.name),
                singular_name: "",
                namespaced: resource.namespaced,
                group,
                version,
                kind: &below.kind,
                verbs: &below.verbs,
                short_names: &[],
                categories: &[],
                storage_version_hash: None,
            });
        }
    }
    Document::new(&ResourceList {
        kind: "APIResourceList",
        // The core group's list has never said its version.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: api_version(group, version),
        resources: items,
    })
}
