//! A small world: members, nodes, a gate, and all that happens without the controller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use berth_engine::Moment;
use berth_engine::replace::{
    Act, Claim, Entry, Feasibility, Known, Member, Memory, Node, NodeFact, Opening, Plan, Pod, Policy,
    Readiness, Step, Sure, Target, Verdict, View, Word, plan,
};

use super::super::fixtures::{START, taint};

/// Who is told before a pod goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Telling {
    Nobody,
    /// A gate waits for an answer.
    Handshake,
    /// An operator removes the pod.
    Operator,
}

/// What comes and goes in a world, at any time and without end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Restless {
    /// Members fail and recover.
    Members,
    /// Each of the two nodes loses its taint and gets it back.
    Taints,
    /// The gate says this and that.
    Gate,
    /// Whether anybody knows how the others are.
    Sight,
}

/// A world: its policy, who is where, and how much may go wrong.
pub(super) struct World {
    /// The policy, and the same after somebody has changed it: volumes stay (1), one at a time (2), or both (3).
    pub(super) policies: [Policy; 4],
    /// A node with each set of taints.
    pub(super) facts: Vec<NodeFact>,
    /// The node of each member; the last node is a spare that is never tainted.
    pub(super) places: Vec<usize>,
    pub(super) nodes: usize,
    pub(super) max: usize,
    pub(super) by_domain: bool,
    pub(super) removes_volumes: bool,
    pub(super) telling: Telling,
    pub(super) mishaps: u8,
    /// What comes and goes without end.
    pub(super) restless: &'static [Restless],
    /// Whether acts are done without looking again: then the rules are broken.
    pub(super) is_careless: bool,
}

/// A pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Ready,
    Failing,
    Leaving,
    Gone,
    Starting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    pub(super) life: Life,
    /// Which pod of this name it is.
    pub(super) pod: u8,
    pub(super) node: usize,
    /// Which claim of this name it is, and whether it is on its way out.
    pub(super) claim: Option<(u8, bool)>,
    pub(super) told: bool,
}

/// What a controller has in hand between a look and its last act.
#[derive(Clone, PartialEq)]
pub(super) struct Hand {
    pub(super) member: usize,
    pub(super) step: Step,
    pub(super) is_written: bool,
}

#[derive(Clone, PartialEq)]
pub(super) struct State {
    pub(super) now: Moment,
    pub(super) actors: Vec<Actor>,
    /// The taints of each node, a bit for each key.
    pub(super) taints: Vec<u8>,
    pub(super) unreadable: Vec<bool>,
    pub(super) gate: Verdict,
    pub(super) is_target_known: bool,
    /// Somebody has changed the policy.
    pub(super) keeps: bool,
    /// How many at once, as the policy is now.
    pub(super) max: usize,
    /// Somebody has suspended the replacement of the first member.
    pub(super) is_suspended: bool,
    pub(super) memories: Vec<Memory>,
    pub(super) hand: Option<Hand>,
    pub(super) mishaps: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Begin,
    Tick,
    Look(usize),
    Write,
    Act(Act),
    Refuse(Act),
    Crash,
    Ends(usize),
    Recreated(usize),
    Ready(usize),
    OperatorDeletes(usize),
    Taint(usize, u8),
    /// A node that was given up comes back after all.
    Swap(usize),
    Keep(bool),
    /// The budget is lowered to one.
    Lower,
    Suspend(bool),
    Gate(Verdict),
    TargetKnown(bool),
    Readable(usize, bool),
    Fails(usize),
    Recovers(usize),
    Deleted(usize),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Something that must never be, with what it is.
pub(super) type Broken = String;

/// Two taints that give a node up, one of a node that comes back, and one that never does anything.
pub(super) const KEYS: [&str; 4] = ["a", "b", "planned", "ignored"];
/// The taints by which a node is given up.
pub(super) const PERMANENT: u8 = 0b0011;
/// The taints by which anything is done.
pub(super) const ANY: u8 = 0b0111;
const PLANNED: u8 = 0b0100;
const IGNORED: u8 = 0b1000;

impl World {
    pub(super) fn start(&self) -> State {
        let actor = |node: &usize| Actor {
            life: Life::Ready,
            pod: 0,
            node: *node,
            claim: Some((0, false)),
            told: false,
        };
        let mut state = State {
            now: START,
            actors: self.places.iter().map(actor).collect(),
            taints: vec![0; self.nodes],
            unreadable: vec![false; self.nodes],
            gate: Verdict::Pass,
            is_target_known: true,
            keeps: false,
            max: self.max,
            is_suspended: false,
            memories: vec![Memory::default(); self.places.len()],
            hand: None,
            mishaps: self.mishaps,
        };
        // Everybody was looked at while all were well.
        let looked = self.plan(&state, &state.memories);
        state.memories = looked.steps.into_iter().map(|step| step.memory).collect();
        // What never does anything lies beside what does.
        (state.taints[0], state.taints[1]) = (0b01 | IGNORED, 0b10);
        state
    }

    pub(super) fn member(&self, state: &State, index: usize) -> Member {
        let actor = state.actors[index];
        let ready =
            if actor.life == Life::Ready { Readiness::Since(Moment::from_second(0)) } else { Readiness::Not };
        let pod = (actor.life != Life::Gone).then(|| Pod {
            uid: format!("{index}-{}", actor.pod).into(),
            node: Some(node_name(actor.node)),
            ready,
            is_leaving: actor.life == Life::Leaving,
            ..Pod::default()
        });
        let claim = actor.claim.map(|(number, is_leaving)| Claim {
            name: format!("data-{index}").into(),
            uid: format!("data-{index}-{number}").into(),
            class: None,
            is_local: Sure::Yes,
            is_own: Sure::Yes,
            is_leaving,
        });
        let answer =
            if self.telling == Telling::Handshake && !actor.told { Verdict::InProgress } else { state.gate };
        Member {
            name: name(index),
            target: "t".into(),
            pod: Known::Known(pod),
            successor: Known::Known(None),
            claims: Known::Known(claim.into_iter().collect()),
            feasibility: Feasibility::Yes,
            order: Some(0),
            gates: vec![answer],
            told: if actor.told { Sure::Yes } else { Sure::No },
            word: Word { suspend: state.is_suspended && index == 0, cancel: false },
            ..Member::default()
        }
    }

    /// Asks with all that is known in a state; `memories` may be others than the written ones.
    pub(super) fn ask<T>(
        &self,
        state: &State,
        memories: &[Memory],
        question: impl FnOnce(&View<'_>, &[Entry<'_>]) -> T,
    ) -> T {
        let members: Vec<Member> = (0..state.actors.len()).map(|index| self.member(state, index)).collect();
        let unready: BTreeSet<Arc<str>> =
            (0..members.len()).filter(|index| state.actors[*index].life != Life::Ready).map(name).collect();
        let target = Target {
            unready: if state.is_target_known { Known::Known(unready) } else { Known::Unknown },
            is_settled: if state.is_target_known { Sure::Yes } else { Sure::Unknown },
            ..Target::default()
        };
        let targets = HashMap::from([(Arc::from("t"), target)]);
        let nobody = BTreeMap::new();
        let view =
            View { window: Opening::ALWAYS, last_ended: None, targets: &targets, volume_turns: &nobody };
        let entries: Vec<Entry<'_>> = members
            .iter()
            .zip(memories)
            .zip(&state.actors)
            .map(|((member, memory), actor)| Entry {
                member,
                memory,
                node: self.node(state, actor.node),
                overlaps: false,
            })
            .collect();
        question(&view, &entries)
    }

    pub(super) fn plan(&self, state: &State, memories: &[Memory]) -> Plan {
        self.ask(state, memories, |view, entries| plan(self.policy(state), view, entries, state.now))
    }

    fn node(&self, state: &State, index: usize) -> &NodeFact {
        if state.unreadable[index] {
            &NodeFact::Unknown
        } else {
            &self.facts[usize::from(state.taints[index])]
        }
    }

    /// The policy as it is.
    pub(super) fn policy(&self, state: &State) -> &Policy {
        &self.policies[usize::from(state.keeps) + 2 * usize::from(state.max < self.max)]
    }

    /// All that comes and goes.
    pub(super) fn restless(&self, state: &State, next: &mut Vec<(Event, State)>) {
        let mut put = |event: Event, change: &dyn Fn(&mut State)| {
            let mut after = state.clone();
            change(&mut after);
            next.push((event, after));
        };
        for restless in self.restless {
            match restless {
                Restless::Members => {
                    for (index, actor) in state.actors.iter().enumerate() {
                        fail_or_recover(index, actor.life, &mut put);
                    }
                }
                Restless::Taints => {
                    for (node, bit) in [(0, 0), (1, 1)] {
                        put(Event::Taint(node, bit), &|state| state.taints[node] ^= 1 << bit);
                    }
                }
                Restless::Gate => flip(state.gate, &mut put),
                Restless::Sight => {
                    let is_known = !state.is_target_known;
                    put(Event::TargetKnown(is_known), &|state| state.is_target_known = is_known);
                }
            }
        }
    }

    /// All that Kubernetes and the operator do by themselves.
    pub(super) fn kubernetes(&self, state: &State, next: &mut Vec<(Event, State)>) {
        for (index, actor) in state.actors.iter().enumerate() {
            let mut put = |event: Event, actor: Actor| {
                let mut after = state.clone();
                after.actors[index] = actor;
                next.push((event, after));
            };
            match actor.life {
                Life::Leaving => {
                    // A claim that is deleted is kept until its pod is gone.
                    let claim = actor.claim.filter(|(_, is_leaving)| !is_leaving);
                    put(Event::Ends(index), Actor { life: Life::Gone, claim, ..*actor });
                }
                Life::Gone => {
                    let pod = actor.pod + 1;
                    let claim = actor.claim.or(Some((pod, false)));
                    let node = self.nodes - 1;
                    let fresh = Actor { life: Life::Starting, pod, node, claim, told: false };
                    put(Event::Recreated(index), fresh);
                }
                Life::Starting => put(Event::Ready(index), Actor { life: Life::Ready, ..*actor }),
                Life::Ready if actor.told && self.telling == Telling::Operator => {
                    put(Event::OperatorDeletes(index), Actor { life: Life::Leaving, ..*actor });
                }
                Life::Ready | Life::Failing => {}
            }
        }
    }
}

thread_local! {
    /// Names that are wanted again and again: those of members, and those of nodes.
    static NAMES: Vec<(Arc<str>, Arc<str>)> =
        (0..8).map(|index| (format!("db-{index}").into(), format!("n{index}").into())).collect();
}

pub(super) fn name(index: usize) -> Arc<str> {
    NAMES.with(|names| Arc::clone(&names[index].0))
}

pub(super) fn node_name(index: usize) -> Arc<str> {
    NAMES.with(|names| Arc::clone(&names[index].1))
}

/// A node with each set of taints.
pub(super) fn facts() -> Vec<NodeFact> {
    let fact = |taints: usize| {
        let keys = KEYS.iter().enumerate().filter(|(bit, _)| taints & (1 << bit) != 0);
        NodeFact::Present(Node {
            created: Moment::from_second(0),
            labels: BTreeMap::new(),
            taints: keys.map(|(_, key)| taint(key, None)).collect(),
            is_cordoned: false,
            conditions: Vec::new(),
        })
    };
    (0..1 << KEYS.len()).map(fact).collect()
}

/// All that may go wrong, or right again, once more.
pub(super) fn mishaps(state: &State, next: &mut Vec<(Event, State)>) {
    if state.mishaps == 0 {
        return;
    }
    let mut put = |event: Event, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        after.mishaps -= 1;
        change(&mut after);
        next.push((event, after));
    };
    for node in 0..2 {
        for bit in 0..2 {
            put(Event::Taint(node, bit), &|state| state.taints[node] ^= 1 << bit);
        }
    }
    put(Event::Swap(0), &|state| state.taints[0] = state.taints[0] & IGNORED | PLANNED);
    let keeps = !state.keeps;
    put(Event::Keep(keeps), &|state| state.keeps = keeps);
    if state.max > 1 {
        put(Event::Lower, &|state| state.max = 1);
    }
    let is_suspended = !state.is_suspended;
    put(Event::Suspend(is_suspended), &|state| state.is_suspended = is_suspended);
    let is_readable = state.unreadable[0];
    put(Event::Readable(0, is_readable), &|state| state.unreadable[0] = !is_readable);
    flip(state.gate, &mut put);
    let is_known = !state.is_target_known;
    put(Event::TargetKnown(is_known), &|state| state.is_target_known = is_known);
    for (index, actor) in state.actors.iter().enumerate() {
        fail_or_recover(index, actor.life, &mut put);
        if actor.life == Life::Ready {
            put(Event::Deleted(index), &|state| state.actors[index].life = Life::Leaving);
        }
    }
}

type Put<'p> = dyn FnMut(Event, &dyn Fn(&mut State)) + 'p;

fn flip(gate: Verdict, put: &mut Put<'_>) {
    for verdict in [Verdict::Pass, Verdict::Deny, Verdict::Unknown] {
        if verdict != gate {
            put(Event::Gate(verdict), &|state| state.gate = verdict);
        }
    }
}

fn fail_or_recover(index: usize, life: Life, put: &mut Put<'_>) {
    match life {
        Life::Ready => put(Event::Fails(index), &|state| state.actors[index].life = Life::Failing),
        Life::Failing => put(Event::Recovers(index), &|state| state.actors[index].life = Life::Ready),
        _ => {}
    }
}
