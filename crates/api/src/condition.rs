//! Reading of conditions whose time the shared type cannot hold.
//!
//! Owns the lenient deserialiser of condition lists; see `time` for why one odd time must not make an object
//! unreadable.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Deserializer};

/// A condition as it may be written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, deserialize_with = "crate::time::optional")]
    last_transition_time: Option<Time>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default, rename = "type")]
    type_: Option<String>,
}

/// Reads an optional list of conditions; missing texts read as empty, a missing time as the epoch.
pub(crate) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Condition>>, D::Error> {
    let written = Option::<Vec<Written>>::deserialize(deserializer)?;
    Ok(written.map(|conditions| {
        conditions
            .into_iter()
            .map(|written| Condition {
                last_transition_time: written.last_transition_time.unwrap_or(Time(Timestamp::UNIX_EPOCH)),
                message: written.message.unwrap_or_default(),
                observed_generation: written.observed_generation,
                reason: written.reason.unwrap_or_default(),
                status: written.status.unwrap_or_default(),
                type_: written.type_.unwrap_or_default(),
            })
            .collect()
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ManagedCluster;

    #[test]
    fn a_time_past_the_calendar_or_finer_than_nanoseconds_does_not_make_a_cluster_unreadable() {
        for time in ["9999-12-31T23:59:59Z", "2024-05-01T12:00:00.1234567890123Z"] {
            let condition = json!({
                "type": "Joined", "status": "True", "reason": "R", "message": "", "lastTransitionTime": time,
            });
            let cluster = json!({"metadata": {"name": "c1"}, "status": {"conditions": [condition]}});
            let cluster: ManagedCluster = serde_json::from_value(cluster).unwrap();
            assert_eq!(cluster.condition("Joined").unwrap().status, "True");
        }
    }
}
