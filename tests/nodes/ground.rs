//! Where scenarios run, and whose controllers they are about.
//!
//! Owns starting beds, once for all scenarios that share one, and the controllers beside them. What is not on this machine is
//! skipped, in so many words.

use std::{
    path::Path,
    sync::{Arc, Mutex as Lock},
};

use berth_bed::{Bed, BedError, Companion, Kind, Shared, or_skip, tool};
use berth_tests::machine;
use tokio::sync::Mutex;

use crate::{
    kubelet::Kubelet,
    scene::{PATIENCE, Scene},
};

/// Whose controllers act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// kube-controller-manager, on a kube-apiserver: what it does proves the scenario.
    Upstream,
    /// `berth run`, on a kube-apiserver.
    Berth,
    /// `berth run`, on the hub.
    Hub,
}

/// What they are there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Pods leave nodes with NoExecute taints.
    Eviction,
    /// That, where tolerations may compare numbers.
    Numbers,
    /// That, and nodes are tainted by how they do.
    Lifecycle,
    /// Everything else, with eviction turned off by its name.
    Neither,
}

/// How the judges of nodes are set up: everything that takes a minute in a real cluster takes seconds here.
pub(crate) const BRISK: &[&str] = &[
    "--node-monitor-period=500ms",
    "--node-monitor-grace-period=4s",
    "--node-startup-grace-period=6s",
    "--node-eviction-rate=2",
    "--secondary-node-eviction-rate=0.1",
    "--large-cluster-size-threshold=5",
];

/// What Kubernetes' own servers have to be told before tolerations may compare numbers. The hub has no such thing.
const NUMBERS: &str = "--feature-gates=TaintTolerationComparisonOperators=true";

/// What kube-controller-manager is told besides: one of it, serving nobody, and not slower than its API server.
const UPSTREAM_ALONE: &[&str] =
    &["--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000"];

/// What `berth run` is told besides.
pub(crate) const ALONE: &[&str] = &["--leader-elect=false", "--metrics-bind=127.0.0.1:0"];

impl Contestant {
    pub(crate) fn kind(self) -> Kind {
        if self == Self::Hub { Kind::Hub } else { Kind::Kubernetes }
    }

    pub(crate) fn is_ours(self) -> bool {
        self != Self::Upstream
    }

    async fn bed(self, duty: Duty) -> Option<Bed> {
        let flags: &[&str] = if duty == Duty::Numbers { &[NUMBERS] } else { &[] };
        or_skip(match self.kind() {
            Kind::Hub => Bed::hub().await,
            Kind::Kubernetes => Bed::kubernetes().without_fsync().api_server(flags).await,
        })
    }

    /// The controllers of that duty, by the names that both give them.
    fn controllers(self, duty: Duty) -> &'static str {
        match (self, duty) {
            // Alone it finds no pods: the index it looks them up in is made by others, as by the one for DaemonSets.
            (Self::Upstream, Duty::Eviction | Duty::Numbers) => {
                "--controllers=taint-eviction-controller,daemonset-controller"
            }
            (Self::Upstream, Duty::Neither) => {
                "--controllers=node-lifecycle-controller,daemonset-controller,-taint-eviction-controller"
            }
            (_, Duty::Eviction | Duty::Numbers) => "--controllers=taint-eviction-controller",
            (_, Duty::Neither) => "--controllers=*,node-lifecycle-controller,-taint-eviction-controller",
            (_, Duty::Lifecycle) => "--controllers=node-lifecycle-controller,taint-eviction-controller",
        }
    }

    /// Starts controllers; nothing where they are not on this machine.
    pub(crate) async fn start(
        self,
        bed: &Bed,
        kubeconfig: &Path,
        name: &'static str,
        duty: Duty,
        more: &[&str],
    ) -> Option<Companion> {
        or_skip(self.try_start(bed, kubeconfig, name, duty, more).await)
    }

    async fn try_start(
        self,
        bed: &Bed,
        kubeconfig: &Path,
        name: &'static str,
        duty: Duty,
        more: &[&str],
    ) -> Result<Companion, BedError> {
        let mut flags = vec![self.controllers(duty)];
        flags.extend(if self.is_ours() { ALONE } else { UPSTREAM_ALONE });
        flags.extend(more);
        if self.is_ours() {
            return Companion::berth_with(bed, kubeconfig, name, "run", &flags).await;
        }
        let mut arguments = vec![format!("--kubeconfig={}", kubeconfig.display())];
        arguments.extend(flags.iter().map(ToString::to_string));
        Companion::launch(bed, name, tool("kube-controller-manager")?, arguments)
    }
}

/// A bed, and the controllers that all its scenarios share.
struct Stand {
    bed: Shared,
    _controllers: Companion,
    /// A node in a zone of its own that is always well: where all zones are lost, nobody judges nodes any more.
    _anchor: Option<Kubelet>,
}

type Slot = Mutex<Option<Arc<Stand>>>;

/// One for each contestant. Held while it starts, so that those who want it meanwhile wait for it.
static EVICTION: [Slot; 3] = [const { Mutex::const_new(None) }; 3];
static NUMERATE: [Slot; 3] = [const { Mutex::const_new(None) }; 3];
static LIFECYCLE: [Slot; 3] = [const { Mutex::const_new(None) }; 3];
/// Those that nobody has just now, for each kind of bed.
static TURNS: [Lock<Vec<Shared>>; 2] = [const { Lock::new(Vec::new()) }; 2];

async fn stand(slots: &'static [Slot; 3], contestant: Contestant, duty: Duty) -> Option<Arc<Stand>> {
    let mut slot = slots[contestant as usize].lock().await;
    if slot.is_none() {
        let bed = contestant.bed(duty).await?;
        let flags: &[&str] = match duty {
            Duty::Lifecycle => BRISK,
            Duty::Numbers if !contestant.is_ours() => &[NUMBERS],
            _ => &[],
        };
        let controllers = contestant.start(&bed, bed.kubeconfig(), "controllers", duty, flags).await?;
        let anchor = match duty {
            Duty::Lifecycle => {
                let scene = Scene::new(&bed, contestant).await;
                Some(Kubelet::apart(&scene, "anchor", "anchor").await)
            }
            _ => None,
        };
        let bed = or_skip(bed.share())?;
        *slot = Some(Arc::new(Stand { bed, _controllers: controllers, _anchor: anchor }));
    }
    slot.clone()
}

/// Runs a scenario beside others, where pods leave tainted nodes.
pub(crate) fn eviction(contestant: Contestant, scenario: impl AsyncFnOnce(&Scene)) {
    beside(&EVICTION, contestant, Duty::Eviction, scenario);
}

/// The same where tolerations may compare numbers.
pub(crate) fn numbers(contestant: Contestant, scenario: impl AsyncFnOnce(&Scene)) {
    beside(&NUMERATE, contestant, Duty::Numbers, scenario);
}

/// Runs a scenario beside others, where nodes are judged as well.
pub(crate) fn lifecycle(contestant: Contestant, scenario: impl AsyncFnOnce(&Scene)) {
    beside(&LIFECYCLE, contestant, Duty::Lifecycle, scenario);
}

fn beside(slots: &'static [Slot; 3], contestant: Contestant, duty: Duty, scenario: impl AsyncFnOnce(&Scene)) {
    run(async {
        let _shared = machine::shared().await;
        let Some(stand) = stand(slots, contestant, duty).await else { return };
        // Ours until the end: when the scenario fails, dropping it keeps the logs.
        let bed = stand.bed.clone();
        let scene = Scene::new(&bed, contestant).await;
        scenario(&scene).await;
        scene.clear().await;
    });
}

/// A bed that a scenario has to itself for a while, without controllers.
pub(crate) struct Turn<'b> {
    pub(crate) bed: &'b mut Bed,
    pub(crate) scene: Scene,
}

impl Turn<'_> {
    /// Starts the contestant; nothing where it is not on this machine.
    pub(crate) async fn run(&self, name: &'static str, duty: Duty, more: &[&str]) -> Option<Companion> {
        self.scene.contestant.start(self.bed, self.bed.kubeconfig(), name, duty, more).await
    }

    /// Starts the API server again. The scene gets connections of its own: those of before are dead.
    pub(crate) async fn start_server(&mut self) {
        self.bed.start().await.unwrap();
        self.scene.reconnect(self.bed);
        self.scene.caller.until("/api/v1/nodes?limit=1", "is served", |list| list["items"].is_array()).await;
    }
}

/// Runs a scenario alone on a bed, after those that had it before.
pub(crate) fn turn(contestant: Contestant, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let _shared = machine::shared().await;
        take_turn(contestant, scenario).await;
    });
}

/// The same with nothing else going on beside it: what it measures is held to fractions of a second.
pub(crate) fn quiet(contestant: Contestant, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    run(async {
        let _alone = machine::alone().await;
        take_turn(contestant, scenario).await;
    });
}

async fn take_turn(contestant: Contestant, scenario: impl AsyncFnOnce(&mut Turn<'_>)) {
    let free = &TURNS[usize::from(contestant.kind() == Kind::Hub)];
    let taken = free.lock().unwrap().pop();
    // Taken out: a bed that a scenario failed on is nobody's after it.
    let mut bed = if let Some(bed) = taken {
        bed
    } else {
        let Some(bed) = contestant.bed(Duty::Neither).await else { return };
        let Some(bed) = or_skip(bed.share()) else { return };
        bed
    };
    let scene = Scene::new(&bed, contestant).await;
    let whole = bed.get_mut().expect("nobody else has a bed that was taken out");
    let mut turn = Turn { bed: whole, scene };
    scenario(&mut turn).await;
    // The next one's controllers would find what is left of this one.
    turn.scene.clear().await;
    free.lock().unwrap().push(bed);
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(scenario);
}

/// Waits until the controllers of a process act at all; upstream's do not say when they begin.
pub(crate) async fn acts(scene: &Scene) {
    tokio::time::timeout(PATIENCE, scene.passes()).await.expect("controllers that act");
}

/// Makes of each scenario a module with three tests: against upstream, and against Berth on Kubernetes and on the hub. One that
/// begins with `ours` is about something that upstream has nothing like, and is not held against it.
macro_rules! grounds {
    () => {};
    ($(#[$attribute:meta])* ours $run:ident async fn $name:ident($handle:ident: $type:ty) $body:block $($more:tt)*) => {
        $crate::ground::grounds!(
            @tests $(#[$attribute])* $run $name ($handle: $type) $body [
                by_berth Berth,
                by_berth_on_the_hub Hub,
            ]
        );
        $crate::ground::grounds!($($more)*);
    };
    ($(#[$attribute:meta])* $run:ident async fn $name:ident($handle:ident: $type:ty) $body:block $($more:tt)*) => {
        $crate::ground::grounds!(
            @tests $(#[$attribute])* $run $name ($handle: $type) $body [
                by_upstream Upstream,
                by_berth Berth,
                by_berth_on_the_hub Hub,
            ]
        );
        $crate::ground::grounds!($($more)*);
    };
    (
        @tests $(#[$attribute:meta])* $run:ident $name:ident ($handle:ident: $type:ty) $body:block
        [$($test:ident $contestant:ident,)+]
    ) => {
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "the scenario names what its file names")]
            use super::*;
            use berth_tests::heat::Heat;

            use crate::ground::{Contestant, $run};

            static HEAT: Heat<Contestant> = Heat::new();
            const ALL: &[Contestant] = &[$(Contestant::$contestant),+];

            async fn scenario($handle: $type) $body

            $(
                #[test]
                fn $test() {
                    HEAT.run(Contestant::$contestant, ALL, "by_", |contestant| $run(contestant, scenario));
                }
            )+
        }
    };
}

pub(crate) use grounds;
