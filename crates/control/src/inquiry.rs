//! Questions to the loop, from others in this process.
//!
//! Owns the way in which a webhook, a debugger or a page looks at the fleet as the controllers see it. A question is a
//! function that is run by the loop between two turns, so it sees one moment and nothing is locked or copied. It may ask
//! *what if* of the model, and leaves it as it was. It never writes, and a loop that is busy or has not seen everything yet
//! says so instead of letting anybody wait for long.
//!
//! ```text
//!   handler --ask(question)--> Inquirer ==queue==> Inquiries --> loop: question(Sight) --answer--> handler
//! ```

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use berth_api::Placement;
use berth_engine::explain::{Account, TooCostly, explain, explain_as_if};
use berth_engine::impact::{Impact, impact};
use berth_engine::model::ObjectKey;
use berth_engine::{Delta, Model, Moment};
use tokio::sync::{mpsc, oneshot};

use crate::world::World;

/// Questions that may wait: more come from a flood, and each would be answered after whoever asked has gone.
const WAITING_MAX: usize = 32;
/// How long an answer may take: an API server that calls a webhook waits ten seconds by default.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Units of cost that expressions may have for one question: some hundred milliseconds at most, in which nobody else has a
/// turn.
const QUESTION_COST_MAX: u64 = 5_000_000;

/// What a question looks at.
pub struct Sight<'a> {
    /// The objects as they were seen.
    pub world: &'a World,
    /// The fleet as the placement controller has it. Nobody else gets hold of it: what is tried on it must be taken back.
    model: &'a mut Model,
    /// The moment.
    pub now: Moment,
}

/// Why a placement is not explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// It is not there, or is to be left alone.
    #[error("there is no such placement, or nobody decides it")]
    NotFound,
    /// Its expressions are still being asked.
    #[error("its expressions are still being evaluated on all clusters; ask again")]
    Waiting,
    /// Its expressions cost more than a question may.
    #[error(
        "its expressions cost more than a question may ({QUESTION_COST_MAX} units on all clusters together); explain it \
         with `berth explain` instead"
    )]
    TooCostly,
}

impl<'a> Sight<'a> {
    /// The world, and the fleet as the controller of placements has it.
    pub(crate) fn new(world: &'a World, model: &'a mut Model, now: Moment) -> Self {
        // Until the next turn of the loop says otherwise.
        model.be_patient(QUESTION_COST_MAX);
        Self { world, model, now }
    }

    /// What would leave placements if this change came in; nothing is known of an object that has not been seen.
    pub fn impact(&mut self, change: &Delta) -> Option<Impact> {
        let undo = self.as_seen(change)?;
        Some(impact(self.model, change, undo, self.now))
    }

    /// Why a placement is decided as it is.
    pub fn explain(&mut self, placement: &ObjectKey) -> Result<Account, Unexplained> {
        if self.model.is_waiting(placement) {
            return Err(Unexplained::Waiting);
        }
        explain(self.model, placement, None, self.now).ok_or(Unexplained::NotFound)
    }

    /// Why a placement would be decided as it would be, were it in the fleet.
    pub fn explain_as_if(&mut self, placement: &Placement) -> Result<Account, Unexplained> {
        match explain_as_if(self.model, placement, None, self.now) {
            Ok(account) => account.ok_or(Unexplained::NotFound),
            Err(TooCostly) => Err(Unexplained::TooCostly),
        }
    }

    /// The object of a change, as the model has it.
    fn as_seen(&self, change: &Delta) -> Option<Delta> {
        let World { clusters, sets, bindings, placements, .. } = self.world;
        let named = |name: &str| ObjectKey::new("", name);
        Some(match change {
            Delta::Cluster(object) => {
                Delta::Cluster(Box::new((**clusters.get(&ObjectKey::of(&object.metadata))?).clone()))
            }
            Delta::ClusterGone(name) => Delta::Cluster(Box::new((**clusters.get(&named(name))?).clone())),
            Delta::Set(object) => {
                Delta::Set(Box::new((**sets.get(&ObjectKey::of(&object.metadata))?).clone()))
            }
            Delta::SetGone(name) => Delta::Set(Box::new((**sets.get(&named(name))?).clone())),
            Delta::Binding(object) => {
                Delta::Binding(Box::new((**bindings.get(&ObjectKey::of(&object.metadata))?).clone()))
            }
            Delta::BindingGone(key) => Delta::Binding(Box::new((**bindings.get(key)?).clone())),
            Delta::Placement(object) => {
                Delta::Placement(Box::new((**placements.get(&ObjectKey::of(&object.metadata))?).clone()))
            }
            Delta::PlacementGone(key) => Delta::Placement(Box::new((**placements.get(key)?).clone())),
            // What controllers and agents write; nobody asks what it would move.
            Delta::Decision(_) | Delta::DecisionGone(_) | Delta::Score(_) | Delta::ScoreGone(_) => {
                return None;
            }
        })
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Not everything has been seen that an answer needs.
    #[error("the fleet has not been seen yet")]
    NotSeen,
    /// Too many questions wait already, or the answer took too long.
    #[error("too busy to answer in time")]
    Busy,
    /// The question had a defect.
    #[error("a defect ended the question")]
    Broken,
    /// The controllers have stopped.
    #[error("the controllers have stopped")]
    Stopped,
}

/// A question on its way.
pub(crate) type Question = Box<dyn FnOnce(Result<Sight<'_>, Unanswered>) + Send>;

/// Asks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Inquirer {
    queue: mpsc::Sender<Question>,
}

/// The other side: what the loop is asked.
#[derive(Debug)]
pub struct Inquiries {
    waiting: mpsc::Receiver<Question>,
}

/// Somebody who asks, and what they ask.
pub fn inquiries() -> (Inquirer, Inquiries) {
    let (queue, waiting) = mpsc::channel(WAITING_MAX);
    (Inquirer { queue }, Inquiries { waiting })
}

impl Inquirer {
    /// Runs `question` on the fleet as it is now.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(Sight<'_>) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let answer = self.send(question)?;
        match tokio::time::timeout(ANSWER_WITHIN, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Unanswered::Stopped),
            Err(_) => Err(Unanswered::Busy),
        }
    }

    fn send<T: Send + 'static>(
        &self,
        question: impl FnOnce(Sight<'_>) -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, Unanswered>>, Unanswered> {
        let (answer, receiver) = oneshot::channel();
        let question: Question = Box::new(move |sight| {
            // Whoever asked may have gone; then nobody needs the work done.
            if answer.is_closed() {
                return;
            }
            let told = sight.and_then(|sight| {
                catch_unwind(AssertUnwindSafe(|| question(sight))).map_err(|defect| {
                    tracing::error!(defect = words(&*defect), "a question ended by a defect");
                    Unanswered::Broken
                })
            });
            let _ = answer.send(told);
        });
        self.queue.try_send(question).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Stopped,
        })?;
        Ok(receiver)
    }
}

impl Inquiries {
    /// The next question; never, once nobody is left to ask.
    pub(crate) async fn next(&mut self) -> Question {
        match self.waiting.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

/// What a panic said.
fn words(defect: &(dyn Any + Send)) -> &str {
    let text = defect.downcast_ref::<&str>().copied();
    text.or_else(|| defect.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every question on an empty fleet.
    async fn answer(mut inquiries: Inquiries, is_filled: bool) {
        let (world, mut model) = (World::default(), Model::new());
        loop {
            let question = inquiries.next().await;
            let now = Moment::from_second(1_700_000_000);
            let sight = Sight::new(&world, &mut model, now);
            question(if is_filled { Ok(sight) } else { Err(Unanswered::NotSeen) });
        }
    }

    #[tokio::test]
    async fn a_question_sees_the_fleet_and_its_answer_comes_back() {
        let (inquirer, inquiries) = inquiries();
        let looped = tokio::spawn(answer(inquiries, true));
        let seen = inquirer.ask(|sight| sight.world.clusters.len()).await;
        assert_eq!(seen, Ok(0));
        looped.abort();
    }

    #[tokio::test]
    async fn what_has_not_been_seen_is_not_answered() {
        let (inquirer, inquiries) = inquiries();
        let looped = tokio::spawn(answer(inquiries, false));
        assert_eq!(inquirer.ask(|_| ()).await, Err(Unanswered::NotSeen));
        looped.abort();
    }

    #[tokio::test]
    async fn a_question_with_a_defect_ends_nothing_but_itself() {
        let (inquirer, inquiries) = inquiries();
        let looped = tokio::spawn(answer(inquiries, true));
        assert_eq!(inquirer.ask(|_| -> u8 { panic!("a defect") }).await, Err(Unanswered::Broken));
        assert_eq!(inquirer.ask(|_| 7).await, Ok(7));
        looped.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_hangs_or_has_ended_keeps_nobody_waiting() {
        let (inquirer, inquiries) = inquiries();
        assert_eq!(inquirer.ask(|_| ()).await, Err(Unanswered::Busy), "nobody answers");
        while inquirer.send(|_| ()).is_ok() {}
        let begun = tokio::time::Instant::now();
        assert_eq!(inquirer.ask(|_| ()).await, Err(Unanswered::Busy));
        assert_eq!(begun.elapsed(), Duration::ZERO, "a full queue refuses at once");
        drop(inquiries);
        assert_eq!(inquirer.ask(|_| ()).await, Err(Unanswered::Stopped));
    }
}
