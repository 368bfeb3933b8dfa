//! With somebody outside who is asked.

use berth_api::EvictionPolicy;
use berth_engine::evict::policy::{Authority, compile};

use super::policies::{EVICT, after, change_pod, governed, put_policy, settle, status};
use super::*;
use crate::controllers::taint_eviction::gates::{REVIEWS_MAX, REVIEWS_MAX_EACH};
use crate::controllers::taint_eviction::step::Step;
use crate::review::{Answer, Question, Silence};

fn reviewed(way: &str) -> Value {
    json!({"way": way, "gates": [{"name": "backup", "review": {"url": "https://backups.example.com/"}}]})
}

fn denied() -> Answer {
    Answer::Denied { message: "the backup runs".to_owned() }
}

fn later(seconds: u64) -> Answer {
    Answer::Later { after: Duration::from_secs(seconds), message: String::new() }
}

/// A stage on which these answers will come.
fn asking(spec: Value, answers: impl IntoIterator<Item = Answer>) -> Scene {
    let mut stage = governed(&[("p", spec)]);
    stage.answers.extend(answers);
    stage
}

#[test]
fn who_is_allowed_goes_and_who_was_asked_has_learnt_about_whom() {
    let mut stage = asking(reviewed("Delete"), [Answer::Allowed]);
    change_pod(&mut stage, |pod| pod["metadata"]["labels"] = json!({"app": "db"}));
    let now = stage.now.to_string();
    let uid = stage.get(Kind::Pod, "n", "p").unwrap()["metadata"]["uid"].clone();
    assert_eq!(settle(&mut stage), BOTH);
    let [asked] = &stage.asked[..] else { panic!("{:?}", stage.asked) };
    assert_eq!(
        serde_json::to_value(asked).unwrap(),
        json!({
            "policy": "p", "gate": "backup", "dueAt": now,
            "pod": {"namespace": "n", "name": "p", "uid": uid, "labels": {"app": "db"}, "node": "node"},
            "node": {"name": "node", "labels": {"topology.kubernetes.io/zone": "z"}},
            "taint": {"key": KEY, "effect": "NoExecute", "timeAdded": now},
        })
    );
    let mut stage = asking(reviewed("Evict"), [Answer::Allowed]);
    assert_eq!(settle(&mut stage), EVICT);
}

#[test]
fn who_is_denied_stays_and_the_same_question_is_asked_again() {
    let mut stage = asking(reviewed("Delete"), [denied(), denied()]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = "gate backup is shut: its review says no: the backup runs";
    assert_eq!(notes(&stage), [format!("Holding Pod n/p: {told}")]);
    let status = status(&mut stage, "p");
    assert_eq!(
        (&status["holds"][0]["gate"], &status["holds"][0]["message"]),
        (&json!("backup"), &json!(told))
    );
    stage.answers = [denied(), Answer::Allowed].into();
    assert_eq!(after(&mut stage, 60), NOTHING);
    assert_eq!(after(&mut stage, 60), BOTH);
    let ids: HashSet<String> = stage.asked.iter().map(Question::uid).collect();
    assert_eq!((stage.asked.len(), ids.len()), (4, 1));
}

#[test]
fn who_is_told_to_come_later_comes_then_whatever_happens_to_the_pod() {
    let mut stage = asking(reviewed("Delete"), [later(300), Answer::Allowed]);
    let until = stage.now.plus_seconds(300);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(
        notes(&stage),
        [format!("Holding Pod n/p: gate backup is shut: its review says not before {until}")]
    );
    change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"a": "b"}));
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, 299), NOTHING);
    assert_eq!(stage.asked.len(), 1);
    assert_eq!(after(&mut stage, 1), BOTH);
}

#[test]
fn without_an_answer_nobody_goes_and_it_is_asked_less_and_less_often() {
    let mut stage = asking(reviewed("Delete"), [Answer::Unanswered { why: Silence::Status(500) }]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = "gate backup is shut: its review has no answer: the service answers with status 500";
    assert_eq!(notes(&stage), [format!("Holding Pod n/p: {told}")]);
    for _ in 0..600 {
        assert_eq!(after(&mut stage, 1), NOTHING);
    }
    assert!((12..30).contains(&stage.asked.len()), "{}", stage.asked.len());
    stage.answers.push_back(Answer::Allowed);
    assert_eq!(after(&mut stage, 60), BOTH);
}

/// Upstream: integration/evictions/evictions_test.go
/// "TestEvictionWithPrecondition: eviction enforcing wrong resource version should fail",
/// "TestEvictionWithPrecondition: eviction enforcing resource version and UID".
#[test]
fn a_yes_is_for_the_pod_as_it_was_shown() {
    for (way, conflict) in
        [("Delete", "conflict: patch Pod n/p/status"), ("Evict", "conflict: evict Pod n/p")]
    {
        let mut stage = asking(reviewed(way), [Answer::Allowed]);
        stage.after_review = Some(|pod| pod["metadata"]["annotations"] = json!({"example.org/busy": "yes"}));
        assert_eq!(settle(&mut stage), [conflict], "it has changed since, and is not evicted for it");
        assert_eq!(after(&mut stage, 600), NOTHING, "nobody has said yes to what it is now");
        assert!(stage.get(Kind::Pod, "n", "p").is_some());
        stage.answers.push_back(Answer::Allowed);
        assert!(!after(&mut stage, 60).is_empty(), "and it goes when somebody has");
    }
}

#[test]
fn nobody_is_asked_while_a_gate_before_is_shut() {
    let mut spec = reviewed("Delete");
    let gates = spec["gates"].as_array_mut().unwrap();
    gates.insert(0, json!({"name": "safe", "annotation": {"key": "example.org/safe"}}));
    gates.push(json!({"name": "last", "podCondition": {"type": "Saved", "status": "True"}}));
    let mut stage = asking(spec, []);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, 600), NOTHING);
    assert!(stage.asked.is_empty());
    stage.answers.extend([Answer::Allowed, Answer::Allowed, Answer::Allowed]);
    change_pod(&mut stage, |pod| pod["metadata"]["annotations"] = json!({"example.org/safe": "yes"}));
    assert_eq!(settle(&mut stage), NOTHING, "a yes opens no other gate");
    assert_eq!(stage.asked.len(), 1);
    assert_eq!(status(&mut stage, "p")["holds"][0]["gate"], "last");
    let before = stage.asked.len();
    change_pod(&mut stage, |pod| {
        pod["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Saved", "status": "True"}));
    });
    assert_eq!(settle(&mut stage), BOTH);
    assert_eq!(stage.asked.len(), before + 1, "what was said of what it was before does not count");
}

#[test]
fn several_services_have_to_say_yes() {
    let mut spec = reviewed("Delete");
    let other = json!({"name": "quorum", "review": {"url": "https://quorum.example.com/"}});
    spec["gates"].as_array_mut().unwrap().push(other);
    let mut stage = asking(spec, [Answer::Allowed, later(10), Answer::Allowed, Answer::Allowed]);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, 10), BOTH);
    let gates: Vec<&str> = stage.asked.iter().map(|question| &*question.gate).collect();
    assert_eq!(gates, ["backup", "quorum", "backup", "quorum"]);
}

#[test]
fn a_dry_run_asks_and_says_that_it_is_one() {
    let mut spec = reviewed("Delete");
    spec["dryRun"] = json!(true);
    let mut stage = asking(spec, [Answer::Allowed]);
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!((status(&mut stage, "p")["spared"].as_i64(), stage.asked[0].is_dry_run), (Some(1), true));
}

#[test]
fn a_policy_that_changes_asks_anew() {
    let mut stage = asking(reviewed("Delete"), [later(3_600), Answer::Allowed]);
    assert_eq!(settle(&mut stage), NOTHING);
    let mut other = reviewed("Delete");
    other["gates"][0]["review"]["url"] = json!("https://others.example.com/");
    put_policy(&mut stage, "p", other);
    assert_eq!(settle(&mut stage), BOTH);
}

#[test]
fn what_was_said_to_a_policy_counts_for_no_other() {
    let rule = |name: &str, generation: i64| {
        let mut policy = EvictionPolicy::new(name);
        policy.metadata.generation = Some(generation);
        compile(&policy)
    };
    let mut shown = Shown::new(Box::default(), None, None);
    shown.listen_to(&rule("p", 1));
    shown.said.push(("backup".into(), Answer::Allowed));
    shown.listen_to(&rule("p", 1));
    assert_eq!(shown.said.len(), 1);
    for other in [rule("p", 2), rule("q", 1)] {
        shown.said.push(("backup".into(), Answer::Allowed));
        shown.listen_to(&other);
        assert!(shown.said.is_empty());
    }
}

#[test]
fn so_many_are_asked_at_once_and_the_others_come_again() {
    let mut stage = asking(reviewed("Delete"), [Answer::Allowed]);
    for number in 0..REVIEWS_MAX {
        let key = key(&format!("other-{number}"));
        let id = PodId { uid: Arc::clone(&key.name), key: key.clone() };
        let begun = Begun { id, authority: Authority::Kubernetes, step: Step::Ask };
        stage.controller.begun.insert(key, begun);
    }
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(
        notes(&stage),
        ["Holding Pod n/p: gate backup is shut: its review has no answer: too many questions are under way"]
    );
    assert_eq!(after(&mut stage, 60), NOTHING);
    assert!(stage.asked.is_empty());
    stage.controller.begun.clear();
    assert_eq!(after(&mut stage, 1), BOTH);
}

/// A service that hangs for one policy leaves places to those who ask another.
#[test]
fn one_policy_takes_only_some_of_the_places() {
    for (policy, is_asked) in [("p", false), ("another", true)] {
        let mut stage = asking(reviewed("Delete"), [Answer::Allowed]);
        let authority = Authority::Policy(Arc::new(compile(&EvictionPolicy::new(policy))));
        for number in 0..REVIEWS_MAX_EACH {
            let key = key(&format!("other-{number}"));
            let id = PodId { uid: Arc::clone(&key.name), key: key.clone() };
            let begun = Begun { id, authority: authority.clone(), step: Step::Ask };
            stage.controller.begun.insert(key, begun);
        }
        settle(&mut stage);
        assert_eq!(!stage.asked.is_empty(), is_asked, "{policy}");
    }
}
