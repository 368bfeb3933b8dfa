//! Many policies: what is decided event by event is what is decided from scratch.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::replace::{
    Feasibility, Fleet, Known, Member, Node, NodeFact, Opening, Plan, Pod, PolicyKey, Readiness, Sure, Target,
};
use serde_json::json;

use super::fixtures::{START, after, compiled, taint};

const POLICIES: usize = 100;
const MEMBERS: usize = 10;
const NODES: usize = 250;

fn key(number: usize) -> PolicyKey {
    PolicyKey::new("ns", &format!("p{number}"))
}

fn node(is_tainted: bool) -> NodeFact {
    NodeFact::Present(Node {
        created: START,
        labels: BTreeMap::new(),
        taints: if is_tainted { vec![taint("a", Some(after(10)))] } else { Vec::new() },
        is_cordoned: false,
        conditions: Vec::new(),
    })
}

/// Everything as it is, in one go.
fn filled(tainted: &BTreeSet<usize>) -> Fleet {
    let spec = json!({
        "mode": "DryRun", "triggers": {"taints": [{"key": "a", "durationSeconds": 5}]},
        "budget": {"maxConcurrent": 2, "breaker": {"maxAffectedFaultDomains": "30%"}},
    });
    let policy = compiled(spec);
    let mut fleet = Fleet::default();
    for number in 0..NODES {
        fleet.set_node(&format!("n{number}"), node(tainted.contains(&number)));
    }
    for number in 0..POLICIES {
        let key = key(number);
        fleet.set_policy(&key, policy.clone(), None);
        fleet.set_window(&key, Opening::ALWAYS);
        let unready = Known::Known(BTreeSet::new());
        fleet.set_target(&key.name, Target { unready, is_settled: Sure::Yes, ..Target::default() });
        for ordinal in 0..MEMBERS {
            let pod = Pod {
                uid: format!("{number}-{ordinal}").into(),
                node: Some(format!("n{}", (number + ordinal * 37) % NODES).into()),
                ready: Readiness::Since(START),
                ..Pod::default()
            };
            let member = Member {
                name: format!("db-{number}-{ordinal}").into(),
                target: key.name.clone(),
                pod: Known::Known(Some(pod)),
                feasibility: Feasibility::Yes,
                order: Some(0),
                ..Member::default()
            };
            fleet.set_member(&key, member, None);
        }
    }
    fleet
}

fn plans(fleet: &mut Fleet) -> Vec<Plan> {
    (0..POLICIES).map(|number| fleet.decide(&key(number), after(100)).unwrap()).collect()
}

#[test]
fn what_is_decided_event_by_event_is_what_is_decided_from_scratch() {
    let mut tainted = BTreeSet::new();
    let mut fleet = filled(&tainted);
    let mut current = plans(&mut fleet);
    for round in 0..400 {
        let number = (round * 7_919) % NODES;
        let is_tainted = !tainted.remove(&number) && tainted.insert(number);
        let touched = fleet.set_node(&format!("n{number}"), node(is_tainted));
        assert!(touched.len() <= MEMBERS, "an event concerns those on the node and nobody else");
        for key in touched {
            let place: usize = key.name[1..].parse().unwrap();
            current[place] = fleet.decide(&key, after(100)).unwrap();
        }
    }
    assert!(tainted.len() > 50);
    let afresh = plans(&mut filled(&tainted));
    let mut held = 0;
    for (one, other) in current.iter().zip(&afresh) {
        assert_eq!(one.tally, other.tally);
        for (one, other) in one.steps.iter().zip(&other.steps) {
            assert_eq!((one.state, &one.reasons, &one.memory), (other.state, &other.reasons, &other.memory));
            held += usize::from(one.reasons.iter().any(berth_engine::replace::Reason::holds));
        }
    }
    assert!(held > 50, "{held}");
}
