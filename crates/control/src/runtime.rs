//! The loop: what is told goes into the world, what it touches is decided, what is decided is written.
//!
//! One task owns the world and every controller, so nothing here is locked and the order of things is the order in which
//! they were told. Watches and writes run beside it and tell it what they learn. Nothing is decided by a controller that
//! has not seen everything it needs, and nothing is written while another leads.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_engine::Moment;
use berth_engine::evict::{Cause, Freeze};
use berth_engine::model::ObjectKey;
use berth_engine::node::LifecyclePolicy;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::act::{Events, Job, WriteError, Writer, Wrote};
use crate::controllers::{Controller, EvictionLimits, Setup, controller};
use crate::dialect::Dialect;
use crate::due::{Due, Ended};
use crate::inquiry::{Inquiries, Question, Sight, Unanswered};
use crate::lead::Fence;
use crate::names::{ControllerList, ControllerName};
use crate::pace::{Pace, Tempo};
use crate::serve::{Check, Health, Metrics, PlacementState, Pulse};
use crate::watch::{Vigil, Watches};
use crate::world::{Kind, Told, World};

/// Subjects of one controller whose writes may be under way at once, whatever the others do: a storm in one never keeps
/// another waiting.
const JOBS_OWN: usize = 8;
/// Subjects of all controllers together whose writes may be under way at once besides.
const JOBS_SHARED: usize = 56;
/// Subjects of one controller whose writes may be under way at once where no other has any.
pub(crate) const PLACES: usize = JOBS_OWN + JOBS_SHARED;
/// How long a turn of the loop may decide before whatever else is due in this thread, such as keeping the lead, has its
/// turn.
const TURN_MAX: Duration = Duration::from_millis(20);
/// How often the server is asked whether its definitions have changed.
const DIALECT_PERIOD: Duration = Duration::from_mins(5);
/// What watches and writers may have told that was not heard yet: enough that a burst is taken in as one.
const TOLD_MAX: usize = 4_096;
/// The longest the loop sleeps: how late a deadline may be met after the wall clock was set forward.
const NAP_MAX: Duration = Duration::from_secs(5);
/// How long a turn of the loop may take before the process counts as stuck: it sleeps for [`NAP_MAX`] at most.
const PULSE_MAX: Duration = Duration::from_mins(1);
/// The outcome of a subject that is no more.
const GONE: &str = "gone";
/// How long writes under way may take after we were asked to stop.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long events that were handed in may take after that.
const RECORD_MAX: Duration = Duration::from_secs(2);

/// How the controllers run.
#[derive(Debug)]
pub struct Options {
    /// Which of them.
    pub controllers: ControllerList,
    /// Who says so in events.
    pub identity: String,
    /// The namespace of this installation, where what concerns it alone is looked for.
    pub home: String,
    /// What the server's definitions have room for.
    pub dialect: Dialect,
    /// The bounds of evictions.
    pub evictions: EvictionLimits,
    /// How nodes are judged.
    pub lifecycle: LifecyclePolicy,
    /// Whether we lead.
    pub fence: Fence,
    /// Where it is told how we are.
    pub health: Health,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What others in this process ask; answered by whoever leads and by who stands by alike.
    pub inquiries: Inquiries,
    /// How soon the thread that runs this looks for news, for who runs it to heed.
    pub pace: Pace,
}

/// Runs the controllers until `stop`. Writes under way are finished then.
pub async fn run(client: Client, options: Options, stop: CancellationToken) {
    let (told, hearing) = mpsc::channel(TOLD_MAX);
    let Options {
        controllers,
        identity,
        home,
        dialect,
        evictions,
        lifecycle,
        fence,
        health,
        metrics,
        inquiries,
        pace,
    } = options;
    let setup = Setup { dialect, evictions, lifecycle, metrics: Arc::clone(&metrics) };
    let seats: Vec<Seat> = controllers.enabled().map(|name| Seat::new(controller(name, &setup))).collect();
    let watches = Watches {
        client: client.clone(),
        home,
        told: told.clone(),
        metrics: Arc::clone(&metrics),
        vigil: Arc::new(Vigil::new(&health)),
        stop: stop.clone(),
    };
    let (events, recorder) =
        Events::start(client.clone(), fence.clone(), identity, Arc::clone(&metrics), pace.clone());
    let (dialects, _asking) = follow_dialect(client.clone(), dialect);
    let writer = Writer { client, fence: fence.clone(), told, events, metrics, reviewer: Arc::default() };
    let mut kinds: Vec<Kind> = seats.iter().flat_map(|seat| seat.controller.kinds()).copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    let waiting = health.check("caches");
    let pulse = health.pulse("loop", PULSE_MAX);
    if kinds.is_empty() {
        waiting.pass();
    }
    for kind in &kinds {
        watches.follow(*kind);
    }
    let the_loop = Loop {
        world: World::default(),
        seats,
        kinds,
        writer,
        fence,
        jobs: JoinSet::new(),
        whose: HashMap::new(),
        hearing,
        inquiries,
        dialects,
        watches,
        waiting,
        pulse,
        turned: Instant::now(),
        tempo: Tempo::new(pace, Instant::now()),
        news: 0,
        asking: 0,
        first: 0,
        is_behind: false,
        is_put_off: false,
        stop: None,
    };
    Box::pin(the_loop.run(stop)).await;
    // What was written is told, as long as that does not keep anybody waiting.
    if tokio::time::timeout(RECORD_MAX, recorder).await.is_err() {
        tracing::debug!("some events were not recorded");
    }
}

/// Asks the server now and then what its definitions have room for: they may be replaced while we work.
fn follow_dialect(client: Client, dialect: Dialect) -> (watch::Receiver<Dialect>, AbortOnDropHandle<()>) {
    let (tell, dialects) = watch::channel(dialect);
    let asking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(DIALECT_PERIOD).await;
            match Dialect::discover(&client).await {
                Ok(found) => {
                    tell.send_if_modified(|known| std::mem::replace(known, found) != found);
                }
                // What was known stays known.
                Err(error) => tracing::debug!(%error, "the definitions could not be looked at"),
            }
        }
    });
    (dialects, AbortOnDropHandle::new(asking))
}

/// A controller and its subjects.
struct Seat {
    controller: Box<dyn Controller>,
    due: Due,
    /// Whether it has seen everything it needs.
    is_filled: bool,
    /// Its jobs under way.
    jobs: usize,
    /// How its subjects are, for the one of which that is told.
    tally: Option<Tally>,
    /// How many wait and when time will change something, as it was told last.
    told: Option<(usize, Option<Moment>)>,
}

impl Seat {
    fn new(controller: Box<dyn Controller>) -> Self {
        let tally = (controller.name() == ControllerName::Placement)
            .then(|| Tally { has_changed: true, ..Tally::default() });
        Self { controller, due: Due::default(), is_filled: false, jobs: 0, tally, told: None }
    }

    /// Whether it looks at objects of a kind.
    fn looks_at(&self, kind: Kind) -> bool {
        let controller = &self.controller;
        controller.kinds().contains(&kind)
            || (controller.needs_more() && controller.kinds_at_need().contains(&kind))
    }

    /// Its jobs beyond those it may always have.
    fn beyond(&self) -> usize {
        self.jobs.saturating_sub(JOBS_OWN)
    }
}

/// Whether a controller with so many jobs may begin another, where all have so many beyond their own.
fn may_begin(jobs: usize, beyond: usize) -> bool {
    jobs < JOBS_OWN || beyond < JOBS_SHARED
}

/// How the subjects of a controller are, counted by difference.
#[derive(Default)]
struct Tally {
    of: HashMap<ObjectKey, &'static str>,
    counts: HashMap<&'static str, usize>,
    /// Whether the counts were not told since.
    has_changed: bool,
}

impl Tally {
    fn set(&mut self, subject: &ObjectKey, outcome: &'static str) {
        if self.of.get(subject) == Some(&outcome) {
            return;
        }
        self.has_changed = true;
        let before = if outcome == GONE {
            self.of.remove(subject)
        } else {
            *self.counts.entry(outcome).or_default() += 1;
            self.of.insert(subject.clone(), outcome)
        };
        if let Some(count) = before.and_then(|before| self.counts.get_mut(before)) {
            *count -= 1;
        }
    }

    fn count(&self, outcome: &str) -> usize {
        self.counts.get(outcome).copied().unwrap_or_default()
    }
}

struct Loop {
    world: World,
    seats: Vec<Seat>,
    kinds: Vec<Kind>,
    writer: Writer,
    fence: Fence,
    jobs: JoinSet<Result<Wrote, WriteError>>,
    /// Whose each job is, for those that end without a report.
    whose: HashMap<tokio::task::Id, Begun>,
    hearing: mpsc::Receiver<Told>,
    inquiries: Inquiries,
    dialects: watch::Receiver<Dialect>,
    watches: Watches,
    waiting: Check,
    pulse: Pulse,
    /// When this turn of the loop began.
    turned: Instant,
    /// How soon to look for news.
    tempo: Tempo,
    /// What was heard in this turn.
    news: usize,
    /// Jobs under way that only ask.
    asking: usize,
    /// Whose turn it is to decide first.
    first: usize,
    /// Whether the last turn ended before everything was decided.
    is_behind: bool,
    /// Whether the last turn has put off even what was put off before.
    is_put_off: bool,
    /// What keeps everybody from being evicted.
    stop: Option<Freeze>,
}

/// A job under way.
struct Begun {
    seat: usize,
    subject: ObjectKey,
    /// When what it was decided on was heard.
    heard: Instant,
    /// How to end it, where it only asks and nobody needs to know the answer any more.
    question: Option<AbortHandle>,
}

impl Loop {
    async fn run(mut self, stop: CancellationToken) {
        let mut heard = Vec::new();
        loop {
            let nap = self.nap();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.jobs.join_next_with_id() => self.ended(ended),
                count = self.hearing.recv_many(&mut heard, TOLD_MAX) => {
                    debug_assert!(count > 0, "the loop holds a sender itself");
                    for told in heard.drain(..) {
                        self.hear(told);
                    }
                }
                term = self.fence.changed() => {
                    self.writer.metrics.leads(term.is_some());
                    let words = if term.is_some() { "this process leads, and writes" } else { "standing by" };
                    tracing::info!("{words}");
                }
                question = self.inquiries.next() => self.answer(question),
                Ok(()) = self.dialects.changed() => self.speak(),
                () = tokio::task::yield_now(), if self.is_behind => {}
                () = tokio::time::sleep(nap) => {}
            }
            self.turned = Instant::now();
            self.pulse.beat();
            // Whatever else has ended or was told meanwhile belongs to the same moment.
            while let Some(ended) = self.jobs.try_join_next_with_id() {
                self.ended(ended);
            }
            self.decide(now());
            let news = std::mem::take(&mut self.news);
            if self.seats.iter().all(|seat| seat.is_filled) {
                self.tempo.turn(self.turned, news, self.jobs.len() - self.asking);
            } else {
                self.tempo.hurry(self.turned);
            }
        }
        Box::pin(self.drain()).await;
    }

    /// How long nothing happens by itself.
    fn nap(&self) -> Duration {
        let now = now();
        let beyond = self.beyond();
        // Whoever has all the jobs it may have is woken by the end of one.
        let seats = self.seats.iter().filter(|seat| seat.is_filled && may_begin(seat.jobs, beyond));
        let next = seats.flat_map(|seat| seat.due.next().into_iter().chain(seat.controller.wake())).min();
        match next {
            Some(next) if self.fence.holds() => now.until(next).min(NAP_MAX),
            _ => NAP_MAX,
        }
    }

    /// The jobs of all controllers beyond those that each may always have.
    fn beyond(&self) -> usize {
        self.seats.iter().map(Seat::beyond).sum()
    }

    /// The server's definitions have changed.
    fn speak(&mut self) {
        let dialect = *self.dialects.borrow_and_update();
        tracing::info!(?dialect, "the server's definitions have changed");
        for seat in &mut self.seats {
            seat.controller.speak(dialect, &self.world, &mut seat.due);
        }
    }

    fn hear(&mut self, told: Told) {
        self.news += 1;
        let told = match told {
            Told::Found(found) => {
                if let Some(seat) = self.seats.iter_mut().find(|seat| seat.controller.name() == found.asker) {
                    seat.controller.found(*found);
                }
                return;
            }
            told => told,
        };
        let is_list = matches!(told, Told::ListEnds(_));
        for change in self.world.hear(told) {
            for seat in &mut self.seats {
                if seat.looks_at(change.kind()) {
                    seat.controller.observe(&change, &self.world, &mut seat.due);
                }
            }
        }
        if is_list {
            for seat in self.seats.iter_mut().filter(|seat| !seat.is_filled) {
                seat.is_filled = seat.controller.kinds().iter().all(|kind| self.world.is_filled(*kind));
                if seat.is_filled {
                    tracing::debug!(controller = %seat.controller.name(), "has seen everything it needs");
                }
            }
            let missing: Vec<String> = self
                .kinds
                .iter()
                .filter(|kind| !self.world.is_filled(**kind))
                .map(|kind| kind.plural())
                .collect();
            if missing.is_empty() {
                self.waiting.pass();
            } else {
                self.waiting.fail(format!("waiting for {}", missing.join(", ")));
            }
        }
    }

    /// Shows the fleet to whoever asks about it.
    fn answer(&mut self, question: Question) {
        let now = now();
        let seats = self.seats.iter_mut().filter(|seat| seat.is_filled);
        let sight = seats.filter_map(|seat| {
            // A question may move the model's clock; whom the time that passed touches must not be lost to it.
            seat.controller.advance(now, &self.world, &mut seat.due);
            seat.controller.model()
        });
        let sight = { sight }.next().map(|model| Sight::new(&self.world, model, now));
        question(sight.ok_or(Unanswered::NotSeen));
    }

    /// Tells every controller what another knows that nobody should be evicted for. Says whether that is news.
    fn heed(&mut self) -> bool {
        let mut guards = self.seats.iter().filter(|seat| seat.controller.may_stop());
        let stop = match guards.clone().find(|seat| !seat.is_filled) {
            Some(seat) => Some(Freeze::of(
                Cause::Unseen,
                format!("{} has not seen yet how things stand", seat.controller.name()),
            )),
            None => guards.find_map(|seat| seat.controller.stop()),
        };
        if stop == self.stop {
            return false;
        }
        self.stop = stop;
        for seat in &mut self.seats {
            seat.controller.heed(self.stop.as_ref());
        }
        true
    }

    fn decide(&mut self, now: Moment) {
        self.is_behind = false;
        // Each is first in its turn, so that nobody always finds the time or the places taken.
        self.first = (self.first + 1) % self.seats.len().max(1);
        // What was put off so that nobody waits for it comes after whatever is ready without it, and after the writes of
        // that are on their way; every second turn at the latest, for there may always be some.
        let has_begun = self.decide_ready(now);
        self.is_put_off = has_begun && !self.is_put_off;
        if self.is_put_off {
            self.is_behind = true;
        } else if self.go_on() {
            self.decide_ready(now);
        }
    }

    /// Goes on with what was put off; whether somebody is ready because of it.
    fn go_on(&mut self) -> bool {
        let mut is_ripe = false;
        for seat in &mut self.seats {
            let waiting = seat.due.waiting();
            self.is_behind |= seat.controller.go_on(&mut seat.due);
            is_ripe |= seat.due.waiting() > waiting;
            if seat.controller.needs_more() {
                for kind in seat.controller.kinds_at_need() {
                    if !self.kinds.contains(kind) {
                        self.watches.follow(*kind);
                        self.kinds.push(*kind);
                    }
                }
            }
        }
        is_ripe
    }

    /// Decides the subjects that are ready, as far as there is time in this turn and there are places for their writes;
    /// whether writes have begun.
    fn decide_ready(&mut self, now: Moment) -> bool {
        let Some(term) = self.fence.term() else { return false };
        let jobs = self.jobs.len();
        // Who may know why nobody should be evicted looks before anybody evicts, whose turn ever it is.
        let guards = self.seats.iter_mut().filter(|seat| seat.is_filled && seat.controller.may_stop());
        for seat in guards {
            seat.controller.advance(now, &self.world, &mut seat.due);
        }
        self.heed();
        let mut beyond = self.beyond();
        let order = (self.first..self.seats.len()).chain(0..self.first);
        for index in order {
            let seat = &mut self.seats[index];
            if !seat.is_filled {
                continue;
            }
            if !seat.controller.may_stop() {
                seat.controller.advance(now, &self.world, &mut seat.due);
            }
            // Whoever waits for this does not wait for a place as well: in a storm there is none.
            if let Some(note) = seat.controller.news() {
                self.writer.events.confirm(term, note);
            }
            let name = seat.controller.name();
            while may_begin(seat.jobs, beyond) {
                let begun = Instant::now();
                if begun.duration_since(self.turned) > TURN_MAX {
                    self.is_behind |= seat.due.is_ready();
                    break;
                }
                let Some(subject) = seat.due.pop(now) else { break };
                let verdict = seat.controller.decide(&subject, &self.world, now);
                self.writer.metrics.decided(name, verdict.outcome, begun.elapsed());
                if let Some(tally) = &mut seat.tally {
                    tally.set(&subject, verdict.outcome);
                }
                seat.due.wake(&subject, verdict.wake);
                if verdict.writes.is_empty() {
                    // To tell something takes no place and no task: whoever lets go of a node tells so about each of its pods.
                    if !verdict.notes.is_empty() {
                        verdict.notes.into_iter().for_each(|note| self.writer.events.record(term, note));
                        self.writer.metrics.reacted(name, self.turned.elapsed());
                        seat.controller.ended(&subject, Ended::Done, now, &self.world, &mut seat.due);
                    }
                    // What failed before is no longer wanted, unless it only waits for its turn.
                    if !verdict.is_waiting {
                        seat.due.end(&subject, Ended::Done, now);
                    }
                    continue;
                }
                tracing::debug!(controller = %name, %subject, writes = verdict.writes.len(), outcome = verdict.outcome, "decided");
                seat.due.begin(&subject);
                let job = Job { term, writes: verdict.writes, notes: verdict.notes };
                let asks = !job.changes_something();
                self.asking += usize::from(asks);
                let handle = self.jobs.spawn(self.writer.clone().run(job));
                let id = handle.id();
                let question = asks.then_some(handle);
                self.whose.insert(id, Begun { seat: index, subject, heard: self.turned, question });
                beyond += usize::from(seat.jobs >= JOBS_OWN);
                seat.jobs += 1;
            }
            let state = (seat.due.waiting(), seat.due.next_deadline());
            if seat.told.replace(state) != Some(state) {
                self.writer.metrics.waiting(name, state.0, state.1);
            }
            if let Some(tally) = &mut seat.tally
                && std::mem::take(&mut tally.has_changed)
            {
                for state in PlacementState::ALL {
                    self.writer.metrics.placements(state, tally.count(state.as_str()));
                }
            }
        }
        // What was judged just now may be why nobody should be evicted.
        self.is_behind |= self.heed();
        self.jobs.len() > jobs
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, Result<Wrote, WriteError>), tokio::task::JoinError>) {
        // What was told before the job ended must be heard before the subject is decided again; what a long list tells
        // meanwhile need not, and could go on for as long as we listen.
        for _ in 0..self.hearing.len() {
            let Ok(told) = self.hearing.try_recv() else { break };
            self.hear(told);
        }
        let (id, result) = match ended {
            Ok((id, report)) => (id, report),
            Err(error) => {
                tracing::error!(%error, "a job ended badly; its subject is decided again");
                (error.id(), Err(WriteError::Broken))
            }
        };
        let Begun { seat, subject, heard, question } =
            self.whose.remove(&id).expect("every job was entered when it began");
        self.asking -= usize::from(question.is_some());
        let seat = &mut self.seats[seat];
        seat.jobs -= 1;
        let controller = seat.controller.name();
        let ended = match result {
            Ok(wrote) => {
                self.writer.metrics.reacted(controller, heard.elapsed());
                if wrote == Wrote::Gone { Ended::Gone } else { Ended::Done }
            }
            Err(error) => {
                match &error {
                    // The watch will bring what we have not seen; nothing is wrong.
                    WriteError::Stale { .. } | WriteError::Budget { .. } | WriteError::Fenced => {
                        tracing::debug!(%controller, %subject, %error, "not written");
                    }
                    _ => tracing::warn!(%controller, %subject, %error, "not written; trying again"),
                }
                let jitter = jitter();
                match error {
                    WriteError::Budget { after, .. } => Ended::Blocked { jitter, after },
                    error if error.is_unanswered() => Ended::Unanswered { jitter },
                    error => match error.refused_for() {
                        Some(after) => Ended::Refused { jitter, after },
                        None => Ended::Failed { jitter },
                    },
                }
            }
        };
        let now = now();
        seat.controller.ended(&subject, ended, now, &self.world, &mut seat.due);
        seat.due.end(&subject, ended, now);
    }

    async fn drain(mut self) {
        self.tempo.hurry(Instant::now());
        self.whose.values().filter_map(|begun| begun.question.as_ref()).for_each(AbortHandle::abort);
        let under_way = self.jobs.len() - self.asking;
        if under_way > 0 {
            tracing::info!(under_way, "finishing writes");
        }
        // Writers tell what they wrote; somebody must listen for them to finish.
        let finish = async {
            loop {
                tokio::select! {
                    ended = self.jobs.join_next() => if ended.is_none() { break },
                    Some(_) = self.hearing.recv() => {}
                }
            }
        };
        if tokio::time::timeout(DRAIN_MAX, finish).await.is_err() {
            tracing::warn!("stopped with writes still under way");
        }
    }
}

fn now() -> Moment {
    Moment::from_timestamp(jiff::Timestamp::now())
}

/// Between 0 and 1.
fn jitter() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness the waits are equal, which is only less polite.
    let _ = getrandom::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
