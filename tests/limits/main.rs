//! Every limit of the hub, met from outside: what is too large, too many or too slow is refused or cut, with a Status
//! where there is still somebody to tell, and nobody else notices.
//!
//! Each test runs a hub in this process, on a socket with TLS, with the one limit it is about set low.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod crowd;
mod ending;
mod input;
mod place;
mod slow;
