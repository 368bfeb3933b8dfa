//! Who is on nodes that are drained: who goes, who stays and why, and who has gone.
//!
//! Owns the counting; it is told of pods and asks nobody. A pod is known by its uid, so a successor of the same name counts
//! for itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use berth_control::world::Pod;
use berth_engine::Moment;
use berth_engine::taint::{Lasting, NodeEffect, Policy, Taint, lasting};

/// The kind of owner whose pods belong to their node.
const DAEMON_SET: &str = "DaemonSet";

/// What the drain of its node means for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has to go, from this moment on.
    Goes(Moment),
    /// It is on its way out.
    Leaving,
    /// It stays.
    Stays(Stay),
}

/// Why a pod stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stay {
    /// A DaemonSet would put it back at once.
    DaemonSet,
    /// Its kubelet has it from a file.
    Static,
    /// It has run to its end.
    Ended,
    /// It says that it does not mind.
    Tolerates,
}

impl fmt::Display for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DaemonSet => "of a DaemonSet, which would put it back",
            Self::Static => "static: its kubelet has it from a file",
            Self::Ended => "has run to its end",
            Self::Tolerates => "tolerates the drain for ever",
        })
    }
}

impl Stay {
    /// The same, of many.
    fn of_many(self) -> &'static str {
        match self {
            Self::DaemonSet => "of DaemonSets",
            Self::Static => "static",
            Self::Ended => "ended",
            Self::Tolerates => "tolerating it",
        }
    }
}

/// What a drain that began with `taint` means for a pod, as the taint-eviction-controller sees it.
pub(super) fn standing(pod: &Pod, taint: &Taint<NodeEffect>) -> Standing {
    if pod.is_mirror {
        return Standing::Stays(Stay::Static);
    }
    if pod.owner.as_ref().is_some_and(|owner| &*owner.kind == DAEMON_SET) {
        return Standing::Stays(Stay::DaemonSet);
    }
    if pod.is_terminating() {
        return Standing::Leaving;
    }
    if pod.is_terminal() {
        return Standing::Stays(Stay::Ended);
    }
    let from = taint.added.unwrap_or(Moment::PAST).max(pod.since);
    match lasting(taint, &pod.tolerations, Policy::FirstMatch) {
        Lasting::Forever => Standing::Stays(Stay::Tolerates),
        Lasting::Not => Standing::Goes(from),
        Lasting::Seconds(seconds) => Standing::Goes(from.plus_seconds(seconds.max(0))),
    }
}

/// The pods of one node.
#[derive(Debug)]
pub(super) struct Roll {
    taint: Taint<NodeEffect>,
    pods: HashMap<Arc<str>, (Pod, Standing)>,
    /// Those that had to go and are not there any more.
    gone: HashSet<Arc<str>>,
    /// While everything is told anew: who has been told of so far.
    anew: Option<HashSet<Arc<str>>>,
    is_whole: bool,
}

/// How far a drain has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) to_go: usize,
    pub(super) leaving: usize,
    pub(super) gone: usize,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to go, {} leaving, {} gone", self.to_go, self.leaving, self.gone)
    }
}

impl Roll {
    /// Nobody is known yet of a node with this taint.
    pub(super) fn new(taint: Taint<NodeEffect>) -> Self {
        Self { taint, pods: HashMap::new(), gone: HashSet::new(), anew: None, is_whole: false }
    }

    /// The drain has begun, with this taint. From here on everybody has to be told of again: who came before it took hold is
    /// not known yet.
    pub(super) fn begun(&mut self, taint: Taint<NodeEffect>) {
        self.taint = taint;
        for (pod, known) in self.pods.values_mut() {
            *known = standing(pod, &self.taint);
        }
        self.is_whole = false;
    }

    /// Everybody will be told of again.
    pub(super) fn begin(&mut self) {
        self.anew = Some(HashSet::new());
        self.is_whole = false;
    }

    /// Everybody has been told of: whoever was not is gone.
    pub(super) fn end(&mut self) {
        let told = self.anew.take().unwrap_or_default();
        let missing: Vec<Arc<str>> = self.pods.keys().filter(|uid| !told.contains(*uid)).cloned().collect();
        for uid in missing {
            self.remove(&uid);
        }
        self.is_whole = true;
    }

    /// A pod is there.
    pub(super) fn apply(&mut self, pod: Pod) {
        let uid = Arc::clone(&pod.identity.uid);
        if let Some(told) = &mut self.anew {
            told.insert(Arc::clone(&uid));
        }
        let standing = standing(&pod, &self.taint);
        self.pods.insert(uid, (pod, standing));
    }

    /// A pod is not there any more.
    pub(super) fn remove(&mut self, uid: &str) {
        if let Some((uid, (_, standing))) = self.pods.remove_entry(uid)
            && !matches!(standing, Standing::Stays(_))
        {
            self.gone.insert(uid);
        }
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> Progress {
        let count = |wanted: fn(&Standing) -> bool| {
            self.pods.values().filter(|(_, standing)| wanted(standing)).count()
        };
        Progress {
            to_go: count(|standing| matches!(standing, Standing::Goes(_))),
            leaving: count(|standing| matches!(standing, Standing::Leaving)),
            gone: self.gone.len(),
        }
    }

    /// Whether everybody is known and nobody is left that has to go.
    pub(super) fn is_done(&self) -> bool {
        let Progress { to_go, leaving, .. } = self.progress();
        self.is_whole && to_go == 0 && leaving == 0
    }

    /// Whether everybody is known.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Everybody with what it means for them: who goes first, each by name.
    pub(super) fn all(&self) -> Vec<(&Pod, Standing)> {
        let mut all: Vec<(&Pod, Standing)> =
            self.pods.values().map(|(pod, standing)| (pod, *standing)).collect();
        all.sort_by_key(|(pod, standing)| (matches!(standing, Standing::Stays(_)), pod.identity.key.clone()));
        all
    }

    /// Those that were due by `before` and are not even on their way, each by name.
    pub(super) fn overdue(&self, before: Moment) -> Vec<&Pod> {
        let due = |standing: Standing| matches!(standing, Standing::Goes(at) if at <= before);
        self.all().into_iter().filter(|(_, standing)| due(*standing)).map(|(pod, _)| pod).collect()
    }

    /// Who stays, counted by why; nothing if nobody does.
    pub(super) fn staying(&self) -> String {
        let mut counts: BTreeMap<Stay, usize> = BTreeMap::new();
        for (_, standing) in self.pods.values() {
            if let Standing::Stays(why) = standing {
                *counts.entry(*why).or_default() += 1;
            }
        }
        let words: Vec<String> =
            counts.iter().map(|(why, count)| format!("{count} {}", why.of_many())).collect();
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use berth_api::names::node_taint::DRAIN;
    use serde_json::{Value, json};

    use super::*;

    const BEGUN: i64 = 1_800_000_000;

    fn taint() -> Taint<NodeEffect> {
        let added = Some(Moment::from_second(BEGUN));
        Taint { key: DRAIN.into(), value: "".into(), effect: NodeEffect::NoExecute, added }
    }

    fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Pod {
        let mut pod = json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
        });
        change(&mut pod);
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    fn told(change: impl FnOnce(&mut Value)) -> Standing {
        standing(&pod("p", change), &taint())
    }

    #[test]
    fn who_goes_and_who_stays_is_told_by_what_a_pod_is() {
        let at = Moment::from_second;
        assert_eq!(told(|_| ()), Standing::Goes(at(BEGUN)));
        let tolerates = |seconds: Option<i64>| {
            let mut toleration = json!({"key": DRAIN, "operator": "Exists", "effect": "NoExecute"});
            toleration["tolerationSeconds"] = json!(seconds);
            told(|pod| pod["spec"]["tolerations"] = json!([toleration]))
        };
        assert_eq!(tolerates(None), Standing::Stays(Stay::Tolerates));
        assert_eq!(tolerates(Some(60)), Standing::Goes(at(BEGUN + 60)));
        assert_eq!(tolerates(Some(-1)), Standing::Goes(at(BEGUN)));
        let deleted = |pod: &mut Value| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(told(deleted), Standing::Leaving);
        assert_eq!(told(|pod| pod["status"]["phase"] = json!("Failed")), Standing::Stays(Stay::Ended));
        let owner = |kind: &str| {
            let owner = json!({"kind": kind, "name": "o", "uid": "o", "controller": true});
            told(|pod| pod["metadata"]["ownerReferences"] = json!([owner]))
        };
        assert_eq!(owner("DaemonSet"), Standing::Stays(Stay::DaemonSet));
        assert_eq!(owner("ReplicaSet"), Standing::Goes(at(BEGUN)));
        let mirror =
            |pod: &mut Value| pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        assert_eq!(told(mirror), Standing::Stays(Stay::Static));
    }

    #[test]
    fn a_drain_is_done_when_everybody_is_known_and_nobody_is_left_that_goes() {
        let mut roll = Roll::new(taint());
        assert!(!roll.is_done(), "nobody is known yet");
        roll.begin();
        for name in ["a", "b"] {
            roll.apply(pod(name, |_| ()));
        }
        roll.apply(pod("done", |pod| pod["status"]["phase"] = json!("Succeeded")));
        roll.end();
        assert_eq!(roll.progress().to_string(), "2 to go, 0 leaving, 0 gone");
        roll.apply(pod("a", |pod| pod["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:10Z")));
        assert_eq!(roll.progress().to_string(), "1 to go, 1 leaving, 0 gone");
        roll.remove("a");
        assert_eq!(roll.progress().to_string(), "1 to go, 0 leaving, 1 gone");
        roll.remove("done");
        assert!(!roll.is_done());
        // What was missed while the watch was away.
        roll.begin();
        roll.end();
        assert_eq!(roll.progress().to_string(), "0 to go, 0 leaving, 2 gone");
        assert!(roll.is_done());
    }

    #[test]
    fn who_has_gone_before_the_watch_began_counts_as_gone() {
        let mut roll = Roll::new(taint());
        roll.begin();
        for name in ["quick", "slow"] {
            roll.apply(pod(name, |_| ()));
        }
        roll.end();
        roll.begun(taint());
        assert!(!roll.is_whole() && !roll.is_done());
        roll.begin();
        roll.apply(pod("slow", |_| ()));
        roll.apply(pod("last-minute", |_| ()));
        roll.end();
        assert_eq!(roll.progress().to_string(), "2 to go, 0 leaving, 1 gone");
    }

    #[test]
    fn a_pod_that_comes_back_under_its_name_has_to_go_as_well() {
        let mut roll = Roll::new(taint());
        roll.begin();
        roll.apply(pod("a", |_| ()));
        roll.end();
        roll.remove("a");
        roll.apply(pod("a", |pod| pod["metadata"]["uid"] = json!("another")));
        assert_eq!(roll.progress().to_string(), "1 to go, 0 leaving, 1 gone");
    }

    #[test]
    fn only_who_was_due_long_enough_is_overdue() {
        let mut roll = Roll::new(taint());
        let seconds =
            |seconds: i64| json!([{"key": DRAIN, "operator": "Exists", "tolerationSeconds": seconds}]);
        roll.apply(pod("late", |_| ()));
        roll.apply(pod("later", |pod| pod["spec"]["tolerations"] = seconds(600)));
        let overdue = roll.overdue(Moment::from_second(BEGUN + 10));
        assert_eq!(overdue.iter().map(|pod| &*pod.identity.key.name).collect::<Vec<_>>(), ["late"]);
        assert!(roll.overdue(Moment::from_second(BEGUN - 1)).is_empty());
    }
}
