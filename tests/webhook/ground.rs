//! Where scenarios run: an API server with the fleet's definitions, and the rules in front of it.

use std::{path::Path, sync::Arc};

use berth_bed::{Bed, BedError, Companion, Shared, or_skip};
use berth_tests::{
    caller::Caller,
    definitions::{install, stock},
    waiting::eventually,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The group of all kinds here.
pub(crate) const GROUP: &str = "/apis/cluster.open-cluster-management.io";

/// What every `berth webhook` of ours is told: it runs beside the API server, not in a pod.
pub(crate) const BESIDE: &[&str] = &[
    "--listen=127.0.0.1:0",
    "--url=https://127.0.0.1:0",
    "--metrics-bind=127.0.0.1:0",
    "--namespace=default",
    "--trusted-user=controllers",
];

/// All controllers but those that judge whether clusters can be reached: nobody renews leases here.
const CALM: &str = "--controllers=*,-cluster-taint-controller,-cluster-lease-controller";

/// Which API server, and how the rules come to be in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// `berth up`: built in.
    Up,
    /// The hub, by a webhook.
    Hub,
    /// A kube-apiserver, by a webhook.
    Kubernetes,
    /// The same, with the stock definitions.
    Stock,
}

impl Ground {
    /// Whether controllers decide placements there.
    pub(crate) fn decides(self) -> bool {
        self == Self::Up
    }

    /// A bed with the definitions in it, and no webhook yet.
    pub(crate) async fn bed(self) -> Option<Bed> {
        let definitions = match self {
            Self::Stock => stock()?,
            _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds"),
        };
        let bed = or_skip(match self {
            Self::Up => Bed::hub().with_controllers().flags(&[CALM]).await,
            Self::Hub => Bed::hub().await,
            Self::Kubernetes | Self::Stock => Bed::kubernetes().without_fsync().await,
        })?;
        install(&bed, &definitions).await;
        Some(bed)
    }
}

/// Starts a webhook and waits until the API server asks it: Kubernetes reads configurations from a cache of its own.
pub(crate) async fn webhook(bed: &Bed, name: &'static str, flags: &[&str]) -> Result<Companion, BedError> {
    let flags: Vec<&str> = BESIDE.iter().chain(flags).copied().collect();
    let webhook = Companion::berth(bed, name, "webhook", &flags).await?;
    until_asked(&Caller::admin(bed)).await;
    Ok(webhook)
}

/// Waits until both the mutating and the validating rules are at work, by dry runs.
pub(crate) async fn until_asked(admin: &Caller) {
    let bad = cluster("probe.of.the.rules", &json!({}));
    let good = cluster("probe-of-the-rules", &json!({"taints": [{"key": "a", "effect": "NoSelect"}]}));
    let target = format!("{GROUP}/v1/managedclusters?dryRun=All");
    eventually("the rules being asked", async || {
        let refused = admin.post(&target, &bad).await.code == 400;
        let changed = admin.post(&target, &good).await.body["spec"]["taints"][0]["timeAdded"].is_string();
        (refused && changed).then_some(())
    })
    .await;
    let placement = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "n".repeat(64), "namespace": "default"}, "spec": {},
    });
    let target = format!("{GROUP}/v1beta1/namespaces/default/placements?dryRun=All");
    eventually("the rules of placements being asked", async || {
        (admin.post(&target, &placement).await.code == 422).then_some(())
    })
    .await;
}

/// A cluster with this spec.
pub(crate) fn cluster(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Where clusters are, or one of them is.
pub(crate) fn cluster_path(name: &str) -> String {
    format!("{GROUP}/v1/managedclusters{}{name}", if name.is_empty() { "" } else { "/" })
}

/// A bed with the rules in front of it, which scenarios share.
struct Stand {
    bed: Shared,
    _webhook: Option<Companion>,
}

/// One for each ground. Held while it starts, so that those who want it meanwhile wait for it.
static STANDS: [Mutex<Option<Arc<Stand>>>; 4] = [const { Mutex::const_new(None) }; 4];

async fn stand(ground: Ground) -> Option<Arc<Stand>> {
    let mut slot = STANDS[ground as usize].lock().await;
    if slot.is_none() {
        let bed = ground.bed().await?;
        let webhook = if ground == Ground::Up {
            until_asked(&Caller::admin(&bed)).await;
            None
        } else {
            Some(or_skip(webhook(&bed, "webhook", &[]).await)?)
        };
        *slot = Some(Arc::new(Stand { bed: or_skip(bed.share())?, _webhook: webhook }));
    }
    slot.clone()
}

/// A scenario's place: names of its own on a bed that others use as well.
pub(crate) struct Place<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) ground: Ground,
    pub(crate) admin: Caller,
    /// A namespace; also what every name of a thing in no namespace begins with.
    pub(crate) namespace: String,
}

impl Place<'_> {
    /// The whole name of something that is in no namespace.
    pub(crate) fn name(&self, short: &str) -> String {
        format!("{}-{short}", self.namespace)
    }

    /// Where something in the scenario's namespace is.
    pub(crate) fn path(&self, version: &str, rest: &str) -> String {
        format!("{GROUP}/{version}/namespaces/{}/{rest}", self.namespace)
    }
}

/// Runs a scenario beside others.
pub(crate) fn beside(ground: Ground, scenario: impl AsyncFnOnce(&Place<'_>)) {
    run(async {
        let Some(stand) = stand(ground).await else { return };
        // Ours until the end: when the scenario fails, dropping it keeps the logs.
        let bed = stand.bed.clone();
        let namespace = bed.namespace("hook").await;
        scenario(&Place { bed: &bed, ground, admin: Caller::admin(&bed), namespace }).await;
    });
}

/// Runs a scenario alone on a bed, without a webhook yet.
pub(crate) fn alone(ground: Ground, scenario: impl AsyncFnOnce(&mut Bed)) {
    run(async {
        if let Some(mut bed) = ground.bed().await {
            scenario(&mut bed).await;
        }
    });
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.unwrap().block_on(scenario);
}

/// Makes of each scenario a module with a test on each ground.
macro_rules! grounds {
    () => {};
    ($(#[$attribute:meta])* async fn $name:ident($place:ident: &Place<'_>) $body:block $($more:tt)*) => {
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "the scenario names what its file names")]
            use super::*;
            use crate::ground::{Ground, beside};

            async fn scenario($place: &Place<'_>) $body

            #[test]
            fn on_berth_up() {
                beside(Ground::Up, scenario);
            }

            #[test]
            fn on_the_hub() {
                beside(Ground::Hub, scenario);
            }

            #[test]
            fn on_kubernetes() {
                beside(Ground::Kubernetes, scenario);
            }

            #[test]
            fn on_stock_definitions() {
                beside(Ground::Stock, scenario);
            }
        }
        $crate::ground::grounds!($($more)*);
    };
}

pub(crate) use grounds;
