//! With windows.

use super::policies::{after, governed, put_policy, settle, status};
use super::*;

/// Deletes in a window that opens at 23:00 for that many seconds; the stage begins at 22:13:20.
fn nightly(seconds: i64) -> Value {
    json!({"way": "Delete", "when": {"windows": [{"schedule": "0 23 * * *", "durationSeconds": seconds}]}})
}

const UNTIL_NIGHT: i64 = 46 * 60 + 40;

#[test]
fn a_due_pod_is_held_until_a_window_opens() {
    let mut stage = governed(&[("p", nightly(600))]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = "no window of its policy is open before 2023-11-14T23:00:00Z";
    assert_eq!(notes(&stage), [format!("Holding Pod n/p: {told}")]);
    let status = status(&mut stage, "p");
    assert_eq!((&status["held"], &status["waiting"]), (&json!(1), &json!(0)));
    assert_eq!(
        (&status["holds"][0]["reason"], &status["holds"][0]["message"]),
        (&json!("Window"), &json!(told))
    );
    assert!(stage.controller.metrics.text().contains("berth_policy_held{policy=\"p\",reason=\"Window\"} 1"));
    assert_eq!(after(&mut stage, UNTIL_NIGHT - 2), NOTHING);
    assert_eq!(after(&mut stage, 1), BOTH);
}

#[test]
fn who_will_be_due_while_windows_are_shut_is_said_to_go_when_one_opens() {
    let mut spec = nightly(600);
    spec["when"]["tolerationSeconds"] = json!(30);
    let mut stage = governed(&[("p", spec)]);
    assert_eq!(settle(&mut stage), NOTHING);
    let told = status(&mut stage, "p");
    assert_eq!((&told["waiting"], &told["next"][0]["at"]), (&json!(1), &json!("2023-11-14T23:00:00Z")));
    assert_eq!(after(&mut stage, 29), NOTHING);
    assert_eq!(status(&mut stage, "p")["holds"][0]["reason"], "Window");
    assert_eq!(after(&mut stage, UNTIL_NIGHT - 31), BOTH);
}

#[test]
fn who_has_not_gone_when_the_window_closes_waits_for_the_next() {
    let mut spec = nightly(60);
    spec["pace"] = json!({"rate": 0.01});
    let mut stage = governed(&[("p", spec)]);
    stage.put(Kind::Pod, named("q", "node", json!([])));
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, UNTIL_NIGHT), BOTH);
    assert_eq!(after(&mut stage, 60), NOTHING);
    let told = status(&mut stage, "p");
    assert_eq!(told["holds"][0]["message"], "no window of its policy is open before 2023-11-15T23:00:00Z");
    assert_eq!(after(&mut stage, 3_600), NOTHING, "its turn by the rate has come, and its window has not");
    assert_eq!(after(&mut stage, 86_400 - 3_661), ["patch Pod n/q/status", "delete Pod n/q"]);
}

#[test]
fn windows_that_change_are_followed_at_once() {
    let mut stage = governed(&[("p", nightly(600))]);
    assert_eq!(settle(&mut stage), NOTHING);
    let open = json!([{"schedule": "0 22 * * *", "durationSeconds": 3600}]);
    put_policy(&mut stage, "p", json!({"way": "Delete", "when": {"windows": open}}));
    assert_eq!(settle(&mut stage), BOTH);
}

#[test]
fn a_deadline_that_passes_outside_the_windows_takes_the_pod_away_in_the_next() {
    let mut spec = nightly(600);
    spec["way"] = json!("Evict");
    spec["evict"] = json!({"deadlineSeconds": 3600, "fallback": "Delete"});
    let mut stage = governed(&[("p", spec)]);
    stage.budget = Some("no".to_owned());
    assert_eq!(settle(&mut stage), NOTHING);
    assert_eq!(after(&mut stage, UNTIL_NIGHT), ["blocked: evict Pod n/p"]);
    assert_eq!(after(&mut stage, 600), NOTHING, "nobody is asked outside the windows");
    assert_eq!(after(&mut stage, 3_000), NOTHING);
    assert_eq!(after(&mut stage, 86_400 - 3_600), BOTH);
}
