//! What a server holds of a fleet, as manifests hold it.
//!
//! Owns asking for it, page by page. Never watches and never writes.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use berth_api::{KindInfo, fleet_kinds};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};

use super::connect::{self, Otherwise, ServerArgs};
use crate::manifest::{Loaded, load_text};

/// Objects in one page of a list.
const PAGE_OBJECTS: u32 = 500;
/// How long a server may take to be there, and then to send some of an answer: somebody sits and waits.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const READ_WITHIN: Duration = Duration::from_mins(1);

/// Every object of the placement kinds.
pub(crate) fn world(server: &ServerArgs) -> anyhow::Result<Loaded> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut server = connect::find(server, Otherwise::KubectlThenHub)
            .await
            .context("there is no -f, so a server is asked")?;
        server.config.connect_timeout = Some(CONNECT_WITHIN);
        server.config.read_timeout = Some(READ_WITHIN);
        let url = server.url();
        let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
        let mut loaded = Loaded::default();
        for kind in fleet_kinds() {
            list(&client, kind, &url, &mut loaded).await?;
        }
        Ok(loaded)
    })
}

async fn list(client: &Client, kind: &KindInfo, url: &str, loaded: &mut Loaded) -> anyhow::Result<()> {
    let gvk = GroupVersionKind::gvk(kind.group, kind.storage_version(), kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut params = ListParams::default().limit(PAGE_OBJECTS);
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // A fleet without, say, scores works on a server that has never heard of them.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) => {
                return Err(anyhow!(
                    "{url} does not show its {} ({}): {}",
                    kind.plural,
                    status.code,
                    status.message
                ));
            }
            Err(error) => return Err(error).with_context(|| format!("{url} does not answer")),
        };
        for mut object in page.items {
            // What a list leaves out of its items, as every item has it.
            object.types.get_or_insert_with(|| kube::core::TypeMeta {
                api_version: kind.api_version(),
                kind: kind.kind.to_owned(),
            });
            object.metadata.managed_fields = None;
            let namespace = object.metadata.namespace.as_ref().map(|name| format!("{name}/"));
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let title = format!("{url} {} {}{name}", kind.singular, namespace.unwrap_or_default());
            load_text(title.into(), &serde_json::to_string(&object)?, loaded);
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => return Ok(()),
        }
    }
}
