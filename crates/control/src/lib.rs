//! Making it so: the controllers of fleets and nodes.
//!
//! Owns the way from what an API server holds to what it should hold: watch, model, decide, act. It decides nothing
//! itself (that is the engine's work) and knows nothing of the server behind the client: the hub in this process and a
//! Kubernetes far away are one code path.
//!
//! ```text
//!   watch --Told--> world --Change--> controllers (an index, the engine's verdict) --writes--> act --> API server
//!                     ^                  ^    |                                      |
//!                     |                  |    '--subjects, deadlines--> due           '-- answers are told as well
//!                     '------------------'            lead: who may act    serve: health and metrics
//!                                                     inquiry: questions about the fleet, from this process
//!                                                     debug: the same over HTTPS, for who may ask
//!                                                     review: others are asked over HTTPS before a pod goes
//! ```

pub mod act;
mod answer;
pub mod controllers;
pub mod debug;
pub mod dialect;
pub mod due;
mod inquiry;
pub mod lead;
pub mod names;
mod pace;
pub mod review;
pub mod rights;
pub mod runtime;
pub mod serve;
mod watch;
pub mod world;

pub use controllers::{EvictionBreaker, EvictionLimits, FROZEN_REASON};
pub use dialect::Dialect;
pub use inquiry::{Inquirer, Inquiries, Sight, Unanswered, Unexplained, inquiries};
pub use names::{ControllerList, ControllerName};
pub use pace::Pace;
pub use runtime::{Options, run};
