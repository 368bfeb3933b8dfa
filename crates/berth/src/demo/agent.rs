//! One simulated agent: what it does when. Pure; the simulator asks, carries out and tells how it went.

use berth_api::ManagedCluster;
use jiff::{SignedDuration, Timestamp};

use super::report::is_well;
use super::{BEHAVIOUR, SILENT};

/// How often a lease is renewed: five times before the hub loses patience with the shortest lease there is.
const RENEW_EVERY: SignedDuration = SignedDuration::from_secs(1);
/// How often the resources of a cluster are told, and its score.
const REPORT_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// How long after a failure something is tried again.
const RETRY_AFTER: SignedDuration = SignedDuration::from_millis(500);

/// Something an agent does for its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// Makes the cluster's namespace, where its lease and its score live.
    Settle,
    /// Renews the lease.
    Renew,
    /// Writes the cluster's status.
    Report,
    /// Writes the cluster's score.
    Score,
}

/// When an agent does what next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agent {
    is_settled: bool,
    renew: Timestamp,
    report: Timestamp,
    score: Timestamp,
}

impl Agent {
    /// An agent that has done nothing yet, and everything to do.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { is_settled: false, renew: now, report: now, score: now }
    }

    /// What is to be done now, in this order. The next turn of each is counted from now, so that a pause of the machine
    /// is not made up for with a burst.
    pub(super) fn due(&mut self, cluster: &ManagedCluster, now: Timestamp) -> Vec<Act> {
        if is_silent(cluster) || cluster.is_deleting() {
            return Vec::new();
        }
        let mut acts = Vec::new();
        if !self.is_settled {
            acts.push(Act::Settle);
            self.is_settled = true;
        }
        let mut take = |act, at: &mut Timestamp, every, is_early| {
            if *at <= now || is_early {
                acts.push(act);
                *at = after(now, every);
            }
        };
        take(Act::Renew, &mut self.renew, RENEW_EVERY, false);
        // Where the hub has lost sight of the cluster, or there was never a word of it, an agent that lives says so; a
        // report that was just sent may not be seen yet.
        let is_early = !is_well(cluster) && self.report <= after(now, REPORT_EVERY - RENEW_EVERY);
        take(Act::Report, &mut self.report, REPORT_EVERY, is_early);
        take(Act::Score, &mut self.score, REPORT_EVERY, false);
        acts
    }

    /// When something is due next by itself; never for one that is silent.
    pub(super) fn next(&self, cluster: &ManagedCluster) -> Option<Timestamp> {
        let is_at_work = !is_silent(cluster) && !cluster.is_deleting();
        is_at_work.then(|| self.renew.min(self.report).min(self.score))
    }

    /// Something could not be done: it, and what it may need, is done again soon.
    pub(super) fn failed(&mut self, act: Act, now: Timestamp) {
        let soon = after(now, RETRY_AFTER);
        // The namespace may have been deleted under it.
        self.is_settled = false;
        match act {
            Act::Settle | Act::Renew => self.renew = soon,
            Act::Report => self.report = soon,
            Act::Score => self.score = soon,
        }
    }
}

/// Whether somebody wants this agent to be silent.
pub(crate) fn is_silent(cluster: &ManagedCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(BEHAVIOUR)).is_some_and(|behaviour| behaviour == SILENT)
}

fn after(now: Timestamp, span: SignedDuration) -> Timestamp {
    now.saturating_add(span).expect("a signed duration is never out of range for saturation")
}

#[cfg(test)]
mod tests {
    use super::super::report::report;
    use super::*;

    const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn at(milliseconds: i64) -> Timestamp {
        after(START, SignedDuration::from_millis(milliseconds))
    }

    /// A cluster whose agent has reported.
    fn cluster() -> ManagedCluster {
        let mut cluster = ManagedCluster::new("fra-1");
        let written = report(&cluster, START);
        cluster.status = serde_json::from_value(written["status"].clone()).unwrap();
        assert!(is_well(&cluster));
        cluster
    }

    fn silent() -> ManagedCluster {
        let mut cluster = cluster();
        cluster.metadata.annotations = Some([(BEHAVIOUR.to_owned(), SILENT.to_owned())].into());
        cluster
    }

    #[test]
    fn an_agent_settles_once_and_renews_every_second() {
        let (cluster, mut agent) = (cluster(), Agent::new(START));
        assert_eq!(agent.due(&cluster, START), [Act::Settle, Act::Renew, Act::Report, Act::Score]);
        assert_eq!(agent.due(&cluster, at(999)), []);
        assert_eq!(agent.next(&cluster), Some(at(1000)));
        for second in 1..10 {
            assert_eq!(agent.due(&cluster, at(1000 * second)), [Act::Renew]);
        }
        assert_eq!(agent.due(&cluster, at(10_000)), [Act::Renew, Act::Report, Act::Score]);
    }

    #[test]
    fn a_silent_agent_does_nothing_until_it_recovers() {
        let mut agent = Agent::new(START);
        agent.due(&cluster(), START);
        assert_eq!(agent.due(&silent(), at(60_000)), []);
        assert_eq!(agent.next(&silent()), None);
        assert_eq!(agent.due(&cluster(), at(60_001)), [Act::Renew, Act::Report, Act::Score]);
    }

    #[test]
    fn a_cluster_the_hub_lost_sight_of_is_reported_within_a_second_and_not_in_a_storm() {
        let mut agent = Agent::new(START);
        agent.due(&cluster(), START);
        let mut lost = cluster();
        let conditions = lost.status.as_mut().unwrap().conditions.as_mut().unwrap();
        for condition in conditions {
            condition.status = "Unknown".to_owned();
        }
        assert_eq!(agent.due(&lost, at(500)), [], "the report under way may not be seen yet");
        assert_eq!(agent.due(&lost, at(1000)), [Act::Renew, Act::Report]);
        assert_eq!(agent.due(&lost, at(1001)), []);
    }

    #[test]
    fn what_failed_is_done_again_soon_with_the_namespace_first() {
        let (cluster, mut agent) = (cluster(), Agent::new(START));
        agent.due(&cluster, START);
        agent.failed(Act::Score, START);
        assert_eq!(agent.next(&cluster), Some(at(500)));
        assert_eq!(agent.due(&cluster, at(500)), [Act::Settle, Act::Score]);
    }

    #[test]
    fn a_pause_of_the_machine_is_not_made_up_for() {
        let (cluster, mut agent) = (cluster(), Agent::new(START));
        agent.due(&cluster, START);
        assert_eq!(agent.due(&cluster, at(3_600_000)), [Act::Renew, Act::Report, Act::Score]);
        assert_eq!(agent.due(&cluster, at(3_600_001)), []);
    }
}
