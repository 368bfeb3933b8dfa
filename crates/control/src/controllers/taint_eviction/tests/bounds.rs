//! How many leave at once: rates, breakers, and who waits for whom.

use super::policies::{after, put_policy, settle, status};
use super::*;

/// Who stands by hears everything and looks at nothing.
#[test]
fn who_stands_by_does_not_remember_what_is_no_more() {
    let mut stage = scene();
    for number in 0..10 * MARKS_SLACK {
        let name = format!("n{number}");
        stage.put(Kind::Node, node(&name, json!([timeless(KEY)])));
        stage.put(Kind::Pod, named(&name, &name, json!([])));
        stage.put(Kind::Namespace, json!({"metadata": {"name": name, "labels": {"a": "b"}}}));
        stage.remove(Kind::Node, &ObjectKey::new("", &name));
        stage.remove(Kind::Pod, &key(&name));
        stage.remove(Kind::Namespace, &ObjectKey::new("", &name));
    }
    let controller = &stage.controller;
    let marks = [controller.changed.len(), controller.relabelled.len(), stage.due.waiting()];
    assert!(marks.iter().all(|marks| *marks <= MARKS_SLACK + 4), "{marks:?}");
    // And what is there is looked at when it leads.
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    assert_eq!(stage.settle(), BOTH);
}

#[test]
fn what_waits_is_called_back_when_its_cause_goes() {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(1), ..EvictionLimits::default() };
    let mut stage = with(limits);
    for number in 0..200 {
        stage.put(Kind::Pod, named(&format!("p{number:03}"), "node", json!([])));
    }
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    assert_eq!(stage.settle().len(), 2);
    put_node(&mut stage, json!([]));
    assert_eq!(stage.settle(), NOTHING);
    assert_eq!(stage.after_seconds(3600), NOTHING);
    assert_eq!(stage.names(Kind::Pod).len(), 199);
    assert_eq!(stage.controller.marshal.waiting(), 0);
    assert_eq!(notes(&stage).len(), 200);
}

#[test]
fn a_rate_is_kept_and_the_longest_due_goes_first() {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(2), ..EvictionLimits::default() };
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for (name, seconds) in [("a", 40), ("b", 30), ("c", 20), ("d", 10)] {
        stage.put(Kind::Pod, named(name, "node", tolerates(Some(seconds))));
    }
    let deleted = |lines: Vec<String>| -> Vec<String> {
        lines.iter().filter_map(|line| line.strip_prefix("delete Pod n/").map(str::to_owned)).collect()
    };
    assert_eq!(deleted(stage.after_seconds(100)), ["d", "c"]);
    assert_eq!(stage.controller.marshal.wake(), Some(stage.now.plus_seconds(1)));
    assert_eq!(deleted(stage.after_seconds(1)), ["b"]);
    assert_eq!(deleted(stage.after_seconds(1)), ["a"]);
}

#[test]
fn a_zone_with_too_many_tainted_nodes_is_held_until_they_are_few_again() {
    let limits = EvictionLimits {
        breaker: Some(EvictionBreaker { percent: 50, least: 2 }),
        ..EvictionLimits::default()
    };
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    for name in ["a", "b", "c", "d"] {
        stage.put(Kind::Node, node(name, json!([])));
        stage.put(Kind::Pod, named(name, name, json!([])));
    }
    stage.put(Kind::Node, node("a", json!([taint])));
    stage.put(Kind::Node, node("b", json!([taint])));
    assert_eq!(stage.settle(), NOTHING);
    let pod = stage.world.pods.get(&key("a")).unwrap();
    let hold = stage.controller.marshal.hold(&PodId::of(pod), stage.now).unwrap();
    assert_eq!(hold.to_string(), "2 of 4 in zone z are affected, which is too many at once");
    stage.after_seconds(1);
    assert!(stage.controller.metrics.text().contains("berth_evictions_held{reason=\"breaker\"} 2"));
    stage.put(Kind::Node, node("b", json!([])));
    assert_eq!(stage.after_seconds(9), NOTHING, "not at once");
    assert_eq!(stage.after_seconds(1), NOTHING);
    assert_eq!(stage.after_seconds(10), ["patch Pod n/a/status", "delete Pod n/a"]);
}

#[test]
fn a_breaker_that_opens_and_closes_is_told_once_each_about_a_node_of_its_zone() {
    let mut stage = broken_at_two(EvictionLimits::default());
    let told = |stage: &Scene| -> Vec<(String, String, bool)> {
        let ours = stage.notes.iter().filter(|note| note.reason.starts_with("EvictionBreaker"));
        ours.map(|note| (note.regarding.key.name.to_string(), note.note.clone(), note.is_warning)).collect()
    };
    let gauge = |stage: &Scene, value: u8| {
        let line = format!("berth_eviction_breaker_open{{zone=\"z\"}} {value}\n");
        stage.controller.metrics.text().contains(&line)
    };
    stage.settle();
    assert!(gauge(&stage, 0) && told(&stage).is_empty(), "one of four is nothing");
    let taint = taint(&stage, KEY);
    for name in ["d", "c"] {
        stage.put(Kind::Node, node(name, json!([taint])));
        stage.settle();
    }
    let opened = "Evictions are held: 2 of 4 in zone z are affected, which is too many at once".to_owned();
    assert_eq!(told(&stage), [("d".to_owned(), opened, true)]);
    assert!(gauge(&stage, 1));
    for name in ["c", "d"] {
        stage.put(Kind::Node, node(name, json!([])));
    }
    stage.settle();
    stage.after_seconds(9);
    assert!(gauge(&stage, 1) && told(&stage).len() == 1, "not before it was calm");
    stage.after_seconds(1);
    assert_eq!(told(&stage)[1], ("b".to_owned(), "Evictions in zone z go on".to_owned(), false));
    assert!(gauge(&stage, 0));
    for name in ["p", "b", "c", "d"] {
        stage.remove(Kind::Node, &ObjectKey::new("", name));
    }
    stage.settle();
    assert!(
        !stage.controller.metrics.text().contains("berth_eviction_breaker_open{"),
        "nothing is kept of it"
    );
}

/// A zone of four nodes with a pod on each, of which the first is tainted; its breaker opens at two.
fn broken_at_two(limits: EvictionLimits) -> Scene {
    let breaker = Some(EvictionBreaker { percent: 50, least: 2 });
    let mut stage = with(EvictionLimits { breaker, ..limits });
    let taint = taint(&stage, KEY);
    for name in ["p", "b", "c", "d"] {
        stage.put(Kind::Node, node(name, if name == "p" { json!([taint]) } else { json!([]) }));
        stage.put(Kind::Pod, named(name, name, json!([])));
    }
    stage
}

#[test]
fn a_policy_says_which_zone_a_breaker_holds_and_how_much_of_it_is_affected() {
    let mut stage = broken_at_two(EvictionLimits::default());
    put_policy(&mut stage, "p", json!({"way": "Delete"}));
    let taint = taint(&stage, KEY);
    for name in ["b", "c"] {
        stage.put(Kind::Node, node(name, json!([taint])));
    }
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    let hold = &told["holds"][0];
    assert_eq!(
        (&hold["reason"], &hold["zone"], &hold["count"], &hold["message"]),
        (
            &json!("Breaker"),
            &json!("z"),
            &json!(3),
            &json!("3 of 4 in zone z are affected, which is too many at once")
        )
    );
    stage.put(Kind::Node, node("c", json!([])));
    settle(&mut stage);
    after(&mut stage, 1);
    let told = status(&mut stage, "p");
    let said = &told["holds"][0]["message"];
    assert_eq!(
        (said, &told["held"]),
        (&json!("2 of 4 in zone z are affected, which is too many at once"), &json!(2))
    );
}

#[test]
fn a_breaker_that_opens_while_somebody_is_asked_about_a_pod_keeps_it() {
    let review = json!([{"name": "backup", "review": {"url": "https://backups.example.com/"}}]);
    let limits = EvictionLimits { rate: Some(0.001), burst: Some(1), ..EvictionLimits::default() };
    for way in ["Delete", "Evict"] {
        let mut stage = broken_at_two(limits);
        put_policy(&mut stage, "p", json!({"way": way, "gates": review}));
        stage.answers.extend([crate::review::Answer::Allowed, crate::review::Answer::Allowed]);
        while stage.asked.is_empty() {
            stage.settle_for(1);
        }
        let taint = taint(&stage, KEY);
        stage.put(Kind::Node, node("b", json!([taint])));
        assert_eq!(settle(&mut stage), NOTHING, "{way}: it was let go before, and has not gone");
        assert_eq!(after(&mut stage, 3600), NOTHING);
        stage.put(Kind::Node, node("b", json!([])));
        after(&mut stage, 1);
        let gone = after(&mut stage, 10);
        assert!(
            gone.iter().any(|line| line.ends_with("Pod n/p")),
            "{way}: its turn was given back: {gone:?}"
        );
    }
}

#[test]
fn a_breaker_that_opens_after_a_pod_was_told_why_it_goes_keeps_it() {
    let mut stage = broken_at_two(EvictionLimits::default());
    while stage.settle_for(1) != ["patch Pod n/p/status"] {}
    let taint = taint(&stage, KEY);
    stage.put(Kind::Node, node("b", json!([taint])));
    assert_eq!(stage.after_seconds(60), NOTHING);
}

#[test]
fn what_is_refused_is_tried_again_for_ever_and_ever_less_often() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    stage.put(Kind::Pod, pod(json!([])));
    stage.refused = Some("delete".to_owned());
    stage.settle();
    let mut waits = Vec::new();
    for _ in 0..20 {
        let next = stage.due.next().unwrap();
        waits.push(stage.now.until(next));
        stage.now = next;
        assert_eq!(stage.settle(), ["refused: delete Pod n/p"]);
    }
    assert!(waits.is_sorted() && waits[19] == Duration::from_secs(30), "{waits:?}");
    stage.refused = None;
    assert_eq!(stage.after_seconds(30), ["delete Pod n/p"]);
    assert_eq!(notes(&stage).len(), 1);
}

#[test]
fn what_is_refused_does_not_keep_others_waiting() {
    let mut stage = scene();
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for number in 0..PLACES + 20 {
        stage.put(Kind::Pod, named(&format!("a{number:03}"), "node", json!([])));
    }
    stage.put(Kind::Pod, named("z", "node", json!([])));
    stage.refused = Some("delete Pod n/a".to_owned());
    let written = stage.settle();
    assert!(written.contains(&"delete Pod n/z".to_owned()), "{written:?}");
}

/// Forty that never go and are due first, ten that can go, and one a second.
fn hopeless() -> Scene {
    let limits = EvictionLimits { rate: Some(1.0), burst: Some(1), ..EvictionLimits::default() };
    let mut stage = with(limits);
    let taint = taint(&stage, KEY);
    put_node(&mut stage, json!([taint]));
    for number in 0..40 {
        stage.put(Kind::Pod, named(&format!("a{number:02}"), "node", json!([])));
    }
    for number in 0..10 {
        stage.put(Kind::Pod, named(&format!("z{number}"), "node", tolerates(Some(1))));
    }
    stage
}

/// How many of those that can go have gone after so many seconds.
fn gone_after(stage: &mut Scene, seconds: i64) -> usize {
    (0..seconds)
        .flat_map(|_| stage.after_seconds(1))
        .filter(|line| line.starts_with("delete Pod n/z"))
        .count()
}

#[test]
fn who_gets_no_answer_again_and_again_starves_nobody() {
    let mut stage = hopeless();
    stage.lost = Some("delete Pod n/a".to_owned());
    assert_eq!(gone_after(&mut stage, 60), 10);
    assert_eq!(stage.controller.failed.len(), 40);
    stage.lost = None;
    assert_eq!(gone_after(&mut stage, 120), 0);
    assert!(stage.names(Kind::Pod).is_empty());
    assert!(stage.controller.failed.is_empty(), "nothing is kept of who is gone");
}

#[test]
fn who_is_refused_uses_up_no_turn() {
    let mut stage = hopeless();
    stage.refused = Some("delete Pod n/a".to_owned());
    assert_eq!(gone_after(&mut stage, 12), 10);
}

#[test]
fn how_many_wait_is_told_within_a_second() {
    let mut stage = armed(60);
    let next = stage.controller.wake().unwrap();
    assert!(stage.now.until(next) <= TELL_EVERY);
    stage.now = next;
    stage.settle();
    assert!(stage.controller.metrics.text().contains("berth_evictions_waiting 1"));
    stage.remove(Kind::Pod, &key("p"));
    stage.settle();
    stage.now = stage.controller.wake().unwrap();
    stage.settle();
    assert!(stage.controller.metrics.text().contains("berth_evictions_waiting 0"));
    assert_eq!(stage.controller.wake(), None, "nothing more to tell");
}
