//! How many clusters belong to each set.
//!
//! Owns the counts, kept by difference, and the condition that tells whether a set is empty. Clusters being deleted are
//! members until they are gone. One selector that cannot be understood makes one set's count unknown and no other's.

use std::sync::Arc;

use berth_api::names::{condition, label, reason};
use berth_api::{ManagedCluster, ManagedClusterSet, SelectorType};
use hashbrown::{HashMap, HashSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::condition::{Status, Wanted};
use crate::model::term_of;
use crate::moment::Moment;
use crate::selector::Requirement;

/// How a set finds its clusters.
#[derive(Debug, PartialEq)]
enum Way {
    /// By the exclusive label; counted for every value whether a set has that name or not.
    Exclusive,
    /// By requirements on labels.
    Selector { requirements: Arc<[Requirement]>, count: usize },
    /// It finds none.
    Nobody,
    /// The selector cannot be understood.
    Broken(String),
}

/// The clusters and sets of the hub, and who belongs where.
#[derive(Debug, Default)]
pub struct Memberships {
    clusters: HashMap<Arc<str>, Arc<ManagedCluster>>,
    sets: HashMap<Arc<str>, Way>,
    /// Clusters by the value of the exclusive label.
    exclusive: HashMap<Box<str>, usize>,
    /// Sets with a selector that looks at a label.
    by_key: HashMap<Box<str>, HashSet<Arc<str>>>,
    /// All sets with a selector.
    selecting: HashSet<Arc<str>>,
}

fn value<'c>(cluster: &'c ManagedCluster, key: &str) -> Option<&'c str> {
    cluster.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn matches(requirements: &[Requirement], cluster: &ManagedCluster) -> bool {
    requirements.iter().all(|requirement| requirement.holds(value(cluster, &requirement.key)))
}

impl Memberships {
    /// Takes in a cluster as it is now, or that it is gone. The sets whose number of members changed, or which swapped
    /// one for another, come back in order.
    pub fn cluster(&mut self, name: &str, after: Option<&Arc<ManagedCluster>>) -> Vec<Arc<str>> {
        let before = match after {
            Some(after) => self.clusters.insert(name.into(), after.clone()),
            None => self.clusters.remove(name),
        };
        let (before, after) = (before.as_deref(), after.map(|after| &**after));
        let mut touched = Vec::new();
        let keys = match (before, after) {
            (None, None) => return touched,
            (Some(before), Some(after)) if before.metadata.labels == after.metadata.labels => return touched,
            (Some(before), Some(after)) => Some(changed_keys(before, after)),
            _ => None,
        };
        self.recount_exclusive(before, after, &mut touched);
        let Self { sets, by_key, selecting, .. } = self;
        let concerned: HashSet<&Arc<str>> = match &keys {
            Some(keys) => keys.iter().filter_map(|key| by_key.get(*key)).flatten().collect(),
            // A cluster that came or went is asked by every selector, also by one that looks at no label.
            None => selecting.iter().collect(),
        };
        for name in concerned {
            let Some(Way::Selector { requirements, count }) = sets.get_mut(name) else { continue };
            let belongs = |cluster: Option<&ManagedCluster>| {
                cluster.is_some_and(|cluster| matches(requirements, cluster))
            };
            match (belongs(before), belongs(after)) {
                (false, true) => *count += 1,
                (true, false) => *count -= 1,
                _ => continue,
            }
            touched.push(name.clone());
        }
        touched.sort_unstable();
        touched
    }

    fn recount_exclusive(
        &mut self,
        before: Option<&ManagedCluster>,
        after: Option<&ManagedCluster>,
        touched: &mut Vec<Arc<str>>,
    ) {
        let set_of = |cluster: Option<&ManagedCluster>| {
            cluster.and_then(|cluster| value(cluster, label::CLUSTER_SET)).map(Box::<str>::from)
        };
        let (left, joined) = (set_of(before), set_of(after));
        if left == joined {
            return;
        }
        for name in left.iter().chain(&joined) {
            if let Some((name, Way::Exclusive)) = self.sets.get_key_value(&**name) {
                touched.push(name.clone());
            }
        }
        if let Some(left) = left
            && let Some(count) = self.exclusive.get_mut(&left)
        {
            *count -= 1;
            if *count == 0 {
                self.exclusive.remove(&left);
            }
        }
        if let Some(joined) = joined {
            *self.exclusive.entry(joined).or_default() += 1;
        }
    }

    /// Takes in a set as it is now, or that it is gone. Whether it finds its clusters in another way than before.
    pub fn set(&mut self, name: &str, after: Option<&ManagedClusterSet>) -> bool {
        let way = after.map(|set| self.way(name, set));
        let before = self.sets.get(name);
        if before == way.as_ref() {
            return false;
        }
        let name: Arc<str> = name.into();
        if let Some(Way::Selector { requirements, .. }) = self.sets.remove(&name) {
            self.selecting.remove(&name);
            for requirement in &*requirements {
                if let Some(sets) = self.by_key.get_mut(&requirement.key) {
                    sets.remove(&name);
                    if sets.is_empty() {
                        self.by_key.remove(&requirement.key);
                    }
                }
            }
        }
        if let Some(way) = way {
            if let Way::Selector { requirements, .. } = &way {
                self.selecting.insert(name.clone());
                for requirement in &**requirements {
                    self.by_key.entry(requirement.key.clone()).or_default().insert(name.clone());
                }
            }
            self.sets.insert(name, way);
        }
        true
    }

    fn way(&self, name: &str, set: &ManagedClusterSet) -> Way {
        match term_of(set) {
            Err(why) => Way::Broken(why),
            Ok(None) => Way::Nobody,
            Ok(Some(_)) if set.selector_type() == SelectorType::ExclusiveClusterSetLabel => Way::Exclusive,
            Ok(Some(term)) => {
                let requirements: Arc<[Requirement]> = term.requirements.into();
                let count = match self.sets.get(name) {
                    // The status of a set changes often and its selector hardly ever; the fleet is not counted again.
                    Some(Way::Selector { requirements: same, count }) if *same == requirements => *count,
                    _ => self.clusters.values().filter(|cluster| matches(&requirements, cluster)).count(),
                };
                Way::Selector { requirements, count }
            }
        }
    }

    /// The number of clusters in a set, or why it cannot be told; `None` if there is no such set.
    pub fn count(&self, set: &str) -> Option<Result<usize, &str>> {
        Some(match self.sets.get(set)? {
            Way::Exclusive => Ok(self.exclusive.get(set).copied().unwrap_or_default()),
            Way::Selector { count, .. } => Ok(*count),
            Way::Nobody => Ok(0),
            Way::Broken(why) => Err(why),
        })
    }
}

/// The labels that one of the two has and the other has not, or has otherwise.
fn changed_keys<'c>(before: &'c ManagedCluster, after: &'c ManagedCluster) -> Vec<&'c str> {
    let keys = |cluster: &'c ManagedCluster, other: &'c ManagedCluster| {
        let labels = cluster.metadata.labels.iter().flatten();
        labels.filter(move |(key, text)| value(other, key) != Some(text)).map(|(key, _)| key.as_str())
    };
    keys(before, after).chain(keys(after, before)).collect()
}

/// The condition a set with this many members should have; `None` if it has it already or is being deleted. A set
/// whose selector cannot be understood says so instead of claiming to be empty.
pub fn empty_condition(
    set: &ManagedClusterSet,
    count: Result<usize, &str>,
    now: Moment,
) -> Option<Condition> {
    if set.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let (status, reason, message) = match count {
        Ok(0) => (Status::True, reason::NO_CLUSTER_MATCHED, "No ManagedCluster selected".to_owned()),
        Ok(count) => (Status::False, reason::CLUSTERS_SELECTED, format!("{count} ManagedClusters selected")),
        Err(why) => {
            let message = why.chars().take(MESSAGE_CHARS_MAX).collect();
            (Status::Unknown, reason::CLUSTER_SELECTOR_INVALID, message)
        }
    };
    let existing = set.status.as_ref().and_then(|status| status.conditions.as_deref());
    let generation = set.metadata.generation;
    let wanted = Wanted { kind: condition::CLUSTER_SET_EMPTY, status, reason, message, generation };
    wanted.unless_said(existing.unwrap_or_default(), now)
}

/// The longest condition message the schema takes, in characters.
const MESSAGE_CHARS_MAX: usize = 32_768;

#[cfg(test)]
mod tests;
