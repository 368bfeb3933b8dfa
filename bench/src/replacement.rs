//! Replacing members on ailing nodes: everybody from scratch, and again after an event of one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use berth_api::replacement::ReplacementPolicySpec;
use berth_engine::Moment;
use berth_engine::replace::{
    Feasibility, Fleet, Known, Member, Node, NodeFact, Opening, Pod, Policy, PolicyKey, Readiness, Sure,
    Target,
};
use berth_engine::taint::{NodeEffect, Taint};
use serde_json::json;

use crate::count::allocated;
use crate::figure::{Figure, grouped, median, percentile};
use crate::report::Report;

const NOW: Moment = Moment::from_second(1_800_000_000);
const POLICIES: usize = 1_000;
const MEMBERS_PER_POLICY: usize = 10;
const NODES: usize = 2_500;
const TAINTED: usize = 500;
/// Of the time of one core, for everybody.
const AFRESH_MILLIS_MAX: f64 = 100.0;
/// Of the time of one core, for one event of one node.
const EVENT_MICROS_MAX: f64 = 200.0;
/// Four members on a node are of four policies with ten members each; a look takes a few for each member.
const EVENT_ALLOCATIONS_MAX: f64 = 600.0;
/// How often everybody is decided from scratch.
const ROUNDS: usize = 5;

/// Measures.
pub(crate) fn tell(report: &mut Report) -> anyhow::Result<()> {
    let members = POLICIES * MEMBERS_PER_POLICY;
    let shape = format!(
        "{} members, {} policies, {TAINTED} of {} nodes tainted",
        grouped(members as i64),
        grouped(POLICIES as i64),
        grouped(NODES as i64)
    );
    let mut filling = Vec::new();
    let mut deciding = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut fleet = filled()?;
        filling.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let (due, marked) = decide_all(&mut fleet)?;
        deciding.push(start.elapsed().as_secs_f64() * 1e3);
        ensure!(due > 0 && marked > due, "{due} of {marked} members that are marked begin");
    }
    report.add(format!("replacement: index {shape}"), "ms", Figure::Number(median(filling)));
    let name = format!("replacement: decide everybody from scratch, {shape}");
    report.add(name.clone(), "ms", Figure::Number(median(deciding)));
    report.hold(&name, "ms", AFRESH_MILLIS_MAX, false);

    let mut fleet = filled()?;
    decide_all(&mut fleet)?;
    let mut times = Vec::new();
    for number in 0..NODES {
        // Every node changes once: what is tainted gets well, what is well is tainted.
        let fact = node(number, number >= TAINTED);
        let start = Instant::now();
        event(&mut fleet, number, fact)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let name = format!("replacement: an event of one node, {shape}");
    report.add(name.clone(), "µs", Figure::Number(median(times.clone())));
    report.hold(&name, "µs", EVENT_MICROS_MAX, false);
    let slow = percentile(&mut times, 0.99);
    report.add(format!("{name}, 99 of 100 within"), "µs", Figure::Number(slow));
    let (done, taken) = allocated(|| event(&mut fleet, 0, node(0, true)));
    done?;
    report.add(name.clone(), "allocations", Figure::Number(taken.times as f64));
    report.hold(&name, "allocations", EVENT_ALLOCATIONS_MAX, true);
    Ok(())
}

/// A node changes, and everybody whom that concerns is decided again.
fn event(fleet: &mut Fleet, number: usize, fact: NodeFact) -> anyhow::Result<()> {
    let touched = fleet.set_node(&node_name(number), fact);
    ensure!(!touched.is_empty(), "an event that concerns nobody measures nothing");
    for key in touched {
        std::hint::black_box(fleet.decide(&key, NOW).context("a policy is missing")?);
    }
    Ok(())
}

/// Decides every policy; how many members begin, and how many are marked.
fn decide_all(fleet: &mut Fleet) -> anyhow::Result<(usize, usize)> {
    let keys: Vec<PolicyKey> = fleet.policies().cloned().collect();
    let (mut due, mut marked) = (0, 0);
    for key in keys {
        let plan = fleet.decide(&key, NOW).context("a policy is missing")?;
        due += plan.steps.iter().filter(|step| !step.acts.is_empty()).count();
        marked += plan.tally.replacing;
    }
    Ok((due, marked))
}

fn filled() -> anyhow::Result<Fleet> {
    let spec: ReplacementPolicySpec = serde_json::from_value(json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "mode": "Enforce",
        "triggers": {"taints": [
            {"key": "example.org/maintenance", "durationSeconds": 7_200},
            {"key": "example.org/disconnected", "durationSeconds": 1_200},
            {"key": "*", "durationSeconds": 3_600},
        ]},
        "budget": {"breaker": {"maxAffectedFaultDomains": "50%"}},
        "strategy": {"volumes": {"policy": "DeleteNodeLocal"}},
    }))?;
    let policy = Policy::compile(&spec).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let mut fleet = Fleet::default();
    for number in 0..NODES {
        fleet.set_node(&node_name(number), node(number, number < TAINTED));
    }
    for number in 0..POLICIES {
        let key = PolicyKey::new("databases", &format!("db-{number}"));
        fleet.set_policy(&key, policy.clone(), None);
        fleet.set_window(&key, Opening::ALWAYS);
        let target: Arc<str> = key.name.clone();
        let unready = Known::Known(BTreeSet::new());
        fleet.set_target(&target, Target { unready, is_settled: Sure::Yes, ..Target::default() });
        for ordinal in 0..MEMBERS_PER_POLICY {
            fleet.set_member(&key, member(number, ordinal, &target), None);
        }
    }
    Ok(fleet)
}

fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

fn node(number: usize, is_tainted: bool) -> NodeFact {
    let taint = Taint {
        key: "example.org/disconnected".into(),
        value: "".into(),
        effect: NodeEffect::NoSchedule,
        added: Some(NOW.plus_seconds(-2_000)),
    };
    NodeFact::Present(Node {
        created: Moment::from_second(0),
        labels: BTreeMap::from([("kubernetes.io/hostname".into(), node_name(number).into())]),
        taints: if is_tainted { vec![taint] } else { Vec::new() },
        is_cordoned: false,
        conditions: Vec::new(),
    })
}

fn member(policy: usize, ordinal: usize, target: &Arc<str>) -> Member {
    let name: Arc<str> = format!("db-{policy}-{ordinal}").into();
    // Members of one workload are on nodes far from each other.
    let place = (policy + ordinal * 251) % NODES;
    Member {
        target: Arc::clone(target),
        pod: Known::Known(Some(Pod {
            uid: format!("{name}-uid").into(),
            node: Some(node_name(place).into()),
            ready: Readiness::Since(Moment::from_second(1)),
            ..Pod::default()
        })),
        successor: Known::Known(None),
        order: Some(0),
        claims: Known::Known(Vec::new()),
        feasibility: Feasibility::Yes,
        told: Sure::No,
        name,
        ..Member::default()
    }
}
