//! What the hub counts, for `/metrics`.
//!
//! Owns the metrics of requests and watches. Names follow kube-apiserver's where the meaning is the same, so that
//! dashboards made for it work.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::registry::Resource;

/// Bounds of the latency histogram, in seconds: from an in-memory read to a commit on a slow disk.
const LATENCY_SECONDS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    group: Arc<str>,
    resource: Arc<str>,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

/// The counters of one hub.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<VerbLabels, Histogram>,
    watches: Gauge<i64, AtomicI64>,
    events_sent: Counter,
    watches_cut: Counter,
    revision: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(LATENCY_SECONDS)),
            watches: Gauge::default(),
            events_sent: Counter::default(),
            watches_cut: Counter::default(),
            revision: Gauge::default(),
        };
        let Self { mut registry, requests, latency, watches, events_sent, watches_cut, revision } = metrics;
        registry.register("apiserver_request", "Requests answered", requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to answer, watches left out",
            latency.clone(),
        );
        registry.register("apiserver_longrunning_requests", "Watches open now", watches.clone());
        registry.register("berth_hub_watch_events", "Events sent to watchers", events_sent.clone());
        registry.register(
            "berth_hub_watches_cut",
            "Watches ended because they fell behind",
            watches_cut.clone(),
        );
        registry.register("berth_hub_revision", "The newest revision of the store", revision.clone());
        Self { registry, requests, latency, watches, events_sent, watches_cut, revision }
    }
}

impl Metrics {
    /// Counts one answered request. Only resources that are served are named, so that the number of series is bounded.
    pub(crate) fn answered(
        &self,
        verb: &'static str,
        resource: Option<&Resource>,
        code: u16,
        took: Option<Duration>,
    ) {
        let (group, resource) = resource
            .map(|resource| (Arc::clone(&resource.group), Arc::clone(&resource.plural)))
            .unwrap_or_default();
        let labels = RequestLabels { verb, group, resource, code };
        self.requests.get_or_create(&labels).inc();
        if let Some(took) = took {
            self.latency.get_or_create(&VerbLabels { verb }).observe(took.as_secs_f64());
        }
    }

    /// A watch began.
    pub(crate) fn watch_began(&self) {
        self.watches.inc();
    }

    /// A watch ended.
    pub(crate) fn watch_ended(&self) {
        self.watches.dec();
    }

    /// Events went out to a watcher.
    pub(crate) fn events_sent(&self, count: usize) {
        self.events_sent.inc_by(count as u64);
    }

    /// A watcher fell behind and was cut.
    pub(crate) fn watch_cut(&self) {
        self.watches_cut.inc();
    }

    /// The text of `/metrics`.
    pub(crate) fn render(&self, revision: u64) -> String {
        self.revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to memory does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dashboard_draws_and_the_alerts_watch_is_told() {
        let metrics = Metrics::default();
        metrics.answered("get", None, 200, Some(Duration::from_millis(1)));
        metrics.watch_began();
        metrics.events_sent(1);
        metrics.watch_cut();
        let text = metrics.render(1);
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let files = [
            include_str!("../../../deploy/monitoring/dashboard.json"),
            include_str!("../../../deploy/monitoring/alerts.yaml"),
        ];
        for file in files {
            let words = file.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_'));
            let is_ours = |word: &&str| word.starts_with("apiserver_") || word.starts_with("berth_hub_");
            let ours: Vec<&str> = words.filter(is_ours).collect();
            assert!(ours.len() > 4);
            for word in ours {
                assert!(samples.contains(&word), "nothing is told as {word}");
            }
        }
    }
}
