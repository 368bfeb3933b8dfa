//! Where scenarios run: an API server with definitions in it, and the controllers beside it.
//!
//! Owns starting grounds, once for all scenarios that share one, and the three ways to run on them. A ground whose
//! programs or definitions are not on this machine is skipped, in so many words.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use berth_bed::{Bed, BedError, Companion, Kind, Shared, or_skip};
use berth_tests::{
    definitions::{install, stock},
    machine,
};
use tokio::sync::Mutex;

use crate::handle::{Fleet, GROUP};

/// What every `berth run` of ours is told, unless the scenario is about it.
pub(crate) const ALONE: &[&str] = &["--leader-elect=false", "--metrics-bind=127.0.0.1:0"];

/// The same without the controllers of cluster health: clusters without an agent would be unreachable.
pub(crate) const QUIET: &[&str] = &["--leader-elect=false", "--metrics-bind=127.0.0.1:0", CALM];

/// All controllers but those that judge whether clusters can be reached: nobody renews leases here.
pub(crate) const CALM: &str = "--controllers=*,-cluster-taint-controller,-cluster-lease-controller";

/// Which API server, with which definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The hub, with ours.
    Hub,
    /// A kube-apiserver, with ours.
    Kubernetes,
    /// A kube-apiserver, with the stock ones.
    Stock,
}

impl Ground {
    pub(crate) fn kind(self) -> Kind {
        if self == Self::Hub { Kind::Hub } else { Kind::Kubernetes }
    }

    /// Whether fields of ours are kept.
    pub(crate) fn is_ours(self) -> bool {
        self != Self::Stock
    }

    /// A bed with the definitions in it; nothing where that cannot be had.
    async fn bed(self) -> Option<Bed> {
        let definitions = self.definitions()?;
        let started = match self.kind() {
            Kind::Hub => Bed::hub().await,
            // Garbage is collected and namespaces end, as on the hub.
            Kind::Kubernetes => {
                let controllers = "--controllers=garbage-collector-controller,namespace-controller";
                Bed::kubernetes().without_fsync().controller_manager(&[controllers]).await
            }
        };
        let bed = or_skip(started)?;
        install(&bed, &definitions).await;
        Some(bed)
    }

    /// The folder of definitions.
    fn definitions(self) -> Option<PathBuf> {
        let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
        if self.is_ours() { Some(ours()) } else { stock() }
    }
}

/// A bed and the controllers that all its scenarios share.
struct Stand {
    bed: Shared,
    _controllers: Companion,
}

type Slot = Mutex<Option<Arc<Stand>>>;

/// One for each ground. Held while it starts, so that those who want it meanwhile wait for it.
static CALM_STANDS: [Slot; 3] = [const { Mutex::const_new(None) }; 3];
static HEALTH_STANDS: [Slot; 3] = [const { Mutex::const_new(None) }; 3];
static TURNS: [Mutex<Option<Shared>>; 3] = [const { Mutex::const_new(None) }; 3];

async fn stand(slots: &'static [Slot; 3], ground: Ground, controllers: &str) -> Option<Arc<Stand>> {
    let mut slot = slots[ground as usize].lock().await;
    if slot.is_none() {
        let bed = ground.bed().await?;
        let flags: Vec<&str> = ALONE.iter().copied().chain([controllers]).collect();
        let controllers = or_skip(Companion::berth(&bed, "controllers", "run", &flags).await)?;
        let bed = or_skip(bed.share())?;
        *slot = Some(Arc::new(Stand { bed, _controllers: controllers }));
    }
    slot.clone()
}

/// Runs a scenario beside others, without the controllers of cluster health.
pub(crate) fn calm(ground: Ground, scenario: impl AsyncFnOnce(&Fleet)) {
    beside(&CALM_STANDS, ground, CALM, scenario);
}

/// Runs a scenario beside others, with all controllers.
pub(crate) fn health(ground: Ground, scenario: impl AsyncFnOnce(&Fleet)) {
    beside(&HEALTH_STANDS, ground, "--controllers=*", scenario);
}

fn beside(
    slots: &'static [Slot; 3],
    ground: Ground,
    controllers: &'static str,
    scenario: impl AsyncFnOnce(&Fleet),
) {
    run(async {
        let _shared = machine::shared().await;
        let Some(stand) = stand(slots, ground, controllers).await else { return };
        // Ours until the end: when the scenario fails, dropping it keeps the logs.
        let bed = stand.bed.clone();
        let fleet = Fleet::new(&bed, ground).await;
        scenario(&fleet).await;
    });
}

/// A bed that a scenario has to itself for a while.
pub(crate) struct Turn<'b> {
    pub(crate) bed: &'b mut Bed,
    pub(crate) fleet: Fleet,
}

impl Turn<'_> {
    /// Starts controllers; nothing where this `berth` has none.
    pub(crate) async fn run(&self, name: &'static str, flags: &[&str]) -> Result<Companion, BedError> {
        Companion::berth(self.bed, name, "run", flags).await
    }

    /// Starts the API server again, and waits until it serves the fleet. The handle gets connections of its own: those of
    /// before are dead.
    pub(crate) async fn start_server(&mut self) {
        self.bed.start().await.unwrap();
        self.fleet = self.fleet.again(self.bed);
        for kind in ["v1/managedclusters", "v1beta1/placements", "v1beta1/placementdecisions"] {
            let path = format!("{GROUP}/{kind}?limit=1");
            self.fleet.until(&path, "is served", |list| list["items"].is_array()).await;
        }
    }
}

/// Runs a scenario alone on a bed, after those that had it before.
pub(crate) fn turn(ground: Ground, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let mut slot = TURNS[ground as usize].lock().await;
        let _shared = machine::shared().await;
        take_turn(&mut slot, ground, scenario).await;
    });
}

/// The same with nothing else going on beside it: what it measures is held to fractions of a second.
pub(crate) fn quiet(ground: Ground, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let mut slot = TURNS[ground as usize].lock().await;
        let _alone = machine::alone().await;
        take_turn(&mut slot, ground, scenario).await;
    });
}

async fn take_turn(slot: &mut Option<Shared>, ground: Ground, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    // Taken out: a bed that a scenario failed on is nobody's after it.
    let mut bed = if let Some(bed) = slot.take() {
        bed
    } else {
        let Some(bed) = ground.bed().await else { return };
        let Some(bed) = or_skip(bed.share()) else { return };
        bed
    };
    let fleet = Fleet::new(&bed, ground).await;
    let whole = bed.get_mut().expect("nobody else has a bed that was taken out");
    let mut turn = Turn { bed: whole, fleet };
    scenario(&mut turn).await;
    *slot = Some(bed);
}

/// Runs a scenario on a bed that nobody has had before: what others leave behind falls due by itself, as leases do that nobody
/// renews.
pub(crate) fn fresh(ground: Ground, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let _shared = machine::shared().await;
        let Some(mut bed) = ground.bed().await else { return };
        let fleet = Fleet::new(&bed, ground).await;
        scenario(&mut Turn { bed: &mut bed, fleet }).await;
    });
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.unwrap().block_on(scenario);
}

/// Makes of each scenario a module with three tests, one on each ground.
macro_rules! grounds {
    () => {};
    ($(#[$attribute:meta])* $run:ident async fn $name:ident($handle:ident: $type:ty) $body:block $($more:tt)*) => {
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "the scenario names what its file names")]
            use super::*;
            use crate::ground::{Ground, $run};

            async fn scenario($handle: $type) $body

            #[test]
            fn on_the_hub() {
                $run(Ground::Hub, scenario);
            }

            #[test]
            fn on_kubernetes() {
                $run(Ground::Kubernetes, scenario);
            }

            #[test]
            fn on_stock_definitions() {
                $run(Ground::Stock, scenario);
            }
        }
        $crate::ground::grounds!($($more)*);
    };
}

pub(crate) use grounds;
