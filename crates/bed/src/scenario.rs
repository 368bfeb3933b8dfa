//! One scenario, two beds: the source of a black-box test is written once.

use crate::{Bed, Kind, or_skip};

/// Makes of each scenario a module with two tests, `on_the_hub` and `on_kubernetes`.
///
/// `async fn NAME(bed: &Bed)` shares its bed with the tests that run at the same time; `async fn NAME(bed: &mut Bed)`
/// has one to itself; `managed async fn NAME(bed: &Bed)` shares one on which Kubernetes' controllers do what the hub does
/// by itself, see [`Bed::managed`](crate::Bed::managed). Tests whose bed is not on this machine say so and pass, see [`or_skip`](crate::or_skip).
#[macro_export]
macro_rules! scenario {
    () => {};
    ($(#[$attribute:meta])* async fn $name:ident($bed:ident: &mut $type:ident) $body:block $($more:tt)*) => {
        $crate::scenario!(@tests $(#[$attribute])* own $name ($bed: &mut $type) $body);
        $crate::scenario!($($more)*);
    };
    ($(#[$attribute:meta])* async fn $name:ident($bed:ident: &$type:ident) $body:block $($more:tt)*) => {
        $crate::scenario!(@tests $(#[$attribute])* shared $name ($bed: &$type) $body);
        $crate::scenario!($($more)*);
    };
    (
        $(#[$attribute:meta])* managed async fn $name:ident($bed:ident: &$type:ident) $body:block $($more:tt)*
    ) => {
        $crate::scenario!(@tests $(#[$attribute])* managed $name ($bed: &$type) $body);
        $crate::scenario!($($more)*);
    };
    (@tests $(#[$attribute:meta])* $run:ident $name:ident ($bed:ident: $type:ty) $body:block) => {
        $(#[$attribute])*
        #[cfg(test)]
        mod $name {
            #[allow(unused_imports, reason = "the scenario names what its file names")]
            use super::*;

            async fn scenario($bed: $type) $body

            #[test]
            fn on_the_hub() {
                $crate::$run($crate::Kind::Hub, scenario);
            }

            #[test]
            fn on_kubernetes() {
                $crate::$run($crate::Kind::Kubernetes, scenario);
            }
        }
    };
}

/// Runs a scenario on the shared bed of that kind; what [`scenario!`] makes of `bed: &Bed`.
///
/// # Panics
/// When the scenario does, or the bed does not start.
pub fn shared(kind: Kind, scenario: impl AsyncFnOnce(&Bed)) {
    run(async {
        if let Some(bed) = or_skip(Bed::shared(kind).await) {
            scenario(&bed).await;
        }
    });
}

/// Runs a scenario on the shared bed of that kind with controllers; what [`scenario!`] makes of `managed`.
///
/// # Panics
/// When the scenario does, or the bed does not start.
pub fn managed(kind: Kind, scenario: impl AsyncFnOnce(&Bed)) {
    run(async {
        if let Some(bed) = or_skip(Bed::managed(kind).await) {
            scenario(&bed).await;
        }
    });
}

/// Runs a scenario on a bed of its own; what [`scenario!`] makes of `bed: &mut Bed`.
///
/// # Panics
/// When the scenario does, or the bed does not start.
pub fn own(kind: Kind, scenario: impl AsyncFnOnce(&mut Bed)) {
    run(async {
        let started = match kind {
            Kind::Hub => Bed::hub().await,
            Kind::Kubernetes => Bed::kubernetes().await,
        };
        if let Some(mut bed) = or_skip(started) {
            scenario(&mut bed).await;
        }
    });
}

fn run(scenario: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a machine that runs tests can run threads").block_on(scenario);
}
