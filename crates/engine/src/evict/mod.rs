//! Who must leave, when, and how many at once: the safety kernel that all scales share.
//!
//! Owns the moment at which something must leave ([`departure`], from a node: [`Tainted`]) and the order in which those whose moment has come may
//! really go ([`Marshal`]): never faster than a rate, never more at once than a budget, none while too much of a failure
//! domain is affected, none while somebody has said stop. It knows no pods and no API: subjects are whatever the scale
//! counts, and the caller does the leaving. It reads no clock; every moment is an argument, and a clock that is set back
//! makes it careful for a while, never stuck. It keeps nothing across a restart: rates begin with a full bucket, and a breaker
//! holds until its domain has been counted.
//!
//! [`policy`] is who says how a pod leaves, and when it may.
//!
//! ```text
//!   taints x tolerations --departure--> leave at t, because of this taint and that toleration
//!                                              |
//!        Stops, Breaker, Rate, Allowance ----> Marshal: want(subject, t, route) --> next(now) --> ended(subject)
//! ```

mod allowance;
mod breaker;
mod departure;
mod domain;
mod hold;
mod marshal;
pub mod policy;
mod rate;
mod stop;
mod tainted;

pub use allowance::Allowance;
pub use breaker::{Breaker, BreakerSight, Thresholds};
pub use departure::{Leave, counted_from, departure};
pub use domain::{Bounds, Domain, Route};
pub use hold::Hold;
pub use marshal::Marshal;
pub use rate::{Bucket, Rate};
pub use stop::{Cause, Freeze, Stops};
pub use tainted::Tainted;

pub(crate) use tainted::twin;
