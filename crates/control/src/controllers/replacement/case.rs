//! What is kept of one policy between two looks: what was read of its members, and how far the current job is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use berth_api::replacement::{ReplacementPolicy, ReplacementPolicySpec};
use berth_api::schema::Problem;
use berth_engine::Moment;
use berth_engine::gate::{Opinion, Why};
use berth_engine::replace::{
    Act, Feasibility, Phase, Pod, Policy, Questions, Reads, Reason, State, Step, Tally, Verdict, Volumes,
    problems,
};
use serde_json::Value;

use super::{LOOK_HELD, LOOK_UNDER_WAY, facts};
use crate::act::{Around, Ask, Reply};
use crate::due::Ended;
use crate::review::Answer;
use crate::serve::Metrics;

/// How long what a service said is as good as new, from when it was asked: longer than any answer takes. What is older is planned with
/// until it was asked for again, so that many slow answers never outlive each other; before an act it is asked for in any case.
const SAID_COUNTS: Duration = Duration::from_secs(40);
/// How long an act that was not confirmed is not tried: until what was read is known by the watches too.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// How long an eviction that a budget did not allow is not tried.
const BUDGET_WAIT: Duration = Duration::from_secs(10);

/// One policy.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) uid: Option<String>,
    pub(super) spec: ReplacementPolicySpec,
    /// The policy and its questions, or all that is wrong with it.
    pub(super) compiled: Result<Arc<(Policy, Questions)>, Vec<Problem>>,
    /// Whether the engine was told of the policy as it is.
    pub(super) is_taken_in: bool,
    pub(super) members: BTreeSet<Arc<str>>,
    /// Members of which nothing is known but what the watch tells, as the engine was told of them.
    pub(super) plain: HashMap<Arc<str>, Plain>,
    /// Whether it is written of a member that claims of it go.
    pub(super) is_losing: bool,
    /// What was read of members, by name.
    pub(super) sights: HashMap<Arc<str>, Sight>,
    /// Whether services were asked in the last look about members that are not under way.
    pub(super) has_asked: bool,
    /// What the gates said of members, with their words, by name.
    pub(super) verdicts: HashMap<Arc<str>, Vec<(Verdict, Option<String>)>>,
    /// The pods of the namespace, as they were read for the gates.
    pub(super) pods: Vec<Value>,
    pub(super) stage: Stage,
    /// Acts that were not confirmed lately, by member.
    pub(super) refusals: HashMap<Arc<str>, Refusal>,
    /// What a disruption budget said to the eviction that is under way.
    pub(super) budget: Option<String>,
    /// What people were told of a member last.
    pub(super) noted: HashMap<Arc<str>, BTreeSet<&'static str>>,
    pub(super) tally: Tally,
    /// How many members are held up for which reason.
    pub(super) held: BTreeMap<&'static str, i64>,
}

/// How far the job of a policy is.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// Nothing is under way.
    #[default]
    Idle,
    /// Something is read that has to be known.
    Looks,
    /// Something is written down.
    Writes {
        /// The replacements that end with it: how, and after how many seconds.
        ends: Vec<(&'static str, f64)>,
        /// Whether something is to be done once it is written.
        goes_on: bool,
    },
    /// All that an act rests on is read.
    Confirms(Box<Trial>),
    /// An act is done.
    Acts {
        /// On whom.
        name: Arc<str>,
        /// What, in a word.
        act: &'static str,
        /// How long the replacement took, in seconds, if it ends with it.
        lasted: Option<f64>,
    },
}

/// An act that has to be confirmed by what is read right before it.
#[derive(Debug)]
pub(super) struct Trial {
    /// On whom.
    pub(super) name: Arc<str>,
    pub(super) act: Act,
    /// What comes right after it and rests on the same.
    pub(super) next: Option<Act>,
    /// Another node that can take the successor, or why there is none.
    pub(super) candidate: Result<Arc<str>, Feasibility>,
    /// How many questions were asked: what was not answered is not a yes.
    pub(super) asked: usize,
    pub(super) replies: Vec<(Ask, Reply)>,
    /// What services said.
    pub(super) said: Vec<(Arc<str>, Opinion)>,
    pub(super) is_answered: bool,
}

/// Why an act was not done.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) until: Moment,
}

/// A member as the watch tells of it.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) pod: Option<Arc<crate::world::Pod>>,
    /// Whether what the watch tells can be relied on.
    pub(super) is_known: bool,
}

/// What was read of a member.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) around: Around,
    /// The pod, as far as the engine wants to know it; none where there is none, or it cannot be understood.
    pub(super) pod: Option<Pod>,
    /// When.
    pub(super) read: Moment,
    /// The revision of the pod.
    pub(super) revision: u64,
    /// What services said, and until when that counts.
    pub(super) said: BTreeMap<Arc<str>, (Opinion, Moment)>,
}

/// A workload, as it was read.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) reply: Reply,
    pub(super) read: Moment,
}

impl Sight {
    /// What was read just now; what services said before still counts.
    pub(super) fn new(around: Around, before: Option<Self>, now: Moment) -> Self {
        let revision = around.pod.object().and_then(|pod| pod["metadata"]["resourceVersion"].as_str());
        let revision = revision.map(crate::world::number).unwrap_or_default();
        let pod = around.pod.object().and_then(|pod| facts::whole_pod(pod, &around));
        let said = before.map(|before| before.said).unwrap_or_default();
        Self { around, pod, read: now, revision, said }
    }

    /// Of a pod that is no more.
    pub(super) fn of_nothing(now: Moment) -> Self {
        let around = Around {
            pod: Reply::Missing,
            node: Reply::Missing,
            owner: Reply::Missing,
            owner_path: None,
            claims: Vec::new(),
            volumes: Vec::new(),
        };
        Self::new(around, None, now)
    }

    /// What services said last, to plan with.
    pub(super) fn opinions(&self) -> Vec<(Arc<str>, Opinion)> {
        self.said.iter().map(|(gate, (opinion, _))| (Arc::clone(gate), opinion.clone())).collect()
    }

    /// What services said just now, to act on.
    pub(super) fn fresh_opinions(&self, now: Moment) -> Vec<(Arc<str>, Opinion)> {
        let counting = self.said.iter().filter(|(_, (_, until))| *until > now);
        counting.map(|(gate, (opinion, _))| (Arc::clone(gate), opinion.clone())).collect()
    }
}

impl Case {
    pub(super) fn new(policy: &ReplacementPolicy) -> Self {
        let compile = || {
            let compiled = Policy::compile(&policy.spec).ok()?;
            Some(Arc::new((compiled, Questions::compile(&policy.spec).ok()?)))
        };
        Self {
            uid: policy.metadata.uid.clone(),
            spec: policy.spec.clone(),
            compiled: compile().ok_or_else(|| problems(&policy.spec)),
            is_taken_in: false,
            has_asked: false,
            members: BTreeSet::new(),
            plain: HashMap::new(),
            is_losing: false,
            sights: HashMap::new(),
            verdicts: HashMap::new(),
            pods: Vec::new(),
            stage: Stage::Idle,
            refusals: HashMap::new(),
            budget: None,
            noted: HashMap::new(),
            tally: Tally::default(),
            held: BTreeMap::new(),
        }
    }

    /// Whether it is of this policy, as it is.
    pub(super) fn is_of(&self, policy: &ReplacementPolicy) -> bool {
        self.spec == policy.spec
    }

    /// What has to be read for it.
    pub(super) fn reads(&self) -> Reads {
        let nothing = Reads { nodes: false, claims: false };
        self.compiled.as_ref().map_or(nothing, |compiled| compiled.0.reads())
    }

    /// Whether claims are read: to be removed, because they say where a successor may go, or because they were to be removed
    /// by the policy as it was.
    pub(super) fn with_claims(&self) -> bool {
        let needs_place = |policy: &Policy| policy.strategy.needs_feasible_target;
        let is_asked = self.compiled.as_ref().is_ok_and(|compiled| needs_place(&compiled.0));
        self.is_losing || is_asked || self.removes_volumes()
    }

    /// Whether volumes may go.
    pub(super) fn removes_volumes(&self) -> bool {
        self.compiled.as_ref().is_ok_and(|compiled| compiled.0.strategy.volumes != Volumes::Retain)
    }

    /// Whether any change of a pod may matter.
    pub(super) fn watches(&self, name: &str) -> bool {
        self.sights.contains_key(name) || self.reads_conditions()
    }

    /// Whether a rule speaks of conditions of pods that are not kept of all of them.
    pub(super) fn reads_conditions(&self) -> bool {
        self.compiled.as_ref().is_ok_and(|compiled| {
            let is_kept = |condition: &str| matches!(condition, "Ready" | "PodScheduled");
            compiled.0.rules.pod_conditions.iter().any(|rule| !is_kept(&rule.condition))
        })
    }

    /// Whether what keeps a pod is of another group than the policy says: of owners the watch keeps kinds and names alone.
    pub(super) fn is_of_another_group(&self, pod: &Value) -> bool {
        let target = self.spec.target_ref.as_ref();
        target.is_some_and(|target| facts::owner_group(pod) != Some(facts::group(&target.api_version)))
    }

    /// A member is no more.
    pub(super) fn forget(&mut self, name: &str) {
        self.plain.remove(name);
        self.sights.remove(name);
        self.verdicts.remove(name);
        self.refusals.remove(name);
        self.noted.remove(name);
    }

    /// A service has answered.
    pub(super) fn reviewed(&mut self, name: &str, gate: Arc<str>, answer: Answer, asked: Moment) {
        if let Stage::Confirms(trial) = &mut self.stage {
            trial.said.push((gate, opinion(answer, asked)));
            return;
        }
        if let Some(sight) = self.sights.get_mut(name) {
            let until = match &answer {
                Answer::Later { after, .. } => asked.plus(SAID_COUNTS.max(*after)),
                _ => asked.plus(SAID_COUNTS),
            };
            sight.said.insert(gate, (opinion(answer, asked), until));
        }
    }

    /// An act is not done, for a while.
    pub(super) fn refuse(&mut self, name: &Arc<str>, message: String, now: Moment) {
        let until = now.plus(REFUSED_FOR);
        self.refusals.insert(Arc::clone(name), Refusal { message, until });
        // What was read did not bear it out; it is read again before it is planned again.
        self.sights.remove(name);
    }

    /// The job has ended; whether to go on at once. What was written is counted now.
    pub(super) fn ended(&mut self, ended: Ended, now: Moment, metrics: &Metrics) -> bool {
        let is_done = ended.is_over();
        match std::mem::take(&mut self.stage) {
            Stage::Looks => is_done,
            Stage::Writes { ends, goes_on } => {
                for (phase, seconds) in ends.into_iter().filter(|_| is_done) {
                    metrics.replacement_ended(phase, seconds);
                }
                is_done && goes_on
            }
            Stage::Confirms(mut trial) if is_done => {
                trial.is_answered = true;
                self.stage = Stage::Confirms(trial);
                true
            }
            Stage::Idle | Stage::Confirms(_) => false,
            Stage::Acts { name, act, lasted } => {
                self.sights.remove(&name);
                metrics.replacement_act(act, if is_done { "done" } else { "failed" });
                if let Some(seconds) = lasted.filter(|_| is_done) {
                    metrics.replacement_ended(Phase::Aborted.word(), seconds);
                }
                if let (Ended::Blocked { .. }, Some(message)) = (ended, self.budget.take()) {
                    let until = now.plus(BUDGET_WAIT);
                    self.refusals.insert(name, Refusal { message, until });
                    return true;
                }
                is_done
            }
        }
    }
}

/// What an answer counts for.
fn opinion(answer: Answer, asked: Moment) -> Opinion {
    match answer {
        Answer::Allowed => Ok(()),
        Answer::Denied { message } => Err(Why::Denied { message }),
        Answer::Later { after, message } => Err(Why::Later { until: asked.plus(after), message }),
        Answer::Unanswered { why } => Err(Why::Unanswered { error: why.to_string() }),
    }
}

/// How long nothing is asked about a member if nothing is heard of it; `None` where there is nothing to ask.
pub(super) fn patience(step: &Step) -> Option<Duration> {
    match step.state {
        State::Course(phase) if !phase.is_an_end() => Some(LOOK_UNDER_WAY),
        State::Queued if !only_time_helps(step) => Some(LOOK_HELD),
        _ => None,
    }
}

/// Whether a member that is due waits for nothing that could be read.
fn only_time_helps(step: &Step) -> bool {
    step.reasons.iter().any(|reason| {
        matches!(
            reason,
            Reason::Disabled
                | Reason::Off { .. }
                | Reason::Paused { .. }
                | Reason::Frozen { .. }
                | Reason::WindowClosed { .. }
                | Reason::Cooldown { .. }
                | Reason::RetryLater { .. }
                | Reason::RetriesExhausted { .. }
                | Reason::Overlap
        )
    })
}

/// For which reasons members that are due or being replaced are held up, and how many of them for each.
pub(super) fn holds(steps: &[Step]) -> BTreeMap<&'static str, i64> {
    let mut held = BTreeMap::new();
    for step in steps.iter().filter(|step| matches!(step.state, State::Queued | State::Course(_))) {
        if let Some(reason) = step.reasons.iter().find(|reason| reason.holds()) {
            *held.entry(reason.word()).or_default() += 1;
        }
    }
    held
}

/// Whether a member that is due waits for what becomes of others, whatever is read of it: the watches tell of that.
pub(super) fn waits_for_others(step: &Step) -> bool {
    step.state == State::Queued
        && step.reasons.iter().any(|reason| {
            matches!(
                reason,
                Reason::BudgetFull { .. }
                    | Reason::DomainsFull { .. }
                    | Reason::BreakerOpen { .. }
                    | Reason::VolumeTurn
            )
        })
}

/// Whether an annotation may have to be taken off a member whose replacement was called off.
pub(super) fn may_be_told(step: &Step) -> bool {
    let course = step.memory.course.as_ref();
    course
        .is_some_and(|course| course.phase == Phase::Aborted && Some(&course.uid) == step.memory.uid.as_ref())
}
