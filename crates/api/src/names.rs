//! Well-known words of the API: groups, labels, annotations, taints, conditions and their reasons.
//!
//! Owns the spelling and nothing else; other programs match on these texts, so none may ever change.

/// The group of the kinds that fleets are made of.
pub const GROUP: &str = "cluster.open-cluster-management.io";
/// The group of the kinds that are Berth's own.
pub const BERTH_GROUP: &str = "berth.dev";
/// The group of the virtual `managedclusters/accept` subresource.
pub const REGISTER_GROUP: &str = "register.open-cluster-management.io";

/// A DNS label: what a namespace may be called.
pub const DNS_LABEL_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// The set that holds every cluster not put into another exclusive set.
pub const DEFAULT_CLUSTER_SET: &str = "default";
/// The set that holds every cluster.
pub const GLOBAL_CLUSTER_SET: &str = "global";
/// The lease a cluster's agent renews in its namespace on the hub.
pub const CLUSTER_LEASE: &str = "managed-cluster-lease";
/// The service account whose right to bind a set binds it to its namespace.
pub const PLACEMENT_SERVICE_ACCOUNT: &str = "placement";
/// What a PlacementDecision's name has between the placement's name and its number, which starts at 1.
pub const DECISION_NAME_INFIX: &str = "-decision-";
/// The controller named in events about placements.
pub const PLACEMENT_REPORTER: &str = "placement-controller";
/// Keeps a cluster's objects on the hub from being orphaned.
pub const CLEANUP_FINALIZER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";

/// The virtual resource, with its subresource, that the right to bind a set is granted on.
pub const BIND_RESOURCE: &str = "managedclustersets/bind";

/// Labels.
pub mod label {
    /// On a cluster: the exclusive set it belongs to.
    pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
    /// On a PlacementDecision: the placement it belongs to.
    pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
    /// On a PlacementDecision: the name of its decision group, possibly empty.
    pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
    /// On a PlacementDecision: the number of its decision group, from 0.
    pub const DECISION_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
    /// On objects in a cluster's namespace: the cluster's name.
    pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
    /// On a ManagedClusterSetBinding: who keeps it. Without it, a binding was made by hand and is left alone.
    pub const BOUND_BY: &str = "berth.dev/bound-by";
    /// The value of [`BOUND_BY`] on bindings that follow from RBAC grants to the service account `placement`.
    pub const BOUND_BY_RBAC: &str = "rbac";
}

/// Keys of taints on nodes.
pub mod node_taint {
    /// Somebody empties the node.
    pub const DRAIN: &str = "berth.dev/drain";
    /// Somebody has seen to it that nothing runs on the node any more.
    pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
    /// The provider of the machine says that it is shut down; its cloud-controller-manager puts it there and takes it off.
    pub const PROVIDER_SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
}

/// Annotations.
pub mod annotation {
    /// On a node that is drained, `"true"`: whoever drained it cordoned it as well.
    pub const CORDONED_BY_DRAIN: &str = "berth.dev/cordoned-by-drain";
    /// On the Lease by which processes choose a leader: the controllers of the one that leads, with commas between them.
    pub const LEADING_CONTROLLERS: &str = "berth.dev/controllers";
    /// On a placement, `"true"`: another scheduler takes care of it; it is not touched.
    pub const SCHEDULING_DISABLED: &str =
        "cluster.open-cluster-management.io/experimental-scheduling-disable";
    /// On the default and global sets, `"false"`: edits to the selector are not rolled back.
    pub const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";
    /// On a cluster, `"true"`: its clock is taken to be right.
    pub const SKIP_CLOCK_SYNC_CHECK: &str = "registration.open-cluster-management.io/skip-clock-sync-check";
}

/// Keys of the taints the hub manages itself; both have effect NoSelect and no value.
pub mod system_taint {
    /// The cluster says of itself that its API server is unhealthy.
    pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
    /// The cluster has not been heard of.
    pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
    /// Both.
    pub const ALL: [&str; 2] = [UNAVAILABLE, UNREACHABLE];
}

/// Condition types.
pub mod condition {
    /// Placement: as many clusters as wanted are selected.
    pub const PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
    /// Placement: the placement contradicts itself and cannot be decided.
    pub const PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";
    /// ManagedCluster: the hub lets the agent in.
    pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
    /// ManagedCluster: the agent has joined.
    pub const JOINED: &str = "ManagedClusterJoined";
    /// ManagedCluster: the cluster's API server is healthy.
    pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
    /// ManagedCluster: the clocks of hub and cluster agree.
    pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
    /// ManagedCluster: what still holds up its deletion.
    pub const DELETING: &str = "Deleting";
    /// ManagedClusterSet: no cluster belongs to the set.
    pub const CLUSTER_SET_EMPTY: &str = "ClusterSetEmpty";
    /// ManagedClusterSetBinding: the set exists.
    pub const BOUND: &str = "Bound";
    /// EvictionPolicy: it makes sense, and is obeyed.
    pub const ACCEPTED: &str = "Accepted";
    /// EvictionPolicy: another one selects the same pods and taints.
    pub const OVERLAPPED: &str = "Overlapped";
}

/// Reasons of conditions.
pub mod reason {
    /// PlacementMisconfigured is true.
    pub const MISCONFIGURED: &str = "Misconfigured";
    /// Accepted is true.
    pub const ACCEPTED: &str = "Accepted";
    /// Overlapped is true: for some pod another policy is more specific.
    pub const LESS_SPECIFIC: &str = "LessSpecific";
    /// Overlapped is true: others select pods that this one counts for.
    pub const MORE_SPECIFIC: &str = "MoreSpecific";
    /// Overlapped is false.
    pub const ALONE: &str = "Alone";
    /// PlacementMisconfigured is false; the spelling is historical.
    pub const SUCCEED_CONFIGURED: &str = "Succeedconfigured";
    /// Nothing is bound to the placement's namespace.
    pub const NO_MANAGED_CLUSTER_SET_BINDINGS: &str = "NoManagedClusterSetBindings";
    /// None of the sets asked for is bound.
    pub const NO_INTERSECTION: &str = "NoIntersection";
    /// The sets in question have no clusters.
    pub const ALL_MANAGED_CLUSTER_SETS_EMPTY: &str = "AllManagedClusterSetsEmpty";
    /// No cluster passed the filters.
    pub const NO_MANAGED_CLUSTER_MATCHED: &str = "NoManagedClusterMatched";
    /// As many clusters as wanted are selected.
    pub const ALL_DECISIONS_SCHEDULED: &str = "AllDecisionsScheduled";
    /// Fewer clusters than wanted are selected.
    pub const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";
    /// ClusterSetEmpty is true.
    pub const NO_CLUSTER_MATCHED: &str = "NoClusterMatched";
    /// ClusterSetEmpty is false.
    pub const CLUSTERS_SELECTED: &str = "ClustersSelected";
    /// ClusterSetEmpty is unknown: the set's selector cannot be understood.
    pub const CLUSTER_SELECTOR_INVALID: &str = "ClusterSelectorInvalid";
    /// Bound is true.
    pub const CLUSTER_SET_BOUND: &str = "ClusterSetBound";
    /// Bound is false.
    pub const CLUSTER_SET_NOT_FOUND: &str = "ClusterSetNotFound";
    /// The cluster's agent no longer renews its lease.
    pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
    /// The cluster's API server answers its own agent.
    pub const CLUSTER_AVAILABLE: &str = "ManagedClusterAvailable";
    /// The cluster's API server does not answer its own agent.
    pub const KUBE_API_SERVER_UNAVAILABLE: &str = "ManagedClusterKubeAPIServerUnavailable";
    /// The clocks agree.
    pub const CLOCK_SYNCED: &str = "ManagedClusterClockSynced";
    /// The clocks disagree.
    pub const CLOCK_OUT_OF_SYNC: &str = "ManagedClusterClockOutOfSync";
    /// An administrator let the cluster in.
    pub const HUB_CLUSTER_ADMIN_ACCEPTED: &str = "HubClusterAdminAccepted";
    /// An administrator shut the cluster out.
    pub const HUB_CLUSTER_ADMIN_DENIED: &str = "HubClusterAdminDenied";
}
