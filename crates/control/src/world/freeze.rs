//! That a person has said stop: one ConfigMap, by its name.

use std::collections::BTreeMap;

use berth_engine::Moment;
use berth_engine::evict::{Cause, Freeze};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;

use super::identity::{Identity, kept};

/// The name of the ConfigMap; while there is one, nothing is evicted.
pub const FREEZE: &str = "berth-freeze-evictions";
/// The key of why.
pub const FREEZE_REASON: &str = "reason";
/// The key of who said so.
pub const FREEZE_BY: &str = "by";
/// The key of since when.
pub const FREEZE_SINCE: &str = "since";
/// What stands for a reason that nobody gave.
const NO_REASON: &str = "no reason was given";

/// The ConfigMap that stops evictions. That it is there is what counts; what it says is for people.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct FreezeMap {
    /// Which it is.
    pub identity: Identity,
    /// What it says.
    pub freeze: Freeze,
}

kept!(FreezeMap, of: ConfigMap, share: |_, _| {});

#[derive(Deserialize)]
struct Wire {
    metadata: Identity,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl From<Wire> for FreezeMap {
    fn from(Wire { metadata, data }: Wire) -> Self {
        let data = data.unwrap_or_default();
        let given = |name: &str| data.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let since = given(FREEZE_SINCE).and_then(berth_api::time::parse);
        Self {
            identity: metadata,
            freeze: Freeze {
                cause: Cause::Person,
                reason: given(FREEZE_REASON).unwrap_or(NO_REASON).into(),
                by: given(FREEZE_BY).map(Into::into),
                since: since.map(Moment::from_timestamp),
            },
        }
    }
}
