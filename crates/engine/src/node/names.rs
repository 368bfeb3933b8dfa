//! The names Kubernetes gives to what a node says and carries.

/// Keys of the taints that follow from a node's conditions.
pub mod taint {
    /// The node says it is not ready.
    pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
    /// The node has not been heard of.
    pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
    /// The node runs out of memory.
    pub const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
    /// The node runs out of disk.
    pub const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
    /// The node runs out of process ids.
    pub const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
    /// The node has no network.
    pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
    /// Somebody has cordoned the node.
    pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

    /// All of them: with the effect `NoSchedule` they are the controller's own.
    pub const ALL: [&str; 7] = [
        NOT_READY,
        UNREACHABLE,
        MEMORY_PRESSURE,
        DISK_PRESSURE,
        PID_PRESSURE,
        NETWORK_UNAVAILABLE,
        UNSCHEDULABLE,
    ];

    /// No new pod is scheduled there.
    pub const NO_SCHEDULE: &str = "NoSchedule";
    /// Pods that are there leave.
    pub const NO_EXECUTE: &str = "NoExecute";
}

/// Types of conditions.
pub mod condition {
    /// Whether the node is ready, of nodes and of pods.
    pub const READY: &str = "Ready";
    /// Whether it runs out of memory.
    pub const MEMORY_PRESSURE: &str = "MemoryPressure";
    /// Whether it runs out of disk.
    pub const DISK_PRESSURE: &str = "DiskPressure";
    /// Whether it runs out of process ids.
    pub const PID_PRESSURE: &str = "PIDPressure";
    /// Whether it is without network.
    pub const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
}

/// Reasons in conditions that the controller writes.
pub mod reason {
    /// The kubelet has fallen silent.
    pub const UNKNOWN: &str = "NodeStatusUnknown";
    /// The kubelet has never said anything of it.
    pub const NEVER_UPDATED: &str = "NodeStatusNeverUpdated";
}

/// Labels of nodes.
pub mod label {
    /// The node does not count when a zone's health is judged.
    pub const EXCLUDE_DISRUPTION: &str = "node.kubernetes.io/exclude-disruption";
    /// The operating system.
    pub const OS: &str = "kubernetes.io/os";
    /// The operating system, as it was called before.
    pub const OS_BETA: &str = "beta.kubernetes.io/os";
    /// The processor's architecture.
    pub const ARCH: &str = "kubernetes.io/arch";
    /// The processor's architecture, as it was called before.
    pub const ARCH_BETA: &str = "beta.kubernetes.io/arch";
}
