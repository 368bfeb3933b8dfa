//! The cases of upstream's lease controller, and what must hold for any clock.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use proptest::prelude::*;

use super::*;

/// The start of 2026.
const START_SECOND: i64 = 1_767_225_600;

pub(in crate::health) fn at(seconds: i64) -> Moment {
    Moment::from_second(START_SECOND + seconds)
}

pub(in crate::health) fn time(seconds: i64) -> Time {
    Time(at(seconds).timestamp().unwrap())
}

fn condition(kind: &str, status: &str) -> Condition {
    Condition {
        type_: kind.into(),
        status: status.into(),
        reason: "Told".into(),
        message: String::new(),
        last_transition_time: time(-1000),
        observed_generation: None,
    }
}

/// An accepted cluster that says it is available.
pub(in crate::health) fn cluster() -> ManagedCluster {
    with(with(ManagedCluster::new("c1"), condition::HUB_ACCEPTED, "True"), condition::AVAILABLE, "True")
}

pub(in crate::health) fn with(mut cluster: ManagedCluster, kind: &str, status: &str) -> ManagedCluster {
    let conditions = cluster.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.push(condition(kind, status));
    cluster
}

pub(in crate::health) fn lease_renewed(seconds: i64) -> Lease {
    let mut lease = new_lease(&cluster(), at(seconds));
    lease.metadata.creation_timestamp = Some(time(-5000));
    lease
}

/// The lease with the API server's note that it was written then.
pub(in crate::health) fn written_at(mut lease: Lease, seconds: i64) -> Lease {
    let entry = ManagedFieldsEntry { time: Some(time(seconds)), ..ManagedFieldsEntry::default() };
    lease.metadata.managed_fields = Some(vec![entry]);
    lease
}

fn check(cluster: &ManagedCluster, lease: &Lease, now: i64) -> LeaseVerdict {
    check_lease(cluster, Some(lease), at(now), at(now))
}

fn stopped(verdict: LeaseVerdict) -> Option<Condition> {
    match verdict {
        LeaseVerdict::Stopped { condition, .. } => condition,
        other => panic!("{other:?}"),
    }
}

/// Upstream: hub/lease/controller_test.go "TestSync: sync unaccepted managed cluster".
#[test]
fn a_cluster_that_was_never_accepted_is_not_looked_at() {
    let stranger = ManagedCluster::new("c1");
    assert_eq!(check_lease(&stranger, None, at(0), at(0)), LeaseVerdict::NotManaged);
    assert_eq!(check(&stranger, &lease_renewed(-9000), 0), LeaseVerdict::NotManaged);
}

/// Upstream: hub/lease/controller_test.go "TestSync: there is no lease for a managed cluster".
#[test]
fn a_cluster_without_a_lease_gets_one_that_counts_from_now() {
    for accepted in ["True", "False"] {
        let cluster = with(cluster(), condition::HUB_ACCEPTED, accepted);
        let LeaseVerdict::Missing { wanted } = check_lease(&cluster, None, at(7), at(7)) else {
            panic!("a lease is wanted");
        };
        assert_eq!(wanted.metadata.name.as_deref(), Some("managed-cluster-lease"));
        assert_eq!(wanted.metadata.namespace.as_deref(), Some("c1"));
        assert_eq!(wanted.metadata.labels.as_ref().unwrap()["open-cluster-management.io/cluster-name"], "c1");
        let spec = wanted.spec.clone().unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("managed-cluster-lease"));
        assert_eq!(spec.renew_time.map(|time| Moment::from_timestamp(time.0)), Some(at(7)));
        assert_eq!(check(&cluster, &wanted, 7), LeaseVerdict::Fresh { until: at(307) });
    }
}

/// Upstream: hub/lease/controller_test.go "TestSync: accepted managed cluster stop update lease", "TestSync: previously
/// accepted managed cluster stop update lease".
#[test]
fn a_lease_that_is_no_longer_renewed_makes_the_cluster_unknown() {
    let denied = with(cluster(), condition::HUB_ACCEPTED, "False");
    for cluster in [cluster(), denied] {
        let condition = stopped(check(&cluster, &lease_renewed(-300), 0)).unwrap();
        assert_eq!(condition.type_, "ManagedClusterConditionAvailable");
        assert_eq!(condition.status, "Unknown");
        assert_eq!(condition.reason, "ManagedClusterLeaseUpdateStopped");
        assert_eq!(condition.message, "Registration agent stopped updating its lease.");
        assert_eq!(condition.last_transition_time, time(0));
    }
}

/// Upstream: hub/lease/controller_test.go "TestSync: managed cluster is available", "TestSync: sync previously accepted
/// managed cluster", "TestRequeueTime: requeue for fresh lease - should use time until expiry for immediate detection",
/// "TestRequeueTime: requeue for recently renewed lease - should check just before expiry".
#[test]
fn a_renewed_lease_is_fresh_until_five_durations_later_and_not_a_microsecond_longer() {
    let lease = lease_renewed(-240);
    assert_eq!(check(&cluster(), &lease, 0), LeaseVerdict::Fresh { until: at(60) });
    assert_eq!(check(&cluster(), &lease_renewed(-30), 0), LeaseVerdict::Fresh { until: at(270) });
    let almost = Moment::from_timestamp("2026-01-01T00:00:59.999999Z".parse().unwrap());
    assert_eq!(check_lease(&cluster(), Some(&lease), almost, almost), LeaseVerdict::Fresh { until: at(60) });
    assert!(stopped(check(&cluster(), &lease, 60)).is_some());
}

#[test]
fn a_short_lease_duration_counts_and_a_senseless_one_reads_as_a_minute() {
    let mut cluster = cluster();
    for (duration, grace) in [(Some(1), 5), (Some(0), 300), (None, 300), (Some(-7), 300)] {
        cluster.spec.get_or_insert_default().lease_duration_seconds = duration;
        assert_eq!(check(&cluster, &lease_renewed(0), 0), LeaseVerdict::Fresh { until: at(grace) });
    }
    cluster.spec.get_or_insert_default().lease_duration_seconds = Some(i32::MAX);
    assert!(matches!(check(&cluster, &lease_renewed(0), 0), LeaseVerdict::Fresh { .. }));
}

/// Upstream: hub/lease/controller_test.go "TestSync: managed cluster is deleting".
#[test]
fn a_cluster_on_its_way_out_without_a_lease_is_unknown_at_once() {
    let mut leaving = cluster();
    leaving.metadata.deletion_timestamp = Some(time(0));
    let verdict = check_lease(&leaving, None, at(0), at(0));
    assert!(matches!(verdict, LeaseVerdict::Stopped { how: Stop::Gone, condition: Some(_) }));
    assert_eq!(check(&leaving, &lease_renewed(0), 0), LeaseVerdict::Fresh { until: at(300) });
}

/// Upstream: hub/lease/controller_test.go "TestSync: managed cluster is unknown".
#[test]
fn a_cluster_known_to_be_unknown_is_not_written_again_whatever_the_reason() {
    let unknown = with(cluster(), condition::AVAILABLE, "Unknown");
    assert_eq!(stopped(check(&unknown, &lease_renewed(-300), 0)), None);
}

#[test]
fn a_clock_an_hour_ahead_does_not_put_the_end_off_by_an_hour() {
    // The API server noted when the renewal came.
    let noted = written_at(lease_renewed(3600), 0);
    assert_eq!(check(&cluster(), &noted, 10), LeaseVerdict::Fresh { until: at(301) });
    assert!(stopped(check(&cluster(), &noted, 301)).is_some());
    // And stays found out when the time that was ahead has come.
    assert!(stopped(check(&cluster(), &noted, 3601)).is_some());
    // It did not; the caller did.
    let ahead = lease_renewed(3600);
    assert_eq!(
        check_lease(&cluster(), Some(&ahead), at(20), at(100)),
        LeaseVerdict::Fresh { until: at(320) }
    );
    assert!(stopped(check_lease(&cluster(), Some(&ahead), at(20), at(320))).is_some());
}

#[test]
fn the_servers_note_does_not_shorten_an_honest_renewal() {
    // Renewed at 0.9 s, noted as written in second 0.
    let mut lease = written_at(lease_renewed(0), 0);
    let renewed = "2026-01-01T00:00:00.9Z".parse().unwrap();
    lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(renewed));
    let until = Moment::from_timestamp(renewed).plus_seconds(300);
    assert_eq!(check(&cluster(), &lease, 5), LeaseVerdict::Fresh { until });
    // A late annotation by somebody else does not lengthen it either.
    assert_eq!(check(&cluster(), &written_at(lease, 200), 205), LeaseVerdict::Fresh { until });
}

#[test]
fn a_lease_that_was_never_renewed_counts_from_its_creation() {
    let mut lease = lease_renewed(0);
    lease.spec = None;
    lease.metadata.creation_timestamp = Some(time(-100));
    assert_eq!(check(&cluster(), &lease, 0), LeaseVerdict::Fresh { until: at(200) });
    lease.metadata.creation_timestamp = None;
    assert_eq!(check(&cluster(), &lease, 0), LeaseVerdict::Fresh { until: at(300) });
}

proptest! {
    #[test]
    fn no_clock_delays_detection_by_more_than_the_grace(
        renewed in -100_000_i64..100_000,
        heard in -1000_i64..0,
        duration in -5_i32..500,
        noted in any::<bool>(),
        later in 0_i64..200_000,
    ) {
        let mut cluster = cluster();
        cluster.spec.get_or_insert_default().lease_duration_seconds = Some(duration);
        let lease = lease_renewed(renewed);
        let lease = if noted { written_at(lease, heard) } else { lease };
        let grace = lease_grace_seconds(&cluster);
        match check_lease(&cluster, Some(&lease), at(heard), at(later)) {
            LeaseVerdict::Fresh { until } => {
                prop_assert!(until > at(later));
                // A time that has come meanwhile can be believed only where nobody noted the truth.
                let heard = if noted || renewed > later { heard.min(renewed) } else { renewed };
                prop_assert!(until <= at(heard + 1 + grace));
                // What is fresh until then stops then.
                let then = check_lease(&cluster, Some(&lease), at(heard), until);
                if noted || renewed <= later {
                    prop_assert!(matches!(then, LeaseVerdict::Stopped { .. }), "{:?}", then);
                }
            }
            LeaseVerdict::Stopped { how: Stop::Expired { at: expired }, .. } => {
                prop_assert!(expired <= at(later));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
