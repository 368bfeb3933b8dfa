//! The policies there are: read, obeyed, and told how they stand.
//!
//! Owns the book of rules, what each has evicted in all, and when each was told last how it stands. Which pods they have is in
//! [`Cases`](super::cases::Cases).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use berth_api::EvictionPolicy;
use berth_engine::Moment;
use berth_engine::evict::Allowance;
use berth_engine::evict::policy::{Book, Rule, Tally, compile, standing};
use berth_engine::model::ObjectKey;
use serde_json::json;

use crate::act::{Target, Write, difference};
use crate::world::{Object, World};

/// How often it is told how a policy stands, at most.
const STANDING_EVERY: Duration = Duration::from_secs(1);
/// A namespace that no pod can be in: where policies are as subjects.
const POLICIES: &str = "/policies";

/// The policies.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) book: Book,
    /// Policies that have changed since time last passed.
    changed: HashSet<Arc<str>>,
    records: HashMap<Arc<str>, Record>,
    /// Policies to be told how they stand, when their time has come.
    untold: HashSet<Arc<str>>,
}

/// What is kept of a policy besides its rule.
#[derive(Debug)]
struct Record {
    uid: Option<String>,
    /// How many pods it has evicted in all.
    evicted: i64,
    /// When it was told last how it stands.
    told: Moment,
}

/// A policy as a subject.
pub(super) fn subject_of_policy(name: &str) -> ObjectKey {
    ObjectKey::new(POLICIES, name)
}

/// Whether a subject is a policy.
pub(super) fn is_policy(subject: &ObjectKey) -> bool {
    &*subject.namespace == POLICIES
}

impl Policies {
    /// A policy was so and is so.
    pub(super) fn observe(&mut self, before: Option<&EvictionPolicy>, after: Option<&EvictionPolicy>) {
        let is_same = before.zip(after).is_some_and(|(before, after)| {
            before.spec == after.spec
                && before.metadata.uid == after.metadata.uid
                && before.metadata.generation == after.metadata.generation
        });
        let name = after.or(before).and_then(|policy| policy.metadata.name.as_deref());
        if !is_same && let Some(name) = name {
            self.changed.insert(name.into());
        }
    }

    /// Reads the policies that have changed; each comes back with its rule, or none where it is gone.
    pub(super) fn read(&mut self, world: &World) -> Vec<(Arc<str>, Option<Arc<Rule>>)> {
        let changed = std::mem::take(&mut self.changed);
        let read = changed.into_iter().map(|name| {
            let Some(policy) = world.policies.get(&ObjectKey::new("", &name)) else {
                self.book.remove(&name);
                self.records.remove(&name);
                self.untold.remove(&name);
                return (name, None);
            };
            let rule = Arc::new(compile(policy));
            if let Err(complaints) = &rule.orders {
                let first = complaints.first().map(|complaint| format!("{}: {}", complaint.path, complaint.message));
                tracing::warn!(policy = %name, problems = complaints.len(), first, "the policy cannot be understood; its pods are held");
            }
            self.book.set(Arc::clone(&rule));
            let uid = policy.metadata.uid.clone();
            let before = policy.status.as_ref().and_then(|status| status.evicted).unwrap_or_default();
            let record = self.records.entry(Arc::clone(&name)).or_insert_with(|| Record {
                uid: uid.clone(),
                evicted: before,
                told: Moment::PAST,
            });
            if record.uid != uid {
                *record = Record { uid, evicted: before, told: Moment::PAST };
            }
            self.untold.insert(Arc::clone(&name));
            (name, Some(rule))
        });
        read.collect()
    }

    /// Whether some policy bounds how many pods of one owner may be away.
    pub(super) fn counts_workloads(&self) -> bool {
        self.orders().any(|orders| orders.pace.per_workload != Allowance::All)
    }

    /// Whether some policy deletes by force.
    pub(super) fn uses_force(&self) -> bool {
        self.orders().any(|orders| orders.force.is_some())
    }

    fn orders(&self) -> impl Iterator<Item = &berth_engine::evict::policy::Orders> {
        self.book.rules().filter_map(|rule| rule.orders.as_ref().ok())
    }

    /// A policy has evicted a pod.
    pub(super) fn evicted(&mut self, name: &Arc<str>) {
        if let Some(record) = self.records.get_mut(name) {
            record.evicted += 1;
            self.untold.insert(Arc::clone(name));
        }
    }

    /// The pods of a policy stand otherwise.
    pub(super) fn touch(&mut self, name: &Arc<str>) {
        if self.records.contains_key(name) {
            self.untold.insert(Arc::clone(name));
        }
    }

    /// The policies that are to be told now how they stand.
    pub(super) fn take_untold(&mut self, now: Moment) -> Vec<Arc<str>> {
        let is_time = |name: &Arc<str>, records: &HashMap<Arc<str>, Record>| {
            records
                .get(name)
                .is_none_or(|record| record.told > now || record.told.plus(STANDING_EVERY) <= now)
        };
        let records = &self.records;
        self.untold.extract_if(|name| is_time(name, records)).collect()
    }

    /// When the next is to be told.
    pub(super) fn wake(&self) -> Option<Moment> {
        let told = self.untold.iter().filter_map(|name| self.records.get(name));
        told.map(|record| record.told.plus(STANDING_EVERY)).min()
    }

    /// Tells a policy how it stands, if that is not what it says.
    pub(super) fn tell(
        &mut self,
        name: &Arc<str>,
        tally: &Tally,
        world: &World,
        now: Moment,
    ) -> Option<Write> {
        let policy = world.policies.get(&ObjectKey::new("", name))?;
        let rule = self.book.get(name)?;
        let record = self.records.get_mut(name)?;
        record.told = now;
        // Whoever led before may have counted on after we began to look.
        let written = policy.status.as_ref().and_then(|status| status.evicted).unwrap_or_default();
        record.evicted = record.evicted.max(written);
        let status = standing(rule, tally, record.evicted, policy.status.as_ref(), now);
        let before = policy.status.clone().unwrap_or_default();
        let patch = difference(&before, &status)?;
        Some(Write::Patch {
            target: Target::whatever_revision(&Object::Policy(Arc::clone(policy))),
            subresource: Some("status"),
            patch: json!({"status": patch}),
        })
    }
}
