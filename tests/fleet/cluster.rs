//! A cluster as a scenario describes it.

use serde_json::{Map, Value, json};

/// What to make of a cluster; short names are made unique by the fleet it joins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) set: Option<String>,
    pub(crate) labels: Map<String, Value>,
    pub(crate) spec: Map<String, Value>,
    pub(crate) status: Map<String, Value>,
}

impl Cluster {
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// In the exclusive set of that short name.
    pub(crate) fn of(mut self, set: &str) -> Self {
        self.set = Some(set.to_owned());
        self
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), json!(value));
        self
    }

    pub(crate) fn claim(mut self, name: &str, value: &str) -> Self {
        let claims = self.status.entry("clusterClaims").or_insert_with(|| json!([]));
        claims.as_array_mut().unwrap().push(json!({"name": name, "value": value}));
        self
    }

    pub(crate) fn taint(mut self, taint: &Value) -> Self {
        let taints = self.spec.entry("taints").or_insert_with(|| json!([]));
        taints.as_array_mut().unwrap().push(taint.clone());
        self
    }

    /// Of 10 processors and 100 bytes, so many can be had.
    pub(crate) fn allocatable(mut self, cpu: u32, memory: u32) -> Self {
        let amounts = |cpu: u32, memory: u32| json!({"cpu": cpu.to_string(), "memory": memory.to_string()});
        self.status.insert("allocatable".into(), amounts(cpu, memory));
        self.status.insert("capacity".into(), amounts(10, 100));
        self
    }

    /// The hub lets its agent in, which must renew its lease so often.
    pub(crate) fn accepted(mut self, lease_seconds: u32) -> Self {
        self.spec.insert("hubAcceptsClient".into(), json!(true));
        self.spec.insert("leaseDurationSeconds".into(), json!(lease_seconds));
        self.condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted")
    }

    pub(crate) fn available(self, status: &str) -> Self {
        self.condition("ManagedClusterConditionAvailable", status, "Scenario")
    }

    fn condition(mut self, kind: &str, status: &str, reason: &str) -> Self {
        let conditions = self.status.entry("conditions").or_insert_with(|| json!([]));
        conditions.as_array_mut().unwrap().push(says(kind, status, reason));
        self
    }
}

/// A condition that turned now.
pub(crate) fn says(kind: &str, status: &str, reason: &str) -> Value {
    let now = whole(jiff::Timestamp::now());
    json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": now})
}

/// A taint that was added then.
pub(crate) fn taint(key: &str, value: &str, effect: &str, added: jiff::Timestamp) -> Value {
    json!({"key": key, "value": value, "effect": effect, "timeAdded": whole(added)})
}

/// A time as metadata tells it, in whole seconds.
pub(crate) fn whole(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second()).unwrap().to_string()
}
