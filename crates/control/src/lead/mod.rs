//! Who may act: one process of several, by a Lease.
//!
//! ```text
//!  LeaderElection ──▶ Driver ──Action──▶ the Lease, by kube::Client
//!   (validated)        │  ▲                 │
//!                      │  └────Answer───────┘
//!                      ▼
//!                   Elector (pure) ──Hold──▶ Fence ──▶ every writer asks holds() before every write
//! ```
//!
//! Owns the election and the fence. The record is client-go's, field for field, so that programs on client-go and this
//! one can stand for the same Lease, and tools that show leaders show ours.
//!
//! # What is promised
//!
//! A process holds for the renew deadline (10 s), counted from *before* the renewal that succeeded was sent. A candidate
//! waits for the whole lease duration (15 s), counted on its own clock from when it saw the record change, which is after
//! it was written. So the holder has stopped at least the difference (5 s) before another begins, however skewed their
//! clocks are, as long as they run at about the same rate. The fence reads the clocks itself: it needs no task of ours to
//! be scheduled in time, so a process that was paused, or a machine that slept, finds it closed when it wakes.
//!
//! What a check before a write cannot promise is when the server carries the write out. So writers give up on a write
//! that is not answered before [`Fence::expiry`], and every write names the uid and resourceVersion it is based on: one
//! that arrives late changes nothing that a successor has changed.
//!
//! # What happens when the lease is lost
//!
//! Programs on client-go exit. This one stops acting at once and stands by with its caches kept, since everything it
//! decides comes from what it watches and nothing is remembered from the time it led: it takes over again without
//! listing the world first.
//!
//! Deleting a Lease under its holder lets a candidate create it anew at once, while the holder learns of it with its next
//! renewal (2 s); that is so with client-go as well. To move the leadership by hand, set `holderIdentity` to nothing, or
//! end the process.

mod clock;
mod config;
mod driver;
mod elector;
mod fence;
#[cfg(test)]
mod fixtures;
mod record;
#[cfg(test)]
mod simulation;

pub use clock::{Clock, Reading};
pub use config::{ElectionError, HOME, LeaderElection, Timing, identity};
pub use driver::Driver;
pub use elector::{Action, Answer, Elector, Hold};
pub use fence::{Fence, Term};
pub use record::{Record, Seen};
