//! A pod that is being deleted.

use berth_hub_store::{Key, ResourceKey};
use berth_hub_wire::Status;
use serde_json::Value;

use super::{Again, SWEEP_EVERY, Worker};
use crate::keep::pods;
use crate::read::parse;
use crate::resource::meta;

impl Worker {
    pub(super) async fn pod(&self, key: &Key) -> Result<Again, Status> {
        let (Some(entry), Some(resource)) = (self.core.ledger.get(key), self.resource(&key.resource)) else {
            return Ok(None);
        };
        let pod = parse(entry.json());
        if !meta::deleting(&pod) {
            return Ok(None);
        }
        let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        let leases = ResourceKey::new("coordination.k8s.io", "leases");
        let lease =
            self.core.ledger.find(&leases, pods::LEASE_NAMESPACE, node).map(|entry| parse(entry.json()));
        if pods::decide(&pod, lease.as_ref(), self.core.clock.now()) {
            return self.garbage.remove(&resource, &entry, pod).await.map(|()| None);
        }
        // Without a finalizer a kubelet seems to be there; if it stops renewing its lease, the pod is ours to finish.
        Ok(meta::finalizers(&pod).is_empty().then_some(SWEEP_EVERY))
    }
}
