//! Keeps the certificates: in the Secret, in the webhook configurations, and in what is shown.
//!
//! Owns doing what the plan says, one step after the other, and looking again whenever one of the three objects changes.
//! Every write is bound to what was seen, so replicas never undo one another's work: who loses a race looks again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use berth_control::serve::{Check, Metrics};
use berth_hub_guard::{Certificate, Serving};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::registration::{Registration, mutating, validating};
use super::rotation::{Shown, Sight, Step, plan};
use super::vault::{Terms, Vault};

/// As whom the configurations are written.
const MANAGER: &str = "berth-webhook";
/// The first wait after something failed, and the longest.
const WAIT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Between two steps: replicas that were told different things, and undo one another's work, do not do it in a hurry.
const PACE: Duration = Duration::from_millis(100);
/// More steps than any plan has until it rests: somebody undoes them.
const STEPS_MAX: u32 = 30;

/// Where the three objects are, and what is to be in them.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) secret: String,
    pub(crate) configuration: String,
    /// How the configurations are made, where they are ours to make.
    pub(crate) own: Option<Own>,
    pub(crate) terms: Terms,
}

/// Configurations that this process applies itself.
#[derive(Debug)]
pub(crate) struct Own {
    /// `https://HOST:PORT`, or the Service.
    pub(crate) url: Option<String>,
    pub(crate) service: String,
    pub(crate) trusted: Vec<String>,
}

/// What the configurations trust.
#[derive(Debug, Default, PartialEq, Eq)]
struct Registered {
    /// What each configuration that exists trusts.
    bundles: Vec<Held>,
    /// Everybody whom any webhook of them trusts.
    authorities: Vec<Certificate>,
    /// Whether both exist.
    is_whole: bool,
}

/// What the webhooks of one configuration trust.
#[derive(Debug, PartialEq, Eq)]
enum Held {
    /// There are none: nobody comes by it, whoever is trusted.
    Nobody,
    /// All of them this.
    Bundle(Vec<u8>),
    /// They do not agree, or one trusts nobody.
    Several,
}

/// The keeper.
pub(crate) struct Keeper {
    place: Place,
    secrets: Api<Secret>,
    mutating: Api<MutatingWebhookConfiguration>,
    validating: Api<ValidatingWebhookConfiguration>,
    changed: Arc<Notify>,
    check: Check,
    metrics: Arc<Metrics>,
    /// The TLS side of the server, and what it shows.
    shown: Option<(Arc<Serving>, Shown)>,
    /// The bundle that every configuration trusts, and since when that was seen.
    registered: Option<(String, Timestamp)>,
    /// Whether our own configurations were applied since the start.
    has_applied: bool,
    /// How many of the two configurations were there when somebody looked last.
    configurations: usize,
    _watches: Vec<AbortOnDropHandle<()>>,
}

impl Keeper {
    pub(crate) fn new(client: &Client, place: Place, check: Check, metrics: Arc<Metrics>) -> Self {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &place.namespace);
        let (mutating, validating) = (Api::all(client.clone()), Api::all(client.clone()));
        let changed = Arc::new(Notify::new());
        let watches = vec![
            follow::<Secret>(Api::namespaced(client.clone(), &place.namespace), &place.secret, &changed),
            follow::<MutatingWebhookConfiguration>(Api::all(client.clone()), &place.configuration, &changed),
            follow::<ValidatingWebhookConfiguration>(
                Api::all(client.clone()),
                &place.configuration,
                &changed,
            ),
        ];
        Self {
            place,
            secrets,
            mutating,
            validating,
            changed,
            check,
            metrics,
            shown: None,
            registered: None,
            has_applied: false,
            configurations: 0,
            _watches: watches,
        }
    }

    /// Works until there is a certificate to show that is trusted wherever we are registered.
    pub(crate) async fn begin(&mut self) -> Arc<Serving> {
        let (mut wait, longest) = WAIT;
        let (mut told, mut steps) = (None, 0);
        loop {
            match self.turn(Timestamp::now()).await {
                Ok(None) => {
                    self.stepped(&mut steps, &mut told);
                    tokio::time::sleep(PACE).await;
                    continue;
                }
                Ok(Some(_)) => {
                    if let Some((serving, _)) = &self.shown {
                        self.check.pass();
                        return Arc::clone(serving);
                    }
                }
                Err(error) => self.trouble(&error, &mut told),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
    }

    /// What somebody should know before this ends: the API server goes on to come here by configurations of its own.
    pub(crate) fn farewell(&self) -> Option<String> {
        let name = &self.place.configuration;
        self.has_applied.then(|| {
            format!(
                "still registered: the API server goes on to ask here, and refuses what nobody judges, until this runs \
                 again or both configurations are gone: kubectl delete \
                 mutatingwebhookconfigurations,validatingwebhookconfigurations {name}"
            )
        })
    }

    /// What somebody should know at the start: nobody comes where nobody is told to.
    pub(crate) fn reservation(&self) -> Option<String> {
        let name = &self.place.configuration;
        let missing = match self.configurations {
            2 => return None,
            1 => format!("one of the two webhook configurations {name} is missing"),
            _ => format!("nobody asks here: the webhook configurations {name} are missing"),
        };
        Some(format!("{missing}; `berth install` applies them, and so does --register"))
    }

    /// Keeps going until `stop`; what somebody should know then comes back.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Option<String> {
        self.keep_going(&stop).await;
        self.farewell()
    }

    async fn keep_going(&mut self, stop: &CancellationToken) {
        let (first, longest) = WAIT;
        let mut wait = first;
        let (mut told, mut steps) = (None, 0);
        loop {
            let now = Timestamp::now();
            let turned = tokio::select! {
                () = stop.cancelled() => return,
                turned = self.turn(now) => turned,
            };
            let rest = match turned {
                Ok(None) => {
                    self.stepped(&mut steps, &mut told);
                    PACE
                }
                Ok(Some(until)) => {
                    steps = 0;
                    if told.take().is_some() {
                        tracing::info!("the certificates are kept again");
                    }
                    self.check.pass();
                    wait = first;
                    Duration::try_from(until.duration_since(now)).unwrap_or_default()
                }
                Err(error) => {
                    self.trouble(&error, &mut told);
                    wait = (wait * 2).min(longest);
                    wait
                }
            };
            let news = async {
                // Whatever is heard meanwhile is kept until then.
                tokio::time::sleep(PACE).await;
                self.changed.notified().await;
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = news => {}
                () = tokio::time::sleep(rest.max(PACE)) => {}
            }
        }
    }

    /// Counts steps without a rest; so many that somebody must be undoing them are trouble.
    fn stepped(&self, steps: &mut u32, told: &mut Option<String>) {
        *steps = steps.saturating_add(1);
        if *steps > STEPS_MAX {
            let Place { namespace, secret, configuration, .. } = &self.place;
            self.trouble(
                &anyhow!(
                    "the certificates do not come to rest: somebody keeps changing the Secret {namespace}/{secret} or the \
                     webhook configurations {configuration}, as a replica with other flags would"
                ),
                told,
            );
        }
    }

    /// What is in the way is told once.
    fn trouble(&self, error: &anyhow::Error, told: &mut Option<String>) {
        let words = format!("{error:#}");
        self.check.fail(words.clone());
        if told.as_ref() != Some(&words) {
            tracing::warn!("{words}; trying again");
            *told = Some(words);
        }
    }

    /// Looks, and takes one step; how long to rest comes back where there was none to take.
    async fn turn(&mut self, now: Timestamp) -> anyhow::Result<Option<Timestamp>> {
        let secret = self.secret().await?;
        let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
        if data.is_some_and(Vault::is_foreign) {
            let Place { secret, namespace, .. } = &self.place;
            return Err(anyhow!(
                "the Secret {namespace}/{secret} holds something that is not of this webhook, and stays as it is: choose \
                 another --secret, or empty this one if nobody needs it"
            ));
        }
        let vault = data.map(Vault::read).transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "the Secret {} holds something else; it is made anew", self.place.secret);
            None
        });
        let vault = vault.flatten();
        let registered = self.look().await?;
        self.count(registered.bundles.len());
        let bundle = vault.as_ref().map(Vault::bundle);
        let is_current = bundle.as_ref().is_some_and(|bundle| self.is_current(&registered, bundle));
        self.registered = match (is_current, bundle, self.registered.take()) {
            (true, Some(bundle), Some((seen, since))) if seen == bundle => Some((seen, since)),
            (true, Some(bundle), _) => Some((bundle, now)),
            _ => None,
        };
        let sight = Sight {
            vault: vault.as_ref(),
            registered: self.registered.as_ref().map(|(_, since)| *since),
            shown: self.shown.as_ref().map(|(_, shown)| shown),
        };
        let step = plan(sight, &self.place.terms, now);
        let terms = &self.place.terms;
        match (step, vault) {
            (Step::Rest(until), _) => return Ok(Some(until)),
            (Step::Show, Some(vault)) => self.show(&vault)?,
            (Step::Register, Some(vault)) => self.register(&vault).await?,
            (Step::Issue, Some(vault)) => {
                let vault = vault.reissued(terms, now)?;
                self.keep(secret, &vault, "made a new serving certificate").await?;
            }
            (Step::Trust, Some(vault)) => {
                let authority = self.shown.as_ref().map(|(_, shown)| &shown.authority);
                let vault = authority.into_iter().fold(vault, Vault::trusting);
                self.keep(secret, &vault, "the authority of what is shown stays trusted").await?;
            }
            (Step::Appoint, Some(vault)) => {
                let vault = vault.with_successor(terms, now)?;
                self.keep(secret, &vault, "made the authority that will follow").await?;
            }
            (Step::Succeed, Some(vault)) => {
                let vault = vault.succeeded(terms, now)?;
                self.keep(secret, &vault, "the new authority signs from now on").await?;
            }
            (Step::Forget, Some(vault)) => {
                self.keep(secret, &vault.cleared(now), "forgot an authority that has ended").await?;
            }
            (_, _) => {
                let shown = self.shown.iter().map(|(_, shown)| shown.authority.clone());
                let former: Vec<Certificate> = shown.chain(registered.authorities).collect();
                let vault = Vault::found(terms, &former, now)?;
                self.keep(secret, &vault, "made an authority and a serving certificate").await?;
            }
        }
        Ok(None)
    }

    async fn secret(&self) -> anyhow::Result<Option<Secret>> {
        let Place { secret, namespace, .. } = &self.place;
        self.secrets
            .get_opt(secret)
            .await
            .with_context(|| format!("the Secret {namespace}/{secret} cannot be read"))
    }

    /// Writes the Secret, unless somebody else has meanwhile.
    async fn keep(&self, before: Option<Secret>, vault: &Vault, what: &str) -> anyhow::Result<()> {
        let Place { secret: name, namespace, .. } = &self.place;
        let written = if let Some(mut before) = before {
            let data = Some(vault.data_beside(before.data.take().unwrap_or_default()));
            self.secrets.replace(name, &PostParams::default(), &Secret { data, ..before }).await
        } else {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let secret = Secret { metadata, data: Some(vault.data()), ..Secret::default() };
            self.secrets.create(&PostParams::default(), &secret).await
        };
        match written {
            Ok(_) => {
                tracing::info!(until = %vault.serving.not_after, "{what}");
                Ok(())
            }
            // Another replica was first; what it wrote is looked at next.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Err(anyhow!(
                "the namespace {namespace} is not there, and the Secret {name} belongs into it: make it with kubectl create \
                 namespace {namespace}, or choose another --namespace; `berth install` makes both"
            )),
            Err(kube::Error::Api(status)) if status.code == 403 => Err(anyhow!(
                "the Secret {namespace}/{name} cannot be written ({}): {}; `berth install` makes it with the rights this \
                 needs, or make an empty one: kubectl create secret generic -n {namespace} {name}",
                status.code,
                status.message
            )),
            Err(error) => Err(error).context(format!("the Secret {namespace}/{name} cannot be written")),
        }
    }

    fn show(&mut self, vault: &Vault) -> anyhow::Result<()> {
        let serving = match self.shown.take() {
            Some((serving, _)) => {
                serving.show(&vault.serving)?;
                serving
            }
            None => Arc::new(Serving::of(&vault.serving)?),
        };
        self.shown = Some((serving, Shown::of(vault)));
        self.metrics.certificate_ends(vault.serving.not_after.as_second());
        tracing::debug!(until = %vault.serving.not_after, "another certificate is shown");
        Ok(())
    }

    fn is_current(&self, registered: &Registered, bundle: &str) -> bool {
        let all = registered.bundles.iter().all(|held| match held {
            Held::Bundle(held) => held == bundle.as_bytes(),
            // What somebody else emptied stays so; our own are applied again.
            Held::Nobody => self.place.own.is_none(),
            Held::Several => false,
        });
        all && (self.place.own.is_none() || (registered.is_whole && self.has_applied))
    }

    /// Notes how many configurations there are, and says so where that is news.
    fn count(&mut self, found: usize) {
        self.metrics.configurations(found);
        let before = std::mem::replace(&mut self.configurations, found);
        // The first look is told with the line that says where this is.
        if self.shown.is_none() || before == found {
            return;
        }
        if let Some(words) = self.reservation() {
            tracing::warn!("{words}");
        } else {
            tracing::info!("both webhook configurations {} are there", self.place.configuration);
        }
    }

    async fn look(&self) -> anyhow::Result<Registered> {
        let name = &self.place.configuration;
        let failed = || format!("the webhook configurations {name} cannot be read");
        let mutating = self.mutating.get_opt(name).await.with_context(failed)?;
        let validating = self.validating.get_opt(name).await.with_context(failed)?;
        let is_whole = mutating.is_some() && validating.is_some();
        let mutating = mutating.map(|found| {
            found.webhooks.into_iter().flatten().map(|webhook| webhook.client_config.ca_bundle).collect()
        });
        let validating = validating.map(|found| {
            found.webhooks.into_iter().flatten().map(|webhook| webhook.client_config.ca_bundle).collect()
        });
        let held: Vec<Vec<Option<ByteString>>> = mutating.into_iter().chain(validating).collect();
        Ok(Registered {
            authorities: authorities(held.iter().flatten().flatten()),
            bundles: held.into_iter().map(|bundles| common(bundles.into_iter())).collect(),
            is_whole,
        })
    }

    /// Says in both configurations whom to trust.
    async fn register(&mut self, vault: &Vault) -> anyhow::Result<()> {
        let bundle = vault.bundle();
        let name = &self.place.configuration;
        let failed = || format!("the webhook configurations {name} cannot be written");
        let Some(own) = &self.place.own else {
            return self.fill_in(bundle.as_bytes()).await.with_context(failed);
        };
        if let Some(other) = self.other_door(own).await? {
            return Err(anyhow!("{other}"));
        }
        let door = match &own.url {
            Some(url) => super::registration::Door::Url(url),
            None => {
                super::registration::Door::Service { namespace: &self.place.namespace, name: &own.service }
            }
        };
        let registration =
            Registration { name, door, ca_bundle: Some(bundle.as_bytes()), trusted: &own.trusted };
        let params = PatchParams::apply(MANAGER).force();
        let (changing, judging) = (mutating(&registration), validating(&registration));
        self.mutating.patch(name, &params, &Patch::Apply(changing)).await.with_context(failed)?;
        self.validating.patch(name, &params, &Patch::Apply(judging)).await.with_context(failed)?;
        self.has_applied = true;
        Ok(())
    }

    /// Why these configurations cannot be ours: somebody else has the API server come another way, and one of both ways is
    /// all that a configuration can have.
    async fn other_door(&self, own: &Own) -> anyhow::Result<Option<String>> {
        let name = &self.place.configuration;
        let failed = || format!("the webhook configurations {name} cannot be read");
        let mutating = self.mutating.get_metadata_opt(name).await.with_context(failed)?;
        let validating = self.validating.get_metadata_opt(name).await.with_context(failed)?;
        let mut metadata =
            mutating.map(|one| one.metadata).into_iter().chain(validating.map(|one| one.metadata));
        let (field, words) = if own.url.is_some() { ("f:service", "a Service") } else { ("f:url", "a URL") };
        let owner = metadata.find_map(|metadata| owner_of(metadata.managed_fields?, field));
        Ok(owner.map(|owner| {
            format!(
                "the webhook configurations {name} are {owner}'s and have the API server come by {words}: choose another \
                 --configuration, or delete these first: `berth uninstall` does where `berth install` made them, otherwise \
                 kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations {name}"
            )
        }))
    }

    /// Writes the bundle into configurations that somebody else made.
    async fn fill_in(&self, bundle: &[u8]) -> Result<(), kube::Error> {
        let name = &self.place.configuration;
        let (params, bundle) = (
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() },
            ByteString(bundle.to_vec()),
        );
        if let Some(mut found) = self.mutating.get_opt(name).await? {
            for webhook in found.webhooks.iter_mut().flatten() {
                webhook.client_config.ca_bundle = Some(bundle.clone());
            }
            passed(self.mutating.replace(name, &params, &found).await)?;
        }
        if let Some(mut found) = self.validating.get_opt(name).await? {
            for webhook in found.webhooks.iter_mut().flatten() {
                webhook.client_config.ca_bundle = Some(bundle.clone());
            }
            passed(self.validating.replace(name, &params, &found).await)?;
        }
        Ok(())
    }
}

/// Who else has set a field, by the name of their manager.
fn owner_of(entries: Vec<ManagedFieldsEntry>, field: &str) -> Option<String> {
    let others = entries.into_iter().filter(|entry| entry.manager.as_deref() != Some(MANAGER));
    let mut owners = others.filter(|entry| entry.fields_v1.as_ref().is_some_and(|set| names(&set.0, field)));
    owners.next().map(|entry| entry.manager.unwrap_or_else(|| "somebody".to_owned()))
}

/// Whether a set of fields has one of this name, however deep.
fn names(set: &Value, field: &str) -> bool {
    set.as_object().is_some_and(|set| set.iter().any(|(name, below)| name == field || names(below, field)))
}

/// A conflict is no failure: what somebody else wrote is looked at next.
fn passed<T>(written: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match written {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other.map(drop),
    }
}

/// Everybody in these bundles, once. What cannot be read is trusted by no API server either.
fn authorities<'a>(bundles: impl Iterator<Item = &'a ByteString>) -> Vec<Certificate> {
    let mut found: Vec<Certificate> = Vec::new();
    for ByteString(bundle) in bundles {
        let text = String::from_utf8_lossy(bundle);
        for certificate in Certificate::read_all(&text, Path::new("caBundle")).unwrap_or_default() {
            if !found.contains(&certificate) {
                found.push(certificate);
            }
        }
    }
    found
}

/// What all of them trust.
fn common(mut bundles: impl Iterator<Item = Option<ByteString>>) -> Held {
    match bundles.next() {
        None => Held::Nobody,
        Some(Some(first)) if bundles.all(|other| other.as_ref() == Some(&first)) => Held::Bundle(first.0),
        Some(_) => Held::Several,
    }
}

/// Says when one object changes. Only its metadata is watched: nobody needs a second copy of the keys.
fn follow<K>(api: Api<PartialObjectMeta<K>>, name: &str, changed: &Arc<Notify>) -> AbortOnDropHandle<()>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let changed = Arc::clone(changed);
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut events = std::pin::pin!(watcher(api, config).default_backoff());
        while let Some(event) = events.next().await {
            if let Err(error) = event {
                tracing::debug!(%error, "a watch for certificates failed; trying again");
            }
            changed.notify_one();
        }
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    use super::*;

    #[test]
    fn who_else_has_set_a_field_is_found_however_deep_it_is() {
        let entry = |manager: &str, set: serde_json::Value| ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            fields_v1: Some(FieldsV1(set)),
            ..ManagedFieldsEntry::default()
        };
        let service =
            json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:service": {"f:name": {}}}}}});
        let url = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:url": {}}}}});
        let owners = vec![entry(MANAGER, service.clone()), entry("kubectl", service), entry(MANAGER, url)];
        assert_eq!(owner_of(owners.clone(), "f:service").as_deref(), Some("kubectl"));
        assert_eq!(owner_of(owners, "f:url"), None, "what we set ourselves is ours to change");
    }

    #[test]
    fn webhooks_that_do_not_agree_trust_nobody_in_common() {
        let bundle = |text: &str| Some(ByteString(text.as_bytes().to_vec()));
        assert_eq!(common([bundle("a"), bundle("a")].into_iter()), Held::Bundle(b"a".to_vec()));
        assert_eq!(common([bundle("a"), bundle("b")].into_iter()), Held::Several);
        assert_eq!(common([bundle("a"), None].into_iter()), Held::Several);
        assert_eq!(common(std::iter::empty()), Held::Nobody);
    }
}
