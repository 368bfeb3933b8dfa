//! All policies at once, kept up to date by events.
//!
//! Owns the index from nodes, workloads and pods to the policies they concern, so that an event leads to a new look at these
//! policies and at no others; and what no policy can see alone: two that speak of the same pod, two of which each removes
//! volumes of the same workload.
//!
//! ```text
//!   node, workload, member, policy --event--> the policies it concerns --decide--> Plan
//!                                             time --due--^
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::facts::{Known, Member, NodeFact, Opening, Target};
use super::memory::Memory;
use super::plan::{Entry, Plan, View, confirm, plan};
use super::policy::Policy;
use super::reason::Reason;
use crate::moment::Moment;
use crate::replace::Act;

/// A policy, by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl PolicyKey {
    /// A key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// A pod, by namespace and name.
type PodKey = (Arc<str>, Arc<str>);

/// All policies with their members.
#[derive(Debug, Default)]
pub struct Fleet {
    policies: HashMap<PolicyKey, Held>,
    nodes: HashMap<Arc<str>, Stand>,
    targets: HashMap<Arc<str>, Target>,
    /// The policies that have members of a workload.
    concerned: HashMap<Arc<str>, BTreeMap<PolicyKey, usize>>,
    /// The policies that speak of a pod.
    claimed: HashMap<PodKey, BTreeSet<PolicyKey>>,
    /// How many members of a workload lose their volumes, by policy.
    volume_turns: HashMap<Arc<str>, BTreeMap<PolicyKey, usize>>,
    wakes: BTreeSet<(Moment, PolicyKey)>,
}

/// A node and whom it concerns.
#[derive(Debug, Default)]
struct Stand {
    fact: NodeFact,
    policies: BTreeMap<PolicyKey, usize>,
}

#[derive(Debug)]
struct Held {
    policy: Policy,
    window: Opening,
    last_ended: Option<Moment>,
    members: BTreeMap<Arc<str>, (Member, Memory)>,
    wake: Moment,
}

impl Fleet {
    /// A policy is new or has changed. Its members stay.
    pub fn set_policy(&mut self, key: &PolicyKey, policy: Policy, last_ended: Option<Moment>) {
        if let Some(held) = self.policies.get_mut(key) {
            held.policy = policy;
            held.last_ended = held.last_ended.max(last_ended);
            return;
        }
        let window = Opening::default();
        let held = Held { policy, window, last_ended, members: BTreeMap::new(), wake: Moment::NEVER };
        self.policies.insert(key.clone(), held);
    }

    /// A policy is gone, and its members with it. Whoever shared a pod with it has to be looked at again.
    pub fn remove_policy(&mut self, key: &PolicyKey) -> BTreeSet<PolicyKey> {
        let members: Vec<Arc<str>> =
            self.policies.get(key).into_iter().flat_map(|held| held.members.keys().cloned()).collect();
        let mut touched = BTreeSet::new();
        for name in members {
            touched.extend(self.remove_member(key, &name));
        }
        if let Some(held) = self.policies.remove(key) {
            self.wakes.remove(&(held.wake, key.clone()));
        }
        touched.remove(key);
        touched
    }

    /// A policy, as it was set.
    pub fn policy(&self, key: &PolicyKey) -> Option<&Policy> {
        self.policies.get(key).map(|held| &held.policy)
    }

    /// A replacement of a policy has ended then, by what is written.
    pub fn set_last_ended(&mut self, key: &PolicyKey, last_ended: Option<Moment>) {
        if let Some(held) = self.policies.get_mut(key) {
            held.last_ended = held.last_ended.max(last_ended);
        }
    }

    /// Whether replacements of a policy may begin now.
    pub fn set_window(&mut self, key: &PolicyKey, window: Opening) {
        if let Some(held) = self.policies.get_mut(key) {
            held.window = window;
        }
    }

    /// A member is as it is now. With `memory` it is remembered from before; without, what is known of it stays. Those that
    /// have to be looked at again are told.
    pub fn set_member(
        &mut self,
        key: &PolicyKey,
        member: Member,
        memory: Option<Memory>,
    ) -> BTreeSet<PolicyKey> {
        let Some(held) = self.policies.get_mut(key) else { return BTreeSet::new() };
        let name = Arc::clone(&member.name);
        let before = held.members.remove(&name);
        let (node, target) = (node_of(&member), Arc::clone(&member.target));
        let was = before.as_ref().map(|(before, _)| (node_of(before), Arc::clone(&before.target)));
        let had_turn = before.as_ref().is_some_and(|(_, memory)| memory.has_volume_turn());
        let memory = memory.or_else(|| before.map(|(_, memory)| memory)).unwrap_or_default();
        let changes_turns = had_turn || memory.has_volume_turn();
        held.members.insert(Arc::clone(&name), (member, memory));
        if was.as_ref().is_none_or(|(before, _)| *before != node) {
            if let Some((Some(before), _)) = &was {
                drop_one(&mut self.nodes.entry(Arc::clone(before)).or_default().policies, key);
                self.tidy_node(&Arc::clone(before));
            }
            if let Some(node) = node {
                *self.nodes.entry(node).or_default().policies.entry(key.clone()).or_default() += 1;
            }
        }
        if was.as_ref().is_none_or(|(_, before)| *before != target) {
            if let Some((_, before)) = &was {
                self.leave_target(before, key);
            }
            *self.concerned.entry(target).or_default().entry(key.clone()).or_default() += 1;
        }
        if changes_turns {
            self.count_volume_turns(key, was.as_ref().map(|(_, target)| target));
        }
        let claims = self.claimed.entry((Arc::clone(&key.namespace), name)).or_default();
        let is_new = claims.insert(key.clone());
        let mut touched = BTreeSet::from([key.clone()]);
        if is_new {
            touched.extend(claims.iter().cloned());
        }
        touched
    }

    /// A member is no more.
    pub fn remove_member(&mut self, key: &PolicyKey, name: &Arc<str>) -> BTreeSet<PolicyKey> {
        let Some(held) = self.policies.get_mut(key) else { return BTreeSet::new() };
        let Some((member, memory)) = held.members.remove(name) else { return BTreeSet::new() };
        if let Some(node) = node_of(&member) {
            drop_one(&mut self.nodes.entry(Arc::clone(&node)).or_default().policies, key);
            self.tidy_node(&node);
        }
        self.leave_target(&member.target, key);
        if memory.has_volume_turn() {
            self.count_volume_turns(key, Some(&member.target));
        }
        let mut touched = BTreeSet::from([key.clone()]);
        let pod = (Arc::clone(&key.namespace), Arc::clone(name));
        if let Some(claims) = self.claimed.get_mut(&pod) {
            claims.remove(key);
            touched.extend(claims.iter().cloned());
            if claims.is_empty() {
                self.claimed.remove(&pod);
            }
        }
        touched
    }

    /// A node is as it is now. The policies that have members on it have to be looked at again, unless it is as it was.
    pub fn set_node(&mut self, name: &str, fact: NodeFact) -> Vec<PolicyKey> {
        match self.nodes.get_mut(name) {
            Some(stand) if stand.fact == fact => Vec::new(),
            Some(stand) => {
                stand.fact = fact;
                let touched: Vec<PolicyKey> = stand.policies.keys().cloned().collect();
                self.tidy_node(&Arc::from(name));
                touched
            }
            None => {
                self.nodes.insert(name.into(), Stand { fact, policies: BTreeMap::new() });
                Vec::new()
            }
        }
    }

    /// A workload is as it is now; as with nodes.
    pub fn set_target(&mut self, name: &Arc<str>, target: Target) -> Vec<PolicyKey> {
        if self.targets.get(name) == Some(&target) {
            return Vec::new();
        }
        self.targets.insert(Arc::clone(name), target);
        self.concerned.get(name).into_iter().flat_map(|policies| policies.keys().cloned()).collect()
    }

    /// Whether a policy has members of a workload.
    pub fn concerns(&self, target: &str) -> bool {
        self.concerned.contains_key(target)
    }

    /// A member of a workload is no more; what nobody has members of is forgotten.
    fn leave_target(&mut self, target: &Arc<str>, key: &PolicyKey) {
        let Some(policies) = self.concerned.get_mut(target) else { return };
        drop_one(policies, key);
        if policies.is_empty() {
            self.concerned.remove(target);
            self.targets.remove(target);
        }
    }

    /// Looks at all members of a policy, and remembers what comes of it. `None` if there is no such policy. Whoever cannot
    /// write down what a step says tells by [`Fleet::set_member`] what is written instead.
    pub fn decide(&mut self, key: &PolicyKey, now: Moment) -> Option<Plan> {
        let plan = self.with(key, |policy, view, entries| plan(policy, view, entries, now))?;
        let held = self.policies.get_mut(key)?;
        let mut turns_changed = false;
        for (step, (_, memory)) in plan.steps.iter().zip(held.members.values_mut()) {
            if step.is_changed {
                turns_changed |= memory.course != step.memory.course;
                memory.clone_from(&step.memory);
            }
        }
        held.last_ended = plan.last_ended;
        if held.wake != plan.deadline {
            self.wakes.remove(&(held.wake, key.clone()));
            held.wake = plan.deadline;
            if plan.deadline != Moment::NEVER {
                self.wakes.insert((plan.deadline, key.clone()));
            }
        }
        if turns_changed {
            self.count_volume_turns(key, None);
        }
        Some(plan)
    }

    /// Decides once more right before an act; what was read live has been set before.
    ///
    /// # Errors
    /// Everything that speaks against it.
    pub fn confirm(&self, key: &PolicyKey, name: &str, act: &Act, now: Moment) -> Result<(), Vec<Reason>> {
        self.with(key, |policy, view, entries| confirm(act, name, policy, view, entries, now))
            .unwrap_or_else(|| Err(vec![Reason::Disabled]))
    }

    /// Policies whose time has come.
    pub fn due(&self, now: Moment) -> Vec<PolicyKey> {
        let due = self.wakes.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, key)| key.clone()).collect()
    }

    /// When the first is due.
    pub fn wake(&self) -> Option<Moment> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Every policy.
    pub fn policies(&self) -> impl Iterator<Item = &PolicyKey> {
        self.policies.keys()
    }

    /// The workload of a member, and the node it is on.
    pub fn place_of(&self, key: &PolicyKey, name: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
        let (member, _) = self.policies.get(key)?.members.get(name)?;
        Some((Arc::clone(&member.target), node_of(member)))
    }

    /// What is remembered of a member.
    pub fn memory(&self, key: &PolicyKey, name: &str) -> Option<&Memory> {
        self.policies.get(key)?.members.get(name).map(|(_, memory)| memory)
    }

    /// The nodes that have to be read for any policy; none where no policy asks for nodes.
    pub fn nodes_to_read(&self) -> BTreeSet<Arc<str>> {
        let asking = self.policies.values().filter(|held| held.policy.reads().nodes);
        asking.flat_map(|held| held.members.values().filter_map(|(member, _)| node_of(member))).collect()
    }

    fn with<T>(
        &self,
        key: &PolicyKey,
        look: impl FnOnce(&Policy, &View<'_>, &[Entry<'_>]) -> T,
    ) -> Option<T> {
        let held = self.policies.get(key)?;
        let unknown = NodeFact::Unknown;
        let mut elsewhere = BTreeMap::new();
        let mut entries = Vec::with_capacity(held.members.len());
        for (name, (member, memory)) in &held.members {
            let stand = member.pod().and_then(|pod| pod.node.as_ref()).and_then(|node| self.nodes.get(node));
            let pod = (Arc::clone(&key.namespace), Arc::clone(name));
            let overlaps = self.claimed.get(&pod).is_some_and(|claims| self.is_contested(claims));
            entries.push(Entry {
                member,
                node: stand.map_or(&unknown, |stand| &stand.fact),
                memory,
                overlaps,
            });
            if let Some(turns) = self.volume_turns.get(&member.target) {
                let others: usize = turns.iter().filter(|(of, _)| *of != key).map(|(_, count)| count).sum();
                if others > 0 {
                    elsewhere.insert(Arc::clone(&member.target), others);
                }
            }
        }
        let view = View {
            window: held.window,
            last_ended: held.last_ended,
            targets: &self.targets,
            volume_turns: &elsewhere,
        };
        Some(look(&held.policy, &view, &entries))
    }

    /// Whether more than one policy that is not disabled speaks of a pod.
    fn is_contested(&self, claims: &BTreeSet<PolicyKey>) -> bool {
        claims.len() > 1
            && claims
                .iter()
                .filter_map(|key| self.policies.get(key))
                .filter(|held| !held.policy.is_disabled)
                .count()
                > 1
    }

    /// Counts anew how many members of a policy lose their volumes, in the workloads it has members of and in one more.
    fn count_volume_turns(&mut self, key: &PolicyKey, also: Option<&Arc<str>>) {
        let Some(held) = self.policies.get(key) else { return };
        let mut counts: BTreeMap<&Arc<str>, usize> = also.map(|target| (target, 0)).into_iter().collect();
        for (member, memory) in held.members.values() {
            let count = counts.entry(&member.target).or_default();
            *count += usize::from(memory.has_volume_turn());
        }
        for (target, count) in counts {
            if count > 0 {
                self.volume_turns.entry(Arc::clone(target)).or_default().insert(key.clone(), count);
            } else if let Some(turns) = self.volume_turns.get_mut(target) {
                turns.remove(key);
                if turns.is_empty() {
                    self.volume_turns.remove(target);
                }
            }
        }
    }

    /// A node that nobody is on and nothing is known of is not kept.
    fn tidy_node(&mut self, name: &Arc<str>) {
        let is_idle = |stand: &Stand| stand.policies.is_empty() && stand.fact == NodeFact::Unknown;
        if self.nodes.get(name).is_some_and(is_idle) {
            self.nodes.remove(name);
        }
    }
}

fn node_of(member: &Member) -> Option<Arc<str>> {
    match &member.pod {
        Known::Known(Some(pod)) => pod.node.clone(),
        _ => None,
    }
}

fn drop_one(policies: &mut BTreeMap<PolicyKey, usize>, key: &PolicyKey) {
    if let Some(count) = policies.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            policies.remove(key);
        }
    }
}
