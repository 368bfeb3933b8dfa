//! What the API server's definitions have room for.
//!
//! Owns the difference between the stock definitions and ours, which are a superset: fields that a server would prune are
//! not sent, because what comes back would differ from what was wanted for ever.

use berth_engine::select::{Details, Published};
use kube::Client;
use serde_json::Value;

/// Which of the fields that not all definitions have the server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `status.nextTransition` of a Placement.
    pub next_transition: bool,
    /// `status.lastScoreUpdateTime` of a Placement.
    pub last_score_update_time: bool,
    /// `status.decisions[].score` and `available` of a PlacementDecision. Newer stock definitions have the first alone, and
    /// older ones neither.
    pub details: Details,
}

impl Dialect {
    /// Everything, as with our own definitions.
    pub const OURS: Self =
        Self { next_transition: true, last_score_update_time: true, details: Details::ALL };

    /// Nothing that any stock definitions would prune.
    pub const LEAST: Self = Self {
        next_transition: false,
        last_score_update_time: false,
        details: Details { score: false, available: false },
    };

    /// Asks the server, by the schemas it publishes to everybody who may talk to it.
    pub async fn discover(client: &Client) -> Result<Self, kube::Error> {
        let path = format!("/openapi/v3/apis/{}/v1beta1", berth_api::names::GROUP);
        let request = http::Request::get(path).body(Vec::new()).expect("the path is a constant");
        Ok(Self::of(&client.request(request).await?))
    }

    /// Of definitions, as an OpenAPI document.
    fn of(document: &Value) -> Self {
        let has = |kind: &str, field: &str| {
            let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
            let name = format!(".{kind}");
            let schema = schemas.into_iter().flatten().find(|(schema, _)| schema.ends_with(&name));
            let pointer = format!("/properties/status/properties/{field}");
            schema.is_some_and(|(_, schema)| schema.pointer(&pointer).is_some())
        };
        let shows = |detail| has("PlacementDecision", &format!("decisions/items/properties/{detail}"));
        Self {
            next_transition: has("Placement", "nextTransition"),
            last_score_update_time: has("Placement", "lastScoreUpdateTime"),
            details: Details { score: shows("score"), available: shows("available") },
        }
    }

    /// Leaves out of a status what the server would prune.
    pub(crate) fn adapt(self, published: &mut Published) {
        if !self.next_transition {
            published.status.next_transition = None;
        }
        if !self.last_score_update_time {
            published.status.last_score_update_time = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A document that has these fields of a Placement's status and of a decision.
    fn document(of_status: &[&str], of_decision: &[&str]) -> Value {
        let properties = |names: &[&str]| -> Value {
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect()
        };
        let status = |properties: Value| json!({"properties": {"status": {"properties": properties}}});
        let decisions = json!({"decisions": {"items": {"properties": properties(of_decision)}}});
        json!({"components": {"schemas": {
            "io.open-cluster-management.cluster.v1beta1.Placement": status(properties(of_status)),
            "io.open-cluster-management.cluster.v1beta1.PlacementDecision": status(decisions),
            "io.open-cluster-management.cluster.v1beta1.PlacementList": {},
        }}})
    }

    #[test]
    fn a_dialect_has_the_fields_that_its_definitions_have() {
        assert_eq!(Dialect::of(&document(&["conditions"], &["clusterName", "reason"])), Dialect::LEAST);
        let newer = document(&["conditions", "lastScoreUpdateTime"], &["clusterName", "reason", "score"]);
        let details = Details { score: true, available: false };
        assert_eq!(Dialect::of(&newer), Dialect { last_score_update_time: true, details, ..Dialect::LEAST });
        let ours = document(
            &["conditions", "lastScoreUpdateTime", "nextTransition"],
            &["clusterName", "reason", "score", "available"],
        );
        assert_eq!(Dialect::of(&ours), Dialect::OURS);
    }
}
