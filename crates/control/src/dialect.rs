//! What the API server's definitions have room for.
//!
//! Owns the difference between the stock definitions and ours, which are a superset: fields that a server would prune are
//! not sent, because what comes back would differ from what was wanted for ever.

use berth_engine::select::Published;
use kube::Client;
use serde_json::Value;

/// Which of our additions the server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `status.nextTransition` of a Placement.
    pub next_transition: bool,
    /// `status.lastScoreUpdateTime` of a Placement.
    pub last_score_update_time: bool,
    /// `status.decisions[].score` and `available` of a PlacementDecision.
    pub decision_details: bool,
}

impl Dialect {
    /// Everything, as with our own definitions.
    pub const OURS: Self =
        Self { next_transition: true, last_score_update_time: true, decision_details: true };

    /// Nothing that the stock definitions would prune.
    pub const STOCK: Self =
        Self { next_transition: false, last_score_update_time: true, decision_details: false };

    /// Asks the server, by the schemas it publishes to everybody who may talk to it.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let path = format!("/openapi/v3/apis/{}/v1beta1", berth_api::names::GROUP);
        let request = http::Request::get(path).body(Vec::new()).expect("the path is a constant");
        let document: Value = client.request(request).await?;
        let property = |kind: &str, pointer: &str| {
            let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
            let name = format!(".{kind}");
            let schema = schemas.into_iter().flatten().find(|(schema, _)| schema.ends_with(&name));
            schema.is_some_and(|(_, schema)| schema.pointer(pointer).is_some())
        };
        let status = "/properties/status/properties";
        Ok(Self {
            next_transition: property("Placement", &format!("{status}/nextTransition")),
            last_score_update_time: property("Placement", &format!("{status}/lastScoreUpdateTime")),
            decision_details: property(
                "PlacementDecision",
                &format!("{status}/decisions/items/properties/score"),
            ),
        })
    }

    /// Leaves out what the server would prune.
    pub(crate) fn adapt(self, published: &mut Published) {
        if !self.next_transition {
            published.status.next_transition = None;
        }
        if !self.last_score_update_time {
            published.status.last_score_update_time = None;
        }
        if !self.decision_details {
            let entries = published.decisions.iter_mut().filter_map(|object| object.status.as_mut());
            for entry in entries.flat_map(|status| &mut status.decisions) {
                entry.score = None;
                entry.available = None;
            }
        }
    }
}
