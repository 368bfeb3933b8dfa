//! The task that keeps order.
//!
//! Owns the queues of what is to be looked at and the clock of what is due later, and how much of it is done at once.
//! What may wait for webhooks has places of its own, so that a webhook that hangs holds up nothing but what asks it.

use std::collections::HashMap;
use std::sync::Arc;

use berth_hub_wire::Status;
use tokio::sync::mpsc::Receiver;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::follow::follow;
use super::pace::Pace;
use super::queue::Queue;
use super::task::{Task, Worker};
use crate::chore::Chore;
use crate::core::Core;

/// Tasks done at once that may wait for webhooks: enough that a few slow ones are not noticed, and no more calls than a
/// webhook should get from one server.
const WAITING_MAX: usize = 32;
/// Tasks done at once that only read and write: they wait for the log alone.
const WRITING_MAX: usize = 8;
/// Chores taken in before the next look at what is due.
const CHORES_AT_ONCE: usize = 1024;

/// Keeps order.
#[derive(Debug)]
pub(crate) struct Keeper {
    core: Arc<Core>,
    worker: Arc<Worker>,
    work: Receiver<Chore>,
    /// What may wait for webhooks, and what does not.
    lanes: [Lane; 2],
    pace: Pace<Task>,
    running: JoinSet<Result<Option<std::time::Duration>, Status>>,
    begun: HashMap<Id, (Task, Instant)>,
}

/// Tasks of a sort, and how many are done at once.
#[derive(Debug)]
struct Lane {
    queue: Queue<Task>,
    room: usize,
}

impl Keeper {
    pub(crate) fn new(core: Arc<Core>, work: Receiver<Chore>) -> Self {
        Self {
            worker: Arc::new(Worker::new(Arc::clone(&core))),
            core,
            work,
            lanes: [WRITING_MAX, WAITING_MAX].map(|room| Lane { queue: Queue::default(), room }),
            pace: Pace::default(),
            running: JoinSet::new(),
            begun: HashMap::new(),
        }
    }

    /// Runs until told to stop. What is under way then is broken off: the next start looks at everything.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        self.look_at_everything();
        let mut chores = Vec::new();
        loop {
            if self.core.derived.take_overrun() {
                tracing::info!("more was written than could be followed: looking at everything");
                self.look_at_everything();
            }
            self.begin();
            let next = self.lanes.iter().filter_map(|lane| lane.queue.next_at()).min();
            tokio::select! {
                () = stop.cancelled() => break,
                taken = self.work.recv_many(&mut chores, CHORES_AT_ONCE) => {
                    if taken == 0 {
                        break;
                    }
                    for chore in chores.drain(..) {
                        self.note(&chore);
                    }
                }
                Some(done) = self.running.join_next_with_id() => self.end(done),
                () = sleep_until(next) => {
                    let now = Instant::now();
                    self.lanes.iter_mut().for_each(|lane| lane.queue.ripen(now));
                }
            }
        }
        self.running.shutdown().await;
    }

    /// What a start must look at: whatever a stop may have left half done.
    fn look_at_everything(&mut self) {
        let registry = self.core.registry();
        for resource in registry.all_stored() {
            for entry in self.core.all(&resource.storage) {
                if let Some(chore) = Chore::after(&entry, false) {
                    self.note(&chore);
                }
            }
        }
        self.ask(Task::Roles);
        self.ask(Task::Events);
    }

    fn note(&mut self, chore: &Chore) {
        let core = Arc::clone(&self.core);
        follow(&core, chore, |task| self.ask(task));
    }

    fn ask(&mut self, task: Task) {
        let queue = &mut self.lanes[usize::from(task.may_wait())].queue;
        if matches!(task, Task::Budgets(_)) {
            let at = self.pace.next(&task, Instant::now());
            queue.push_at(task, at);
        } else {
            queue.push(task);
        }
    }

    /// Begins what is due, as far as there is room.
    fn begin(&mut self) {
        for lane in &mut self.lanes {
            while lane.queue.running() < lane.room
                && let Some(task) = lane.queue.pop()
            {
                let worker = Arc::clone(&self.worker);
                let doing = task.clone();
                let handle = self.running.spawn(async move { worker.perform(&doing).await });
                self.begun.insert(handle.id(), (task, Instant::now()));
            }
        }
    }

    fn end(&mut self, done: Result<(Id, Result<Option<std::time::Duration>, Status>), JoinError>) {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), Err(Status::internal(&error.to_string()))),
        };
        let Some((task, begun)) = self.begun.remove(&id) else { return };
        let now = Instant::now();
        if matches!(task, Task::Budgets(_)) {
            self.pace.done(&task, now, now - begun);
        }
        let queue = &mut self.lanes[usize::from(task.may_wait())].queue;
        match outcome {
            Ok(again) => {
                queue.succeeded(&task);
                if let Some(again) = again {
                    queue.push_at(task, now + again);
                }
            }
            Err(status) => {
                if queue.failed(task.clone(), &status.message, now) {
                    tracing::warn!(?task, reason = status.message, "will be tried again");
                }
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
