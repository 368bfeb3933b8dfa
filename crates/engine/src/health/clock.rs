//! Whether the clocks of hub and cluster agree.
//!
//! Owns the condition that says so. When a renewal arrives, the time it carries should be about the time it arrives; if
//! they are a whole grace apart, deadlines counted on one clock mean nothing on the other.

use berth_api::ManagedCluster;
use berth_api::core::Lease;
use berth_api::names::{annotation, condition, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::lease::{conditions, lease_grace_seconds, lease_written};
use crate::condition::{Status, Wanted};
use crate::moment::Moment;

/// The clock condition to write; `None` if the cluster has it already, or nothing can be said.
///
/// `arrived` is when the caller saw the renewal come, by the hub's clock; `None` if the lease was there before the
/// caller looked. It counts only where the API server has not noted when it wrote the lease.
pub fn clock_condition(
    cluster: &ManagedCluster,
    lease: &Lease,
    arrived: Option<Moment>,
    now: Moment,
) -> Option<Condition> {
    let renewed = Moment::from_timestamp(lease.spec.as_ref()?.renew_time.as_ref()?.0);
    let arrived = match lease_written(lease) {
        Some(written) => {
            let created = lease.metadata.creation_timestamp.as_ref();
            // What the hub itself created says nothing of the cluster's clock until somebody renews it.
            if created.is_some_and(|created| Moment::from_timestamp(created.0).plus_seconds(1) >= written) {
                return None;
            }
            written
        }
        None => arrived?,
    };
    let grace = lease_grace_seconds(cluster);
    let apart = arrived >= renewed.plus_seconds(grace) || renewed >= arrived.plus_seconds(grace);
    let annotations = cluster.metadata.annotations.as_ref();
    let trusted = annotations.and_then(|all| all.get(annotation::SKIP_CLOCK_SYNC_CHECK));
    let (status, reason, message) = if apart && trusted.is_none_or(|value| value != "true") {
        (
            Status::False,
            reason::CLOCK_OUT_OF_SYNC,
            "The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent \
             functionalities.",
        )
    } else {
        (Status::True, reason::CLOCK_SYNCED, "The clock of the managed cluster is synced with the hub.")
    };
    let existing = cluster.condition(condition::CLOCK_SYNCED);
    if existing.is_some_and(|condition| condition.status == status.as_str()) {
        return None;
    }
    let wanted =
        Wanted { kind: condition::CLOCK_SYNCED, status, reason, message: message.into(), generation: None };
    wanted.unless_said(conditions(cluster.status.as_ref()), now)
}

#[cfg(test)]
mod tests {
    use super::super::lease::tests::{at, cluster, lease_renewed, written_at};
    use super::*;

    fn status(cluster: &ManagedCluster, renewed: i64, arrived: i64) -> Option<String> {
        let lease = lease_renewed(renewed);
        clock_condition(cluster, &lease, Some(at(arrived)), at(arrived)).map(|condition| condition.status)
    }

    /// Upstream: clocksynccontroller_test.go "TestClockSyncController: hub and agent clock is close".
    #[test]
    fn clocks_closer_than_the_grace_agree() {
        assert_eq!(status(&cluster(), 0, 299).as_deref(), Some("True"));
        assert_eq!(status(&cluster(), 299, 0).as_deref(), Some("True"));
    }

    /// Upstream: clocksynccontroller_test.go "TestClockSyncController: hub and agent clock is not close".
    #[test]
    fn clocks_a_grace_apart_do_not_agree_whichever_is_ahead() {
        assert_eq!(status(&cluster(), 0, 300).as_deref(), Some("False"));
        assert_eq!(status(&cluster(), 300, 0).as_deref(), Some("False"));
    }

    /// Upstream: clocksynccontroller_test.go "TestClockSyncController".
    #[test]
    fn a_cluster_whose_clock_is_to_be_trusted_agrees_always() {
        let mut trusted = cluster();
        let annotations = trusted.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::SKIP_CLOCK_SYNC_CHECK.into(), "true".into());
        assert_eq!(status(&trusted, 0, 3600).as_deref(), Some("True"));
        let annotations = trusted.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::SKIP_CLOCK_SYNC_CHECK.into(), "yes".into());
        assert_eq!(status(&trusted, 0, 3600).as_deref(), Some("False"));
    }

    #[test]
    fn what_is_known_already_is_not_written_again() {
        let mut known = cluster();
        let synced = clock_condition(&known, &lease_renewed(0), Some(at(1)), at(1)).unwrap();
        known.status.get_or_insert_default().conditions.get_or_insert_default().push(synced);
        assert_eq!(clock_condition(&known, &lease_renewed(0), Some(at(2)), at(2)), None);
    }

    #[test]
    fn an_old_lease_says_nothing_to_one_who_did_not_see_it_come() {
        assert_eq!(clock_condition(&cluster(), &lease_renewed(0), None, at(3600)), None);
    }

    #[test]
    fn the_servers_own_note_is_as_good_as_having_seen_it() {
        let late = written_at(lease_renewed(0), 3600);
        let condition = clock_condition(&cluster(), &late, None, at(9000)).unwrap();
        assert_eq!((&*condition.status, &*condition.reason), ("False", "ManagedClusterClockOutOfSync"));
        let prompt = written_at(lease_renewed(0), 0);
        assert_eq!(clock_condition(&cluster(), &prompt, None, at(9000)).unwrap().status, "True");
    }

    #[test]
    fn a_lease_the_hub_has_just_made_says_nothing_of_the_clusters_clock() {
        let mut lease = written_at(lease_renewed(0), 0);
        lease.metadata.creation_timestamp = lease.metadata.managed_fields.as_ref().unwrap()[0].time.clone();
        assert_eq!(clock_condition(&cluster(), &lease, None, at(1)), None);
    }
}
