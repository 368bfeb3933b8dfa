//! Discovery: what a server serves, in the documents that clients read first.
//!
//! From one neutral list of resources come the aggregated documents and the legacy ones, encoded once and kept with
//! their entity tags; a change of the list makes a new set. Never knows how resources are served.
//!
//! ```text
//! [ResourceInfo] ──▶ Discovery ──▶ /api, /apis            aggregated, in two versions
//!                              └─▶ /api, /apis, /apis/g, /api/v1, /apis/g/v   legacy
//! ```

mod aggregated;
mod document;
mod legacy;
mod order;
mod resource;

use std::collections::{BTreeMap, HashMap};

pub use document::Document;
pub use order::{compare_versions, group_priority};
pub use resource::{CUSTOM_RESOURCE_VERBS, ResourceInfo, SubresourceInfo};

use crate::media::DiscoveryAnswer;

/// The documents of one state of what is served.
#[derive(Debug, Clone)]
pub struct Discovery {
    core: [Document; 3],
    groups: [Document; 3],
    group: HashMap<String, Document>,
    resources: HashMap<(String, String), Document>,
}

/// The resources of a group by version, best version first.
struct Group<'r> {
    name: &'r str,
    versions: Vec<(&'r str, Vec<&'r ResourceInfo>)>,
}

impl Discovery {
    /// Makes the documents. `server_address` is the host and port that legacy clients are told.
    pub fn new(resources: &[ResourceInfo], server_address: &str) -> Self {
        let mut groups = arrange(resources);
        let core = groups.iter().position(|group| group.name.is_empty()).map(|at| groups.remove(at));
        let core = core.unwrap_or(Group { name: "", versions: Vec::new() });
        let both = |groups: &[Group<'_>], legacy: Document| {
            [
                aggregated::document(groups, "apidiscovery.k8s.io/v2"),
                aggregated::document(groups, "apidiscovery.k8s.io/v2beta1"),
                legacy,
            ]
        };
        let mut by_version = HashMap::new();
        for group in groups.iter().chain([&core]) {
            for (version, resources) in &group.versions {
                let document = legacy::resources(group.name, version, resources);
                by_version.insert((group.name.to_owned(), (*version).to_owned()), document);
            }
        }
        Discovery {
            group: groups.iter().map(|group| (group.name.to_owned(), legacy::group(group))).collect(),
            resources: by_version,
            groups: both(&groups, legacy::groups(&groups)),
            core: both(std::slice::from_ref(&core), legacy::core_versions(&core, server_address)),
        }
    }

    /// What `/api` answers.
    pub fn core(&self, answer: DiscoveryAnswer) -> &Document {
        &self.core[index(answer)]
    }

    /// What `/apis` answers.
    pub fn groups(&self, answer: DiscoveryAnswer) -> &Document {
        &self.groups[index(answer)]
    }

    /// What `/apis/{group}` answers.
    pub fn group(&self, group: &str) -> Option<&Document> {
        self.group.get(group)
    }

    /// What `/api/{version}` and `/apis/{group}/{version}` answer.
    pub fn resources(&self, group: &str, version: &str) -> Option<&Document> {
        // Two short strings per legacy request are cheaper than a map of maps is to read about.
        self.resources.get(&(group.to_owned(), version.to_owned()))
    }
}

fn index(answer: DiscoveryAnswer) -> usize {
    match answer {
        DiscoveryAnswer::AggregatedV2 => 0,
        DiscoveryAnswer::AggregatedV2Beta1 => 1,
        DiscoveryAnswer::Legacy => 2,
    }
}

/// Resources by group and version, in the order of a real server: groups by priority and name, versions best first,
/// resources by name.
fn arrange(resources: &[ResourceInfo]) -> Vec<Group<'_>> {
    let mut map: BTreeMap<&str, BTreeMap<&str, Vec<&ResourceInfo>>> = BTreeMap::new();
    for resource in resources {
        map.entry(&resource.group).or_default().entry(&resource.version).or_default().push(resource);
    }
    let mut groups: Vec<Group<'_>> = map
        .into_iter()
        .map(|(name, versions)| {
            let mut versions: Vec<_> = versions.into_iter().collect();
            versions.sort_by(|(a, _), (b, _)| compare_versions(b, a));
            for (_, resources) in &mut versions {
                resources.sort_by(|a, b| a.plural.cmp(&b.plural));
            }
            Group { name, versions }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group_priority(group.name)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verbs(list: &[&str]) -> Vec<String> {
        list.iter().map(|verb| (*verb).to_owned()).collect()
    }

    fn pods() -> ResourceInfo {
        ResourceInfo {
            version: "v1".into(),
            kind: "Pod".into(),
            list_kind: "PodList".into(),
            plural: "pods".into(),
            singular: "pod".into(),
            short_names: vec!["po".into()],
            categories: vec!["all".into()],
            namespaced: true,
            verbs: verbs(&["get", "list"]),
            storage_version: "v1".into(),
            subresources: vec![SubresourceInfo {
                name: "eviction".into(),
                group: "policy".into(),
                version: "v1".into(),
                kind: "Eviction".into(),
                verbs: verbs(&["create"]),
            }],
            ..ResourceInfo::default()
        }
    }

    fn placements(version: &str) -> ResourceInfo {
        let group = "cluster.open-cluster-management.io";
        ResourceInfo {
            group: group.into(),
            version: version.into(),
            kind: "Placement".into(),
            list_kind: "PlacementList".into(),
            plural: "placements".into(),
            singular: "placement".into(),
            namespaced: true,
            is_custom: true,
            verbs: verbs(&CUSTOM_RESOURCE_VERBS),
            storage_group: group.into(),
            storage_version: "v1beta1".into(),
            subresources: vec![SubresourceInfo {
                name: "status".into(),
                group: group.into(),
                version: version.into(),
                kind: "Placement".into(),
                verbs: verbs(&["get", "patch", "update"]),
            }],
            ..ResourceInfo::default()
        }
    }

    fn discovery() -> Discovery {
        let apps = ResourceInfo { group: "apps".into(), version: "v1".into(), plural: "x".into(), ..pods() };
        let old = placements("v1alpha1");
        Discovery::new(&[old, placements("v1beta1"), apps, pods()], "127.0.0.1:6443")
    }

    fn read(document: &Document) -> Value {
        serde_json::from_slice(document.body()).unwrap()
    }

    #[test]
    fn the_aggregated_documents_hold_everything() {
        let discovery = discovery();
        let core = read(discovery.core(DiscoveryAnswer::AggregatedV2));
        assert_eq!(
            core,
            json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [
                {"metadata": {}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                    {"resource": "pods", "responseKind": {"group": "", "version": "", "kind": "Pod"},
                     "scope": "Namespaced", "singularResource": "pod", "verbs": ["get", "list"], "shortNames": ["po"],
                     "categories": ["all"], "subresources": [
                        {"subresource": "eviction", "verbs": ["create"],
                         "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"}}]}]}]}]})
        );
        let groups = read(discovery.groups(DiscoveryAnswer::AggregatedV2Beta1));
        assert_eq!(groups["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        let names: Vec<&Value> =
            groups["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
        assert_eq!(names, ["apps", "cluster.open-cluster-management.io"]);
        let versions = &groups["items"][1]["versions"];
        assert_eq!(
            (&versions[0]["version"], &versions[1]["version"]),
            (&json!("v1beta1"), &json!("v1alpha1"))
        );
        assert_eq!(
            versions[0]["resources"][0]["subresources"][0]["responseKind"],
            json!({"group": "cluster.open-cluster-management.io", "version": "v1beta1", "kind": "Placement"})
        );
    }

    #[test]
    fn the_legacy_documents_say_the_same() {
        let discovery = discovery();
        assert_eq!(
            read(discovery.core(DiscoveryAnswer::Legacy)),
            json!({"kind": "APIVersions", "versions": ["v1"],
                   "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]})
        );
        assert_eq!(
            read(discovery.resources("", "v1").unwrap()),
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ["get", "list"],
                 "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "xPOwRZ+Yhw8="},
                {"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy", "version": "v1",
                 "kind": "Eviction", "verbs": ["create"]}]})
        );
        let name = "cluster.open-cluster-management.io";
        let placements = read(discovery.resources(name, "v1beta1").unwrap());
        assert_eq!(placements["resources"][0]["storageVersionHash"], "tv+Zh5bz6ek=");
        assert_eq!(placements["apiVersion"], "v1");
        let group = read(discovery.group(name).unwrap());
        assert_eq!(
            group["preferredVersion"],
            json!({"groupVersion": format!("{name}/v1beta1"), "version": "v1beta1"})
        );
        let groups = read(discovery.groups(DiscoveryAnswer::Legacy));
        assert_eq!(groups["groups"][1]["name"], name);
        assert_eq!(groups["groups"][1].get("kind"), None);
        assert!(discovery.group("nope").is_none());
    }

    #[test]
    fn a_change_of_what_is_served_changes_the_tag() {
        let before = discovery();
        let after = Discovery::new(&[placements("v1beta1"), pods()], "127.0.0.1:6443");
        let answer = DiscoveryAnswer::AggregatedV2;
        assert_ne!(before.groups(answer).etag(), after.groups(answer).etag());
        assert_eq!(before.core(answer).etag(), after.core(answer).etag());
        assert_eq!(before.core(answer).etag().len(), 130);
        assert!(before.core(answer).is_unchanged_for(Some(after.core(answer).etag())));
        assert!(!before.core(answer).is_unchanged_for(None));
    }
}
