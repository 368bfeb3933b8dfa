//! Any text as a CEL expression.
//!
//! Owns the promises: compiling and evaluating end within the budget, twice the same, and a placement selects a
//! cluster exactly if the expression is true of it.

use std::sync::LazyLock;

use berth_api::Object;
use berth_cel::{Bindings, Budget, Env, EvalError, PER_CALL_COST_LIMIT, Program, Type, Value};
use berth_engine::{Delta, Model, Moment, PlacementKey};
use serde_json::json;

use crate::fleet::{decide, delta};

/// The language of placements, without the functions that the engine adds.
static ENV: LazyLock<Env> = LazyLock::new(|| {
    let object = Type::map(Type::String, Type::Dyn);
    Env::builder().variable("managedCluster", object).cross_type_comparisons(false).build()
});

static CLUSTER: LazyLock<Object> = LazyLock::new(|| {
    read(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {
            "name": "c1",
            "labels": {"env": "prod", "cluster.open-cluster-management.io/clusterset": "s"},
            "annotations": {"site": r#"{"racks": [{"free": 7}]}"#},
        },
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
        "status": {
            "conditions": [],
            "version": {"kubernetes": "v1.33.1"},
            "allocatable": {"cpu": "16", "memory": "64Gi"},
            "clusterClaims": [{"name": "region", "value": "eu-1"}, {"name": "id", "value": "7"}],
        },
    }))
});

/// The cluster, its scores, its set and the set's binding; all a placement needs to select it.
static WORLD: LazyLock<Vec<Delta>> = LazyLock::new(|| {
    let group = "cluster.open-cluster-management.io";
    let others = [
        json!({
            "apiVersion": format!("{group}/v1alpha1"), "kind": "AddOnPlacementScore",
            "metadata": {"name": "cost", "namespace": "c1"},
            "status": {"scores": [{"name": "hour", "value": 42}]},
        }),
        json!({
            "apiVersion": format!("{group}/v1beta2"), "kind": "ManagedClusterSet",
            "metadata": {"name": "s"},
        }),
        json!({
            "apiVersion": format!("{group}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "s", "namespace": "n"}, "spec": {"clusterSet": "s"},
        }),
    ];
    others.into_iter().map(read).chain([CLUSTER.clone()]).filter_map(delta).collect()
});

fn read(document: serde_json::Value) -> Object {
    Object::read(document).expect("the fixed world is valid").object
}

/// Compiles and evaluates the bytes as an expression about a small managed cluster.
pub fn cel(bytes: &[u8]) {
    let Ok(source) = str::from_utf8(bytes) else { return };
    let selected = selects_the_cluster(source);
    match ENV.compile(source) {
        Ok(program) => {
            program.field_paths();
            let first = evaluate(&program);
            assert_eq!(first, evaluate(&program), "evaluating twice gives one value at one cost");
            let is_true = first.0 == Ok(Outcome::True);
            assert_eq!(selected, is_true, "a placement selects a cluster exactly if its expression is true");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says what is wrong"),
    }
}

/// A value, shallowly: one of a few shared lists can have more leaves than anybody can visit.
#[derive(Debug, PartialEq)]
enum Outcome {
    True,
    Other(Type),
}

fn evaluate(program: &Program) -> (Result<Outcome, EvalError>, u64) {
    static BINDINGS: LazyLock<Bindings> =
        LazyLock::new(|| Bindings::new().with("managedCluster", Value::from_json(&CLUSTER.to_value())));
    let mut budget = Budget::new(PER_CALL_COST_LIMIT);
    let outcome = program.evaluate(&BINDINGS, &mut budget).map(|value| match value {
        Value::Bool(true) => Outcome::True,
        other => Outcome::Other(other.type_of()),
    });
    (outcome, budget.spent())
}

/// The same through a placement, whose expressions know `scores()` and `parseJSON()` besides.
fn selects_the_cluster(source: &str) -> bool {
    let mut model = Model::new();
    let placement = read(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [source]}}}]},
    }));
    for delta in WORLD.iter().cloned().chain(delta(placement)) {
        model.apply(delta);
    }
    let decision = decide(&mut model, &PlacementKey::new("n", "p"), Moment::from_second(0));
    !decision.expect("the placement is there").picks.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_world_lets_an_expression_decide() {
        assert!(selects_the_cluster("managedCluster.scores('cost')[0].value == 42"));
        assert!(!selects_the_cluster("managedCluster.scores('cost')[0].value == 43"));
    }
}
