//! Webhook configurations: read once, kept ready to be matched.
//!
//! Owns reading and the order of webhooks: configurations by name, webhooks as written. Never calls one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use berth_hub_wire::LabelSelector;
use serde_json::Value;

use super::condition::Conditions;
use super::matching::Rule;
use crate::refusal::FieldProblem;
use crate::rule::strings;
use crate::selector;

/// What upstream's defaulting gives a webhook without a timeout.
const TIMEOUT_DEFAULT_S: u64 = 10;
/// The longest timeout validation allows.
const TIMEOUT_MAX_S: u64 = 30;

/// The two kinds of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookKind {
    /// May change the object.
    Mutating,
    /// May only refuse it.
    Validating,
}

impl WebhookKind {
    /// The kind of the configuration object.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }
}

/// Where a webhook is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A URL.
    Url(String),
    /// A service of the cluster.
    Service { namespace: String, name: String, path: String, port: u16 },
    /// Neither was given.
    Missing,
}

/// One webhook, read.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    /// Unique among all: configuration, webhook and its place.
    pub(super) id: String,
    pub(super) address: Address,
    pub(super) ca_bundle: Arc<[u8]>,
    pub(super) rules: Vec<Rule>,
    pub(super) namespace_selector: Result<LabelSelector, String>,
    pub(super) object_selector: Result<LabelSelector, String>,
    pub(super) conditions: Conditions,
    pub(super) ignores_failure: bool,
    pub(super) equivalent: bool,
    pub(super) reinvocable: bool,
    /// `None` when the field is absent, which only very old objects have.
    pub(super) dry_run_safe: Option<bool>,
    pub(super) review_versions: Vec<String>,
    pub(super) timeout: Duration,
}

/// The webhooks of one configuration, in order.
type Webhooks = Arc<[Arc<Webhook>]>;

/// All webhooks there are.
#[derive(Clone, Debug, Default)]
pub struct WebhookSet {
    configurations: BTreeMap<(WebhookKind, Arc<str>), Webhooks>,
}

impl WebhookSet {
    /// No webhooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the newest state of one configuration, `None` when it is gone.
    pub fn apply(&mut self, kind: WebhookKind, name: &str, object: Option<&Value>) {
        let key = (kind, Arc::from(name));
        match object {
            Some(object) => {
                self.configurations.insert(key, read_all(kind, name, object));
            }
            None => {
                self.configurations.remove(&key);
            }
        }
    }

    /// Whether there is nothing to ask, so that the caller need not even prepare the question.
    pub fn is_empty(&self, kind: WebhookKind) -> bool {
        self.of(kind).next().is_none()
    }

    pub(super) fn of(&self, kind: WebhookKind) -> impl Iterator<Item = &Arc<Webhook>> {
        self.configurations
            .iter()
            .filter(move |((own, _), _)| *own == kind)
            .flat_map(|(_, hooks)| hooks.iter())
    }

    /// What is wrong with the match conditions of a configuration about to be stored.
    pub fn check(object: &Value) -> Vec<FieldProblem> {
        let hooks = object["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
        hooks
            .iter()
            .enumerate()
            .flat_map(|(index, hook)| {
                Conditions::check(&hook["matchConditions"], &format!("webhooks[{index}].matchConditions"))
            })
            .collect()
    }
}

fn read_all(kind: WebhookKind, configuration: &str, object: &Value) -> Webhooks {
    let hooks = object["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
    hooks.iter().enumerate().map(|(index, hook)| Arc::new(read(kind, configuration, index, hook))).collect()
}

fn read(kind: WebhookKind, configuration: &str, index: usize, hook: &Value) -> Webhook {
    use base64::Engine as _;
    let text = |key: &str| hook[key].as_str().unwrap_or_default();
    let client = &hook["clientConfig"];
    let bundle = client["caBundle"].as_str().unwrap_or_default();
    let ca_bundle = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_DEFAULT_S).clamp(1, TIMEOUT_MAX_S);
    Webhook {
        name: text("name").to_owned(),
        id: format!("{configuration}/{}/{index}", text("name")),
        address: address(client),
        ca_bundle: ca_bundle.into(),
        rules: hook["rules"].as_array().map_or_else(Vec::new, |rules| rules.iter().map(Rule::read).collect()),
        namespace_selector: selector::read(hook.get("namespaceSelector")),
        object_selector: selector::read(hook.get("objectSelector")),
        conditions: Conditions::read(&hook["matchConditions"]),
        ignores_failure: text("failurePolicy") == "Ignore",
        // Defaulting stores Equivalent where nothing was said.
        equivalent: text("matchPolicy") != "Exact",
        reinvocable: kind == WebhookKind::Mutating && text("reinvocationPolicy") == "IfNeeded",
        dry_run_safe: hook["sideEffects"].as_str().map(|class| matches!(class, "None" | "NoneOnDryRun")),
        review_versions: strings(hook.get("admissionReviewVersions")),
        timeout: Duration::from_secs(seconds),
    }
}

fn address(client: &Value) -> Address {
    let service = &client["service"];
    if service.is_object() {
        let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        return Address::Service {
            namespace: text("namespace"),
            name: text("name"),
            path: text("path"),
            port,
        };
    }
    client["url"].as_str().map_or(Address::Missing, |url| Address::Url(url.to_owned()))
}
