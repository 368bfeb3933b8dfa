//! Gates before a pod, its node and its owner.

use serde_json::json;

use super::*;

fn pod() -> serde_json::Value {
    json!({
        "metadata": {"name": "p", "labels": {"app": "db"}, "annotations": {"example.org/safe": "yes"}},
        "status": {"conditions": [{"type": "Checkpointed", "status": "True"}, {"type": "Ready", "status": "False"}]},
    })
}

fn first_shut(gates: &[Gate], sight: Sight<'_>) -> Option<Shut> {
    match passage(gates, sight, &[]) {
        Passage::Open => None,
        Passage::Shut(shut) => Some(shut),
        Passage::Asks { gate, .. } => panic!("{gate} asks"),
    }
}

fn why(gate: Gate) -> Option<String> {
    let (pod, node) = (pod(), json!({"metadata": {"labels": {"zone": "z"}}}));
    let owner = json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 2}});
    let sight = Sight { pod: &pod, node: Some(&node), owner: Some(&owner), company: None };
    first_shut(&[gate], sight).map(|shut| shut.to_string())
}

fn expression(source: &str) -> Gate {
    Gate::expression("g", source).unwrap()
}

#[test]
fn an_expression_sees_the_pod_its_node_and_its_owner() {
    assert_eq!(why(expression("pod.metadata.labels.app == 'db' && node.metadata.labels.zone == 'z'")), None);
    assert_eq!(why(expression("owner.status.readyReplicas > 1")), None);
    assert_eq!(
        why(expression("owner.status.readyReplicas == owner.spec.replicas")).unwrap(),
        "gate g is shut: its expression is false"
    );
}

#[test]
fn an_expression_that_fails_or_is_no_truth_is_shut() {
    let failed = why(expression("pod.status.nowhere == 1")).unwrap();
    assert!(failed.starts_with("gate g is shut: its expression fails: "), "{failed}");
    let no_bool = why(expression("pod.metadata.name")).unwrap();
    assert_eq!(no_bool, "gate g is shut: its expression gives a value of type string, not a bool");
}

#[test]
fn what_cannot_be_a_truth_or_cannot_be_read_is_refused() {
    assert!(Gate::expression("g", "1 + 1").unwrap_err().contains("it must give a bool"));
    assert!(Gate::expression("g", "nobody.knows").is_err());
    assert!(Gate::expression("g", "pod.").is_err());
}

#[test]
fn whether_the_owner_is_looked_at_is_known_before() {
    for (source, reads) in [
        ("owner.spec.replicas > 1", true),
        ("owner != null", true),
        ("has(owner.spec)", true),
        ("pod.metadata.name == 'owner'", false),
        ("[1, 2].exists(n, owner.spec.replicas == n)", true),
    ] {
        assert_eq!(expression(source).reads_owner(), reads, "{source}");
    }
}

#[test]
fn who_has_no_owner_has_null_for_one() {
    let pod = pod();
    let sight = Sight { pod: &pod, node: None, owner: None, company: None };
    assert_eq!(first_shut(&[expression("owner == null && node == null")], sight), None);
}

#[test]
fn a_condition_must_be_there_with_its_status() {
    assert_eq!(why(Gate::condition("g", "Checkpointed", "True")), None);
    assert_eq!(
        why(Gate::condition("g", "Ready", "True")).unwrap(),
        "gate g is shut: the pod's condition Ready is False"
    );
    assert_eq!(
        why(Gate::condition("g", "Saved", "True")).unwrap(),
        "gate g is shut: the pod has no condition Saved"
    );
}

#[test]
fn an_annotation_must_be_there_with_its_value_if_one_is_asked_for() {
    assert_eq!(why(Gate::annotation("g", "example.org/safe", Some("yes"))), None);
    assert_eq!(why(Gate::annotation("g", "example.org/safe", None)), None);
    assert_eq!(
        why(Gate::annotation("g", "example.org/safe", Some("no"))).unwrap(),
        "gate g is shut: the pod's annotation example.org/safe is \"yes\""
    );
    assert_eq!(
        why(Gate::annotation("g", "example.org/other", None)).unwrap(),
        "gate g is shut: the pod has no annotation example.org/other"
    );
}

#[test]
fn the_first_that_is_shut_is_told_and_all_are_for_people() {
    let gates = [
        Gate::annotation("a", "example.org/safe", None),
        Gate::condition("b", "Ready", "True"),
        Gate::condition("c", "Saved", "True"),
    ];
    let pod = pod();
    let sight = Sight { pod: &pod, node: None, owner: None, company: None };
    assert_eq!(&*first_shut(&gates, sight).unwrap().gate, "b");
    let open: Vec<bool> = all(&gates, sight).iter().map(|(_, told)| *told == Standing::Open).collect();
    assert_eq!(open, [true, false, false]);
}

#[test]
fn expressions_that_cost_too_much_together_are_shut() {
    let dear = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, \
                [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, \
                [1,2,3,4,5,6,7,8,9].all(g, true)))))))";
    let shut = why(expression(dear)).unwrap();
    assert!(shut.contains("fails"), "{shut}");
}

fn review(name: &str) -> Gate {
    Gate::review(name, Address::parse("https://reviews.example.com/", None, None).unwrap())
}

#[test]
fn somebody_outside_is_asked_only_when_everything_before_is_open() {
    let pod = pod();
    let sight = Sight { pod: &pod, node: None, owner: None, company: None };
    let asks = |gates: &[Gate], said: &[(Arc<str>, Opinion)]| match passage(gates, sight, said) {
        Passage::Asks { gate, .. } => gate.to_string(),
        Passage::Shut(shut) => format!("shut: {}", shut.gate),
        Passage::Open => "open".to_owned(),
    };
    let (open, shut) =
        (Gate::condition("open", "Checkpointed", "True"), Gate::condition("shut", "Ready", "True"));
    let yes = |name: &str| (Arc::from(name), Ok(()));
    assert_eq!(asks(&[shut.clone(), review("a")], &[]), "shut: shut");
    assert_eq!(asks(&[open.clone(), review("a"), review("b"), shut.clone()], &[]), "a");
    assert_eq!(asks(&[open.clone(), review("a"), review("b"), shut.clone()], &[yes("a")]), "b");
    assert_eq!(asks(&[open.clone(), review("a"), review("b"), shut], &[yes("b"), yes("a")]), "shut: shut");
    assert_eq!(asks(&[open, review("a")], &[yes("a")]), "open");
}

#[test]
fn whatever_is_not_a_yes_is_shut_and_says_why() {
    let pod = pod();
    let sight = Sight { pod: &pod, node: None, owner: None, company: None };
    let until = Moment::from_second(60);
    for (why, told) in [
        (Why::Denied { message: String::new() }, "its review says no"),
        (Why::Denied { message: "the backup runs".to_owned() }, "its review says no: the backup runs"),
        (Why::Later { until, message: String::new() }, "its review says not before 1970-01-01T00:01:00Z"),
        (
            Why::Unanswered { error: "no answer within 5 s".to_owned() },
            "its review has no answer: no answer within 5 s",
        ),
    ] {
        let gates = [review("a")];
        let Passage::Shut(shut) = passage(&gates, sight, &[("a".into(), Err(why))]) else { panic!("{told}") };
        assert_eq!(shut.to_string(), format!("gate a is shut: {told}"));
    }
    assert_eq!(all(&[review("a")], sight)[0].1, Standing::Unasked);
}
