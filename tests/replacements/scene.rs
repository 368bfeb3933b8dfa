//! A scenario's part of a cluster: a namespace and nodes of its own, what is done to them, and what is waited for.

use std::{collections::BTreeMap, time::Duration};

use berth_bed::{Bed, Kind};
use berth_tests::{
    caller::{Answer, Caller, condition, core, grouped, text},
    waiting::until,
};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    chronicle::{Chronicle, Entry},
    hands::Hands,
    set::Set,
};

/// How long anything may take. It takes moments; what is asked once a minute, as whether nodes may be read, takes more, and so
/// does a machine that compiles beside it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The label of everything that a scenario owns and that is in no namespace; its value is the scenario's namespace.
pub(crate) const SCENE: &str = "scene.berth.dev";

const NODES: &str = "/api/v1/nodes";
const GROUP: &str = "berth.dev/v1alpha1";

/// A scenario's handle on the cluster.
pub(crate) struct Scene {
    pub(crate) caller: Caller,
    /// Also what every node's name begins with.
    pub(crate) namespace: String,
    pub(crate) hands: Hands,
    pub(crate) chronicle: Chronicle,
}

impl Scene {
    pub(crate) async fn new(bed: &Bed) -> Self {
        Self::within(bed, bed.namespace("scene").await).await
    }

    /// In a namespace that somebody else has made, or will.
    pub(crate) async fn within(bed: &Bed, namespace: String) -> Self {
        let config = bed.config();
        let caller = Caller::admin(bed);
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        });
        let target = "/apis/storage.k8s.io/v1/storageclasses/local?fieldManager=scenario&force=true";
        caller.apply_to(target, &class).await.ok();
        let hands = Hands::at_work(&config, &namespace, bed.kind() == Kind::Hub);
        let chronicle = Chronicle::of(&config, &namespace);
        Self { caller, namespace, hands, chronicle }
    }

    // Nodes.

    /// The whole name of a node.
    pub(crate) fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.namespace)
    }

    pub(crate) fn node_path(&self, node: &str) -> String {
        format!("{NODES}/{}", self.name(node))
    }

    /// Makes nodes that are well.
    pub(crate) async fn nodes(&self, nodes: &[&str]) {
        for node in nodes {
            self.node_in(node, node).await;
        }
    }

    /// Makes a node that is well, in a rack.
    pub(crate) async fn node_in(&self, node: &str, rack: &str) {
        let name = self.name(node);
        let labels = json!({
            SCENE: self.namespace, "kubernetes.io/hostname": name, "example.org/rack": rack,
        });
        let object =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        self.caller.post(NODES, &object).await.ok();
        let room = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
        let conditions = json!([{
            "type": "Ready", "status": "True", "reason": "Scenario", "message": "",
            "lastHeartbeatTime": now(), "lastTransitionTime": now(),
        }]);
        let status = json!({"status": {"conditions": conditions, "capacity": room, "allocatable": room}});
        let headers = [("content-type", "application/strategic-merge-patch+json")];
        let path = format!("{}/status", self.node_path(node));
        self.caller.send(Method::PATCH, &path, &headers, Some(status.to_string())).await.ok();
    }

    /// Gives a node these taints and no others.
    pub(crate) async fn taint(&self, node: &str, taints: &[Value]) {
        self.caller.merge(&self.node_path(node), &json!({"spec": {"taints": taints}})).await.ok();
    }

    pub(crate) async fn untaint(&self, node: &str) {
        self.taint(node, &[]).await;
    }

    // Workloads.

    /// Makes a set, and waits until all its members are ready.
    pub(crate) async fn set(&self, set: Set) {
        let path = grouped("apps/v1", &self.namespace, "statefulsets");
        let (name, object) = set.written();
        self.caller.post(&path, &object).await.ok();
        self.set_is_ready(&name).await;
    }

    /// Waits until all members of a set are ready.
    pub(crate) async fn set_is_ready(&self, set: &str) {
        until(&format!("all of {set} ready"), PATIENCE, async || {
            let stored = self.caller.get(&self.set_path(set)).await.ok();
            let is_ready = stored["status"]["readyReplicas"] == stored["spec"]["replicas"]
                && stored["status"]["observedGeneration"] == stored["metadata"]["generation"];
            if is_ready { Ok(()) } else { Err(format!("{:#}", stored["status"])) }
        })
        .await;
    }

    pub(crate) fn set_path(&self, set: &str) -> String {
        grouped("apps/v1", &self.namespace, &format!("statefulsets/{set}"))
    }

    pub(crate) fn pod_path(&self, pod: &str) -> String {
        core(&self.namespace, &format!("pods/{pod}"))
    }

    pub(crate) async fn pod(&self, pod: &str) -> Value {
        self.caller.get(&self.pod_path(pod)).await.ok()
    }

    /// The identity of a pod.
    pub(crate) async fn uid(&self, pod: &str) -> String {
        text(&self.pod(pod).await, "/metadata/uid").to_owned()
    }

    /// The identities of some pods.
    pub(crate) async fn uids(&self, pods: &[&str]) -> BTreeMap<String, String> {
        let mut uids = BTreeMap::new();
        for pod in pods {
            uids.insert((*pod).to_owned(), self.uid(pod).await);
        }
        uids
    }

    /// The node of a pod, without what all names of the scenario begin with.
    pub(crate) async fn home(&self, pod: &str) -> String {
        let pod = self.pod(pod).await;
        let node = text(&pod, "/spec/nodeName");
        node.strip_prefix(&format!("{}-", self.namespace)).unwrap().to_owned()
    }

    /// The identity of a claim.
    pub(crate) async fn claim(&self, pod: &str) -> String {
        let path = core(&self.namespace, &format!("persistentvolumeclaims/data-{pod}"));
        text(&self.caller.get(&path).await.ok(), "/metadata/uid").to_owned()
    }

    /// Says something of a pod by an annotation, or takes it back.
    pub(crate) async fn annotate(&self, pod: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.caller.merge(&self.pod_path(pod), &patch).await.ok();
    }

    /// Opens the gate that waits for a person.
    pub(crate) async fn release(&self, pod: &str) {
        self.annotate(pod, "example.org/released", Some("yes")).await;
    }

    /// A budget of disruptions that lets nobody with that label go, or anybody.
    pub(crate) async fn disruptions(&self, app: &str, max: u32) {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
            "spec": {"maxUnavailable": max, "selector": {"matchLabels": {"app": app}}},
        });
        let path = grouped("policy/v1", &self.namespace, &format!("poddisruptionbudgets/{app}"));
        let applied =
            self.caller.apply_to(&format!("{path}?fieldManager=scenario&force=true"), &budget).await.ok();
        self.caller
            .until(&path, "is counted", |object| {
                object["status"]["observedGeneration"] == applied["metadata"]["generation"]
            })
            .await;
    }

    // Policies.

    /// Makes a policy for the members of the set `db` that is enforced and quick, and waits until the controller has read it.
    /// What `spec` says goes before that.
    pub(crate) async fn policy(&self, name: &str, spec: Value) -> Value {
        let applied = self.try_policy(name, spec).await.ok();
        self.policy_is(name, "read", |policy| {
            policy["status"]["observedGeneration"] == applied["metadata"]["generation"]
        })
        .await
    }

    pub(crate) async fn try_policy(&self, name: &str, spec: Value) -> Answer {
        let mut whole = json!({
            "mode": "Enforce", "strategy": {"ready": {"minReadySeconds": 0, "timeoutSeconds": 120}},
        });
        if spec["selector"].is_null() {
            whole["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"});
        }
        merge(&mut whole, spec);
        let object = json!({
            "apiVersion": GROUP, "kind": "ReplacementPolicy", "metadata": {"name": name}, "spec": whole,
        });
        let target = format!("{}?fieldManager=scenario&force=true", self.policy_path(name));
        self.caller.apply_to(&target, &object).await
    }

    pub(crate) fn policy_path(&self, name: &str) -> String {
        grouped(GROUP, &self.namespace, &format!("replacementpolicies/{name}"))
    }

    /// Waits until a policy stands as it should.
    pub(crate) async fn policy_is(&self, name: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        until(&format!("policy {name} {what}"), PATIENCE, async || {
            let object = self.caller.get(&self.policy_path(name)).await.ok();
            if good(&object) { Ok(object) } else { Err(format!("{:#}", object["status"])) }
        })
        .await
    }

    /// Waits until a policy says something of itself.
    pub(crate) async fn policy_says(&self, name: &str, kind: &str, status: &str) -> Value {
        let policy = self
            .policy_is(name, &format!("with {kind}={status}"), |policy| {
                condition(policy, kind)["status"] == status
            })
            .await;
        condition(&policy, kind).clone()
    }

    /// Waits until a policy says of a member something with these words.
    pub(crate) async fn held(&self, policy: &str, pod: &str, words: &str) -> Value {
        let policy = self
            .policy_is(policy, &format!("saying of {pod} {words:?}"), |policy| {
                member(policy, pod)["message"].as_str().is_some_and(|message| message.contains(words))
            })
            .await;
        member(&policy, pod).clone()
    }

    // Replacements.

    fn replacements_path(&self) -> String {
        grouped(GROUP, &self.namespace, "replacements")
    }

    /// All replacements of a pod, oldest first.
    pub(crate) async fn replacements(&self, pod: &str) -> Vec<Value> {
        let list = self.caller.get(&self.replacements_path()).await.ok();
        let mut all: Vec<Value> = list["items"].as_array().unwrap().clone();
        all.retain(|object| object["spec"]["target"]["name"] == pod);
        all.sort_by_key(|object| text(object, "/metadata/creationTimestamp").to_owned());
        all
    }

    pub(crate) fn path_of(&self, replacement: &Value) -> String {
        format!("{}/{}", self.replacements_path(), text(replacement, "/metadata/name"))
    }

    /// Waits until the last replacement of a pod is as it should be.
    pub(crate) async fn replacement_is(&self, pod: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        until(&format!("the replacement of {pod} {what}"), PATIENCE, async || {
            let last = self.replacements(pod).await.pop().unwrap_or_default();
            if good(&last) {
                return Ok(last);
            }
            let policies =
                self.caller.get(&grouped(GROUP, &self.namespace, "replacementpolicies")).await.body;
            let told: Vec<&Value> =
                policies["items"].as_array().into_iter().flatten().map(|it| &it["status"]).collect();
            Err(format!("{:#}\nunder {told:#?}", last["status"]))
        })
        .await
    }

    /// Waits until the last replacement of a pod is that far.
    pub(crate) async fn reaches(&self, pod: &str, phase: &str) -> Value {
        self.replacement_is(pod, phase, |last| last["status"]["phase"] == phase).await
    }

    /// Waits until some replacement of a pod has been that far, for however short a moment, and gives it as it was then.
    pub(crate) async fn was(&self, pod: &str, phase: &str) -> Value {
        until(&format!("a replacement of {pod} that was {phase}"), PATIENCE, async || {
            let told = self.chronicle.now();
            let of_it =
                |entry: &&Entry| entry.kind == "Replacement" && entry.object["spec"]["target"]["name"] == pod;
            let found = told.iter().filter(of_it).find(|entry| entry.phase() == phase);
            found.map(|entry| entry.object.clone()).ok_or_else(|| format!("{:?}", self.chronicle.phases(pod)))
        })
        .await
    }

    /// Waits until a pod has been replaced and its successor is ready on another node, and gives that pod.
    pub(crate) async fn is_replaced(&self, pod: &str, before: &str) -> Value {
        self.replacement_is(pod, "done", |last| {
            last["status"]["phase"] == "Done" && last["spec"]["target"]["uid"] == before
        })
        .await;
        let successor = self.pod(pod).await;
        assert_ne!(text(&successor, "/metadata/uid"), before, "{successor}");
        assert_eq!(condition(&successor, "Ready")["status"], "True", "{successor}");
        successor
    }

    /// Nobody did anything about this pod: it is the same, and is not on its way out.
    pub(crate) async fn stays(&self, pod: &str, uid: &str) {
        let now = self.pod(pod).await;
        assert_eq!(text(&now, "/metadata/uid"), uid, "{now}");
        assert!(now["metadata"]["deletionTimestamp"].is_null(), "{now}");
    }

    /// Waits until the chronicle tells of everything that is, and that what is no more is no more.
    pub(crate) async fn caught_up(&self) {
        let paths = [
            ("Pod", core(&self.namespace, "pods")),
            ("Claim", core(&self.namespace, "persistentvolumeclaims")),
            ("Replacement", self.replacements_path()),
        ];
        until("a chronicle that has caught up", PATIENCE, async || {
            for (kind, path) in &paths {
                let list = self.caller.get(path).await.ok();
                let there: BTreeMap<&str, u64> =
                    list["items"].as_array().unwrap().iter().map(stamp).collect();
                let mut told: BTreeMap<String, u64> = BTreeMap::new();
                for entry in self.chronicle.now().iter().filter(|entry| entry.kind == *kind) {
                    if entry.is_gone {
                        told.remove(entry.uid());
                    } else {
                        told.insert(entry.uid().to_owned(), entry.revision);
                    }
                }
                if !told.iter().map(|(uid, revision)| (uid.as_str(), *revision)).eq(there.clone()) {
                    return Err(format!("{kind}: {told:?} and not {there:?}"));
                }
            }
            Ok(())
        })
        .await;
    }

    // What is said about it.

    /// Waits for an event about something of that name, whole.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> Value {
        until(&format!("{reason} about {name}"), PATIENCE, async || {
            let all = self.caller.get(&core(&self.namespace, "events")).await.ok();
            let events = all["items"].as_array().unwrap();
            let about = |event: &&Value| event["involvedObject"]["name"] == name;
            let found = events.iter().filter(about).find(|event| event["reason"] == reason);
            found.cloned().ok_or_else(|| {
                let told = events.iter().map(|event| {
                    format!("{} {}: {}", event["involvedObject"]["name"], event["reason"], event["message"])
                });
                told.collect::<Vec<_>>().join("\n")
            })
        })
        .await
    }

    /// Removes what the scenario has made, so that the next one's controller finds nothing of it.
    pub(crate) async fn clear(&self) {
        for path in [
            grouped(GROUP, &self.namespace, "replacementpolicies"),
            self.replacements_path(),
            grouped("apps/v1", &self.namespace, "statefulsets"),
            grouped("policy/v1", &self.namespace, "poddisruptionbudgets"),
        ] {
            self.caller.delete(&path).await.ok();
        }
        self.hands.order(|orders| orders.lingering.clear());
        self.caller.delete_with(&core(&self.namespace, "pods"), &json!({"gracePeriodSeconds": 0})).await;
        self.caller.delete(&core(&self.namespace, "persistentvolumeclaims")).await;
        let ours = format!("?labelSelector={SCENE}%3D{}", self.namespace);
        for path in ["/api/v1/persistentvolumes", NODES] {
            self.caller.delete(&format!("{path}{ours}")).await;
        }
    }
}

/// What a policy says of one member, or null.
pub(crate) fn member<'p>(policy: &'p Value, pod: &str) -> &'p Value {
    let members = policy["status"]["pods"].as_array();
    members.into_iter().flatten().find(|member| member["name"] == pod).unwrap_or(&Value::Null)
}

/// A condition of a member, or null.
pub(crate) fn said<'m>(member: &'m Value, kind: &str) -> &'m Value {
    let conditions = member["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// A taint that keeps new pods away, without the time at which it was added: `kubectl taint` writes none.
pub(crate) fn no_schedule(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule"})
}

/// A policy's rules for taints, as the FoundationDB operator has them: a key, its seconds, and the seconds after that.
pub(crate) fn taints(rules: &[(&str, i64)], after: i64) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|(key, seconds)| json!({"key": key, "durationInSeconds": seconds})).collect();
    json!({"replacements": {"taintReplacementOptions": rules, "taintReplacementTimeSeconds": after}})
}

/// The same with more beside it.
pub(crate) fn with(mut spec: Value, more: Value) -> Value {
    merge(&mut spec, more);
    spec
}

/// A gate that a person opens by an annotation of the pod.
pub(crate) fn by_hand() -> Value {
    json!([{
        "name": "released", "cel": "pod.metadata.?annotations['example.org/released'].orValue('') == 'yes'",
    }])
}

/// Now, in whole seconds.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn stamp(object: &Value) -> (&str, u64) {
    (text(object, "/metadata/uid"), text(object, "/metadata/resourceVersion").parse().unwrap())
}

/// Puts `more` over `base`, field by field.
fn merge(base: &mut Value, more: Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more,
    }
}
