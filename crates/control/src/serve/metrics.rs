//! What is counted.
//!
//! Owns the names and the labels of the metrics of the controllers. Labels take few values each: kinds, controllers,
//! verbs and outcomes, never names of objects, so that the number of series does not grow with the fleet; zones are few.
//!
//! | name | kind | labels | meaning |
//! |---|---|---|---|
//! | `berth_decisions_total` | counter | `controller`, `outcome` | subjects decided, by how it came out |
//! | `berth_decide_seconds` | histogram | `controller` | time a decision took |
//! | `berth_waiting` | gauge | `controller` | subjects that wait to be decided |
//! | `berth_event_to_write_seconds` | histogram | `controller` | from hearing of a change until the write it led to was answered |
//! | `berth_next_deadline_timestamp_seconds` | gauge | `controller` | when time alone will next change a decision; 0 for never |
//! | `berth_writes_total` | counter | `kind`, `verb`, `result` | writes to the API server |
//! | `berth_events_total` | counter | `result` | events handed in to be recorded |
//! | `berth_watch_failures_total` | counter | `kind` | watches and lists that failed and were begun again |
//! | `berth_placements` | gauge | `state` | placements, by whether they are satisfied |
//! | `berth_reviews_total` | counter | `path`, `verdict` | admission reviews answered |
//! | `berth_review_seconds` | histogram | `path` | time a review took |
//! | `berth_certificate_end_timestamp_seconds` | gauge | | when the certificate ends that a webhook shows; 0 where there is none |
//! | `berth_webhook_configurations` | gauge | | of the two webhook configurations by which API servers come, how many there are |
//! | `taint_eviction_controller_pod_deletions_total` | counter | | pods evicted; the name is kube-controller-manager's |
//! | `taint_eviction_controller_pod_deletion_duration_seconds` | histogram | | from the moment a pod was due, by the time its taint was added, until its deletion was answered |
//! | `berth_evictions_waiting` | gauge | | pods that must leave and have not, due or not |
//! | `berth_evictions_held` | gauge | `reason` | pods that are due and held: `frozen`, `all-down`, `unseen`, `not-counted`, `breaker`, `full` or `rate` |
//! | `berth_evictions_frozen` | gauge | | 1 while a person has stopped evictions |
//! | `berth_evictions_stopped` | gauge | `cause` | 1 while nobody is evicted for this cause: `person`, `all-down` or `unseen`; told by who leads |
//! | `berth_eviction_breaker_open` | gauge | `zone` | 1 while too many nodes of a zone are tainted for its pods to be evicted, 0 otherwise; only with a breaker, and told by who leads |
//! | `berth_policy_evictions_total` | counter | `policy`, `way` | pods evicted by the word of an EvictionPolicy: `Delete`, `Evict`, `Force` or, if it had been in earnest, `DryRun` |
//! | `berth_policy_held` | gauge | `policy`, `reason` | pods that are due and that an EvictionPolicy holds: `Hold`, `DeadlinePassed`, `Misconfigured`, `NamespaceUnknown`, `Window`, `Gate` or `Budget`; or that wait behind what holds more of them: `Frozen`, `AllDown`, `Unseen`, `Breaker`, `InFlight`, `ZoneInFlight` or `PerWorkload` |
//! | `berth_policy_reviews_total` | counter | `policy`, `answer` | services asked by the gates of an EvictionPolicy: `allowed`, `denied`, `later` or `unanswered` |
//! | `berth_replacement_members` | gauge | `state` | members of ReplacementPolicies: `matched`, `detected`, `replacing`, `in-flight` or `blocked` |
//! | `berth_replacements_ended_total` | counter | `phase` | replacements that have ended: `Done`, `Aborted` or `Failed` |
//! | `berth_replacement_acts_total` | counter | `act`, `result` | acts of replacements: `done`, `failed`, or `not-confirmed` by what was read right before |
//! | `berth_replacements_held` | gauge | `reason` | members that are due or being replaced and held up, by the reason that their status tells, such as `BreakerOpen`, `Frozen` or `GateShut` |
//! | `berth_replacement_seconds` | histogram | `phase` | from the beginning of a replacement until its end |
//! | `node_collector_zone_size` | gauge | `zone` | nodes of a zone; these names are kube-controller-manager's |
//! | `node_collector_unhealthy_nodes_in_zone` | gauge | `zone` | nodes of a zone that are not ready |
//! | `node_collector_zone_health` | gauge | `zone` | how many percent of a zone are ready |
//! | `node_collector_evictions_total` | counter | `zone` | nodes tainted so that their pods leave |
//! | `berth_leads` | gauge | | 1 while this process may write, 0 while it stands by |

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::evict::policy::Keep;
use berth_engine::evict::{Cause, Hold, Stops};
use berth_engine::node::ZoneCounts;
use berth_engine::replace::Tally;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::deciding::Deciding;
use crate::names::ControllerName;
use crate::review::Answer;
use crate::world::Kind;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Decided {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Written {
    kind: String,
    verb: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WithResult {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reviewed {
    path: &'static str,
    verdict: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPath {
    path: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByPolicy {
    policy: String,
    way: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReviewedByPolicy {
    policy: String,
    answer: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HeldByPolicy {
    policy: String,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ForReason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InPhase {
    phase: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Acted {
    act: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfZone {
    zone: String,
}

/// The buckets of kube-controller-manager, in seconds.
const EVICTION_DELAYS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

/// How a placement is, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlacementState {
    /// It has the clusters it asks for.
    Satisfied,
    /// There are not enough clusters for it.
    Unsatisfied,
    /// It cannot be decided; its last decision stands.
    Misconfigured,
}

impl PlacementState {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Satisfied, Self::Unsatisfied, Self::Misconfigured];

    /// Its value of the label `state`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Satisfied => "satisfied",
            Self::Unsatisfied => "unsatisfied",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// The metrics of the controllers.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    deciding: Deciding,
    decisions: Family<Decided, Counter>,
    durations: Family<OfController, Histogram>,
    reactions: Family<OfController, Histogram>,
    waiting: Family<OfController, Gauge>,
    deadlines: Family<OfController, Gauge<f64, AtomicU64>>,
    writes: Family<Written, Counter>,
    events: Family<WithResult, Counter>,
    watch_failures: Family<OfKind, Counter>,
    placements: Family<InState, Gauge>,
    reviews: Family<Reviewed, Counter>,
    review_durations: Family<OfPath, Histogram>,
    certificate_end: Gauge,
    configurations: Gauge,
    leads: Gauge,
    evicted: Counter,
    eviction_delays: Histogram,
    evictions_waiting: Gauge,
    evictions_held: Family<ForReason, Gauge>,
    evictions_frozen: Gauge,
    evictions_stopped: Family<ByCause, Gauge>,
    eviction_breakers: Family<OfZone, Gauge>,
    policy_evictions: Family<ByPolicy, Counter>,
    policy_held: Family<HeldByPolicy, Gauge>,
    policy_reviews: Family<ReviewedByPolicy, Counter>,
    replacement_members: Family<InState, Gauge>,
    replacements_ended: Family<InPhase, Counter>,
    replacement_acts: Family<Acted, Counter>,
    replacements_held: Family<ForReason, Gauge>,
    replacement_durations: Family<InPhase, Histogram>,
    zone_size: Family<OfZone, Gauge>,
    zone_unhealthy: Family<OfZone, Gauge>,
    zone_health: Family<OfZone, Gauge>,
    nodes_tainted: Family<OfZone, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        // From a microsecond to half a second.
        let decide: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-6, 3.0, 13));
        // From a millisecond, the least a server takes, to a minute.
        let react: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-3, 2.5, 13));
        // From a second to three days.
        let last: fn() -> Histogram = || Histogram::new(exponential_buckets(1.0, 4.0, 10));
        let mut metrics = Self {
            registry: Registry::default(),
            deciding: Deciding::default(),
            decisions: Family::default(),
            durations: Family::new_with_constructor(decide),
            reactions: Family::new_with_constructor(react),
            waiting: Family::default(),
            deadlines: Family::default(),
            writes: Family::default(),
            events: Family::default(),
            watch_failures: Family::default(),
            placements: Family::default(),
            reviews: Family::default(),
            review_durations: Family::new_with_constructor(react),
            certificate_end: Gauge::default(),
            configurations: Gauge::default(),
            leads: Gauge::default(),
            evicted: Counter::default(),
            eviction_delays: Histogram::new(EVICTION_DELAYS),
            evictions_waiting: Gauge::default(),
            evictions_held: Family::default(),
            evictions_frozen: Gauge::default(),
            evictions_stopped: Family::default(),
            eviction_breakers: Family::default(),
            policy_evictions: Family::default(),
            policy_held: Family::default(),
            policy_reviews: Family::default(),
            replacement_members: Family::default(),
            replacements_ended: Family::default(),
            replacement_acts: Family::default(),
            replacements_held: Family::default(),
            replacement_durations: Family::new_with_constructor(last),
            zone_size: Family::default(),
            zone_unhealthy: Family::default(),
            zone_health: Family::default(),
            nodes_tainted: Family::default(),
        };
        // What dashboards know from kube-controller-manager keeps its name.
        let theirs = metrics.registry.sub_registry_with_prefix("taint_eviction_controller");
        theirs.register("pod_deletions", "Pods evicted", metrics.evicted.clone());
        theirs.register(
            "pod_deletion_duration_seconds",
            "Time from the moment a pod was due until its deletion was answered",
            metrics.eviction_delays.clone(),
        );
        let theirs = metrics.registry.sub_registry_with_prefix("node_collector");
        theirs.register("zone_size", "Nodes of a zone", metrics.zone_size.clone());
        theirs.register(
            "unhealthy_nodes_in_zone",
            "Nodes of a zone that are not ready",
            metrics.zone_unhealthy.clone(),
        );
        theirs.register("zone_health", "How many percent of a zone are ready", metrics.zone_health.clone());
        theirs.register("evictions", "Nodes tainted so that their pods leave", metrics.nodes_tainted.clone());
        let registry = metrics.registry.sub_registry_with_prefix("berth");
        registry.register(
            "evictions_waiting",
            "Pods that must leave and have not",
            metrics.evictions_waiting.clone(),
        );
        registry.register(
            "evictions_held",
            "Pods that are due and held, by why",
            metrics.evictions_held.clone(),
        );
        registry.register(
            "evictions_frozen",
            "Whether a person has stopped evictions",
            metrics.evictions_frozen.clone(),
        );
        registry.register(
            "evictions_stopped",
            "Whether nobody is evicted, by the cause",
            metrics.evictions_stopped.clone(),
        );
        registry.register(
            "eviction_breaker_open",
            "Whether too many nodes of a zone are tainted for its pods to be evicted",
            metrics.eviction_breakers.clone(),
        );
        registry.register(
            "policy_evictions",
            "Pods evicted by the word of an EvictionPolicy, by how",
            metrics.policy_evictions.clone(),
        );
        registry.register(
            "policy_reviews",
            "Services asked by the gates of an EvictionPolicy, by what came of it",
            metrics.policy_reviews.clone(),
        );
        registry.register(
            "policy_held",
            "Pods of an EvictionPolicy that are due and held, by why",
            metrics.policy_held.clone(),
        );
        registry.register(
            "replacement_members",
            "Members of ReplacementPolicies, by how they stand",
            metrics.replacement_members.clone(),
        );
        registry.register(
            "replacements_ended",
            "Replacements that have ended, by how",
            metrics.replacements_ended.clone(),
        );
        registry.register(
            "replacement_acts",
            "Acts of replacements, by whether they were confirmed",
            metrics.replacement_acts.clone(),
        );
        registry.register(
            "replacements_held",
            "Members that are due or being replaced and held up, by why",
            metrics.replacements_held.clone(),
        );
        registry.register(
            "replacement_seconds",
            "Time from the beginning of a replacement until its end",
            metrics.replacement_durations.clone(),
        );
        registry.register("decisions", "Subjects decided, by how it came out", metrics.decisions.clone());
        registry.register("decide_seconds", "Time a decision took", metrics.durations.clone());
        registry.register(
            "event_to_write_seconds",
            "Time from hearing of a change until the write it led to was answered",
            metrics.reactions.clone(),
        );
        registry.register("waiting", "Subjects that wait to be decided", metrics.waiting.clone());
        registry.register(
            "next_deadline_timestamp_seconds",
            "When time alone will next change a decision; 0 for never",
            metrics.deadlines.clone(),
        );
        registry.register("writes", "Writes to the API server", metrics.writes.clone());
        registry.register("events", "Events handed in to be recorded", metrics.events.clone());
        registry.register("watch_failures", "Watches and lists that failed", metrics.watch_failures.clone());
        registry.register(
            "placements",
            "Placements, by whether they are satisfied",
            metrics.placements.clone(),
        );
        registry.register("reviews", "Admission reviews answered", metrics.reviews.clone());
        registry.register("review_seconds", "Time a review took", metrics.review_durations.clone());
        registry.register(
            "certificate_end_timestamp_seconds",
            "When the certificate ends that a webhook shows",
            metrics.certificate_end.clone(),
        );
        registry.register(
            "webhook_configurations",
            "Of the two webhook configurations, how many there are",
            metrics.configurations.clone(),
        );
        registry.register("leads", "Whether this process may write", metrics.leads.clone());
        metrics
    }
}

impl Metrics {
    /// The metrics as text, in the OpenMetrics format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("text takes all that is written to it");
        text
    }

    pub(crate) fn decided(&self, controller: ControllerName, outcome: &'static str, took: Duration) {
        let (of, controller) = (self.deciding.of(controller), controller.as_str());
        of.came_out(outcome, || self.decisions.get_or_create_owned(&Decided { controller, outcome }));
        let series = of.took.get_or_init(|| self.durations.get_or_create_owned(&OfController { controller }));
        series.observe(took.as_secs_f64());
    }

    pub(crate) fn waiting(&self, controller: ControllerName, subjects: usize, deadline: Option<Moment>) {
        let of = OfController { controller: controller.as_str() };
        self.waiting.get_or_create(&of).set(i64::try_from(subjects).unwrap_or(i64::MAX));
        let deadline =
            deadline.and_then(Moment::timestamp).map_or(0.0, |at| at.as_microsecond() as f64 / 1e6);
        self.deadlines.get_or_create(&of).set(deadline);
    }

    pub(crate) fn wrote(&self, kind: Kind, verb: &'static str, result: &'static str) {
        self.writes.get_or_create(&Written { kind: kind.name(), verb, result }).inc();
    }

    pub(crate) fn event(&self, result: &'static str) {
        self.events.get_or_create(&WithResult { result }).inc();
    }

    pub(crate) fn watch_failed(&self, kind: Kind) {
        self.watch_failures.get_or_create(&OfKind { kind: kind.name() }).inc();
    }

    /// A change led to a write, which was answered so much time after the change was heard of.
    pub fn reacted(&self, controller: ControllerName, took: Duration) {
        let (of, controller) = (self.deciding.of(controller), controller.as_str());
        let series =
            of.reacted.get_or_init(|| self.reactions.get_or_create_owned(&OfController { controller }));
        series.observe(took.as_secs_f64());
    }

    /// So many placements are in this state now.
    pub fn placements(&self, state: PlacementState, count: usize) {
        let of = InState { state: state.as_str() };
        self.placements.get_or_create(&of).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A webhook answered a review.
    pub fn reviewed(&self, path: &'static str, verdict: &'static str, took: Duration) {
        self.reviews.get_or_create(&Reviewed { path, verdict }).inc();
        self.review_durations.get_or_create(&OfPath { path }).observe(took.as_secs_f64());
    }

    /// A webhook shows a certificate that ends then, in seconds since the epoch.
    pub fn certificate_ends(&self, second: i64) {
        self.certificate_end.set(second);
    }

    /// A pod was evicted, so much time after it was due.
    pub(crate) fn evicted(&self, delay: Duration) {
        self.evicted.inc();
        self.eviction_delays.observe(delay.as_secs_f64());
    }

    /// So many pods must leave, and so many of them are held, each for its reason.
    pub(crate) fn evictions(&self, waiting: usize, held: &BTreeMap<&'static str, usize>) {
        self.evictions_waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        for reason in Hold::WORDS {
            let count = held.get(reason).copied().unwrap_or_default();
            self.evictions_held
                .get_or_create(&ForReason { reason })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A pod was evicted by the word of a policy, or would have been.
    pub(crate) fn evicted_by_policy(&self, policy: &str, way: &'static str) {
        self.policy_evictions.get_or_create(&ByPolicy { policy: policy.to_owned(), way }).inc();
    }

    /// Somebody was asked by a gate of a policy.
    pub(crate) fn reviewed_by_policy(&self, policy: &str, answer: &'static str) {
        self.policy_reviews.get_or_create(&ReviewedByPolicy { policy: policy.to_owned(), answer }).inc();
    }

    /// So many pods of a policy are held, each for its reason; other reasons hold nobody.
    pub(crate) fn held_by_policy<'h>(
        &self,
        policy: &str,
        holds: impl Iterator<Item = (&'static str, Option<&'h str>, usize)>,
    ) {
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (reason, _, count) in holds {
            *counts.entry(reason).or_default() += count;
        }
        for reason in Keep::WORDS {
            let count = counts.get(reason).copied().unwrap_or_default();
            self.policy_held
                .get_or_create(&HeldByPolicy { policy: policy.to_owned(), reason })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A policy is no more.
    pub(crate) fn policy_is_gone(&self, policy: &str) {
        for reason in Keep::WORDS {
            self.policy_held.remove(&HeldByPolicy { policy: policy.to_owned(), reason });
        }
        for way in ["Delete", "Evict", "Force", "DryRun"] {
            self.policy_evictions.remove(&ByPolicy { policy: policy.to_owned(), way });
        }
        for answer in Answer::WORDS {
            self.policy_reviews.remove(&ReviewedByPolicy { policy: policy.to_owned(), answer });
        }
    }

    /// The members of a policy stood so, and stand so now.
    pub(crate) fn replacement_members(&self, before: &Tally, after: &Tally) {
        let counts = |tally: &Tally| {
            [
                ("matched", tally.matched),
                ("detected", tally.detected),
                ("replacing", tally.replacing),
                ("in-flight", tally.in_flight),
                ("blocked", tally.blocked),
            ]
        };
        for ((state, before), (_, after)) in counts(before).into_iter().zip(counts(after)) {
            let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            self.replacement_members.get_or_create(&InState { state }).inc_by(number(after) - number(before));
        }
    }

    /// A replacement has ended, after so many seconds.
    pub(crate) fn replacement_ended(&self, phase: &'static str, seconds: f64) {
        self.replacements_ended.get_or_create(&InPhase { phase }).inc();
        self.replacement_durations.get_or_create(&InPhase { phase }).observe(seconds);
    }

    /// So many members of a policy were held up for each reason, and are now.
    pub(crate) fn replacements_held(
        &self,
        before: &BTreeMap<&'static str, i64>,
        after: &BTreeMap<&'static str, i64>,
    ) {
        for (counts, sign) in [(before, -1), (after, 1)] {
            for (reason, count) in counts {
                self.replacements_held.get_or_create(&ForReason { reason }).inc_by(sign * count);
            }
        }
    }

    /// An act of a replacement was done, or not.
    pub(crate) fn replacement_act(&self, act: &'static str, result: &'static str) {
        self.replacement_acts.get_or_create(&Acted { act, result }).inc();
    }

    /// Whether a person has stopped evictions.
    pub(crate) fn evictions_frozen(&self, is_frozen: bool) {
        self.evictions_frozen.set(i64::from(is_frozen));
    }

    /// Nobody is evicted for the causes of these stops.
    pub(crate) fn evictions_stopped(&self, stops: &Stops) {
        for cause in Cause::ALL {
            let of = ByCause { cause: cause.word() };
            self.evictions_stopped.get_or_create(&of).set(i64::from(stops.get(cause).is_some()));
        }
    }

    /// The breaker of a zone is open, or lets pass.
    pub(crate) fn eviction_breaker(&self, zone: &str, is_open: bool) {
        self.eviction_breakers.get_or_create(&OfZone { zone: zone.to_owned() }).set(i64::from(is_open));
    }

    /// A zone has no breaker any more.
    pub(crate) fn eviction_breaker_is_gone(&self, zone: &str) {
        self.eviction_breakers.remove(&OfZone { zone: zone.to_owned() });
    }

    /// So many nodes of these zones are ready, and so many are not; other zones are no more.
    pub(crate) fn zones(&self, zones: impl Iterator<Item = (String, ZoneCounts)>) {
        for family in [&self.zone_size, &self.zone_unhealthy, &self.zone_health] {
            family.clear();
        }
        for (zone, counts) in zones {
            let (of, size) = (OfZone { zone }, counts.size());
            let set = |family: &Family<OfZone, Gauge>, count: usize| {
                family.get_or_create(&of).set(i64::try_from(count).unwrap_or(i64::MAX));
            };
            set(&self.zone_size, size);
            set(&self.zone_unhealthy, counts.not_ready);
            // Where nobody counts, nobody is unwell.
            set(&self.zone_health, (100 * counts.ready).checked_div(size).unwrap_or(100));
        }
    }

    /// A node of this zone was tainted so that its pods leave.
    pub(crate) fn node_tainted(&self, zone: String) {
        self.nodes_tainted.get_or_create(&OfZone { zone }).inc();
    }

    /// So many of the two webhook configurations are there.
    pub fn configurations(&self, count: usize) {
        self.configurations.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leads.set(i64::from(leads));
    }
}

#[cfg(test)]
mod tests {
    use berth_engine::evict::Freeze;

    use super::*;

    /// The metrics after one of everything.
    fn used() -> Metrics {
        let metrics = Metrics::default();
        let controller = ControllerName::Placement;
        metrics.decided(controller, "satisfied", Duration::from_micros(2));
        metrics.waiting(controller, 3, Some(Moment::from_second(1_800_000_000)));
        metrics.reacted(controller, Duration::from_millis(4));
        metrics.wrote(Kind::ALL[0], "create", "ok");
        metrics.event("ok");
        metrics.watch_failed(Kind::ALL[0]);
        metrics.placements(PlacementState::Misconfigured, 2);
        metrics.reviewed("validate", "allowed", Duration::from_millis(5));
        metrics.certificate_ends(1_800_000_000);
        metrics.configurations(2);
        metrics.leads(true);
        metrics.evicted(Duration::from_millis(20));
        metrics.evictions(7, &BTreeMap::from([("rate", 3)]));
        metrics.evictions_frozen(true);
        metrics.evictions_stopped(&[Freeze::of(Cause::AllDown, "it is not the nodes")].into_iter().collect());
        metrics.eviction_breaker("eu/a", true);
        metrics.evicted_by_policy("p", "Evict");
        metrics.held_by_policy("p", [("Gate", Some("backup"), 2)].into_iter());
        metrics.reviewed_by_policy("p", "later");
        metrics.replacement_members(&Tally::default(), &Tally { matched: 3, ..Tally::default() });
        metrics.replacement_ended("Done", 20.0);
        metrics.replacement_act("evict", "done");
        metrics.replacements_held(&BTreeMap::new(), &BTreeMap::from([("BreakerOpen", 2), ("Frozen", 1)]));
        metrics.replacements_held(&BTreeMap::from([("Frozen", 1)]), &BTreeMap::new());
        metrics.zones([("z".to_owned(), ZoneCounts { ready: 2, not_ready: 1 })].into_iter());
        metrics.node_tainted("z".to_owned());
        metrics
    }

    #[test]
    fn every_metric_is_told_and_documented() {
        let text = used().text();
        let told: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| line.split_once(' '))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(told.len(), 33, "{text}");
        let documented = include_str!("metrics.rs");
        for name in told {
            let row = |name: &str| documented.contains(&format!("//! | `{name}` |"));
            assert!(row(name) || row(&format!("{name}_total")), "{name} is not in the table");
        }
    }

    /// Upstream: metrics_test.go "TestMetrics".
    #[test]
    fn values_are_told_as_they_are() {
        let text = used().text();
        for line in [
            r#"berth_decisions_total{controller="placement-controller",outcome="satisfied"} 1"#,
            r#"berth_decide_seconds_count{controller="placement-controller"} 1"#,
            r#"berth_waiting{controller="placement-controller"} 3"#,
            r#"berth_next_deadline_timestamp_seconds{controller="placement-controller"} 1800000000.0"#,
            r#"berth_placements{state="misconfigured"} 2"#,
            "berth_leads 1",
            "taint_eviction_controller_pod_deletions_total 1",
            r#"taint_eviction_controller_pod_deletion_duration_seconds_bucket{le="0.025"} 1"#,
            "berth_evictions_waiting 7",
            r#"berth_evictions_held{reason="rate"} 3"#,
            r#"berth_evictions_held{reason="frozen"} 0"#,
            "berth_evictions_frozen 1",
            r#"berth_eviction_breaker_open{zone="eu/a"} 1"#,
            r#"berth_evictions_stopped{cause="person"} 0"#,
            r#"berth_evictions_stopped{cause="all-down"} 1"#,
            r#"berth_policy_evictions_total{policy="p",way="Evict"} 1"#,
            r#"berth_policy_held{policy="p",reason="Gate"} 2"#,
            r#"berth_policy_held{policy="p",reason="Budget"} 0"#,
            r#"berth_policy_reviews_total{policy="p",answer="later"} 1"#,
            r#"berth_replacement_members{state="matched"} 3"#,
            r#"berth_replacements_ended_total{phase="Done"} 1"#,
            r#"berth_replacement_acts_total{act="evict",result="done"} 1"#,
            r#"berth_replacements_held{reason="BreakerOpen"} 2"#,
            r#"berth_replacements_held{reason="Frozen"} 0"#,
            r#"berth_replacement_seconds_bucket{le="64.0",phase="Done"} 1"#,
            r#"node_collector_zone_size{zone="z"} 3"#,
            r#"node_collector_unhealthy_nodes_in_zone{zone="z"} 1"#,
            r#"node_collector_zone_health{zone="z"} 66"#,
            r#"node_collector_evictions_total{zone="z"} 1"#,
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_the_dashboard_draws_and_the_alerts_watch_is_told() {
        let text = used().text();
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let files = [
            include_str!("../../../../deploy/monitoring/dashboard.json"),
            include_str!("../../../../deploy/monitoring/alerts.yaml"),
        ];
        for file in files {
            let words = file.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_'));
            let is_ours = |word: &&str| {
                word.starts_with("taint_eviction_controller_")
                    || word.starts_with("node_collector_")
                    || word.starts_with("berth_") && !word.starts_with("berth_hub_")
            };
            let ours: Vec<&str> = words.filter(is_ours).collect();
            assert!(ours.len() > 10);
            for word in ours {
                assert!(samples.contains(&word), "nothing is told as {word}");
            }
        }
    }

    /// A word that no pod is held for would be an alert that never comes.
    #[test]
    fn the_alerts_name_reasons_for_which_policies_hold() {
        let alerts = include_str!("../../../../deploy/monitoring/alerts.yaml");
        let lists =
            alerts.split("berth_policy_held{reason=").skip(1).filter_map(|rest| rest.split('"').nth(1));
        let named: Vec<&str> = lists.flat_map(|list| list.split('|')).collect();
        assert!(named.len() > 3, "{named:?}");
        for reason in named {
            assert!(Keep::WORDS.contains(&reason), "nobody is held for {reason}");
        }
    }

    #[test]
    fn no_deadline_is_told_as_zero() {
        let metrics = used();
        metrics.waiting(ControllerName::Placement, 0, None);
        assert!(
            metrics
                .text()
                .contains("berth_next_deadline_timestamp_seconds{controller=\"placement-controller\"} 0.0")
        );
    }
}
