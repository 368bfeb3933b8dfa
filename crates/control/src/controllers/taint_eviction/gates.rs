//! What has to hold before a pod goes: it is looked at, its gates are judged, and whoever is outside is asked.
//!
//! Owns the way of one pod from being let go to the revision at which everything held, and how long one waits where it did not.
//! What a gate means is the engine's to say; how a review travels is [`crate::review`]'s.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use berth_engine::Moment;
use berth_engine::evict::policy::{Demand, Keep, Rule};
use berth_engine::gate::{Gate, Opinion, Passage, Shut, Sight, Why, passage};
use serde_json::Value;

use super::cases::Wait;
use super::step::{Shown, Stage, Step};
use super::{PodId, TaintEvictionController};
use crate::act::{Target, Write};
use crate::controllers::Verdict;
use crate::names::ControllerName;
use crate::review::{Answer, NodeFacts, PodFacts, Question, Silence, TaintFacts};
use crate::runtime::PLACES;
use crate::world::{Object, Pod, World};

/// Reviews under way at once. Each may take half a minute, and those who need none must find a place meanwhile.
pub(super) const REVIEWS_MAX: usize = PLACES / 4;
/// Of them for one policy: one whose service hangs leaves places to others.
pub(super) const REVIEWS_MAX_EACH: usize = REVIEWS_MAX / 4;
/// When somebody comes again who found no place to ask: from the half to the whole of it.
const PLACE_WAIT: Duration = Duration::from_secs(1);

impl TaintEvictionController {
    /// The revision of a pod at which all gates of its policy are open, `None` if there are no gates; or what comes before that.
    pub(super) fn through_gates(
        &mut self,
        pod: &Arc<Pod>,
        id: &PodId,
        demand: &Demand,
        stage: Stage,
        world: &World,
        now: Moment,
    ) -> ControlFlow<Verdict, Option<String>> {
        let rule = demand.authority.rule();
        let Some((rule, orders)) = rule.and_then(|rule| Some((rule, rule.orders.as_ref().ok()?))) else {
            return ControlFlow::Continue(None);
        };
        if orders.gates.is_empty() {
            return ControlFlow::Continue(None);
        }
        let has_place = self.has_place(demand);
        let target = Target::whatever_revision(&Object::Pod(Arc::clone(pod)));
        let asker = ControllerName::TaintEviction;
        let Some(mut shown) = self.sights.remove(&id.key).filter(|_| stage == Stage::Seen) else {
            let review = orders.gates.iter().find(|gate| gate.address().is_some());
            if let Some(gate) = review.filter(|_| !has_place) {
                // Whatever is seen now would be old when it is asked about.
                let busy = busy(gate.name(), &id.uid, now);
                return ControlFlow::Break(self.keep(pod, id, demand, busy, world, now));
            }
            let with_owner = orders.gates.iter().any(Gate::reads_owner);
            self.begin(id, demand, Step::Look);
            let look = Write::Look { target, node: Arc::clone(&pod.node), with_owner, asker };
            return ControlFlow::Break(step(look, "looked-at"));
        };
        shown.listen_to(rule);
        let said: Vec<(Arc<str>, Opinion)> =
            shown.said.iter().map(|(gate, answer)| (Arc::clone(gate), opinion(answer, now))).collect();
        let sight = Sight {
            pod: &shown.pod,
            node: shown.node.as_deref(),
            owner: shown.owner.as_deref(),
            company: None,
        };
        let kept = match passage(&orders.gates, sight, &said) {
            Passage::Open => {
                // Whatever happens to the pod from here on makes the write fail, so what was asked holds when it goes.
                let revision = shown.pod["metadata"]["resourceVersion"].as_str();
                return ControlFlow::Continue(revision.map(str::to_owned));
            }
            Passage::Asks { gate, address } if has_place => {
                let question = Box::new(self.question(pod, demand, rule, gate, &shown));
                let review = Write::Review { target, address: address.clone(), question, asker };
                self.sights.insert(id.key.clone(), shown);
                self.begin(id, demand, Step::Ask);
                return ControlFlow::Break(step(review, "asked"));
            }
            Passage::Asks { gate, .. } => busy(gate, &id.uid, now),
            Passage::Shut(shut) => {
                let wait = match &shut.why {
                    Why::Later { until, .. } => Wait::Until(*until),
                    _ => Wait::Doubling { jitter: spread(&id.uid), least: Duration::ZERO },
                };
                (shut, wait)
            }
        };
        ControlFlow::Break(self.keep(pod, id, demand, kept, world, now))
    }

    /// A gate is shut: the pod is kept for a while, and others have its place.
    fn keep(
        &mut self,
        pod: &Arc<Pod>,
        id: &PodId,
        demand: &Demand,
        (shut, wait): (Shut, Wait),
        world: &World,
        now: Moment,
    ) -> Verdict {
        self.cases.block(id, &demand.authority, Keep::Gate(shut), wait, now);
        self.give_back(id);
        self.decide_pod(pod, world, now)
    }

    /// Whether one more may be asked for a policy.
    fn has_place(&self, demand: &Demand) -> bool {
        let reviews = || self.begun.values().filter(|begun| matches!(begun.step, Step::Ask));
        let own = reviews().filter(|begun| begun.authority == demand.authority);
        reviews().count() < REVIEWS_MAX && own.count() < REVIEWS_MAX_EACH
    }

    /// What is asked about a pod as it was shown.
    fn question(&self, pod: &Pod, demand: &Demand, rule: &Rule, gate: &str, shown: &Shown) -> Question {
        let place = self.places.get(&pod.node);
        let taint = place.and_then(|place| place.tainted.taints().get(demand.taint));
        let taint = taint.map(|taint| TaintFacts {
            key: taint.key.to_string(),
            value: taint.value.to_string(),
            effect: taint.effect.to_string(),
            time_added: taint.added.map(|added| added.to_string()),
        });
        Question {
            policy: rule.name.to_string(),
            gate: gate.to_owned(),
            pod: PodFacts {
                namespace: pod.identity.key.namespace.to_string(),
                name: pod.identity.key.name.to_string(),
                uid: pod.identity.uid.to_string(),
                labels: labels(&shown.pod),
                node: pod.node.to_string(),
            },
            node: NodeFacts {
                name: pod.node.to_string(),
                labels: shown.node.as_deref().map(labels).unwrap_or_default(),
            },
            taint: taint.unwrap_or_default(),
            due_at: demand.at.to_string(),
            is_dry_run: rule.orders.as_ref().is_ok_and(|orders| orders.is_dry_run),
            replacement: None,
        }
    }
}

/// What an answer that came just now counts for.
fn opinion(answer: &Answer, now: Moment) -> Opinion {
    match answer {
        Answer::Allowed => Ok(()),
        Answer::Denied { message } => Err(Why::Denied { message: message.clone() }),
        Answer::Later { after, message } => {
            Err(Why::Later { until: now.plus(*after), message: message.clone() })
        }
        Answer::Unanswered { why } => Err(Why::Unanswered { error: why.to_string() }),
    }
}

/// That there is no place for a question now.
fn busy(gate: &Arc<str>, uid: &str, now: Moment) -> (Shut, Wait) {
    let why = Why::Unanswered { error: Silence::Busy.to_string() };
    let until = now.plus(PLACE_WAIT.mul_f64(0.5 + 0.5 * spread(uid)));
    (Shut { gate: Arc::clone(gate), why }, Wait::Until(until))
}

fn step(write: Write, outcome: &'static str) -> Verdict {
    Verdict { writes: vec![write], outcome, ..Verdict::default() }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// From 0 to 1, for each pod its own: so that those who are held by the same gate are not all looked at at once.
fn spread(uid: &str) -> f64 {
    let sum = uid.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    f64::from(sum) / f64::from(u8::MAX)
}
