//! What an API server says it was asked to write, by its own counters.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use kube::Client;
use serde::Serialize;

/// The counter, which every kube-apiserver has.
const COUNTER: &str = "apiserver_request_total{";
/// Verbs of requests that change something, or are meant to.
const WRITES: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];
/// The group of the fleet's kinds, and resources of others that contenders write to. What the server writes for itself,
/// leases say, is nobody's figure.
const GROUP: &str = "cluster.open-cluster-management.io";
const RESOURCES: [&str; 2] = ["events", "pods"];

/// Writes by verb and resource, as in `PATCH placements/status`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Requests(BTreeMap<String, f64>);

impl Requests {
    /// All since the server started.
    pub(crate) async fn so_far(client: &Client) -> anyhow::Result<Self> {
        let text = client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
        let requests = Self::read(&text)?;
        ensure!(!requests.0.is_empty(), "the server counts no requests under {COUNTER}");
        Ok(requests)
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        let mut requests = BTreeMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix(COUNTER)) {
            let (labels, count) = line.rsplit_once("} ").with_context(|| format!("no count in {line:?}"))?;
            let label = |key: &str| {
                let value = labels.split(',').find_map(|label| label.strip_prefix(key)?.strip_prefix("=\""));
                value.and_then(|value| value.strip_suffix('"')).unwrap_or_default()
            };
            let (verb, group) = (label("verb"), label("group"));
            let (resource, subresource) = (label("resource"), label("subresource"));
            if !WRITES.contains(&verb) || !(group == GROUP || RESOURCES.contains(&resource)) {
                continue;
            }
            let slash = if subresource.is_empty() { "" } else { "/" };
            *requests.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() +=
                count.parse::<f64>()?;
        }
        Ok(Self(requests))
    }

    /// Those that came after the others.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let more = self
            .0
            .iter()
            .map(|(name, count)| (name.clone(), count - before.0.get(name).copied().unwrap_or_default()));
        Self(more.filter(|(_, count)| *count > 0.0).collect())
    }

    /// Those of others than the load generator, which made so many changes to clusters.
    pub(crate) fn without_changes(mut self, changes: usize) -> Self {
        if let Some(count) = self.0.get_mut("PATCH managedclusters") {
            *count = (*count - changes as f64).max(0.0);
        }
        self.0.retain(|_, count| *count > 0.0);
        self
    }

    /// How many there are to a resource, `placements/status` say.
    pub(crate) fn to(&self, resource: &str) -> f64 {
        let theirs =
            self.0.iter().filter(|(name, _)| name.split_once(' ').is_some_and(|(_, of)| of == resource));
        theirs.map(|(_, count)| count).fold(0.0, |all, one| all + one)
    }

    /// How many there are, without events.
    pub(crate) fn writes(&self) -> f64 {
        self.0.values().fold(0.0, |all, one| all + one) - self.events()
    }

    /// How many events there are.
    pub(crate) fn events(&self) -> f64 {
        self.to("events")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &str, group: &str, resource: &str, subresource: &str, count: u32) -> String {
        format!(
            "apiserver_request_total{{code=\"201\",component=\"apiserver\",dry_run=\"\",group=\"{group}\",\
             resource=\"{resource}\",scope=\"resource\",subresource=\"{subresource}\",verb=\"{verb}\",\
             version=\"v1beta1\"}} {count}\n"
        )
    }

    #[test]
    fn writes_to_the_fleets_kinds_and_events_are_counted_and_nothing_else() {
        let ours = "cluster.open-cluster-management.io";
        let text = ["# TYPE apiserver_request_total counter\n".to_owned()]
            .into_iter()
            .chain([
                line("PATCH", ours, "placements", "status", 5),
                line("APPLY", ours, "placements", "status", 2),
                line("LIST", ours, "placements", "", 9),
                line("PATCH", ours, "managedclusters", "", 40),
                line("PUT", "coordination.k8s.io", "leases", "", 9),
                line("POST", "", "events", "", 3),
                line("POST", "events.k8s.io", "events", "", 4),
            ])
            .collect::<String>();
        let requests = Requests::read(&text).unwrap();
        let requests = requests.since(&Requests::default()).without_changes(38);
        assert_eq!((requests.to("placements/status"), requests.events(), requests.writes()), (7.0, 7.0, 9.0));
        assert!(requests.since(&requests).0.is_empty());
    }
}
