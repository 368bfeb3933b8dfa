//! The configuration file of `berth run`: the settings of its flags, in YAML.
//!
//! Owns the keys and what each may be. Every fault is found, with its line and path; a key that is not known is one.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use berth_control::ControllerList;
use clap::ValueEnum as _;
use serde_json::{Map, Value};
use tracing_subscriber::filter::Targets;

use super::evictions::{EvictionArgs, parse_count, parse_percent, parse_rate};
use super::node_lifecycle::{self, AllDown, LifecycleArgs};
use super::nodes::NodeArgs;
use super::settings::{Bind, DebugArgs, parse_controllers, parse_span, unknown_controllers};
use crate::manifest::{Document, Problem};
use crate::service::{LogFormat, parse_log};
use crate::world::near;

const TOP: [&str; 12] = [
    "kubeconfig",
    "context",
    "controllers",
    "leaderElection",
    "evictions",
    "nodeLifecycleController",
    "metricsBind",
    "debugBind",
    "debugCertificate",
    "debugKey",
    "log",
    "logFormat",
];
const ELECTION: [&str; 6] =
    ["leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceNamespace", "resourceName"];
const EVICTIONS: [&str; 7] =
    ["rate", "burst", "zoneRate", "inFlight", "zoneInFlight", "breakerPercent", "breakerMin"];

const LIFECYCLE: [&str; 12] = [
    "nodeMonitorGracePeriod",
    "nodeStartupGracePeriod",
    "nodeMonitorPeriod",
    "nodeEvictionRate",
    "secondaryNodeEvictionRate",
    "largeClusterSizeThreshold",
    "unhealthyZoneThreshold",
    "nodeDisruptionCalm",
    "whenAllZonesDown",
    "nodeFlapThreshold",
    "nodeFlapWindow",
    "nodeFlapHold",
];

/// What a file says; what it does not mention is absent.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FileSettings {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) controllers: Option<ControllerList>,
    pub(crate) leader_elect: Option<bool>,
    pub(crate) lease_duration: Option<Duration>,
    pub(crate) renew_deadline: Option<Duration>,
    pub(crate) retry_period: Option<Duration>,
    pub(crate) resource_namespace: Option<String>,
    pub(crate) resource_name: Option<String>,
    pub(crate) metrics_bind: Option<Bind>,
    pub(crate) nodes: NodeArgs,
    pub(crate) debug: DebugArgs,
    pub(crate) log: Option<Targets>,
    pub(crate) log_format: Option<LogFormat>,
}

impl FileSettings {
    /// Reads a file. Files it names are looked for beside it.
    pub(crate) fn open(path: &Path) -> Result<Self, Vec<Problem>> {
        let mut read = Self::read(&Document::open(path)?)?;
        if let Some(folder) = path.parent() {
            let DebugArgs { certificate, key, .. } = &mut read.debug;
            for named in [&mut read.kubeconfig, certificate, key].into_iter().flatten() {
                *named = folder.join(&*named);
            }
        }
        Ok(read)
    }

    fn read(document: &Document) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader { document, problems: Vec::new() };
        let nothing = Map::new();
        let top = reader.mapping(&document.value, "", &TOP).unwrap_or(&nothing);
        let election =
            top.get("leaderElection").and_then(|value| reader.mapping(value, "leaderElection", &ELECTION));
        let election = election.unwrap_or(&nothing);
        let nodes = NodeArgs { evictions: reader.evictions(top), lifecycle: reader.lifecycle(top) };
        let read = Self {
            kubeconfig: reader.text(top, "kubeconfig").map(PathBuf::from),
            context: reader.text(top, "context"),
            controllers: reader.controllers(top),
            metrics_bind: reader.parsed(top, "metricsBind", Bind::from_str),
            debug: reader.debug(top),
            log: reader.parsed(top, "log", parse_log),
            log_format: reader.parsed(top, "logFormat", |text| {
                LogFormat::from_str(text, false).map_err(|_| "allowed are text and json".to_owned())
            }),
            leader_elect: reader.flag(election, "leaderElection.leaderElect"),
            lease_duration: reader.parsed(election, "leaderElection.leaseDuration", parse_span),
            renew_deadline: reader.parsed(election, "leaderElection.renewDeadline", parse_span),
            retry_period: reader.parsed(election, "leaderElection.retryPeriod", parse_span),
            resource_namespace: reader.text(election, "leaderElection.resourceNamespace"),
            resource_name: reader.text(election, "leaderElection.resourceName"),
            nodes,
        };
        if reader.problems.is_empty() { Ok(read) } else { Err(reader.problems) }
    }
}

struct Reader<'d> {
    document: &'d Document,
    problems: Vec<Problem>,
}

impl<'d> Reader<'d> {
    fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(self.document.problem(path, message));
    }

    /// The fields of a mapping, all of which must be known; null has none.
    fn mapping(
        &mut self,
        value: &'d Value,
        path: &str,
        known: &[&'static str],
    ) -> Option<&'d Map<String, Value>> {
        let fields = match value {
            Value::Null => return None,
            Value::Object(fields) => fields,
            _ => {
                self.fault(path, format!("expected a mapping with any of {}", known.join(", ")));
                return None;
            }
        };
        for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let advice = match near(key, known.iter().copied()) {
                none if none.is_empty() => format!("; allowed are {}", known.join(", ")),
                some => some,
            };
            self.fault(&full, format!("there is no such setting{advice}"));
        }
        Some(fields)
    }

    /// The field at the end of a path; null counts as absent.
    fn field(fields: &'d Map<String, Value>, path: &str) -> Option<&'d Value> {
        let key = path.rsplit('.').next().unwrap_or(path);
        fields.get(key).filter(|value| !value.is_null())
    }

    fn text(&mut self, fields: &'d Map<String, Value>, path: &str) -> Option<String> {
        self.parsed(fields, path, |text| {
            if text.is_empty() {
                Err("expected a text that is not empty".to_owned())
            } else {
                Ok(text.to_owned())
            }
        })
    }

    fn parsed<T>(
        &mut self,
        fields: &'d Map<String, Value>,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let read = match Self::field(fields, path)? {
            Value::String(text) => parse(text),
            // A zero is a number to YAML wherever it turns something off.
            Value::Number(number) => parse(&number.to_string()),
            _ => Err("expected a text".to_owned()),
        };
        read.map_err(|message| self.fault(path, message)).ok()
    }

    fn flag(&mut self, fields: &'d Map<String, Value>, path: &str) -> Option<bool> {
        let value = Self::field(fields, path)?;
        if value.as_bool().is_none() {
            self.fault(path, "expected true or false");
        }
        value.as_bool()
    }

    /// Where to answer questions, and with which certificate; a key needs its certificate, and the other way round.
    fn debug(&mut self, top: &'d Map<String, Value>) -> DebugArgs {
        let read = DebugArgs {
            bind: self.parsed(top, "debugBind", Bind::from_str),
            certificate: self.text(top, "debugCertificate").map(PathBuf::from),
            key: self.text(top, "debugKey").map(PathBuf::from),
        };
        for (one, other) in [("debugCertificate", "debugKey"), ("debugKey", "debugCertificate")] {
            if Self::field(top, one).is_some() && Self::field(top, other).is_none() {
                self.fault(one, format!("{other} is missing beside it"));
            }
        }
        read
    }

    /// How fast pods leave.
    fn evictions(&mut self, top: &'d Map<String, Value>) -> EvictionArgs {
        const PATH: &str = "evictions";
        let Some(fields) = top.get(PATH).and_then(|value| self.mapping(value, PATH, &EVICTIONS)) else {
            return EvictionArgs::default();
        };
        EvictionArgs {
            rate: self.parsed(fields, "evictions.rate", parse_rate),
            burst: self.parsed(fields, "evictions.burst", parse_count),
            zone_rate: self.parsed(fields, "evictions.zoneRate", parse_rate),
            in_flight: self.parsed(fields, "evictions.inFlight", parse_count),
            zone_in_flight: self.parsed(fields, "evictions.zoneInFlight", parse_count),
            breaker_percent: self.parsed(fields, "evictions.breakerPercent", parse_percent),
            breaker_least: self.parsed(fields, "evictions.breakerMin", parse_count),
        }
    }

    /// How nodes are judged, by kube-controller-manager's names.
    fn lifecycle(&mut self, top: &'d Map<String, Value>) -> LifecycleArgs {
        use node_lifecycle as parse;
        const PATH: &str = "nodeLifecycleController";
        let Some(fields) = top.get(PATH).and_then(|value| self.mapping(value, PATH, &LIFECYCLE)) else {
            return LifecycleArgs::default();
        };
        let path = |key: &str| format!("{PATH}.{key}");
        let mut span = |key| self.parsed(fields, &path(key), parse::parse_positive_span);
        let node_monitor_grace_period = span("nodeMonitorGracePeriod");
        let node_startup_grace_period = span("nodeStartupGracePeriod");
        let node_monitor_period = span("nodeMonitorPeriod");
        let node_flap_window = span("nodeFlapWindow");
        let mut rate = |key| self.parsed(fields, &path(key), parse::parse_rate);
        let node_eviction_rate = rate("nodeEvictionRate");
        let secondary_node_eviction_rate = rate("secondaryNodeEvictionRate");
        LifecycleArgs {
            node_monitor_grace_period,
            node_startup_grace_period,
            node_monitor_period,
            node_eviction_rate,
            secondary_node_eviction_rate,
            large_cluster_size_threshold: self.parsed(
                fields,
                &path("largeClusterSizeThreshold"),
                parse::parse_count,
            ),
            unhealthy_zone_threshold: self.parsed(
                fields,
                &path("unhealthyZoneThreshold"),
                parse::parse_share,
            ),
            node_disruption_calm: self.parsed(fields, &path("nodeDisruptionCalm"), parse::parse_bounded_span),
            when_all_zones_down: self.parsed(fields, &path("whenAllZonesDown"), |text| {
                AllDown::from_str(text, false).map_err(|_| "allowed are untaint and hold".to_owned())
            }),
            node_flap_threshold: self.parsed(fields, &path("nodeFlapThreshold"), parse::parse_falls),
            node_flap_window,
            node_flap_hold: self.parsed(fields, &path("nodeFlapHold"), parse::parse_hold),
        }
    }

    /// A list of names, or one text as the flag has it.
    fn controllers(&mut self, fields: &'d Map<String, Value>) -> Option<ControllerList> {
        let path = "controllers";
        let read = match Self::field(fields, path)? {
            Value::String(text) => parse_controllers(text),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                let names = items.iter().filter_map(Value::as_str);
                ControllerList::from_entries(names).map_err(|error| unknown_controllers(&error))
            }
            _ => Err("expected a list of names, such as [\"*\", -placement-controller]".to_owned()),
        };
        read.map_err(|message| self.fault(path, message)).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<FileSettings, Vec<String>> {
        let shown = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
        Document::parse("c.yaml".into(), text)
            .and_then(|document| FileSettings::read(&document))
            .map_err(shown)
    }

    #[test]
    fn a_file_says_what_the_flags_say() {
        let text = "
kubeconfig: ./config
context: fleet
controllers: ['*', -cluster-taint-controller]
leaderElection:
  leaderElect: false
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 1500ms
  resourceNamespace: fleet
  resourceName: berth-2
evictions:
  rate: 20
  burst: 40
  zoneRate: 0.5
  inFlight: 30
  zoneInFlight: 10
  breakerPercent: 55
  breakerMin: 4
nodeLifecycleController:
  nodeMonitorGracePeriod: 20s
  nodeEvictionRate: 1
  largeClusterSizeThreshold: 10
  unhealthyZoneThreshold: 0.4
  whenAllZonesDown: hold
metricsBind: 0.0.0.0:9090
debugBind: 127.0.0.1:9443
debugCertificate: tls.crt
debugKey: tls.key
log: debug
logFormat: json
";
        let read = read(text).unwrap();
        assert_eq!(read.kubeconfig, Some("./config".into()));
        assert_eq!(read.context.as_deref(), Some("fleet"));
        assert_eq!(read.controllers.unwrap().to_string(), "*,-cluster-taint-controller");
        assert_eq!(read.leader_elect, Some(false));
        assert_eq!(read.lease_duration, Some(Duration::from_secs(30)));
        assert_eq!(read.renew_deadline, Some(Duration::from_secs(20)));
        assert_eq!(read.retry_period, Some(Duration::from_millis(1500)));
        assert_eq!(read.resource_namespace.as_deref(), Some("fleet"));
        assert_eq!(read.resource_name.as_deref(), Some("berth-2"));
        assert_eq!(read.metrics_bind, Some("0.0.0.0:9090".parse().unwrap()));
        assert_eq!(read.debug.bind, Some("127.0.0.1:9443".parse().unwrap()));
        assert_eq!(read.debug.certificate, Some("tls.crt".into()));
        assert_eq!(read.debug.key, Some("tls.key".into()));
        let evictions = EvictionArgs {
            rate: Some(20.0),
            burst: Some(40),
            zone_rate: Some(0.5),
            in_flight: Some(30),
            zone_in_flight: Some(10),
            breaker_percent: Some(55),
            breaker_least: Some(4),
        };
        assert_eq!(read.nodes.evictions, evictions);
        let lifecycle = LifecycleArgs {
            node_monitor_grace_period: Some(Duration::from_secs(20)),
            node_eviction_rate: Some(1.0),
            large_cluster_size_threshold: Some(10),
            unhealthy_zone_threshold: Some(0.4),
            when_all_zones_down: Some(AllDown::Hold),
            ..LifecycleArgs::default()
        };
        assert_eq!(read.nodes.lifecycle, lifecycle);
        assert!(read.log.is_some());
        assert_eq!(read.log_format, Some(LogFormat::Json));
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "# nothing\n", "leaderElection:\n", "{}"] {
            assert_eq!(read(text), Ok(FileSettings::default()), "{text}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_line_and_path() {
        let text = "
controller: ['*']
controllers: [placement]
leaderElection:
  leaderElected: true
  leaderElect: often
  leaseDuration: soon
metricsBind: localhost
logFormat: xml
colour: red
evictions:
  rate: -1
  breakerPercent: 200
nodeLifecycleController:
  nodeMonitorGracePeriod: 0s
  unhealthyZoneThreshold: 55
  nodeEvictionRates: 1
  whenAllZonesDown: panic
";
        assert_eq!(
            read(text).unwrap_err(),
            [
                "c.yaml:10: colour: there is no such setting; allowed are kubeconfig, context, controllers, leaderElection, evictions, nodeLifecycleController, metricsBind, debugBind, debugCertificate, debugKey, log, logFormat",
                "c.yaml:2: controller: there is no such setting; did you mean controllers?",
                "c.yaml:5: leaderElection.leaderElected: there is no such setting; did you mean leaderElect?",
                "c.yaml:12: evictions.rate: give a number of pods a second above 0, such as 10 or 0.5; `berth freeze evictions` stops them all",
                "c.yaml:13: evictions.breakerPercent: give a whole number from 1 to 100",
                "c.yaml:17: nodeLifecycleController.nodeEvictionRates: there is no such setting; did you mean nodeEvictionRate?",
                "c.yaml:15: nodeLifecycleController.nodeMonitorGracePeriod: give a span greater than zero",
                "c.yaml:16: nodeLifecycleController.unhealthyZoneThreshold: give a number from 0 to 1, such as 0.55",
                "c.yaml:18: nodeLifecycleController.whenAllZonesDown: allowed are untaint and hold",
                "c.yaml:3: controllers: \"placement\" is not in the list of known controllers; did you mean placement-controller?",
                "c.yaml:8: metricsBind: give an IP address with a port, as 127.0.0.1:8080 or 0.0.0.0:8080, or 0 for none",
                "c.yaml:9: logFormat: allowed are text and json",
                "c.yaml:6: leaderElection.leaderElect: expected true or false",
                "c.yaml:7: leaderElection.leaseDuration: give a span such as 15s, 1m30s or 500ms",
            ]
        );
        assert_eq!(
            read("debugKey: a\n").unwrap_err(),
            ["c.yaml:1: debugKey: debugCertificate is missing beside it"]
        );
        assert_eq!(
            read("- a\n").unwrap_err(),
            [
                "c.yaml:1: expected a mapping with any of kubeconfig, context, controllers, leaderElection, evictions, nodeLifecycleController, metricsBind, debugBind, debugCertificate, debugKey, log, logFormat"
            ]
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "((kubeconfig|controllers|leaderElection|leaseDuration|log)?[ :\\-\\[\\]{}'\"\n0-9a-z*.]){0,40}") {
            let _ = read(&text);
        }
    }
}
