//! From acts to writes, and what is written down.
//!
//! Owns what each act is to the API server. Every write names what it is about by identity and by the revision that was read
//! when it was confirmed: whatever happened since makes it fail, and it is decided again.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use berth_api::replacement::{
    GateVerdict, Phase as ApiPhase, Replacement, ReplacementPolicy, ReplacementPolicyStatus,
    ReplacementStatus, Successor,
};
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{
    Act, Phase, PolicyKey, Reason, State, Step, Strategy, Verdict as Said, replacement,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference, Time};
use kube::Resource as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::case::{Case, Stage, Trial};
use super::{ReplacementController, facts, told};
use crate::act::{Around, Note, Reply, Target, Write, difference};
use crate::controllers::Verdict;
use crate::names::ControllerName;
use crate::world::{Kind, Object, World};

/// The longest part of a policy's name in the name of a Replacement, in characters: names have 253 at most.
const NAME_CHARS_MAX: usize = 200;
/// How old what a gate said may be told to be, although it was asked since: a status is not written for that alone.
const CHECKED_EVERY: Duration = Duration::from_mins(1);
/// The longest message of a gate or a refusal that is repeated, in characters.
const MESSAGE_CHARS_MAX: usize = 512;

/// Whether a step begins a replacement.
pub(super) fn begins(step: &Step) -> bool {
    step.acts.contains(&Act::Begin)
}

/// The word for an act, for metrics.
pub(super) fn word(act: &Act) -> &'static str {
    match act {
        Act::Begin => "begin",
        Act::Annotate { .. } => "annotate",
        Act::Retract { .. } => "retract",
        Act::Append { .. } => "append",
        Act::KeepVolume { .. } => "keep-volume",
        Act::DeleteClaim { .. } => "delete-claim",
        Act::TurnBack => "turn-back",
        Act::Evict { .. } => "evict",
        Act::DeleteStuck { .. } => "delete-stuck",
    }
}

/// The status of a policy, if it is not what it says.
pub(super) fn policy_status(
    policy: &Arc<ReplacementPolicy>,
    status: &ReplacementPolicyStatus,
) -> Option<Write> {
    let before = policy.status.clone().unwrap_or_default();
    let patch = difference(&before, status)?;
    Some(Write::Patch {
        target: Target::whatever_revision(&Object::ReplacementPolicy(Arc::clone(policy))),
        subresource: Some("status"),
        patch: json!({"status": patch}),
    })
}

/// Whether a replacement has ended so long ago.
pub(super) fn is_over(work: &Replacement, now: Moment, kept: Duration) -> bool {
    let ended = work.status.as_ref().and_then(|status| status.ended_at.as_ref());
    ended.is_some_and(|ended| Moment::from_timestamp(ended.0).plus(kept) <= now)
}

/// A replacement that nobody needs any more goes.
pub(super) fn discard(work: &Arc<Replacement>) -> Write {
    Write::Delete(Target::of(&Object::Replacement(Arc::clone(work))))
}

impl ReplacementController {
    /// The status of a member's replacement, if it is not what it says, and what people are told of it.
    pub(super) fn work_status(
        key: &PolicyKey,
        case: &Case,
        step: &Step,
        latest: &Arc<Replacement>,
        world: &World,
        now: Moment,
    ) -> Option<(Write, Vec<Note>)> {
        let course = step.memory.course.as_ref()?;
        if *course.uid != *latest.spec.target.uid {
            return None;
        }
        let empty = ReplacementStatus::default();
        let before = latest.status.as_ref().unwrap_or(&empty);
        if before.ended_at.is_some() {
            return None;
        }
        let owner = latest.spec.owner.as_deref().unwrap_or_default();
        let (_, mut status) = replacement(&latest.spec.policy, owner, step)?;
        if let (Some(refusal), false) = (case.refusals.get(&step.name), course.phase.is_an_end()) {
            let is_held = step.reasons.iter().any(Reason::holds);
            if !is_held {
                status.reason = Some("NotConfirmed".to_owned());
                status.message = Some(refusal.message.chars().take(MESSAGE_CHARS_MAX).collect());
            }
        }
        status.gates = gates(case, step, before, now);
        status.successor = successor(key, step, before, world);
        status.conditions = Some(vec![progressing(step, &status, before, now)]);
        let is_another_phase = before.phase != status.phase;
        let patch = difference(before, &status)?;
        let notes = if is_another_phase { told::phase(key, step, latest, world) } else { Vec::new() };
        let target = Target::of(&Object::Replacement(Arc::clone(latest)));
        Some((Write::Patch { target, subresource: Some("status"), patch: json!({"status": patch}) }, notes))
    }

    /// Does what was confirmed.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what was confirmed")]
    pub(super) fn act(
        &mut self,
        key: &PolicyKey,
        policy: &Arc<ReplacementPolicy>,
        case: &mut Case,
        trial: &Trial,
        around: &Around,
        world: &World,
        now: Moment,
    ) -> Verdict {
        // What it comes to now that it is sure; the fleet counts it from here on, also for other policies.
        let step = self
            .fleet
            .decide(key, now)
            .and_then(|plan| plan.steps.into_iter().find(|step| step.name == trial.name));
        let writes =
            step.as_ref().and_then(|step| self.writes(key, policy, case, trial, step, around, world, now));
        let (Some(step), Some(writes)) = (step, writes) else {
            self.metrics.replacement_act(word(&trial.act), "not-confirmed");
            let message = format!("could not {}: what was read does not say on what", trial.act);
            case.refuse(&trial.name, message, now);
            let wake = case.refusals.get(&trial.name).map(|refusal| refusal.until);
            return Verdict { wake, outcome: "not-confirmed", ..Verdict::default() };
        };
        case.refusals.remove(&trial.name);
        let course = step.memory.course.as_ref().filter(|_| trial.act == Act::TurnBack);
        let lasted = course.map(|course| course.started.until(now).as_secs_f64());
        case.stage = Stage::Acts { name: Arc::clone(&trial.name), act: word(&trial.act), lasted };
        let latest = self.roster.latest(key, &trial.name, world);
        let notes = match (&trial.act, latest) {
            (Act::TurnBack, Some(latest)) => told::phase(key, &turned_back(&step, now), latest, world),
            (act, _) => told::act(key, act, &step, world),
        };
        Verdict { writes, notes, outcome: "acted", ..Verdict::default() }
    }

    #[expect(clippy::too_many_arguments, reason = "each is a part of what was confirmed")]
    fn writes(
        &mut self,
        key: &PolicyKey,
        policy: &Arc<ReplacementPolicy>,
        case: &Case,
        trial: &Trial,
        step: &Step,
        around: &Around,
        world: &World,
        now: Moment,
    ) -> Option<Vec<Write>> {
        let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&trial.name) };
        let pod = || target(Kind::Pod, &place, around.pod.object()?, None);
        Some(match &trial.act {
            Act::Begin => begin(key, policy, &case.compiled.as_ref().ok()?.0.strategy, step, around)?,
            Act::TurnBack => {
                let latest = self.roster.latest(key, &trial.name, world)?;
                vec![Self::work_status(key, case, &turned_back(step, now), latest, world, now)?.0]
            }
            Act::Annotate { uid, key, value } => {
                let target = pod().filter(|target| target.uid.as_deref() == Some(&**uid))?;
                let patch = json!({"metadata": {"annotations": {(&**key): value}}});
                vec![Write::Patch { target, subresource: None, patch }]
            }
            Act::Retract { uid, key } => {
                let target = pod().filter(|target| target.uid.as_deref() == Some(&**uid))?;
                let patch = json!({"metadata": {"annotations": {(&**key): null}}});
                vec![Write::Patch { target, subresource: None, patch }]
            }
            Act::Append { list, entry } => vec![append(&place, around, list, entry)?],
            Act::KeepVolume { claim, uid } => {
                let mut writes = keep_volume(around, claim)?;
                // The claim goes in the same breath: both rest on what was read just now.
                if let Some(Act::DeleteClaim { claim: next, uid: of }) = &trial.next
                    && (next, of) == (claim, uid)
                {
                    writes.push(delete_claim(key, around, claim, uid)?);
                }
                writes
            }
            Act::DeleteClaim { claim, uid } => vec![delete_claim(key, around, claim, uid)?],
            Act::Evict { uid } => {
                let target = pod().filter(|target| target.uid.as_deref() == Some(&**uid))?;
                self.evicting.insert(place.clone(), key.clone());
                vec![Write::Evict { target, asker: ControllerName::Replacement }]
            }
            Act::DeleteStuck { uid } => {
                vec![Write::Delete(pod().filter(|target| target.uid.as_deref() == Some(&**uid))?)]
            }
        })
    }
}

/// A step after which it is called off: nothing that was to be removed has been.
fn turned_back(step: &Step, now: Moment) -> Step {
    let mut step = step.clone();
    step.memory.turn_back(now);
    step.state = State::Course(Phase::Aborted);
    step.reasons.retain(|reason| !reason.holds());
    step
}

/// An object that was read, of this identity if one is given.
fn target(kind: Kind, key: &ObjectKey, object: &Value, uid: Option<&str>) -> Option<Target> {
    let metadata = &object["metadata"];
    let found = metadata["uid"].as_str()?;
    if uid.is_some_and(|uid| uid != found) {
        return None;
    }
    Some(Target {
        kind,
        key: key.clone(),
        uid: Some(found.to_owned()),
        resource_version: Some(metadata["resourceVersion"].as_str()?.to_owned()),
    })
}

fn claim_of<'a>(around: &'a Around, name: &str) -> Option<&'a Value> {
    around.claims.iter().find(|(known, _)| known == name)?.1.object()
}

fn delete_claim(key: &PolicyKey, around: &Around, name: &str, uid: &str) -> Option<Write> {
    let place = ObjectKey::new(&key.namespace, name);
    target(Kind::Claim, &place, claim_of(around, name)?, Some(uid)).map(Write::Delete)
}

/// Lets the volume of a claim outlive it: no writes where it has none, or does already. `None` where nobody knows.
fn keep_volume(around: &Around, claim: &str) -> Option<Vec<Write>> {
    let name = claim_of(around, claim)?["spec"]["volumeName"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Some(Vec::new());
    }
    let volume = facts::volume_of(around, name)?;
    if volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain" {
        return Some(Vec::new());
    }
    let target = target(Kind::Volume, &ObjectKey::new("", name), volume, None)?;
    let patch = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    Some(vec![Write::Patch { target, subresource: None, patch }])
}

/// Appends to a list of the owner as it was read.
fn append(pod: &ObjectKey, around: &Around, list: &str, entry: &str) -> Option<Write> {
    let Reply::Object(owner) = &around.owner else { return None };
    // Whatever else is in the list is the owner's and stays as it is; what is no list is not made one.
    let mut entries = match list.split('.').fold(&**owner, |value, field| &value[field]) {
        Value::Array(entries) => entries.clone(),
        Value::Null => Vec::new(),
        _ => return None,
    };
    entries.push(json!(entry));
    let patch = list.rsplit('.').fold(json!(entries), |inner, field| json!({(field): inner}));
    let metadata = &owner["metadata"];
    Some(Write::Foreign {
        target: target(Kind::Pod, pod, around.pod.object()?, None)?,
        path: around.owner_path.clone()?,
        uid: metadata["uid"].as_str()?.to_owned(),
        resource_version: metadata["resourceVersion"].as_str()?.to_owned(),
        patch,
    })
}

/// Makes the Replacement of a member, with its status.
fn begin(
    key: &PolicyKey,
    policy: &Arc<ReplacementPolicy>,
    strategy: &Strategy,
    step: &Step,
    around: &Around,
) -> Option<Vec<Write>> {
    let course = step.memory.course.as_ref()?;
    let pod = around.pod.object()?;
    let (mut spec, status) = replacement(&key.name, facts::owner_uid(pod).unwrap_or_default(), step)?;
    // Once the pod is gone nobody can say what its operator called it.
    spec.target.entry = facts::known_by(strategy, pod);
    let name = name_of(&key.name, &course.uid, course.started);
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(key.namespace.to_string()),
        owner_references: Some(vec![OwnerReference {
            api_version: ReplacementPolicy::api_version(&()).into_owned(),
            kind: ReplacementPolicy::kind(&()).into_owned(),
            name: policy.metadata.name.clone()?,
            uid: policy.metadata.uid.clone()?,
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    };
    let work = Arc::new(Replacement { metadata, spec, status: None });
    let target = Target::to_come(Kind::Replacement, ObjectKey::new(&key.namespace, &name));
    let patch = json!({"status": status});
    Some(vec![
        Write::Create(Object::Replacement(work)),
        Write::Patch { target, subresource: Some("status"), patch },
    ])
}

/// The name of a replacement: the policy's, and what tells it from others of the same pod.
fn name_of(policy: &str, uid: &str, started: Moment) -> String {
    let mut hash = Sha256::new();
    hash.update(uid);
    hash.update(started.to_string());
    let mut name: String = policy.chars().take(NAME_CHARS_MAX).collect();
    name.push('-');
    for byte in &hash.finalize()[..5] {
        write!(name, "{byte:02x}").expect("a string takes everything");
    }
    name
}

fn time(moment: Moment) -> Option<Time> {
    moment.cut_to_second().timestamp().map(Time)
}

/// What the gates said last.
fn gates(case: &Case, step: &Step, before: &ReplacementStatus, now: Moment) -> Option<Vec<GateVerdict>> {
    let compiled = case.compiled.as_ref().ok()?;
    let shut = &step.memory.course.as_ref()?.shut;
    let shut_since = |name: &str| shut.get(name).copied().and_then(time);
    let Some(said) = case.verdicts.get(&step.name) else {
        let known = before.gates.clone()?.into_iter();
        return Some(known.map(|gate| GateVerdict { shut_since: shut_since(&gate.name), ..gate }).collect());
    };
    let told = compiled.0.gates.iter().zip(said).map(|(gate, (verdict, message))| {
        let known = before.gates.iter().flatten().find(|known| known.name == *gate.name);
        let mut told = GateVerdict {
            name: gate.name.to_string(),
            verdict: match verdict {
                Said::Pass => "Pass",
                Said::Deny => "Deny",
                Said::InProgress => "InProgress",
                Said::Unknown => "Unknown",
            }
            .to_owned(),
            message: message.as_ref().map(|text| text.chars().take(MESSAGE_CHARS_MAX).collect()),
            last_checked: time(now),
            shut_since: shut_since(&gate.name),
        };
        let is_new = |checked: &Time| Moment::from_timestamp(checked.0).plus(CHECKED_EVERY) > now;
        if let Some(known) = known
            && (&known.verdict, &known.message) == (&told.verdict, &told.message)
            && known.last_checked.as_ref().is_some_and(is_new)
        {
            told.last_checked.clone_from(&known.last_checked);
        }
        told
    });
    let told: Vec<GateVerdict> = told.collect();
    (!told.is_empty()).then_some(told)
}

/// The pod that took the member's place under its name.
fn successor(key: &PolicyKey, step: &Step, before: &ReplacementStatus, world: &World) -> Option<Successor> {
    let course = step.memory.course.as_ref()?;
    let pod =
        world.pods.get(&ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&step.name) });
    let found =
        pod.filter(|pod| course.removed.is_some() && pod.identity.uid != course.uid).map(|pod| Successor {
            name: step.name.to_string(),
            uid: pod.identity.uid.to_string(),
            node: (!pod.node.is_empty()).then(|| pod.node.to_string()),
        });
    found.or_else(|| before.successor.clone())
}

fn progressing(
    step: &Step,
    status: &ReplacementStatus,
    before: &ReplacementStatus,
    now: Moment,
) -> Condition {
    const KIND: &str = "Progressing";
    let is_held = step.reasons.iter().any(Reason::holds) || status.reason.as_deref() == Some("NotConfirmed");
    let (says, reason) = match step.state {
        State::Course(Phase::Done | Phase::Aborted | Phase::Failed) => {
            ("False", status.phase.as_ref().map_or("Ended", ApiPhase::as_str))
        }
        _ if is_held => ("False", status.reason.as_deref().unwrap_or("Held")),
        _ => ("True", status.phase.as_ref().map_or("Progressing", ApiPhase::as_str)),
    };
    let known = before.conditions.iter().flatten().find(|known| known.type_ == KIND);
    let since = known.filter(|known| known.status == says).map(|known| known.last_transition_time.clone());
    Condition {
        type_: KIND.to_owned(),
        status: says.to_owned(),
        reason: reason.to_owned(),
        message: status.message.clone().unwrap_or_default(),
        last_transition_time: since.or_else(|| time(now)).unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH)),
        observed_generation: None,
    }
}
