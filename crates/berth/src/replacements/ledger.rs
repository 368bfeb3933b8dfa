//! The objects, from manifests or from a server.

use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use berth_api::names::BERTH_GROUP;
use berth_api::replacement::{Replacement, ReplacementPolicy};
use berth_api::schema::ProblemKind;
use berth_api::{Object, ReadError};
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::commands::WorldArgs;
use crate::console::Console;
use crate::fleet::connect::{self, Otherwise};
use crate::manifest::{Notice, Problem, load};
use crate::world::NAMESPACE_BY_DEFAULT;

/// The version in which both kinds are served.
const VERSION: &str = "v1alpha1";

/// All that is known of replacements.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The policies.
    pub(crate) policies: Vec<ReplacementPolicy>,
    /// The replacements.
    pub(crate) replacements: Vec<Replacement>,
}

impl Ledger {
    /// Reads manifests, or asks a server where there are none. `None` after faults that were shown.
    pub(crate) fn read(args: &WorldArgs, console: &mut Console<'_>) -> anyhow::Result<Option<Self>> {
        if !args.files.is_empty() {
            return Self::of_manifests(&args.files, console);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(Self::of_server(args)).map(Some)
    }

    fn of_manifests(files: &[PathBuf], console: &mut Console<'_>) -> anyhow::Result<Option<Self>> {
        let loaded = load(files, &mut console.input);
        let (mut ledger, mut problems, mut passed_over) = (Self::default(), loaded.problems, 0_usize);
        for object in loaded.objects {
            if object.group() != BERTH_GROUP
                || !["ReplacementPolicy", "Replacement"].contains(&object.kind.as_str())
            {
                passed_over += 1;
                continue;
            }
            match Object::read(object.value.clone()).map(|read| read.object) {
                Ok(Object::ReplacementPolicy(mut policy)) => {
                    policy.metadata.namespace.get_or_insert_with(|| NAMESPACE_BY_DEFAULT.to_owned());
                    ledger.policies.push(*policy);
                }
                Ok(Object::Replacement(mut replacement)) => {
                    replacement.metadata.namespace.get_or_insert_with(|| NAMESPACE_BY_DEFAULT.to_owned());
                    ledger.replacements.push(*replacement);
                }
                Ok(_) => passed_over += 1,
                Err(ReadError::Invalid { problems: found, .. }) => {
                    problems.extend(found.into_iter().map(|problem| match problem.kind {
                        ProblemKind::More => object.problem("", problem.message),
                        _ => object.problem(problem.path.as_str(), problem.message),
                    }));
                }
                Err(other) => problems.push(object.problem("", other.to_string())),
            }
        }
        console.notify(&loaded.notices)?;
        if passed_over > 0 {
            let noun = if passed_over == 1 { "object" } else { "objects" };
            let message =
                format!("{passed_over} {noun} skipped: neither a ReplacementPolicy nor a Replacement");
            console.notify(&[Notice(Problem::of_input(message))])?;
        }
        let is_sound = problems.is_empty();
        console.report(problems)?;
        Ok(is_sound.then_some(ledger))
    }

    async fn of_server(args: &WorldArgs) -> anyhow::Result<Self> {
        let server = connect::find(&args.server, Otherwise::KubectlThenHub).await?;
        let url = server.url();
        let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
        Ok(Self {
            policies: list(&client, &url, "replacementpolicies").await?,
            replacements: list(&client, &url, "replacements").await?,
        })
    }
}

/// A list as servers give it.
#[derive(Deserialize)]
struct Listed<T> {
    items: Vec<T>,
}

async fn list<T: DeserializeOwned>(client: &Client, url: &str, plural: &str) -> anyhow::Result<Vec<T>> {
    let path = format!("/apis/{BERTH_GROUP}/{VERSION}/{plural}");
    let request = Request::get(&path).body(Vec::new()).with_context(|| format!("{path} is no path"))?;
    match client.request_text(request).await {
        Ok(text) => {
            let listed: Listed<T> = serde_json::from_str(&text)
                .with_context(|| format!("what {url} says of {path} cannot be read"))?;
            Ok(listed.items)
        }
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "{url} does not serve {plural}.{BERTH_GROUP}; `berth crds` prints their definition, `berth install` brings it along"
        ),
        Err(kube::Error::Api(status)) => {
            Err(anyhow!("{url} does not show {path} ({}): {}", status.code, status.message))
        }
        Err(error) => Err(error).with_context(|| format!("{url} does not answer")),
    }
}
