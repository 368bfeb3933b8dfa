//! Our definitions (CRDs) on a server of our own.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};

use super::MANAGER;

/// How long a server may take to serve a definition: far longer than any does.
const ESTABLISH_MAX: Duration = Duration::from_secs(30);

/// Applies every definition of ours and waits until the server serves them all.
pub(crate) async fn apply(client: &Client) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let ours = berth_api::crds();
    let name = |definition: &CustomResourceDefinition| definition.metadata.name.clone().unwrap_or_default();
    for definition in &ours {
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&name(definition), &params, &Patch::Apply(definition))
            .await
            .with_context(|| format!("the definition of {} cannot be applied", name(definition)))?;
    }
    for definition in &ours {
        let name = name(definition);
        let established = await_condition(api.clone(), &name, is_crd_established());
        tokio::time::timeout(ESTABLISH_MAX, established)
            .await
            .map_err(|_| anyhow!("{name} is not served after {} s", ESTABLISH_MAX.as_secs()))?
            .with_context(|| format!("{name} cannot be watched"))?;
    }
    Ok(())
}
