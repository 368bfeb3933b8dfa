//! The two taints that follow from a cluster's health.
//!
//! Owns which of them a cluster should carry, and since when. Taints of the same key with another value or effect are
//! somebody else's and neither removed nor taken for ours.
//!
//! # Since when
//!
//! Limited tolerations count from `timeAdded`, so that time decides when work leaves:
//! - A cluster that goes from unavailable to unreachable, or back, has been unwell all along: the new taint takes over
//!   the time of the one it replaces, and no toleration starts again.
//! - Otherwise it is when the condition turned, so that a controller that was away for an hour does not give an hour
//!   more. That time may come from the cluster's own clock; one that lies in the future, or before the cluster existed,
//!   is not believed, and it is now instead.
//! - Where there is no condition at all it is now: when the cluster was last well cannot be known, and counting from
//!   its creation would make everything leave at once if a status was lost.

use berth_api::names::system_taint::{self, UNAVAILABLE, UNREACHABLE};
use berth_api::{ManagedCluster, Taint, TaintEffect};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::condition::whole_second;
use crate::moment::Moment;

/// How a cluster is, as far as its Available condition tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It says it is well.
    Available,
    /// It says it is not.
    Unavailable,
    /// It has not been heard of, or never was.
    Unreachable,
}

impl Health {
    /// The health of a cluster; `None` if its condition has a status nobody knows.
    pub fn of(cluster: &ManagedCluster) -> Option<Self> {
        match cluster.available().map(|condition| condition.status.as_str()) {
            Some("True") => Some(Self::Available),
            Some("False") => Some(Self::Unavailable),
            Some("Unknown") | None => Some(Self::Unreachable),
            Some(_) => None,
        }
    }

    /// The key of the taint that goes with it.
    pub fn taint_key(self) -> Option<&'static str> {
        match self {
            Self::Available => None,
            Self::Unavailable => Some(UNAVAILABLE),
            Self::Unreachable => Some(UNREACHABLE),
        }
    }
}

/// The whole list of taints the cluster should carry; `None` if it carries them already, or is to be left alone
/// because it is being deleted or its condition cannot be understood.
pub fn wanted_taints(cluster: &ManagedCluster, now: Moment) -> Option<Vec<Taint>> {
    if cluster.is_deleting() {
        return None;
    }
    let key = Health::of(cluster)?.taint_key();
    let since = || Some(whole_second(since(cluster, key, now)));
    let mut taints: Vec<Taint> = cluster
        .taints()
        .iter()
        .filter(|taint| !is_ours(taint) || Some(&*taint.key) == key)
        .cloned()
        .collect();
    if let Some(key) = key {
        match taints.iter_mut().find(|taint| is_ours(taint)) {
            // One without a time is tolerated for ever where it should be for a while.
            Some(taint) if taint.time_added.is_none() => taint.time_added = since(),
            Some(_) => {}
            None => taints.push(Taint {
                key: key.to_owned(),
                value: None,
                effect: TaintEffect::NoSelect,
                time_added: since(),
            }),
        }
    }
    (taints != cluster.taints()).then_some(taints)
}

/// Whether a taint is one of the hub's own: key, value and effect together.
fn is_ours(taint: &Taint) -> bool {
    system_taint::ALL.contains(&&*taint.key)
        && taint.value().is_empty()
        && taint.effect == TaintEffect::NoSelect
}

/// Since when the cluster has not been well.
fn since(cluster: &ManagedCluster, key: Option<&str>, now: Moment) -> Moment {
    let moment = |time: &Time| Moment::from_timestamp(time.0);
    let replaced = cluster.taints().iter().filter(|taint| is_ours(taint) && Some(&*taint.key) != key);
    if let Some(carried) = replaced.filter_map(|taint| taint.time_added.as_ref()).map(moment).min() {
        return carried.min(now);
    }
    let created = cluster.metadata.creation_timestamp.as_ref().map_or(Moment::PAST, moment);
    cluster
        .available()
        .map(|condition| moment(&condition.last_transition_time))
        .filter(|turned| (created..=now).contains(turned))
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lease::tests::{at, time, with};
    use super::*;
    use berth_api::names::condition::AVAILABLE;

    /// A cluster made long ago whose Available condition turned at -1000 seconds.
    fn cluster(available: Option<&str>, taints: &[Taint]) -> ManagedCluster {
        let mut cluster = ManagedCluster::new("c1");
        cluster.metadata.creation_timestamp = Some(time(-5000));
        cluster.spec.get_or_insert_default().taints = Some(taints.to_vec());
        match available {
            Some(status) => with(cluster, AVAILABLE, status),
            None => cluster,
        }
    }

    fn taint(key: &str, added: Option<i64>) -> Taint {
        Taint { key: key.into(), value: None, effect: TaintEffect::NoSelect, time_added: added.map(time) }
    }

    fn carries(cluster: &ManagedCluster) -> Vec<Taint> {
        wanted_taints(cluster, at(0)).unwrap_or_else(|| cluster.taints().to_vec())
    }

    /// Upstream: hub/taint/controller_test.go "TestSyncTaintCluster: ManagedClusterConditionAvailable conditionStatus
    /// is True".
    #[test]
    fn an_available_cluster_loses_both_taints() {
        let both = [taint(UNAVAILABLE, Some(-9)), taint(UNREACHABLE, None)];
        assert_eq!(wanted_taints(&cluster(Some("True"), &both), at(0)), Some(Vec::new()));
        assert_eq!(wanted_taints(&cluster(Some("True"), &[]), at(0)), None);
    }

    /// Upstream: hub/taint/controller_test.go "TestSyncTaintCluster: ManagedClusterConditionAvailable conditionStatus
    /// is False".
    #[test]
    fn a_cluster_that_says_it_is_unwell_is_unavailable_since_its_condition_turned() {
        assert_eq!(carries(&cluster(Some("False"), &[])), [taint(UNAVAILABLE, Some(-1000))]);
    }

    /// Upstream: hub/taint/controller_test.go "TestSyncTaintCluster: ManagedClusterConditionAvailable conditionStatus
    /// is Unknown".
    #[test]
    fn a_cluster_not_heard_of_is_unreachable_since_its_condition_turned() {
        assert_eq!(carries(&cluster(Some("Unknown"), &[])), [taint(UNREACHABLE, Some(-1000))]);
    }

    /// Upstream: hub/taint/controller_test.go "TestSyncTaintCluster: There is no ManagedClusterConditionAvailable".
    #[test]
    fn a_cluster_that_never_joined_is_unreachable_from_now_on() {
        assert_eq!(carries(&cluster(None, &[])), [taint(UNREACHABLE, Some(0))]);
    }

    /// Upstream: hub/taint/controller_test.go "TestSyncTaintCluster: sync a deleted spoke cluster".
    #[test]
    fn a_cluster_on_its_way_out_is_left_alone() {
        let mut leaving = cluster(Some("False"), &[]);
        leaving.metadata.deletion_timestamp = Some(time(0));
        assert_eq!(wanted_taints(&leaving, at(0)), None);
    }

    #[test]
    fn one_clock_runs_from_unavailable_to_unreachable_and_back() {
        let unavailable = taint(UNAVAILABLE, Some(-1500));
        let swapped = carries(&cluster(Some("Unknown"), std::slice::from_ref(&unavailable)));
        assert_eq!(swapped, [taint(UNREACHABLE, Some(-1500))]);
        assert_eq!(carries(&cluster(Some("False"), &swapped)), [unavailable]);
    }

    #[test]
    fn a_taint_already_there_keeps_its_time() {
        assert_eq!(wanted_taints(&cluster(Some("False"), &[taint(UNAVAILABLE, Some(-3))]), at(0)), None);
    }

    #[test]
    fn a_taint_without_a_time_is_given_the_one_it_should_have_had() {
        let timeless = cluster(Some("False"), &[taint(UNAVAILABLE, None)]);
        assert_eq!(carries(&timeless), [taint(UNAVAILABLE, Some(-1000))]);
    }

    #[test]
    fn a_condition_from_the_future_or_from_before_the_cluster_is_not_believed() {
        for turned in [1, -5001] {
            let mut cluster = cluster(Some("False"), &[]);
            let status = cluster.status.as_mut().unwrap();
            status.conditions.as_mut().unwrap()[0].last_transition_time = time(turned);
            assert_eq!(carries(&cluster), [taint(UNAVAILABLE, Some(0))]);
        }
    }

    #[test]
    fn a_users_variant_of_a_system_taint_is_neither_removed_nor_taken_for_ours() {
        let valued = Taint { value: Some("mine".into()), ..taint(UNREACHABLE, Some(-7)) };
        let milder = Taint { effect: TaintEffect::PreferNoSelect, ..taint(UNAVAILABLE, None) };
        let users = [valued, milder];
        assert_eq!(wanted_taints(&cluster(Some("True"), &users), at(0)), None);
        let mut expected = users.to_vec();
        expected.push(taint(UNREACHABLE, Some(-1000)));
        assert_eq!(carries(&cluster(Some("Unknown"), &users)), expected);
    }

    #[test]
    fn a_status_nobody_knows_changes_nothing() {
        assert_eq!(wanted_taints(&cluster(Some("Perhaps"), &[taint(UNREACHABLE, None)]), at(0)), None);
    }

    fn any_taint() -> impl Strategy<Value = Taint> {
        let key = prop_oneof![Just(UNAVAILABLE), Just(UNREACHABLE), Just("example.com/mine")];
        let value = prop_oneof![Just(None), Just(Some(String::new())), Just(Some("v".to_owned()))];
        let effect = prop_oneof![Just(TaintEffect::NoSelect), Just(TaintEffect::NoSelectIfNew)];
        (key, value, effect, proptest::option::of(-9000_i64..9000)).prop_map(|(key, value, effect, added)| {
            Taint { key: key.into(), value, effect, time_added: added.map(time) }
        })
    }

    proptest! {
        #[test]
        fn what_is_wanted_once_is_wanted_for_good_and_nobody_elses_taint_moves(
            taints in proptest::collection::vec(any_taint(), 0..6),
            statuses in proptest::collection::vec(prop_oneof![
                Just(None), Just(Some("True")), Just(Some("False")), Just(Some("Unknown")),
            ], 1..4),
        ) {
            let foreign = |taints: &[Taint]| -> Vec<Taint> {
                taints.iter().filter(|taint| !is_ours(taint)).cloned().collect()
            };
            let mut carried = taints.clone();
            for (step, status) in statuses.into_iter().enumerate() {
                let now = at(i64::try_from(step).unwrap());
                let cluster = cluster(status, &carried);
                carried = wanted_taints(&cluster, now).unwrap_or(carried);
                let mut settled = cluster;
                settled.spec.as_mut().unwrap().taints = Some(carried.clone());
                prop_assert_eq!(wanted_taints(&settled, now.plus_seconds(60)), None);
                prop_assert_eq!(foreign(&carried), foreign(&taints));
                let keys: Vec<_> = carried.iter().filter(|taint| is_ours(taint)).map(|taint| &*taint.key).collect();
                let wanted = Health::of(&settled).unwrap().taint_key();
                prop_assert!(keys.iter().all(|key| Some(*key) == wanted));
                prop_assert_eq!(keys.is_empty(), wanted.is_none());
            }
        }
    }
}
