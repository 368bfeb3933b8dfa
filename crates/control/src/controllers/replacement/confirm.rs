//! The second look, right before an act: everything it rests on is read from the server, and decided on once more.
//!
//! Owns which questions an act asks, and what the answers have to be. Whatever has changed since it was planned, or could not be
//! read, is a no: it is planned again. What is written after a yes is bound to the revisions that were read.

use std::sync::Arc;

use berth_api::replacement::{ReplacementPolicy, Stage as GateStage};
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::replace::{Act, Demand, Feasibility, Known, Plan, PolicyKey, Reason, Step};
use serde_json::Value;

use super::case::{Case, Sight, Stage, Trial};
use super::look::target_of;
use super::question::question;
use super::{ReplacementController, acts, facts, subject};
use crate::act::{Around, Ask, Reply, Write};
use crate::controllers::Verdict;
use crate::names::ControllerName;
use crate::world::{Kind, OWNERS, World};

impl ReplacementController {
    /// Begins the next act of a plan by reading all that it rests on; nothing where nothing is to be done.
    pub(super) fn begin_act(
        &mut self,
        key: &PolicyKey,
        case: &mut Case,
        plan: &Plan,
        world: &World,
        now: Moment,
    ) -> Option<Verdict> {
        case.refusals.retain(|name, refusal| refusal.until > now || case.members.contains(name));
        let is_refused = |name: &Arc<str>| case.refusals.get(name).is_some_and(|refusal| refusal.until > now);
        let step = plan.steps.iter().find(|step| !step.acts.is_empty() && !is_refused(&step.name))?;
        let (act, next) = (step.acts.first()?.clone(), step.acts.get(1).cloned());
        let mut writes = Vec::new();
        if act.demands().contains(&Demand::Gates) {
            writes = Self::last_reviews(key, case, step, world);
        }
        let (asks, candidate) = self.asks(key, case, step, &act, world);
        let asked = asks.len();
        writes.push(Write::Ask { target: target_of(key), asks, asker: ControllerName::Replacement });
        let trial = Trial {
            name: Arc::clone(&step.name),
            act,
            next,
            candidate,
            asked,
            replies: Vec::new(),
            said: Vec::new(),
            is_answered: false,
        };
        case.stage = Stage::Confirms(Box::new(trial));
        Some(Verdict { writes, outcome: "confirmed", ..Verdict::default() })
    }

    /// Whom to ask outside right before something is removed, before anything else is read: they may take a while.
    fn last_reviews(key: &PolicyKey, case: &Case, step: &Step, world: &World) -> Vec<Write> {
        let (Ok(compiled), Some(sight)) = (&case.compiled, case.sights.get(&step.name)) else {
            return Vec::new();
        };
        let mut writes = Vec::new();
        for (gate, rule) in compiled.1.gates.iter().zip(&compiled.0.gates) {
            let is_asked = matches!(rule.stage, GateStage::BeforePodRemoval | GateStage::BeforeVolumeRemoval);
            if let (Some(address), true) = (gate.address(), is_asked) {
                let question = question(key, step, gate.name(), &rule.stage, &sight.around);
                writes.push(Self::review(key, step, address.clone(), question, world));
            }
        }
        writes
    }

    /// The workload that a member belongs to, by its identity.
    fn owner_of(&self, key: &PolicyKey, name: &str, world: &World) -> Option<Arc<str>> {
        let pod = world.pods.get(&ObjectKey::new(&key.namespace, name));
        let kept_by = pod.and_then(|pod| pod.owner.as_ref()).map(|owner| Arc::from(&*owner.uid));
        let work = || self.roster.latest(key, name, world).and_then(|work| work.spec.owner.as_deref());
        kept_by.or_else(|| work().map(Arc::from))
    }

    /// What an act asks the server, and the node that is to be proved to take the successor.
    fn asks(
        &self,
        key: &PolicyKey,
        case: &Case,
        step: &Step,
        act: &Act,
        world: &World,
    ) -> (Vec<Ask>, Result<Arc<str>, Feasibility>) {
        let demands = act.demands();
        let wants = |any: &[Demand]| demands.iter().any(|demand| any.contains(demand));
        let pod = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&step.name) };
        let company = Self::company(key, case, &step.name, world);
        let mut asks = Vec::new();
        if wants(&[Demand::Policy]) {
            asks.push(Ask::Get { kind: Kind::ReplacementPolicy, key: subject(key) });
        }
        if wants(&[Demand::Replacement, Demand::Replacements]) {
            let namespace = Arc::clone(&key.namespace);
            asks.push(Ask::List { kind: Kind::Replacement, namespace, selector: String::new() });
        }
        if wants(&[Demand::Peers, Demand::Gates]) {
            let namespace = Arc::clone(&key.namespace);
            let owner = world.pods.get(&pod).and_then(|pod| pod.owner.as_ref());
            let owner = owner.and_then(|owner| self.owners.get(&*owner.uid));
            let owner = owner.and_then(|owner| owner.reply.object());
            // Of others it matters who uses a claim as well, and how other workloads are.
            let is_alone = company.is_empty();
            let owner = owner.filter(|owner| is_alone && owner["kind"] == facts::STATEFUL_SET);
            let selector = owner.map(selector).unwrap_or_default();
            asks.push(Ask::List { kind: Kind::Pod, namespace, selector });
        }
        let mut candidate = Err(Feasibility::default());
        let needs_place =
            case.compiled.as_ref().is_ok_and(|compiled| compiled.0.strategy.needs_feasible_target);
        if wants(&[Demand::Feasibility])
            && needs_place
            && let Some(sight) = case.sights.get(&step.name)
            && let Some(read) = &sight.pod
        {
            let claims = self.claims_of(case, &sight.around, &case.pods, read.node.as_ref(), world);
            candidate = self.candidate(read, case, &sight.around, &claims, &step.memory, world);
            let asked = candidate.iter();
            asks.extend(asked.map(|name| Ask::Get { kind: Kind::Node, key: ObjectKey::new("", name) }));
        }
        if wants(&[Demand::EvictionTrial])
            && let Some(uid) = &step.memory.uid
        {
            asks.push(Ask::Trial { key: pod.clone(), uid: Arc::clone(uid) });
        }
        if wants(&[Demand::Peers]) {
            asks.extend(company.into_values().map(|name| Ask::Member {
                key: ObjectKey { namespace: Arc::clone(&key.namespace), name },
                with_node: false,
                with_claims: false,
            }));
        }
        // The member comes last: nothing of it is older than the others when it is decided.
        asks.push(Ask::Member { key: pod, with_node: case.reads().nodes, with_claims: case.with_claims() });
        (asks, candidate)
    }

    pub(super) fn claims_of(
        &self,
        case: &Case,
        around: &Around,
        pods: &[Value],
        node: Option<&Arc<str>>,
        world: &World,
    ) -> Known<Vec<berth_engine::replace::Claim>> {
        if !case.with_claims() {
            return Known::Unknown;
        }
        facts::claims(around, pods, || {
            let nodes = world.nodes.iter().filter(|(key, _)| Some(&key.name) != node);
            self.knows_nodes.then(|| nodes.map(|(_, node)| &**node))
        })
    }

    /// Decides once more by what was read, and acts if it is still so.
    pub(super) fn conclude(
        &mut self,
        key: &PolicyKey,
        policy: &Arc<ReplacementPolicy>,
        case: &mut Case,
        trial: &Trial,
        world: &World,
        now: Moment,
    ) -> Verdict {
        match self.judge(key, policy, case, trial, world, now) {
            Ok(around) => self.act(key, policy, case, trial, &around, world, now),
            Err(message) => {
                tracing::debug!(policy = %subject(key), pod = %trial.name, act = %trial.act, message, "not confirmed");
                self.metrics.replacement_act(acts::word(&trial.act), "not-confirmed");
                case.refuse(&trial.name, format!("could not {}: {message}", trial.act), now);
                // It is planned again, by what is known then.
                let wake = case.refusals.get(&trial.name).map(|refusal| refusal.until);
                Verdict { wake, outcome: "not-confirmed", ..Verdict::default() }
            }
        }
    }

    fn judge(
        &mut self,
        key: &PolicyKey,
        policy: &ReplacementPolicy,
        case: &mut Case,
        trial: &Trial,
        world: &World,
        now: Moment,
    ) -> Result<Around, String> {
        let mut pods: Option<&Vec<Value>> = None;
        let mut around: Option<&Around> = None;
        let mut candidate: Option<&Reply> = None;
        for (ask, reply) in &trial.replies {
            match (ask, reply) {
                (Ask::Get { kind: Kind::ReplacementPolicy, .. }, reply) => same_policy(policy, reply)?,
                (Ask::List { kind: Kind::Replacement, .. }, Reply::Objects(works)) => {
                    let owner = self.owner_of(key, &trial.name, world);
                    same_works(key, owner.as_deref(), works, world)?;
                }
                (Ask::List { kind: Kind::Replacement, .. }, reply) => {
                    return Err(format!("replacements could not be read: {}", why(reply)));
                }
                (Ask::List { kind: Kind::Pod, .. }, Reply::Objects(found)) => pods = Some(found),
                (Ask::List { kind: Kind::Pod, .. }, reply) => {
                    return Err(format!("the other members could not be read: {}", why(reply)));
                }
                (Ask::Trial { .. }, Reply::Yes) => {}
                (Ask::Trial { .. }, reply) => {
                    return Err(format!("an eviction would not be let through: {}", why(reply)));
                }
                (Ask::Get { kind: Kind::Node, .. }, reply) => candidate = Some(reply),
                (Ask::Member { key: pod, .. }, reply) if pod.name != trial.name => {
                    self.heard_of_company(pod, reply, world, now);
                }
                (Ask::Member { .. }, Reply::Member(found)) => around = Some(found),
                _ => {}
            }
        }
        if trial.replies.len() != trial.asked {
            return Err("not everything was answered".to_owned());
        }
        let around = around.ok_or("the pod could not be read")?.clone();
        self.set_live(key, policy, case, trial, &around, pods, candidate, world, now);
        let confirmed = self.fleet.confirm(key, &trial.name, &trial.act, now);
        confirmed.map(|()| around).map_err(|reasons| {
            let held = reasons.iter().find(|reason| reason.holds()).or(reasons.last());
            held.map_or_else(|| "it is no longer wanted".to_owned(), Reason::to_string)
        })
    }

    /// Another workload of the policy was read by way of one of its pods; what could not be read is not known.
    fn heard_of_company(&mut self, pod: &ObjectKey, reply: &Reply, world: &World, now: Moment) {
        let owner = world.pods.get(pod).and_then(|pod| pod.owner.as_ref());
        let Some(uid) = owner.map(|owner| Arc::<str>::from(&*owner.uid)) else { return };
        let read = match reply {
            Reply::Member(around) if around.pod.object().and_then(facts::owner_uid) == Some(&*uid) => around,
            _ => {
                self.owners.remove(&uid);
                return;
            }
        };
        self.owners.insert(uid, super::case::Owner { reply: read.owner.clone(), read: now });
    }

    /// Gives the engine what was read, in place of what the watches have told.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what was read")]
    fn set_live(
        &mut self,
        key: &PolicyKey,
        policy: &ReplacementPolicy,
        case: &mut Case,
        trial: &Trial,
        around: &Around,
        pods: Option<&Vec<Value>>,
        candidate: Option<&Reply>,
        world: &World,
        now: Moment,
    ) {
        let name = &trial.name;
        // What is told here counts until the next look.
        case.plain.remove(name);
        let memory = self.memory(key, name, policy, world);
        let mut member = self.member(key, case, name, &memory, world, now);
        let sight = Sight::new(around.clone(), None, now);
        if case.reads().nodes
            && let Some(node) = around.pod.object().and_then(|pod| pod["spec"]["nodeName"].as_str())
            && !node.is_empty()
        {
            let touched = self.fleet.set_node(node, facts::node_fact(&around.node));
            self.shown.remove(node);
            self.touched.extend(touched.into_iter().filter(|other| other != key));
        }
        let feasible = trial.act.demands().contains(&Demand::Feasibility).then(|| {
            let pods = pods.map_or(&*case.pods, Vec::as_slice);
            self.proved(case, around, pods, &memory, &trial.candidate, candidate, world)
        });
        let known: &[Value] = pods.map_or(&case.pods, Vec::as_slice);
        let said = if trial.act.demands().contains(&Demand::Gates) {
            trial.said.clone()
        } else {
            case.sights.get(name).map(|sight| sight.fresh_opinions(now)).unwrap_or_default()
        };
        let verdicts = self.fill(&mut member, case, &sight, &said, known, &memory, feasible, world, now);
        case.verdicts.insert(Arc::clone(name), verdicts);
        if let (Some(uid), Some(pods)) = (around.pod.object().and_then(facts::owner_uid), pods) {
            let kept = pods.iter().filter(|pod| facts::owner_uid(pod) == Some(uid));
            let peers =
                kept.map(|pod| (pod["metadata"]["name"].as_str().unwrap_or_default(), facts::is_ready(pod)));
            let before = self.roster.members_before(key, uid, world);
            let fact = facts::target(Some(&around.owner), peers, before);
            let touched = self.fleet.set_target(&Arc::from(uid), fact);
            self.touched.extend(touched.into_iter().filter(|other| other != key));
            for of in Self::company(key, case, name, world).into_keys() {
                let kept = pods.iter().filter(|pod| facts::owner_uid(pod) == Some(&of));
                let peers = kept
                    .map(|pod| (pod["metadata"]["name"].as_str().unwrap_or_default(), facts::is_ready(pod)));
                let owner = self.owners.get(&of).map(|owner| &owner.reply);
                let before = self.roster.members_before(key, &of, world);
                let touched = self.fleet.set_target(&of, facts::target(owner, peers, before));
                self.touched.extend(touched.into_iter().filter(|other| other != key));
            }
        }
        let touched = self.fleet.set_member(key, member, Some(memory));
        self.touched.extend(touched.into_iter().filter(|other| other != key));
    }
}

/// What an answer that is none says.
fn why(reply: &Reply) -> &str {
    match reply {
        Reply::No(why) | Reply::Unknown(why) => why,
        Reply::Missing => "it is not there",
        _ => "the answer is of another kind",
    }
}

/// The policy still says so.
fn same_policy(policy: &ReplacementPolicy, reply: &Reply) -> Result<(), String> {
    let Reply::Object(live) = reply else {
        return Err(format!("the policy could not be read: {}", why(reply)));
    };
    let metadata = &live["metadata"];
    let is_same = metadata["uid"].as_str() == policy.metadata.uid.as_deref()
        && metadata["generation"].as_i64() == policy.metadata.generation
        && metadata["deletionTimestamp"].is_null();
    if is_same { Ok(()) } else { Err("the policy has changed".to_owned()) }
}

/// All replacements of the policy and of the workload are as they are known: the budget still has the place, nobody else is
/// losing volumes, and nobody has suspended this one or called it off. What becomes of others says nothing here.
fn same_works(key: &PolicyKey, owner: Option<&str>, live: &[Value], world: &World) -> Result<(), String> {
    let concerns = |policy: &str, of: Option<&str>| {
        *key.name == *policy || of.is_some_and(|of| !of.is_empty() && Some(of) == owner)
    };
    let known = world.replacements.iter().filter(|(place, work)| {
        place.namespace == key.namespace && concerns(&work.spec.policy, work.spec.owner.as_deref())
    });
    let known = known.count();
    let is_known = |work: &&Value| {
        let name = work["metadata"]["name"].as_str().unwrap_or_default();
        let known = world.replacements.get(&ObjectKey::new(&key.namespace, name));
        known.is_some_and(|known| {
            known.metadata.uid.as_deref() == work["metadata"]["uid"].as_str()
                && known.metadata.resource_version.as_deref() == work["metadata"]["resourceVersion"].as_str()
        })
    };
    let of_interest = |work: &&Value| {
        let spec = &work["spec"];
        concerns(spec["policy"].as_str().unwrap_or_default(), spec["owner"].as_str())
    };
    let live: Vec<&Value> = live.iter().filter(of_interest).collect();
    if live.len() == known && live.iter().all(is_known) {
        Ok(())
    } else {
        Err("replacements have changed since they were seen".to_owned())
    }
}

/// The labels by which a workload knows its pods; empty where that is not by labels alone, and all pods are read. What an
/// operator calls a selector may be anything, so only Kubernetes' own kinds are taken by their word.
fn selector(owner: &Value) -> String {
    let group = facts::group(owner["apiVersion"].as_str().unwrap_or_default());
    if !OWNERS.iter().any(|(of, kind, _)| *of == group && owner["kind"] == *kind) {
        return String::new();
    }
    let selector = &owner["spec"]["selector"];
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let pairs: Vec<String> =
        labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    pairs.join(",")
}
