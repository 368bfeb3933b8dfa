//! Room for the successor: what pods ask for and what nodes have, by the watches and right before an act.

use super::*;

/// A pod that asks for so many processors.
fn asking(mut pod: Value, cpu: &str) -> Value {
    pod["spec"]["containers"] = json!([{"name": "main", "resources": {"requests": {"cpu": cpu}}}]);
    pod
}

fn stranger(on: &str, cpu: &str) -> Value {
    let pod = json!({
        "metadata": {"name": "stranger", "namespace": "other"}, "spec": {"nodeName": on},
        "status": {"phase": "Running"},
    });
    asking(pod, cpu)
}

/// Three members that ask for most of their nodes, the first of which is due.
fn crowded(spare: &Value) -> Scene {
    let mut scene = scene(&with_volumes());
    for index in 0..3 {
        scene.put(Kind::Pod, asking(pod(index, &format!("n{index}"), true), "3"));
    }
    scene.put(Kind::Node, spare.clone());
    scene.put(Kind::Pod, stranger("n3", "2"));
    scene.put(Kind::Node, node("n0", &taint()));
    scene.settle();
    assert_eq!(done(scene.after_seconds(61)), [""; 0]);
    scene
}

fn told(scene: &Scene) -> String {
    let status = &scene.get(Kind::ReplacementPolicy, NS, "p").unwrap()["status"];
    status["pods"][0]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn nobody_goes_before_there_is_room_and_what_lacks_is_told() {
    let mut scene = crowded(&node("n3", &json!([])));
    let message = told(&scene);
    assert!(message.contains("no other node can take the successor: too little room (cpu)"), "{message}");
    scene.remove(Kind::Pod, &ObjectKey::new("other", "stranger"));
    let written = done(scene.after_seconds(60));
    assert_eq!(written.last().map(String::as_str), Some("evict Pod n/db-0"), "{written:?}");
}

#[test]
fn a_node_that_does_not_say_what_it_has_is_not_believed_to_have_room() {
    let mut silent = node("n3", &json!([]));
    silent["status"].as_object_mut().unwrap().remove("allocatable");
    let mut scene = crowded(&silent);
    let message = told(&scene);
    assert!(message.contains("is not known: node n3 does not say what it has room for"), "{message}");
    assert_eq!(done(scene.after_seconds(600)), [""; 0]);
    scene.put(Kind::Node, node("n3", &json!([])));
    scene.put(Kind::Pod, stranger("n3", "1"));
    let written = done(scene.after_seconds(60));
    assert_eq!(written.last().map(String::as_str), Some("evict Pod n/db-0"), "{written:?}");
}
