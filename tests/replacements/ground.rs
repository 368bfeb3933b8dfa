//! Where scenarios run, and what runs beside them.
//!
//! Owns starting beds, once for all scenarios that share one, and the controller beside them. What is not on this machine is
//! skipped, in so many words.

use std::{
    path::Path,
    sync::{Arc, Mutex as Lock},
};

use berth_bed::{Bed, Companion, Kind, Shared, or_skip, tool};
use berth_tests::caller::Caller;
use tokio::sync::Mutex;

use crate::scene::Scene;

/// Where a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// On a kube-apiserver, with kube-controller-manager.
    Kubernetes,
    /// On the hub.
    Hub,
}

/// The controllers of kube-controller-manager that a StatefulSet with volumes lives by; that of disruption budgets for who has
/// one. Nobody judges nodes or evicts pods but Berth.
const MANAGER: &[&str] = &[
    "--controllers=statefulset-controller,persistentvolume-binder-controller,\
     persistentvolumeclaim-protection-controller,disruption-controller",
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
];

/// What `berth run` is told.
pub(crate) const CONTROLLER: &[&str] =
    &["--controllers=replacement-controller", "--leader-elect=false", "--metrics-bind=127.0.0.1:0"];

/// Kinds that scenarios need besides those of Kubernetes.
const DEFINITIONS: [&str; 2] = ["replacementpolicies.berth.dev", "replacements.berth.dev"];

impl Ground {
    async fn place(self) -> Option<Place> {
        let bed = or_skip(match self {
            Self::Hub => Bed::hub().await,
            Self::Kubernetes => Bed::kubernetes().without_fsync().await,
        })?;
        let manager = match self {
            Self::Hub => None,
            // It gives up on an API server that takes its time, so it begins when that answers.
            Self::Kubernetes => {
                let mut arguments = vec![format!("--kubeconfig={}", bed.kubeconfig().display())];
                arguments.extend(MANAGER.iter().map(ToString::to_string));
                let program = tool("kube-controller-manager");
                Some(or_skip(
                    program.and_then(|program| Companion::launch(&bed, "manager", program, arguments)),
                )?)
            }
        };
        let caller = Caller::admin(&bed);
        for name in DEFINITIONS {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../deploy/crds/{name}.yaml"));
            caller.apply(&std::fs::read_to_string(file).unwrap()).await;
            let (plural, group) = name.split_once('.').unwrap();
            let served = format!("/apis/{group}/v1alpha1/{plural}?limit=1");
            caller.until(&served, "is served", |list| list["items"].is_array()).await;
        }
        Some(Place { bed: or_skip(bed.share())?, _manager: manager })
    }

    fn kind(self) -> Kind {
        if self == Self::Hub { Kind::Hub } else { Kind::Kubernetes }
    }
}

/// Starts the controller on a way to the API server; nothing where there is no such binary.
pub(crate) async fn controller(bed: &Bed, kubeconfig: &Path, name: &'static str) -> Option<Companion> {
    or_skip(Companion::berth_with(bed, kubeconfig, name, "run", CONTROLLER).await)
}

/// A bed, with what Kubernetes has and the hub does without.
struct Place {
    bed: Shared,
    _manager: Option<Companion>,
}

/// A place, and the controller that all its scenarios share.
struct Stand {
    place: Place,
    _controller: Companion,
}

/// One for each ground. Held while it starts, so that those who want it meanwhile wait for it.
static STANDS: [Mutex<Option<Arc<Stand>>>; 2] = [const { Mutex::const_new(None) }; 2];
/// Those that nobody has just now, for each ground.
static TURNS: [Lock<Vec<Place>>; 2] = [const { Lock::new(Vec::new()) }; 2];

async fn stand(ground: Ground) -> Option<Arc<Stand>> {
    let mut slot = STANDS[ground as usize].lock().await;
    if slot.is_none() {
        let place = ground.place().await?;
        let controller = controller(&place.bed, place.bed.kubeconfig(), "controller").await?;
        *slot = Some(Arc::new(Stand { place, _controller: controller }));
    }
    slot.clone()
}

/// Runs a scenario beside others.
pub(crate) fn beside(ground: Ground, scenario: impl AsyncFnOnce(&Scene)) {
    run(async {
        let Some(stand) = stand(ground).await else { return };
        // Ours until the end: when the scenario fails, dropping it keeps the logs.
        let bed = stand.place.bed.clone();
        let scene = Scene::new(&bed).await;
        scenario(&scene).await;
        scene.clear().await;
    });
}

/// A bed that a scenario has to itself for a while, without a controller.
pub(crate) struct Turn<'b> {
    pub(crate) bed: &'b Bed,
    pub(crate) scene: Scene,
}

impl Turn<'_> {
    /// Starts the controller as the administrator; nothing where it is not on this machine.
    pub(crate) async fn controller(&self, name: &'static str) -> Option<Companion> {
        controller(self.bed, self.bed.kubeconfig(), name).await
    }
}

/// Runs a scenario alone on a bed, after those that had it before.
pub(crate) fn turn(ground: Ground, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let free = &TURNS[ground as usize];
        let taken = free.lock().unwrap().pop();
        // Taken out: a bed that a scenario failed on is nobody's after it.
        let place = if let Some(place) = taken {
            place
        } else {
            let Some(place) = ground.place().await else { return };
            place
        };
        assert_eq!(place.bed.kind(), ground.kind());
        let mut turn = Turn { bed: &place.bed, scene: Scene::new(&place.bed).await };
        scenario(&mut turn).await;
        // The next one's controller would find what is left of this one.
        turn.scene.clear().await;
        free.lock().unwrap().push(place);
    });
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(scenario);
}

/// Makes of each scenario a module with two tests, on Kubernetes and on the hub.
macro_rules! grounds {
    () => {};
    ($(#[$attribute:meta])* $run:ident async fn $name:ident($handle:ident: $type:ty) $body:block $($more:tt)*) => {
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "the scenario names what its file names")]
            use super::*;
            use berth_tests::heat::Heat;

            use crate::ground::{Ground, $run};

            static HEAT: Heat<Ground> = Heat::new();
            const ALL: &[Ground] = &[Ground::Kubernetes, Ground::Hub];

            async fn scenario($handle: $type) $body

            #[test]
            fn on_kubernetes() {
                HEAT.run(Ground::Kubernetes, ALL, "on_", |ground| $run(ground, scenario));
            }

            #[test]
            fn on_the_hub() {
                HEAT.run(Ground::Hub, ALL, "on_", |ground| $run(ground, scenario));
            }
        }
        $crate::ground::grounds!($($more)*);
    };
}

pub(crate) use grounds;
