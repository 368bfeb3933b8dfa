//! The lease a cluster's agent renews: how long it holds, and what its end says about the cluster.
//!
//! Owns the grace after a renewal, the reading of an agent's clock that runs ahead, and the lease that should be there
//! when there is none. Setting a cluster available again is its agent's business, never ours.
//!
//! # Whose clock
//!
//! `renewTime` is written by the cluster, by the cluster's clock. One that lags is taken at its word: its lease ends
//! early, as clients of the API know it, and the clock condition says why. One that runs ahead would put the end off
//! by as much as it is ahead, without bound; so a renewal never counts for later than the hub has heard of it. The hub
//! knows when from the API server's own note of the last write (`managedFields`, which outlives a restart) or, where
//! that is missing and the time is still to come, from when the caller first saw the lease as it is. A dead agent is
//! therefore found out one grace after its last renewal, however wrong its clock.

use std::collections::BTreeMap;

use berth_api::core::Lease;
use berth_api::managed_cluster::LEASE_DURATION_DEFAULT_SECONDS;
use berth_api::names::{CLUSTER_LEASE, condition, label, reason};
use berth_api::{ManagedCluster, ManagedClusterStatus};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta};

use crate::condition::{Status, Wanted};
use crate::moment::Moment;

/// For how many lease durations after a renewal a cluster counts as heard of.
pub const GRACE_LEASES: i64 = 5;

const STOPPED_MESSAGE: &str = "Registration agent stopped updating its lease.";

/// What a cluster's lease says.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseVerdict {
    /// The hub has never dealt with the cluster: nothing is expected of it.
    NotManaged,
    /// There is no lease for the agent to renew; this one should be created.
    Missing {
        /// The lease, counted as renewed now.
        wanted: Box<Lease>,
    },
    /// The cluster was heard of lately enough.
    Fresh {
        /// When that ceases to be so, unless it renews.
        until: Moment,
    },
    /// The cluster is no longer heard of.
    Stopped {
        /// How that is known.
        how: Stop,
        /// The condition to write; `None` if the cluster is known to be unknown already.
        condition: Option<Condition>,
    },
}

/// How it is known that a cluster stopped renewing its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The last renewal ceased to count.
    Expired {
        /// When.
        at: Moment,
    },
    /// The cluster is being deleted and its lease is gone: no agent will renew it again.
    Gone,
}

/// Judges a cluster by its lease at `now`.
///
/// `seen` is when the caller first saw the lease as it is, by the hub's clock; `now` if it keeps no note of it. It
/// counts only where the renewal lies in the future and the API server has not noted when it came.
pub fn check_lease(
    cluster: &ManagedCluster,
    lease: Option<&Lease>,
    seen: Moment,
    now: Moment,
) -> LeaseVerdict {
    if cluster.condition(condition::HUB_ACCEPTED).is_none() {
        return LeaseVerdict::NotManaged;
    }
    let Some(lease) = lease else {
        return if cluster.is_deleting() {
            LeaseVerdict::Stopped { how: Stop::Gone, condition: unknown(cluster, now) }
        } else {
            LeaseVerdict::Missing { wanted: Box::new(new_lease(cluster, now)) }
        };
    };
    let until = last_heard(cluster, lease, seen, now).plus_seconds(lease_grace_seconds(cluster));
    if now < until {
        LeaseVerdict::Fresh { until }
    } else {
        LeaseVerdict::Stopped { how: Stop::Expired { at: until }, condition: unknown(cluster, now) }
    }
}

/// How long a cluster counts as heard of after a renewal, in seconds.
pub fn lease_grace_seconds(cluster: &ManagedCluster) -> i64 {
    // A duration below zero would make every renewal come too late; it means as little as zero does.
    let seconds = match cluster.lease_duration_seconds() {
        seconds if seconds > 0 => seconds,
        _ => LEASE_DURATION_DEFAULT_SECONDS,
    };
    GRACE_LEASES * i64::from(seconds)
}

/// When the API server last wrote the lease, by the hub's clock and to the end of that second; `None` if it keeps no
/// note of it.
pub fn lease_written(lease: &Lease) -> Option<Moment> {
    let entries = lease.metadata.managed_fields.iter().flatten();
    let written = entries.filter_map(|entry| entry.time.as_ref()).map(|time| Moment::from_timestamp(time.0));
    // The note has whole seconds; the write came within the second that follows.
    Some(written.max()?.plus_seconds(1))
}

/// When the cluster was last heard of, by the hub's clock as far as it is known.
fn last_heard(cluster: &ManagedCluster, lease: &Lease, seen: Moment, now: Moment) -> Moment {
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
    let Some(renewed) = renewed.map(|time| Moment::from_timestamp(time.0)) else {
        // Never renewed: it counts from when there was something to renew.
        let created = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(|time| time.0);
        let created = created(&lease.metadata).or_else(|| created(&cluster.metadata));
        return created.map_or(seen, Moment::from_timestamp).min(now);
    };
    let heard = match lease_written(lease) {
        Some(written) => renewed.min(written),
        None if renewed > now => seen,
        None => renewed,
    };
    heard.min(now)
}

fn unknown(cluster: &ManagedCluster, now: Moment) -> Option<Condition> {
    // Unknown for another reason is unknown all the same; rewording it would be a write that tells nobody anything.
    if cluster.available().is_some_and(|condition| condition.status == Status::Unknown.as_str()) {
        return None;
    }
    let wanted = Wanted {
        kind: condition::AVAILABLE,
        status: Status::Unknown,
        reason: reason::LEASE_UPDATE_STOPPED,
        message: STOPPED_MESSAGE.into(),
        generation: None,
    };
    wanted.unless_said(conditions(cluster.status.as_ref()), now)
}

pub(super) fn conditions(status: Option<&ManagedClusterStatus>) -> &[Condition] {
    status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn new_lease(cluster: &ManagedCluster, now: Moment) -> Lease {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    Lease {
        metadata: ObjectMeta {
            name: Some(CLUSTER_LEASE.into()),
            namespace: Some(name.clone()),
            labels: Some(BTreeMap::from([(label::CLUSTER_NAME.to_owned(), name)])),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(CLUSTER_LEASE.into()),
            renew_time: now.timestamp().map(MicroTime),
            ..LeaseSpec::default()
        }),
    }
}

#[cfg(test)]
pub(super) mod tests;
