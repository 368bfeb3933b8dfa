//! What a Lease says about its holder.
//!
//! Owns the translation between a Lease's spec and the record that the election thinks in, as client-go reads and writes
//! it. Never decides anything: absent fields are zero values, and nothing that the server accepts is an error here.

use std::time::Duration;

use berth_api::core::Lease;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Who holds a Lease, since when, and for how long without a word.
///
/// Times are the writer's wall clock, for people to read: whether a lease has run out is counted on the reader's clock
/// from when the record last changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Who holds it; empty when nobody does.
    pub holder: String,
    /// For how many seconds the holder keeps it without renewing it.
    pub duration_seconds: i32,
    /// When the holder began to hold it.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it.
    pub renewed: Option<Timestamp>,
    /// How often the holder has changed.
    pub transitions: i32,
}

impl Record {
    /// How long it is honoured without a change; not at all when the field is absent or nonsense.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.duration_seconds).unwrap_or_default())
    }

    /// As a Lease carries it. What belongs to coordinated election is left out, as client-go leaves it out.
    pub fn to_spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(self.duration_seconds),
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        }
    }
}

impl From<&LeaseSpec> for Record {
    fn from(spec: &LeaseSpec) -> Self {
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquired: spec.acquire_time.as_ref().map(|time| micros(time.0)),
            renewed: spec.renew_time.as_ref().map(|time| micros(time.0)),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// A record as the server holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What it says.
    pub record: Record,
    /// The resourceVersion under which it says so.
    pub version: String,
}

impl From<&Lease> for Seen {
    fn from(lease: &Lease) -> Self {
        Self {
            record: lease.spec.as_ref().map(Record::from).unwrap_or_default(),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// A time as a Lease can carry it: in whole microseconds.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_written_as_client_go_writes_it() {
        let record = Record {
            holder: "one".to_owned(),
            duration_seconds: 15,
            acquired: Some("2026-11-16T01:02:03Z".parse().unwrap()),
            renewed: Some("2026-11-16T01:02:05.000042Z".parse().unwrap()),
            transitions: 3,
        };
        let spec = record.to_spec();
        assert_eq!(
            serde_json::to_value(&spec).unwrap(),
            json!({
                "holderIdentity": "one",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-11-16T01:02:03.000000Z",
                "renewTime": "2026-11-16T01:02:05.000042Z",
                "leaseTransitions": 3,
            })
        );
        assert_eq!(Record::from(&spec), record);
    }

    #[test]
    fn a_released_record_names_nobody_and_keeps_the_field() {
        let spec =
            serde_json::to_value(Record { duration_seconds: 1, ..Record::default() }.to_spec()).unwrap();
        assert_eq!(spec, json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0}));
    }

    #[test]
    fn a_lease_that_says_nothing_is_held_by_nobody() {
        let seen = Seen::from(&Lease::default());
        assert_eq!(seen, Seen { record: Record::default(), version: String::new() });
        assert_eq!(seen.record.duration(), Duration::ZERO);
        assert_eq!(Record { duration_seconds: -4, ..Record::default() }.duration(), Duration::ZERO);
    }

    #[test]
    fn a_time_finer_than_a_lease_can_carry_is_cut() {
        let time: Timestamp = "2026-11-16T01:02:05.000042999Z".parse().unwrap();
        assert_eq!(micros(time), "2026-11-16T01:02:05.000042Z".parse().unwrap());
    }
}
