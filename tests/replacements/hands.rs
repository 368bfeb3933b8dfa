//! Somebody who plays the scheduler and all kubelets of a scenario: pods get nodes, volumes and readiness, and end when told to.
//!
//! Owns what neither bed has. A node is given by taints, cordons and the places of volumes, one with few pods first; a claim
//! without a volume gets a new one on the node, which cannot leave it. On Kubernetes its binder binds the two; on the hub, which
//! has none, [`sets`](crate::sets) does. It looks every so often and does what is missing, so it can be late and never wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request};
use jiff::Timestamp;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::sleep};

use berth_tests::caller::condition;

use crate::{scene::SCENE, sets};

/// How often they look.
const LOOK: Duration = Duration::from_millis(100);

/// What a scenario tells them.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Pods that are not ready whatever they do.
    pub(crate) unready: BTreeSet<String>,
    /// Pods that do not end although they should.
    pub(crate) lingering: BTreeSet<String>,
    /// Pods that are put on this node the next time, wherever their volume is, as by a scheduler that saw an older claim.
    pub(crate) astray: BTreeMap<String, String>,
    /// What becomes of volumes whose claim is deleted; kept unless given.
    pub(crate) reclaim: Option<&'static str>,
}

/// All that they look at.
pub(crate) struct Sight {
    pub(crate) pods: Vec<Value>,
    pub(crate) claims: Vec<Value>,
    pub(crate) volumes: Vec<Value>,
    pub(crate) nodes: Vec<Value>,
    pub(crate) sets: Vec<Value>,
}

/// They work until they are dropped.
pub(crate) struct Hands {
    orders: Arc<Mutex<Orders>>,
    worker: JoinHandle<()>,
}

/// What they work with.
pub(crate) struct Tools {
    client: Client,
    pub(crate) namespace: String,
    orders: Arc<Mutex<Orders>>,
}

impl Hands {
    /// They do what no controller does here; `is_alone` says that there is none at all.
    pub(crate) fn at_work(config: &Config, namespace: &str, is_alone: bool) -> Self {
        let orders = Arc::new(Mutex::new(Orders::default()));
        let tools = Tools {
            client: Client::try_from(config.clone()).unwrap(),
            namespace: namespace.to_owned(),
            orders: Arc::clone(&orders),
        };
        let worker = tokio::spawn(async move {
            loop {
                if let Some(sight) = tools.look().await {
                    if is_alone {
                        sets::tend(&tools, &sight).await;
                    }
                    tools.schedule(&sight).await;
                    tools.tend(&sight).await;
                }
                sleep(LOOK).await;
            }
        });
        Self { orders, worker }
    }

    /// Tells them something.
    pub(crate) fn order(&self, tell: impl FnOnce(&mut Orders)) {
        tell(&mut self.orders.lock().unwrap());
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

/// A field that is text; empty where there is none.
fn at<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    at(object, "/metadata/name")
}

pub(crate) fn uid(object: &Value) -> &str {
    at(object, "/metadata/uid")
}

pub(crate) fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    !is_leaving(pod) && condition(pod, "Ready")["status"] == "True"
}

/// The names of a pod's claims.
pub(crate) fn claims_of(pod: &Value) -> Vec<&str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str()).collect()
}

/// The node that a volume cannot leave.
fn place_of(volume: &Value) -> &str {
    at(volume, "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0")
}

/// Whether a node takes a pod that is new.
fn takes(node: &Value, pod: &Value) -> bool {
    let tolerations = pod["spec"]["tolerations"].as_array();
    let tolerated = |taint: &Value| {
        tolerations.into_iter().flatten().any(|toleration| {
            let has = |field: &str| toleration[field].as_str().is_some_and(|text| !text.is_empty());
            (!has("key") || toleration["key"] == taint["key"])
                && (!has("effect") || toleration["effect"] == taint["effect"])
                && (toleration["operator"] == "Exists" || toleration["value"] == taint["value"])
        })
    };
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    node["spec"]["unschedulable"] != true
        && taints.all(|taint| taint["effect"] == "PreferNoSchedule" || tolerated(taint))
}

impl Tools {
    async fn look(&self) -> Option<Sight> {
        let here = format!("/api/v1/namespaces/{}", self.namespace);
        let ours = format!("?labelSelector={SCENE}%3D{}", self.namespace);
        let (pods, claims, volumes, nodes, sets) = (
            format!("{here}/pods"),
            format!("{here}/persistentvolumeclaims"),
            format!("/api/v1/persistentvolumes{ours}"),
            format!("/api/v1/nodes{ours}"),
            format!("/apis/apps/v1/namespaces/{}/statefulsets", self.namespace),
        );
        let (pods, claims, volumes, nodes, sets) = futures::join!(
            self.list(&pods),
            self.list(&claims),
            self.list(&volumes),
            self.list(&nodes),
            self.list(&sets)
        );
        Some(Sight { pods: pods?, claims: claims?, volumes: volumes?, nodes: nodes?, sets: sets? })
    }

    async fn list(&self, path: &str) -> Option<Vec<Value>> {
        let list: Value = self.client.request(Request::get(path).body(Vec::new()).ok()?).await.ok()?;
        Some(list["items"].as_array()?.clone())
    }

    /// A write; what comes too late or meets somebody else's is seen at the next look.
    pub(crate) async fn write(&self, method: Method, path: &str, body: &Value) -> Option<Value> {
        let kind = match method {
            Method::PATCH => "application/strategic-merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request(request.body(body.to_string().into_bytes()).ok()?).await.ok()
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// Pods without a node get one.
    async fn schedule(&self, sight: &Sight) {
        let mut load: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in &sight.pods {
            *load.entry(at(pod, "/spec/nodeName")).or_default() += 1;
        }
        let waiting = |pod: &&Value| at(pod, "/spec/nodeName").is_empty() && !is_leaving(pod);
        for pod in sight.pods.iter().filter(waiting) {
            let Some(claims) = claims_there(sight, pod) else { continue };
            let mut fit: Vec<&str> = sight.nodes.iter().filter(|node| takes(node, pod)).map(name).collect();
            for claim in &claims {
                if let Some(volume) = volume_of(sight, claim) {
                    fit.retain(|node| *node == place_of(volume));
                }
            }
            let Some(node) = fit.into_iter().min_by_key(|node| (load.get(node).copied(), *node)) else {
                continue;
            };
            *load.entry(node).or_default() += 1;
            let mut is_bound = true;
            for claim in &claims {
                is_bound &= claim["status"]["phase"] == "Bound";
                if volume_of(sight, claim).is_none() {
                    self.provide(claim, node).await;
                }
            }
            if is_bound {
                let stray = self.orders.lock().unwrap().astray.get(name(pod)).cloned();
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name(pod), "uid": uid(pod)},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": stray.as_deref().unwrap_or(node)},
                });
                let path = self.path(&format!("pods/{}/binding", name(pod)));
                if self.write(Method::POST, &path, &binding).await.is_some() {
                    self.orders.lock().unwrap().astray.remove(name(pod));
                }
            }
        }
    }

    /// Makes a volume on a node for a claim.
    async fn provide(&self, claim: &Value, node: &str) {
        let reclaim = self.orders.lock().unwrap().reclaim.unwrap_or("Retain");
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            // By the claim's identity: a claim that is made anew gets another.
            "metadata": {"name": format!("v-{}", uid(claim)), "labels": {SCENE: self.namespace}},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "persistentVolumeReclaimPolicy": reclaim, "local": {"path": "/data"},
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.namespace,
                    "name": name(claim), "uid": uid(claim),
                },
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
                ]}]}},
            },
        });
        self.write(Method::POST, "/api/v1/persistentvolumes", &volume).await;
    }

    /// Pods with a node run there if their volumes are there too, and those that were told to go end.
    async fn tend(&self, sight: &Sight) {
        for pod in sight.pods.iter().filter(|pod| !at(pod, "/spec/nodeName").is_empty()) {
            let path = self.path(&format!("pods/{}", name(pod)));
            let (is_unready, lingers) = {
                let orders = self.orders.lock().unwrap();
                (orders.unready.contains(name(pod)), orders.lingering.contains(name(pod)))
            };
            if is_leaving(pod) {
                // Also where the node is no more: somebody always sweeps up there.
                if !lingers {
                    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid(pod)}});
                    self.write(Method::DELETE, &path, &options).await;
                }
                continue;
            }
            let node = at(pod, "/spec/nodeName");
            let is_there =
                |claim: &&Value| volume_of(sight, claim).is_none_or(|volume| place_of(volume) == node);
            let lives = sight.nodes.iter().any(|known| name(known) == node)
                && claims_there(sight, pod).is_none_or(|claims| claims.iter().all(is_there));
            let wanted = if is_unready { "False" } else { "True" };
            if lives && condition(pod, "Ready")["status"] != wanted {
                let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                let status = json!({
                    "phase": "Running", "startTime": now,
                    "conditions": [{"type": "Ready", "status": wanted, "lastTransitionTime": now}],
                });
                // Of this pod, and of no other that has its name by now.
                let patch = json!({"metadata": {"uid": uid(pod)}, "status": status});
                self.write(Method::PATCH, &format!("{path}/status"), &patch).await;
            }
        }
    }
}

/// The claims of a pod; nothing while one is missing or on its way out.
fn claims_there<'s>(sight: &'s Sight, pod: &Value) -> Option<Vec<&'s Value>> {
    let find = |wanted: &str| sight.claims.iter().find(|claim| name(claim) == wanted && !is_leaving(claim));
    claims_of(pod).into_iter().map(find).collect()
}

/// The volume that was made for a claim.
fn volume_of<'s>(sight: &'s Sight, claim: &Value) -> Option<&'s Value> {
    sight.volumes.iter().find(|volume| at(volume, "/spec/claimRef/uid") == uid(claim))
}
