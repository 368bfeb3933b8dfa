//! The election, held: an [`Elector`] between a server and a [`Fence`].
//!
//! Owns the requests, their timeouts, the log and the dice. Decides nothing: whatever comes back goes to the elector, and
//! whatever the elector then holds goes to the fence, before anything else happens.

use berth_api::core::Lease;
use berth_api::names::annotation;
use std::future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Client, Error};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::clock::Clock;
use super::config::{ElectionError, LeaderElection, Timing};
use super::elector::{Action, Answer, Elector};
use super::fence::{Fence, Gate};
use super::record::{Record, Seen};
use crate::answer::is_missing;

/// How long a stopping process tries to let go of the lease; after that it runs out by itself.
const RELEASE_PATIENCE: Duration = Duration::from_secs(3);
/// How long a candidate waits before it watches the Lease again after that failed; meanwhile it looks from time to time.
const WATCH_PAUSE: Duration = Duration::from_secs(5);

/// Holds the election for one process.
///
/// Needs what [`crate::rights::of_election`] lists. Without watch it looks every retry period, instead of taking over within
/// milliseconds of a release; with a namespace that is not there yet, it needs to make that, too.
#[derive(Debug)]
pub struct Driver {
    leases: Api<Lease>,
    election: LeaderElection,
    timing: Timing,
    clock: Clock,
    elector: Elector,
    gate: Gate,
    /// The Lease as the server last gave it: what is not the election's in it is sent back as it was.
    last: Option<Lease>,
    /// What was last logged, so that a trouble that lasts is told once.
    told: Told,
}

#[derive(Debug, Default)]
struct Told {
    leads: bool,
    /// Whether we gave it up ourselves.
    resigns: bool,
    leader: Option<String>,
    trouble: Option<String>,
}

impl Driver {
    /// A candidate, and the fence that opens when it wins. Nothing is sent before [`Driver::run`].
    pub fn new(
        client: Client,
        election: LeaderElection,
        clock: Clock,
    ) -> Result<(Self, Fence), ElectionError> {
        let timing = election.check()?;
        let (gate, fence) = Gate::new(clock.clone(), timing);
        let elector = Elector::new(election.identity.clone(), timing);
        let leases = Api::namespaced(client, &election.namespace);
        let driver =
            Self { leases, election, timing, clock, elector, gate, last: None, told: Told::default() };
        Ok((driver, fence))
    }

    /// Stands for the lease until `stop`, then closes the fence and lets go of the lease.
    ///
    /// Another may lead as soon as `stop` is given: whatever this process writes must have ended before.
    pub async fn run(mut self, stop: CancellationToken) {
        tracing::info!(lease = %self.lease(), identity = %self.election.identity, "standing for leader");
        let touched = Arc::new(Notify::new());
        let mut watch = None;
        while !stop.is_cancelled() {
            let action = self.elector.next(self.clock.now());
            self.publish();
            if self.elector.hold().is_some() {
                watch = None;
            } else if watch.is_none() {
                watch = Some(self.watch(Arc::clone(&touched)));
            }
            match action {
                Action::Wait(until) => tokio::select! {
                    () = tokio::time::sleep_until(self.clock.instant(until)) => {}
                    () = touched.notified(), if watch.is_some() => self.elector.nudge(self.clock.now()),
                    () = stop.cancelled() => {}
                },
                Action::Done => break,
                request => {
                    let limit = self.limit();
                    // A write that is under way is waited for, since a lease that was won has to be let go.
                    let hurry = async {
                        stop.cancelled().await;
                        tokio::time::sleep(RELEASE_PATIENCE).await;
                    };
                    let answer = tokio::select! {
                        answer = self.perform(request, limit) => answer,
                        () = hurry => Answer::Unknown,
                    };
                    self.elector.answer(answer, self.clock.now(), jitter());
                    self.publish();
                }
            }
        }
        drop(watch);
        self.release().await;
    }

    async fn release(mut self) {
        let held = self.elector.hold().is_some();
        self.elector.resign();
        self.told.resigns = true;
        self.publish();
        let letting_go = async {
            loop {
                let action = self.elector.next(self.clock.now());
                match action {
                    Action::Done => break,
                    Action::Wait(until) => tokio::time::sleep_until(self.clock.instant(until)).await,
                    request => {
                        let answer = self.perform(request, self.timing.request_timeout()).await;
                        self.elector.answer(answer, self.clock.now(), jitter());
                    }
                }
            }
        };
        if tokio::time::timeout(RELEASE_PATIENCE, letting_go).await.is_err() {
            tracing::warn!(lease = %self.lease(), "the lease could not be let go in time; it runs out by itself");
        } else if held {
            tracing::info!(lease = %self.lease(), "let go of the lease");
        }
    }

    /// How long the next request may take. A holder's must not outlive its hold, so that the loss is seen in time.
    fn limit(&self) -> Duration {
        let usual = self.timing.request_timeout();
        let now = self.clock.now();
        match self.elector.hold() {
            Some(hold) => {
                let end = hold.since.ticks.saturating_add(self.timing.renew_deadline());
                usual.min(end.saturating_sub(now.ticks))
            }
            None => usual,
        }
    }

    async fn perform(&mut self, action: Action, limit: Duration) -> Answer {
        let (doing, request) = match &action {
            Action::Get => ("read", None),
            Action::Create(record) => ("create", Some(self.fresh(record))),
            Action::Update { record, version } => ("update", Some(self.renewed(record, version))),
            Action::Wait(_) | Action::Done => return Answer::Unknown,
        };
        let name = &self.election.name;
        let parameters = PostParams::default();
        let begun = Instant::now();
        let ended = tokio::time::timeout(limit, async {
            match (&action, &request) {
                (Action::Create(_), Some(lease)) => match self.leases.create(&parameters, lease).await {
                    Err(Error::Api(status)) if is_missing(&status) => {
                        self.make_namespace(Error::Api(status)).await?;
                        self.leases.create(&parameters, lease).await
                    }
                    made => made,
                },
                (_, Some(lease)) => self.leases.replace(name, &parameters, lease).await,
                (_, None) => self.leases.get(name).await,
            }
        });
        match ended.await {
            Ok(Ok(lease)) => {
                self.well();
                let seen = Seen::from(&lease);
                self.last = Some(lease);
                Answer::Found(seen)
            }
            Ok(Err(error)) => {
                let answer = meaning(&error);
                let expected = match answer {
                    Answer::Conflict => true,
                    Answer::Absent => !matches!(action, Action::Create(_)),
                    _ => false,
                };
                if expected {
                    tracing::debug!(lease = %self.lease(), %error, "could not {doing} the lease");
                } else {
                    self.trouble(doing, &error.to_string());
                }
                answer
            }
            Err(_) => {
                tracing::debug!(after = ?begun.elapsed(), "a request for the lease was given up");
                self.trouble(doing, "the API server did not answer in time");
                Answer::Unknown
            }
        }
    }

    /// Makes the namespace of the Lease where that is what is missing: on a new cluster nobody else has. Whoever may not make
    /// it is left with the error that told so.
    async fn make_namespace(&self, missing: Error) -> Result<(), Error> {
        let name = &self.election.namespace;
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(self.leases.clone().into_client());
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => tracing::info!(namespace = name, "made the namespace of the Lease"),
            // Somebody else was quicker.
            Err(Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                tracing::debug!(namespace = name, %error, "the namespace of the Lease was not made");
                return Err(missing);
            }
        }
        Ok(())
    }

    fn fresh(&self, record: &Record) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.election.name.clone()),
            namespace: Some(self.election.namespace.clone()),
            ..ObjectMeta::default()
        };
        let mut lease = Lease { metadata, spec: Some(record.to_spec()) };
        self.tell_controllers(&mut lease);
        lease
    }

    fn renewed(&self, record: &Record, version: &str) -> Lease {
        let mut lease = self.last.clone().unwrap_or_else(|| self.fresh(record));
        lease.spec = Some(record.to_spec());
        lease.metadata.resource_version = Some(version.to_owned());
        lease.metadata.managed_fields = None;
        self.tell_controllers(&mut lease);
        lease
    }

    /// Says on the Lease what its holder does, in place of what the holder before has said.
    fn tell_controllers(&self, lease: &mut Lease) {
        let names: Vec<&str> = self.election.controllers.iter().map(|name| name.as_str()).collect();
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::LEADING_CONTROLLERS.to_owned(), names.join(","));
    }

    /// Nudges the elector whenever the Lease changes, for as long as the handle lives.
    fn watch(&self, touched: Arc<Notify>) -> AbortOnDropHandle<()> {
        let (leases, name) = (self.leases.clone(), self.election.name.clone());
        AbortOnDropHandle::new(tokio::spawn(async move {
            let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
            loop {
                match leases.watch(&parameters, "0").await {
                    Ok(events) => {
                        let mut told = pin!(events.take_while(|event| future::ready(is_news(event))));
                        while told.next().await.is_some() {
                            touched.notify_one();
                        }
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the lease cannot be watched; looking from time to time");
                    }
                }
                tokio::time::sleep(WATCH_PAUSE).await;
            }
        }))
    }

    /// Sets the fence, then says what is new.
    fn publish(&mut self) {
        let (hold, leader) = (self.elector.hold(), self.elector.leader());
        self.gate.set(hold, leader);
        let leads = hold.is_some();
        if leads != self.told.leads {
            self.told.leads = leads;
            if leads {
                tracing::info!(lease = %self.lease(), "leading");
            } else if self.told.resigns {
                tracing::info!(lease = %self.lease(), "the lead is given up");
            } else {
                tracing::warn!(lease = %self.lease(), "not leading any more: nothing is written until the lease is won again");
            }
        }
        let leader = self.elector.leader();
        if leader.is_some() && leader != self.told.leader.as_deref() {
            tracing::info!(lease = %self.lease(), leader, "the leader is known");
            self.told.leader = leader.map(str::to_owned);
        }
    }

    fn trouble(&mut self, doing: &'static str, why: &str) {
        if self.told.trouble.as_deref() != Some(why) {
            tracing::warn!(lease = %self.lease(), why, "could not {doing} the lease; trying again");
            self.told.trouble = Some(why.to_owned());
        }
    }

    fn well(&mut self) {
        if self.told.trouble.take().is_some() {
            tracing::info!(lease = %self.lease(), "the lease can be reached again");
        }
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }
}

/// What an error tells about the Lease.
fn meaning(error: &Error) -> Answer {
    let Error::Api(status) = error else { return Answer::Unknown };
    match status.code {
        404 if is_missing(status) => Answer::Absent,
        409 => Answer::Conflict,
        // Too many requests, and a request that took too long to be taken in, may be answered otherwise soon. Any other 404 is of
        // somebody before the server who has lost the way, and tells nothing of the Lease.
        404 | 408 | 429 => Answer::Unknown,
        400..=499 => Answer::Refused,
        _ => Answer::Unknown,
    }
}

fn is_news(event: &Result<WatchEvent<Lease>, Error>) -> bool {
    !matches!(event, Err(_) | Ok(WatchEvent::Error(_)))
}

/// A part of one, at random.
fn jitter() -> f64 {
    /// Bits that a double holds exactly.
    const BITS: u32 = 53;
    let roll = getrandom::u64().unwrap_or_default() >> (u64::BITS - BITS);
    roll as f64 / (1_u64 << BITS) as f64
}

#[cfg(test)]
mod tests;
