//! Policies against pods and taints.

use berth_api::EvictionPolicy;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::evict::policy::compile;
use crate::taint::{Operator, Taint};

const START: Moment = Moment::from_second(1_000);

fn policy(name: &str, spec: Value) -> EvictionPolicy {
    let mut policy = EvictionPolicy::new(name);
    policy.spec = serde_json::from_value(spec).unwrap();
    policy
}

fn book(policies: &[(&str, Value)]) -> Book {
    let mut book = Book::default();
    for (name, spec) in policies {
        book.set(Arc::new(compile(&policy(name, spec.clone()))));
    }
    book
}

fn tainted(keys: &[&str]) -> Tainted {
    let mut tainted = Tainted::default();
    let taints = keys.iter().map(|key| {
        let (key, value) = key.split_once('=').unwrap_or((key, ""));
        Taint { key: key.into(), value: value.into(), effect: NodeEffect::NoExecute, added: Some(START) }
    });
    tainted.observe(taints, Moment::PAST, START);
    tainted
}

struct Someone {
    labels: Vec<(Arc<str>, Arc<str>)>,
    owner: Option<&'static str>,
    tolerations: Vec<Toleration<NodeEffect>>,
    namespace_labels: Option<BTreeMap<String, String>>,
}

impl Default for Someone {
    fn default() -> Self {
        Self {
            labels: vec![("app".into(), "db".into()), ("tier".into(), "back".into())],
            owner: Some("StatefulSet"),
            tolerations: Vec::new(),
            namespace_labels: Some(BTreeMap::from([("team".to_owned(), "a".to_owned())])),
        }
    }
}

impl Someone {
    fn facts(&self) -> PodFacts<'_> {
        PodFacts {
            namespace: "n",
            namespace_labels: self.namespace_labels.as_ref(),
            labels: &self.labels,
            owner_kind: self.owner,
            tolerations: &self.tolerations,
            arrived: Moment::PAST,
        }
    }

    fn leaves(&self, keys: &[&str], policies: &[(&str, Value)], after: i64) -> Vec<(i64, Act, String)> {
        let told = demands(&self.facts(), &tainted(keys), &book(policies), START.plus_seconds(after));
        let told = told.into_iter().map(|demand| {
            let who = match &demand.authority {
                Authority::Kubernetes => "kubernetes".to_owned(),
                Authority::Drain => "drain".to_owned(),
                Authority::Policy(rule) => rule.name.to_string(),
            };
            (demand.at.seconds_since(START), demand.act, who)
        });
        told.collect()
    }
}

fn tolerates(key: &str, seconds: Option<i64>) -> Toleration<NodeEffect> {
    Toleration { key: key.into(), operator: Operator::Exists, value: "".into(), effect: None, seconds }
}

fn own(text: &str) -> String {
    text.to_owned()
}

#[test]
fn without_policies_it_is_kubernetes_rule() {
    let pod = Someone { tolerations: vec![tolerates("a", Some(60))], ..Someone::default() };
    assert_eq!(pod.leaves(&["a"], &[], 0), [(60, Act::Delete, own("kubernetes"))]);
    assert_eq!(pod.leaves(&["a", "b"], &[], 0), [(0, Act::Delete, own("kubernetes"))]);
}

#[test]
fn a_policy_gives_its_own_time_but_not_to_who_tolerates_for_ever() {
    let spec = json!({"way": "Delete", "when": {"tolerationSeconds": 30, "delaySeconds": 5}});
    let policies = [("p", spec)];
    assert_eq!(Someone::default().leaves(&["a"], &policies, 0), [(35, Act::Delete, own("p"))]);
    let patient = Someone { tolerations: vec![tolerates("a", Some(600))], ..Someone::default() };
    assert_eq!(patient.leaves(&["a"], &policies, 0), [(35, Act::Delete, own("p"))]);
    let eternal = Someone { tolerations: vec![tolerates("a", None)], ..Someone::default() };
    assert_eq!(eternal.leaves(&["a"], &policies, 0), []);
}

#[test]
fn a_deadline_turns_an_eviction_into_what_the_policy_says() {
    for (fallback, act) in [("Delete", Act::Delete), ("Hold", Act::Hold(Keep::DeadlinePassed))] {
        let spec = json!({"way": "Evict", "evict": {"deadlineSeconds": 60, "fallback": fallback}});
        let policies = [("p", spec)];
        assert_eq!(Someone::default().leaves(&["a"], &policies, 59), [(0, Act::Evict, own("p"))]);
        assert_eq!(Someone::default().leaves(&["a"], &policies, 60), [(0, act, own("p"))]);
    }
    let demands = demands(
        &Someone::default().facts(),
        &tainted(&["a"]),
        &book(&[("p", json!({"way": "Evict", "evict": {"deadlineSeconds": 60, "fallback": "Hold"}}))]),
        START,
    );
    assert_eq!(demands[0].turns, Some(START.plus_seconds(60)), "it is known when");
}

/// Open every day from 02:00 to 03:00. It is 00:16:40 on the first day of all.
fn nightly() -> Value {
    json!([{"schedule": "0 2 * * *", "durationSeconds": 3600}])
}

const OPENS: i64 = 7_200 - 1_000;
const CLOSES: i64 = OPENS + 3_600;
const DAY: i64 = 86_400;

fn shut_until(after: i64) -> Act {
    Act::Hold(Keep::Window { opens: START.plus_seconds(after) })
}

/// What becomes of the pod by that policy alone, when time alone changes it, and until when its budget is asked.
fn told(spec: &Value, after: i64) -> (i64, Act, Option<i64>, Option<i64>) {
    let book = book(&[("p", spec.clone())]);
    let demands = demands(&Someone::default().facts(), &tainted(&["a"]), &book, START.plus_seconds(after));
    let [Demand { at, act, turns, deadline, .. }] = &demands[..] else { panic!("{demands:?}") };
    let seconds = |moment: Moment| moment.seconds_since(START);
    (seconds(*at), act.clone(), turns.map(seconds), deadline.map(seconds))
}

#[test]
fn a_pod_goes_only_while_a_window_is_open() {
    let spec = json!({"way": "Delete", "when": {"windows": nightly()}});
    assert_eq!(told(&spec, 0), (0, shut_until(OPENS), Some(OPENS), None));
    assert_eq!(told(&spec, OPENS - 1).1, shut_until(OPENS));
    assert_eq!(told(&spec, OPENS), (0, Act::Delete, Some(CLOSES), None));
    assert_eq!(told(&spec, CLOSES - 1).1, Act::Delete);
    assert_eq!(told(&spec, CLOSES), (0, shut_until(OPENS + DAY), Some(OPENS + DAY), None));
    let keep = Keep::Window { opens: START.plus_seconds(OPENS) };
    assert_eq!(
        (keep.word(), &*keep.to_string()),
        ("Window", "no window of its policy is open before 1970-01-01T02:00:00Z")
    );
}

#[test]
fn who_is_not_due_yet_is_judged_by_the_windows_of_its_moment() {
    let spec = |delay: i64| json!({"way": "Delete", "when": {"delaySeconds": delay, "windows": nightly()}});
    assert_eq!(told(&spec(OPENS + 5), 0), (OPENS + 5, Act::Delete, Some(CLOSES), None));
    assert_eq!(told(&spec(CLOSES), 0), (CLOSES, shut_until(OPENS + DAY), Some(OPENS + DAY), None));
    assert_eq!(told(&spec(CLOSES), OPENS).1, shut_until(OPENS + DAY), "not by those of now");
}

#[test]
fn a_deadline_counts_from_when_the_budget_could_first_be_asked_and_on_while_windows_are_shut() {
    let spec = |seconds: i64, fallback: &str| {
        json!({
            "way": "Evict", "evict": {"deadlineSeconds": seconds, "fallback": fallback},
            "when": {"windows": nightly()},
        })
    };
    let short = spec(600, "Delete");
    assert_eq!(told(&short, 0), (0, shut_until(OPENS), Some(OPENS), Some(OPENS + 600)));
    assert_eq!(told(&short, OPENS + 599), (0, Act::Evict, Some(OPENS + 600), Some(OPENS + 600)));
    assert_eq!(told(&short, OPENS + 600), (0, Act::Delete, Some(CLOSES), None));
    let long = spec(7_200, "Delete");
    assert_eq!(told(&long, CLOSES - 1).1, Act::Evict);
    assert_eq!(
        told(&long, OPENS + 7_200).1,
        shut_until(OPENS + DAY),
        "what it comes to waits for a window, too"
    );
    assert_eq!(told(&long, OPENS + DAY).1, Act::Delete);
    let stays = spec(7_200, "Hold");
    assert_eq!(told(&stays, CLOSES).2, Some(OPENS + 7_200), "it is known when");
    assert_eq!(told(&stays, OPENS + 7_200), (0, Act::Hold(Keep::DeadlinePassed), None, None));
}

#[test]
fn windows_say_nothing_about_who_stays_anyway() {
    let spec = json!({"way": "Hold", "when": {"windows": nightly()}});
    assert_eq!(told(&spec, 0), (0, Act::Hold(Keep::ByPolicy), None, None));
}

#[test]
fn each_taint_goes_by_its_own_policy_and_the_first_that_is_due_comes_first() {
    let policies = [
        ("holds-a", json!({"taints": [{"key": "a"}], "way": "Hold"})),
        ("waits-b", json!({"taints": [{"key": "b"}], "way": "Evict", "when": {"delaySeconds": 60}})),
    ];
    assert_eq!(
        Someone::default().leaves(&["b", "a", "c"], &policies, 0),
        [
            (0, Act::Hold(Keep::ByPolicy), own("holds-a")),
            (0, Act::Delete, own("kubernetes")),
            (60, Act::Evict, own("waits-b")),
        ]
    );
}

#[test]
fn the_most_specific_policy_counts_and_among_equals_the_first_by_name() {
    let hold = |spec: Value| {
        let mut spec = spec;
        spec["way"] = json!("Hold");
        spec
    };
    let all = hold(json!({}));
    let by_namespace = hold(json!({"pods": {"namespaces": ["n", "m"]}}));
    let by_owner = hold(json!({"pods": {"namespaces": ["n"], "ownerKinds": ["StatefulSet"]}}));
    let by_labels = hold(json!({"pods": {"namespaces": ["n"], "selector": {"matchLabels": {"app": "db"}}}}));
    let by_more_labels = hold(
        json!({"pods": {"namespaces": ["n"], "selector": {"matchLabels": {"app": "db", "tier": "back"}}}}),
    );
    let by_taint =
        hold(json!({"pods": {"namespaces": ["n"], "ownerKinds": ["StatefulSet"]}, "taints": [{"key": "a"}]}));
    let by_value = hold(
        json!({"pods": {"namespaces": ["n"], "ownerKinds": ["StatefulSet"]}, "taints": [{"key": "a"}, {"key": "a", "value": "x"}]}),
    );
    let ladder = [all, by_namespace, by_owner, by_more_labels, by_taint, by_value];
    for (place, one) in ladder.iter().enumerate() {
        for (other_place, other) in ladder.iter().enumerate().filter(|(other, _)| *other != place) {
            let winner = if place > other_place { "one" } else { "other" };
            let policies = [("one", one.clone()), ("other", other.clone())];
            let told = Someone::default().leaves(&["a=x"], &policies, 0);
            assert_eq!(told[0].2, winner, "{one} {other}");
        }
    }
    let equal = [("b", by_labels.clone()), ("a", by_labels)];
    let told = demands(&Someone::default().facts(), &tainted(&["a"]), &book(&equal), START);
    assert_eq!(
        (told[0].authority.rule().map(|rule| &*rule.name), &told[0].others[..]),
        (Some("a"), &["b".into()][..])
    );
}

#[test]
fn a_policy_is_not_for_those_it_does_not_select() {
    let pod = Someone::default();
    for (pods, is_meant) in [
        (json!({"namespaces": ["n"]}), true),
        (json!({"namespaces": ["m"]}), false),
        (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), true),
        (json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), false),
        (json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}), true),
        (json!({"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}), false),
        (json!({"ownerKinds": ["Job", "StatefulSet"]}), true),
        (json!({"ownerKinds": ["Job"]}), false),
    ] {
        let told = pod.leaves(&["a"], &[("p", json!({"pods": pods, "way": "Hold"}))], 0);
        assert_eq!(told[0].2 == "p", is_meant, "{pods}");
    }
    let told =
        pod.leaves(&["a=x"], &[("p", json!({"taints": [{"key": "a", "value": "y"}], "way": "Hold"}))], 0);
    assert_eq!(told[0].2, "kubernetes", "another value is another taint");
}

#[test]
fn a_policy_that_cannot_be_understood_holds_whom_it_selects() {
    let broken = json!({"pods": {"namespaces": ["n"]}, "way": "Evict", "gates": [{"name": "g"}]});
    let held = (0, Act::Hold(Keep::Misconfigured), own("broken"));
    assert_eq!(
        Someone::default().leaves(&["a"], &[("broken", broken.clone())], 0),
        std::slice::from_ref(&held)
    );
    let closer = json!({"pods": {"namespaces": ["n"], "ownerKinds": ["StatefulSet"]}, "way": "Delete"});
    let told = Someone::default().leaves(&["a"], &[("broken", broken), ("closer", closer.clone())], 0);
    assert_eq!(told[0].2, "closer", "a closer one counts all the same");
    let garbled = json!({
        "pods": {"namespaces": ["n"], "selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}},
        "way": "Delete",
    });
    let told = Someone::default().leaves(&["a"], &[("broken", garbled.clone()), ("closer", closer)], 0);
    assert_eq!(told[0], held, "unless nobody can say how close it was meant to be");
    let elsewhere = Someone::default();
    let other = PodFacts { namespace: "m", ..elsewhere.facts() };
    let told = demands(&other, &tainted(&["a"]), &book(&[("broken", garbled)]), START);
    assert_eq!(told[0].act, Act::Delete, "what could be understood of it still says whom it is not about");
}

#[test]
fn nobody_leaves_while_it_is_not_known_which_policy_counts() {
    let policies =
        [("p", json!({"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}, "way": "Delete"}))];
    let pod = Someone { namespace_labels: None, ..Someone::default() };
    assert_eq!(pod.leaves(&["a"], &policies, 0), [(0, Act::Hold(Keep::NamespaceUnknown), own("p"))]);
}

#[test]
fn who_drains_a_node_asks_the_budgets_and_leaves_its_daemons() {
    assert_eq!(Someone::default().leaves(&[DRAIN], &[], 0), [(0, Act::Evict, own("drain"))]);
    let daemon = Someone { owner: Some("DaemonSet"), ..Someone::default() };
    assert_eq!(daemon.leaves(&[DRAIN], &[], 0), []);
    assert_eq!(
        daemon.leaves(&[DRAIN, "a"], &[], 0),
        [(0, Act::Delete, own("kubernetes"))],
        "for that taint alone"
    );
    let policies = [("p", json!({"way": "Delete", "when": {"delaySeconds": 9}}))];
    assert_eq!(Someone::default().leaves(&[DRAIN], &policies, 0), [(9, Act::Delete, own("p"))]);
    assert_eq!(daemon.leaves(&[DRAIN], &policies, 0), []);
}

#[test]
fn a_time_is_needed_where_a_policy_counts_from_it() {
    let mut timeless = Tainted::default();
    let taint = Taint { key: "a".into(), value: "".into(), effect: NodeEffect::NoExecute, added: None };
    timeless.observe([taint], Moment::PAST, START);
    let needs = |spec: Value| needs_time(&Someone::default().facts(), &timeless, &book(&[("p", spec)]));
    assert!(needs(json!({"way": "Delete", "when": {"delaySeconds": 1}})));
    assert!(needs(json!({"way": "Delete", "when": {"tolerationSeconds": 1}})));
    assert!(needs(json!({"way": "Evict", "evict": {"deadlineSeconds": 1, "fallback": "Hold"}})));
    assert!(!needs(json!({"way": "Evict"})) && !needs(json!({"way": "Delete"})));
}

proptest! {
    /// Somebody goes exactly while a window is open, and when that changes is told no later than it does.
    #[test]
    fn nobody_goes_while_all_windows_are_shut(
        minute in 0..60_i64, hour in 0..24_i64, duration in 60..200_000_i64, other in 0..24_i64,
        after in 0..300_000_i64, ahead in 1..100_000_i64,
    ) {
        let windows = json!([
            {"schedule": format!("{minute} {hour} * * *"), "durationSeconds": duration},
            {"schedule": format!("30 {other} * * 1-5"), "durationSeconds": 1_800, "timeZone": "Europe/Berlin"},
        ]);
        let spec = json!({"way": "Delete", "when": {"windows": windows}});
        let rule = compile(&policy("p", spec.clone()));
        let is_open = |after: i64| {
            rule.orders.as_ref().is_ok_and(|orders| orders.windows.is_open(START.plus_seconds(after)))
        };
        let (_, act, turns, _) = told(&spec, after);
        prop_assert_eq!(act == Act::Delete, is_open(after));
        let turns = turns.unwrap();
        prop_assert!(turns > after);
        let before = (after + ahead).min(turns - 1);
        prop_assert_eq!(is_open(before), is_open(after), "nothing changes before it was told to");
    }

    /// Policies that are about others change nothing, and nobody leaves before Kubernetes' rule but by a policy that is for it.
    #[test]
    fn policies_for_others_change_nothing(
        seconds in prop::option::of(-5_i64..100), keys in prop::sample::subsequence(vec!["a", "b", "c"], 0..=3),
    ) {
        let pod = Someone { tolerations: vec![tolerates("a", seconds)], ..Someone::default() };
        let others = [
            ("x", json!({"pods": {"namespaces": ["elsewhere"]}, "way": "Delete", "when": {"tolerationSeconds": 0}})),
            ("y", json!({"taints": [{"key": "z"}], "way": "Hold"})),
        ];
        let first = |told: Vec<(i64, Act, String)>| told.into_iter().next();
        prop_assert_eq!(first(pod.leaves(&keys, &others, 0)), first(pod.leaves(&keys, &[], 0)));
    }
}
