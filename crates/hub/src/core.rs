//! Everything a request needs: the log, what follows from it, and the places there are.
//!
//! Owns the one way into the log, [`Core::commit`], and the bounds on how much is worked on at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use berth_hub_guard::webhook::ServiceResolver;
use berth_hub_guard::{
    Attributes, Authenticator, ObjectLookup, PolicySet, Verdict, WebhookClient, WebhookSet,
};
use berth_hub_store::{Check, CommitError, Entry, Ledger, ListQuery, ResourceKey, Write};
use berth_hub_wire::{Route, Status, Verb};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::admission::Chain;
use crate::clock::Clock;
use crate::derived::{Derived, definitions_key};
use crate::dice;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::read::parse;
use crate::registry::{Registry, Resource};

/// When a client that found no place should come back, in seconds.
const BUSY_RETRY_SECONDS: i32 = 1;

/// Everything a request needs.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) ledger: Ledger,
    pub(crate) derived: Arc<Derived>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    /// Who knows the callers.
    pub(crate) authenticator: Authenticator,
    /// The functions in this process that have a say in writes.
    pub(crate) admission: Chain,
    pub(crate) webhook_client: WebhookClient,
    /// The certificate of the authority that vouches for this server, PEM.
    pub(crate) ca_pem: Arc<str>,
    /// Where a backup is put together.
    pub(crate) scratch: PathBuf,
    /// Cancelled when the hub begins to close: watches end.
    pub(crate) stopping: CancellationToken,
    /// Where definitions are stored.
    pub(crate) definitions: ResourceKey,
    /// Held while a definition is written: which names are free is decided before the write.
    pub(crate) defining: tokio::sync::Mutex<()>,
    watches: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

/// What a [`Core`] is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) ledger: Ledger,
    pub(crate) derived: Arc<Derived>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) authenticator: Authenticator,
    pub(crate) admission: Chain,
    pub(crate) ca_pem: Arc<str>,
    pub(crate) scratch: PathBuf,
}

impl Core {
    pub(crate) fn new(parts: Parts, services: Arc<dyn ServiceResolver>) -> Self {
        let Parts { ledger, derived, clock, limits, authenticator, admission, ca_pem, scratch } = parts;
        Self {
            definitions: definitions_key(),
            defining: tokio::sync::Mutex::default(),
            metrics: Metrics::default(),
            watches: Arc::new(Semaphore::new(limits.watches)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            webhook_client: WebhookClient::new(services),
            stopping: CancellationToken::new(),
            ca_pem,
            scratch,
            admission,
            ledger,
            derived,
            clock,
            limits,
            authenticator,
        }
    }

    /// The resources served now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.derived.registry()
    }

    /// Tells when the table of resources is another one.
    pub(crate) fn registry_changes(&self) -> watch::Receiver<()> {
        self.derived.registry_changes()
    }

    /// The admission webhooks.
    pub(crate) fn webhooks(&self) -> Arc<WebhookSet> {
        self.derived.webhooks()
    }

    /// A place among the requests that are worked on; watches have their own.
    pub(crate) fn place(&self, route: &Route) -> Result<Option<OwnedSemaphorePermit>, Status> {
        if matches!(route, Route::Resource(resource) if resource.verb == Verb::Watch) {
            return Ok(None);
        }
        Arc::clone(&self.requests).try_acquire_owned().map(Some).map_err(|_| busy("requests"))
    }

    /// A place among the watches.
    pub(crate) fn watch_place(&self) -> Result<OwnedSemaphorePermit, Status> {
        Arc::clone(&self.watches).try_acquire_owned().map_err(|_| busy("watches"))
    }

    /// When a watch ends that does not say so itself.
    pub(crate) fn watch_end(&self) -> Duration {
        let least = self.limits.watch;
        least + least.mul_f64((dice::roll() % 1000) as f64 / 1000.0)
    }

    /// What policy says.
    pub(crate) fn authorize(&self, attributes: &Attributes<'_>) -> Verdict {
        self.with_policy(|policy| policy.authorize(attributes))
    }

    /// Asks the policy.
    pub(crate) fn with_policy<T>(&self, ask: impl FnOnce(&PolicySet) -> T) -> T {
        self.derived.with_policy(ask)
    }

    /// Every object of a resource.
    pub(crate) fn all(&self, resource: &ResourceKey) -> Vec<Arc<Entry>> {
        self.within(resource, None)
    }

    /// Every object of a resource in a namespace, or in all of them.
    pub(crate) fn within(&self, resource: &ResourceKey, namespace: Option<&str>) -> Vec<Arc<Entry>> {
        let query = ListQuery { namespace, ..ListQuery::default() };
        self.ledger.list(resource, &query).expect("the newest state can always be listed").entries
    }

    /// One object.
    pub(crate) fn find(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        self.ledger.find(&resource.storage, namespace, name)
    }

    /// The namespace object of this name.
    pub(crate) fn namespace(&self, name: &str) -> Option<Arc<Entry>> {
        self.ledger.find(&ResourceKey::new("", "namespaces"), "", name)
    }

    /// The definition that a resource comes from. Its name is how its objects are stored.
    pub(crate) fn definition_of(&self, resource: &Resource) -> Option<Arc<Entry>> {
        self.ledger.find(&self.definitions, "", resource.storage.as_str())
    }

    /// Commits. What follows from the log is up to date when this returns, and also when nobody waits for it.
    pub(crate) async fn commit(
        &self,
        checks: Vec<Check>,
        writes: Vec<Write>,
    ) -> Result<Vec<Arc<Entry>>, CommitError> {
        self.ledger.commit_if(checks, writes).await
    }
}

/// Tokens are only as good as the service accounts and pods they are bound to, and webhooks select by namespaces.
impl ObjectLookup for Core {
    fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.ledger.find(&ResourceKey::new("", resource), namespace, name).map(|entry| parse(entry.json()))
    }
}

fn busy(what: &str) -> Status {
    Status::too_many_requests(format!("too many {what} are open, please try again later"), BUSY_RETRY_SECONDS)
}
