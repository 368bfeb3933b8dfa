//! What the controllers may do on a server of our own: no more than their work needs.

use anyhow::Context as _;
use berth_api::names::GROUP;
use berth_hub_guard::User;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};

use super::MANAGER;

/// As whom the controllers act, and what the role of their rights is called.
const NAME: &str = "berth-controllers";
const RBAC: &str = "rbac.authorization.k8s.io";

const READ: &[&str] = &["get", "list", "watch"];
const KEEP: &[&str] = &["get", "list", "watch", "update", "patch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
const WRITE: &[&str] = &["update", "patch"];

/// Group, resources, verbs.
const RULES: &[(&str, &[&str], &[&str])] = &[
    (GROUP, &["placements", "addonplacementscores"], READ),
    // Taints are part of a cluster's spec.
    (GROUP, &["managedclusters"], KEEP),
    (GROUP, &["managedclustersets", "managedclustersetbindings", "placementdecisions"], OWN),
    (
        GROUP,
        &[
            "managedclusters/status",
            "managedclustersets/status",
            "managedclustersetbindings/status",
            "placements/status",
            "placementdecisions/status",
        ],
        WRITE,
    ),
    // Who makes something that keeps its owner from going needs a say in the owner's going.
    (GROUP, &["placements/finalizers"], &["update"]),
    // A namespace's service account that may bind a set gets its binding from us: so we must be able to bind any.
    (GROUP, &["managedclustersets/bind"], &["create"]),
    // A cluster from before the rules goes into the default set with the first write to it, which may be ours.
    (GROUP, &["managedclustersets/join"], &["create"]),
    // The taints that follow a cluster's health, and since when they count.
    (GROUP, &["managedclusters/systemtaints"], &["update"]),
    ("coordination.k8s.io", &["leases"], &["get", "list", "watch", "create", "update", "patch"]),
    (RBAC, &["clusterroles", "clusterrolebindings"], READ),
    ("", &["namespaces"], READ),
    ("", &["events"], &["create", "patch", "update"]),
    ("events.k8s.io", &["events"], &["create", "patch", "update"]),
];

/// Who the controllers are.
pub(crate) fn user() -> User {
    User::new(NAME, ["system:authenticated"])
}

/// Gives the controllers their rights.
pub(crate) async fn grant(client: &Client) -> anyhow::Result<()> {
    let params = PatchParams::apply(MANAGER).force();
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules()), ..ClusterRole::default() };
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: RoleRef { api_group: RBAC.into(), kind: "ClusterRole".to_owned(), name: NAME.to_owned() },
        subjects: Some(vec![Subject {
            api_group: Some(RBAC.to_owned()),
            kind: "User".to_owned(),
            name: NAME.to_owned(),
            namespace: None,
        }]),
    };
    let failed = || format!("the rights of {NAME} cannot be given");
    Api::<ClusterRole>::all(client.clone())
        .patch(NAME, &params, &Patch::Apply(role))
        .await
        .with_context(failed)?;
    Api::<ClusterRoleBinding>::all(client.clone())
        .patch(NAME, &params, &Patch::Apply(binding))
        .await
        .with_context(failed)?;
    Ok(())
}

fn rules() -> Vec<PolicyRule> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let rule = |(group, resources, verbs): &(&str, &[&str], &[&str])| PolicyRule {
        api_groups: Some(words(&[group])),
        resources: Some(words(resources)),
        verbs: words(verbs),
        ..PolicyRule::default()
    };
    RULES.iter().map(rule).collect()
}
