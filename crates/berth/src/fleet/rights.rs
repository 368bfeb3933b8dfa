//! What the controllers may do on a server of our own: no more than they say they need.

use std::collections::BTreeSet;

use anyhow::Context as _;
use berth_control::{ControllerList, rights};
use berth_hub_guard::User;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};

use super::MANAGER;

/// As whom the controllers act, and what the role of their rights is called.
const NAME: &str = "berth-controllers";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Who the controllers are.
pub(crate) fn user() -> User {
    User::new(NAME, ["system:authenticated"])
}

/// Gives the controllers that run their rights, and takes those of others away. The debugger needs some besides.
pub(crate) async fn grant(
    client: &Client,
    controllers: &ControllerList,
    with_debugger: bool,
) -> anyhow::Result<()> {
    let params = PatchParams::apply(MANAGER).force();
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    let asking = with_debugger.then(rights::of_debugger).into_iter().flatten();
    let needed: BTreeSet<_> = controllers.enabled().flat_map(rights::of).chain(asking).collect();
    let rules = Some(rights::rules(&needed));
    let role = ClusterRole { metadata: metadata.clone(), rules, ..ClusterRole::default() };
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
