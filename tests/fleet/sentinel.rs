//! A way to know that nothing will happen without waiting for it not to.
//!
//! Watches bring changes in their order. So once the controllers have answered to a change of a cluster, a placement
//! and a decision of the sentinel's own, they have heard, and decided, every earlier one.

use berth_tests::caller::text;
use serde_json::json;

use crate::{cluster::Cluster, handle::Fleet};

/// A small fleet beside the scenario's, with one cluster and one placement.
pub(crate) struct Sentinel {
    fleet: Fleet,
    passes: std::cell::Cell<u32>,
}

impl Sentinel {
    pub(crate) async fn post(beside: &Fleet) -> Self {
        let name = beside.name("sentinel");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        beside.caller.post("/api/v1/namespaces", &namespace).await.ok();
        let fleet = Fleet { namespace: name, ..beside.clone() };
        fleet.bound_set("set").await;
        fleet.add(Cluster::named("c").of("set").label("turn", "0")).await;
        fleet
            .place(
                "p",
                "predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {turn: '0'}}}}]",
            )
            .await;
        fleet.selects("p", &["c"]).await;
        Self { fleet, passes: std::cell::Cell::new(0) }
    }

    /// Returns when everything that was said before has been heard and decided.
    pub(crate) async fn passes(&self) {
        let turn = (self.passes.get() + 1).to_string();
        self.passes.set(self.passes.get() + 1);
        let fleet = &self.fleet;
        let spec = format!(
            "predicates: [{{requiredClusterSelector: {{labelSelector: {{matchLabels: {{turn: '{turn}'}}}}}}}}]"
        );
        fleet.edit("p", &spec).await;
        fleet.selects("p", &[]).await;
        fleet.change("c", &json!({"metadata": {"labels": {"turn": turn}}})).await;
        let slices = fleet.selects("p", &["c"]).await;
        let uid = text(&slices.0[0], "/metadata/uid").to_owned();
        fleet.caller.delete(&fleet.decision_path("p", 1)).await.ok();
        let made_anew =
            |slice: &serde_json::Value| slice["metadata"]["uid"].as_str().is_some_and(|other| other != uid);
        fleet.until(&fleet.decision_path("p", 1), "is made anew", made_anew).await;
        fleet.selects("p", &["c"]).await;
    }
}
