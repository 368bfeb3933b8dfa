//! What the conditions of a node become when it has fallen silent.

use k8s_openapi::api::core::v1::NodeCondition;

use super::names::{condition, reason};
use super::ready::condition_of;
use crate::condition::whole_second;
use crate::moment::Moment;

const STOPPED_MESSAGE: &str = "Kubelet stopped posting node status.";
const NEVER_MESSAGE: &str = "Kubelet never posted node status.";
const UNKNOWN: &str = "Unknown";

/// The conditions a kubelet answers for. That a node has no network is said by others, who may well be alive.
const KUBELETS: [&str; 4] =
    [condition::READY, condition::MEMORY_PRESSURE, condition::DISK_PRESSURE, condition::PID_PRESSURE];

/// The conditions to write about a node that has fallen silent; those that are unknown already stay as they are.
pub fn silenced(conditions: &[NodeCondition], created: Moment, now: Moment) -> Vec<NodeCondition> {
    let unknown = |kind: &&str| {
        let existing = condition_of(conditions, kind);
        if existing.is_some_and(|condition| condition.status == UNKNOWN) {
            return None;
        }
        let (reason, message, heartbeat) = match existing {
            Some(condition) => (reason::UNKNOWN, STOPPED_MESSAGE, condition.last_heartbeat_time.clone()),
            None => (reason::NEVER_UPDATED, NEVER_MESSAGE, Some(whole_second(created))),
        };
        Some(NodeCondition {
            type_: (*kind).to_owned(),
            status: UNKNOWN.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: heartbeat,
            last_transition_time: Some(whole_second(now)),
        })
    };
    KUBELETS.iter().filter_map(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, conditions, time};
    use super::*;

    fn told(conditions: &[NodeCondition]) -> Vec<(&str, &str, &str)> {
        let word = |text: &'static str| -> &str { text };
        conditions
            .iter()
            .map(|one| {
                assert_eq!(one.status, word("Unknown"));
                (one.type_.as_str(), one.reason.as_deref().unwrap(), one.message.as_deref().unwrap())
            })
            .collect()
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealthUpdateStatus: created long ago, without status".
    #[test]
    fn what_was_never_said_is_unknown_since_the_node_was_made() {
        let written = silenced(&[], at(-60), at(0));
        let never = ("NodeStatusNeverUpdated", "Kubelet never posted node status.");
        assert_eq!(
            told(&written),
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| (kind, never.0, never.1))
        );
        assert!(written.iter().all(|one| one.last_heartbeat_time == Some(time(-60))));
        assert!(written.iter().all(|one| one.last_transition_time == Some(time(0))));
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestMonitorNodeHealthUpdateStatus: status exceeds the grace period".
    #[test]
    fn what_was_said_becomes_unknown_and_keeps_its_heartbeat() {
        let mut before =
            conditions(&[("MemoryPressure", "False"), ("Ready", "True"), ("NetworkUnavailable", "True")]);
        before[1].last_heartbeat_time = Some(time(-70));
        let written = silenced(&before, at(-600), at(0));
        let [ready, memory, disk, pid] = &told(&written)[..] else { panic!("{written:?}") };
        let stopped = "Kubelet stopped posting node status.";
        assert_eq!(*ready, ("Ready", "NodeStatusUnknown", stopped));
        assert_eq!(*memory, ("MemoryPressure", "NodeStatusUnknown", stopped));
        assert_eq!((disk.1, pid.1), ("NodeStatusNeverUpdated", "NodeStatusNeverUpdated"));
        assert_eq!(written[0].last_heartbeat_time, Some(time(-70)));
    }

    #[test]
    fn what_is_unknown_already_is_not_written_again() {
        let known = silenced(&[], at(-60), at(0));
        assert_eq!(silenced(&known, at(-60), at(500)), []);
        let partly = conditions(&[("Ready", "Unknown"), ("DiskPressure", "True")]);
        let kinds: Vec<_> = silenced(&partly, at(-60), at(0)).into_iter().map(|one| one.type_).collect();
        assert_eq!(kinds, ["MemoryPressure", "DiskPressure", "PIDPressure"]);
    }
}
