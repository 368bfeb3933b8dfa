//! The controller, and a cluster small enough to answer for: what the loop does with it, without the loop's tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use berth_api::replacement::ReplacementPolicy;
use berth_control::act::{Around, Ask, Reply, Write};
use berth_control::controllers::{Controller, ReplacementController};
use berth_control::due::{Due, Ended};
use berth_control::serve::Metrics;
use berth_control::world::{Finding, Found, Kind, Object, Told, World};
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_sim::nodes::node_name;
use serde_json::{Value, json};

use crate::count::allocated;

const NOW: Moment = Moment::from_second(1_800_000_000);
pub(super) const MEMBERS_PER_POLICY: usize = 10;
const NAMESPACES: usize = 50;
const TAINT: &str = "example.org/disconnected";
/// More decisions for a policy at one moment than any comes to.
const DECISIONS_MAX: usize = 20;

/// How large a cluster is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) policies: usize,
    pub(super) nodes: usize,
    pub(super) tainted: usize,
}

/// What the controller took.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) time: Duration,
    pub(super) allocations: usize,
    pub(super) decisions: usize,
}

pub(super) struct Stage {
    size: Size,
    world: World,
    controller: ReplacementController,
    due: Due,
    metrics: Arc<Metrics>,
    policies: HashMap<ObjectKey, Value>,
    tainted: Vec<bool>,
    revision: u64,
    spent: Spent,
}

impl Stage {
    pub(super) fn new(size: Size) -> anyhow::Result<Self> {
        ensure!(size.nodes * 4 == size.policies * MEMBERS_PER_POLICY, "four members are on a node");
        let metrics = Arc::new(Metrics::default());
        Ok(Self {
            size,
            world: World::default(),
            controller: ReplacementController::new(Arc::clone(&metrics)),
            due: Due::default(),
            metrics,
            policies: HashMap::new(),
            tainted: (0..size.nodes).map(|number| number < size.tainted).collect(),
            revision: 1,
            spent: Spent::default(),
        })
    }

    /// All lists, as the watches begin.
    pub(super) fn hear_everything(&mut self) -> anyhow::Result<Spent> {
        self.spent = Spent::default();
        for kind in [Kind::Freeze, Kind::Replacement, Kind::ReplacementPolicy, Kind::Pod, Kind::Node] {
            self.hear(Told::ListBegins(kind));
            match kind {
                Kind::Node => {
                    for number in 0..self.size.nodes {
                        let node = self.node(number);
                        self.hear(Told::Seen(Object::Node(read(&node)?)));
                    }
                }
                Kind::Pod => {
                    for number in 0..self.size.policies * MEMBERS_PER_POLICY {
                        let pod = self.pod(number / MEMBERS_PER_POLICY, number % MEMBERS_PER_POLICY);
                        self.hear(Told::Seen(Object::Pod(read(&pod)?)));
                    }
                }
                Kind::ReplacementPolicy => {
                    for number in 0..self.size.policies {
                        let policy = policy(number);
                        self.hear(Told::Seen(Object::ReplacementPolicy(read(&policy)?)));
                        self.policies.insert(place(number, &set_name(number)), policy);
                    }
                }
                _ => {}
            }
            self.hear(Told::ListEnds(kind));
        }
        Ok(self.spent)
    }

    /// A node is tainted, or well again, and everybody whom that concerns decides until nothing is left to decide.
    pub(super) fn event(&mut self, number: usize, is_tainted: bool) -> anyhow::Result<Spent> {
        self.revision += 1;
        self.tainted[number] = is_tainted;
        let node = read(&self.node(number))?;
        self.spent = Spent::default();
        self.hear(Told::Seen(Object::Node(node)));
        let heard = self.spent;
        let decided = self.settle()?;
        Ok(Spent {
            time: heard.time + decided.time,
            allocations: heard.allocations + decided.allocations,
            decisions: decided.decisions,
        })
    }

    /// Decides, answers and writes until nothing is due.
    pub(super) fn settle(&mut self) -> anyhow::Result<Spent> {
        self.spent = Spent::default();
        loop {
            let subject = self.counted(|stage| {
                stage.controller.advance(NOW, &stage.world, &mut stage.due);
                stage.due.pop(NOW)
            });
            let Some(subject) = subject else { return Ok(self.spent) };
            let verdict = self.counted(|stage| stage.controller.decide(&subject, &stage.world, NOW));
            self.spent.decisions += 1;
            ensure!(self.spent.decisions < DECISIONS_MAX * self.size.policies, "it does not come to rest");
            self.due.wake(&subject, verdict.wake);
            if verdict.writes.is_empty() && verdict.notes.is_empty() {
                self.due.end(&subject, Ended::Done, NOW);
                continue;
            }
            self.due.begin(&subject);
            for write in verdict.writes {
                self.carry_out(&subject, write)?;
            }
            self.counted(|stage| {
                stage.controller.ended(&subject, Ended::Done, NOW, &stage.world, &mut stage.due);
            });
            self.due.end(&subject, Ended::Done, NOW);
        }
    }

    /// Shows that what is measured is what it is measured for: all members on tainted nodes are due, and held by the trial or behind
    /// another of their workload that would lose its volumes first.
    pub(super) fn prove(&self) -> anyhow::Result<()> {
        let (mut blocked, mut matched) = (0, 0);
        for policy in self.policies.values() {
            let status = &policy["status"];
            blocked += status["counts"]["blocked"].as_u64().unwrap_or_default();
            matched += status["counts"]["matched"].as_u64().unwrap_or_default();
            for pod in status["pods"].as_array().into_iter().flatten() {
                let told = pod["message"].as_str().unwrap_or_default();
                ensure!(["on trial", "another member"].iter().any(|why| told.contains(why)), "{pod}");
            }
        }
        let wanted = (self.size.tainted * 4, self.size.policies * MEMBERS_PER_POLICY);
        ensure!((blocked, matched) == (wanted.0 as u64, wanted.1 as u64), "{blocked} of {matched} are due");
        let line = format!("berth_replacement_members{{state=\"matched\"}} {matched}");
        ensure!(self.metrics.text().lines().any(|told| told == line), "never seen: {line}");
        Ok(())
    }

    /// Does what the controller does, and counts what it takes.
    fn counted<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let ((done, time), taken) = allocated(|| {
            let begun = Instant::now();
            let done = work(self);
            (done, begun.elapsed())
        });
        self.spent.time += time;
        self.spent.allocations += taken.times;
        done
    }

    fn hear(&mut self, told: Told) {
        for change in self.world.hear(told) {
            self.counted(|stage| stage.controller.observe(&change, &stage.world, &mut stage.due));
        }
    }

    fn carry_out(&mut self, subject: &ObjectKey, write: Write) -> anyhow::Result<()> {
        match write {
            Write::Ask { asks, asker, .. } => {
                let replies: anyhow::Result<Vec<_>> =
                    asks.into_iter().map(|ask| self.reply(&ask).map(|reply| (ask, reply))).collect();
                let found = Found { asker, subject: subject.clone(), finding: Finding::Replies(replies?) };
                self.counted(|stage| stage.controller.found(found));
            }
            Write::Patch { target, patch, .. } if target.kind == Kind::ReplacementPolicy => {
                self.revision += 1;
                let stored = self.policies.get_mut(&target.key).context("nobody has made this policy")?;
                merge(stored, &patch);
                stored["metadata"]["resourceVersion"] = json!(self.revision.to_string());
                let policy: Arc<ReplacementPolicy> = read(stored)?;
                self.hear(Told::Answered(Object::ReplacementPolicy(policy)));
            }
            other => bail!("a policy on trial does nothing, and this is something: {other}"),
        }
        Ok(())
    }

    fn reply(&self, ask: &Ask) -> anyhow::Result<Reply> {
        Ok(match ask {
            Ask::May { .. } => Reply::Yes,
            Ask::Member { key, .. } => {
                let (set, ordinal) = key.name.rsplit_once('-').context("members have ordinals")?;
                let number: usize = set.trim_start_matches("db-").parse()?;
                let ordinal: usize = ordinal.parse()?;
                let object = |value: Value| Reply::Object(Box::new(value));
                let (claim, volume) = (format!("data-{}", key.name), format!("pv-{}", key.name));
                Reply::Member(Box::new(Around {
                    pod: object(self.pod(number, ordinal)),
                    node: object(self.node(self.node_of(number, ordinal))),
                    owner: object(set_of(number)),
                    owner_path: None,
                    claims: vec![(
                        claim.clone(),
                        object(json!({
                            "metadata": {"name": claim, "uid": claim, "resourceVersion": "1"},
                            "spec": {"storageClassName": "local", "volumeName": volume},
                        })),
                    )],
                    volumes: vec![(
                        volume.clone(),
                        object(json!({
                            "metadata": {"name": volume, "resourceVersion": "1"},
                            "spec": {"local": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Delete"},
                        })),
                    )],
                }))
            }
            other => bail!("nobody was to ask this: {other:?}"),
        })
    }

    /// The node of a member: those of one workload are far from each other.
    fn node_of(&self, policy: usize, ordinal: usize) -> usize {
        (policy + ordinal * (self.size.nodes / MEMBERS_PER_POLICY)) % self.size.nodes
    }

    fn node(&self, number: usize) -> Value {
        let name = node_name(number);
        let taints = if self.tainted[number] {
            json!([{"key": TAINT, "effect": "NoSchedule", "timeAdded": NOW.plus_seconds(-2_000).to_string()}])
        } else {
            json!([])
        };
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "KubeletSays", "message": "kubelet says so",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let room = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"});
        json!({
            "metadata": {
                "name": name, "uid": format!("node-{number}"), "resourceVersion": self.revision.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": format!("z{}", number % 3),
                },
            },
            "spec": {"podCIDR": "10.0.0.0/24", "taints": taints},
            "status": {
                "capacity": room, "allocatable": room,
                "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"), condition("Ready", "True")],
            },
        })
    }

    fn pod(&self, policy: usize, ordinal: usize) -> Value {
        let set = set_name(policy);
        let name = format!("{set}-{ordinal}");
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({
            "metadata": {
                "name": name, "namespace": namespace(policy), "uid": format!("{name}-uid"), "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {
                    "app": set, "controller-revision-hash": "a", "statefulset.kubernetes.io/pod-name": name,
                    "apps.kubernetes.io/pod-index": ordinal.to_string(),
                },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": format!("{set}-uid"),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "nodeName": node_name(self.node_of(policy, ordinal)), "terminationGracePeriodSeconds": 30, "priority": 0,
                "serviceAccountName": "default", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                "containers": [{
                    "name": "main", "image": "registry.example.com/db:1.2.3", "imagePullPolicy": "IfNotPresent",
                    "env": [{"name": "PORT", "value": "8080"}, {"name": "LOG", "value": "info"}],
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                }],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{name}")}}],
            },
            "status": {
                "phase": "Running", "podIP": "10.0.0.7", "hostIP": "192.0.2.7", "qosClass": "Burstable",
                "conditions": [condition("PodScheduled"), condition("Ready"), condition("ContainersReady")],
            },
        })
    }
}

fn set_name(number: usize) -> String {
    format!("db-{number}")
}

fn namespace(number: usize) -> String {
    format!("team-{:02}", number % NAMESPACES)
}

fn place(number: usize, name: &str) -> ObjectKey {
    ObjectKey::new(&namespace(number), name)
}

fn policy(number: usize) -> Value {
    let name = set_name(number);
    json!({
        "metadata": {
            "name": name, "namespace": namespace(number), "uid": format!("{name}-policy"), "resourceVersion": "1",
            "generation": 1,
        },
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
            "mode": "DryRun",
            "triggers": {"taints": [
                {"key": "example.org/maintenance", "durationSeconds": 7_200},
                {"key": TAINT, "durationSeconds": 1_200},
                {"key": "*", "durationSeconds": 3_600},
            ]},
            "budget": {"maxConcurrent": MEMBERS_PER_POLICY, "breaker": {"maxAffectedFaultDomains": "100%"}},
            "strategy": {"volumes": {"policy": "DeleteNodeLocal"}},
        },
    })
}

fn set_of(number: usize) -> Value {
    let name = set_name(number);
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace(number), "uid": format!("{name}-uid"), "resourceVersion": "1", "generation": 1},
        "spec": {
            "replicas": MEMBERS_PER_POLICY, "selector": {"matchLabels": {"app": name}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
        },
        "status": {
            "observedGeneration": 1, "replicas": MEMBERS_PER_POLICY, "readyReplicas": MEMBERS_PER_POLICY,
            "updatedReplicas": MEMBERS_PER_POLICY, "currentRevision": "a", "updateRevision": "a",
        },
    })
}

fn read<T: for<'de> serde::Deserialize<'de>>(object: &Value) -> anyhow::Result<Arc<T>> {
    Ok(Arc::new(serde_json::from_str(&object.to_string())?))
}

/// Puts a merge patch into an object.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            object.as_object_mut().map(|object| object.remove(name));
        } else {
            merge(&mut object[name.as_str()], value);
        }
    }
}
