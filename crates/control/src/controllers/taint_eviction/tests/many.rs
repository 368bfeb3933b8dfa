//! Thousands that are due in the same moment.

use std::collections::HashSet;

use super::*;

const PODS: usize = 10_000;
const NODES: usize = 100;

/// More decisions than so many pods can need: each is judged, let go, told and deleted.
const ENOUGH: usize = 10 * PODS;

/// All tolerate the taint of their node for a minute, from the same moment on.
fn crowd(limits: EvictionLimits) -> Scene {
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    for number in 0..NODES {
        stage.put(Kind::Node, node(&format!("n{number}"), json!([taint])));
    }
    for number in 0..PODS {
        let name = format!("p{number:05}");
        stage.put(Kind::Pod, named(&name, &format!("n{}", number % NODES), tolerates(Some(60))));
    }
    assert_eq!(stage.settle_for(ENOUGH), NOTHING);
    stage
}

fn deleted(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("delete Pod n/")).collect()
}

/// Upstream: not-upstream "10k pods same deadline (smoothing)".
#[test]
fn ten_thousand_with_one_deadline_go_once_each_and_no_faster_than_they_may() {
    let limits = EvictionLimits { rate: Some(500.0), burst: Some(500), ..EvictionLimits::default() };
    let mut stage = crowd(limits);
    stage.now = stage.now.plus_seconds(59);
    assert_eq!(stage.settle_for(ENOUGH), NOTHING, "nobody goes early");
    let mut gone = HashSet::new();
    let mut seconds = Vec::new();
    while gone.len() < PODS {
        stage.now = stage.now.plus_seconds(1);
        let lines = stage.settle_for(ENOUGH);
        let names = deleted(&lines);
        seconds.push(names.len());
        assert!(names.iter().all(|name| gone.insert((*name).to_owned())), "somebody went twice");
        assert!(seconds.len() < 100, "{seconds:?}");
    }
    assert!(seconds.iter().all(|count| *count <= 500), "{seconds:?}");
    assert_eq!(seconds.len(), PODS / 500, "nobody waits in vain: {seconds:?}");
    assert_eq!((stage.controller.marshal.waiting(), stage.controller.going.len()), (0, 0));
    assert_eq!(stage.names(Kind::Pod).len(), 0);
}

#[test]
fn without_a_rate_ten_thousand_go_at_once() {
    let mut stage = crowd(EvictionLimits::default());
    stage.now = stage.now.plus_seconds(60);
    let lines = stage.settle_for(ENOUGH);
    assert_eq!(deleted(&lines).len(), PODS);
    assert_eq!(stage.names(Kind::Pod).len(), 0);
}
