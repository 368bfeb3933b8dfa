//! `berth freeze` and `berth unfreeze`: a person says stop, and takes it back.
//!
//! Owns the ConfigMap that says so. What is frozen is the controllers' business: they look at it and nothing else. A stop that
//! none of them has confirmed is not told as one.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use berth_control::FROZEN_REASON;
use berth_control::lead::HOME;
use berth_control::world::{FREEZE, FREEZE_BY, FREEZE_REASON, FREEZE_SINCE};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};

use crate::console::{Console, Outcome};
use crate::fleet::connect::{self, Otherwise, ServerArgs};

/// The longest reason: it is shown in events, whose notes have 1024 bytes with what stands around it.
const REASON_BYTES_MAX: usize = 512;
/// How long a controller may take to confirm a stop: it hears of it within a second, and tells so before anything else.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Arguments of `berth freeze`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth freeze evictions --reason 'network maintenance until 14:00'\n  berth freeze evictions --reason incident-42 --namespace fleet --context production"
)]
pub struct FreezeArgs {
    /// What to stop.
    #[command(subcommand)]
    pub command: FreezeCommand,
}

/// What can be stopped.
#[derive(Debug, Subcommand)]
pub enum FreezeCommand {
    /// Evict and replace no pod any more, whatever its node's taints, until it is taken back.
    ///
    /// What is on its way out already goes. Clocks run on: whoever is due when the freeze ends goes then.
    Evictions(FreezeEvictionsArgs),
}

/// Arguments of `berth freeze evictions`.
#[derive(Debug, Args)]
pub struct FreezeEvictionsArgs {
    /// Why; whoever wonders later reads it.
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: String,

    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Arguments of `berth unfreeze`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  berth unfreeze evictions\n  berth unfreeze evictions --namespace fleet --context production"
)]
pub struct UnfreezeArgs {
    /// What to let go on.
    #[command(subcommand)]
    pub command: UnfreezeCommand,
}

/// What can go on.
#[derive(Debug, Subcommand)]
pub enum UnfreezeCommand {
    /// Evict pods again. Whoever has become due meanwhile goes now, within the bounds of the controllers.
    Evictions(PlaceArgs),
}

/// Whose evictions.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// The namespace of the controllers: that of the Lease by which they choose a leader.
    #[arg(long, value_name = "NS", default_value = HOME)]
    pub namespace: String,

    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Says stop.
pub fn freeze(args: FreezeArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let FreezeCommand::Evictions(args) = args.command;
    say(console, start(&args))
}

/// Takes it back.
pub fn unfreeze(args: UnfreezeArgs, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    let UnfreezeCommand::Evictions(place) = args.command;
    say(console, stop(&place))
}

fn say(
    console: &mut Console<'_>,
    job: impl Future<Output = anyhow::Result<String>>,
) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    writeln!(console.out, "{}", runtime.block_on(job)?)?;
    Ok(Outcome::Done)
}

async fn start(args: &FreezeEvictionsArgs) -> anyhow::Result<String> {
    let (client, url) = open(&args.place).await?;
    let namespace = &args.place.namespace;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut data = BTreeMap::from([
        (FREEZE_REASON.to_owned(), args.reason.clone()),
        (FREEZE_SINCE.to_owned(), Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    ]);
    data.extend(whoami(&client).await.map(|name| (FREEZE_BY.to_owned(), name)));
    let metadata = ObjectMeta { name: Some(FREEZE.to_owned()), ..ObjectMeta::default() };
    let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    let mut made = maps.create(&PostParams::default(), &map).await;
    if matches!(&made, Err(kube::Error::Api(status)) if status.code == 404) {
        // Where nobody chooses a leader, as with `berth up`, nobody has made it.
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let home = Namespace { metadata, ..Namespace::default() };
        if Api::all(client.clone()).create(&PostParams::default(), &home).await.is_ok() {
            made = maps.create(&PostParams::default(), &map).await;
        }
    }
    match made {
        Ok(made) => {
            confirmed(&client, namespace, &made).await?;
            Ok(format!("evictions are frozen: {}; `berth unfreeze evictions` lets them go on", args.reason))
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let known = maps.get(FREEZE).await.with_context(|| format!("{url} does not answer"))?;
            bail!(
                "evictions are frozen already{}; `berth unfreeze evictions` first, to give another reason",
                told(known.data.as_ref())
            )
        }
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "there is no namespace {namespace} at {url}; give that of the controllers' Lease with --namespace"
        ),
        Err(kube::Error::Api(status)) => {
            Err(anyhow!("{url} refuses it ({}): {}", status.code, status.message))
        }
        Err(error) => Err(error).with_context(|| format!("{url} does not answer")),
    }
}

/// Waits until a controller has said that it has stopped.
async fn confirmed(client: &Client, namespace: &str, map: &ConfigMap) -> anyhow::Result<()> {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let uid = map.metadata.uid.as_deref().unwrap_or_default();
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid},reason={FROZEN_REASON}"));
    let heard = tokio::time::timeout(CONFIRMED_WITHIN, async {
        loop {
            if events.list(&about).await.is_ok_and(|list| !list.items.is_empty()) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    heard.await.map_err(|_| {
        anyhow!(
            "the stop stands, as ConfigMap {namespace}/{FREEZE}, but no controller has confirmed it within {} s: neither a \
             taint-eviction-controller nor a replacement-controller runs, or its namespace, that of its Lease, is another \
             (--namespace), or the events there cannot be read; until one is known to have heard it, count on nothing",
            CONFIRMED_WITHIN.as_secs()
        )
    })
}

async fn stop(place: &PlaceArgs) -> anyhow::Result<String> {
    let (client, url) = open(place).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &place.namespace);
    match maps.delete(FREEZE, &DeleteParams::default()).await {
        Ok(_) => Ok("evictions go on".to_owned()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(format!(
            "evictions are not frozen: there is no ConfigMap {FREEZE} in the namespace {}",
            place.namespace
        )),
        Err(kube::Error::Api(status)) => {
            Err(anyhow!("{url} refuses it ({}): {}", status.code, status.message))
        }
        Err(error) => Err(error).with_context(|| format!("{url} does not answer")),
    }
}

async fn open(place: &PlaceArgs) -> anyhow::Result<(Client, String)> {
    let server = connect::find(&place.server, Otherwise::Kubectl).await?;
    let url = server.url();
    let client = Client::try_from(server.config).with_context(|| format!("{url} cannot be talked to"))?;
    Ok((client, url))
}

/// As whom the server knows this user; not every server says.
async fn whoami(client: &Client) -> Option<String> {
    let review = Api::<SelfSubjectReview>::all(client.clone())
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    review.ok()?.status?.user_info?.username
}

/// What a freeze says of itself.
fn told(data: Option<&BTreeMap<String, String>>) -> String {
    let given = |name: &str| data.and_then(|data| data.get(name)).filter(|text| !text.is_empty());
    let by = given(FREEZE_BY).map(|by| format!(" by {by}"));
    let since = given(FREEZE_SINCE).map(|since| format!(" since {since}"));
    let reason = given(FREEZE_REASON).map(|reason| format!(": {reason}"));
    [by, since, reason].into_iter().flatten().collect()
}

fn parse_reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why; whoever wonders later reads it".to_owned()),
        long if long.len() > REASON_BYTES_MAX => {
            Err(format!("it has {} bytes; at most {REASON_BYTES_MAX} are kept", long.len()))
        }
        reason => Ok(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_tells_who_when_and_why_as_far_as_it_knows() {
        let data = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(told(None), "");
        assert_eq!(
            told(Some(&data(&[("by", "ann"), ("since", "2026-01-01T00:00:00Z"), ("reason", "storm")]))),
            " by ann since 2026-01-01T00:00:00Z: storm"
        );
        assert_eq!(told(Some(&data(&[("reason", "storm"), ("by", "")]))), ": storm");
    }

    #[test]
    fn a_reason_is_given_and_not_a_novel() {
        assert_eq!(parse_reason(" storm "), Ok("storm".to_owned()));
        assert!(parse_reason(" ").is_err() && parse_reason(&"x".repeat(513)).is_err());
    }
}
