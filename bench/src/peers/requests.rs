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
const RESOURCES: [&str; 3] = ["events", "nodes", "pods"];

/// Writes that the load generator makes while somebody else is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Own {
    Nothing,
    /// So many patches of clusters.
    Clusters(usize),
    /// So many patches of nodes.
    Nodes(usize),
}

impl Own {
    /// As the server counts them, and how many.
    fn counted(self) -> Option<(&'static str, usize)> {
        match self {
            Self::Nothing => None,
            Self::Clusters(count) => Some(("PATCH managedclusters", count)),
            Self::Nodes(count) => Some(("PATCH nodes", count)),
        }
    }
}

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

    /// These and no others.
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(counts: [(&str, f64); N]) -> Self {
        Self(counts.map(|(name, count)| (name.to_owned(), count)).into())
    }

    /// Those that came after the others.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let more = self
            .0
            .iter()
            .map(|(name, count)| (name.clone(), count - before.0.get(name).copied().unwrap_or_default()));
        Self(more.filter(|(_, count)| *count > 0.0).collect())
    }

    /// Those of others than the load generator.
    pub(crate) fn without(mut self, own: Own) -> Self {
        if let Some((name, made)) = own.counted()
            && let Some(count) = self.0.get_mut(name)
        {
            *count = (*count - made as f64).max(0.0);
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

    /// How many there are with a verb, without events.
    pub(crate) fn with(&self, verb: &str) -> f64 {
        let theirs = self.0.iter().filter(|(name, _)| {
            name.split_once(' ').is_some_and(|(with, of)| with == verb && of != "events")
        });
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
    fn writes_to_what_contenders_write_to_are_counted_and_nothing_else() {
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
                line("DELETE", "", "pods", "", 6),
                line("PATCH", "", "nodes", "", 1),
            ])
            .collect::<String>();
        let requests = Requests::read(&text).unwrap();
        let requests = requests.since(&Requests::default()).without(Own::Clusters(38)).without(Own::Nodes(1));
        assert_eq!(
            (requests.to("placements/status"), requests.events(), requests.writes()),
            (7.0, 7.0, 15.0)
        );
        assert_eq!((requests.with("PATCH"), requests.with("DELETE"), requests.with("POST")), (7.0, 6.0, 0.0));
        assert!(requests.since(&requests).0.is_empty());
    }
}
