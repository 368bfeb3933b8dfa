//! What follows from the log: the table of resources, the policy, the webhooks, and the chores of the keepers.
//!
//! Owns these and nothing else decides them. They are brought up to date by the writer itself, with every change, in
//! order, before the change is answered: whoever wrote a definition can use it with the next request, a grant that was
//! taken back is gone when that is answered, and neither depends on the client waiting for its answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use berth_hub_guard::{PolicyKind, PolicySet, WebhookKind, WebhookSet};
use berth_hub_store::{Entry, Event, EventKind, Key, Ledger, ListQuery, ResourceKey};
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use crate::chore::Chore;
use crate::read::parse;
use crate::registry::Registry;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
/// Chores that may wait. When there are more, the keeper is told to look at everything instead.
const CHORES_MAX: usize = 65_536;

/// What follows from the log.
#[derive(Debug)]
pub(crate) struct Derived {
    registry: ArcSwap<Registry>,
    registry_changed: watch::Sender<()>,
    policy: RwLock<PolicySet>,
    webhooks: ArcSwap<WebhookSet>,
    /// The definitions by name, as they are stored.
    definitions: Mutex<BTreeMap<Arc<str>, Arc<Value>>>,
    chores: Sender<Chore>,
    /// Whether chores were dropped because too many waited.
    overrun: AtomicBool,
}

/// Which of the derived things a stored object belongs to.
enum Concern {
    Registry,
    Policy(PolicyKind),
    Webhooks(WebhookKind),
}

impl Derived {
    /// What follows from the log as it is, and from then on from every change to it. The other half are the chores.
    pub(crate) fn follow(ledger: &Ledger) -> (Arc<Self>, Receiver<Chore>) {
        let (chores, work) = channel(CHORES_MAX);
        let derived = Arc::new(Self {
            registry: ArcSwap::from_pointee(Registry::new([], None)),
            registry_changed: watch::Sender::new(()),
            policy: RwLock::default(),
            webhooks: ArcSwap::default(),
            definitions: Mutex::default(),
            chores,
            overrun: AtomicBool::new(false),
        });
        for resource in followed() {
            let listing = ledger.list(&resource, &ListQuery::default());
            for entry in &listing.expect("the newest state can always be listed").entries {
                derived.take_in(entry, false);
            }
        }
        let observer = Arc::clone(&derived);
        let alone = ledger.observe(move |events| observer.see(events));
        debug_assert!(alone, "a ledger is followed once");
        (derived, work)
    }

    /// The resources served now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Tells when the table of resources is another one.
    pub(crate) fn registry_changes(&self) -> watch::Receiver<()> {
        self.registry_changed.subscribe()
    }

    /// The admission webhooks.
    pub(crate) fn webhooks(&self) -> Arc<WebhookSet> {
        self.webhooks.load_full()
    }

    /// Asks the policy.
    pub(crate) fn with_policy<T>(&self, ask: impl FnOnce(&PolicySet) -> T) -> T {
        ask(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The definitions that are stored.
    pub(crate) fn definitions(&self) -> Vec<Arc<Value>> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whether chores were dropped since this was last asked.
    pub(crate) fn take_overrun(&self) -> bool {
        self.overrun.swap(false, Ordering::AcqRel)
    }

    fn see(&self, events: &[Arc<Event>]) {
        for event in events {
            let removed = event.kind() == EventKind::Deleted;
            self.take_in(event.entry(), removed);
            if let Some(chore) = Chore::after(event.entry(), removed)
                && self.chores.try_send(chore).is_err()
            {
                // Full, or the keepers ended with the hub.
                self.overrun.store(true, Ordering::Release);
            }
        }
    }

    fn take_in(&self, entry: &Arc<Entry>, removed: bool) {
        let Some(concern) = concern(&entry.key().resource) else { return };
        let Key { namespace, name, .. } = entry.key();
        let object = (!removed).then(|| parse(entry.json()));
        match concern {
            Concern::Policy(kind) => {
                let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
                policy.apply(kind, namespace, name, object.as_ref());
            }
            Concern::Webhooks(kind) => {
                let mut webhooks = (*self.webhooks.load_full()).clone();
                webhooks.apply(kind, name, object.as_ref());
                self.webhooks.store(Arc::new(webhooks));
            }
            Concern::Registry => {
                let mut definitions = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
                match object {
                    Some(object) => definitions.insert(Arc::clone(name), Arc::new(object)),
                    None => definitions.remove(name),
                };
                let next = Registry::new(
                    definitions.values().map(|definition| &**definition),
                    Some(&self.registry()),
                );
                drop(definitions);
                self.registry.store(Arc::new(next));
                self.registry_changed.send_replace(());
            }
        }
    }
}

/// Where definitions are stored.
pub(crate) fn definitions_key() -> ResourceKey {
    ResourceKey::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn followed() -> Vec<ResourceKey> {
    let policy = PolicyKind::ALL.map(|kind| ResourceKey::new(RBAC, kind.plural()));
    let webhooks = WEBHOOKS.map(|(plural, _)| ResourceKey::new(ADMISSION, plural));
    policy.into_iter().chain(webhooks).chain([definitions_key()]).collect()
}

const WEBHOOKS: [(&str, WebhookKind); 2] = [
    ("mutatingwebhookconfigurations", WebhookKind::Mutating),
    ("validatingwebhookconfigurations", WebhookKind::Validating),
];

fn concern(resource: &ResourceKey) -> Option<Concern> {
    let (plural, group) = resource.as_str().split_once('.')?;
    match group {
        RBAC => PolicyKind::from_plural(plural).map(Concern::Policy),
        ADMISSION => {
            WEBHOOKS.iter().find(|(known, _)| *known == plural).map(|(_, kind)| Concern::Webhooks(*kind))
        }
        _ if *resource == definitions_key() => Some(Concern::Registry),
        _ => None,
    }
}
