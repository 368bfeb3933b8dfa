//! The two sets that always exist.
//!
//! Owns what `default` and `global` should be and what is put right about them: that they are there, and how they find
//! their clusters. Labels, annotations and managed namespaces are their users' own.

use berth_api::names::{DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET, annotation};
use berth_api::{ManagedClusterSelector, ManagedClusterSet, ManagedClusterSetSpec, SelectorType};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A set that always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardSet {
    /// The clusters that were put into no other exclusive set.
    Default,
    /// Every cluster.
    Global,
}

/// What is to be done about a standard set.
#[derive(Clone, Debug, PartialEq)]
pub enum StandardSetFix {
    /// It is missing; create this.
    Create(Box<ManagedClusterSet>),
    /// Its `spec.clusterSelector` was edited; make it this and leave the rest.
    Rollback(ManagedClusterSelector),
}

impl StandardSet {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Default, Self::Global];

    /// The standard set of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => DEFAULT_CLUSTER_SET,
            Self::Global => GLOBAL_CLUSTER_SET,
        }
    }

    fn selector(self) -> ManagedClusterSelector {
        match self {
            Self::Default => ManagedClusterSelector {
                selector_type: Some(SelectorType::ExclusiveClusterSetLabel),
                label_selector: None,
            },
            Self::Global => ManagedClusterSelector {
                selector_type: Some(SelectorType::LabelSelector),
                label_selector: Some(LabelSelector::default()),
            },
        }
    }

    /// What is to be done about the set as it `exists`; `None` if nothing.
    pub fn fix(self, exists: Option<&ManagedClusterSet>) -> Option<StandardSetFix> {
        let Some(set) = exists else {
            let mut set = ManagedClusterSet::new(self.name());
            let selector = Some(self.selector());
            set.spec = Some(ManagedClusterSetSpec { cluster_selector: selector, managed_namespaces: None });
            return Some(StandardSetFix::Create(Box::new(set)));
        };
        let annotations = set.metadata.annotations.as_ref();
        let hands_off = annotations
            .and_then(|all| all.get(annotation::AUTO_UPDATE))
            .is_some_and(|value| value == "false");
        // One on its way out is made anew when it is gone.
        if hands_off || set.metadata.deletion_timestamp.is_some() || self.finds_as_it_should(set) {
            return None;
        }
        Some(StandardSetFix::Rollback(self.selector()))
    }

    /// Whether the selector means what it should; an empty list and none are the same to it.
    fn finds_as_it_should(self, set: &ManagedClusterSet) -> bool {
        let selects_all = |selector: &LabelSelector| {
            selector.match_labels.iter().flatten().next().is_none()
                && selector.match_expressions.iter().flatten().next().is_none()
        };
        match (self, set.selector_type(), set.label_selector()) {
            (Self::Default, SelectorType::ExclusiveClusterSetLabel, None) => true,
            (Self::Global, SelectorType::LabelSelector, Some(selector)) => selects_all(selector),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use berth_api::ManagedNamespaceConfig;
    use serde_json::json;

    use super::*;
    use crate::condition::whole_second;
    use crate::moment::Moment;

    fn created(which: StandardSet) -> ManagedClusterSet {
        match which.fix(None) {
            Some(StandardSetFix::Create(set)) => *set,
            other => panic!("{other:?}"),
        }
    }

    fn edited(which: StandardSet) -> ManagedClusterSet {
        let mut set = created(which);
        let selector = json!({"clusterSelector": {
            "selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"vendor": "acme"}},
        }});
        set.spec = Some(serde_json::from_value(selector).unwrap());
        set
    }

    /// Upstream: managedclusterset/default_managedclusterset_controller_test.go "TestSyncDefaultClusterSet: sync
    /// deleted default cluster set".
    /// Upstream: managedclusterset/global_managedclusterset_controller_test.go "TestSyncGlobalClusterSet: sync deleted
    /// global cluster set".
    #[test]
    fn a_missing_set_is_created_as_it_should_be() {
        assert_eq!(
            serde_json::to_value(created(StandardSet::Default)).unwrap()["spec"],
            json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})
        );
        assert_eq!(
            serde_json::to_value(created(StandardSet::Global)).unwrap()["spec"],
            json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}})
        );
    }

    /// Upstream: managedclusterset/default_managedclusterset_controller_test.go "TestSyncDefaultClusterSet: sync
    /// default cluster set".
    /// Upstream: managedclusterset/global_managedclusterset_controller_test.go "TestSyncGlobalClusterSet: sync global
    /// cluster set".
    #[test]
    fn a_set_as_it_should_be_is_left_alone() {
        for which in StandardSet::ALL {
            let mut set = created(which);
            assert_eq!(which.fix(Some(&set)), None);
            set.metadata.labels.get_or_insert_default().insert("team".into(), "a".into());
            set.metadata.annotations.get_or_insert_default().insert("note".into(), "b".into());
            let namespaces = vec![ManagedNamespaceConfig { name: "work".into() }];
            set.spec.as_mut().unwrap().managed_namespaces = Some(namespaces);
            assert_eq!(which.fix(Some(&set)), None);
        }
        let mut global = created(StandardSet::Global);
        let selector = global.spec.as_mut().unwrap().cluster_selector.as_mut().unwrap();
        selector.label_selector.as_mut().unwrap().match_expressions = Some(Vec::new());
        assert_eq!(StandardSet::Global.fix(Some(&global)), None);
    }

    /// Upstream: managedclusterset/default_managedclusterset_controller_test.go "TestSyncDefaultClusterSet: sync edited
    /// cluster selector in default cluster set", "TestSyncDefaultClusterSet: sync default cluster set with edited
    /// managed namespaces - no rollback", "TestSyncDefaultClusterSet: sync default cluster set with edited cluster
    /// selector and managed namespaces - only cluster selector rollback".
    /// Upstream: managedclusterset/global_managedclusterset_controller_test.go "TestSyncGlobalClusterSet: sync edited
    /// cluster selector in global cluster set", "TestSyncGlobalClusterSet: sync global cluster set with edited managed
    /// namespaces - no rollback", "TestSyncGlobalClusterSet: sync global cluster set with edited cluster selector and
    /// managed namespaces - only cluster selector rollback".
    #[test]
    fn an_edited_selector_is_rolled_back_and_nothing_else() {
        for which in StandardSet::ALL {
            assert_eq!(which.fix(Some(&edited(which))), Some(StandardSetFix::Rollback(which.selector())));
        }
        let mut global = created(StandardSet::Global);
        global.spec.as_mut().unwrap().cluster_selector.as_mut().unwrap().label_selector = None;
        assert!(StandardSet::Global.fix(Some(&global)).is_some(), "without a selector it has no cluster");
    }

    /// Upstream: managedclusterset/default_managedclusterset_controller_test.go "TestSyncDefaultClusterSet: sync
    /// default cluster set with disabled annotation".
    /// Upstream: managedclusterset/global_managedclusterset_controller_test.go "TestSyncGlobalClusterSet: sync global
    /// cluster set with disabled annotation".
    #[test]
    fn an_edited_set_whose_owner_asks_for_it_is_left_alone() {
        for which in StandardSet::ALL {
            let mut set = edited(which);
            let annotations = set.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::AUTO_UPDATE.into(), "false".into());
            assert_eq!(which.fix(Some(&set)), None);
            let annotations = set.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::AUTO_UPDATE.into(), "true".into());
            assert!(which.fix(Some(&set)).is_some());
        }
    }

    /// Upstream: managedclusterset/default_managedclusterset_controller_test.go "TestSyncDefaultClusterSet: sync
    /// deleting default cluster set".
    #[test]
    fn a_set_on_its_way_out_is_left_alone() {
        for which in StandardSet::ALL {
            let mut set = edited(which);
            set.metadata.deletion_timestamp = Some(whole_second(Moment::from_second(1)));
            assert_eq!(which.fix(Some(&set)), None);
        }
    }

    #[test]
    fn only_the_two_names_are_standard() {
        assert_eq!(StandardSet::named("default"), Some(StandardSet::Default));
        assert_eq!(StandardSet::named("global"), Some(StandardSet::Global));
        assert_eq!(StandardSet::named("blue"), None);
    }
}
