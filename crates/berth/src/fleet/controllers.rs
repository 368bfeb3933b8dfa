//! The controllers at work on a server, from the first attempt to reach it to a clean end.
//!
//! Owns the order: health is served first, a server that is not there is waited for, leadership is let go last. Never
//! gives up on a server: whoever started this wants it to work when the server does.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use berth_control::lead::{Clock, Driver, Fence, LeaderElection};
use berth_control::serve::{Certificate, Health, Listener, Metrics, Service, router};
use berth_control::{ControllerList, ControllerName, Dialect, Inquirer, Inquiries, Options, Pace, debug};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::nodes::NodeSettings;
use super::settings::{Bind, DebugArgs};
use crate::service::url_host;

/// The first wait for a server that is not there, and the longest.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The check that passes when the controllers have seen everything they need, and how often it is looked at.
const CACHES: &str = "caches";
const GLANCE: Duration = Duration::from_millis(5);

/// The addresses this process answers at, as far as there are to be any.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// Health and metrics.
    board: Option<Listener>,
    /// Questions about placements.
    debugger: Option<Listener>,
}

impl Listeners {
    /// Takes the addresses before anything else begins.
    pub(crate) async fn bind(metrics: Bind, debug: &DebugArgs) -> anyhow::Result<Self> {
        let board = board(metrics).await?;
        let debugger = match debug.bind.unwrap_or_default().0 {
            Some(address) => {
                let certificate = match (&debug.certificate, &debug.key) {
                    (Some(certificate), Some(key)) => Certificate::of_files(certificate, key)?,
                    _ => Certificate::self_signed(own_names(address.0.ip()))?,
                };
                Some(Listener::bind(address.0, Service::DEBUGGER).await?.with_certificate(certificate))
            }
            None => None,
        };
        Ok(Self { board, debugger })
    }

    /// Where they are, to follow a sentence.
    fn places(&self) -> String {
        let at = |listener: &Option<Listener>| listener.as_ref().map(|one| url_host(one.address()));
        let board = at(&self.board).map(|host| format!(", metrics http://{host}/metrics"));
        let debugger = at(&self.debugger).map(|host| format!(", debugger https://{host}/debug/placements/"));
        board.into_iter().chain(debugger).collect()
    }
}

/// Takes the address for health and metrics, if there is to be one.
pub(crate) async fn board(metrics: Bind) -> anyhow::Result<Option<Listener>> {
    Ok(match metrics.0 {
        Some(address) => Some(Listener::bind(address.0, Service::BOARD).await?),
        None => None,
    })
}

/// The names a certificate of our own is for: this machine, and the address if it is one.
fn own_names(ip: IpAddr) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let ip_name = ip.to_string();
    if !ip.is_unspecified() && !names.contains(&ip_name) {
        names.push(ip_name);
    }
    names
}

/// The controllers, ready to start.
pub(crate) struct Controllers {
    /// The server, and as whom to talk to it.
    pub(crate) client: Client,
    /// What the server is called in messages.
    pub(crate) server: String,
    /// Which of them.
    pub(crate) list: ControllerList,
    /// Whether to stand for leader, and how.
    pub(crate) election: Option<LeaderElection>,
    /// As whom they are known in events.
    pub(crate) identity: String,
    /// The namespace of this installation.
    pub(crate) home: String,
    /// How nodes are judged, and how fast pods leave them.
    pub(crate) nodes: NodeSettings,
    /// Where to tell how they are and what they see.
    pub(crate) listeners: Listeners,
    /// How others in this process ask about the fleet.
    pub(crate) inquiries: (Inquirer, Inquiries),
    /// How soon the thread that runs them looks for news, where it heeds that.
    pub(crate) pace: Pace,
}

impl Controllers {
    /// Whether others may ask about placements.
    pub(crate) fn is_debugged(&self) -> bool {
        self.listeners.debugger.is_some()
    }

    /// Runs them until `stop`. Says `ready`, with a line for people, when they have seen everything they need.
    pub(crate) async fn run(
        self,
        stop: CancellationToken,
        ready: impl AsyncFnOnce(String) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { client, server, list, election, identity, home, nodes, listeners, inquiries, pace } = self;
        let count = list.enabled().count();
        let line = format!(
            "controllers ready: {count} of {} on {server}{}",
            ControllerName::ALL.len(),
            listeners.places()
        );
        let Listeners { board, debugger } = listeners;
        if debugger.is_some() && !list.enabled().any(|name| name == ControllerName::Placement) {
            tracing::warn!(
                "--debug-bind: without the placement-controller there is nothing to be asked about"
            );
        }
        let health = Health::default();
        let metrics = Arc::new(Metrics::default());
        let _board = board.map(|listener| {
            let router = router(&health, Arc::clone(&metrics));
            // Until the very end, and no longer: it tells how the stop goes, and nobody waits for its readers.
            AbortOnDropHandle::new(tokio::spawn(listener.serve(router, CancellationToken::new())))
        });
        let reached = health.check("server");
        reached.fail(format!("waiting for {server}"));
        let discovery = discover(&client, &server, WantedBy::of(&list));
        let Some(dialect) = stop.run_until_cancelled(discovery).await else {
            return Ok(());
        };
        reached.pass();
        let resign = CancellationToken::new();
        let (driver, fence) = match election {
            Some(election) => {
                let election = LeaderElection { controllers: list.enabled().collect(), ..election };
                let (driver, fence) = Driver::new(client.clone(), election, Clock::system())?;
                (Some(driver), fence)
            }
            None => (None, Fence::open()),
        };
        let (inquirer, inquiries) = inquiries;
        let _debugger = debugger.map(|listener| {
            let router = debug::router(client.clone(), inquirer);
            // As long as the controllers: whoever stands by answers, too.
            AbortOnDropHandle::new(tokio::spawn(listener.serve(router, stop.clone())))
        });
        let options = Options {
            controllers: list,
            identity,
            home,
            dialect,
            evictions: nodes.evictions,
            lifecycle: nodes.lifecycle,
            fence,
            health: health.clone(),
            metrics,
            inquiries,
            pace,
        };
        let election = {
            let (resign, stop) = (resign.clone(), stop.clone());
            tokio::spawn(async move {
                if let Some(driver) = driver {
                    // Whoever cannot stand for leader any more must not look as if it stood by.
                    let _end = stop.drop_guard();
                    driver.run(resign).await;
                }
            })
        };
        let mut running =
            AbortOnDropHandle::new(tokio::spawn(berth_control::run(client, options, stop.clone())));
        let told = tokio::select! {
            () = filled(&health) => ready(line).await,
            _ = &mut running => Err(anyhow!("the controllers ended before they were ready")),
            () = stop.cancelled() => Ok(()),
        };
        if told.is_err() {
            stop.cancel();
        }
        let ended = running.await.context("the controllers ended badly");
        // Only now may another act: whatever we had under way has ended.
        resign.cancel();
        election.await.context("the election ended badly")?;
        told.and(ended)
    }
}

/// Waits until the controllers have seen everything they need.
pub(crate) async fn filled(health: &Health) {
    while !health.report().iter().any(|(name, state)| *name == CACHES && state.is_ok()) {
        tokio::time::sleep(GLANCE).await;
    }
}

/// Which of the controllers need the definitions of our kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedBy {
    /// None.
    Nobody,
    /// Some, and the others have work without them.
    Some,
    /// All.
    All,
}

impl WantedBy {
    /// By the controllers of a list.
    pub(crate) fn of(list: &ControllerList) -> Self {
        let needing = list.enabled().filter(|name| name.needs_definitions()).count();
        match (needing, list.enabled().count()) {
            (0, _) => Self::Nobody,
            (needing, all) if needing == all => Self::All,
            _ => Self::Some,
        }
    }
}

/// Waits until the server answers and, where nobody has anything to do without them, serves our kinds, and learns in which
/// form. What is in the way is told once.
pub(crate) async fn discover(client: &Client, server: &str, definitions: WantedBy) -> Dialect {
    let (mut wait, longest) = WAIT;
    let mut told = None;
    loop {
        let found = match definitions {
            WantedBy::Nobody => client.apiserver_version().await.map(|_| Dialect::OURS),
            WantedBy::Some | WantedBy::All => Dialect::discover(client).await,
        };
        match found {
            Err(kube::Error::Api(status)) if status.code == 404 && definitions == WantedBy::Some => {
                let trouble = trouble(&kube::Error::Api(status), server);
                tracing::warn!("{trouble}; the controllers that need them wait, the others do not");
                // What the least of them would keep; what they have room for is looked at again later.
                return Dialect::LEAST;
            }
            Ok(dialect) => {
                if told.is_some() {
                    tracing::info!("{server} is ready for the controllers");
                }
                return dialect;
            }
            Err(error) => {
                let trouble = trouble(&error, server);
                tracing::debug!(%error, "not ready yet");
                if told.as_ref() != Some(&trouble) {
                    tracing::warn!("{trouble}; waiting");
                    told = Some(trouble);
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
    }
}

/// What keeps the controllers from starting, and what to do about it.
fn trouble(error: &kube::Error, server: &str) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 => format!(
            "{server} does not serve Placements yet: apply their definitions with `berth crds | kubectl apply \
             --server-side -f -`"
        ),
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            format!("{server} refuses this identity ({}): {}", status.code, status.message)
        }
        kube::Error::Api(status) => format!("{server} is not ready ({}): {}", status.code, status.message),
        error => {
            let mut causes = String::new();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                causes = cause.to_string();
                source = cause.source();
            }
            let reason = if causes.is_empty() { error.to_string() } else { causes };
            format!("{server} does not answer: {reason}")
        }
    }
}

/// As whom this process is known: no two share it.
pub(crate) fn identity() -> String {
    let host = rustix::system::uname();
    berth_control::lead::identity(&host.nodename().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[test]
    fn what_is_in_the_way_is_told_with_what_to_do() {
        let status = |code, message: &str| {
            kube::Error::Api(Box::new(Status { code, message: message.to_owned(), ..Status::default() }))
        };
        assert!(trouble(&status(404, "not found"), "https://hub").contains("berth crds | kubectl apply"));
        assert_eq!(trouble(&status(403, "no"), "https://hub"), "https://hub refuses this identity (403): no");
        assert_eq!(trouble(&status(503, "later"), "https://hub"), "https://hub is not ready (503): later");
        let gone = kube::Error::Service(Box::new(std::io::Error::other("connection refused")));
        assert_eq!(trouble(&gone, "https://hub"), "https://hub does not answer: connection refused");
    }

    /// A server without our definitions.
    fn bare() -> Client {
        let server = tower::service_fn(async |_: Request<Body>| {
            let status =
                r#"{"kind":"Status","status":"Failure","message":"no","reason":"NotFound","code":404}"#;
            let answer = Response::builder().status(404).body(Body::from(status.as_bytes().to_vec()));
            Ok::<_, Infallible>(answer.expect("a plain answer"))
        });
        Client::new(server, "default")
    }

    #[test]
    fn who_needs_definitions_is_known_by_the_list() {
        let wanted = |list: &str| WantedBy::of(&list.parse().unwrap());
        assert_eq!(wanted("taint-eviction-controller,node-lifecycle-controller"), WantedBy::Nobody);
        assert_eq!(wanted("placement-controller,taint-eviction-controller"), WantedBy::Some);
        assert_eq!(wanted("*"), WantedBy::All);
    }

    #[tokio::test]
    async fn controllers_that_wait_for_definitions_keep_no_others_waiting() {
        assert_eq!(discover(&bare(), "it", WantedBy::Some).await, Dialect::LEAST);
        let waits = tokio::time::timeout(WAIT.0 * 2, discover(&bare(), "it", WantedBy::All)).await;
        assert!(waits.is_err(), "there is nothing to do without them");
    }
}
