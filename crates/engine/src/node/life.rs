//! Signs of life: when a node was last heard of, and until when that counts.
//!
//! Owns the memory of what a node showed last. A sign of life is a *change*: of the lease's `renewTime` or of the heartbeat
//! in the Ready condition, either way and whatever it says, dated by our own clock when it is seen. The node's clock is
//! never compared with ours. It follows that a node seen for the first time has a whole grace, also after a restart: what
//! it showed before cannot be known.
//!
//! Time in which nobody looked is not silence. [`Attention`] notes gaps between looks (a process that was paused, a clock
//! that was set forward, a lead that was lost and won again) and looks at which nothing could be seen (an API server that was
//! away, for the kubelets as for us), and lets every grace begin behind them.

use std::time::Duration;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::names::{condition, reason};
use super::ready::condition_of;
use crate::moment::Moment;

/// How long nobody may have looked before what was not heard meanwhile counts for nothing. Whoever drives this looks far
/// more often, and the shortest useful grace is a few renewals of a lease, ten seconds each.
const GAP_MAX: Duration = Duration::from_secs(15);

/// How long a node may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// After it was last heard of.
    pub monitor: Duration,
    /// After it was made, while it has no Ready condition.
    pub startup: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { monitor: Duration::from_secs(50), startup: Duration::from_mins(1) }
    }
}

/// Since when somebody has been looking without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    since: Moment,
    looked: Option<Moment>,
    /// Whether nothing could be seen at the last look.
    was_blind: bool,
}

impl Default for Attention {
    fn default() -> Self {
        Self { since: Moment::PAST, looked: None, was_blind: false }
    }
}

impl Attention {
    /// Somebody looks, and `sees` what nodes show. Says whether the clock was set back since the last time, so that moments
    /// that were computed before are too far away now.
    pub fn look(&mut self, now: Moment, sees: bool) -> bool {
        let before = self.looked.replace(now).unwrap_or(now);
        let was_blind = std::mem::replace(&mut self.was_blind, !sees);
        // Up to this look nothing was seen; who is seen again from here on has a whole grace to show itself.
        if before.until(now) > GAP_MAX || was_blind || !sees {
            self.begin_anew(now);
        }
        // A clock that was set back must not leave anybody alive for as long as that.
        self.since = self.since.min(now);
        now < before
    }

    /// What was not heard until now counts for nothing.
    pub fn begin_anew(&mut self, now: Moment) {
        self.since = now;
    }
}

/// What a node shows of its life.
#[derive(Clone, Copy, Debug)]
pub struct Signs<'s> {
    /// Its conditions.
    pub conditions: &'s [NodeCondition],
    /// When its lease says that it was renewed; `None` if it has no lease, or none that was.
    pub renewed: Option<Moment>,
    /// When the node was made.
    pub created: Moment,
}

impl Signs<'_> {
    fn ready(&self) -> Option<&NodeCondition> {
        condition_of(self.conditions, condition::READY)
    }

    /// The heartbeat in the Ready condition, unless the condition is one that was written for want of any.
    fn heartbeat(&self) -> Option<&Time> {
        let ready = self.ready()?;
        let is_ours = ready.reason.as_deref() == Some(reason::NEVER_UPDATED);
        if is_ours { None } else { ready.last_heartbeat_time.as_ref() }
    }
}

/// What is remembered of a node's signs of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// When it was last heard of, by our clock.
    heard: Moment,
    /// What it showed then.
    has_ready: bool,
    heartbeat: Option<Time>,
    renewed: Option<Moment>,
}

impl Life {
    /// A node that is seen for the first time. It is as good as heard of now, except that one that has never said anything
    /// is expected to from when it was made.
    pub fn begin(signs: Signs<'_>, now: Moment) -> Self {
        let is_unheard = signs.ready().is_none() && signs.renewed.is_none();
        Self {
            heard: if is_unheard { signs.created.min(now) } else { now },
            has_ready: signs.ready().is_some(),
            heartbeat: signs.heartbeat().cloned(),
            renewed: signs.renewed,
        }
    }

    /// Sees the node again. Says whether that was a sign of life.
    pub fn look(&mut self, signs: Signs<'_>, now: Moment) -> bool {
        let heartbeat = signs.heartbeat();
        // A lease that is gone says nothing; one that is made again is compared with the last that was seen.
        let is_renewed = signs.renewed.is_some() && signs.renewed != self.renewed;
        let is_beating = heartbeat.is_some() && heartbeat != self.heartbeat.as_ref();
        // Somebody took the condition away. When it was last true cannot be known, so it begins anew.
        let is_erased = self.has_ready && signs.ready().is_none();
        let is_sign = is_renewed || is_beating || is_erased;
        self.heard = if is_sign { now } else { self.heard.min(now) };
        self.has_ready = signs.ready().is_some();
        if is_beating {
            self.heartbeat = heartbeat.cloned();
        }
        if is_renewed {
            self.renewed = signs.renewed;
        }
        is_sign
    }

    /// From when on the node counts as silent, unless it shows a sign of life before.
    pub fn silent_from(&self, attention: &Attention, graces: Graces) -> Moment {
        let grace = if self.has_ready { graces.monitor } else { graces.startup };
        self.heard.max(attention.since).plus(grace)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{at, beating, conditions};
    use super::*;

    const CREATED: i64 = -1_000;

    fn signs(conditions: &[NodeCondition], renewed: Option<Moment>) -> Signs<'_> {
        Signs { conditions, renewed, created: at(CREATED) }
    }

    fn silent_from(life: &Life) -> Moment {
        life.silent_from(&Attention::default(), Graces::default())
    }

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestTryUpdateNodeHealth".
    #[test]
    fn the_grace_depends_on_whether_there_is_a_ready_condition_and_not_on_what_it_says() {
        for status in ["True", "False", "Unknown"] {
            let conditions = conditions(&[("Ready", status)]);
            assert_eq!(silent_from(&Life::begin(signs(&conditions, None), at(0))), at(50), "{status}");
        }
        assert_eq!(silent_from(&Life::begin(signs(&[], None), at(0))), at(CREATED + 60));
    }

    #[test]
    fn a_node_seen_for_the_first_time_has_a_whole_grace_however_old_its_last_words() {
        let old = beating("True", -100_000);
        assert_eq!(silent_from(&Life::begin(signs(&old, Some(at(-100_000))), at(0))), at(50));
    }

    #[test]
    fn a_heartbeat_and_a_renewal_are_signs_of_life_whatever_their_own_clock_says() {
        let conditions = beating("True", 0);
        let mut life = Life::begin(signs(&conditions, None), at(0));
        assert!(!life.look(signs(&conditions, None), at(10)));
        assert_eq!(silent_from(&life), at(50), "the same again is silence");
        assert!(life.look(signs(&beating("True", -3_600), None), at(20)), "a clock that was set back lives");
        assert_eq!(silent_from(&life), at(70));
        let renewed = Some(at(99_999));
        assert!(life.look(signs(&beating("True", -3_600), renewed), at(30)));
        assert!(!life.look(signs(&beating("True", -3_600), renewed), at(40)));
        assert_eq!(silent_from(&life), at(80));
    }

    #[test]
    fn a_kubelet_that_renews_its_lease_and_never_posts_its_status_is_alive() {
        let mut life = Life::begin(signs(&[], None), at(CREATED));
        for second in 0..20 {
            let now = at(CREATED + 10 * second);
            life.look(signs(&[], Some(now)), now);
            assert_eq!(silent_from(&life), now.plus_seconds(60));
        }
    }

    #[test]
    fn our_own_verdict_is_not_a_sign_of_life() {
        let mut life = Life::begin(signs(&[], None), at(CREATED));
        let mut written = beating("Unknown", CREATED);
        written[0].reason = Some(reason::NEVER_UPDATED.into());
        assert!(!life.look(signs(&written, None), at(CREATED + 61)));
        assert_eq!(silent_from(&life), at(CREATED + 50));
        assert!(
            life.look(signs(&beating("True", CREATED), None), at(CREATED + 70)),
            "now the kubelet speaks"
        );
    }

    #[test]
    fn a_lease_that_is_gone_is_no_sign_and_one_that_is_the_same_again_neither() {
        let conditions = beating("True", 0);
        let mut life = Life::begin(signs(&conditions, Some(at(0))), at(0));
        assert!(!life.look(signs(&conditions, None), at(10)));
        assert!(!life.look(signs(&conditions, Some(at(0))), at(20)));
        assert!(life.look(signs(&conditions, Some(at(25))), at(25)));
    }

    #[test]
    fn a_ready_condition_that_somebody_removed_begins_the_startup_grace() {
        let mut life = Life::begin(signs(&beating("True", 0), None), at(0));
        assert!(life.look(signs(&[], None), at(30)));
        assert_eq!(silent_from(&life), at(90));
    }

    #[test]
    fn time_in_which_nobody_looked_is_not_silence() {
        let mut attention = Attention::default();
        let life = Life::begin(signs(&beating("True", 0), None), at(0));
        let mut ends = |now| {
            attention.look(at(now), true);
            life.silent_from(&attention, Graces::default())
        };
        assert_eq!(ends(0), at(50));
        assert_eq!(ends(14), at(50), "as often as anybody looks");
        assert_eq!(ends(3_600), at(3_650), "an hour was lost");
        assert_eq!(ends(3_605), at(3_650));
        assert_eq!(ends(100), at(150), "and found again: no longer than a grace");
    }

    #[test]
    fn time_in_which_nothing_could_be_seen_is_not_silence() {
        let mut attention = Attention::default();
        let life = Life::begin(signs(&beating("True", 0), None), at(0));
        let mut ends = |now, sees| {
            attention.look(at(now), sees);
            life.silent_from(&attention, Graces::default())
        };
        assert_eq!(ends(10, true), at(50));
        for blind in [20, 30, 45, 60, 75] {
            assert_eq!(ends(blind, false), at(blind + 50), "nobody falls silent for somebody who is blind");
        }
        assert_eq!(ends(80, true), at(130), "a whole grace from when something could be seen again");
        assert_eq!(ends(90, true), at(130));
    }

    proptest! {
        /// However the clock jumps, a node is silent a grace after its last sign at the latest, and never before.
        #[test]
        fn silence_is_found_within_one_grace_whatever_the_clock_does(
            steps in prop::collection::vec((-100_i64..100, any::<bool>()), 1..40),
        ) {
            let grace = Graces::default();
            let (mut attention, mut now, mut beats) = (Attention::default(), 0, 0);
            let mut life = Life::begin(signs(&beating("True", beats), None), at(now));
            for (step, is_alive) in steps {
                now += step;
                beats += i64::from(is_alive);
                attention.look(at(now), true);
                let is_sign = life.look(signs(&beating("True", beats), None), at(now));
                prop_assert_eq!(is_sign, is_alive);
                let from = life.silent_from(&attention, grace);
                prop_assert!(from <= at(now + 50));
                prop_assert!(!is_alive || from == at(now + 50));
            }
        }
    }
}
