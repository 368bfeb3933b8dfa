//! How the controllers are run: flags over a file over what is usual.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use berth_control::lead::{ElectionError, LeaderElection, Timing};
use berth_control::names::ControllerListError;
use berth_control::{ControllerList, ControllerName};
use clap::{Args, ValueHint};
use jiff::SignedDuration;

use super::connect::ServerArgs;
use super::evictions::EvictionArgs;
use super::file::FileSettings;
use super::nodes::{NodeArgs, NodeSettings};
use crate::manifest::Problem;
use crate::service::{Address, LogArgs};
use crate::world::near;

/// Where metrics are, unless it is said otherwise: for this machine only.
const METRICS_USUALLY: &str = "127.0.0.1:8080";

/// Where to serve something, if anywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bind(pub Option<Address>);

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let advice = "give an IP address with a port, as 127.0.0.1:8080 or 0.0.0.0:8080, or 0 for none";
        text.parse().map(|address| Self(Some(address))).map_err(|_: String| advice.to_owned())
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str("0"),
        }
    }
}

/// Which controllers.
#[derive(Debug, Clone, Default, Args)]
pub struct ControllersArgs {
    /// Which controllers to run, separated by commas [default: *].
    #[arg(long, value_name = "LIST", long_help = controllers_help(), value_parser = parse_controllers, allow_hyphen_values = true)]
    pub controllers: Option<ControllerList>,
}

fn controllers_help() -> String {
    let mut text = "Which controllers to run, separated by commas [default: *].\n\n`*` stands for all that are on by default, \
                    NAME turns one on, -NAME turns one off:"
        .to_owned();
    for name in ControllerName::ALL {
        let off = if name.on_by_default() { "" } else { " (off by default)" };
        text.extend(["\n- ", name.as_str(), ": ", name.description(), off]);
    }
    text
}

/// Whether several processes choose one among them that acts, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct ElectionArgs {
    /// Act only while this process holds a Lease, so that several can stand by for one another [default: true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: Option<bool>,

    /// How long others wait for a leader that does not renew [default: 15s].
    #[arg(long = "leader-elect-lease-duration", value_name = "SPAN", value_parser = parse_span)]
    pub lease_duration: Option<Duration>,

    /// How long a leader acts without having renewed [default: 10s].
    #[arg(long = "leader-elect-renew-deadline", value_name = "SPAN", value_parser = parse_span)]
    pub renew_deadline: Option<Duration>,

    /// How long to wait between attempts [default: 2s].
    #[arg(long = "leader-elect-retry-period", value_name = "SPAN", value_parser = parse_span)]
    pub retry_period: Option<Duration>,

    /// The namespace of the Lease [default: berth-system, or that of the pod this runs in].
    #[arg(long = "leader-elect-resource-namespace", value_name = "NAME")]
    pub resource_namespace: Option<String>,

    /// The name of the Lease [default: berth].
    #[arg(long = "leader-elect-resource-name", value_name = "NAME")]
    pub resource_name: Option<String>,
}

/// Where to answer questions about placements, and with which certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct DebugArgs {
    /// Where to answer questions about Placements over HTTPS, at /debug/placements/; 0 for nowhere [default: 0].
    ///
    /// GET /debug/placements/NAMESPACE/NAME explains a Placement, POST /debug/placements/ one that is only thought of.
    /// Who asks shows a bearer token; the API server says who that is and what they may.
    #[arg(id = "debug_bind", long = "debug-bind", value_name = "ADDR")]
    pub bind: Option<Bind>,

    /// The certificate to answer with, PEM [default: one of its own, made at the start].
    #[arg(id = "debug_certificate", long = "debug-certificate", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "debug_key")]
    pub certificate: Option<PathBuf>,

    /// The key of that certificate, PEM.
    #[arg(id = "debug_key", long = "debug-key", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "debug_certificate")]
    pub key: Option<PathBuf>,
}

impl DebugArgs {
    /// Flags first; a certificate and its key come from one place.
    pub(crate) fn or(self, other: Self) -> Self {
        let bind = self.bind.or(other.bind);
        let pair = if self.certificate.is_some() { self } else { other };
        Self { bind, ..pair }
    }
}

/// Everything that can be said about how to run.
#[derive(Debug, Clone, Default, Args)]
pub struct SettingsArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,

    /// Which controllers.
    #[command(flatten)]
    pub controllers: ControllersArgs,

    /// Who acts.
    #[command(flatten)]
    pub election: ElectionArgs,

    /// Where to serve /healthz, /readyz and /metrics; 0 for nowhere [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR")]
    pub metrics_bind: Option<Bind>,

    /// Who may ask, and where.
    #[command(flatten)]
    pub debug: DebugArgs,

    /// A file of settings in YAML, with a key for every flag; flags win.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// How much to tell.
    #[command(flatten)]
    pub log: LogArgs,

    /// What is said of nodes, last because these flags stand under headings of their own.
    #[command(flatten)]
    pub nodes: NodeArgs,
}

/// How to run, with nothing left open but the server's own answers.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) server: ServerArgs,
    pub(crate) controllers: ControllerList,
    /// None where this process is the only one.
    pub(crate) election: Option<Election>,
    /// The namespace of this installation; none for that of the pod, or the usual one.
    pub(crate) home: Option<String>,
    pub(crate) nodes: NodeSettings,
    /// What was said and comes to nothing.
    pub(crate) idle: Option<String>,
    pub(crate) metrics: Bind,
    pub(crate) debug: DebugArgs,
    pub(crate) log: LogArgs,
}

/// An election, before it is known who stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Election {
    pub(crate) timing: Timing,
    /// None for the namespace of the pod, or the usual one.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl Election {
    /// Stands as `identity`.
    pub(crate) fn stand(self, identity: String, pod_namespace: Option<String>) -> LeaderElection {
        let usual = LeaderElection::new(identity);
        LeaderElection {
            namespace: self.namespace.or(pod_namespace).unwrap_or(usual.namespace),
            name: self.name.unwrap_or(usual.name),
            lease_duration: self.timing.lease_duration(),
            renew_deadline: self.timing.renew_deadline(),
            retry_period: self.timing.retry_period(),
            identity: usual.identity,
            controllers: usual.controllers,
        }
    }
}

/// Why there is no way to run.
#[derive(Debug, PartialEq)]
pub(crate) enum Unsettled {
    /// The flags do not go together.
    Flags(String),
    /// The file has faults.
    File(Vec<Problem>),
}

impl SettingsArgs {
    /// Puts flags, file and what is usual together.
    pub(crate) fn settle(self) -> Result<Settings, Unsettled> {
        let file = match &self.config {
            Some(path) => FileSettings::open(path).map_err(Unsettled::File)?,
            None => FileSettings::default(),
        };
        self.over(file)
    }

    fn over(self, file: FileSettings) -> Result<Settings, Unsettled> {
        let of_file = |message: String| {
            Unsettled::File(vec![match &self.config {
                Some(path) => Problem::of_file(&path.display().to_string().into(), message),
                None => Problem::of_input(message),
            }])
        };
        let said = self.nodes.or(file.nodes);
        let nodes = said.settle().map_err(|missing| {
            if self.nodes.evictions == EvictionArgs::default() {
                of_file(missing.in_file().to_owned())
            } else {
                Unsettled::Flags(missing.in_flags().to_owned())
            }
        })?;
        let flags = self.election;
        let home = flags.resource_namespace.or(file.resource_namespace);
        let usual = Timing::default();
        let election = if flags.leader_elect.or(file.leader_elect).unwrap_or(true) {
            let lease = flags.lease_duration.or(file.lease_duration).unwrap_or(usual.lease_duration());
            let deadline = flags.renew_deadline.or(file.renew_deadline).unwrap_or(usual.renew_deadline());
            let retry = flags.retry_period.or(file.retry_period).unwrap_or(usual.retry_period());
            let by_flags = flags.lease_duration.or(flags.renew_deadline).or(flags.retry_period).is_some();
            let timing = Timing::new(lease, deadline, retry).map_err(|error| {
                if by_flags {
                    return Unsettled::Flags(in_flags(error, lease, deadline, retry));
                }
                of_file(format!("leaderElection: {error}"))
            })?;
            Some(Election {
                timing,
                namespace: home.clone(),
                name: flags.resource_name.or(file.resource_name),
            })
        } else {
            None
        };
        let controllers = self.controllers.controllers.or(file.controllers).unwrap_or_default();
        Ok(Settings {
            idle: said.idle(&controllers),
            server: ServerArgs {
                kubeconfig: self.server.kubeconfig.or(file.kubeconfig),
                context: self.server.context.or(file.context),
            },
            controllers,
            election,
            home,
            nodes,
            metrics: self
                .metrics_bind
                .or(file.metrics_bind)
                .unwrap_or_else(|| METRICS_USUALLY.parse().expect("a constant address")),
            debug: self.debug.or(file.debug),
            log: LogArgs {
                log: self.log.log.or(file.log),
                log_format: self.log.log_format.or(file.log_format),
            },
        })
    }
}

/// What is wrong with the spans of an election, in the names of the flags.
fn in_flags(error: ElectionError, lease: Duration, deadline: Duration, retry: Duration) -> String {
    let (lease, deadline, retry) = (
        format!("--leader-elect-lease-duration ({lease:?})"),
        format!("--leader-elect-renew-deadline ({deadline:?})"),
        format!("--leader-elect-retry-period ({retry:?})"),
    );
    match error {
        ElectionError::LeaseNotBeyondDeadline => format!("{lease} must be greater than {deadline}"),
        ElectionError::DeadlineNotBeyondRetry => format!("{deadline} must be greater than 1.2 times {retry}"),
        ElectionError::NoRetry => format!("{retry} must be greater than zero"),
        ElectionError::LeaseTooLong => format!("{lease} must fit the field of a Lease: {error}"),
        ElectionError::NoIdentity | ElectionError::NoLease => format!("leader election: {error}"),
    }
}

/// A list of controllers, as the flag has it.
pub(crate) fn parse_controllers(text: &str) -> Result<ControllerList, String> {
    text.parse().map_err(|error| unknown_controllers(&error))
}

/// What is wrong with a list, in the words of kube-controller-manager, and then which names were perhaps meant.
pub(crate) fn unknown_controllers(error: &ControllerListError) -> String {
    const ENDING: &str = "-controller";
    let ControllerListError::Unknown(unknown) = error else { return error.to_string() };
    let known = || ControllerName::ALL.into_iter().map(ControllerName::as_str);
    let meant = unknown.names().iter().map(|name| {
        let whole = format!("{name}{ENDING}");
        match near(name, known()) {
            // Who leaves out the ending means that one, whatever else is near.
            _ if known().any(|name| name == whole) => format!("; did you mean {whole}?"),
            none if none.is_empty() && !name.is_empty() => near(&whole, known()),
            some => some,
        }
    });
    let mut meant: Vec<String> = meant.filter(|meant| !meant.is_empty()).collect();
    meant.dedup();
    format!("{error}{}", meant.concat())
}

/// A span of time as Go programs write it.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let span = text.parse::<SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    span.ok_or_else(|| "give a span such as 15s, 1m30s or 500ms".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn spans_are_written_as_go_writes_them() {
        assert_eq!(parse_span("15s"), Ok(secs(15)));
        assert_eq!(parse_span("1m30s"), Ok(secs(90)));
        assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "15", "-1s", "soon"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_what_is_usual() {
        let file = || FileSettings {
            leader_elect: Some(true),
            lease_duration: Some(secs(60)),
            renew_deadline: Some(secs(40)),
            context: Some("of-file".to_owned()),
            resource_name: Some("of-file".to_owned()),
            metrics_bind: Some(Bind(None)),
            ..FileSettings::default()
        };
        let flags = SettingsArgs {
            server: ServerArgs { context: Some("of-flag".to_owned()), ..ServerArgs::default() },
            election: ElectionArgs { renew_deadline: Some(secs(30)), ..ElectionArgs::default() },
            ..SettingsArgs::default()
        };
        let settings = flags.over(file()).unwrap();
        assert_eq!(settings.server.context.as_deref(), Some("of-flag"));
        assert_eq!(settings.metrics, Bind(None));
        let election = settings.election.unwrap().stand("me".to_owned(), Some("pods".to_owned()));
        assert_eq!((election.lease_duration, election.renew_deadline), (secs(60), secs(30)));
        assert_eq!(election.retry_period, secs(2));
        assert_eq!((election.namespace.as_str(), election.name.as_str()), ("pods", "of-file"));

        let off = SettingsArgs {
            election: ElectionArgs { leader_elect: Some(false), ..ElectionArgs::default() },
            ..SettingsArgs::default()
        };
        assert_eq!(off.over(file()).unwrap().election, None);
        let usual = SettingsArgs::default().over(FileSettings::default()).unwrap();
        assert_eq!(usual.metrics.to_string(), METRICS_USUALLY);
        assert_eq!(usual.controllers.to_string(), "*");
        let election = usual.election.unwrap().stand("me".to_owned(), None);
        assert_eq!(election, LeaderElection::new("me".to_owned()));
    }

    #[test]
    fn an_election_that_would_not_be_safe_is_refused() {
        let flags = SettingsArgs {
            election: ElectionArgs { lease_duration: Some(secs(5)), ..ElectionArgs::default() },
            ..SettingsArgs::default()
        };
        assert_eq!(
            flags.over(FileSettings::default()).unwrap_err(),
            Unsettled::Flags(
                "--leader-elect-lease-duration (5s) must be greater than --leader-elect-renew-deadline (10s)"
                    .to_owned()
            )
        );
        let file = FileSettings { lease_duration: Some(secs(5)), ..FileSettings::default() };
        let flags = SettingsArgs { config: Some("run.yaml".into()), ..SettingsArgs::default() };
        let Unsettled::File(problems) = flags.over(file).unwrap_err() else { panic!("the file is at fault") };
        assert_eq!(
            problems[0].to_string(),
            "run.yaml: leaderElection: leaseDuration must be greater than renewDeadline"
        );
    }

    #[test]
    fn bounds_of_evictions_come_from_flags_and_file_together() {
        let only = |evictions| NodeArgs { evictions, ..NodeArgs::default() };
        let file = || FileSettings {
            nodes: only(EvictionArgs { burst: Some(7), ..EvictionArgs::default() }),
            ..FileSettings::default()
        };
        let flags = only(EvictionArgs { rate: Some(3.0), ..EvictionArgs::default() });
        let settings = SettingsArgs { nodes: flags, ..SettingsArgs::default() }.over(file()).unwrap();
        let bounds = settings.nodes.evictions;
        assert_eq!((bounds.rate, bounds.burst), (Some(3.0), Some(7)));
        assert!(settings.idle.unwrap().contains("taint-eviction-controller"), "it is off by default");
        let Unsettled::File(problems) = SettingsArgs::default().over(file()).unwrap_err() else {
            panic!("the file is at fault")
        };
        assert!(
            problems[0].to_string().contains("evictions.burst: evictions.rate is missing"),
            "{problems:?}"
        );
        let flags = only(EvictionArgs { breaker_least: Some(3), ..EvictionArgs::default() });
        let refused = SettingsArgs { nodes: flags, ..SettingsArgs::default() }.over(FileSettings::default());
        assert!(
            matches!(refused, Err(Unsettled::Flags(message)) if message.contains("--eviction-breaker-percent"))
        );
    }

    #[test]
    fn a_certificate_and_its_key_come_from_one_place() {
        let of = |name: &str| DebugArgs {
            bind: Some(Bind(None)),
            certificate: Some(format!("{name}.crt").into()),
            key: Some(format!("{name}.key").into()),
        };
        assert_eq!(of("flag").or(of("file")), of("flag"));
        assert_eq!(DebugArgs::default().or(of("file")), of("file"));
        assert_eq!(of("flag").or(DebugArgs::default()), of("flag"));
    }

    #[test]
    fn metrics_are_at_an_address_or_nowhere() {
        assert_eq!("0".parse(), Ok(Bind(None)));
        assert_eq!("127.0.0.1:0".parse::<Bind>().unwrap().to_string(), "127.0.0.1:0");
        assert!("8080".parse::<Bind>().is_err());
    }
}
