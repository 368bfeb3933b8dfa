//! A scenario's part of a cluster: a namespace and nodes of its own, what is done to them, and what is waited for.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use berth_bed::Bed;
use berth_tests::{
    caller::{Answer, Caller, core, text},
    waiting::until,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    ground::Contestant,
    pod::Pod,
    record::{Fate, Record},
    taint::no_execute,
};

/// How long a controller may take for anything. It takes milliseconds; a machine that compiles beside it takes more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How much later than its moment something may be seen to happen, on a busy machine.
pub(crate) const SLACK: SignedDuration = SignedDuration::from_millis(2_500);

const NODES: &str = "/api/v1/nodes";
const POLICIES: &str = "/apis/berth.dev/v1alpha1/evictionpolicies";

/// When a taint began to count: whoever reads its time counts from the one, whoever sees it come from somewhere between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Nobody may count from before this.
    pub(crate) from: Timestamp,
    /// The API server had it by then.
    pub(crate) to: Timestamp,
}

/// A scenario's handle on the cluster.
pub(crate) struct Scene {
    pub(crate) caller: Caller,
    pub(crate) contestant: Contestant,
    /// Also what every node's name begins with.
    pub(crate) namespace: String,
    /// For whoever needs connections of their own.
    pub(crate) config: kube::Config,
    record: Record,
    sentinels: AtomicU32,
}

impl Scene {
    pub(crate) async fn new(bed: &Bed, contestant: Contestant) -> Self {
        let namespace = bed.namespace("scene").await;
        let config = bed.config();
        let record = Record::of(config.clone(), &namespace);
        let sentinels = AtomicU32::new(0);
        Self { caller: Caller::admin(bed), contestant, namespace, config, record, sentinels }
    }

    /// Takes connections of its own.
    pub(crate) fn reconnect(&mut self, bed: &Bed) {
        self.caller = Caller::admin(bed);
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.contestant.is_ours()
    }

    /// The whole name of a node.
    pub(crate) fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.namespace)
    }

    pub(crate) fn node_path(&self, node: &str) -> String {
        format!("{NODES}/{}", self.name(node))
    }

    pub(crate) fn pod_path(&self, pod: &str) -> String {
        core(&self.namespace, &format!("pods/{pod}"))
    }

    // Nodes.

    /// Makes a node without taints.
    pub(crate) async fn node(&self, node: &str) {
        self.tainted_node(node, &[]).await;
    }

    pub(crate) async fn tainted_node(&self, node: &str, taints: &[Value]) {
        self.node_of(node, &json!({}), taints).await;
    }

    /// Makes a node with labels.
    pub(crate) async fn node_of(&self, node: &str, labels: &Value, taints: &[Value]) -> Value {
        let object = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name(node), "labels": labels},
            "spec": {"taints": taints},
        });
        self.caller.post(NODES, &object).await.ok()
    }

    /// Gives a node these taints and no others.
    pub(crate) async fn taint(&self, node: &str, taints: &[Value]) {
        self.caller.merge(&self.node_path(node), &json!({"spec": {"taints": taints}})).await.ok();
    }

    /// The same, and from when on they count: all of them are new.
    pub(crate) async fn taint_now(&self, node: &str, taints: &[Value]) -> Clock {
        let now = Timestamp::now();
        let written = |taint: &Value| Some(taint["timeAdded"].as_str()?.parse::<Timestamp>().unwrap());
        let from = taints.iter().filter_map(written).fold(now, Timestamp::min);
        self.taint(node, taints).await;
        Clock { from, to: Timestamp::now() }
    }

    pub(crate) async fn untaint(&self, node: &str) {
        self.taint(node, &[]).await;
    }

    /// The taints of a node, as `key:Effect`, in order of their names.
    pub(crate) async fn taints(&self, node: &str) -> Vec<String> {
        taints_of(&self.caller.get(&self.node_path(node)).await.ok())
    }

    // Pods.

    pub(crate) async fn pod(&self, pod: Pod) -> Value {
        self.try_pod(pod).await.ok()
    }

    pub(crate) async fn try_pod(&self, pod: Pod) -> Answer {
        let node = pod.node.as_deref().map(|node| self.name(node));
        self.caller.post(&core(&self.namespace, "pods"), &pod.object(node.as_deref())).await
    }

    /// Makes many pods at once.
    pub(crate) async fn pods(&self, pods: impl IntoIterator<Item = Pod>) {
        futures::future::join_all(pods.into_iter().map(|pod| self.pod(pod))).await;
    }

    /// Posts a pod's status, as its kubelet does.
    pub(crate) async fn report(&self, pod: &str, status: &Value) -> Value {
        self.caller.merge(&format!("{}/status", self.pod_path(pod)), &json!({"status": status})).await.ok()
    }

    /// Gives a pod these tolerations; the API server lets them grow, and lets their seconds change.
    pub(crate) async fn tolerate(&self, pod: &str, tolerations: &[Value]) {
        // What admission has added must stay.
        let stored = self.caller.get(&self.pod_path(pod)).await.ok();
        let mut all = tolerations.to_vec();
        let keys: Vec<&Value> = tolerations.iter().map(|toleration| &toleration["key"]).collect();
        let others = stored["spec"]["tolerations"].as_array().into_iter().flatten();
        all.extend(others.filter(|other| !keys.contains(&&other["key"])).cloned());
        self.caller.merge(&self.pod_path(pod), &json!({"spec": {"tolerations": all}})).await.ok();
    }

    /// Binds a pod to a node, as a scheduler does.
    pub(crate) async fn bind(&self, pod: &str, node: &str) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.name(node)},
        });
        self.caller.post(&format!("{}/binding", self.pod_path(pod)), &binding).await.ok();
    }

    // Policies.

    /// Sees to it that EvictionPolicies are served. Controllers that run already find out by themselves.
    pub(crate) async fn serves_policies(&self) {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds/evictionpolicies.berth.dev.yaml");
        let definition = std::fs::read_to_string(file).unwrap();
        self.caller.apply(&definition).await;
        self.caller.until(POLICIES, "is served", |list| list["items"].is_array()).await;
    }

    /// Makes a policy for pods of the scenario with a label, and waits until the controller has read it.
    pub(crate) async fn policy(&self, name: &str, app: &str, spec: Value) -> Value {
        let mut spec = spec;
        spec["pods"]["namespaces"] = json!([self.namespace]);
        spec["pods"]["selector"] = json!({"matchLabels": {"app": app}});
        self.policy_of(name, spec).await
    }

    /// The same for any pods.
    pub(crate) async fn policy_of(&self, name: &str, spec: Value) -> Value {
        let object = json!({
            "apiVersion": "berth.dev/v1alpha1", "kind": "EvictionPolicy",
            "metadata": {"name": self.name(name)}, "spec": spec,
        });
        let target = format!("{}?fieldManager=scenario&force=true", self.policy_path(name));
        let made = self.caller.apply_to(&target, &object).await.ok();
        self.policy_is(name, "read", |policy| {
            policy["status"]["observedGeneration"] == made["metadata"]["generation"]
        })
        .await
    }

    pub(crate) fn policy_path(&self, name: &str) -> String {
        format!("{POLICIES}/{}", self.name(name))
    }

    /// Waits until a policy stands as it should.
    pub(crate) async fn policy_is(&self, name: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{name} {what}"), PATIENCE, async || {
            let object = self.caller.get(&self.policy_path(name)).await.ok();
            if good(&object) { Ok(object) } else { Err(format!("{:#}", object["status"])) }
        })
        .await
    }

    // What became of them.

    /// The fate of the pod that bears the name, or of the last one that did.
    pub(crate) fn fate(&self, pod: &str) -> Option<Fate> {
        let fates = self.record.now();
        let named = fates.into_values().filter(|fate| fate.name == pod);
        named.max_by_key(|fate| !fate.is_gone)
    }

    /// Waits until a pod is on its way out, or gone, and tells when that was seen.
    pub(crate) async fn leaves(&self, pod: &str) -> Timestamp {
        self.leaves_within(pod, PATIENCE).await.left.expect("a pod that left did at some time")
    }

    pub(crate) async fn leaves_within(&self, pod: &str, patience: Duration) -> Fate {
        self.record
            .until(&format!("{pod} leaving"), patience, |fates| {
                fates.values().find(|fate| fate.name == pod && fate.left.is_some()).cloned()
            })
            .await
    }

    /// Waits until a pod leaves, and holds that against what it was given.
    pub(crate) async fn leaves_after(&self, pod: &str, clock: Clock, seconds: i64) {
        let left = self.leaves(pod).await;
        let given = SignedDuration::from_secs(seconds);
        let (due, late) = (clock.from + given, clock.to + given + SLACK);
        assert!(left >= due, "{pod} left {:#} early", due.duration_since(left));
        assert!(left <= late, "{pod} left {:#} late", left.duration_since(due));
    }

    /// Waits until all these pods left.
    pub(crate) async fn all_leave(&self, pods: &[&str]) {
        for pod in pods {
            self.leaves(pod).await;
        }
    }

    /// Waits until as many pods whose name begins so left, and gives the times at which they did, in order.
    pub(crate) async fn so_many_leave(
        &self,
        prefix: &str,
        count: usize,
        patience: Duration,
    ) -> Vec<Timestamp> {
        let mut times = self
            .record
            .until(&format!("{count} of {prefix} leaving"), patience, |fates| {
                let left = fates.values().filter(|fate| fate.name.starts_with(prefix));
                let left: Vec<Timestamp> = left.filter_map(|fate| fate.left).collect();
                (left.len() >= count).then_some(left)
            })
            .await;
        times.sort();
        times
    }

    /// How many pods whose name begins so have left so far.
    pub(crate) fn so_many_left(&self, prefix: &str) -> usize {
        let fates = self.record.now();
        fates.values().filter(|fate| fate.name.starts_with(prefix) && fate.left.is_some()).count()
    }

    /// Nobody did anything about these pods so far.
    #[track_caller]
    pub(crate) fn stay(&self, pods: &[&str]) {
        for pod in pods {
            let fate = self.fate(pod).unwrap_or_else(|| panic!("{pod} was never seen"));
            assert!(fate.is_untouched(), "{pod} should have been left alone: {fate:#?}");
        }
    }

    /// Returns when everything that was said before has been heard and acted on, as far as one can see: pods that come to a
    /// tainted node after it leave, one after the other.
    pub(crate) async fn passes(&self) {
        let number = self.sentinels.fetch_add(1, Ordering::Relaxed);
        let node = format!("sentinel{number}");
        self.tainted_node(&node, &[no_execute("sentinel")]).await;
        for turn in 0..2 {
            let pod = format!("sentinel{number}-{turn}");
            self.pod(Pod::named(&pod).on(&node)).await;
            self.leaves(&pod).await;
        }
        self.caller.delete(&self.node_path(&node)).await.ok();
    }

    /// The same by the node itself: for who is on it.
    pub(crate) async fn passes_on(&self, node: &str) {
        let number = self.sentinels.fetch_add(1, Ordering::Relaxed);
        for turn in 0..2 {
            let pod = format!("sentinel{number}-{turn}");
            self.pod(Pod::named(&pod).on(node)).await;
            self.leaves(&pod).await;
        }
    }

    // What is said about it.

    /// The events about something of that name, oldest first, as reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let all = self.caller.get("/api/v1/events").await.ok();
        let about = all["items"].as_array().unwrap().iter();
        let mut about: Vec<&Value> = about.filter(|event| event["involvedObject"]["name"] == name).collect();
        about.sort_by_key(|event| text(event, "/metadata/creationTimestamp").to_owned());
        let field = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
        about.into_iter().map(|event| (field(event, "reason"), field(event, "message"))).collect()
    }

    /// Waits for an event, whole.
    pub(crate) async fn event(&self, name: &str, reason: &str, message: &str) -> Value {
        until(&format!("{reason} about {name}"), PATIENCE, async || {
            let all = self.caller.get("/api/v1/events").await.ok();
            let events = all["items"].as_array().unwrap();
            let found = events.iter().find(|event| {
                event["involvedObject"]["name"] == name
                    && event["reason"] == reason
                    && event["message"].as_str().is_some_and(|text| text.starts_with(message))
            });
            match found {
                Some(event) => Ok(event.clone()),
                None => Err(format!("{:?}", self.events(name).await)),
            }
        })
        .await
    }

    /// Waits until a node is as it should be.
    pub(crate) async fn node_is(&self, node: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{node} {what}"), PATIENCE, async || {
            let object = self.caller.get(&self.node_path(node)).await.ok();
            if good(&object) {
                Ok(object)
            } else {
                Err(format!("{:#}", json!([object["spec"], object["status"]])))
            }
        })
        .await
    }

    /// Waits until a node has just these taints.
    pub(crate) async fn carries(&self, node: &str, taints: &[&str]) -> Value {
        self.node_is(node, &format!("carrying {taints:?}"), |node| taints_of(node) == taints).await
    }

    /// Removes the nodes of the scenario and what is left of its pods.
    pub(crate) async fn clear(&self) {
        let options = json!({"gracePeriodSeconds": 0});
        let pods = core(&self.namespace, "pods");
        let held = self.caller.get(&pods).await.ok();
        for pod in held["items"].as_array().into_iter().flatten() {
            if !pod["metadata"]["finalizers"].is_null() {
                let path = self.pod_path(text(pod, "/metadata/name"));
                self.caller.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
            }
        }
        self.caller.delete_with(&pods, &options).await;
        let policies = self.caller.get(POLICIES).await.body;
        for policy in policies["items"].as_array().into_iter().flatten() {
            let name = text(policy, "/metadata/name");
            if name.starts_with(&format!("{}-", self.namespace)) {
                self.caller.delete(&format!("{POLICIES}/{name}")).await;
            }
        }
        let nodes = self.caller.get(NODES).await.ok();
        for node in nodes["items"].as_array().into_iter().flatten() {
            let name = text(node, "/metadata/name");
            if name.starts_with(&format!("{}-", self.namespace)) {
                self.caller.delete(&format!("{NODES}/{name}")).await;
            }
        }
    }
}

/// The taints of a node, as `key:Effect`, in order of their names.
pub(crate) fn taints_of(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array();
    let taints = taints.into_iter().flatten();
    let mut taints: Vec<String> =
        taints.map(|taint| format!("{}:{}", text(taint, "/key"), text(taint, "/effect"))).collect();
    taints.sort();
    taints
}
