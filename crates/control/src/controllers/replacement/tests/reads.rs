//! Who is read and asked, how often, and what is told of it.

use super::*;
use crate::review::Answer;
use crate::world::Told;

/// How often a member was read.
fn read(scene: &Scene, name: &str) -> usize {
    let is_it = |ask: &&Ask| matches!(ask, Ask::Member { key, .. } if *key.name == *name);
    scene.asks.iter().filter(is_it).count()
}

#[test]
fn who_waits_only_for_others_is_not_read_again_and_begins_when_they_are_done() {
    let mut more = plain(&json!({"gates": [{"name": "wait", "cel": "has(pod.metadata.annotations)"}]}));
    more["budget"] = json!({"breaker": {"maxAffectedFaultDomains": 3}});
    let mut scene = scene(&more);
    scene.put(Kind::Node, node("n0", &taint()));
    scene.put(Kind::Node, node("n1", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 Gating"]);
    let (first, second) = (read(&scene, "db-0"), read(&scene, "db-1"));
    for _ in 0..10 {
        scene.after_seconds(10);
    }
    assert!(read(&scene, "db-0") > first + 5, "the gate is asked again and again");
    assert_eq!(read(&scene, "db-1"), second, "whatever is read of it, it has no place");
    let mut allowed = pod(0, "n0", true);
    allowed["metadata"]["annotations"] = json!({"ok": "yes"});
    scene.put(Kind::Pod, allowed);
    scene.settle();
    come_back(&mut scene, 0, "n3", true);
    scene.after_seconds(31);
    let mut phases = phase(&scene);
    phases.sort();
    assert_eq!(phases, ["db-0 Done", "db-1 Gating"]);
}

/// However many are held and have to be read again, what is to be done is done first.
#[test]
fn many_that_are_held_do_not_keep_the_others_from_their_turn() {
    let mut more = plain(&json!({"gates": [
        {"name": "start", "stage": "BeforeStart", "cel": "pod.metadata.name == 'db-0'"},
    ]}));
    more["budget"] = json!({"maxConcurrent": 100, "breaker": {"maxAffectedFaultDomains": 100}});
    let mut scene = scene(&more);
    let mut owner = set(&json!({"replicas": 80, "updatedReplicas": 80}));
    owner["spec"]["replicas"] = json!(80);
    scene.foreign.insert(key("db"), owner);
    for index in 3..80 {
        scene.put(Kind::Pod, pod(index, "n1", true));
    }
    scene.put(Kind::Node, node("n1", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), [""; 0]);
    // All of them are old news now, and one more is due.
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.now = scene.now.plus_seconds(61);
    let before = scene.asks.len();
    let mut decisions = 0;
    while phase(&scene).is_empty() && decisions < 50 {
        scene.settle_for(1);
        decisions += 1;
    }
    let again = scene.asks[before..].iter().filter(|ask| matches!(ask, Ask::Member { .. })).count();
    assert_eq!(phase(&scene).len(), 1, "after {decisions} decisions");
    assert!(again < 40, "{again} were read before");
}

#[test]
fn two_policies_that_ask_about_one_pod_each_hear_their_own_answer() {
    let gates = json!({"gates": [
        {"name": "ask", "stage": "BeforeStart", "http": {"url": "https://example.com/"}},
    ]});
    let mut scene = scene(&plain(&gates));
    let mut other = policy(&plain(&gates));
    other["metadata"]["name"] = json!("q");
    scene.put(Kind::ReplacementPolicy, other);
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.answers.extend([Answer::Allowed, Answer::Denied { message: "no".to_owned() }]);
    scene.after_seconds(61);
    let asked: Vec<String> = scene.asked.iter().take(2).map(|question| question.policy.clone()).collect();
    let said = |name: &str| {
        let case = &scene.controller.cases[&PolicyKey::new(NS, name)];
        case.sights["db-0"].said.values().map(|(opinion, _)| opinion.is_ok()).collect::<Vec<_>>()
    };
    let of = |policy: &str| asked.iter().position(|asked| asked == policy).unwrap() == 0;
    assert_eq!((said("p"), said("q")), (vec![of("n/p")], vec![of("n/q")]), "{asked:?}");
}

#[test]
fn on_trial_services_are_asked_too_and_told_that_it_is_one() {
    let mut scene = scene(&plain(&json!({"mode": "DryRun", "gates": [
        {"name": "ask", "stage": "BeforeStart", "http": {"url": "https://example.com/"}},
        {"name": "later", "http": {"url": "https://example.com/"}},
    ]})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.answers.push_back(Answer::Allowed);
    scene.after_seconds(61);
    assert_eq!(scene.asked.len(), 1);
    assert!(scene.asked[0].is_dry_run && scene.asked[0].gate == "ask");
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    assert!(status["pods"][0]["message"].as_str().unwrap().contains("DryRun"), "{status}");
}

#[test]
fn rights_that_are_taken_away_are_noticed() {
    let mut scene = scene(&plain(&json!({})));
    scene.settle();
    assert_eq!(condition(&scene, "NodeAccess")["status"], "True");
    scene.is_denied_nodes = true;
    scene.after_seconds(601);
    assert_eq!(condition(&scene, "NodeAccess")["status"], "False");
    assert!(!scene.controller.needs_more());
}

#[test]
fn when_no_policy_speaks_of_nodes_any_more_none_is_watched() {
    let mut scene = scene(&plain(&json!({})));
    scene.settle();
    assert!(scene.controller.needs_more());
    let mut disabled = policy(&plain(&json!({"mode": "Disabled"})));
    disabled["metadata"]["generation"] = json!(2);
    scene.put(Kind::ReplacementPolicy, disabled);
    scene.settle();
    assert!(!scene.controller.needs_more());
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    assert!(status["pods"].is_null(), "that it is disabled is said once: {status}");
}

#[test]
fn what_is_called_off_after_all_says_so_and_nothing_else_is_lost() {
    let mut more = with_volumes();
    more["gates"] = json!([{"name": "ok", "cel": "true"}]);
    let mut scene = scene(&more);
    scene.budget = Some("the budget is used up".to_owned());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    assert_eq!(phase(&scene), ["db-0 RemovingVolumes"]);
    scene.put(Kind::Node, node("n0", &json!([])));
    scene.settle();
    scene.after_seconds(5);
    assert_eq!(phase(&scene), ["db-0 Aborted"]);
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    let status = &work["status"];
    assert!(status["pointOfNoReturnAt"].is_null() && status["claims"].is_null(), "{status}");
    assert_eq!(status["gates"][0]["verdict"], "Pass", "{status}");
    assert_eq!(status["conditions"][0]["reason"], "Aborted", "{status}");
    assert!(scene.notes.iter().any(|note| note.reason == "ReplacementAborted"));
    let text = scene.controller.metrics.text();
    assert!(text.contains("berth_replacements_ended_total{phase=\"Aborted\"} 1"), "{text}");
    assert!(text.contains("berth_replacement_acts_total{act=\"turn-back\",result=\"done\"} 1"), "{text}");
}

#[test]
fn who_is_held_up_is_counted_by_why_until_it_is_not() {
    let mut scene = scene(&plain(&json!({"pauseRequests": ["upgrade"]})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.after_seconds(61);
    let told = |scene: &Scene, line: &str| scene.controller.metrics.text().lines().any(|told| told == line);
    assert!(told(&scene, "berth_replacements_held{reason=\"Paused\"} 1"));
    scene.remove(Kind::ReplacementPolicy, &key("p"));
    scene.settle();
    assert!(told(&scene, "berth_replacements_held{reason=\"Paused\"} 0"));
}

/// What the server refuses was not done, and is not counted as if it had been.
#[test]
fn only_what_was_written_is_counted() {
    let mut scene = scene(&plain(&json!({})));
    scene.refused = Some("evict".to_owned());
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene.now = scene.now.plus_seconds(61);
    scene.settle_for(30);
    let text = scene.controller.metrics.text();
    assert!(!text.contains("act=\"evict\",result=\"done\""), "{text}");
    assert!(text.contains("act=\"evict\",result=\"failed\""), "{text}");
}

fn counts(scene: &Scene) -> Value {
    scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"]["counts"].clone()
}

/// The engine is told once of what stays as it was; that it can no longer be relied on is a change, although no watch tells of one.
#[test]
fn what_can_no_longer_be_read_is_not_taken_for_what_it_was() {
    let mut scene = scene(&plain(&json!({})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(counts(&scene)["detected"], 1);
    scene.world.hear(Told::Unreadable(Kind::Node, ObjectKey::new("", "n0")));
    scene.world.hear(Told::Unreadable(Kind::Pod, key("db-1")));
    scene.put(Kind::Node, node("n1", &taint()));
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    let message = status["pods"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the node could not be read"), "{status}");
    assert_eq!(
        (&status["counts"]["detected"], &status["counts"]["blocked"]),
        (&json!(0), &json!(1)),
        "{status}"
    );
    scene.put(Kind::Pod, pod(1, "n1", true));
    scene.put(Kind::Node, node("n0", &taint()));
    let written = done(scene.after_seconds(30));
    assert!(written.contains(&"evict Pod n/db-0".to_owned()), "{written:?}");
    assert_eq!(counts(&scene)["detected"], 1, "the other is seen as well");
}

/// Whoever is well again is told of by the watches alone, and costs no more than those who always were.
#[test]
fn what_was_read_of_a_member_that_is_well_again_is_forgotten() {
    let mut scene = scene(&plain(&json!({})));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    let known = |scene: &Scene| {
        let case = &scene.controller.cases[&PolicyKey::new(NS, "p")];
        (case.sights.len(), case.plain.len())
    };
    assert_eq!(known(&scene), (1, 2));
    scene.put(Kind::Node, node("n0", &json!([])));
    scene.settle();
    scene.put(Kind::Node, node("n1", &taint()));
    scene.settle();
    assert_eq!(known(&scene), (1, 2));
    let case = &scene.controller.cases[&PolicyKey::new(NS, "p")];
    assert!(case.sights.contains_key("db-1") && case.plain.contains_key("db-0"));
}
