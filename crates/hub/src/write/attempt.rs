//! One attempt at a write, and why it did not hold.

use std::sync::Arc;

use berth_hub_store::Entry;
use berth_hub_wire::Status;

/// How often a write that lost a race is decided again before the client is told of the conflict.
pub(crate) const ATTEMPTS: usize = 16;

/// Why a commit did not happen.
pub(crate) enum Lost {
    /// The object is not the one that was read.
    Race(Option<Arc<Entry>>),
    /// Its namespace or definition is not in the state that was read.
    Grounds,
    /// Something else.
    Refused(Status),
}

impl From<Status> for Lost {
    fn from(status: Status) -> Self {
        Lost::Refused(status)
    }
}

/// Decides and commits again and again, until it holds, is refused, or has lost too many races. (A function of a closure
/// would do, if futures of async closures could be told to be `Send`.)
macro_rules! until_committed {
    ($act:expr, $attempt:block) => {{
        let mut attempts = crate::write::ATTEMPTS;
        loop {
            attempts -= 1;
            let attempted: Result<_, crate::write::Lost> = async { $attempt }.await;
            match attempted {
                Ok(done) => break Ok(done),
                Err(crate::write::Lost::Refused(status)) => break Err(status),
                Err(_) if attempts == 0 => {
                    break Err(crate::resource::refusal::stale($act.resource, $act.name));
                }
                Err(_) => {}
            }
        }
    }};
}
pub(crate) use until_committed;
