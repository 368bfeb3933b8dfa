//! With policies.

use super::*;

pub(super) const EVICT: [&str; 1] = ["evict Pod n/p"];

/// A stage with a pod that does not tolerate the taint of its node, and these policies.
pub(super) fn governed(policies: &[(&str, Value)]) -> Scene {
    let mut stage = scene();
    for (name, spec) in policies {
        put_policy(&mut stage, name, spec.clone());
    }
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    stage
}

pub(super) fn put_policy(stage: &mut Scene, name: &str, spec: Value) {
    let generation = stage
        .get(Kind::Policy, "", name)
        .map_or(0, |policy| policy["metadata"]["generation"].as_i64().unwrap_or_default());
    let status = stage.get(Kind::Policy, "", name).map(|policy| policy["status"].clone());
    let mut policy = json!({"metadata": {"name": name, "generation": generation + 1}, "spec": spec});
    if let Some(status) = status.filter(|status| !status.is_null()) {
        policy["status"] = status;
    }
    stage.put(Kind::Policy, policy);
}

/// What was done about pods.
pub(super) fn settle(stage: &mut Scene) -> Vec<String> {
    without_status(stage.settle())
}

pub(super) fn after(stage: &mut Scene, seconds: i64) -> Vec<String> {
    without_status(stage.after_seconds(seconds))
}

fn without_status(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().filter(|line| !line.starts_with("patch EvictionPolicy")).collect()
}

/// How a policy stands, a second later.
pub(super) fn status(stage: &mut Scene, name: &str) -> Value {
    after(stage, 1);
    stage.get(Kind::Policy, "", name).unwrap()["status"].clone()
}

fn condition(status: &Value, kind: &str) -> (String, String) {
    let told = status["conditions"].as_array().unwrap().iter().find(|told| told["type"] == kind).unwrap();
    (told["status"].as_str().unwrap().to_owned(), told["reason"].as_str().unwrap().to_owned())
}

pub(super) fn change_pod(stage: &mut Scene, change: impl FnOnce(&mut Value)) {
    let mut object = stage.get(Kind::Pod, "n", "p").unwrap().clone();
    change(&mut object);
    stage.put(Kind::Pod, object);
}

#[test]
fn a_policy_deletes_evicts_or_holds() {
    let mut stage = governed(&[("p", json!({"way": "Delete"}))]);
    assert_eq!(settle(&mut stage), BOTH);
    let mut stage = governed(&[("p", json!({"way": "Evict"}))]);
    assert_eq!(settle(&mut stage), EVICT);
    assert_eq!(notes(&stage), ["Evicting Pod n/p"]);
    assert_eq!(status(&mut stage, "p")["evicted"], 1);
    let mut stage = governed(&[("p", json!({"way": "Hold"}))]);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, 3600), NOTHING);
    assert_eq!(notes(&stage), ["Holding Pod n/p: its policy says that it stays"], "told once");
    let told = status(&mut stage, "p");
    assert_eq!((&told["matched"], &told["held"], &told["evicted"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(told["holds"][0]["reason"], "Hold");
}

#[test]
fn without_policies_nothing_is_kept_of_pods() {
    let mut stage = armed(60);
    assert_eq!(stage.controller.cases.len(), 0);
    assert_eq!(stage.after_seconds(60), BOTH);
    assert_eq!(stage.controller.cases.len(), 0);
}

#[test]
fn a_budget_is_asked_again_less_and_less_often_until_the_deadline() {
    let spec = json!({"way": "Evict", "evict": {"deadlineSeconds": 600, "fallback": "Delete"}});
    let mut stage = governed(&[("p", spec)]);
    stage.budget = Some("the budget needs 3 healthy pods".to_owned());
    assert_eq!(settle(&mut stage), ["blocked: evict Pod n/p"]);
    let told = status(&mut stage, "p");
    assert_eq!(told["holds"][0]["reason"], "Budget");
    assert_eq!(
        told["holds"][0]["message"],
        "its disruption budget does not let it go: the budget needs 3 healthy pods"
    );
    let mut tries = 0;
    for _ in 0..598 {
        let lines = after(&mut stage, 1);
        assert!(lines.iter().all(|line| line == "blocked: evict Pod n/p"), "{lines:?}");
        tries += lines.len();
    }
    assert!((10..20).contains(&tries), "{tries}");
    assert_eq!(after(&mut stage, 1), BOTH, "the deadline");
}

#[test]
fn a_deadline_that_says_so_holds_for_good() {
    let spec = json!({"way": "Evict", "evict": {"deadlineSeconds": 10, "fallback": "Hold"}});
    let mut stage = governed(&[("p", spec)]);
    stage.budget = Some("no".to_owned());
    settle(&mut stage);
    after(&mut stage, 10);
    stage.budget = None;
    assert_eq!(after(&mut stage, 3600), NOTHING);
    assert_eq!(status(&mut stage, "p")["holds"][0]["reason"], "DeadlinePassed");
}

#[test]
fn a_budget_that_lets_go_after_all_is_used() {
    let mut stage = governed(&[("p", json!({"way": "Evict"}))]);
    stage.budget = Some("no".to_owned());
    settle(&mut stage);
    stage.budget = None;
    assert_eq!(after(&mut stage, 1), EVICT);
}

#[test]
fn a_policy_gives_its_own_time() {
    let mut stage = governed(&[("p", json!({"way": "Delete", "when": {"tolerationSeconds": 30}}))]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    assert_eq!((&told["waiting"], &told["next"][0]["pod"]), (&json!(1), &json!("n/p")));
    assert_eq!(after(&mut stage, 28), NOTHING);
    assert_eq!(after(&mut stage, 1), BOTH);
}

#[test]
fn the_most_specific_policy_counts_and_both_are_told() {
    let mut stage = governed(&[
        ("wide", json!({"way": "Delete"})),
        ("narrow", json!({"pods": {"namespaces": ["n"]}, "way": "Hold"})),
    ]);
    assert_eq!(settle(&mut stage), NOTHING);
    let (wide, narrow) = (status(&mut stage, "wide"), status(&mut stage, "narrow"));
    assert_eq!(condition(&wide, "Overlapped"), ("True".to_owned(), "LessSpecific".to_owned()));
    assert_eq!(condition(&narrow, "Overlapped"), ("True".to_owned(), "MoreSpecific".to_owned()));
    assert_eq!((&wide["matched"], &narrow["matched"]), (&json!(0), &json!(1)));
    stage.remove(Kind::Policy, &ObjectKey::new("", "narrow"));
    assert_eq!(settle(&mut stage), BOTH, "once it is gone the other counts");
}

#[test]
fn a_policy_that_cannot_be_understood_holds_until_it_is_mended() {
    let broken = json!({"way": "Delete", "gates": [{"name": "g", "cel": {"expression": "pod."}}]});
    let mut stage = governed(&[("p", broken)]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    assert_eq!(condition(&told, "Accepted"), ("False".to_owned(), "Misconfigured".to_owned()));
    assert_eq!(told["holds"][0]["reason"], "Misconfigured");
    put_policy(&mut stage, "p", json!({"way": "Delete"}));
    assert_eq!(settle(&mut stage), BOTH);
}

#[test]
fn a_policy_that_is_deleted_midway_leaves_pods_to_kubernetes_rule() {
    let mut stage = governed(&[("p", json!({"way": "Hold"}))]);
    assert_eq!(settle(&mut stage), NOTHING);
    stage.remove(Kind::Policy, &ObjectKey::new("", "p"));
    assert_eq!(settle(&mut stage), BOTH);
    assert_eq!(stage.controller.cases.len(), 0);
}

fn annotated() -> Value {
    json!({"way": "Delete", "gates": [{"name": "safe", "annotation": {"key": "example.org/safe", "value": "yes"}}]})
}

#[test]
fn a_gate_holds_until_it_opens_which_is_seen_at_once() {
    let mut stage = governed(&[("p", annotated())]);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(
        notes(&stage),
        ["Holding Pod n/p: gate safe is shut: the pod has no annotation example.org/safe"]
    );
    let told = status(&mut stage, "p");
    assert_eq!((&told["holds"][0]["gate"], &told["holds"][0]["count"]), (&json!("safe"), &json!(1)));
    assert!(stage.controller.metrics.text().contains("berth_policy_held{policy=\"p\",reason=\"Gate\"} 1"));
    assert_eq!(after(&mut stage, 600), NOTHING);
    change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"example.org/safe": "yes"}));
    assert_eq!(settle(&mut stage), BOTH);
}

#[test]
fn what_is_taken_back_at_the_last_moment_is_heard() {
    let mut stage = governed(&[("p", annotated())]);
    change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"example.org/safe": "yes"}));
    stage.after_look = Some(|pod| pod["metadata"]["annotations"] = json!({}));
    assert_eq!(
        settle(&mut stage),
        ["conflict: patch Pod n/p/status"],
        "it was read before, and is not deleted for it"
    );
    assert_eq!(after(&mut stage, 600), NOTHING);
    assert!(stage.get(Kind::Pod, "n", "p").is_some());
}

#[test]
fn a_condition_and_an_expression_are_asked_for_an_eviction_too() {
    let spec = json!({"way": "Evict", "gates": [
        {"name": "saved", "podCondition": {"type": "Saved", "status": "True"}},
        {"name": "zone", "cel": {"expression": "node.metadata.labels['topology.kubernetes.io/zone'] == 'z'"}},
    ]});
    let mut stage = governed(&[("p", spec)]);
    assert_eq!(settle(&mut stage), NOTHING);
    change_pod(&mut stage, |pod| {
        pod["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Saved", "status": "True"}));
    });
    assert_eq!(settle(&mut stage), EVICT);
}

#[test]
fn who_is_held_by_a_gate_uses_up_no_rate() {
    let mut spec = annotated();
    spec["pace"] = json!({"rate": 0.1});
    let mut stage = governed(&[("p", spec)]);
    for name in ["q", "r"] {
        let mut safe = named(name, "node", json!([]));
        safe["metadata"]["annotations"] = json!({"example.org/safe": "yes"});
        stage.put(Kind::Pod, safe);
    }
    assert_eq!(settle(&mut stage), ["patch Pod n/q/status", "delete Pod n/q"]);
    assert_eq!(after(&mut stage, 9), NOTHING);
    assert_eq!(after(&mut stage, 1), ["patch Pod n/r/status", "delete Pod n/r"]);
}

#[test]
fn a_dry_run_counts_and_evicts_nobody() {
    let mut stage = governed(&[("p", json!({"way": "Delete", "dryRun": true}))]);
    stage.put(Kind::Pod, named("q", "node", json!([])));
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    assert_eq!((&told["spared"], &told["evicted"], &told["matched"]), (&json!(2), &json!(0), &json!(2)));
    assert_eq!(after(&mut stage, 3600), NOTHING);
    assert!(
        stage
            .controller
            .metrics
            .text()
            .contains("berth_policy_evictions_total{policy=\"p\",way=\"DryRun\"} 2")
    );
    put_policy(&mut stage, "p", json!({"way": "Delete"}));
    assert_eq!(settle(&mut stage).len(), 4, "in earnest");
}

#[test]
fn a_dry_run_counts_at_its_own_pace_and_takes_nobodys_turn() {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(1), ..EvictionLimits::default() };
    let mut stage = with(limits);
    let pods = json!({"selector": {"matchLabels": {"app": "tried"}}});
    put_policy(
        &mut stage,
        "p",
        json!({"pods": pods, "way": "Delete", "dryRun": true, "pace": {"rate": 0.1}}),
    );
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for name in ["a", "b", "c"] {
        let mut tried = named(name, "node", json!([]));
        tried["metadata"]["labels"] = json!({"app": "tried"});
        stage.put(Kind::Pod, tried);
    }
    stage.put(Kind::Pod, pod(json!([])));
    assert_eq!(settle(&mut stage), BOTH, "the turn is for who goes in earnest");
    let spared = |stage: &Scene| stage.get(Kind::Policy, "", "p").unwrap()["status"]["spared"].clone();
    after(&mut stage, 1);
    assert_eq!(spared(&stage), 1);
    after(&mut stage, 8);
    assert_eq!(spared(&stage), 1, "one in ten seconds");
    after(&mut stage, 2);
    after(&mut stage, 1);
    assert_eq!(spared(&stage), 2);
}

#[test]
fn who_went_by_anothers_hand_is_neither_counted_nor_told() {
    for (way, write) in [("Delete", "delete"), ("Evict", "evict")] {
        let mut stage = governed(&[("p", json!({"way": way, "pace": {"rate": 0.001}}))]);
        stage.forestalled = Some(format!("{write} Pod n/p"));
        let done = settle(&mut stage);
        assert_eq!(done.last().unwrap(), &format!("gone: {write} Pod n/p"));
        assert_eq!(notes(&stage), NOTHING);
        assert_eq!(status(&mut stage, "p")["evicted"], 0);
        let text = stage.controller.metrics.text();
        assert!(text.contains("taint_eviction_controller_pod_deletions_total 0"), "{text}");
        assert_eq!((stage.controller.marshal.away(), stage.controller.going.len()), (0, 0));
        stage.forestalled = None;
        stage.put(Kind::Pod, named("q", "node", json!([])));
        let gone = settle(&mut stage);
        assert_eq!(gone.last().unwrap(), &format!("{write} Pod n/q"), "nobody's turn was used up by it");
    }
}

#[test]
fn a_gated_pod_that_never_stops_changing_is_looked_at_once_a_second() {
    let mut stage = governed(&[("p", annotated())]);
    assert_eq!(settle(&mut stage), NOTHING);
    for step in 0..100 {
        stage.now = stage.now.plus(Duration::from_millis(100));
        change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"changes": step.to_string()}));
        settle(&mut stage);
    }
    assert!((8..=12).contains(&stage.looks), "{} looks in ten seconds", stage.looks);
    change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"example.org/safe": "yes"}));
    settle(&mut stage);
    after(&mut stage, 1);
    assert!(stage.get(Kind::Pod, "n", "p").is_none(), "and the last change is not missed");
}

#[test]
fn a_budget_that_says_when_to_come_again_is_not_asked_before() {
    let mut stage = governed(&[("p", json!({"way": "Evict"}))]);
    stage.budget = Some("it was not looked at yet".to_owned());
    stage.budget_after = Duration::from_secs(10);
    assert_eq!(settle(&mut stage), ["blocked: evict Pod n/p"]);
    stage.budget = None;
    assert_eq!(after(&mut stage, 9), NOTHING);
    assert_eq!(after(&mut stage, 1), EVICT);
}

#[test]
fn nothing_is_kept_of_owners_that_are_gone() {
    let mut stage = scene();
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"perWorkload": 1}}));
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for number in 0..20 {
        let owner = format!("owner-{number}");
        stage.put(Kind::Pod, of(&owner, &owner, "node"));
    }
    settle(&mut stage);
    assert_eq!(stage.controller.bounded.len(), 20);
    assert!(stage.names(Kind::Pod).is_empty());
    after(&mut stage, 10);
    assert!(stage.controller.bounded.is_empty(), "nobody came for them");
}

#[test]
fn a_drained_node_is_emptied_by_eviction_but_for_its_daemons() {
    let mut stage = scene();
    put_node(&mut stage, json!([{"key": "berth.dev/drain", "effect": "NoExecute"}]));
    stage.put(Kind::Pod, pod(json!([])));
    let mut daemon = named("d", "node", json!([]));
    daemon["metadata"]["ownerReferences"] =
        json!([{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    stage.put(Kind::Pod, daemon);
    stage.budget = Some("no".to_owned());
    assert_eq!(settle(&mut stage), ["blocked: evict Pod n/p"]);
    stage.budget = None;
    assert_eq!(after(&mut stage, 2), EVICT);
    assert_eq!(stage.names(Kind::Pod), ["n/d"]);
}

#[test]
fn an_eviction_that_was_answered_is_not_sent_twice() {
    let mut stage = governed(&[("p", json!({"way": "Evict"}))]);
    change_pod(&mut stage, |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(30));
    assert_eq!(settle(&mut stage), EVICT);
    assert_eq!(after(&mut stage, 3600), NOTHING);
    assert_eq!(status(&mut stage, "p")["leaving"], 1);
}

fn leaving(stage: &mut Scene) {
    change_pod(stage, |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(30));
    assert_eq!(settle(stage), BOTH);
}

#[test]
fn who_does_not_end_is_deleted_by_force_only_with_a_proof() {
    for (proof, key) in [
        ("OutOfServiceTaint", "node.kubernetes.io/out-of-service"),
        ("ProviderShutdownTaint", "node.cloudprovider.kubernetes.io/shutdown"),
    ] {
        let terms = json!({"forceDeleteAfterSeconds": 60, "proofs": [{"type": proof}]});
        let mut stage = governed(&[("p", json!({"way": "Delete", "after": terms}))]);
        leaving(&mut stage);
        assert_eq!(after(&mut stage, 3600), NOTHING, "time alone proves nothing");
        let mut node = stage.get(Kind::Node, "", "node").unwrap().clone();
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": key, "effect": "NoSchedule"}));
        stage.put(Kind::Node, node);
        assert_eq!(settle(&mut stage), ["delete by force Pod n/p"]);
        let note = stage.notes.last().unwrap();
        let told = format!("Deleting by force Pod n/p: its node has the taint {key}");
        assert_eq!((&note.note, note.is_warning), (&told, true));
    }
}

#[test]
fn force_waits_for_its_time_even_with_a_proof() {
    let spec = json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 60, "acceptRisk": true}});
    let mut stage = governed(&[("p", spec)]);
    leaving(&mut stage);
    assert_eq!(after(&mut stage, 89), NOTHING, "its own grace, and then a minute");
    assert_eq!(after(&mut stage, 1), ["delete by force Pod n/p"]);
}

#[test]
fn who_does_not_end_is_not_kept_by_the_bound_that_it_fills_itself() {
    let bounds = [
        json!({"inFlight": 1}),
        json!({"zoneInFlight": 1}),
        json!({"perWorkload": 1}),
        json!({"rate": 0.001}),
    ];
    for pace in bounds {
        let after_all = json!({"forceDeleteAfterSeconds": 60, "acceptRisk": true});
        let spec = json!({"way": "Delete", "pace": pace, "after": after_all});
        let mut stage = governed(&[("p", spec)]);
        stage.put(Kind::Pod, of("a", "p", "node"));
        leaving(&mut stage);
        assert_eq!(after(&mut stage, 90), ["delete by force Pod n/p"], "{pace}");
    }
}

#[test]
fn a_node_that_is_gone_is_a_proof_where_that_is_accepted() {
    let spec =
        json!({"way": "Delete", "after": {"forceDeleteAfterSeconds": 0, "proofs": [{"type": "NodeGone"}]}});
    let mut stage = governed(&[("p", spec)]);
    leaving(&mut stage);
    assert_eq!(after(&mut stage, 60), NOTHING);
    stage.remove(Kind::Node, &ObjectKey::new("", "node"));
    assert_eq!(settle(&mut stage), ["delete by force Pod n/p"]);
}

fn of(owner: &str, name: &str, node: &str) -> Value {
    let mut pod = named(name, node, json!([]));
    pod["metadata"]["ownerReferences"] =
        json!([{"kind": "StatefulSet", "name": owner, "uid": owner, "controller": true}]);
    pod
}

#[test]
fn so_many_of_one_owner_are_away_at_once_and_no_more() {
    let mut stage = scene();
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"perWorkload": 1}}));
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Node, node("other", json!([])));
    for name in ["a-0", "a-1", "a-2"] {
        stage.put(Kind::Pod, of("a", name, "node"));
    }
    stage.put(Kind::Pod, of("b", "b-0", "node"));
    let first = settle(&mut stage);
    assert_eq!(
        first,
        ["patch Pod n/a-0/status", "patch Pod n/b-0/status", "delete Pod n/a-0", "delete Pod n/b-0"],
        "one of each"
    );
    assert_eq!(after(&mut stage, 5), NOTHING, "somebody is expected in its place");
    let mut successor = of("a", "a-0", "other");
    successor["status"]["conditions"][0]["status"] = json!("False");
    stage.put(Kind::Pod, successor);
    assert_eq!(after(&mut stage, 60), NOTHING, "who has come is not ready yet");
    let mut successor = stage.get(Kind::Pod, "n", "a-0").unwrap().clone();
    successor["status"]["conditions"][0]["status"] = json!("True");
    stage.put(Kind::Pod, successor);
    assert_eq!(settle(&mut stage), ["patch Pod n/a-1/status", "delete Pod n/a-1"]);
    assert_eq!(after(&mut stage, 9), NOTHING);
    assert_eq!(after(&mut stage, 1), ["patch Pod n/a-2/status", "delete Pod n/a-2"], "nobody came for it");
}

#[test]
fn so_many_of_a_policy_are_on_their_way_out_at_once_and_no_more() {
    let mut stage = scene();
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"inFlight": "50%"}}));
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for name in ["a", "b", "c", "d"] {
        let mut pod = named(name, "node", json!([]));
        pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
        stage.put(Kind::Pod, pod);
    }
    let deleted = |lines: Vec<String>| lines.iter().filter(|line| line.starts_with("delete")).count();
    assert_eq!(deleted(settle(&mut stage)), 2);
    assert_eq!(deleted(after(&mut stage, 60)), 0);
    stage.remove(Kind::Pod, &key("a"));
    assert_eq!(deleted(settle(&mut stage)), 0, "half of three is one");
    stage.remove(Kind::Pod, &key("b"));
    assert_eq!(deleted(settle(&mut stage)), 1);
}

/// A node that is tainted, in a zone of its own.
fn tainted_in(stage: &mut Scene, zone: &str) {
    let taint = taint(stage, KEY);
    let mut node = node(zone, json!([taint]));
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
    stage.put(Kind::Node, node);
}

#[test]
fn so_many_of_a_policy_are_on_their_way_out_of_one_zone_at_once_and_no_more() {
    let mut stage = scene();
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"zoneInFlight": "50%"}}));
    for zone in ["east", "west"] {
        tainted_in(&mut stage, zone);
        for number in 0..if zone == "east" { 4 } else { 2 } {
            let mut pod = named(&format!("{zone}-{number}"), zone, json!([]));
            pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
            stage.put(Kind::Pod, pod);
        }
    }
    let deleted = |lines: Vec<String>| -> Vec<String> {
        let mut gone: Vec<String> =
            lines.iter().filter_map(|line| line.strip_prefix("delete Pod n/").map(str::to_owned)).collect();
        gone.sort();
        gone
    };
    assert_eq!(deleted(settle(&mut stage)), ["east-0", "east-1", "west-0"], "half of each");
    assert_eq!(deleted(after(&mut stage, 60)), NOTHING);
    let told = status(&mut stage, "p");
    let holds: Vec<_> = told["holds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hold| {
            (
                hold["reason"].as_str().unwrap(),
                hold["zone"].as_str().unwrap(),
                hold["count"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(holds, [("ZoneInFlight", "east", 2), ("ZoneInFlight", "west", 1)]);
    assert_eq!(told["holds"][1]["message"], "1 of policy p in zone west are away, and 50% may be");
    stage.remove(Kind::Pod, &key("west-0"));
    assert_eq!(deleted(settle(&mut stage)), ["west-1"], "a zone waits for its own");
    stage.remove(Kind::Pod, &key("east-0"));
    assert_eq!(deleted(settle(&mut stage)), NOTHING, "half of three is one");
    stage.remove(Kind::Pod, &key("east-1"));
    assert_eq!(deleted(settle(&mut stage)), ["east-2"]);
}

/// Whose node is gone is on its way out of the zone it was in.
#[test]
fn a_node_that_goes_makes_no_room_in_its_zone() {
    let mut stage = scene();
    put_policy(
        &mut stage,
        "p",
        json!({"way": "Delete", "pace": {"zoneInFlight": 1},
        "after": {"forceDeleteAfterSeconds": 600, "proofs": [{"type": "NodeGone"}]}}),
    );
    tainted_in(&mut stage, "z");
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for (name, node) in [("a", "z"), ("b", "node")] {
        let mut pod = named(name, node, json!([]));
        pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
        stage.put(Kind::Pod, pod);
    }
    assert_eq!(settle(&mut stage), ["patch Pod n/a/status", "delete Pod n/a"]);
    stage.remove(Kind::Node, &ObjectKey::new("", "z"));
    assert_eq!(after(&mut stage, 60), NOTHING, "it has not ended");
    assert_eq!(after(&mut stage, 600), ["delete by force Pod n/a", "patch Pod n/b/status", "delete Pod n/b"]);
}

/// A policy may come to bound zones while some of its pods are on their way out already.
#[test]
fn a_bound_on_zones_that_is_added_counts_who_is_away_already() {
    let mut stage = scene();
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"inFlight": 1}}));
    tainted_in(&mut stage, "z");
    for name in ["a", "b"] {
        let mut pod = named(name, "z", json!([]));
        pod["spec"]["terminationGracePeriodSeconds"] = json!(30);
        stage.put(Kind::Pod, pod);
    }
    assert_eq!(settle(&mut stage), ["patch Pod n/a/status", "delete Pod n/a"]);
    put_policy(&mut stage, "p", json!({"way": "Delete", "pace": {"zoneInFlight": 1}}));
    assert_eq!(after(&mut stage, 60), NOTHING);
    put_policy(&mut stage, "p", json!({"way": "Delete"}));
    assert_eq!(settle(&mut stage), ["patch Pod n/b/status", "delete Pod n/b"]);
}

#[test]
fn the_labels_of_a_namespace_are_waited_for_and_followed() {
    let spec = json!({"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}, "way": "Hold"});
    let mut stage = governed(&[("p", spec)]);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(status(&mut stage, "p")["holds"][0]["reason"], "NamespaceUnknown");
    stage.put(Kind::Namespace, json!({"metadata": {"name": "n", "labels": {"team": "a"}}}));
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(status(&mut stage, "p")["holds"][0]["reason"], "Hold");
    stage.put(Kind::Namespace, json!({"metadata": {"name": "n", "labels": {"team": "b"}}}));
    assert_eq!(settle(&mut stage), BOTH);
}

#[test]
fn nobody_leaves_while_policies_cannot_be_seen() {
    let mut stage = armed(10);
    stage.world.hear(crate::world::Told::Lost(Kind::Policy));
    assert_eq!(stage.after_seconds(60), NOTHING);
    stage.world.hear(crate::world::Told::Followed(Kind::Policy));
    assert_eq!(stage.settle(), BOTH);
    let mut stage = armed(10);
    stage.world.hear(crate::world::Told::Unreadable(Kind::Policy, ObjectKey::new("", "p")));
    assert_eq!(stage.after_seconds(60), NOTHING, "whom it would keep is not known");
}

#[test]
fn what_was_evicted_in_all_is_kept_across_a_restart() {
    let mut before = governed(&[("p", json!({"way": "Delete"}))]);
    settle(&mut before);
    assert_eq!(status(&mut before, "p")["evicted"], 1);
    let mut after_restart = restarted(&before, 5);
    assert_eq!(settle(&mut after_restart), NOTHING);
    after_restart.put(Kind::Pod, pod(json!([])));
    assert_eq!(settle(&mut after_restart), BOTH);
    assert_eq!(status(&mut after_restart, "p")["evicted"], 2);
}

#[test]
fn a_status_that_says_it_already_is_not_written_again() {
    let mut stage = governed(&[("p", json!({"way": "Hold"}))]);
    settle(&mut stage);
    stage.after_seconds(5);
    for _ in 0..5 {
        assert_eq!(stage.after_seconds(5), NOTHING);
    }
}
