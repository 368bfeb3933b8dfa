//! A placement that nobody has made, tried in the model and taken out again.
//!
//! Owns that the model afterwards is as it was: it decides what it would have decided and touches whom it would have
//! touched. That holds however the trial ends, because it ends with the value.

use std::ops::{Deref, DerefMut};

use berth_api::Placement;

use super::Model;
use super::key::{ObjectKey, PlacementKey};
use super::placements::Entry;

/// The model with one placement in it that is not there. In place of one of the same name, whose decisions then are
/// its own.
pub(crate) struct Trial<'m> {
    model: &'m mut Model,
    key: PlacementKey,
    /// The placement of that name, while it has to stand aside.
    aside: Option<Entry>,
}

impl<'m> Trial<'m> {
    pub(crate) fn begin(model: &'m mut Model, placement: &Placement) -> Self {
        let key = ObjectKey::of(&placement.metadata);
        let aside = model.placements.find(&key).map(|id| model.unwire(id).loosened());
        // Made before the placement goes in, so that one which cannot be taken in whole is taken out as well.
        let trial = Self { model, key, aside };
        trial.model.put_placement(placement, &mut super::Touched::default());
        trial
    }
}

impl Deref for Trial<'_> {
    type Target = Model;

    fn deref(&self) -> &Model {
        self.model
    }
}

impl DerefMut for Trial<'_> {
    fn deref_mut(&mut self) -> &mut Model {
        self.model
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.model.placements.find(&self.key) {
            self.model.unwire(id);
        }
        if let Some(entry) = self.aside.take() {
            self.model.wire(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;
    use crate::model::Delta;
    use crate::moment::Moment;

    fn placement(name: &str, env: &str) -> Placement {
        let predicate = json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": env}}}});
        let object = json!({"metadata": {"namespace": "n", "name": name}, "spec": {
            "numberOfClusters": 1, "predicates": [predicate],
            "tolerations": [{"key": env, "operator": "Exists"}],
        }});
        serde_json::from_value(object).unwrap()
    }

    fn cluster(name: &str, env: &str) -> Delta {
        let object = json!({"metadata": {"name": name, "labels": {
            "env": env, "cluster.open-cluster-management.io/clusterset": "s",
        }}});
        Delta::Cluster(Box::new(serde_json::from_value(object).unwrap()))
    }

    fn fleet() -> Model {
        let mut model = Model::new();
        let set = json!({"metadata": {"name": "s"}, "spec": {}});
        let binding = json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"clusterSet": "s"}});
        for delta in [
            Delta::Set(Box::new(serde_json::from_value(set).unwrap())),
            Delta::Binding(Box::new(serde_json::from_value(binding).unwrap())),
            cluster("a", "prod"),
            cluster("b", "test"),
            Delta::Placement(Box::new(placement("p", "prod"))),
        ] {
            model.apply(delta);
        }
        model
    }

    fn selected(model: &mut Model, name: &str) -> Option<Vec<String>> {
        let decision = model.decide(&PlacementKey::new("n", name), Moment::from_second(0))?;
        Some(decision.picks.iter().map(|pick| pick.cluster.to_string()).collect())
    }

    #[test]
    fn a_trial_sees_the_placement_and_leaves_nothing_of_it() {
        let mut model = fleet();
        assert_eq!(selected(&mut Trial::begin(&mut model, &placement("q", "test")), "q").unwrap(), ["b"]);
        assert_eq!(selected(&mut model, "q"), None);
        assert!(model.apply(cluster("c", "test")).is_empty(), "nobody is left who wants it");
    }

    #[test]
    fn a_placement_stands_aside_for_a_trial_of_its_name_and_comes_back() {
        let mut model = fleet();
        assert_eq!(selected(&mut model, "p").unwrap(), ["a"]);
        assert_eq!(selected(&mut Trial::begin(&mut model, &placement("p", "test")), "p").unwrap(), ["b"]);
        let touched = model.apply(Delta::ClusterGone("a".into()));
        let touched: Vec<String> = touched.keys(&model).map(ToString::to_string).collect();
        assert_eq!(touched, ["n/p"], "it still has the cluster");
        assert_eq!(selected(&mut model, "p").unwrap(), Vec::<String>::new());
        assert!(model.apply(cluster("c", "test")).is_empty());
    }

    #[test]
    fn a_trial_that_fails_leaves_nothing_either() {
        let mut model = fleet();
        for name in ["p", "q"] {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                let _trial = Trial::begin(&mut model, &placement(name, "test"));
                panic!("midway");
            }));
            assert!(failed.is_err());
        }
        assert_eq!(selected(&mut model, "q"), None);
        assert_eq!(selected(&mut model, "p").unwrap(), ["a"]);
        assert!(model.apply(cluster("c", "test")).is_empty());
    }

    #[test]
    fn a_placement_that_was_entered_but_not_wired_is_taken_out_whole() {
        let mut model = fleet();
        let rule = crate::select::compile(&placement("q", "test")).unwrap();
        let key = PlacementKey::new("n", "q");
        let identity =
            super::super::placements::Identity { uid: None, generation: None, score_rate_limit: None };
        let entry = Entry::loose(key.clone(), Ok(rule.into()), Box::default(), identity, false, None);
        // As if the first predicate had never come to an end.
        let id = model.placements.reserve();
        model.placements.put(id, entry);
        drop(Trial { model: &mut model, key, aside: None });
        assert_eq!(selected(&mut model, "q"), None);
        assert!(model.apply(cluster("c", "test")).is_empty());
        assert_eq!(selected(&mut model, "p").unwrap(), ["a"]);
    }
}
