//! Members that an operator replaces: it is told, and says itself when it is done.

use super::*;

const GROUP: &str = "foundationdb.org/fdb-process-group-id";

fn cluster(groups: &Value) -> Value {
    json!({
        "apiVersion": "apps.foundationdb.org/v1beta2", "kind": "FoundationDBCluster",
        "metadata": {"name": "fdb", "namespace": NS, "uid": "fdb", "resourceVersion": "1", "generation": 4},
        // What an operator calls a selector is its own affair.
        "spec": {"processGroupsToRemove": ["old", {"odd": 1}], "selector": {"matchLabels": {"nobody": "has"}}},
        "status": {"generations": {"reconciled": 4}, "processGroups": groups, "healthy": true},
    })
}

fn member(name: &str, on: &str) -> Value {
    let mut member = pod(0, on, true);
    member["metadata"]["name"] = json!(name);
    member["metadata"]["labels"][GROUP] = json!(format!("{name}-id"));
    member["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps.foundationdb.org/v1beta2", "kind": "FoundationDBCluster", "name": "fdb", "uid": "fdb",
        "controller": true,
    }]);
    member
}

/// Two process groups, of which the first is on a tainted node.
fn stage(delegate: &Value, more: &Value) -> Scene {
    let mut whole = json!({"list": "spec.processGroupsToRemove", "entryFromLabel": GROUP});
    whole = json!({ "patchOwner": whole });
    whole.as_object_mut().unwrap().extend(delegate.as_object().unwrap().clone());
    let mut spec = json!({
        "targetRef": {"apiVersion": "apps.foundationdb.org/v1beta2", "kind": "FoundationDBCluster", "name": "fdb"},
        "strategy": {"type": "Delegate", "delegate": whole},
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut scene = scene(&spec);
    scene.foreign.insert(key("fdb"), cluster(&json!([])));
    scene.put(Kind::Pod, member("storage-1", "n0"));
    scene.put(Kind::Pod, member("storage-2", "n1"));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    scene
}

fn exclusion() -> Value {
    json!({"doneWhen": {"list": "status.processGroups", "key": "processGroupID", "field": "exclusionTimestamp"}})
}

#[test]
fn an_operator_is_told_by_its_list_and_does_the_rest() {
    let mut scene = stage(&json!({}), &json!({}));
    let written = done(scene.after_seconds(61));
    assert_eq!(written.last().map(String::as_str), Some("patch n/fdb"), "{written:?}");
    let list = &scene.foreign[&key("fdb")]["spec"]["processGroupsToRemove"];
    assert_eq!(list, &json!(["old", {"odd": 1}, "storage-1-id"]), "what was there stays as it was");
    let peers = |ask: &&Ask| matches!(ask, Ask::List { kind: Kind::Pod, .. });
    for ask in scene.asks.iter().filter(peers) {
        assert!(matches!(ask, Ask::List { selector, .. } if selector.is_empty()), "{ask:?}");
    }
    assert_eq!(done(scene.after_seconds(60)), [""; 0], "it is the operator's work now");
    assert_eq!(phase(&scene), ["storage-1 Draining"]);
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.settle();
    scene.after_seconds(60);
    assert_eq!(
        phase(&scene),
        ["storage-1 AwaitingSuccessor"],
        "one is missing, though nobody knows its name"
    );
    is_succeeded(&mut scene);
}

/// Another pod takes its place, and has to stay there for a while.
fn is_succeeded(scene: &mut Scene) {
    scene.put(Kind::Pod, member("storage-7", "n3"));
    scene.settle();
    scene.after_seconds(10);
    assert_eq!(phase(scene), ["storage-1 Verifying"], "they are as many as before, but not for long enough");
    scene.after_seconds(60);
    assert_eq!(phase(scene), ["storage-1 Done"]);
}

#[test]
fn a_list_that_is_none_is_not_made_one() {
    let mut scene = stage(&json!({}), &json!({}));
    let mut odd = cluster(&json!([]));
    odd["spec"]["processGroupsToRemove"] = json!({"odd": 1});
    scene.foreign.insert(key("fdb"), odd);
    scene.after_seconds(61);
    let written = done(scene.after_seconds(30));
    assert!(!written.iter().any(|line| line.starts_with("patch n/fdb")), "{written:?}");
}

#[test]
fn a_pod_that_dies_before_its_data_has_left_was_not_replaced() {
    let mut scene = stage(&exclusion(), &json!({}));
    let group = |more: &Value| {
        let mut group = json!({"processGroupID": "storage-1-id"});
        group.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut cluster = cluster(&json!([group, {"processGroupID": "storage-2-id"}]));
        cluster["spec"]["processGroupsToRemove"] = json!(["storage-1-id"]);
        cluster
    };
    scene.foreign.insert(key("fdb"), group(&json!({})));
    scene.after_seconds(61);
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    assert_eq!(work["spec"]["target"]["entry"], "storage-1-id");
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.settle();
    scene.after_seconds(10);
    assert_eq!(phase(&scene), ["storage-1 Draining"], "its operator has not said so");
    restart(&mut scene);
    scene.settle();
    scene.after_seconds(10);
    assert_eq!(phase(&scene), ["storage-1 Draining"]);
    scene.foreign.insert(key("fdb"), group(&json!({"exclusionTimestamp": "2026-01-01T00:00:00Z"})));
    scene.after_seconds(10);
    assert_eq!(phase(&scene), ["storage-1 AwaitingSuccessor"]);
    is_succeeded(&mut scene);
}

#[test]
fn whom_the_operator_has_forgotten_it_is_done_with() {
    let mut scene = stage(&exclusion(), &json!({}));
    scene.foreign.insert(key("fdb"), cluster(&json!([{"processGroupID": "storage-1-id"}])));
    scene.after_seconds(61);
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.foreign.insert(key("fdb"), cluster(&json!([{"processGroupID": "storage-2-id"}])));
    scene.settle();
    scene.after_seconds(10);
    assert_eq!(phase(&scene), ["storage-1 AwaitingSuccessor"]);
    is_succeeded(&mut scene);
}

#[test]
fn an_operator_that_names_nobody_has_not_forgotten_anybody() {
    let mut scene = stage(&exclusion(), &json!({}));
    scene.after_seconds(61);
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.settle();
    for status in [json!({"generations": {"reconciled": 4}}), json!({"processGroups": []})] {
        let mut silent = cluster(&json!([]));
        silent["spec"]["processGroupsToRemove"] = json!(["storage-1-id"]);
        silent["status"] = status;
        scene.foreign.insert(key("fdb"), silent);
        scene.after_seconds(10);
        assert_eq!(phase(&scene), ["storage-1 Draining"]);
    }
}

#[test]
fn an_operator_that_does_nothing_fails_in_its_time() {
    let mut scene = stage(&json!({"timeoutSeconds": 600}), &json!({}));
    scene.after_seconds(61);
    scene.after_seconds(590);
    assert_eq!(phase(&scene), ["storage-1 Draining"]);
    scene.after_seconds(20);
    assert_eq!(phase(&scene)[0], "storage-1 Failed");
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    assert_eq!(work["status"]["reason"], "OperatorLate");
    assert!(scene.notes.iter().any(|note| note.reason == "ReplacementFailed" && note.is_warning));
}

#[test]
fn a_gate_before_the_end_is_asked_of_the_owner_where_nothing_is_left_of_the_pod() {
    let gates = json!({"gates": [{
        "name": "healthy", "stage": "BeforeComplete",
        "cel": "owner.status.healthy && size(peers) == 2 && pod.metadata.name == 'storage-1'",
    }]});
    let mut scene = stage(&json!({}), &gates);
    scene.after_seconds(61);
    let mut ill = cluster(&json!([]));
    ill["status"]["healthy"] = json!(false);
    scene.foreign.insert(key("fdb"), ill);
    scene.put(Kind::Pod, member("storage-7", "n3"));
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.settle();
    scene.after_seconds(10);
    assert_eq!(phase(&scene), ["storage-1 Verifying"]);
    let work = scene.get(Kind::Replacement, NS, &works(&scene)[0]).unwrap();
    assert_eq!(work["status"]["gates"][0]["verdict"], "Deny", "{work}");
    scene.foreign.insert(key("fdb"), cluster(&json!([])));
    scene.after_seconds(60);
    assert_eq!(phase(&scene), ["storage-1 Done"]);
}

#[test]
fn what_is_left_of_names_that_are_gone_goes_after_a_day() {
    let mut scene = stage(&json!({}), &json!({}));
    scene.after_seconds(61);
    scene.put(Kind::Pod, member("storage-7", "n3"));
    scene.remove(Kind::Pod, &key("storage-1"));
    scene.settle();
    scene.after_seconds(70);
    assert_eq!(phase(&scene), ["storage-1 Done"]);
    scene.put(Kind::Pod, member("storage-2", "n1"));
    scene.after_seconds(86_000);
    assert_eq!(works(&scene).len(), 1);
    scene.put(Kind::Pod, member("storage-8", "n3"));
    scene.after_seconds(1_000);
    assert_eq!(works(&scene), [""; 0]);
}
