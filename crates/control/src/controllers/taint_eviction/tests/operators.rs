//! Tolerations that compare numbers, and those of a day to come.

use super::*;

fn priced(stage: &Scene, value: &str) -> Value {
    let mut taint = taint(stage, KEY);
    taint["value"] = json!(value);
    taint
}

fn tolerating(operator: &str, value: &str) -> Value {
    json!([{"key": KEY, "operator": operator, "value": value, "effect": "NoExecute"}])
}

#[test]
fn a_value_that_changes_may_make_somebody_leave() {
    let mut stage = scene();
    let first = priced(&stage, "990");
    put_node(&mut stage, json!([first]));
    stage.put(Kind::Pod, pod(tolerating("Gt", "950")));
    stage.put(Kind::Pod, named("modest", "node", tolerating("Gt", "850")));
    stage.put(Kind::Pod, named("bounded", "node", tolerating("Lt", "1000")));
    assert_eq!(stage.settle(), NOTHING);
    let worse = priced(&stage, "900");
    put_node(&mut stage, json!([worse]));
    assert_eq!(stage.settle(), BOTH);
    let odd = priced(&stage, "unrated");
    put_node(&mut stage, json!([odd]));
    let left = stage.settle();
    assert!(left.contains(&"delete Pod n/modest".to_owned()), "what is no number is not compared: {left:?}");
    assert!(left.contains(&"delete Pod n/bounded".to_owned()), "{left:?}");
}

/// Nobody knows what it means, so it tolerates nothing: by that, a taint counts for more and not for less. Where another
/// toleration covers the taint it does not matter.
///
/// Upstream: not-upstream "unknown future operator".
#[test]
fn an_operator_that_nobody_knows_tolerates_nothing() {
    for (tolerations, leaves) in [
        (tolerating("Near", "900"), true),
        (json!([tolerating("Near", "900")[0], {"operator": "Exists"}]), false),
    ] {
        let mut stage = scene();
        let taint = priced(&stage, "900");
        put_node(&mut stage, json!([taint]));
        stage.put(Kind::Pod, pod(tolerations.clone()));
        assert_eq!(stage.settle(), if leaves { &BOTH[..] } else { &[] }, "{tolerations}");
        assert_eq!(stage.after_seconds(3600), NOTHING, "{tolerations}");
    }
}
