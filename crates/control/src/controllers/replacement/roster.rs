//! Who is a member of what: policies, their pods, and their replacements.
//!
//! Owns the index from pods and Replacements to the policies they concern. What becomes of them is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use berth_api::replacement::{Phase, Replacement, ReplacementPolicy, ReplacementStatus, TargetRef};
use berth_engine::Moment;
use berth_engine::model::ObjectKey;
use berth_engine::replace::PolicyKey;
use berth_engine::selector::{Requirement, from_label_selector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::{Pod, World};

/// The pods that a policy speaks of.
#[derive(Clone, Debug)]
enum Rule {
    /// Those that a workload keeps.
    Kept(TargetRef),
    /// Those with such labels.
    Labelled(Vec<Requirement>),
    /// None: the policy does not say, or cannot be understood.
    Nobody,
}

impl Rule {
    fn of(policy: &ReplacementPolicy) -> Self {
        match (&policy.spec.target_ref, &policy.spec.selector) {
            (Some(target), None) => Self::Kept(target.clone()),
            // A selector that asks for nothing would speak of every pod.
            (None, Some(selector)) => match from_label_selector(selector) {
                Ok(asks) if !asks.is_empty() => Self::Labelled(asks),
                _ => Self::Nobody,
            },
            _ => Self::Nobody,
        }
    }

    fn speaks_of(&self, pod: &Pod) -> bool {
        match self {
            _ if pod.is_mirror => false,
            Self::Kept(target) => pod
                .owner
                .as_ref()
                .is_some_and(|owner| *owner.kind == *target.kind && *owner.name == *target.name),
            Self::Labelled(asks) => asks.iter().all(|ask| ask.holds(label(pod, &ask.key))),
            Self::Nobody => false,
        }
    }
}

/// The value of a label of a pod.
pub(super) fn label<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    let place = pod.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
    pod.labels.get(place).map(|(_, value)| &**value)
}

/// A replacement: of several of one member the greatest is the latest. That is the one that is under way, and else the one that
/// the server made last: what our own clock says may be of a time to come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    is_under_way: bool,
    created: Moment,
    started: Moment,
    name: Arc<str>,
    /// The policy that it was made by, by its identity: another one of the same name does not go on with it.
    policy: Arc<str>,
}

impl Work {
    fn of(work: &Replacement) -> Self {
        let metadata = &work.metadata;
        let moment = |time: Option<&Time>| time.map_or(Moment::PAST, |time| Moment::from_timestamp(time.0));
        let started = work.status.as_ref().and_then(|status| status.started_at.as_ref());
        let owner = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        Self {
            is_under_way: is_under_way(work),
            created: moment(metadata.creation_timestamp.as_ref()),
            started: moment(started),
            name: metadata.name.as_deref().unwrap_or_default().into(),
            policy: owner.map_or("", |owner| &owner.uid).into(),
        }
    }
}

/// Whether a replacement has not ended.
fn is_under_way(work: &Replacement) -> bool {
    work.status.as_ref().is_none_or(|status| status.ended_at.is_none())
}

/// The replacements of one member.
type Works = BTreeSet<Work>;

/// A policy: whom it speaks of, and which it is.
#[derive(Debug)]
struct Listed {
    rule: Rule,
    uid: Arc<str>,
}

/// Who is a member of what.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// By namespace.
    policies: HashMap<Arc<str>, BTreeMap<Arc<str>, Listed>>,
    /// Policies by namespace and the name of the workload that they name.
    naming: ByName,
    /// Policies that choose pods by labels, by namespace.
    choosing: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The pods there are, by namespace.
    pods: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Pods by namespace and the name of what keeps them.
    kept: ByName,
    /// Pods by the identity of what keeps them.
    owned: HashMap<Box<str>, BTreeSet<Arc<str>>>,
    /// By policy and the pod's name.
    works: HashMap<PolicyKey, BTreeMap<Arc<str>, Works>>,
    /// Policies that have replacements of a pod, by the pod.
    worked: HashMap<ObjectKey, BTreeSet<PolicyKey>>,
}

/// Names by a namespace and another name in it.
type ByName = HashMap<Arc<str>, HashMap<Box<str>, BTreeSet<Arc<str>>>>;

/// Puts a name into an index.
fn put(index: &mut ByName, namespace: &Arc<str>, of: &str, name: &Arc<str>) {
    let there = index.entry(Arc::clone(namespace)).or_default();
    there.entry(of.into()).or_default().insert(Arc::clone(name));
}

/// Takes a name out of an index, and what is empty by that.
fn take(index: &mut ByName, namespace: &Arc<str>, of: &str, name: &Arc<str>) {
    let Some(there) = index.get_mut(namespace) else { return };
    if let Some(names) = there.get_mut(of) {
        names.remove(name);
        if names.is_empty() {
            there.remove(of);
        }
    }
    if there.is_empty() {
        index.remove(namespace);
    }
}

/// The names in an index.
fn named<'i>(index: &'i ByName, namespace: &str, of: &str) -> impl Iterator<Item = &'i Arc<str>> + use<'i> {
    index.get(namespace).and_then(|there| there.get(of)).into_iter().flatten()
}

/// The key of a policy.
pub(super) fn policy_key(key: &ObjectKey) -> PolicyKey {
    PolicyKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&key.name) }
}

impl Roster {
    /// A policy is as it is now.
    pub(super) fn policy(&mut self, key: &ObjectKey, policy: Option<&ReplacementPolicy>) {
        let (namespace, name) = (&key.namespace, &key.name);
        let there = self.policies.entry(Arc::clone(namespace)).or_default();
        let before = there.remove(name);
        if let Some(policy) = policy {
            let uid = policy.metadata.uid.as_deref().unwrap_or_default().into();
            there.insert(Arc::clone(name), Listed { rule: Rule::of(policy), uid });
        }
        match before.map(|listed| listed.rule) {
            Some(Rule::Kept(target)) => take(&mut self.naming, namespace, &target.name, name),
            Some(Rule::Labelled(_)) => {
                let choosing = self.choosing.entry(Arc::clone(namespace)).or_default();
                choosing.remove(name);
            }
            Some(Rule::Nobody) | None => {}
        }
        match self.policies.get(namespace).and_then(|there| there.get(name)).map(|listed| &listed.rule) {
            Some(Rule::Kept(target)) => put(&mut self.naming, namespace, &target.name, name),
            Some(Rule::Labelled(_)) => {
                let choosing = self.choosing.entry(Arc::clone(namespace)).or_default();
                choosing.insert(Arc::clone(name));
            }
            Some(Rule::Nobody) | None => {}
        }
    }

    /// A pod was so and is so.
    pub(super) fn pod(&mut self, key: &ObjectKey, before: Option<&Pod>, after: Option<&Pod>) {
        let (namespace, name) = (&key.namespace, &key.name);
        let pods = self.pods.entry(Arc::clone(namespace)).or_default();
        if after.is_some() {
            pods.insert(Arc::clone(name));
        } else {
            pods.remove(name);
            if pods.is_empty() {
                self.pods.remove(namespace);
            }
        }
        let (before, after) =
            (before.and_then(|pod| pod.owner.as_ref()), after.and_then(|pod| pod.owner.as_ref()));
        if before == after {
            return;
        }
        if let Some(owner) = before {
            take(&mut self.kept, namespace, &owner.name, name);
            if let Some(owned) = self.owned.get_mut(&owner.uid) {
                owned.remove(name);
                if owned.is_empty() {
                    self.owned.remove(&owner.uid);
                }
            }
        }
        if let Some(owner) = after {
            put(&mut self.kept, namespace, &owner.name, name);
            self.owned.entry(owner.uid.clone()).or_default().insert(Arc::clone(name));
        }
    }

    /// A replacement was so and is so; whom it concerns comes back.
    pub(super) fn work(
        &mut self,
        before: Option<&Replacement>,
        after: Option<&Replacement>,
    ) -> BTreeSet<PolicyKey> {
        let mut concerned = BTreeSet::new();
        for (work, is_there) in
            before.map(|work| (work, false)).into_iter().chain(after.map(|work| (work, true)))
        {
            let metadata = &work.metadata;
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            let key = PolicyKey::new(namespace, &work.spec.policy);
            let of_pod = self.works.entry(key.clone()).or_default();
            let pod: Arc<str> = work.spec.target.name.as_str().into();
            let works = of_pod.entry(Arc::clone(&pod)).or_default();
            let entry = Work::of(work);
            if is_there {
                works.insert(entry);
            } else {
                works.remove(&entry);
            }
            let place = ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(&pod) };
            let worked = self.worked.entry(place.clone()).or_default();
            if works.is_empty() {
                of_pod.remove(&pod);
                worked.remove(&key);
            } else {
                worked.insert(key.clone());
            }
            if worked.is_empty() {
                self.worked.remove(&place);
            }
            concerned.insert(key);
        }
        concerned
    }

    /// The policies that speak of a pod.
    pub(super) fn of_pod(&self, pod: &Pod) -> Vec<PolicyKey> {
        let namespace = &pod.identity.key.namespace;
        let Some(there) = self.policies.get(namespace) else { return Vec::new() };
        let owner = pod.owner.as_ref().map(|owner| &*owner.name);
        let naming = owner.into_iter().flat_map(|owner| named(&self.naming, namespace, owner));
        let choosing = self.choosing.get(namespace).into_iter().flatten();
        let speaks = |name: &&Arc<str>| there.get(*name).is_some_and(|listed| listed.rule.speaks_of(pod));
        let speaking = naming.chain(choosing).filter(speaks);
        speaking.map(|name| PolicyKey { namespace: Arc::clone(namespace), name: Arc::clone(name) }).collect()
    }

    /// The policies that have a replacement of a pod of this name.
    pub(super) fn with_work(&self, pod: &ObjectKey) -> Vec<PolicyKey> {
        let worked = self.worked.get(pod).into_iter().flatten();
        worked.filter(|key| self.listed(key).is_some()).cloned().collect()
    }

    /// The members of a policy by name: its pods, and those of whom a replacement is under way.
    pub(super) fn members(&self, key: &PolicyKey, world: &World) -> BTreeSet<Arc<str>> {
        let Some(Listed { rule, .. }) = self.listed(key) else { return BTreeSet::new() };
        // Those of a workload are known by its name; by labels every pod may be one.
        let pods: Box<dyn Iterator<Item = &Arc<str>>> = match rule {
            Rule::Kept(target) => Box::new(named(&self.kept, &key.namespace, &target.name)),
            Rule::Labelled(_) => Box::new(self.pods.get(&key.namespace).into_iter().flatten()),
            Rule::Nobody => Box::new(std::iter::empty()),
        };
        let speaks = |name: &&Arc<str>| {
            let pod =
                world.pods.get(&ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) });
            pod.is_some_and(|pod| rule.speaks_of(pod))
        };
        let under_way = self
            .works
            .get(key)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .filter(|pod| self.latest(key, pod, world).is_some_and(|work| is_under_way(work)));
        pods.filter(speaks).chain(under_way).cloned().collect()
    }

    fn listed(&self, key: &PolicyKey) -> Option<&Listed> {
        self.policies.get(&key.namespace)?.get(&key.name)
    }

    /// Whether a policy speaks of a pod, as both are now.
    pub(super) fn is_meant(&self, key: &PolicyKey, pod: &Pod) -> bool {
        self.listed(key).is_some_and(|listed| listed.rule.speaks_of(pod))
    }

    /// How many members a workload had before those that were not replaced to the end.
    pub(super) fn members_before(&self, key: &PolicyKey, owner: &str, world: &World) -> Option<usize> {
        let pods = self.works.get(key)?.keys();
        let works = pods.filter_map(|pod| self.latest(key, pod, world));
        let unfinished = works.filter(|work| {
            let failed = |status: &ReplacementStatus| status.phase == Some(Phase::Failed);
            work.spec.owner.as_deref() == Some(owner)
                && (is_under_way(work) || work.status.as_ref().is_some_and(failed))
        });
        let counts = unfinished.filter_map(|work| work.status.as_ref()?.members_at_start);
        counts.max().and_then(|count| usize::try_from(count).ok())
    }

    /// Whether there is or was a replacement of a member.
    pub(super) fn has_works(&self, key: &PolicyKey, pod: &str) -> bool {
        self.works.get(key).is_some_and(|works| works.contains_key(pod))
    }

    /// The latest replacement of a member.
    pub(super) fn latest<'w>(
        &self,
        key: &PolicyKey,
        pod: &str,
        world: &'w World,
    ) -> Option<&'w Arc<Replacement>> {
        let uid = &self.listed(key)?.uid;
        let latest = self.works.get(key)?.get(pod)?.iter().rfind(|work| work.policy == *uid)?;
        let name = Arc::clone(&latest.name);
        world.replacements.get(&ObjectKey { namespace: Arc::clone(&key.namespace), name })
    }

    /// All replacements of a policy but the latest of each pod that there is. An operator gives its pods new names, so that
    /// what is left of a name may be left for ever.
    pub(super) fn history<'w>(
        &'w self,
        key: &'w PolicyKey,
        world: &'w World,
    ) -> impl Iterator<Item = &'w Arc<Replacement>> {
        let place =
            |name: &Arc<str>| ObjectKey { namespace: Arc::clone(&key.namespace), name: Arc::clone(name) };
        let works = self.works.get(key).into_iter().flatten();
        let old = works.flat_map(move |(pod, works)| {
            let is_there = world.pods.get(&place(pod)).is_some();
            works.iter().rev().skip(usize::from(is_there))
        });
        old.filter_map(move |work| world.replacements.get(&place(&work.name)))
    }

    /// Pods of a namespace that are kept by the owner of this identity.
    pub(super) fn kept<'w>(
        &'w self,
        namespace: &'w Arc<str>,
        owner: &'w str,
        world: &'w World,
    ) -> impl Iterator<Item = &'w Arc<Pod>> {
        let names = self.owned.get(owner).into_iter().flatten();
        let pods = names.filter_map(|name| {
            world.pods.get(&ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) })
        });
        pods.filter(move |pod| pod.owner.as_ref().is_some_and(|known| *known.uid == *owner))
    }

    /// All pods of a namespace.
    pub(super) fn in_namespace<'w>(
        &'w self,
        namespace: &'w Arc<str>,
        world: &'w World,
    ) -> impl Iterator<Item = &'w Arc<Pod>> {
        let names = self.pods.get(namespace).into_iter().flatten();
        names.filter_map(|name| {
            world.pods.get(&ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) })
        })
    }

    /// Every policy.
    pub(super) fn policies(&self) -> impl Iterator<Item = PolicyKey> {
        self.policies.iter().flat_map(|(namespace, there)| {
            there.keys().map(|name| PolicyKey { namespace: Arc::clone(namespace), name: Arc::clone(name) })
        })
    }
}
