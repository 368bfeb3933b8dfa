//! Placements of half a fleet, spread in ways that once made every choice look at every cluster again.

use std::time::Instant;

use anyhow::{Context, ensure};
use berth_api::{
    Placement, PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate, SpreadConstraint, SpreadPolicy,
    Toleration,
};
use berth_engine::{Delta, Model, Moment, PlacementKey};

use crate::figure::{Figure, grouped};
use crate::fleet::{self, Detail};
use crate::report::Report;

/// What a placement that spreads may take longer than one that does not is a matter of sorting, not of squares.
const MICROS_PER_CLUSTER_MAX: f64 = 50.0;

/// A way to spread: what it is called, by which labels, and the weight of `Spread`.
type Way = (&'static str, &'static [&'static str], i32);

const WAYS: [Way; 5] = [
    ("the same vendor, then each its own name", &["vendor", "name"], 2),
    ("3 clouds, then each its own name", &["cloud", "name"], 2),
    ("16 regions, 50 owners, 40 cost centers", &["region", "owner", "cost-center"], 2),
    ("16 regions, crowding wanted", &["region"], -2),
    ("each its own name, crowding wanted", &["name"], -2),
];

/// Measures every way over fleets of these sizes.
pub(crate) fn tell(report: &mut Report, sizes: &[usize]) -> anyhow::Result<()> {
    for size in sizes {
        let mut model = Model::new();
        for number in 0..*size {
            model.apply(Delta::Cluster(Box::new(fleet::cluster(number, Detail::Whole))));
        }
        model.apply(Delta::Set(Box::new(fleet::set())));
        for binding in fleet::bindings() {
            model.apply(Delta::Binding(Box::new(binding)));
        }
        for (name, keys, weight) in WAYS {
            let placement = spread(size / 2, keys, weight);
            let namespace = placement.metadata.namespace.as_deref().unwrap_or_default();
            let key = PlacementKey::new(namespace, placement.metadata.name.as_deref().unwrap_or_default());
            model.apply(Delta::Placement(Box::new(placement)));
            let start = Instant::now();
            let decision = model.decide_afresh(&key, Moment::from_second(1_800_000_000));
            let micros = start.elapsed().as_secs_f64() * 1e6;
            let decision = decision.context("the measured placement was left alone")?;
            ensure!(decision.picks.len() == size / 2, "{name}: {} selected", decision.picks.len());
            let row = format!("spread over {name}, half of {} clusters", grouped(*size as i64));
            report.add(row.clone(), "µs", Figure::Number(micros));
            report.hold(&row, "µs", MICROS_PER_CLUSTER_MAX * *size as f64, false);
        }
    }
    Ok(())
}

/// A placement of `count` clusters, whatever their taints, spread by these labels where it can be had.
fn spread(count: usize, keys: &[&str], weight: i32) -> Placement {
    let mut placement = fleet::subject();
    placement.spec.predicates = None;
    placement.spec.number_of_clusters = i32::try_from(count).ok();
    placement.spec.tolerations =
        Some(vec![Toleration { operator: Some("Exists".into()), ..Toleration::default() }]);
    let constraint = |key: &&str| SpreadConstraint {
        topology_key: (*key).to_owned(),
        topology_key_type: "Label".into(),
        max_skew: Some(1),
        when_unsatisfiable: Some("ScheduleAnyway".into()),
    };
    placement.spec.spread_policy =
        Some(SpreadPolicy { spread_constraints: Some(keys.iter().map(constraint).collect()) });
    let coordinate = ScoreCoordinate { built_in: Some("Spread".to_owned()), ..ScoreCoordinate::default() };
    let weighed = PrioritizerConfig { name: None, score_coordinate: Some(coordinate), weight: Some(weight) };
    placement.spec.prioritizer_policy =
        Some(PrioritizerPolicy { mode: Some("Additive".into()), configurations: Some(vec![weighed]) });
    placement
}
