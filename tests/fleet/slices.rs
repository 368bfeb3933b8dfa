//! The PlacementDecisions of one placement, as one answer showed them.

use std::collections::BTreeSet;

use berth_tests::caller::text;
use serde_json::Value;

/// What a slice's labels begin with.
pub(crate) const LABEL: &str = "cluster.open-cluster-management.io";

/// Slices in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slices(pub(crate) Vec<Value>);

impl Slices {
    pub(crate) fn of(list: &Value) -> Self {
        let mut slices = list["items"].as_array().cloned().unwrap_or_default();
        slices.sort_by_key(number);
        Self(slices)
    }

    /// The clusters, slice by slice.
    pub(crate) fn clusters(&self) -> Vec<&str> {
        self.0.iter().flat_map(clusters).collect()
    }

    pub(crate) fn set(&self) -> BTreeSet<&str> {
        self.clusters().into_iter().collect()
    }

    /// The name and version of every slice: equal if nobody wrote.
    pub(crate) fn versions(&self) -> Vec<(String, String)> {
        let version = |slice: &Value| {
            (text(slice, "/metadata/name").to_owned(), text(slice, "/metadata/resourceVersion").to_owned())
        };
        self.0.iter().map(version).collect()
    }
}

/// The clusters of one slice.
pub(crate) fn clusters(slice: &Value) -> Vec<&str> {
    let decisions = slice["status"]["decisions"].as_array().into_iter().flatten();
    decisions.map(|decision| text(decision, "/clusterName")).collect()
}

/// The number of a slice, which its name ends with.
pub(crate) fn number(slice: &Value) -> usize {
    let name = text(slice, "/metadata/name");
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
