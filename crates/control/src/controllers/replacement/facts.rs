//! From objects as the API shows them to what the engine knows of members, nodes and workloads.
//!
//! Owns the reading, and nothing else: what cannot be read says so, and nothing is assumed for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use berth_api::core::Node as ApiNode;
use berth_engine::Moment;
use berth_engine::replace::{
    Claim, Condition, DoneWhen, Handing, Known, Muster, Node, NodeFact, Pod, REPLACING_ANNOTATION, Readiness,
    Strategy, Sure, Target, is_bound_to_a_node, is_within_reach,
};
use berth_engine::taint::Taint;
use serde::Deserialize as _;
use serde_json::Value;

use crate::act::{Around, Reply};
use crate::world::{Phase, Pod as Slim, Truth};

/// The annotation by which somebody says that a pod is to be left alone.
pub(super) const SKIP_ANNOTATION: &str = "berth.dev/skip-replacement";
/// The kind of workloads whose pods come back under the same name.
pub(super) const STATEFUL_SET: &str = "StatefulSet";

fn moment(value: &Value) -> Option<Moment> {
    value.as_str().and_then(berth_api::time::parse).map(Moment::from_timestamp)
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// A pod of which only little is kept.
pub(super) fn slim_pod(slim: &Slim) -> Pod {
    let ready = match (slim.ready, slim.phase) {
        // Since when is asked of those of whom it matters.
        (Some(Truth::True), _) => Readiness::Since(slim.since),
        (Some(Truth::Unknown), _) | (None, Phase::Unknown) => Readiness::Unknown,
        _ => Readiness::Not,
    };
    let told = slim.ready.map(|ready| Condition {
        condition: "Ready".into(),
        status: match ready {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
        .into(),
        since: None,
    });
    // Of those that find no node it is read since when.
    let scheduled = Condition {
        condition: "PodScheduled".into(),
        status: if slim.node.is_empty() { "False" } else { "True" }.into(),
        since: None,
    };
    Pod {
        uid: Arc::clone(&slim.identity.uid),
        node: (!slim.node.is_empty()).then(|| Arc::clone(&slim.node)),
        arrived: Some(slim.since).filter(|since| *since != Moment::PAST),
        labels: slim.labels.iter().map(|(key, value)| ((&**key).into(), (&**value).into())).collect(),
        ready,
        is_leaving: slim.is_terminating(),
        is_stuck: false,
        is_skipped: false,
        conditions: told.into_iter().chain([scheduled]).collect(),
        tolerations: slim.tolerations.to_vec(),
    }
}

/// A pod that was read whole; `None` where it cannot be understood.
pub(super) fn whole_pod(pod: &Value, around: &Around) -> Option<Pod> {
    let slim = Slim::deserialize(pod).ok()?;
    let mut read = slim_pod(&slim);
    read.conditions = conditions(pod)
        .map(|told| Condition {
            condition: told["type"].as_str().unwrap_or_default().into(),
            status: told["status"].as_str().unwrap_or_default().into(),
            since: moment(&told["lastTransitionTime"]),
        })
        .collect();
    let since = read.conditions.iter().find(|told| &*told.condition == "Ready").and_then(|told| told.since);
    if let (Readiness::Since(ready), Some(since)) = (&mut read.ready, since) {
        *ready = since;
    }
    read.is_skipped = pod["metadata"]["annotations"][SKIP_ANNOTATION] == "true";
    read.is_stuck = is_stuck(pod, around);
    Some(read)
}

/// Whether a pod that never ran is bound to a node that its volume cannot be used on: it was bound by a claim that was on its
/// way out, and the claim that was made since has its volume elsewhere.
fn is_stuck(pod: &Value, around: &Around) -> bool {
    let is_bound = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if !is_bound || pod["status"]["phase"] != "Pending" {
        return false;
    }
    let Reply::Object(node) = &around.node else { return false };
    let Ok(node) = ApiNode::deserialize(&**node) else { return false };
    let mut volumes = around.volumes.iter().filter_map(|(_, volume)| volume.object());
    volumes.any(|volume| !is_within_reach(volume, &node))
}

/// A node.
pub(super) fn node(node: &ApiNode) -> Node {
    let labels = node.metadata.labels.iter().flatten();
    let created = node.metadata.creation_timestamp.as_ref();
    Node {
        created: created.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0)),
        labels: labels.map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect(),
        taints: node.spec.taints.iter().map(Taint::from).collect(),
        is_cordoned: node.spec.unschedulable,
        conditions: node
            .status
            .conditions
            .iter()
            .map(|told| Condition {
                condition: told.type_.as_str().into(),
                status: told.status.as_str().into(),
                since: told.last_transition_time.as_ref().map(|time| Moment::from_timestamp(time.0)),
            })
            .collect(),
    }
}

/// What an answer about a node says.
pub(super) fn node_fact(reply: &Reply) -> NodeFact {
    match reply {
        Reply::Object(object) => {
            ApiNode::deserialize(&**object).map_or(NodeFact::Unknown, |read| NodeFact::Present(node(&read)))
        }
        Reply::Missing => NodeFact::Missing,
        _ => NodeFact::Unknown,
    }
}

/// The claims of a pod that was read with them. `pods` are all pods of its namespace, and `others` the nodes besides its own,
/// if they are known.
pub(super) fn claims<'n, I: Iterator<Item = &'n ApiNode>>(
    around: &Around,
    pods: &[Value],
    others: impl Fn() -> Option<I>,
) -> Known<Vec<Claim>> {
    let mut claims = Vec::new();
    for (name, reply) in &around.claims {
        let claim = match reply {
            Reply::Object(claim) => claim,
            // Nothing is there to be lost.
            Reply::Missing => continue,
            _ => return Known::Unknown,
        };
        let Some(uid) = claim["metadata"]["uid"].as_str() else { return Known::Unknown };
        let volume = claim["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty());
        let is_local = match volume {
            // It has no volume yet, and nothing on it.
            None => Sure::No,
            Some(volume) => match volume_of(around, volume) {
                Some(volume) => is_bound_to_a_node(volume, others()).map_or(Sure::Unknown, Sure::from),
                None => Sure::Unknown,
            },
        };
        claims.push(Claim {
            name: name.as_str().into(),
            uid: uid.into(),
            class: claim["spec"]["storageClassName"].as_str().map(Into::into),
            is_local,
            is_own: is_own(around, name, pods),
            is_leaving: !claim["metadata"]["deletionTimestamp"].is_null(),
        });
    }
    Known::Known(claims)
}

/// Whether a claim is a member's alone: one that its set makes for it, or one that no other pod uses.
fn is_own(around: &Around, claim: &str, pods: &[Value]) -> Sure {
    let Some(pod) = around.pod.object() else { return Sure::Unknown };
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if owner(pod).is_some_and(|owner| owner["kind"] == STATEFUL_SET) {
        let Reply::Object(set) = &around.owner else { return Sure::Unknown };
        let mut templates = set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
        let is_made = |template: &Value| {
            template["metadata"]["name"].as_str().is_some_and(|of| format!("{of}-{name}") == claim)
        };
        return Sure::from(templates.any(is_made));
    }
    // A list without the pod itself is not of all pods.
    let is_itself = |other: &Value| other["metadata"]["uid"] == pod["metadata"]["uid"];
    if !pods.iter().any(is_itself) {
        return Sure::Unknown;
    }
    let uses = |other: &Value| {
        let mut volumes = other["spec"]["volumes"].as_array().into_iter().flatten();
        volumes.any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim)
    };
    Sure::from(!pods.iter().any(|other| !is_itself(other) && uses(other)))
}

/// A volume that was read.
pub(super) fn volume_of<'a>(around: &'a Around, name: &str) -> Option<&'a Value> {
    around.volumes.iter().find(|(known, _)| known == name)?.1.object()
}

/// Whether whoever is to be told has been.
pub(super) fn told(handing: &Handing, name: &str, pod: &Value, owner: &Reply) -> Sure {
    let annotation = |key: &str| pod["metadata"]["annotations"][key].as_str();
    match handing {
        Handing::Evict { handshake: false } => Sure::No,
        Handing::Evict { handshake: true } => Sure::from(annotation(REPLACING_ANNOTATION).is_some()),
        Handing::Annotate { key, value } => Sure::from(annotation(key) == Some(&**value)),
        Handing::Append { list, label } => match owner {
            Reply::Object(owner) => {
                Sure::from(listed(owner, list).contains(&entry(label.as_deref(), name, pod)))
            }
            _ => Sure::Unknown,
        },
    }
}

/// What the operator of a pod knows it by, where one is told or says that it is done.
pub(super) fn known_by(strategy: &Strategy, pod: &Value) -> Option<String> {
    let name = pod["metadata"]["name"].as_str()?;
    match &strategy.handing {
        Handing::Append { label, .. } => Some(entry(label.as_deref(), name, pod).to_owned()),
        handing => (handing.is_delegated() && strategy.done_when.is_some()).then(|| name.to_owned()),
    }
}

/// Whether an operator that was told of `entry` by a list has been, where its pod is gone.
pub(super) fn told_of(handing: &Handing, entry: &str, owner: &Reply) -> Sure {
    match (handing, owner) {
        (Handing::Append { list, .. }, Reply::Object(owner)) => {
            Sure::from(listed(owner, list).contains(&entry))
        }
        _ => Sure::Unknown,
    }
}

/// Whether an operator says that it has done its part for whom it knows by `entry`.
pub(super) fn handed(done: &DoneWhen, entry: &str, is_gone: bool, owner: &Reply) -> Sure {
    let Reply::Object(owner) = owner else { return Sure::Unknown };
    let at = |object: &Value, path: &str| {
        path.split('.').try_fold(object.clone(), |value, field| value.get(field).cloned())
    };
    // An operator that names nobody says nothing of anybody: it has not looked yet, or what was read is from before.
    let Some(Value::Array(list)) = at(owner, &done.list) else { return Sure::Unknown };
    if list.is_empty() {
        return Sure::Unknown;
    }
    let is_it = |of: &&Value| at(of, &done.key).is_some_and(|key| key == entry);
    let mut about = list.iter().filter(is_it).peekable();
    if about.peek().is_none() {
        // Whom the operator has forgotten it is done with; whom it does not know yet it is not.
        return Sure::from(is_gone);
    }
    Sure::from(about.all(|of| at(of, &done.field).is_some_and(|field| !field.is_null())))
}

/// What is appended to the list of an owner for a pod.
fn entry<'p>(label: Option<&str>, name: &'p str, pod: &'p Value) -> &'p str {
    label.and_then(|label| pod["metadata"]["labels"][label].as_str()).unwrap_or(name)
}

/// A list in an object, by its path with dots.
pub(super) fn listed<'o>(object: &'o Value, path: &str) -> Vec<&'o str> {
    let list = path.split('.').fold(object, |value, field| &value[field]);
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A pod of a workload, as far as the others go: its name, and whether it is ready and stays.
pub(super) type Peer<'p> = (&'p str, bool);

/// A workload: who of its pods is not ready, and whether nothing is being changed. `before` is how many there were before one
/// of them was replaced, where nobody else says how many there should be.
pub(super) fn target<'p>(
    owner: Option<&Reply>,
    peers: impl Iterator<Item = Peer<'p>>,
    before: Option<usize>,
) -> Target {
    let Some(Reply::Object(owner)) = owner else { return Target::default() };
    let mut unready = BTreeSet::new();
    let mut there = BTreeSet::new();
    let mut ready = BTreeSet::new();
    for (name, is_ready) in peers {
        there.insert(name);
        if is_ready { &mut ready } else { &mut unready }.insert(Arc::from(name));
    }
    let is_settled = settled(owner);
    if owner["kind"] == STATEFUL_SET {
        let Some(expected) = ordinals(owner) else { return Target { is_settled, ..Target::default() } };
        unready.extend(expected.filter(|name| !there.contains(&**name)).map(Arc::from));
        return Target { unready: Known::Known(unready), is_settled, ..Target::default() };
    }
    // One that is missing has no name: it is noticed only by counting.
    let replicas = owner["spec"]["replicas"].as_u64().and_then(|count| usize::try_from(count).ok());
    Target {
        unready: Known::Known(unready),
        muster: Some(Muster { ready, wanted: replicas.or(before) }),
        is_settled,
        is_silent: is_settled == Sure::Unknown,
    }
}

/// The most ordinals of a set that are looked for.
const ORDINALS_MAX: i64 = 100_000;

/// The names of the pods that a StatefulSet should have.
fn ordinals(owner: &Value) -> Option<impl Iterator<Item = String> + use<'_>> {
    let name = owner["metadata"]["name"].as_str()?;
    let replicas = owner["spec"]["replicas"].as_i64().filter(|count| (0..=ORDINALS_MAX).contains(count))?;
    let start = owner["spec"]["ordinals"]["start"].as_i64().unwrap_or_default();
    Some((start..start.saturating_add(replicas)).map(move |ordinal| format!("{name}-{ordinal}")))
}

/// Whether neither a rollout nor a change of size is under way.
fn settled(owner: &Value) -> Sure {
    let generation = owner["metadata"]["generation"].as_i64();
    let status = &owner["status"];
    if !owner["metadata"]["deletionTimestamp"].is_null() {
        return Sure::No;
    }
    if owner["kind"] != STATEFUL_SET {
        // An operator that says how far it is, is believed; the FoundationDB operator does so in words of its own.
        let seen = status["observedGeneration"].as_i64().or(status["generations"]["reconciled"].as_i64());
        return match (generation, seen) {
            (Some(generation), Some(seen)) => Sure::from(seen >= generation),
            _ => Sure::Unknown,
        };
    }
    let number = |field: &str| status[field].as_i64();
    let (Some(generation), Some(seen), Some(wanted), Some(there)) =
        (generation, number("observedGeneration"), owner["spec"]["replicas"].as_i64(), number("replicas"))
    else {
        return Sure::Unknown;
    };
    if seen < generation || there != wanted {
        return Sure::No;
    }
    let strategy = &owner["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        // Who updates whom is in the hands of somebody else, and nothing happens by itself.
        return Sure::Yes;
    }
    let (current, update) = (status["currentRevision"].as_str(), status["updateRevision"].as_str());
    if current.is_some() && current == update {
        return Sure::Yes;
    }
    // A rollout that rests at its partition changes nothing either.
    let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or_default();
    match (current, update, number("updatedReplicas")) {
        (Some(_), Some(_), Some(updated)) => {
            Sure::from(partition > 0 && updated >= wanted.saturating_sub(partition))
        }
        _ => Sure::Unknown,
    }
}

/// Whether a pod that was read whole is ready and stays.
pub(super) fn is_ready(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions(pod).any(|told| told["type"] == "Ready" && told["status"] == "True")
}

/// Whether a pod is ready and stays.
pub(super) fn is_ready_slim(pod: &Slim) -> bool {
    pod.ready == Some(Truth::True) && !pod.is_terminating()
}

/// The identity of what keeps a pod.
pub(super) fn owner_uid(pod: &Value) -> Option<&str> {
    owner(pod)?["uid"].as_str()
}

/// The API group of what keeps a pod.
pub(super) fn owner_group(pod: &Value) -> Option<&str> {
    owner(pod)?["apiVersion"].as_str().map(group)
}

/// The group in a group and version.
pub(super) fn group(version: &str) -> &str {
    version.rsplit_once('/').map_or("", |(group, _)| group)
}

fn owner(pod: &Value) -> Option<&Value> {
    pod["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, kind: &str, claims: &[&str]) -> Value {
        let volumes: Vec<Value> =
            claims.iter().map(|claim| json!({"persistentVolumeClaim": {"claimName": claim}})).collect();
        json!({
            "metadata": {
                "name": name, "uid": name, "ownerReferences": [{"kind": kind, "uid": "o", "controller": true}],
            },
            "spec": {"volumes": volumes},
        })
    }

    fn around(pod: &Value, owner: &Value, claims: &[&str]) -> Around {
        let claim = |name: &&str| {
            ((*name).to_owned(), Reply::Object(Box::new(json!({"metadata": {"name": name, "uid": name}}))))
        };
        Around {
            pod: Reply::Object(Box::new(pod.clone())),
            node: Reply::Missing,
            owner: if owner.is_null() { Reply::Missing } else { Reply::Object(Box::new(owner.clone())) },
            owner_path: None,
            claims: claims.iter().map(claim).collect(),
            volumes: Vec::new(),
        }
    }

    fn own(around: &Around, pods: &[Value]) -> Vec<Sure> {
        let nobody = || None::<std::iter::Empty<&ApiNode>>;
        let Known::Known(claims) = claims(around, pods, nobody) else { panic!("all could be read") };
        claims.iter().map(|claim| claim.is_own).collect()
    }

    #[test]
    fn a_claim_is_a_members_own_if_its_set_makes_it_or_nobody_else_uses_it() {
        let names = ["data-db-0", "backups"];
        let member = pod("db-0", STATEFUL_SET, &names);
        let set =
            json!({"kind": STATEFUL_SET, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        assert_eq!(own(&around(&member, &set, &names), &[]), [Sure::Yes, Sure::No]);
        assert_eq!(
            own(&around(&member, &Value::Null, &names), &[]),
            [Sure::Unknown; 2],
            "the set is not known"
        );
        let member = pod("x", "Database", &names);
        let of_another = around(&member, &json!({}), &names);
        assert_eq!(own(&of_another, &[]), [Sure::Unknown; 2], "nobody knows the other pods");
        let pods = [member.clone(), pod("job", "Job", &["backups"])];
        assert_eq!(own(&of_another, &pods), [Sure::Yes, Sure::No]);
    }

    #[test]
    fn a_set_tells_who_is_missing_and_others_are_counted() {
        let reply = |owner: Value| Reply::Object(Box::new(owner));
        let peers = [("db-3", true), ("db-4", false)];
        let of_set = reply(json!({
            "kind": STATEFUL_SET, "metadata": {"name": "db", "generation": 2},
            "spec": {"replicas": 3, "ordinals": {"start": 3}},
            "status": {"observedGeneration": 2, "replicas": 3, "currentRevision": "a", "updateRevision": "a"},
        }));
        let told = target(Some(&of_set), peers.into_iter(), None);
        let unready = BTreeSet::from(["db-4".into(), "db-5".into()]);
        assert_eq!((told.unready, told.is_settled, told.muster), (Known::Known(unready), Sure::Yes, None));
        let muster = |owner: Value, before: Option<usize>| {
            let told = target(Some(&reply(owner)), peers.into_iter(), before);
            let Some(Muster { ready, wanted }) = told.muster else { panic!("they are counted") };
            (ready.len(), wanted, told.is_settled, told.is_silent)
        };
        assert_eq!(muster(json!({"kind": "Database"}), None), (1, None, Sure::Unknown, true));
        assert_eq!(muster(json!({"kind": "Database"}), Some(3)), (1, Some(3), Sure::Unknown, true));
        let sized = json!({
            "kind": "CloneSet", "metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 1},
        });
        assert_eq!(muster(sized, Some(3)), (1, Some(2), Sure::No, false));
        assert_eq!(
            target(None, peers.into_iter(), None),
            Target::default(),
            "what cannot be read is not known"
        );
    }
}
