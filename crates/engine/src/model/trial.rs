//! A change that nobody has made, tried in the model and taken back again.
//!
//! Owns that the model afterwards is as it was: it decides what it would have decided and touches whom it would have
//! touched. That holds however the trial ends, because it ends with the value. Only what expressions have cost is not
//! given back: what they said of the fleet as it is stays known, and what was doubted by the trial is asked again.

use std::ops::{Deref, DerefMut};

use berth_api::Placement;

use super::key::{ObjectKey, PlacementKey};
use super::placements::Entry;
use super::terms::TermId;
use super::{Delta, Model};

/// The model with a change in it that nobody has made.
pub(crate) struct Trial<'m> {
    model: &'m mut Model,
    undo: Undo,
}

/// What takes a change back.
enum Undo {
    /// Nothing is to be done.
    Nothing,
    /// The object as it was.
    Object(Box<Delta>),
    /// The placement is taken out, and the one of its name comes back.
    Placement { key: PlacementKey, aside: Option<Box<Aside>> },
}

/// A placement that stands aside. What it knows of clusters is kept, because it costs to ask for it.
struct Aside {
    entry: Entry,
    terms: Vec<TermId>,
    /// Whether somebody is still to be told that it may decide differently, or will be.
    is_ripe: bool,
}

impl<'m> Trial<'m> {
    /// With this placement in the model, in place of one of the same name, whose decisions then are its own.
    pub(crate) fn of_placement(model: &'m mut Model, placement: &Placement) -> Self {
        let key = ObjectKey::of(&placement.metadata);
        let aside = model.placements.find(&key).map(|id| {
            let terms = model.placements.get(id).terms.clone();
            for term in &terms {
                model.terms.keep(*term);
            }
            let is_ripe = model.ripe.contains(id) || model.is_waiting(&key);
            Box::new(Aside { entry: model.unwire(id).loosened(), terms, is_ripe })
        });
        // Made before the placement goes in, so that one which cannot be taken in whole is taken out as well.
        let trial = Self { model, undo: Undo::Placement { key, aside } };
        trial.model.put_placement(placement, &mut super::Touched::default());
        trial
    }

    /// With this change in the model; `undo` is the same object as the model has it. The placements it touches come along.
    pub(crate) fn of_change(model: &'m mut Model, change: &Delta, undo: Delta) -> (Self, Vec<PlacementKey>) {
        if let Delta::Placement(placement) = change {
            let touched = vec![ObjectKey::of(&placement.metadata)];
            return (Self::of_placement(model, placement), touched);
        }
        let trial = Self { model, undo: Undo::Object(Box::new(undo)) };
        let touched = trial.model.take_in(change.into());
        // Who is ripe is told to others as well.
        let touched = touched.and(trial.model.ripe.clone()).settled(trial.model);
        let touched = touched.keys(trial.model).cloned().collect();
        (trial, touched)
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
        match std::mem::replace(&mut self.undo, Undo::Nothing) {
            Undo::Nothing => {}
            Undo::Object(object) => {
                // Whom that touches would decide as before, because it is as before.
                let _ = self.model.take_in((&*object).into());
            }
            Undo::Placement { key, aside } => {
                if let Some(id) = self.model.placements.find(&key) {
                    self.model.unwire(id);
                }
                if let Some(aside) = aside {
                    let Aside { entry, terms, is_ripe } = *aside;
                    let id = self.model.wire(entry);
                    if is_ripe {
                        self.model.ripe.add(id);
                    }
                    for term in terms {
                        self.model.terms.let_go(term);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;
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
        assert_eq!(
            selected(&mut Trial::of_placement(&mut model, &placement("q", "test")), "q").unwrap(),
            ["b"]
        );
        assert_eq!(selected(&mut model, "q"), None);
        assert!(model.apply(cluster("c", "test")).is_empty(), "nobody is left who wants it");
    }

    #[test]
    fn a_placement_stands_aside_for_a_trial_of_its_name_and_comes_back() {
        let mut model = fleet();
        assert_eq!(selected(&mut model, "p").unwrap(), ["a"]);
        assert_eq!(
            selected(&mut Trial::of_placement(&mut model, &placement("p", "test")), "p").unwrap(),
            ["b"]
        );
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
                let _trial = Trial::of_placement(&mut model, &placement(name, "test"));
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
        drop(Trial { model: &mut model, undo: Undo::Placement { key, aside: None } });
        assert_eq!(selected(&mut model, "q"), None);
        assert!(model.apply(cluster("c", "test")).is_empty());
        assert_eq!(selected(&mut model, "p").unwrap(), ["a"]);
    }
}
