//! The controllers by name, and which of them are to run.
//!
//! Owns the registry of names and the grammar of `--controllers`, which is kube-controller-manager's: `*` stands for
//! every controller that is on by default, `NAME` turns one on, `-NAME` turns one off. What is said about a controller by
//! name wins over `*` wherever it stands in the list; of two things said by name, the first wins. Never starts anything.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use berth_text::gotext;
use serde::{Serialize, Serializer};

/// Stands for every controller that is on by default.
const STAR: &str = "*";
/// Stands before a name that is turned off.
const OFF: char = '-';

/// The longest list that is read, in entries: several times what names every controller on and off.
pub const MAX_ENTRIES: usize = 256;

/// Controllers that `*` leaves out: those that must be asked for by name. Where kube-controller-manager runs its own of the
/// same name, two would act; and what may delete data is switched on by hand.
const OFF_BY_DEFAULT: &[ControllerName] =
    &[ControllerName::NodeLifecycle, ControllerName::Replacement, ControllerName::TaintEviction];

/// One controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControllerName {
    /// Placements to PlacementDecisions.
    Placement,
    /// ManagedClusterSets and the conditions they carry.
    ClusterSet,
    /// ManagedClusterSetBindings and the conditions they carry.
    ClusterSetBinding,
    /// Grants to service accounts, to ManagedClusterSetBindings.
    RbacBinding,
    /// Leases of clusters, to their availability.
    ClusterLease,
    /// Availability of clusters, to their taints.
    ClusterTaint,
    /// Leases and conditions of nodes, to their taints.
    NodeLifecycle,
    /// Ailing nodes, to members of stateful workloads that are replaced.
    Replacement,
    /// Taints of nodes, to pods that leave.
    TaintEviction,
}

impl ControllerName {
    /// Every controller, in the order of their names.
    pub const ALL: [Self; 9] = [
        Self::ClusterLease,
        Self::ClusterTaint,
        Self::ClusterSet,
        Self::ClusterSetBinding,
        Self::NodeLifecycle,
        Self::Placement,
        Self::RbacBinding,
        Self::Replacement,
        Self::TaintEviction,
    ];

    /// The name, as written in `--controllers`, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placement => "placement-controller",
            Self::ClusterSet => "clusterset-controller",
            Self::ClusterSetBinding => "clustersetbinding-controller",
            Self::RbacBinding => "rbac-binding-controller",
            Self::ClusterLease => "cluster-lease-controller",
            Self::ClusterTaint => "cluster-taint-controller",
            Self::NodeLifecycle => "node-lifecycle-controller",
            Self::Replacement => "replacement-controller",
            Self::TaintEviction => "taint-eviction-controller",
        }
    }

    /// What it does, in one line.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Placement => "chooses the clusters of each Placement and writes its PlacementDecisions",
            Self::ClusterSet => "keeps the default and global sets, and says which sets are empty",
            Self::ClusterSetBinding => "says which bindings have their set",
            Self::RbacBinding => "binds sets to namespaces whose service account `placement` may bind them",
            Self::ClusterLease => "marks clusters whose lease has run out as of unknown availability",
            Self::ClusterTaint => "taints clusters that are unavailable or unreachable",
            Self::NodeLifecycle => {
                "taints nodes by their conditions, and marks those that have fallen silent"
            }
            Self::Replacement => "replaces members of stateful workloads on ailing nodes, as policies say",
            Self::TaintEviction => "evicts pods from nodes with NoExecute taints that they do not tolerate",
        }
    }

    /// Whether it is about fleets, and needs their definitions; the others are about Kubernetes' own kinds, and of ours at most
    /// about policies, of which there may be none.
    pub fn needs_definitions(self) -> bool {
        !matches!(self, Self::NodeLifecycle | Self::Replacement | Self::TaintEviction)
    }

    /// Whether `*` includes it.
    pub fn on_by_default(self) -> bool {
        !OFF_BY_DEFAULT.contains(&self)
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ControllerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for ControllerName {
    type Err = UnknownControllers;

    fn from_str(name: &str) -> Result<Self, UnknownControllers> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == name);
        known.ok_or_else(|| UnknownControllers(vec![name.to_owned()]))
    }
}

/// Names that no controller has, worded as kube-controller-manager words it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownControllers(Vec<String>);

impl UnknownControllers {
    /// The names, in the order they were given and each once.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for UnknownControllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self
            .0
            .iter()
            .map(|name| format!("{} is not in the list of known controllers", gotext::quote(name)))
            .collect();
        match messages.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for UnknownControllers {}

/// Why a list of controllers cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControllerListError {
    /// It names controllers that do not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownControllers),
    /// It is longer than any list needs to be.
    #[error("the list of controllers has {0} entries; at most {MAX_ENTRIES} are read")]
    TooLong(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Star,
    On(ControllerName),
    Off(ControllerName),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star => f.write_str(STAR),
            Self::On(name) => name.fmt(f),
            Self::Off(name) => write!(f, "{OFF}{name}"),
        }
    }
}

/// Which controllers run: the value of `--controllers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerList(Vec<Entry>);

impl Default for ControllerList {
    /// `*`: all that are on by default.
    fn default() -> Self {
        Self(vec![Entry::Star])
    }
}

impl ControllerList {
    /// Reads the entries of a list, as a configuration file holds them.
    pub fn from_entries<S: AsRef<str>>(
        entries: impl IntoIterator<Item = S>,
    ) -> Result<Self, ControllerListError> {
        let (mut read, mut unknown) = (Vec::new(), Vec::<String>::new());
        let mut entries = entries.into_iter();
        for text in entries.by_ref().take(MAX_ENTRIES) {
            let text = text.as_ref();
            if text == STAR {
                read.push(Entry::Star);
                continue;
            }
            let (name, entry): (_, fn(_) -> _) = match text.strip_prefix(OFF) {
                Some(name) => (name, Entry::Off),
                None => (text, Entry::On),
            };
            match name.parse() {
                Ok(name) => read.push(entry(name)),
                Err(_) if unknown.iter().any(|known| known == name) => {}
                Err(_) => unknown.push(name.to_owned()),
            }
        }
        let left = entries.count();
        if left > 0 {
            return Err(ControllerListError::TooLong(MAX_ENTRIES + left));
        }
        if unknown.is_empty() { Ok(Self(read)) } else { Err(UnknownControllers(unknown).into()) }
    }

    /// Whether this controller runs.
    pub fn enables(&self, name: ControllerName) -> bool {
        enables(&self.0, name, name.on_by_default())
    }

    /// The controllers that run, in the order of [`ControllerName::ALL`].
    pub fn enabled(&self) -> impl Iterator<Item = ControllerName> + '_ {
        ControllerName::ALL.into_iter().filter(|name| self.enables(*name))
    }

    /// What `--help` says about the flag: the grammar, every controller with what it does, and those that are off.
    pub fn help() -> String {
        let widest = ControllerName::ALL.iter().map(|name| name.as_str().len()).max().unwrap_or_default();
        let mut text = String::from(
            "controllers to run: '*' runs all that are on by default, 'NAME' runs that one, '-NAME' does not\n",
        );
        for name in ControllerName::ALL {
            let off = if name.on_by_default() { "" } else { " (off by default)" };
            write!(text, "\n  {name:widest$}  {}{off}", name.description())
                .expect("text takes all that is written to it");
        }
        text
    }
}

impl FromStr for ControllerList {
    type Err = ControllerListError;

    /// Reads a list separated by commas. An empty one runs nothing.
    fn from_str(text: &str) -> Result<Self, ControllerListError> {
        if text.is_empty() { Ok(Self(Vec::new())) } else { Self::from_entries(text.split(',')) }
    }
}

impl fmt::Display for ControllerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, entry) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{entry}")?;
        }
        Ok(())
    }
}

fn enables(entries: &[Entry], name: ControllerName, by_default: bool) -> bool {
    let named = entries.iter().find_map(|entry| match entry {
        Entry::On(on) if *on == name => Some(true),
        Entry::Off(off) if *off == name => Some(false),
        _ => None,
    });
    named.unwrap_or_else(|| by_default && entries.contains(&Entry::Star))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn running(list: &str) -> Vec<&'static str> {
        list.parse::<ControllerList>().unwrap().enabled().map(ControllerName::as_str).collect()
    }

    fn refusal(list: &str) -> String {
        list.parse::<ControllerList>().unwrap_err().to_string()
    }

    #[test]
    fn a_star_runs_all_that_are_on_by_default() {
        assert_eq!(running("*").len(), ControllerName::ALL.len() - OFF_BY_DEFAULT.len());
        assert!(!running("*").contains(&"taint-eviction-controller"));
        assert_eq!(running("taint-eviction-controller"), ["taint-eviction-controller"]);
        assert_eq!(ControllerList::default(), "*".parse().unwrap());
        assert!(enables(&[Entry::Star], ControllerName::Placement, true));
        assert!(!enables(&[Entry::Star], ControllerName::Placement, false));
        assert!(enables(
            &[Entry::Star, Entry::On(ControllerName::Placement)],
            ControllerName::Placement,
            false
        ));
    }

    #[test]
    fn nothing_runs_that_is_not_asked_for() {
        assert!(running("").is_empty());
        assert!(running("-placement-controller").is_empty());
        assert_eq!(running("placement-controller"), ["placement-controller"]);
    }

    #[test]
    fn a_name_wins_over_the_star_on_either_side() {
        for list in ["*,-placement-controller", "-placement-controller,*"] {
            let running = running(list);
            assert_eq!(running.len(), ControllerName::ALL.len() - OFF_BY_DEFAULT.len() - 1, "{list}");
            assert!(!running.contains(&"placement-controller"), "{list}");
        }
    }

    #[test]
    fn the_first_of_two_things_said_about_a_controller_wins() {
        assert_eq!(running("placement-controller,-placement-controller"), ["placement-controller"]);
        assert!(running("-placement-controller,placement-controller").is_empty());
    }

    #[test]
    fn an_unknown_name_is_refused_as_kube_controller_manager_refuses_it() {
        assert_eq!(refusal("nope"), r#""nope" is not in the list of known controllers"#);
        assert_eq!(refusal("*,-nope"), r#""nope" is not in the list of known controllers"#);
        assert_eq!(refusal("--nope"), r#""-nope" is not in the list of known controllers"#);
        assert_eq!(
            refusal("* ,placement-controller,"),
            r#"["* " is not in the list of known controllers, "" is not in the list of known controllers]"#
        );
        assert_eq!(refusal("nope,-nope"), r#""nope" is not in the list of known controllers"#);
        assert_eq!(refusal("a\u{7}"), r#""a\a" is not in the list of known controllers"#);
    }

    #[test]
    fn a_list_without_end_is_refused() {
        assert!(vec!["*"; MAX_ENTRIES].join(",").parse::<ControllerList>().is_ok());
        assert_eq!(
            refusal(&vec!["*"; MAX_ENTRIES + 2].join(",")),
            "the list of controllers has 258 entries; at most 256 are read"
        );
    }

    #[test]
    fn every_controller_is_listed_once_in_order_and_in_the_help() {
        let names: Vec<&str> = ControllerName::ALL.iter().map(|name| name.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        let help = ControllerList::help();
        for name in ControllerName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert!(help.contains(name.as_str()) && help.contains(name.description()), "{help}");
        }
    }

    proptest! {
        #[test]
        fn a_list_is_read_back_as_it_was_written(picks in proptest::collection::vec(0..=ControllerName::ALL.len() * 2, 0..20)) {
            let list = ControllerList(picks.into_iter().map(|pick| match pick {
                pick if pick == ControllerName::ALL.len() * 2 => Entry::Star,
                pick if pick % 2 == 0 => Entry::On(ControllerName::ALL[pick / 2]),
                pick => Entry::Off(ControllerName::ALL[pick / 2]),
            }).collect());
            prop_assert_eq!(list.to_string().parse::<ControllerList>(), Ok(list));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = text.parse::<ControllerList>();
        }
    }
}
